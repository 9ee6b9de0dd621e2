"""What nodes report in a cluster whose containers are modelled."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kubepy.api.errors import NotFound
from kubepy.apiserver.nodeleases import LEASE_NAMESPACE, LEASES
from kubepy.apiserver.request import JSON_PATCH, Patch
from kubepy.kubelet.heartbeats import renew_leases
from tests.kubelet.modelledcluster import START, ModelledCluster

Object = dict[str, Any]


@pytest.fixture
def modelled(tmp_path: Path) -> Iterator[ModelledCluster]:
    cluster = ModelledCluster(tmp_path / "state")
    yield cluster
    cluster.close()


def addresses(node: Object) -> dict[str, str]:
    return {entry["type"]: entry["address"] for entry in node["status"].get("addresses") or ()}


def test_nodes_report_distinct_addresses_and_their_names(modelled: ModelledCluster) -> None:
    for name in ("a", "b"):
        modelled.node(name)
    modelled.settle()
    modelled.restart()
    modelled.node("c")
    modelled.settle()
    found = [addresses(modelled.client.get("nodes", name)) for name in ("a", "b", "c")]
    assert found == [
        {"InternalIP": "192.168.0.1", "Hostname": "a"},
        {"InternalIP": "192.168.0.2", "Hostname": "b"},
        {"InternalIP": "192.168.0.3", "Hostname": "c"},
    ]


def test_node_with_addresses_keeps_them_and_no_other_gets_them(modelled: ModelledCluster) -> None:
    own = [{"type": "InternalIP", "address": "192.168.0.1"}]
    modelled.node("own", {"addresses": own})
    modelled.node("other")
    modelled.settle()
    assert modelled.client.get("nodes", "own")["status"]["addresses"] == own
    assert addresses(modelled.client.get("nodes", "other"))["InternalIP"] == "192.168.0.2"


def test_pods_of_a_node_report_its_address(modelled: ModelledCluster) -> None:
    for name in ("a", "b"):
        modelled.node(name)
    modelled.pod("web", "b")
    modelled.settle()
    assert modelled.client.get("pods", "web", namespace="default")["status"]["hostIP"] == (
        "192.168.0.2"
    )


def test_nodes_of_a_simple_cluster_report_no_addresses(tmp_path: Path) -> None:
    cluster = ModelledCluster(tmp_path / "state", "simple")
    cluster.node("a")
    cluster.settle()
    assert addresses(cluster.client.get("nodes", "a")) == {}
    assert cluster.client.list(LEASES, namespace=LEASE_NAMESPACE).items == []
    cluster.close()


def test_extended_resource_in_capacity_becomes_allocatable_until_it_is_removed(
    modelled: ModelledCluster,
) -> None:
    modelled.node("a")
    modelled.settle()
    path = "/status/capacity/example.com~1dongle"
    add = [{"op": "add", "path": path, "value": "4"}]
    modelled.client.patch("nodes", "a", Patch(JSON_PATCH, add), subresource="status")
    modelled.settle()
    allocatable = modelled.client.get("nodes", "a")["status"]["allocatable"]
    assert allocatable == {"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/dongle": "4"}
    remove = [{"op": "remove", "path": path}]
    modelled.client.patch("nodes", "a", Patch(JSON_PATCH, remove), subresource="status")
    modelled.settle()
    allocatable = modelled.client.get("nodes", "a")["status"]["allocatable"]
    assert "example.com/dongle" not in allocatable


def test_leases_of_nodes_are_fresh_when_they_are_read(modelled: ModelledCluster) -> None:
    modelled.node("a")
    assert modelled.client.list(LEASES, namespace=LEASE_NAMESPACE).items == []
    modelled.settle()
    modelled.cluster.clock.own = START + timedelta(seconds=95)
    [lease] = modelled.client.list(LEASES).items
    assert lease["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-01T00:01:30.000000Z",
    }
    assert modelled.client.get(LEASES, "a", namespace=LEASE_NAMESPACE) == lease
    assert list(modelled.client.stream(LEASES)) == [lease]
    assert modelled.client.list_stored(LEASES) == []
    node = modelled.client.get("nodes", "a")
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    with pytest.raises(NotFound):
        modelled.client.get(LEASES, "b", namespace=LEASE_NAMESPACE)


def test_server_stores_leases_that_were_only_computed_before(modelled: ModelledCluster) -> None:
    modelled.node("a")
    modelled.settle()
    later = START + timedelta(seconds=5)
    renew_leases(modelled.client, START)
    renew_leases(modelled.client, later)
    [stored] = modelled.client.list_stored(LEASES)
    assert stored["spec"]["renewTime"] == "2026-01-01T00:00:05.000000Z"
    assert modelled.client.list(LEASES).items == [stored]
    modelled.cluster.clock.own = START + timedelta(seconds=30)
    [lease] = modelled.client.list(LEASES).items
    assert lease["spec"]["renewTime"] == "2026-01-01T00:00:30.000000Z"
    assert lease["metadata"] == stored["metadata"]


def test_stored_lease_that_another_holds_stays_as_it_is(modelled: ModelledCluster) -> None:
    modelled.node("a")
    modelled.settle()
    held = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "somebody"}}
    modelled.client.create(LEASES, held, namespace=LEASE_NAMESPACE)
    [lease] = modelled.client.list(LEASES, namespace=LEASE_NAMESPACE).items
    assert lease["spec"]["holderIdentity"] == "somebody"


def test_node_whose_kubelet_is_down_does_not_renew_its_lease(modelled: ModelledCluster) -> None:
    down = {"kubepy.dev/down-until": "2026-01-01T01:00:00Z"}
    modelled.node("a", annotations=down)
    modelled.settle_until(START + timedelta(minutes=2))
    assert modelled.client.list(LEASES, namespace=LEASE_NAMESPACE).items == []
