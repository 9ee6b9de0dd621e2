"""Node lifecycle, taint eviction and the collection of pods whose nodes are gone."""

from __future__ import annotations

import pytest

from kubepy.cluster.objects.meta import Object
from kubepy.controllers.nodelifecycle import lifecycle_change
from kubepy.controllers.tainteviction import tolerated_seconds
from tests.controllers.conftest import Lab

TOLERATED = {"key": "a", "operator": "Exists", "effect": "NoExecute"}


def set_condition(lab: Lab, node: str, kind: str, status: str) -> None:
    """By hand; the simulated kubelet of a node with this annotation does not object."""
    lab.change("nodes", node, lambda obj: obj["metadata"].update(annotations={"kubepy.dev/outcome": "not-ready"}))

    def change(obj: Object) -> None:
        conditions = [one for one in obj["status"]["conditions"] if one["type"] != kind]
        obj["status"]["conditions"] = [*conditions, {"type": kind, "status": status}]

    lab.change("nodes", node, change, subresource="status")


def taints(lab: Lab, node: str) -> list[tuple[str, str]]:
    found = lab.client.get("nodes", node)["spec"].get("taints", [])
    return [(one["key"].removeprefix("node.kubernetes.io/"), one["effect"]) for one in found]


def bare_pod(lab: Lab, name: str, node: str, **more: object) -> Object:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i:1"}], **more}
    return lab.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}, "default")


@pytest.mark.parametrize(("kind", "status", "expected"), [
    ("Ready", "False", [("not-ready", "NoSchedule"), ("not-ready", "NoExecute")]),
    ("Ready", "Unknown", [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]),
    ("MemoryPressure", "True", [("memory-pressure", "NoSchedule")]),
    ("DiskPressure", "True", [("disk-pressure", "NoSchedule")]),
    ("PIDPressure", "True", [("pid-pressure", "NoSchedule")]),
    ("NetworkUnavailable", "True", [("network-unavailable", "NoSchedule")]),
])
def test_a_condition_becomes_a_taint_and_goes_with_it(lab, kind, status, expected):
    lab.node("node-1")
    lab.settle()
    assert taints(lab, "node-1") == []
    set_condition(lab, "node-1", kind, status)
    lab.settle()
    assert taints(lab, "node-1") == expected
    set_condition(lab, "node-1", kind, "True" if kind == "Ready" else "False")
    lab.settle()
    assert taints(lab, "node-1") == []


def test_an_unreachable_node_that_answers_not_ready_changes_its_taints(lab):
    lab.node("node-1")
    lab.settle()
    set_condition(lab, "node-1", "Ready", "Unknown")
    lab.settle()
    set_condition(lab, "node-1", "Ready", "False")
    lab.settle()
    assert taints(lab, "node-1") == [("not-ready", "NoSchedule"), ("not-ready", "NoExecute")]


def test_a_cordoned_node_is_tainted_and_other_taints_stay(lab):
    own = {"key": "team", "value": "a", "effect": "NoExecute"}
    lab.node("node-1", unschedulable=True, taints=[own])
    lab.settle()
    assert taints(lab, "node-1") == [("team", "NoExecute"), ("unschedulable", "NoSchedule")]
    lab.change("nodes", "node-1", lambda obj: obj["spec"].pop("unschedulable"))
    lab.settle()
    assert lab.client.get("nodes", "node-1")["spec"] == {"taints": [own]}


def test_a_node_as_it_should_be_is_left_alone(lab):
    lab.node("node-1")
    lab.settle()
    assert lifecycle_change(lab.client.get("nodes", "node-1"), lab.now) is None


# --- taint eviction


@pytest.mark.parametrize(("tolerations", "expected"), [
    ([], 0),
    ([{"operator": "Exists"}], None),
    ([{"key": "a", "operator": "Exists", "tolerationSeconds": 30}, {"key": "b", "operator": "Exists"}], 30),
    ([{"operator": "Exists", "tolerationSeconds": -5}], 0),
    ([{"key": "a", "operator": "Exists", "tolerationSeconds": 30}], 0),
    ([{"key": "a", "operator": "Exists", "tolerationSeconds": 30},
      {"key": "b", "operator": "Exists", "tolerationSeconds": 10}], 10),
])
def test_the_shortest_toleration_of_all_taints_counts(tolerations, expected):
    taints = [{"key": "a", "effect": "NoExecute"}, {"key": "b", "effect": "NoExecute"}]
    assert tolerated_seconds(taints, tolerations) == expected


