"""The fixtures of the API server's tests: a cluster in a temporary folder."""

from tests.apiserver.conftest import client, cluster

__all__ = ["client", "cluster"]
