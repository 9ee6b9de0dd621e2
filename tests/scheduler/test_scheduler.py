"""The scheduler in a cluster: bindings, events, and the changes that wake waiting pods."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubepy.apiserver.request import MERGE_PATCH, DeleteOptions, Patch
from kubepy.controlplane.manager import CheckpointStore, ListWatch, Manager
from kubepy.controlplane.open import make_cluster, open_cluster
from kubepy.kubelet.controller import Kubelet
from kubepy.runtime.pacing import Pacing
from kubepy.runtime.reconcile import Context, Informers
from kubepy.scheduler import Scheduler
from kubepy.storage.view import RecordedView
from tests.stores import disagreements

from .objects import node, pod

NO_VICTIMS = "1 No preemption victims found for incoming pod"


class Run:
    """A cluster in a folder, its scheduler and its kubelets; ``restart`` is another process on the
    same folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_cluster(folder, {"clock": "2026-11-20T12:00:00Z"}).close()
        self.restart()

    def restart(self) -> None:
        self.cluster = open_cluster(self.folder)
        self.client = self.cluster.client
        store, informers = self.cluster.store, Informers()
        context = Context(self.client, informers, self.cluster.clock, Pacing())
        kept = CheckpointStore(
            lambda: store.meta("checkpoint"), lambda text: store.set_values({"checkpoint": text})
        )
        self.manager = Manager(
            context,
            [Kubelet(context), Scheduler(context)],
            source=ListWatch(RecordedView(store)),
            checkpoints=kept,
        )

    def settle(self) -> None:
        assert self.manager.run_until_settled().failures == []

    def add_node(self, name: str, **rest: Any) -> None:
        made = node(name, **rest)
        status = {"capacity": made["status"]["allocatable"]}
        meta = {"name": name, "labels": made["metadata"]["labels"]}
        self.client.create(
            "nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}
        )
        self.change_node(name, {"spec": made["spec"] | {"taints": made["spec"].get("taints")}})

    def change_node(self, name: str, patch: dict[str, Any]) -> None:
        self.client.patch("nodes", name, Patch(MERGE_PATCH, patch))

    def add_pod(self, name: str, **rest: Any) -> None:
        made = pod(name, **rest)
        meta = {key: made["metadata"][key] for key in ("name", "namespace", "labels")}
        obj = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": made["spec"]}
        self.client.create("pods", obj, namespace="default")

    def get(self, name: str) -> dict[str, Any]:
        return self.client.get("pods", name, namespace="default")

    def placed(self) -> dict[str, str]:
        return {
            one["metadata"]["name"]: one["spec"].get("nodeName", "")
            for one in self.client.list("pods").items
        }

    def why(self, name: str) -> str:
        conditions = self.get(name)["status"]["conditions"]
        found: str = next(one for one in conditions if one["type"] == "PodScheduled").get(
            "message", ""
        )
        return found

    def delete(self, name: str) -> None:
        self.client.delete("pods", name, namespace="default")

    def events(self, reason: str) -> list[str]:
        return [
            one["message"] for one in self.client.list("events").items if one["reason"] == reason
        ]

    def tries(self) -> list[Any]:
        """Return the messages of all failed attempts."""
        return [
            (one["involvedObject"], one["message"], one.get("series"))
            for one in self.client.list("events").items
            if one["reason"] == "FailedScheduling"
        ]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    made = Run(tmp_path / "state")
    yield made
    assert disagreements(made.cluster.store) == []
    made.cluster.close()


def test_pod_is_bound_and_event_says_where(run: Run) -> None:
    run.add_node("a")
    run.add_pod("p")
    run.settle()
    assert run.placed() == {"p": "a"}
    assert run.events("Scheduled") == ["Successfully assigned default/p to a"]
    condition = next(
        one for one in run.get("p")["status"]["conditions"] if one["type"] == "PodScheduled"
    )
    assert (condition["status"], condition.get("reason"), condition.get("message")) == (
        "True",
        None,
        None,
    )


