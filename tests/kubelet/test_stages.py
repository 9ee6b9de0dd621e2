"""The stages of a pod's life: their times, and the golden statuses of each outcome."""

from __future__ import annotations

import copy
from datetime import timedelta

import pytest

from kubepy.kubelet.admission import Rejection
from kubepy.kubelet.outcomes import OUTCOMES, RUNNING
from kubepy.kubelet.stages import (
    Acknowledge,
    Expire,
    Remove,
    Start,
    Step,
    UpdateReadiness,
    deadline_of,
    next_step,
)
from kubepy.kubelet.statuses import acknowledged_status, expired_status, pod_status, rejected_status
from tests.kubelet.objects import NOW, Object, check_golden, new_node, new_pod, played


def due(pod: Object, node: Object | None = None, seconds: float = 0) -> Step | None:
    return next_step(pod, new_node() if node is None else node, NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize("outcome", list(OUTCOMES))
def test_status_of_each_outcome(outcome: str) -> None:
    check_golden(outcome, played(new_pod(outcome))["status"])


@pytest.mark.parametrize("outcome", ["ready", "not-ready", "succeeded"])
def test_init_containers_are_done_and_sidecars_run_as_long_as_pod(outcome: str) -> None:
    init = [
        {"name": "prepare", "image": "p:1"},
        {"name": "mesh", "image": "m:1", "restartPolicy": "Always"},
    ]
    check_golden(
        f"init-containers-{outcome}", played(new_pod(outcome, initContainers=init))["status"]
    )


def test_pod_that_its_manifest_bound_is_reported_as_scheduled() -> None:
    pod = new_pod()
    del pod["status"]["conditions"]
    types = [condition["type"] for condition in played(pod)["status"]["conditions"]]
    assert types == ["Initialized", "Ready", "ContainersReady", "PodScheduled"]


def test_pending_pod_is_never_touched() -> None:
    assert due(new_pod("pending")) is None
    assert due(new_pod(), new_node(**{"kubepy.dev/pod-outcome": "pending"})) is None


def test_node_decides_for_pods_that_name_no_outcome() -> None:
    node = new_node(**{"kubepy.dev/pod-outcome": "not-ready"})
    assert due(new_pod(), node) == Start(OUTCOMES["not-ready"])
    assert due(new_pod("ready"), node) == Start(OUTCOMES["ready"])


def test_pod_of_missing_node_has_no_step() -> None:
    pod = new_pod()
    assert next_step(pod, None, NOW) is None
    pod["metadata"]["deletionTimestamp"] = "2026-11-20T12:00:00Z"
    assert next_step(pod, None, NOW) is None


def test_changed_outcome_takes_effect_on_live_pod_and_keeps_the_rest() -> None:
    before = played(new_pod("crash-loop"))
    before["metadata"]["annotations"] = {"kubepy.dev/outcome": "ready"}
    before["status"]["startTime"] = "2026-11-20T11:00:00Z"
    for condition in before["status"]["conditions"]:
        condition["lastTransitionTime"] = "2026-11-20T11:00:00Z"
    status = played(before)["status"]
    times = {
        one["type"]: (one["status"], one["lastTransitionTime"][11:13])
        for one in status["conditions"]
    }
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
def test_status_set_by_hand_is_left_alone(change: Object) -> None:
    pod = played(new_pod())
    pod["status"] |= change
    assert due(pod) is None


def test_deleted_pod_goes_at_once_unless_it_is_stuck_or_only_finalizers_hold_it() -> None:
    pod = new_pod()
    pod["metadata"] |= {
        "deletionTimestamp": "2026-11-20T12:00:00Z",
        "deletionGracePeriodSeconds": 30,
    }
    assert due(pod) == Remove()
    stuck = copy.deepcopy(pod)
    stuck["metadata"]["annotations"]["kubepy.dev/termination"] = "stuck"
    assert due(stuck) is None
    pod["metadata"]["deletionGracePeriodSeconds"] = 0
    assert due(pod) is None


def test_readiness_gates_hold_back_ready_condition() -> None:
    pod = played(new_pod(readinessGates=[{"conditionType": "example.org/lb"}]))
    ready = next(one for one in pod["status"]["conditions"] if one["type"] == "Ready")
    assert (ready["status"], ready["reason"], ready["message"]) == (
        "False", "ReadinessGatesNotReady",
        'corresponding condition of pod readiness gate "example.org/lb" does not exist.',
    )  # fmt: skip
    pod["status"]["conditions"].append({"type": "example.org/lb", "status": "True"})
    assert due(pod) == UpdateReadiness()
    pod["status"] = pod_status(pod, RUNNING, "192.168.0.1", "10.244.0.1", NOW)
    assert due(pod) is None


def test_container_that_stops_being_ready_runs_on() -> None:
    before = played(new_pod())
    runs = {"running": {"startedAt": "2026-11-20T11:00:00Z"}}
    before["status"]["containerStatuses"][0]["state"] = runs
    before["metadata"]["annotations"] = {"kubepy.dev/outcome": "not-ready"}
    assert played(before)["status"]["containerStatuses"][0]["state"] == runs
    before["metadata"]["annotations"] = {"kubepy.dev/outcome": "succeeded"}
    assert played(before)["status"]["containerStatuses"][0]["state"] == {"terminated": {
        "exitCode": 0, "finishedAt": "2026-11-20T12:00:00Z", "reason": "Completed",
        "startedAt": "2026-11-20T11:00:00Z"}}  # fmt: skip


# --- deadlines


def test_pod_that_runs_for_longer_than_it_may_fails() -> None:
    pod = played(new_pod(activeDeadlineSeconds=30))
    assert deadline_of(pod) == NOW + timedelta(seconds=30)
    assert due(pod, seconds=29) is None
    assert due(pod, seconds=30) == Expire()
    status = expired_status(pod, "192.168.0.1", "10.244.0.1", NOW + timedelta(seconds=30))
    check_golden("deadline-exceeded", status)
    assert due({**pod, "status": status}, seconds=31) is None


def test_deadline_counts_from_start_and_ends_with_pod() -> None:
    assert deadline_of(new_pod(activeDeadlineSeconds=30)) is None
    assert deadline_of(played(new_pod("succeeded", activeDeadlineSeconds=30))) is None
    assert deadline_of(played(new_pod())) is None


# --- arrival


def test_pod_that_its_node_does_not_take_has_failed_and_never_ran() -> None:
    pod = new_pod()
    del pod["status"]["conditions"]
    no = Rejection(
        "OutOfcpu", "Node didn't have enough resource: cpu, requested: 2, used: 1, capacity: 2"
    )
    assert next_step(pod, new_node(), NOW, lambda: no) == no
    status = rejected_status(pod, *no, NOW)
    check_golden("rejected", status)
    assert due({**pod, "status": status}) is None


def test_admission_is_asked_for_arriving_pods_only() -> None:
    no = Rejection("OutOfcpu", "")
    assert next_step(played(new_pod()), new_node(), NOW, lambda: no) is None
    assert next_step(new_pod("pending"), new_node(), NOW, lambda: no) is None


# --- the observed spec


def test_new_spec_is_acknowledged_and_nothing_else_is_touched() -> None:
    pod = played(new_pod())
    pod["status"] |= {"phase": "Pending", "reason": "ByHand"}
    pod["metadata"]["generation"] = 2
    assert due(pod) == Acknowledge()
    status = acknowledged_status(pod, NOW)
    assert status["observedGeneration"] == 2
    generations = {one["type"]: one.get("observedGeneration") for one in status["conditions"]}
    assert generations == {"Initialized": 2, "Ready": 2, "ContainersReady": 2, "PodScheduled": None}
    for part in (status, pod["status"]):
        part.pop("observedGeneration")
        part["conditions"] = [{**one, "observedGeneration": 0} for one in part["conditions"]]
    assert status == pod["status"]


def test_ephemeral_containers_run_unless_they_wait_for_input() -> None:
    pod = played(new_pod())
    pod["spec"]["ephemeralContainers"] = [
        {"name": "e", "image": "e:1"},
        {"name": "i", "image": "i:1", "stdin": True},
    ]
    pod["metadata"]["generation"] = 2
    states = {
        one["name"]: one["state"]
        for one in acknowledged_status(pod, NOW)["ephemeralContainerStatuses"]
    }
    assert states["e"] == {"running": {"startedAt": "2026-11-20T12:00:00Z"}}
    assert states["i"]["terminated"]["reason"] == "Completed"
    pod["status"] = acknowledged_status(pod, NOW)
    later = acknowledged_status(pod, NOW + timedelta(seconds=5))
    assert later["ephemeralContainerStatuses"] == pod["status"]["ephemeralContainerStatuses"]


def test_resized_container_reports_its_resources() -> None:
    pod = played(new_pod())
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}
    pod["spec"]["containers"][0]["resources"] = resources
    pod["metadata"]["generation"] = 2
    resized, other = acknowledged_status(pod, NOW)["containerStatuses"]
    assert (resized["resources"], resized["allocatedResources"]) == (resources, {"cpu": "2"})
    assert other == pod["status"]["containerStatuses"][1]


def test_status_by_hand_that_speaks_of_no_generation_is_left_alone() -> None:
    pod = new_pod()
    pod["status"] = {
        "phase": "Running",
        "containerStatuses": [{"name": "c", "ready": True, "state": {"running": {}}}],
    }
    pod["metadata"]["generation"] = 2
    assert due(pod) is None
