"""Garbage collection of pods that no kubelet will finish, and of ended pods when there are too
many."""

from __future__ import annotations

import pytest

from kubepy.api.meta import Object
from kubepy.controllers import podgc
from kubepy.controllers.podgc import surplus
from tests.controllers.conftest import Lab

STUCK = {"kubepy.dev/termination": "stuck"}


def set_ready(lab: Lab, node: str, status: str) -> None:
    """Write a node's Ready condition by hand; the annotation keeps its simulated kubelet from
    overwriting it."""
    lab.change(
        "nodes",
        node,
        lambda obj: obj["metadata"].update(annotations={"kubepy.dev/outcome": "not-ready"}),
    )
    lab.change(
        "nodes",
        node,
        lambda obj: obj["status"].update(conditions=[{"type": "Ready", "status": status}]),
        subresource="status",
    )


def bare_pod(
    lab: Lab, name: str, node: str = "", annotations: Object | None = None, **more: object
) -> Object:
    spec = {
        "containers": [{"name": "c", "image": "i:1"}],
        **({"nodeName": node} if node else {}),
        **more,
    }
    meta = {"name": name, "annotations": annotations or {}}
    return lab.create(
        "pods", {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}, "default"
    )


def test_pods_of_node_that_is_gone_are_removed_after_forty_seconds(lab):
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


def test_node_that_comes_back_in_time_keeps_its_pods(lab):
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


def test_node_whose_file_cannot_be_read_keeps_its_pods(lab):
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


def test_terminating_pod_on_node_that_is_out_of_service_is_removed(lab):
    lab.node("node-1")
    bare_pod(lab, "stuck", "node-1", STUCK, tolerations=[{"operator": "Exists"}])
    lab.settle()
    lab.client.delete("pods", "stuck", namespace="default")
    lab.settle()
    assert lab.names("pods") == ["stuck"]
    set_ready(lab, "node-1", "False")
    lab.change(
        "nodes",
        "node-1",
        lambda obj: obj["spec"].update(
            taints=[{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]
        ),
    )
    lab.settle()
    assert lab.names("pods") == []


def test_out_of_service_means_nothing_while_node_is_ready(lab):
    lab.node("node-1", taints=[{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}])
    bare_pod(lab, "stuck", "node-1", STUCK, tolerations=[{"operator": "Exists"}])
    lab.settle()
    lab.client.delete("pods", "stuck", namespace="default")
    lab.settle()
    assert lab.names("pods") == ["stuck"]


def test_orphaned_pod_with_finalizer_has_disruption_condition(lab):
    lab.node("node-1")
    bare_pod(lab, "left", "node-1")
    lab.change(
        "pods",
        "left",
        lambda obj: obj["metadata"].update(finalizers=["example.org/keep"]),
        "default",
    )
    lab.settle()
    lab.client.delete("nodes", "node-1")
    lab.settle()
    lab.pass_time(40)
    lab.settle()
    pod = lab.client.get("pods", "left", namespace="default")
    [condition] = [one for one in pod["status"]["conditions"] if one["type"] == "DisruptionTarget"]
    assert (pod["status"]["phase"], condition) == (
        "Failed",
        {
            "lastProbeTime": None,
            "lastTransitionTime": "2026-11-20T10:00:40Z",
            "observedGeneration": 1,
            "message": "PodGC: node no longer exists",
            "reason": "DeletionByPodGC",
            "status": "True",
            "type": "DisruptionTarget",
        },
    )
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 0


def test_terminating_pod_that_was_never_scheduled_is_marked_as_failed(lab):
    bare_pod(lab, "waiting")
    lab.change(
        "pods",
        "waiting",
        lambda obj: obj["metadata"].update(finalizers=["example.org/keep"]),
        "default",
    )
    lab.settle()
    lab.client.delete("pods", "waiting", namespace="default")
    lab.settle()
    assert lab.client.get("pods", "waiting", namespace="default")["status"]["phase"] == "Failed"


def test_terminated_pods_beyond_threshold_oldest_are_deleted(lab, monkeypatch):
    monkeypatch.setattr(podgc, "TERMINATED_POD_THRESHOLD", 2)
    lab.node("node-1")
    for second, name in enumerate(("d", "c", "b", "a")):
        lab.pass_time(second)
        bare_pod(lab, name, "node-1", {"kubepy.dev/outcome": "succeeded"}, restartPolicy="Never")
        bare_pod(lab, f"running-{name}", "node-1")
    lab.settle()
    assert lab.names("pods") == ["a", "b", *(f"running-{name}" for name in "abcd")]


@pytest.mark.parametrize(("kept", "expected"), [(4, []), (3, ["evicted"]), (2, ["evicted", "b"]),
                                                (1, ["evicted", "b", "c"])])  # fmt: skip
def test_pods_that_kubelet_evicted_go_before_oldest(kept, expected):
    def pod(name: str, time: str, **status: str) -> Object:
        return {
            "metadata": {"name": name, "creationTimestamp": f"2026-11-20T10:00:{time}Z"},
            "status": status,
        }

    pods = [
        pod("a", "03", phase="Succeeded"),
        pod("c", "01", phase="Failed"),
        pod("b", "01", phase="Failed"),
        pod("evicted", "09", phase="Failed", reason="Evicted"),
    ]
    assert [one["metadata"]["name"] for one in surplus(pods, kept)] == expected
