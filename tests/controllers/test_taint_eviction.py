"""Taint eviction."""

from __future__ import annotations

import pytest

from kubepy.api.meta import Object
from kubepy.controllers.tainteviction import tolerated_seconds
from tests.controllers.conftest import Lab

STUCK = {"kubepy.dev/termination": "stuck"}
TOLERATED = {"key": "a", "operator": "Exists", "effect": "NoExecute"}


def set_condition(lab: Lab, node: str, kind: str, status: str) -> None:
    """Write a node's condition by hand; the annotation keeps its simulated kubelet from overwriting
    it."""
    lab.change(
        "nodes",
        node,
        lambda obj: obj["metadata"].update(annotations={"kubepy.dev/outcome": "not-ready"}),
    )

    def change(obj: Object) -> None:
        conditions = [one for one in obj["status"]["conditions"] if one["type"] != kind]
        obj["status"]["conditions"] = [*conditions, {"type": kind, "status": status}]

    lab.change("nodes", node, change, subresource="status")


def bare_pod(lab: Lab, name: str, node: str, **more: object) -> Object:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i:1"}], **more}
    return lab.create(
        "pods",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec},
        "default",
    )


# --- taint eviction


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], 0),
        ([{"operator": "Exists"}], None),
        (
            [
                {"key": "a", "operator": "Exists", "tolerationSeconds": 30},
                {"key": "b", "operator": "Exists"},
            ],
            30,
        ),
        ([{"operator": "Exists", "tolerationSeconds": -5}], 0),
        ([{"key": "a", "operator": "Exists", "tolerationSeconds": 30}], 0),
        (
            [
                {"key": "a", "operator": "Exists", "tolerationSeconds": 30},
                {"key": "b", "operator": "Exists", "tolerationSeconds": 10},
            ],
            10,
        ),
    ],
)
def test_shortest_toleration_of_all_taints_counts(tolerations, expected):
    taints = [{"key": "a", "effect": "NoExecute"}, {"key": "b", "effect": "NoExecute"}]
    assert tolerated_seconds(taints, tolerations) == expected


def test_node_without_taints_evicts_nothing():
    assert tolerated_seconds([], []) is None


def test_pods_leave_tainted_node_at_once_later_or_never(lab):
    lab.node("node-1")
    bare_pod(lab, "at-once", "node-1")
    bare_pod(lab, "later", "node-1", tolerations=[{**TOLERATED, "tolerationSeconds": 60}])
    bare_pod(lab, "never", "node-1", tolerations=[TOLERATED])
    lab.settle()
    lab.change(
        "nodes",
        "node-1",
        lambda obj: obj["spec"].update(taints=[{"key": "a", "effect": "NoExecute"}]),
    )
    summary = lab.settle()
    assert lab.names("pods") == ["later", "never"]
    assert [
        (due.key.name, (due.time - lab.now).total_seconds())
        for due in summary.due
        if due.reconciler == "taint-eviction-controller"
    ] == [("later", 60)]
    lab.pass_time(59)
    lab.settle()
    assert lab.names("pods") == ["later", "never"]
    lab.pass_time(60)
    lab.settle()
    assert lab.names("pods") == ["never"]


def test_eviction_is_cancelled_when_taint_goes(lab):
    lab.node("node-1")
    bare_pod(lab, "later", "node-1", tolerations=[{**TOLERATED, "tolerationSeconds": 60}])
    lab.settle()
    lab.change(
        "nodes",
        "node-1",
        lambda obj: obj["spec"].update(taints=[{"key": "a", "effect": "NoExecute"}]),
    )
    lab.settle()
    lab.change("nodes", "node-1", lambda obj: obj["spec"].pop("taints"))
    lab.settle()
    lab.pass_time(61)
    lab.settle()
    assert lab.names("pods") == ["later"]
    messages = [
        one["message"]
        for one in lab.client.list("events").items
        if one["reason"] == "TaintManagerEviction"
    ]
    assert messages == ["Cancelling deletion of Pod default/later"]


