"""Status reported by a node's kubelet, and the addresses of pods."""

from __future__ import annotations

from typing import Any

from kubepy.kubelet.nodes import PodAddresses, register
from kubepy.runtime.reconcile import Informers, Key, WatchEvent
from tests.kubelet.objects import NOW, check_golden, new_node


def test_node_that_reports_nothing_becomes_ready() -> None:
    check_golden("node", register(new_node(), NOW))


def test_node_keeps_what_its_manifest_says() -> None:
    node = new_node()
    pressure = {
        "type": "MemoryPressure",
        "status": "True",
        "lastTransitionTime": "2026-11-20T11:00:00Z",
    }
    network = {"type": "NetworkUnavailable", "status": "False"}
    node["status"] = {
        "capacity": {"cpu": "2"},
        "nodeInfo": {"osImage": "mine"},
        "conditions": [network, pressure],
    }
    status = register(node, NOW)["status"]
    assert status["capacity"] == status["allocatable"] == {"cpu": "2"}
    assert (status["nodeInfo"]["osImage"], status["nodeInfo"]["kernelVersion"]) == ("mine", "0")
    assert [(one["type"], one["status"]) for one in status["conditions"]] == [
        ("MemoryPressure", "False"),
        ("DiskPressure", "False"),
        ("PIDPressure", "False"),
        ("Ready", "True"),
        ("NetworkUnavailable", "False"),
    ]
    assert "status" not in new_node()


def test_ready_node_and_one_annotated_not_ready_are_left_as_they_are() -> None:
    ready = register(new_node(), NOW)
    assert register(ready, NOW) is ready
    silent = new_node(**{"kubepy.dev/outcome": "not-ready"})
    assert register(silent, NOW) is silent


def test_pod_addresses_are_distinct_and_come_free_again() -> None:
    informers = Informers()
    addresses = PodAddresses(informers)
    keys = [Key("pods", "default", f"p{number}") for number in range(300)]
    given = []
    for key in keys:
        given.append(addresses.next())
        informers.observe(WatchEvent(key, None, pod_at(given[-1])))
    assert given[:2] + given[-1:] == ["10.244.0.1", "10.244.0.2", "10.244.1.44"]
    assert len(set(given)) == 300
    informers.observe(WatchEvent(keys[0], pod_at(given[0]), None))
    restarted = PodAddresses(informers)
    assert [restarted.next(), restarted.next()] == ["10.244.0.1", "10.244.1.45"]


def pod_at(address: str) -> dict[str, Any]:
    return {"metadata": {}, "spec": {}, "status": {"podIP": address}}