def test_pod_without_nodes_waits_until_one_fits(run: Run) -> None:
    run.add_pod("p")
    run.settle()
    assert run.why("p") == "no nodes available to schedule pods"
    assert run.events("FailedScheduling") == ["no nodes available to schedule pods"]
    run.add_node("a", unschedulable=True)
    run.settle()
    assert run.why("p").startswith("0/1 nodes are available: 1 node(s) were unschedulable.")
    run.change_node("a", {"spec": {"unschedulable": None}})
    run.settle()
    assert run.placed() == {"p": "a"}


def test_pods_are_placed_by_priority_then_age(run: Run) -> None:
    for value, name in ((10, "gold"), (1, "bronze")):
        run.client.create(
            "priorityclasses.scheduling.k8s.io",
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            },
        )
    run.add_node("a", pods="2")
    for name, class_name in (("c", "bronze"), ("b", "bronze"), ("a", "bronze"), ("z", "gold")):
        run.add_pod(name, priorityClassName=class_name, preemptionPolicy=None)
    run.settle()
    assert {name for name, where in run.placed().items() if where} == {"z", "c"}


def test_pods_of_other_schedulers_and_gated_pods_are_left_alone(run: Run) -> None:
    run.add_node("a")
    run.add_pod("other", schedulerName="mine")
    run.add_pod("gated", schedulingGates=[{"name": "example.org/wait"}])
    run.settle()
    assert run.placed() == {"gated": "", "other": ""}
    run.client.patch(
        "pods", "gated", Patch(MERGE_PATCH, {"spec": {"schedulingGates": []}}), namespace="default"
    )
    run.settle()
    assert run.placed() == {"gated": "a", "other": ""}


def test_room_that_comes_free_is_given_to_pod_that_waits(run: Run) -> None:
    run.add_node("a", cpu="1")
    run.add_pod("first", requests={"cpu": "1"})
    run.settle()
    run.add_pod("second", requests={"cpu": "1"})
    run.settle()
    assert run.why("second") == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        f"preemption: 0/1 nodes are available: {NO_VICTIMS}."
    )
    run.delete("first")
    run.settle()
    assert run.placed() == {"second": "a"}


def test_second_process_knows_events_of_waiting_pods(run: Run) -> None:
    run.add_node("a", cpu="1")
    run.add_pod("first", requests={"cpu": "1"})
    run.settle()
    run.add_pod("second", requests={"cpu": "1"})
    run.settle()
    run.restart()
    run.delete("first")
    run.settle()
    assert run.placed() == {"second": "a"}
    assert len(run.events("FailedScheduling")) == 1


def test_unrelated_change_wakes_no_pod(run: Run) -> None:
    run.add_node("a")
    run.add_pod("p", nodeSelector={"zone": "b"})
    run.settle()
    tries = run.tries()
    run.add_node("c", labels={"zone": "c"})
    run.change_node("a", {"metadata": {"annotations": {"note": "x"}}})
    run.add_pod("other")
    run.settle()
    assert run.tries() == tries
    assert run.why("p").startswith("0/1 nodes are available"), "no try, no news"
    run.change_node("c", {"metadata": {"labels": {"zone": "b"}}})
    run.settle()
    assert run.placed()["p"] == "c"


def test_pod_of_high_priority_takes_place_of_lower_one(run: Run) -> None:
    run.client.create(
        "priorityclasses.scheduling.k8s.io",
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "gold"},
            "value": 1000,
        },
    )
    run.add_node("a", cpu="1")
    run.add_pod("low", requests={"cpu": "1"})
    run.settle()
    run.add_pod("urgent", requests={"cpu": "1"}, priorityClassName="gold")
    run.settle()
    assert run.placed() == {"urgent": "a"}
    assert "nominatedNodeName" not in run.get("urgent")["status"]
    assert run.events("Preempted") == [
        f"Preempted by pod {run.get('urgent')['metadata']['uid']} on node a"
    ]
    assert run.events("FailedScheduling") == ["0/1 nodes are available: 1 Insufficient cpu."]