def taint(lab: Lab, *taints: Object) -> None:
    lab.change("nodes", "node-1", lambda obj: obj["spec"].update(taints=list(taints)))
    lab.settle()


NO_EXECUTE = {"key": "a", "effect": "NoExecute"}


def test_evicted_pod_says_why(lab):
    lab.node("node-1")
    pod = bare_pod(lab, "p", "node-1")
    lab.change(
        "pods", "p", lambda obj: obj["metadata"].update(annotations=STUCK), namespace="default"
    )
    lab.settle()
    taint(lab, NO_EXECUTE)
    found = lab.client.get("pods", "p", namespace="default")
    assert found["metadata"]["deletionTimestamp"] == "2026-11-20T10:00:30Z"
    assert [one for one in found["status"]["conditions"] if one["type"] == "DisruptionTarget"] == [
        {
            "lastProbeTime": None,
            "lastTransitionTime": "2026-11-20T10:00:00Z",
            "observedGeneration": 1,
            "message": "Taint manager: deleting due to NoExecute taint",
            "reason": "DeletionByTaintManager",
            "status": "True",
            "type": "DisruptionTarget",
        }
    ]
    [event] = [
        one for one in lab.client.list("events").items if one["reason"] == "TaintManagerEviction"
    ]
    assert (event["message"], event["type"], event["source"], event["involvedObject"]["uid"]) == (
        "Marking for deletion Pod default/p", "Normal", {"component": "taint-eviction-controller"},
        pod["metadata"]["uid"])  # fmt: skip


def test_scheduled_eviction_keeps_its_time(lab):
    lab.node("node-1")
    bare_pod(
        lab,
        "later",
        "node-1",
        tolerations=[
            {**TOLERATED, "tolerationSeconds": 60},
            {**TOLERATED, "key": "b", "tolerationSeconds": 10},
        ],
    )
    lab.settle()
    taint(lab, NO_EXECUTE)
    lab.pass_time(30)
    taint(lab, NO_EXECUTE, {"key": "b", "effect": "NoExecute"})
    lab.pass_time(59)
    lab.settle()
    assert lab.names("pods") == ["later"], "upstream keeps the time of the first look"
    lab.pass_time(60)
    lab.settle()
    assert lab.names("pods") == []


def test_toleration_that_is_added_cancels_eviction(lab):
    lab.node("node-1")
    bare_pod(lab, "later", "node-1", tolerations=[{**TOLERATED, "tolerationSeconds": 60}])
    lab.settle()
    taint(lab, NO_EXECUTE)
    lab.change(
        "pods",
        "later",
        lambda obj: obj["spec"]["tolerations"].append({"operator": "Exists"}),
        namespace="default",
    )
    assert lab.settle().due != [], "the first toleration that fits a taint counts"
    taint(lab)
    assert [one for one in lab.settle().due if one.reconciler == "taint-eviction-controller"] == []


def test_pod_that_comes_to_tainted_node_by_its_manifest_leaves_again(lab):
    lab.node("node-1", taints=[NO_EXECUTE])
    lab.settle()
    bare_pod(lab, "late", "node-1", tolerations=[{**TOLERATED, "tolerationSeconds": 60}])
    lab.settle()
    lab.pass_time(60)
    lab.settle()
    assert lab.names("pods") == []


def test_deletion_of_its_node_does_not_save_pod(lab):
    lab.node("node-1")
    bare_pod(lab, "later", "node-1", tolerations=[{**TOLERATED, "tolerationSeconds": 20}])
    lab.settle()
    taint(lab, NO_EXECUTE)
    lab.client.delete("nodes", "node-1")
    lab.settle()
    lab.pass_time(20)
    lab.settle()
    found = lab.client.get("pods", "later", namespace="default")
    assert found["metadata"].get("deletionTimestamp"), "no kubelet is there to finish it"
