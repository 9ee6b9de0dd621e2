"""A cluster in a temporary folder, checked for damage at the end of every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubepy.apiserver.client import Client
from kubepy.apiserver.cluster import LocalCluster
from kubepy.controlplane.open import make_cluster
from tests.stores import disagreements

NOW = "2026-11-20T10:00:00Z"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    """A cluster whose clock stands at NOW and whose UIDs repeat."""
    made = make_cluster(tmp_path / "state", {"clock": NOW, "seed": 1})
    yield made
    assert disagreements(made.store) == []
    made.close()


@pytest.fixture
def client(cluster: LocalCluster) -> Client:
    return cluster.client
