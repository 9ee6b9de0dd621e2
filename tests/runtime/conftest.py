"""The same cluster in a temporary folder that the tests of the API server use."""

from tests.apiserver.conftest import client, cluster

__all__ = ["client", "cluster"]