def test_without_taints_a_pod_stays_for_ever():
    assert tolerated_seconds([], []) is None


def test_pods_leave_a_tainted_node_at_once_later_or_never(lab):
    lab.node("node-1")
    bare_pod(lab, "at-once", "node-1")
    bare_pod(lab, "later", "node-1", tolerations=[{**TOLERATED, "tolerationSeconds": 60}])
    bare_pod(lab, "never", "node-1", tolerations=[TOLERATED])
    lab.settle()
    lab.change("nodes", "node-1", lambda obj: obj["spec"].update(taints=[{"key": "a", "effect": "NoExecute"}]))
    summary = lab.settle()
    assert lab.names("pods") == ["later", "never"]
    assert [(due.key.name, (due.time - lab.now).total_seconds()) for due in summary.due
            if due.reconciler == "taint-eviction-controller"] == [("later", 60)]
    lab.pass_time(59)
    lab.settle()
    assert lab.names("pods") == ["later", "never"]
    lab.pass_time(60)
    lab.settle()
    assert lab.names("pods") == ["never"]


def test_an_eviction_is_cancelled_when_the_taint_goes(lab):
    lab.node("node-1")
    bare_pod(lab, "later", "node-1", tolerations=[{**TOLERATED, "tolerationSeconds": 60}])
    lab.settle()
    lab.change("nodes", "node-1", lambda obj: obj["spec"].update(taints=[{"key": "a", "effect": "NoExecute"}]))
    lab.settle()
    lab.change("nodes", "node-1", lambda obj: obj["spec"].pop("taints"))
    lab.settle()
    lab.pass_time(61)
    lab.settle()
    assert lab.names("pods") == ["later"]
    messages = [one["message"] for one in lab.client.list("events").items if one["reason"] == "TaintManagerEviction"]
    assert messages == ["Cancelling deletion of Pod default/later"]


# --- pods whose nodes are gone


def test_pods_of_a_node_that_is_gone_are_removed_after_forty_seconds(lab):
    lab.node("node-1")
    bare_pod(lab, "left", "node-1")
    lab.settle()
    lab.client.delete("nodes", "node-1")
    lab.settle()
    lab.pass_time(39)
    lab.settle()
    assert lab.names("pods") == ["left"]
    lab.pass_time(40)
    lab.settle()
    assert lab.names("pods") == []


def test_a_node_that_comes_back_in_time_keeps_its_pods(lab):
    lab.node("node-1")
    bare_pod(lab, "left", "node-1")
    lab.settle()
    lab.client.delete("nodes", "node-1")
    lab.settle()
    lab.pass_time(30)
    lab.node("node-1")
    lab.settle()
    lab.pass_time(60)
    lab.settle()
    assert lab.names("pods") == ["left"]


def test_a_node_whose_file_cannot_be_read_keeps_its_pods(lab):
    lab.node("node-1")
    bare_pod(lab, "left", "node-1")
    lab.settle()
    file = lab.file("nodes", "node-1")
    text = file.read_text()
    file.write_text(text + "broken: [\n")
    lab.forget_index()
    for seconds in (30, 71, 200):
        lab.pass_time(seconds)
        lab.settle()
    assert lab.names("pods") == ["left"]
    file.write_text(text)
    lab.settle()
    assert lab.names("pods") == ["left"]


def test_a_terminating_pod_on_a_node_that_is_out_of_service_is_removed(lab):
    lab.node("node-1")
    lab.create("pods", {"apiVersion": "v1", "kind": "Pod",
                        "metadata": {"name": "stuck", "annotations": {"kubepy.dev/termination": "stuck"}},
                        "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "i:1"}],
                                 "tolerations": [{"operator": "Exists"}]}}, "default")
    lab.settle()
    lab.client.delete("pods", "stuck", namespace="default")
    lab.settle()
    assert lab.names("pods") == ["stuck"]
    set_condition(lab, "node-1", "Ready", "False")
    lab.change("nodes", "node-1", lambda obj: obj["spec"].update(
        taints=[{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]))
    lab.settle()
    assert lab.names("pods") == []
