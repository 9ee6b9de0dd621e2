"""Settings of all tests, and fixtures that tests of several packages share.

Hypothesis tries the same examples each time, so that no test fails by chance.
``pytest --hypothesis-profile=default`` tries others; a failing example that it finds becomes an
``@example``.
"""

from collections.abc import Iterator

import pytest
from hypothesis import is_hypothesis_test, settings

from kubepy.storage import frozen
from tests.etcd import etcd_address, etcd_server, own_etcd
from tests.forkserver import ForkServer

__all__ = ["etcd_address", "etcd_server", "own_etcd"]  # fixtures

# A change of an object that came out of a store raises TypeError, as under PYTHONDEVMODE=1.
frozen.is_on = True

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# Tests run in half the time where coverage is not traced. Properties, and the tests of these
# modules, run lines of kubepy a thousand times that other tests run, too: without them `coverage
# report` says 0.9 % less.
UNTRACED = {
    "api": {"protobuf", "goformat"},
    "apiserver": {"random_requests", "valid_objects"},
    "controllers": {
        "bounds",
        "daemonset_invariants",
        "deployment_invariants",
        "faults",
        "garbagecollector_model",
        "job",
        "moments",
        "namespace",
        "once_and_watch",
        "statefulset_invariants",
        "time",
        "transcripts",
    },
    "insight": {
        "availability",
        "timeline",
        "why_healthy",
        "why_incidents",
        "why_pages",
        "why_placement",
    },
    "kubelet": {"pacing", "restarts"},
    "server": {"connections", "fuzz", "watch_faults", "watch_histories"},
    "storage": {"contract", "faults", "forks", "model", "round_trip", "sums", "yaml_dump"},
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        modules = UNTRACED.get(item.path.parent.name, ())
        if item.path.stem.removeprefix("test_") in modules or is_hypothesis_test(
            getattr(item, "obj", None)
        ):
            item.add_marker(pytest.mark.no_cover)


@pytest.fixture(scope="session", autouse=True)
def user_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the key by which kubepy knows its folders be one of the tests."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("user")))
        yield


@pytest.fixture(scope="session")
def fork_server(
    tmp_path_factory: pytest.TempPathFactory, user_directory: None
) -> Iterator[ForkServer]:
    """kubepy's program without its start: ``fork_server.program``."""
    server = ForkServer(tmp_path_factory.mktemp("program"))
    yield server
    server.close()
