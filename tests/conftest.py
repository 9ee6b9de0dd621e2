"""Hypothesis tries the same examples each time, so that no test fails by chance.

``pytest --hypothesis-profile=default`` tries others; a failing example that it finds becomes an ``@example``.
"""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.forkserver import ForkServer

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """kubepy's program without its start: ``fork_server.program``."""
    server = ForkServer(tmp_path_factory.mktemp("program"))
    yield server
    server.close()
