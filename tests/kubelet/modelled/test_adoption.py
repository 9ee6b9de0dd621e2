"""Pods of which only the status is known: their records, and what comes of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubepy.kubelet.modelled.adoption import record_of_status
from kubepy.kubelet.modelled.records import ContainerRecord, PodRecord
from tests.kubelet.modelled.clusters import PodsCluster

Object = dict[str, Any]
NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)


def at(seconds: float) -> str:
    """Return the time so many seconds before now."""
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def end(begin: float, finish: float, code: int = 1) -> Object:
    return {
        "terminated": {
            "exitCode": code,
            "reason": "Error",
            "startedAt": at(begin),
            "finishedAt": at(finish),
        }
    }


def adopted(state: Object, last: Object | None = None, restarts: int = 0, **more: Any) -> PodRecord:
    entry: Object = {
        "name": "c",
        "image": "c:1",
        "restartCount": restarts,
        "state": state,
        "lastState": last or {},
        "ready": False,
        **more,
    }
    status = {"startTime": at(3600), "containerStatuses": [entry], "conditions": []}
    pod: Any = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"containers": [{"name": "c", "image": "c:1"}]},
        "status": status,
    }
    return record_of_status(pod, NOW)


def container(*args: Any, **more: Any) -> ContainerRecord:
    return adopted(*args, **more).containers["c"]


def waiting(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, "message": message}}


def seconds_until(moment: datetime | None) -> float:
    assert moment is not None
    return (moment - NOW).total_seconds()


def test_crash_loop_waits_for_the_rest_of_its_back_off() -> None:
    state = waiting("CrashLoopBackOff", "back-off 2m40s restarting failed container=c pod=p")
    record = container(state, end(100, 60), 5)
    assert (record.reason, record.backoff, record.runs) == ("CrashLoopBackOff", 160, 6)
    assert seconds_until(record.due) == 100
    assert record.last is not None
    assert record.last.exit_code == 1


def test_overdue_restart_comes_a_second_later() -> None:
    state = waiting("CrashLoopBackOff", "back-off 10s restarting failed container=c pod=p")
    assert seconds_until(container(state, end(100, 60), 2).due) == 1


def test_crash_loop_without_its_last_end_waits_for_a_back_off_by_its_restarts() -> None:
    record = container(waiting("CrashLoopBackOff"), None, 3)
    assert seconds_until(record.due) == 40


@pytest.mark.parametrize(
    ("restarts", "waited", "backoff"),
    [(0, 0, 0), (1, 1, 10), (2, 11, 20), (3, 20, 40), (9, 300, 300), (9, 1, 10)],
)
def test_run_that_is_under_way_is_followed_by_twice_the_back_off_before_it(
    restarts: int, waited: int, backoff: int
) -> None:
    last = end(waited + 60, waited + 50) if restarts else None
    record = container({"running": {"startedAt": at(50)}}, last, restarts)
    assert record.backoff == backoff


@pytest.mark.parametrize(
    ("age", "pulls", "due"),
    [(0, 1, 10), (12, 2, 18), (45, 3, 25), (400, 6, 210), (3600, 16, 10)],
)
def test_failed_pulls_are_counted_from_the_begin(age: int, pulls: int, due: float) -> None:
    entry = {"name": "c", "image": "c:1", "state": waiting("ImagePullBackOff", "no")}
    pod: Any = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"containers": [{"name": "c", "image": "c:1"}]},
        "status": {"startTime": at(age), "containerStatuses": [entry]},
    }
    record = record_of_status(pod, NOW).containers["c"]
    assert (record.failed_pulls, seconds_until(record.due)) == (pulls, due)


def test_error_of_a_pull_is_reported_for_ten_seconds_at_most() -> None:
    record = container(waiting("ErrImagePull", "no"))
    assert seconds_until(record.due) <= 10


def test_pod_without_a_sandbox_waits_for_its_volumes() -> None:
    conditions = [{"type": "PodReadyToStartContainers", "status": "False"}]
    pod: Any = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"containers": [{"name": "c", "image": "c:1"}]},
        "status": {
            "conditions": conditions,
            "containerStatuses": [
                {"name": "c", "image": "c:1", "state": waiting("ContainerCreating")}
            ],
        },
    }
    assert record_of_status(pod, NOW).mounts_fail
    conditions[0]["status"] = "True"
    assert not record_of_status(pod, NOW).mounts_fail


# --- rules that are learned -----------------------------------------------------------------------


def rule(**values: Any) -> Object:
    return {"match": {"image": "app*"}, **values}


APP = {"name": "c", "image": "app:1"}
PROBE = {"exec": {"command": ["cat", "/ready"]}, "periodSeconds": 5}


def test_container_with_a_start_problem_waits_with_its_reason() -> None:
    problem = {"reason": "CreateContainerConfigError", "message": "image will run as root"}
    pods = PodsCluster([rule(start=problem)])
    pods.create("p", APP)
    pods.advance(60)
    assert pods.state("p") == {"waiting": problem}
    assert "Error: image will run as root" in pods.run("describe", "pod", "p")


def test_container_whose_start_fails_is_in_a_crash_loop() -> None:
    problem = {"reason": "StartError", "message": "no such file"}
    pods = PodsCluster([rule(start=problem)])
    pods.create("p", APP)
    pods.advance(60)
    last = pods.status("p")["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"], last["message"]) == (
        128,
        "StartError",
        problem["message"],
    )
    assert "CrashLoopBackOff" in pods.shown("p")


def test_image_that_is_not_looked_at_is_not_pulled() -> None:
    pods = PodsCluster([rule(start={"reason": "ErrImageNeverPull"})])
    pods.create("p", APP)
    assert pods.shown("p") == "0/1 ErrImageNeverPull 0"


def test_pod_that_is_not_created_has_no_address() -> None:
    pods = PodsCluster([rule(start={"reason": "ContainerCreating", "message": "no disk"})])
    pods.create("p", APP)
    pods.advance(60)
    assert pods.shown("p") == "0/1 ContainerCreating 0"
    assert "podIP" not in pods.pod("p")["status"]
    assert "FailedMount" in pods.run("describe", "pod", "p")


def test_unknown_program_runs_whatever_its_command_says() -> None:
    pods = PodsCluster([rule(program="unknown")])
    pods.create("p", {**APP, "command": ["sh", "-c", "exit 1"]})
    pods.advance(600)
    assert pods.shown("p") == "1/1 Running 0"


def test_run_ends_with_the_reason_and_the_message_of_its_rule() -> None:
    ended = {"runsFor": "5s", "exitCode": 137, "exitReason": "OOMKilled", "exitMessage": "bye"}
    pods = PodsCluster([rule(**ended)])
    pods.create("p", APP)
    pods.advance(5)
    last = pods.status("p")["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"], last["message"]) == (137, "OOMKilled", "bye")


def test_probe_of_what_is_never_ready_fails() -> None:
    pods = PodsCluster([rule(readyAfter="never")])
    probe = {"httpGet": {"port": 80, "path": "/"}, "periodSeconds": 5}
    pods.create("p", {**APP, "readinessProbe": probe})
    pods.advance(60)
    assert pods.shown("p") == "0/1 Running 0"
    assert "HTTP probe failed with statuscode: 503" in pods.run("describe", "pod", "p")


def test_what_is_never_ready_and_has_no_probe_is_not_ready() -> None:
    pods = PodsCluster([rule(readyAfter="never")])
    pods.create("p", APP)
    pods.advance(60)
    assert pods.shown("p") == "0/1 Running 0"


def test_failing_probe_counts_after_the_time_of_a_rule() -> None:
    pods = PodsCluster([rule(readyAfter="7s")])
    pods.create("p", {**APP, "command": ["sleep", "3600"], "readinessProbe": PROBE})
    pods.advance(30)
    assert pods.shown("p") == "0/1 Running 0"
    pods.run("exec", "p", "--", "touch", "/ready")
    pods.advance(5)
    assert pods.shown("p") == "1/1 Running 0"


def test_probe_that_succeeds_counts_from_the_time_of_a_rule_on() -> None:
    pods = PodsCluster([rule(readyAfter="7s", exec={"cat /ready": ""})])
    pods.create("p", {**APP, "readinessProbe": PROBE})
    pods.advance(6)
    assert pods.shown("p") == "0/1 Running 0"
    pods.advance(1)
    assert pods.shown("p") == "1/1 Running 0"


def test_answer_of_a_rule_fails_a_probe_and_a_hook() -> None:
    pods = PodsCluster([rule(exec={"*": {"stderr": "no\n", "exitCode": 3}})])
    hook = {"postStart": {"exec": {"command": ["prepare"]}}}
    pods.create("p", {**APP, "readinessProbe": PROBE})
    pods.create("q", {**APP, "lifecycle": hook})
    pods.advance(20)
    assert "Readiness probe failed: no" in pods.run("describe", "pod", "p")
    assert "PostStartHook failed" in pods.run("describe", "pod", "q")


def test_pod_that_never_stops_stays_until_it_is_deleted_by_force() -> None:
    pods = PodsCluster([rule(stopsAfter="never")])
    pods.create("p", APP)
    pods.run("delete", "pod", "p", "--wait=false")
    pods.advance(3600)
    assert pods.shown("p") == "1/1 Terminating 0"
    pods.run("delete", "pod", "p", "--force", "--grace-period=0")
    assert "NotFound" in pods.run("get", "pod", "p")
