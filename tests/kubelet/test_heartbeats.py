"""The leases of nodes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object
from kubepy.apiserver.cluster import LocalCluster
from kubepy.controlplane.open import open_cluster
from kubepy.kubelet.heartbeats import LEASE_NAMESPACE, LEASES, renew_leases

NOW = parse_time("2026-11-20T12:00:00.5Z")


@pytest.fixture
def cluster(tmp_path: Path) -> LocalCluster:
    cluster = open_cluster(tmp_path / "state", create=True)
    for name in ("a", "b"):
        cluster.client.create("nodes", {"metadata": {"name": name}})
    return cluster


def leases(cluster: LocalCluster) -> dict[str, Object]:
    return {
        lease["metadata"]["name"]: lease
        for lease in cluster.client.list(LEASES, namespace=LEASE_NAMESPACE).items
    }


def times(cluster: LocalCluster) -> dict[str, str]:
    return {name: lease["spec"]["renewTime"] for name, lease in leases(cluster).items()}


def test_lease_of_node_names_it_as_holder_and_owner(cluster: LocalCluster) -> None:
    renew_leases(cluster.client, NOW)
    lease, node = leases(cluster)["a"], cluster.client.get("nodes", "a")
    assert lease["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-11-20T12:00:00.500000Z",
    }
    assert lease["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": node["metadata"]["uid"]}
    ]


def test_leases_are_renewed_and_make_no_files(cluster: LocalCluster) -> None:
    renew_leases(cluster.client, NOW)
    renew_leases(cluster.client, NOW + timedelta(seconds=10))
    assert times(cluster) == dict.fromkeys("ab", "2026-11-20T12:00:10.500000Z")
    assert not list(Path(cluster.folder).glob("**/leases*"))


def test_kubelet_that_is_down_does_not_renew(cluster: LocalCluster) -> None:
    renew_leases(cluster.client, NOW)
    node = cluster.client.get("nodes", "a")
    down = {"kubepy.dev/down-until": "2999-01-01T00:00:00Z"}
    cluster.client.update("nodes", {**node, "metadata": {**node["metadata"], "annotations": down}})
    renew_leases(cluster.client, NOW + timedelta(seconds=10))
    assert times(cluster) == {
        "a": "2026-11-20T12:00:00.500000Z",
        "b": "2026-11-20T12:00:10.500000Z",
    }


def test_lease_that_somebody_else_holds_is_left_alone(cluster: LocalCluster) -> None:
    other = {
        "metadata": {"name": "a"},
        "spec": {"holderIdentity": "kwok", "renewTime": "2026-11-20T11:00:00.000000Z"},
    }
    cluster.client.create(LEASES, other, namespace=LEASE_NAMESPACE)
    renew_leases(cluster.client, NOW)
    assert times(cluster)["a"] == "2026-11-20T11:00:00.000000Z"


def test_leases_in_a_namespace_that_is_gone_are_left_out(cluster: LocalCluster) -> None:
    cluster.client.delete("namespaces", "kube-node-lease")
    renew_leases(cluster.client, NOW)
    assert times(cluster) == {}
