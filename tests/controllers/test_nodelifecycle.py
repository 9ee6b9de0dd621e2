"""Node lifecycle: conditions become taints, unless too many nodes are not ready; new, deleted and
silent nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubepy.api.meta import Object
from kubepy.controllers.nodelifecycle import EvictionMode, ZoneCount, lifecycle_change
from kubepy.controlplane import build_manager, manager_lock
from kubepy.controlplane.open import make_cluster
from tests.controllers.conftest import NOW, Lab

ZONE = "topology.kubernetes.io/zone"
SILENT = {"kubepy.dev/outcome": "not-ready"}
NO_SCHEDULE, NO_EXECUTE = ("not-ready", "NoSchedule"), ("not-ready", "NoExecute")


def make_nodes(
    lab: Lab, number: int, *, zone: str = "", name: str = "node", start: int = 1
) -> list[str]:
    names = [f"{name}-{index}" for index in range(start, start + number)]
    for one in names:
        meta = {"name": one, "labels": {ZONE: zone} if zone else {}}
        lab.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta})
    lab.settle()
    return names


def report(lab: Lab, node: str, kind: str, status: str) -> None:
    """Write a condition by hand; the annotation keeps the simulated kubelet from overwriting it."""
    lab.change("nodes", node, lambda obj: obj["metadata"].update(annotations=SILENT))

    def change(obj: Object) -> None:
        conditions = [one for one in obj["status"]["conditions"] if one["type"] != kind]
        obj["status"]["conditions"] = [*conditions, {"type": kind, "status": status}]

    lab.change("nodes", node, change, subresource="status")


def fail(lab: Lab, *nodes: str) -> None:
    for node in nodes:
        report(lab, node, "Ready", "False")
    lab.settle()


def taints(lab: Lab, node: str = "node-1") -> list[tuple[str, str]]:
    found = lab.client.get("nodes", node)["spec"].get("taints", [])
    return [(one["key"].removeprefix("node.kubernetes.io/"), one["effect"]) for one in found]


def evicting(lab: Lab, nodes: list[str]) -> list[str]:
    return [node for node in nodes if NO_EXECUTE in taints(lab, node)]


def events(lab: Lab) -> list[tuple[str, str, str]]:
    found = [
        one
        for one in lab.client.list("events").items
        if one["source"].get("component") == "node-controller"
    ]
    assert all(one["metadata"]["namespace"] == "default" for one in found)
    return [(one["reason"], one["message"], one["involvedObject"]["uid"]) for one in found]


# --- taints


@pytest.mark.parametrize(("kind", "status", "expected"), [
    ("Ready", "False", [NO_SCHEDULE, NO_EXECUTE]),
    ("Ready", "Unknown", [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]),
    ("MemoryPressure", "True", [("memory-pressure", "NoSchedule")]),
    ("DiskPressure", "True", [("disk-pressure", "NoSchedule")]),
    ("PIDPressure", "True", [("pid-pressure", "NoSchedule")]),
    ("NetworkUnavailable", "True", [("network-unavailable", "NoSchedule")]),
    ("MemoryPressure", "Unknown", []),
    ("Sunny", "True", []),
])  # fmt: skip
def test_condition_becomes_taint_and_goes_with_it(
    lab: Lab, kind: str, status: str, expected: list[tuple[str, str]]
) -> None:
    make_nodes(lab, 2)
    assert taints(lab) == []
    report(lab, "node-1", kind, status)
    lab.settle()
    assert taints(lab) == expected
    report(lab, "node-1", kind, "True" if kind == "Ready" else "False")
    lab.settle()
    assert taints(lab) == []


def test_unreachable_node_that_answers_not_ready_changes_its_taints(lab: Lab) -> None:
    make_nodes(lab, 2)
    report(lab, "node-1", "Ready", "Unknown")
    lab.settle()
    fail(lab, "node-1")
    assert taints(lab) == [NO_SCHEDULE, NO_EXECUTE]


def test_cordoned_node_is_tainted_and_other_taints_stay(lab: Lab) -> None:
    own = {"key": "team", "value": "a", "effect": "NoExecute"}
    lab.node("node-1", unschedulable=True, taints=[own])
    lab.settle()
    assert taints(lab) == [("team", "NoExecute"), ("unschedulable", "NoSchedule")]
    lab.change("nodes", "node-1", lambda obj: obj["spec"].pop("unschedulable"))
    lab.settle()
    assert lab.client.get("nodes", "node-1")["spec"] == {"taints": [own]}


def test_taint_says_since_when(lab: Lab) -> None:
    lab.node("node-1", unschedulable=True)
    lab.settle()
    assert lab.client.get("nodes", "node-1")["spec"]["taints"] == [
        {"effect": "NoSchedule", "key": "node.kubernetes.io/unschedulable", "timeAdded": NOW}
    ]


def test_node_as_it_should_be_is_left_alone(lab: Lab) -> None:
    make_nodes(lab, 1)
    assert lifecycle_change(lab.client.get("nodes", "node-1"), EvictionMode.ADD, lab.now) is None


def test_older_labels_of_system_and_architecture_follow_newer(lab: Lab) -> None:
    labels = {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "arm64",
        "beta.kubernetes.io/arch": "amd64",
    }
    lab.create(
        "nodes",
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "labels": labels}},
    )
    lab.settle()
    assert lab.client.get("nodes", "node-1")["metadata"]["labels"] == {
        **labels, "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "arm64"}  # fmt: skip


# --- when many nodes are not ready


def test_no_ready_node_removes_no_execute_taints(lab: Lab) -> None:
    nodes = make_nodes(lab, 2)
    fail(lab, "node-1")
    assert evicting(lab, nodes) == ["node-1"]
    fail(lab, "node-2")
    assert [taints(lab, node) for node in nodes] == [[NO_SCHEDULE], [NO_SCHEDULE]]


def test_first_ready_node_restores_no_execute_taints_of_others(lab: Lab) -> None:
    nodes = make_nodes(lab, 3)
    fail(lab, *nodes)
    assert evicting(lab, nodes) == []
    report(lab, "node-2", "Ready", "True")
    lab.settle()
    assert evicting(lab, nodes) == ["node-1", "node-3"]


def test_node_that_joins_lets_others_be_emptied(lab: Lab) -> None:
    nodes = make_nodes(lab, 1)
    fail(lab, *nodes)
    assert evicting(lab, nodes) == []
    nodes += make_nodes(lab, 1, start=2)
    assert evicting(lab, nodes) == ["node-1"]
    lab.client.delete("nodes", "node-2")
    lab.settle()
    assert evicting(lab, ["node-1"]) == []


@pytest.mark.parametrize(("failing", "emptied"), [(2, 2), (3, 0)])
def test_zone_that_is_mostly_not_ready_is_left_as_it_is(
    lab: Lab, failing: int, emptied: int
) -> None:
    nodes = make_nodes(lab, 5)
    fail(lab, *nodes[:failing])
    assert evicting(lab, nodes) == nodes[:emptied]


def test_nodes_that_were_being_emptied_before_stay_so(lab: Lab) -> None:
    nodes = make_nodes(lab, 5)
    fail(lab, "node-1")
    fail(lab, "node-2", "node-3")
    assert evicting(lab, nodes) == ["node-1"]
    report(lab, "node-1", "Ready", "Unknown")
    lab.settle()
    assert taints(lab) == [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]


def test_zones_are_judged_apart(lab: Lab) -> None:
    east, west = (
        make_nodes(lab, 2, zone="east", name="e"),
        make_nodes(lab, 4, zone="west", name="w"),
    )
    fail(lab, *east, *west[:3])
    assert (
        evicting(lab, [*east, *west]) == east
    )  # all nodes of the east, whose pods upstream evicts; most of the west


def test_nodes_excluded_by_label_do_not_count(lab: Lab) -> None:
    nodes = make_nodes(lab, 5)
    excluded = {"node.kubernetes.io/exclude-disruption": ""}
    lab.change("nodes", "node-1", lambda obj: obj["metadata"].update(labels=excluded))
    fail(lab, *nodes[:3])
    assert evicting(lab, nodes) == nodes[:3]


@pytest.mark.parametrize(
    ("count", "holds"),
    [
        (ZoneCount(2, 2), False),
        (ZoneCount(2, 3), True),
        (ZoneCount(3, 3), False),
        (ZoneCount(0, 3), False),
        (ZoneCount(20, 30), True),
        (ZoneCount(21, 30), False),
    ],
)
def test_zone_is_partially_disrupted(count: ZoneCount, holds: bool) -> None:
    assert count.is_partially_disrupted is holds


# --- new, deleted and silent nodes


def test_node_that_comes_and_one_that_goes_are_reported_once(lab: Lab) -> None:
    make_nodes(lab, 2)
    uids = [lab.client.get("nodes", node)["metadata"]["uid"] for node in ("node-1", "node-2")]
    lab.change("nodes", "node-1", lambda obj: obj["metadata"].update(labels={"a": "b"}))
    lab.settle()
    lab.client.delete("nodes", "node-1")
    lab.settle()
    assert sorted(events(lab)) == [
        ("RegisteredNode", "Node node-1 event: Registered Node node-1 in Controller", uids[0]),
        ("RegisteredNode", "Node node-2 event: Registered Node node-2 in Controller", uids[1]),
        ("RemovingNode", "Node node-1 event: Removing Node node-1 from Controller", uids[0]),
    ]  # fmt: skip


@pytest.mark.parametrize("lists_anew", [False, True])
def test_nodes_of_one_second_are_registered_once_by_all_processes(lists_anew: bool) -> None:
    cluster = make_cluster("memory:", {"clock": "2026-01-01T00:00:00Z", "seed": 7})
    for number in range(4):
        cluster.client.create("nodes", {"metadata": {"name": f"node-{number}"}})
        with manager_lock(cluster):
            manager = build_manager(cluster)
            manager._source.is_stale = lists_anew
            manager.run_until_settled()
    recorded = cluster.client.list("events", namespace="default").items
    registered = [event for event in recorded if event["reason"] == "RegisteredNode"]
    nodes = [(event["involvedObject"]["name"], event["count"]) for event in registered]
    assert sorted(nodes) == [(f"node-{number}", 1) for number in range(4)]


def silent_node(lab: Lab) -> Callable[[], list[Object]]:
    """Create a node whose kubelet never reports, beside one that does; return a function that reads
    its conditions."""
    make_nodes(lab, 1, name="other")
    lab.create(
        "nodes",
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "annotations": SILENT}},
    )
    return lambda: (lab.client.get("nodes", "node-1").get("status") or {}).get("conditions", [])


def test_kubelet_that_never_reports_is_given_up_after_minute(lab: Lab) -> None:
    conditions = silent_node(lab)
    due = [(one.key.name, (one.time - lab.now).total_seconds()) for one in lab.settle().due]
    assert due == [("node-1", 60)]
    lab.pass_time(59)
    lab.settle()
    assert (conditions(), taints(lab)) == ([], [])
    lab.pass_time(60)
    lab.settle()
    assert conditions() == [
        {"type": kind, "status": "Unknown", "reason": "NodeStatusNeverUpdated",
         "message": "Kubelet never posted node status.", "lastHeartbeatTime": NOW,
         "lastTransitionTime": "2026-11-20T10:01:00Z"}
        for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")]  # fmt: skip
    assert taints(lab) == [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]


def test_kubelet_that_reports_in_time_is_not_given_up(lab: Lab) -> None:
    conditions = silent_node(lab)
    lab.settle()
    lab.pass_time(30)
    lab.change("nodes", "node-1", lambda obj: obj["metadata"].pop("annotations"))
    lab.settle()
    lab.pass_time(61)
    assert lab.settle().due == []
    assert [(one["type"], one["status"]) for one in conditions()][-1] == ("Ready", "True")
