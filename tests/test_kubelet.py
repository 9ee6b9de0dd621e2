"""The life of pods and nodes as the simulated kubelet plays it: golden statuses, and what is due when.

``UPDATE_GOLDEN=1 pytest tests/test_kubelet.py`` writes the files in ``tests/golden/kubelet`` anew.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubepy import kubelet
from kubepy.cluster.client import MERGE_PATCH
from kubepy.cluster.cluster import Cluster
from kubepy.cluster.objects.nodes import is_node_ready
from kubepy.cluster.reconcile import Context, Informers, Key
from kubepy.controllers.manager import Manager

GOLDEN = Path(__file__).parent / "golden" / "kubelet"
NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)
BOUND = {"lastProbeTime": None, "lastTransitionTime": "2026-11-20T11:59:59Z", "status": "True", "type": "PodScheduled"}

Object = dict[str, Any]


def check_golden(name: str, found: Object) -> None:
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(found))
    assert found == yaml.safe_load(path.read_text())


def new_pod(outcome: str | None = None, **spec: Any) -> Object:
    annotations = {"kubepy.dev/outcome": outcome} if outcome else {}
    meta = {"name": "web", "namespace": "shop", "uid": "0f1e", "generation": 1, "annotations": annotations}
    containers = [{"name": "c", "image": "c:1"}, {"name": "d", "image": "d:1"}]
    status = {"phase": "Pending", "qosClass": "BestEffort", "conditions": [BOUND]}
    return {"metadata": meta, "spec": {"containers": containers, "nodeName": "node-1", **spec}, "status": status}


def new_node(**annotations: str) -> Object:
    return {"metadata": {"name": "node-1", "annotations": annotations}, "spec": {}}


def played(pod: Object, node: Object | None = None) -> Object:
    """The pod after its kubelet has done what is due, and nothing more is."""
    node = node or new_node()
    step = kubelet.next_step(pod, node)
    assert isinstance(step, kubelet.Start)
    after = {**pod, "status": kubelet.pod_status(pod, step.outcome, "192.168.0.1", "10.244.0.1", NOW)}
    assert kubelet.next_step(after, node) is None
    return after


@pytest.mark.parametrize("outcome", list(kubelet.OUTCOMES))
def test_the_status_of_each_outcome(outcome: str) -> None:
    check_golden(outcome, played(new_pod(outcome))["status"])


@pytest.mark.parametrize("outcome", ["ready", "not-ready", "succeeded"])
def test_init_containers_are_done_and_sidecars_run_as_long_as_the_pod(outcome: str) -> None:
    init = [{"name": "prepare", "image": "p:1"}, {"name": "mesh", "image": "m:1", "restartPolicy": "Always"}]
    check_golden(f"init-containers-{outcome}", played(new_pod(outcome, initContainers=init))["status"])


def test_a_pod_that_its_manifest_bound_is_reported_as_scheduled() -> None:
    pod = new_pod()
    del pod["status"]["conditions"]
    types = [condition["type"] for condition in played(pod)["status"]["conditions"]]
    assert types == ["Initialized", "Ready", "ContainersReady", "PodScheduled"]


def test_a_pending_pod_is_never_touched() -> None:
    assert kubelet.next_step(new_pod("pending"), new_node()) is None
    assert kubelet.next_step(new_pod(), new_node(**{"kubepy.dev/pod-outcome": "pending"})) is None


def test_a_node_decides_for_pods_that_name_no_outcome() -> None:
    node = new_node(**{"kubepy.dev/pod-outcome": "not-ready"})
    assert kubelet.next_step(new_pod(), node) == kubelet.Start(kubelet.OUTCOMES["not-ready"])
    assert kubelet.next_step(new_pod("ready"), node) == kubelet.Start(kubelet.OUTCOMES["ready"])


def test_nobody_looks_after_pods_of_a_node_that_is_not_there() -> None:
    pod = new_pod()
    assert kubelet.next_step(pod, None) is None
    pod["metadata"]["deletionTimestamp"] = "2026-11-20T12:00:00Z"
    assert kubelet.next_step(pod, None) is None


def test_another_outcome_takes_effect_on_a_live_pod_and_keeps_what_did_not_change() -> None:
    before = played(new_pod("crash-loop"))
    before["metadata"]["annotations"] = {"kubepy.dev/outcome": "ready"}
    before["status"]["startTime"] = "2026-11-20T11:00:00Z"
    for condition in before["status"]["conditions"]:
        condition["lastTransitionTime"] = "2026-11-20T11:00:00Z"
    status = played(before)["status"]
    times = {one["type"]: (one["status"], one["lastTransitionTime"][11:13]) for one in status["conditions"]}
    assert times == {
        "Initialized": ("True", "11"), "Ready": ("True", "12"), "ContainersReady": ("True", "12"),
        "PodScheduled": ("True", "11"),
    }  # fmt: skip
    assert status["startTime"] == "2026-11-20T11:00:00Z"
    assert [one["restartCount"] for one in status["containerStatuses"]] == [3, 3]


@pytest.mark.parametrize("change", [
    {"phase": "Failed", "reason": "Evicted"},
    {"phase": "Succeeded"},
    {"phase": "Pending"},
    {"conditions": [{"type": "Ready", "status": "False"}]},
], ids=str)  # fmt: skip
def test_a_status_set_by_hand_is_left_alone(change: Object) -> None:
    pod = played(new_pod())
    pod["status"] |= change
    assert kubelet.next_step(pod, new_node()) is None


def test_a_deleted_pod_goes_at_once_unless_it_is_stuck_or_only_finalizers_hold_it() -> None:
    pod = new_pod()
    pod["metadata"] |= {"deletionTimestamp": "2026-11-20T12:00:00Z", "deletionGracePeriodSeconds": 30}
    assert kubelet.next_step(pod, new_node()) == kubelet.Remove()
    stuck = copy.deepcopy(pod)
    stuck["metadata"]["annotations"]["kubepy.dev/termination"] = "stuck"
    assert kubelet.next_step(stuck, new_node()) is None
    pod["metadata"]["deletionGracePeriodSeconds"] = 0
    assert kubelet.next_step(pod, new_node()) is None


def test_readiness_gates_hold_back_the_ready_condition() -> None:
    pod = played(new_pod(readinessGates=[{"conditionType": "example.org/lb"}]))
    ready = next(one for one in pod["status"]["conditions"] if one["type"] == "Ready")
    assert (ready["status"], ready["reason"], ready["message"]) == (
        "False", "ReadinessGatesNotReady",
        'corresponding condition of pod readiness gate "example.org/lb" does not exist.',
    )  # fmt: skip
    pod["status"]["conditions"].append({"type": "example.org/lb", "status": "True"})
    assert kubelet.next_step(pod, new_node()) == kubelet.Regate()
    pod["status"] = kubelet.pod_status(pod, kubelet.RUNNING, "192.168.0.1", "10.244.0.1", NOW)
    assert kubelet.next_step(pod, new_node()) is None


def test_a_node_that_reports_nothing_becomes_ready() -> None:
    check_golden("node", kubelet.register(new_node(), NOW))


def test_a_node_keeps_what_its_manifest_says() -> None:
    node = new_node()
    pressure = {"type": "MemoryPressure", "status": "True", "lastTransitionTime": "2026-11-20T11:00:00Z"}
    network = {"type": "NetworkUnavailable", "status": "False"}
    node["status"] = {"capacity": {"cpu": "2"}, "nodeInfo": {"osImage": "mine"}, "conditions": [network, pressure]}
    status = kubelet.register(node, NOW)["status"]
    assert status["capacity"] == status["allocatable"] == {"cpu": "2"}
    assert (status["nodeInfo"]["osImage"], status["nodeInfo"]["kernelVersion"]) == ("mine", "0")
    assert [(one["type"], one["status"]) for one in status["conditions"]] == [
        ("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False"), ("Ready", "True"),
        ("NetworkUnavailable", "False"),
    ]  # fmt: skip
    assert "status" not in new_node()


def test_a_ready_node_and_one_annotated_not_ready_are_left_as_they_are() -> None:
    ready = kubelet.register(new_node(), NOW)
    assert kubelet.register(ready, NOW) is ready
    silent = new_node(**{"kubepy.dev/outcome": "not-ready"})
    assert kubelet.register(silent, NOW) is silent


def test_pod_addresses_are_distinct_and_come_free_again() -> None:
    addresses = kubelet.PodAddresses()
    keys = [Key("pods", "default", f"p{number}") for number in range(300)]
    given = []
    for key in keys:
        given.append(addresses.next())
        addresses.observe(key, {"status": {"podIP": given[-1]}})
    assert given[:2] + given[-1:] == ["10.244.0.1", "10.244.0.2", "10.244.1.44"]
    assert len(set(given)) == 300
    addresses.observe(keys[0], None)
    restarted = kubelet.PodAddresses()
    for key, address in zip(keys[1:], given[1:], strict=True):
        restarted.observe(key, {"status": {"podIP": address}})
    assert [restarted.next(), restarted.next()] == ["10.244.0.1", "10.244.1.45"]


# --- in a cluster -------------------------------------------------------------------------------------------------


class Run:
    """A cluster in a folder, and the kubelets of its nodes."""

    def __init__(self, folder: Path) -> None:
        self.cluster = Cluster.open(folder, create=True)
        self.client = self.cluster.client
        informers = Informers()
        context = Context(self.client, informers, self.cluster.clock)
        own, resources = [kubelet.Kubelet(context)], self.cluster.store.resources
        self.manager = Manager(self.client, informers, self.cluster.clock, own, resources=resources)

    def settle(self) -> None:
        assert self.manager.run_until_settled().failures == []

    def node(self, name: str, **annotations: str) -> None:
        meta = {"name": name, "annotations": annotations}
        self.client.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta})

    def pod(self, name: str, node: str, **annotations: str) -> None:
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "c:1"}]}
        meta = {"name": name, "namespace": "default", "annotations": annotations}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        self.client.create("pods", pod, namespace="default")

    def phases(self) -> dict[str, str]:
        return {one["metadata"]["name"]: one["status"]["phase"] for one in self.client.list("pods").items}

    def annotate(self, resource: str, name: str, key: str, value: str | None, namespace: str = "") -> None:
        patch = {"metadata": {"annotations": {key: value}}}
        self.client.patch(resource, name, patch, MERGE_PATCH, namespace=namespace)

    def close(self) -> None:
        assert self.cluster.store.check() == []
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


def test_a_pod_on_a_node_that_is_not_there_waits_for_it(run: Run) -> None:
    run.pod("p", "later")
    run.settle()
    assert run.phases() == {"p": "Pending"}
    run.node("later")
    run.settle()
    assert run.phases() == {"p": "Running"}


def test_annotations_of_pods_and_nodes_take_effect_when_they_change(run: Run) -> None:
    run.node("a", **{"kubepy.dev/outcome": "not-ready", "kubepy.dev/pod-outcome": "image-pull-backoff"})
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


def test_a_stuck_pod_goes_once_it_is_no_longer_stuck(run: Run) -> None:
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


def test_an_outcome_that_there_is_not_is_said_once(run: Run) -> None:
    run.node("a")
    run.pod("p", "a", **{"kubepy.dev/outcome": "perfect"})
    run.settle()
    run.annotate("pods", "p", "note", "x", "default")
    run.settle()
    assert run.phases() == {"p": "Pending"}
    assert [(one["reason"], one["message"], one["count"]) for one in run.client.list("events").items] == [(
        "UnknownOutcome",
        'Outcome "perfect" is not known: it must be one of ready, not-ready, crash-loop, image-pull-backoff, failed, '
        "succeeded, pending",
        1,
    )]  # fmt: skip
