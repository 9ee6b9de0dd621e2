"""The kubelets in a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kubepy.api.objects.nodes import is_node_ready
from kubepy.apiserver.request import MERGE_PATCH, Patch
from kubepy.controlplane.manager import ListWatch, Manager
from kubepy.controlplane.open import open_cluster
from kubepy.kubelet.controller import Kubelet
from kubepy.runtime.pacing import Pacing
from kubepy.runtime.reconcile import Context, Informers
from kubepy.storage.view import RecordedView
from tests.stores import disagreements

Object = dict[str, Any]


class Run:
    """A cluster in a folder, and the kubelets of its nodes."""

    def __init__(self, folder: Path) -> None:
        self.cluster = open_cluster(folder, create=True)
        self.client = self.cluster.client
        informers = Informers()
        context = Context(self.client, informers, self.cluster.clock, Pacing())
        own = [Kubelet(context)]
        source = ListWatch(RecordedView(self.cluster.store))
        self.manager = Manager(context, own, source=source)

    def settle(self) -> None:
        assert self.manager.run_until_settled().failures == []

    def node(self, name: str, **annotations: str) -> None:
        meta = {"name": name, "annotations": annotations}
        self.client.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta})

    def pod(self, name: str, node: str, spec: Object | None = None, **annotations: str) -> None:
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "c:1"}], **(spec or {})}
        meta = {"name": name, "namespace": "default", "annotations": annotations}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        self.client.create("pods", pod, namespace="default")

    def phases(self) -> dict[str, str]:
        return {
            one["metadata"]["name"]: one["status"]["phase"]
            for one in self.client.list("pods").items
        }

    def annotate(
        self, resource: str, name: str, key: str, value: str | None, namespace: str = ""
    ) -> None:
        patch = {"metadata": {"annotations": {key: value}}}
        self.client.patch(resource, name, Patch(MERGE_PATCH, patch), namespace=namespace)

    def close(self) -> None:
        assert disagreements(self.cluster.store) == []
        self.cluster.close()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    made = Run(tmp_path / "state")
    yield made
    made.close()


def test_nodes_become_ready_and_their_pods_run_each_with_its_own_address(run: Run) -> None:
    run.node("a")
    run.pod("p", "a")
    run.pod("q", "a")
    run.settle()
    assert is_node_ready(run.client.get("nodes", "a"))
    assert run.phases() == {"p": "Running", "q": "Running"}
    addresses = [one["status"]["podIP"] for one in run.client.list("pods").items]
    assert sorted(addresses) == ["10.244.0.1", "10.244.0.2"]


def test_pod_on_node_that_is_not_there_waits_for_it(run: Run) -> None:
    run.pod("p", "later")
    run.settle()
    assert run.phases() == {"p": "Pending"}
    run.node("later")
    run.settle()
    assert run.phases() == {"p": "Running"}


def test_annotations_of_pods_and_nodes_take_effect_when_they_change(run: Run) -> None:
    run.node(
        "a", **{"kubepy.dev/outcome": "not-ready", "kubepy.dev/pod-outcome": "image-pull-backoff"}
    )
    run.pod("p", "a")
    run.pod("q", "a", **{"kubepy.dev/outcome": "ready"})
    run.settle()
    assert run.phases() == {"p": "Pending", "q": "Running"}
    assert not is_node_ready(run.client.get("nodes", "a"))
    run.annotate("nodes", "a", "kubepy.dev/outcome", None)
    run.annotate("nodes", "a", "kubepy.dev/pod-outcome", None)
    run.annotate("pods", "q", "kubepy.dev/outcome", "failed", "default")
    run.settle()
    assert is_node_ready(run.client.get("nodes", "a"))
    assert run.phases() == {"p": "Running", "q": "Failed"}


def test_stuck_pod_goes_once_it_is_no_longer_stuck(run: Run) -> None:
    run.node("a")
    run.pod("p", "a", **{"kubepy.dev/termination": "stuck"})
    run.pod("q", "a")
    run.settle()
    for name in ("p", "q"):
        run.client.delete("pods", name, namespace="default")
    run.settle()
    assert run.phases() == {"p": "Running"}
    run.annotate("pods", "p", "kubepy.dev/termination", None, "default")
    run.settle()
    assert run.phases() == {}


def test_outcome_that_there_is_not_is_said_once(run: Run) -> None:
    run.node("a")
    run.pod("p", "a", **{"kubepy.dev/outcome": "perfect"})
    run.settle()
    run.annotate("pods", "p", "note", "x", "default")
    run.settle()
    assert run.phases() == {"p": "Pending"}
    assert [
        (one["reason"], one["message"], one["count"]) for one in run.client.list("events").items
    ] == [
        (
            "UnknownOutcome",
            'Outcome "perfect" is not known: it must be one of ready, not-ready, crash-loop, '
            "oom-killed, "
            "image-pull-backoff, init-crash-loop, init-failed, failed, succeeded, pending",
            1,
        )
    ]


def asking(cpu: str) -> Object:
    return {"containers": [{"name": "c", "image": "c:1", "resources": {"requests": {"cpu": cpu}}}]}


def test_pods_that_name_node_are_taken_in_their_order_while_there_is_room(run: Run) -> None:
    run.node("a")
    for name in ("first", "second", "third"):
        run.pod(name, "a", asking("1500m"))
    run.settle()
    assert run.phases() == {"first": "Running", "second": "Running", "third": "Failed"}
    status = run.client.get("pods", "third", namespace="default")["status"]
    why = "Node didn't have enough resource: cpu, requested: 1500, used: 3000, capacity: 4000"
    assert (status["reason"], status["message"]) == ("OutOfcpu", f"Pod was rejected: {why}")
    assert [
        (one["reason"], one["message"], one["source"]) for one in run.client.list("events").items
    ] == [("OutOfcpu", why, {"component": "kubelet", "host": "a"})]


def test_pods_that_wait_or_have_ended_take_no_room(run: Run) -> None:
    run.node("a")
    run.pod("silent", "a", asking("3"), **{"kubepy.dev/outcome": "pending"})
    run.pod("done", "a", asking("3"), **{"kubepy.dev/outcome": "succeeded"})
    run.settle()
    run.pod("new", "a", asking("3"))
    run.settle()
    assert run.phases() == {"done": "Succeeded", "new": "Running", "silent": "Pending"}


def test_less_capacity_does_not_drive_out_what_runs(run: Run) -> None:
    run.node("a")
    run.pod("there", "a", asking("3"))
    run.settle()
    run.client.patch(
        "nodes",
        "a",
        Patch(MERGE_PATCH, {"status": {"allocatable": {"cpu": "2"}}}),
        subresource="status",
    )
    run.pod("new", "a", asking("1"))
    run.settle()
    assert run.phases() == {"new": "Failed", "there": "Running"}


def test_pod_fails_when_its_deadline_passes(run: Run) -> None:
    run.node("a")
    run.pod("p", "a", {"activeDeadlineSeconds": 5, "restartPolicy": "Never"})
    run.settle()
    assert run.phases() == {"p": "Running"}
    run.cluster.clock.own = run.cluster.clock.now() + timedelta(seconds=6)
    run.settle()
    status = run.client.get("pods", "p", namespace="default")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    told = [
        (event["type"], event["message"])
        for event in run.client.list("events").items
        if event["reason"] == "DeadlineExceeded"
    ]
    assert told == [("Normal", "Pod was active on the node longer than the specified deadline")]


def test_present_spec_is_acknowledged(run: Run) -> None:
    run.node("a")
    run.pod("p", "a")
    run.settle()
    tolerations = [{"operator": "Exists"}]
    run.client.patch("pods", "p", Patch(MERGE_PATCH, {"spec": {"tolerations": [
        *run.client.get("pods", "p", namespace="default")["spec"]["tolerations"], *tolerations]}}),
                     namespace="default")  # fmt: skip
    run.settle()
    found = run.client.get("pods", "p", namespace="default")
    assert (found["metadata"]["generation"], found["status"]["observedGeneration"]) == (2, 2)