def test_pod_waits_on_its_promised_node_while_victim_will_not_go(run: Run) -> None:
    run.client.create(
        "priorityclasses.scheduling.k8s.io",
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "gold"},
            "value": 1000,
        },
    )
    run.add_node("a", cpu="1")
    run.add_pod("low", requests={"cpu": "1"})
    run.client.patch(
        "pods",
        "low",
        Patch(MERGE_PATCH, {"metadata": {"annotations": {"kubepy.dev/termination": "stuck"}}}),
        namespace="default",
    )
    run.settle()
    run.add_pod("urgent", requests={"cpu": "1"}, priorityClassName="gold")
    run.settle()
    assert run.placed() == {"low": "a", "urgent": ""}
    assert run.get("urgent")["status"]["nominatedNodeName"] == "a"
    leaving = run.get("low")
    assert "deletionTimestamp" in leaving["metadata"]
    target = next(
        one for one in leaving["status"]["conditions"] if one["type"] == "DisruptionTarget"
    )
    assert (target["reason"], target["message"]) == (
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    )
    run.add_pod("next", requests={"cpu": "1"})
    run.client.patch(
        "pods", "low", Patch(MERGE_PATCH, {"metadata": {"annotations": None}}), namespace="default"
    )
    run.settle()
    assert run.placed() == {"next": "", "urgent": "a"}


def test_claim_that_waits_for_its_pod_is_asked_for_on_node_that_was_chosen(run: Run) -> None:
    run.add_node("a")
    run.client.create("storageclasses.storage.k8s.io", {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"},
        "provisioner": "example.org/disks", "volumeBindingMode": "WaitForFirstConsumer",
    })  # fmt: skip
    run.client.create(
        "persistentvolumeclaims",
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "late",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
        namespace="default",
    )
    run.add_pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    run.settle()
    claim = run.client.get("persistentvolumeclaims", "data", namespace="default")
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "a"
    assert run.placed() == {"p": ""}


ANTI_AFFINITY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}}]}}  # fmt: skip


def test_unobserved_pod_change_wakes_waiting_pod(run: Run) -> None:
    run.add_node("a", labels={"host": "a"})
    run.add_pod("first", labels={"app": "web"})
    run.settle()
    run.add_pod("second", affinity=ANTI_AFFINITY)
    run.settle()
    assert run.placed()["second"] == ""
    run.restart()
    run.client.patch(
        "pods",
        "first",
        Patch(MERGE_PATCH, {"metadata": {"labels": {"app": "other"}}}),
        namespace="default",
    )
    run.settle()
    assert run.placed()["second"] == "a"


def test_pod_that_ended_while_nobody_looked_leaves_its_room(run: Run) -> None:
    run.add_node("a", cpu="1")
    run.add_pod("first", requests={"cpu": "1"})
    run.settle()
    run.add_pod("second", requests={"cpu": "1"})
    run.settle()
    run.restart()
    run.client.patch(
        "pods",
        "first",
        Patch(MERGE_PATCH, {"status": {"phase": "Succeeded"}}),
        namespace="default",
        subresource="status",
    )
    run.settle()
    assert run.placed()["second"] == "a"


def test_pod_made_anew_while_nobody_looked_leaves_its_room(run: Run) -> None:
    run.add_node("a", cpu="1")
    run.add_pod("first", requests={"cpu": "1"})
    run.settle()
    run.add_pod("second", requests={"cpu": "1"})
    run.settle()
    run.restart()
    run.client.delete(
        "pods", "first", namespace="default", options=DeleteOptions(grace_period_seconds=0)
    )
    run.add_pod("first")
    run.settle()
    assert run.placed() == {"first": "a", "second": "a"}


