"""Settings of all tests, and fixtures that tests of several packages share.

Hypothesis tries the same examples each time, so that no test fails by chance.
``pytest --hypothesis-profile=default`` tries others; a failing example that it finds becomes an
``@example``.
"""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from kubepy.storage import frozen
from tests.etcd import etcd_address, etcd_server, own_etcd
from tests.forkserver import ForkServer

__all__ = ["etcd_address", "etcd_server", "own_etcd"]  # fixtures

# A change of an object that came out of a store raises TypeError, as under PYTHONDEVMODE=1.
frozen.is_on = True

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


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
