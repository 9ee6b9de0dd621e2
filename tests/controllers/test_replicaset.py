"""ReplicaSets: order of deletion, adoption and release, bursts, failures."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubepy.api.clock import format_time, parse_time
from kubepy.api.errors import Forbidden
from kubepy.api.meta import Object, name_of, uid_of
from kubepy.controllers.ref_manager import claim_decision
from kubepy.controllers.replicaset import DELETION_COST, pods_to_delete
from tests.controllers.conftest import Lab

NOW = parse_time("2026-11-20T10:00:00Z")


def pod(
    name: str,
    *,
    node: str = "node-1",
    phase: str = "Running",
    ready: float | None = 100,
    restarts: int = 0,
    sidecar_restarts: int = 0,
    age: float | None = 100,
    cost: str | None = None,
    uid: str = "",
) -> Object:
    """Return a pod; ``ready`` and ``age`` are in seconds, None for a pod that is not ready or has
    no time."""
    condition = {"type": "Ready", "status": "True" if ready is not None else "False"}
    if ready is not None:
        condition["lastTransitionTime"] = ago(ready)
    return {
        "metadata": {
            "name": name,
            "uid": uid or f"uid-{name}",
            "resourceVersion": "1",
            "annotations": {DELETION_COST: cost} if cost is not None else {},
            **({"creationTimestamp": ago(age)} if age is not None else {}),
        },
        "spec": {
            "nodeName": node,
            "initContainers": [{"name": "sidecar", "restartPolicy": "Always"}],
        },
        "status": {
            "phase": phase,
            "conditions": [condition],
            "containerStatuses": [{"name": "c", "restartCount": restarts}],
            "initContainerStatuses": [{"name": "sidecar", "restartCount": sidecar_restarts}],
        },
    }


def ago(seconds: float) -> str:
    return format_time(NOW - timedelta(seconds=seconds))


def first_to_go(*pods: Object, related: tuple[Object, ...] = ()) -> str:
    for ordered in (pods, pods[::-1]):  # in either order
        [gone] = pods_to_delete(list(ordered), [*pods, *related], 1, NOW)
    return name_of(gone)


@pytest.mark.parametrize(
    ("goes", "stays"),
    [
        pytest.param(
            {"node": ""}, {"phase": "Pending", "ready": None}, id="unassigned before assigned"
        ),
        pytest.param(
            {"phase": "Pending"}, {"phase": "Unknown", "ready": None}, id="pending before unknown"
        ),
        pytest.param({"phase": "Unknown"}, {"ready": None}, id="unknown before running"),
        pytest.param(
            {"ready": None, "cost": "9"},
            {"cost": "-9"},
            id="not ready before ready, whatever they cost",
        ),
        pytest.param(
            {"cost": "-1", "ready": 1000}, {"ready": 1}, id="cheap before dear, whatever their age"
        ),
        pytest.param({"cost": "2"}, {"cost": "10"}, id="costs are numbers"),
        pytest.param({"cost": "soon"}, {"cost": "1"}, id="a cost that is none counts as 0"),
        pytest.param({"cost": "-1"}, {"cost": "+1"}, id="nor is one with a plus"),
        pytest.param({"ready": 10}, {"ready": 100}, id="ready for a shorter time before longer"),
        pytest.param(
            {"ready": 10}, {"ready": 100, "restarts": 9}, id="readiness comes before restarts"
        ),
        pytest.param({"restarts": 2}, {"restarts": 1}, id="restarted more often before less"),
        pytest.param(
            {"sidecar_restarts": 2},
            {"sidecar_restarts": 1},
            id="sidecars' restarts come after the others'",
        ),
        pytest.param(
            {"restarts": 2},
            {"restarts": 1, "sidecar_restarts": 9},
            id="containers' restarts come first",
        ),
        pytest.param({"restarts": 1, "age": 1000}, {"age": 1}, id="restarts come before age"),
        pytest.param({"age": 10}, {"age": 100}, id="younger before older"),
        pytest.param({"age": None}, {"age": 1}, id="without a time it is the youngest"),
        pytest.param(
            {"ready": None, "age": 10},
            {"ready": None, "age": 100},
            id="age counts for those not ready too",
        ),
    ],
)
def test_pod_order_of_two_pods(goes: dict[str, Any], stays: dict[str, Any]) -> None:
    assert first_to_go(pod("goes", **goes), pod("stays", **stays)) == "goes"


def test_pod_with_more_of_its_like_on_its_node_goes_first():
    crowded, lonely = pod("crowded", node="a", ready=1000), pod("lonely", node="b", ready=1)
    neighbour = pod("of-another-set", node="a")
    assert first_to_go(crowded, lonely) == "lonely"
    assert first_to_go(crowded, lonely, related=(neighbour,)) == "crowded"
    assert first_to_go(pod("crowded", node="a", cost="1"), lonely, related=(neighbour,)) == "lonely"


def test_neighbours_that_have_ended_or_are_going_do_not_count():
    crowded, lonely = pod("crowded", node="a"), pod("lonely", node="b", ready=1)
    ended, going = pod("ended", node="a", phase="Failed"), pod("going", node="a")
    going["metadata"]["deletionTimestamp"] = ago(0)
    assert first_to_go(crowded, lonely, related=(ended, going)) == "lonely"


@pytest.mark.parametrize("trait", ["ready", "age"])
def test_ages_are_compared_by_powers_of_two_and_chance_decides_between_those_alike(trait: str):
    """Compare ages in one power of two: 2^36 to 2^37 nanoseconds are 69 to 137 seconds."""
    alike = [
        pod("old", uid="0-9-1-8000-aaaaaaaaaaaa", **{trait: 130}),
        pod("young", uid="0-9-1-8000-bbbbbbbbbbbb", **{trait: 70}),
    ]
    assert first_to_go(*alike) == "old"
    assert (
        first_to_go(pod("old", uid="1-9-1-8000-cccccccccccc", **{trait: 130}), alike[1]) == "young"
    )
    assert first_to_go(alike[0], pod("younger", uid="f", **{trait: 65})) == "younger"


def test_pod_order_is_partial():
    pods = [pod("b"), pod("a", node="")]
    assert pods_to_delete(pods, pods, 2, NOW) == pods


PODS = st.builds(
    pod,
    st.uuids().map(str),
    node=st.sampled_from(["", "a", "b"]),
    phase=st.sampled_from(["Pending", "Running", "Unknown"]),
    ready=st.sampled_from([None, 1, 3, 50, 60, 3000]),
    restarts=st.integers(0, 1),
    age=st.sampled_from([1, 3, 50, 3000]),
    cost=st.sampled_from([None, "-1", "5"]),
)


@given(pods=st.lists(PODS, min_size=1, max_size=9, unique_by=uid_of), count=st.integers(1, 9))
def test_scale_down_keeps_the_better_pods(pods: list[Object], count: int):
    """Compare deleted and kept pods by node, phase, readiness and deletion cost, which come before
    all other criteria."""
    gone = pods_to_delete(pods, pods, count, NOW)
    kept = [one for one in pods if one not in gone]
    assert len(gone) == min(count, len(pods))
    for one in kept:
        for other in gone:
            assert worth(other) <= worth(one)


def worth(one: Object) -> tuple[Any, ...]:
    status = one["status"]
    is_ready = status["conditions"][0]["status"] == "True"
    cost = int(one["metadata"]["annotations"].get(DELETION_COST, 0))
    return (
        one["spec"]["nodeName"] != "",
        {"Pending": 0, "Unknown": 1, "Running": 2}[status["phase"]],
        is_ready,
        cost,
    )


# --- claims (pure)

OWNER: Object = {"metadata": {"name": "web", "uid": "mine"}}
GOING = {"deletionTimestamp": "2026-11-20T10:00:00Z"}


@pytest.mark.parametrize(
    ("owner", "controller", "going", "matches", "decision"),
    [
        ({}, "", False, True, "adopt"),
        ({}, "", False, False, "ignore"),
        ({}, "", True, True, "ignore"),
        (GOING, "", False, True, "ignore"),
        ({}, "mine", False, True, "keep"),
        ({}, "mine", True, True, "keep"),
        ({}, "mine", False, False, "release"),
        (GOING, "mine", False, True, "keep"),
        (GOING, "mine", False, False, "ignore"),
        ({}, "theirs", False, True, "ignore"),
    ],
)
def test_adoption_and_release_of_dependents(
    owner: Object, controller: str, going: bool, matches: bool, decision: str
):
    references = [{"uid": controller, "controller": True}] if controller else []
    obj = {"metadata": {"ownerReferences": references, **(GOING if going else {})}}
    assert claim_decision({"metadata": {**OWNER["metadata"], **owner}}, obj, matches) == decision


# --- the controller

RESOURCE = "replicasets.apps"


def replica_set(
    name: str = "web", replicas: int = 2, labels: dict[str, str] | None = None, **spec: Any
) -> Object:
    labels = labels or {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "web:1"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
            **spec,
        },
    }


def bare_pod(name: str, labels: dict[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "web:1"}]},
    }


def status_of(lab: Lab, name: str = "web") -> Object:
    return lab.client.get(RESOURCE, name, namespace="default")["status"]


def owners(lab: Lab, pod: str) -> list[str]:
    return [
        one["name"]
        for one in lab.client.get("pods", pod, namespace="default")["metadata"].get(
            "ownerReferences", []
        )
    ]


def said(lab: Lab, name: str = "web") -> list[str]:
    return [
        f"{one['type']} {one['reason']}: {one['message']}"
        for one in lab.client.list("events").items
        if one["involvedObject"]["name"] == name
    ]


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.node("node-1")
    lab.settle()
    return lab


def test_orphan_that_fits_is_adopted_and_counts(lab):
    lab.create("pods", bare_pod("orphan", {"app": "web"}), "default")
    lab.create(RESOURCE, replica_set(replicas=2), "default")
    lab.settle()
    assert owners(lab, "orphan") == ["web"]
    assert len(lab.names("pods")) == 2


def test_orphans_beyond_size_are_adopted_and_surplus_is_deleted(lab):
    for number in range(3):
        lab.create("pods", bare_pod(f"orphan-{number}", {"app": "web"}), "default")
    lab.settle()
    lab.create(RESOURCE, replica_set(replicas=1), "default")
    lab.settle()
    assert len(lab.names("pods")) == 1
    assert status_of(lab)["replicas"] == 1


def test_pod_that_no_longer_fits_is_released_and_replaced(lab):
    lab.create(RESOURCE, replica_set(replicas=1), "default")
    lab.settle()
    [name] = lab.names("pods")
    lab.change("pods", name, lambda pod: pod["metadata"].update(labels={"app": "other"}), "default")
    lab.settle()
    assert owners(lab, name) == []
    assert len(lab.names("pods")) == 2
    lab.change("pods", name, lambda pod: pod["metadata"].update(labels={"app": "web"}), "default")
    lab.settle()
    assert len(lab.names("pods")) == 1  # adopted again, so there is one pod too many


def test_object_of_another_controller_is_left_alone(lab):
    lab.create(RESOURCE, replica_set("one", 1, {"app": "web"}), "default")
    lab.settle()
    [name] = lab.names("pods")
    lab.create(RESOURCE, replica_set("two", 1, {"app": "web"}), "default")
    lab.settle()
    assert owners(lab, name) == ["one"]
    assert len(lab.names("pods")) == 2


def test_orphan_that_is_going_is_not_adopted(lab):
    orphan = bare_pod("orphan", {"app": "web"})
    orphan["metadata"]["annotations"] = {"kubepy.dev/termination": "stuck"}
    lab.create("pods", orphan, "default")
    lab.settle()
    lab.client.delete("pods", "orphan", namespace="default")
    lab.create(RESOURCE, replica_set(replicas=1), "default")
    lab.settle()
    assert owners(lab, "orphan") == []
    assert len(lab.names("pods")) == 2


def test_set_that_is_going_adopts_nothing_and_releases_nothing(lab):
    lab.create(RESOURCE, replica_set(replicas=1), "default")
    lab.settle()
    [name] = lab.names("pods")
    lab.change(
        RESOURCE,
        "web",
        lambda one: one["metadata"].update(finalizers=["example.org/hold"]),
        "default",
    )
    lab.client.delete(RESOURCE, "web", namespace="default")
    lab.create("pods", bare_pod("orphan", {"app": "web"}), "default")
    lab.change("pods", name, lambda pod: pod["metadata"].update(labels={"app": "other"}), "default")
    lab.settle()
    assert (owners(lab, "orphan"), owners(lab, name)) == ([], ["web"])


def test_pods_that_ended_are_replaced_and_kept(lab):
    lab.create(RESOURCE, replica_set(replicas=1), "default")
    lab.settle()
    [name] = lab.names("pods")
    lab.change(
        "pods",
        name,
        lambda pod: pod["status"].update(phase="Failed"),
        "default",
        subresource="status",
    )
    lab.settle()
    assert len(lab.names("pods")) == 2
    assert status_of(lab) == {
        "replicas": 1,
        "fullyLabeledReplicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }


def test_pod_that_is_going_is_replaced_at_once_and_counted_apart(lab):
    lab.create(RESOURCE, replica_set(replicas=1), "default")
    lab.settle()
    [name] = lab.names("pods")
    lab.change(
        "pods",
        name,
        lambda pod: (
            pod["metadata"]
            .setdefault("annotations", {})
            .update({"kubepy.dev/termination": "stuck"})
        ),
        "default",
    )
    lab.client.delete("pods", name, namespace="default")
    lab.settle()
    assert len(lab.names("pods")) == 2
    assert (status_of(lab)["replicas"], status_of(lab)["terminatingReplicas"]) == (1, 1)


def forbid_pods(monkeypatch: pytest.MonkeyPatch, lab: Lab, allowed: int) -> list[str]:
    """Let only so many more pods be created; return the list of attempts."""
    from kubepy.apiserver.client import Client

    create, tried = Client.create, []

    def creation(
        self: Client, resource: str, obj: Object, *arguments: Any, **options: Any
    ) -> Object:
        if resource == "pods":
            tried.append(obj["metadata"].get("generateName", ""))
            if len(tried) > allowed:
                raise Forbidden('pods "web-" is forbidden: no more')
        return create(self, resource, obj, *arguments, **options)

    monkeypatch.setattr(Client, "create", creation)
    return tried


def test_creation_starts_slowly_and_stops_at_first_batch_that_fails(lab, monkeypatch):
    tried = forbid_pods(monkeypatch, lab, 2)
    lab.create(RESOURCE, replica_set(replicas=50), "default")
    lab.settle()
    batches_of_the_first_sync = 1 + 2
    assert tried[:batches_of_the_first_sync] == ["web-"] * batches_of_the_first_sync
    assert len(lab.names("pods")) == 2
    [condition] = status_of(lab)["conditions"]
    assert {key: condition[key] for key in ("type", "status", "reason", "message")} == {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": 'pods "web-" is forbidden: no more',
    }
    assert 'Warning FailedCreate: Error creating: pods "web-" is forbidden: no more' in said(lab)


def test_failure_is_taken_back_when_pods_can_be_made_again(lab, monkeypatch):
    with monkeypatch.context() as patch:
        forbid_pods(patch, lab, 0)
        lab.create(RESOURCE, replica_set(replicas=1), "default")
        lab.settle()
    assert status_of(lab)["conditions"]
    lab.pass_time(60)
    lab.settle()
    assert "conditions" not in status_of(lab)
    assert len(lab.names("pods")) == 1


def test_set_in_deletion_makes_no_pods(lab):
    lab.create(RESOURCE, replica_set(replicas=1), "default")
    lab.settle()
    lab.change(
        RESOURCE,
        "web",
        lambda one: one["metadata"].update(finalizers=["example.org/hold"]),
        "default",
    )
    lab.client.delete(RESOURCE, "web", namespace="default")
    [name] = lab.names("pods")
    lab.client.delete("pods", name, namespace="default")
    lab.settle()
    assert lab.names("pods") == []


def test_availability_comes_when_pod_has_been_ready_for_long_enough(lab):
    lab.create(RESOURCE, replica_set(replicas=1, minReadySeconds=30), "default")
    summary = lab.settle()
    assert "availableReplicas" not in status_of(lab)
    assert [one.reconciler for one in summary.due] == ["replicaset-controller"]
    lab.pass_time(31)
    lab.settle()
    assert status_of(lab)["availableReplicas"] == 1


def test_availability_comes_in_time_although_nobody_saw_pod_become_ready(lab):
    lab.create(RESOURCE, replica_set(replicas=1, minReadySeconds=30), "default")
    lab.settle()
    lab.forget_index()
    lab.pass_time(10)
    assert [one.reconciler for one in lab.settle().due] == ["replicaset-controller"]
    lab.pass_time(40)
    lab.settle()
    assert status_of(lab)["availableReplicas"] == 1


def test_pod_creation_and_deletion_write_events(lab):
    lab.create(RESOURCE, replica_set(replicas=1), "default")
    lab.settle()
    [name] = lab.names("pods")
    lab.change(RESOURCE, "web", lambda one: one["spec"].update(replicas=0), "default")
    lab.settle()
    assert said(lab) == [
        f"Normal SuccessfulCreate: Created pod: {name}",
        f"Normal SuccessfulDelete: Deleted pod: {name}",
    ]


def test_set_without_controller_does_not_ask_where_its_pods_are_crowded(lab):
    """Delete a pod of a set without a Deployment: unlike a Deployment's set, it does not compare
    pods per node."""
    lab.node("node-2")
    for number, node in enumerate(["node-1", "node-1", "node-2"]):
        lab.pass_time(number * 1000)
        orphan = bare_pod(f"orphan-{number}", {"app": "web"})
        lab.create("pods", {**orphan, "spec": {**orphan["spec"], "nodeName": node}}, "default")
        lab.settle()
    lab.create(RESOURCE, replica_set(replicas=2), "default")
    lab.settle()
    assert lab.names("pods") == ["orphan-0", "orphan-1"]


def test_pod_that_was_relabelled_and_is_going_does_not_count_as_terminating(lab):
    lab.create(RESOURCE, replica_set(replicas=1), "default")
    lab.settle()
    [name] = lab.names("pods")

    def relabel(pod: Object) -> None:
        pod["metadata"].update(
            labels={"app": "other"}, annotations={"kubepy.dev/termination": "stuck"}
        )

    lab.change("pods", name, relabel, "default")
    lab.client.delete("pods", name, namespace="default")
    lab.settle()
    assert owners(lab, name) == ["web"]
    assert status_of(lab)["terminatingReplicas"] == 0


# --- ReplicationControllers

CONTROLLERS = "replicationcontrollers"


def test_replication_controller_is_replica_set_of_old(lab):
    controller = replica_set(replicas=2)
    controller["spec"]["selector"] = {"app": "web"}
    lab.create("pods", bare_pod("orphan", {"app": "web"}), "default")
    lab.create(
        CONTROLLERS, {**controller, "apiVersion": "v1", "kind": "ReplicationController"}, "default"
    )
    lab.settle()
    found = lab.client.get(CONTROLLERS, "web", namespace="default")
    assert found["status"] == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "observedGeneration": 1,
    }
    assert owners(lab, "orphan") == ["web"]
    [event] = [
        one for one in lab.client.list("events").items if one["reason"] == "SuccessfulCreate"
    ]
    assert event["source"] == {"component": "replication-controller"}
    lab.change(CONTROLLERS, "web", lambda one: one["spec"].update(replicas=0), "default")
    lab.settle()
    assert lab.names("pods") == []