def test_namespace_that_becomes_one_that_is_meant_lets_pod_follow(run: Run) -> None:
    run.client.create("namespaces", {"metadata": {"name": "shop"}})
    run.add_node("a", labels={"host": "a"})
    made = pod("first", labels={"app": "web"})
    meta = {"name": "first", "labels": {"app": "web"}}
    run.client.create("pods", {"metadata": meta, "spec": made["spec"]}, namespace="shop")
    term = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}},
            "namespaceSelector": {"matchLabels": {"team": "x"}}}  # fmt: skip
    run.add_pod(
        "follower",
        affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    run.settle()
    assert run.placed()["follower"] == ""
    run.client.patch(
        "namespaces", "shop", Patch(MERGE_PATCH, {"metadata": {"labels": {"team": "x"}}})
    )
    run.settle()
    assert run.placed()["follower"] == "a"


@pytest.mark.parametrize("gone", ["red", "blue"])
def test_any_term_that_holds_no_more_is_reason_to_try_again(run: Run, gone: str) -> None:
    terms = [
        {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": color}}}
        for color in ("red", "blue")
    ]
    run.add_node("a", labels={"host": "a"})
    run.add_pod("first", labels={"app": gone})
    run.settle()
    run.add_pod(
        "lonely",
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
    )
    run.settle()
    assert run.placed()["lonely"] == ""
    run.delete("first")
    run.settle()
    assert run.placed()["lonely"] == "a"


def test_daemons_pod_is_tried_again_when_its_zone_comes_free_elsewhere(run: Run) -> None:
    far = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        },
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
                ]
            }
        },
    }
    run.add_node("a", labels={"zone": "z"})
    run.add_pod("first", labels={"app": "web"})
    run.settle()
    run.add_node("b", labels={"zone": "z"})
    run.add_pod("daemon", affinity=far)
    run.settle()
    assert run.placed() == {"daemon": "", "first": "a"}
    run.delete("first")
    run.settle()
    assert run.placed() == {"daemon": "b"}


def test_pod_that_begins_to_go_no_longer_counts_for_spread(run: Run) -> None:
    spread = [{"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule",
               "labelSelector": {"matchLabels": {"app": "web"}}}]  # fmt: skip
    run.add_node("a", labels={"host": "a"})
    run.add_pod("first", labels={"app": "web"})
    run.settle()
    run.add_node("b", labels={"host": "b"}, unschedulable=True)
    run.add_pod("second", labels={"app": "web"}, topologySpreadConstraints=spread)
    run.settle()
    assert run.placed()["second"] == ""
    stuck = {"metadata": {"annotations": {"kubepy.dev/termination": "stuck"}}}
    run.client.patch("pods", "first", Patch(MERGE_PATCH, stuck), namespace="default")
    run.delete("first")
    run.settle()
    assert run.placed() == {"first": "a", "second": "a"}


def classes(run: Run, **values: int) -> None:
    for name, value in values.items():
        made = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
        }
        run.client.create("priorityclasses.scheduling.k8s.io", {**made, "value": value})


def promised(run: Run) -> dict[str, str]:
    return {one["metadata"]["name"]: node for one in run.client.list("pods").items
            if (node := one["status"].get("nominatedNodeName"))}  # fmt: skip


def hold_node(run: Run) -> None:
    """Fill node ``a`` with a pod that stays Terminating, while ``middling`` is nominated for its
    place."""
    classes(run, silver=500, gold=1000)
    run.add_node("a", cpu="1")
    run.add_pod("low", requests={"cpu": "1"})
    stuck = {"metadata": {"annotations": {"kubepy.dev/termination": "stuck"}}}
    run.client.patch("pods", "low", Patch(MERGE_PATCH, stuck), namespace="default")
    run.settle()
    run.add_pod("middling", requests={"cpu": "1"}, priorityClassName="silver")
    run.settle()
    assert promised(run) == {"middling": "a"}


def test_higher_priority_pod_takes_over_nomination(run: Run) -> None:
    hold_node(run)
    run.add_pod("urgent", requests={"cpu": "1"}, priorityClassName="gold")
    run.settle()
    assert promised(run) == {"urgent": "a"}


def test_promise_that_cannot_be_kept_is_taken_back(run: Run) -> None:
    hold_node(run)
    run.change_node("a", {"spec": {"unschedulable": True}})
    run.client.delete(
        "pods", "low", namespace="default", options=DeleteOptions(grace_period_seconds=0)
    )
    run.settle()
    assert promised(run) == {}
    assert run.why("middling").startswith("0/1 nodes are available: 1 node(s) were unschedulable.")


def test_pod_for_node_that_is_not_there_waits_for_that_node_alone(run: Run) -> None:
    only = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
                ]
            }
        }
    }
    run.add_node("a")
    run.add_pod("p", affinity=only)
    run.settle()
    assert run.why("p") == (
        "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity]. no new "
        "claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    tries = run.tries()
    run.add_node("c")
    run.add_pod("other")
    run.settle()
    assert run.tries() == tries
    run.add_node("b")
    run.settle()
    assert run.placed()["p"] == "b"
