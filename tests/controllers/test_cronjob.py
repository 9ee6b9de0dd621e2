"""CronJobs: starts, missed starts, history limits, events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubepy.api.clock import format_time, parse_time
from kubepy.api.meta import Object, name_of
from kubepy.api.values.cron import parse
from kubepy.controllers.cronjob import (
    Latest,
    ScheduleError,
    Times,
    jobs_beyond_limits,
    latest_start,
    next_start,
)
from kubepy.runtime.informers import Lister
from tests.controllers.conftest import Lab

RESOURCE = "cronjobs.batch"
MINUTE, HOUR = 60, 3600


def cron_job(
    name: str = "tick", schedule: str = "*/10 * * * *", outcome: str = "succeeded", **spec: Any
) -> Object:
    pod = {
        "metadata": {"annotations": {"kubepy.dev/outcome": outcome}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "tick:1"}]},
    }
    template = {
        "metadata": {"labels": {"of": name}, "annotations": {"note": "kept"}},
        "spec": {"template": pod, "backoffLimit": 0},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.node("node-1")
    lab.settle()
    return lab


def make(lab: Lab, **spec: Any) -> None:
    lab.create(RESOURCE, cron_job(**spec), "default")
    lab.settle()


def at(lab: Lab, seconds: float) -> None:
    lab.pass_time(seconds)
    lab.settle()


def status(lab: Lab) -> Object:
    found: Object = lab.client.get(RESOURCE, "tick", namespace="default").get("status") or {}
    return found


def jobs(lab: Lab) -> list[str]:
    """Return the names of the Jobs without their prefix: the minutes of their scheduled times."""
    return [one.removeprefix("tick-") for one in lab.names("jobs.batch")]


def minute(text: str) -> str:
    return str(int(parse_time(f"2026-11-20T{text}:00Z").timestamp()) // 60)


def said(lab: Lab) -> list[str]:
    return [
        f"{one['type']} {one['reason']}: {one['message']}"
        for one in lab.client.list("events").items
        if one["involvedObject"]["name"] == "tick"
    ]


# --- starting


def test_cronjob_before_its_time_starts_nothing_and_next_start_is_due(lab):
    lab.create(RESOURCE, cron_job(), "default")
    summary = lab.settle()
    assert (jobs(lab), status(lab)) == ([], {})
    [due] = [one for one in summary.due if one.reconciler == "cronjob-controller"]
    assert format_time(due.time) == "2026-11-20T10:10:00Z"


def test_start_makes_job_that_is_named_by_minute_and_bears_its_time(lab):
    make(lab, outcome="ready")
    at(lab, 10 * MINUTE + 1)
    assert jobs(lab) == [minute("10:10")]
    [job] = lab.client.list("jobs.batch").items
    owner = lab.client.get(RESOURCE, "tick", namespace="default")
    assert job["metadata"]["labels"] == {"of": "tick"}
    assert job["metadata"]["annotations"] == {
        "note": "kept",
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-11-20T10:10:00Z",
    }
    assert job["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "name": "tick",
            "uid": owner["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    status = dict(owner["status"])
    [active] = status.pop("active")
    assert {key: active[key] for key in ("apiVersion", "kind", "name", "namespace", "uid")} == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": name_of(job),
        "namespace": "default",
        "uid": job["metadata"]["uid"],
    }
    assert status == {"lastScheduleTime": "2026-11-20T10:10:00Z"}
    assert said(lab) == [f"Normal SuccessfulCreate: Created job {name_of(job)}"]


def test_job_that_has_ended_is_no_longer_active_and_its_success_is_noted(lab):
    make(lab)
    at(lab, 10 * MINUTE + 1)
    assert status(lab) == {
        "lastScheduleTime": "2026-11-20T10:10:00Z",
        "lastSuccessfulTime": "2026-11-20T10:10:01Z",
    }
    name = f"tick-{minute('10:10')}"
    assert said(lab) == [
        f"Normal SuccessfulCreate: Created job {name}",
        f"Normal SawCompletedJob: Saw completed job: {name}, condition: Complete",
    ]


def test_job_that_failed_is_no_success(lab):
    make(lab, outcome="failed")
    at(lab, 10 * MINUTE + 1)
    assert status(lab) == {"lastScheduleTime": "2026-11-20T10:10:00Z"}
    assert (
        said(lab)[-1]
        == f"Normal SawCompletedJob: Saw completed job: tick-{minute('10:10')}, condition: Failed"
    )


def test_suspended_one_starts_nothing_and_makes_up_for_last_start_when_it_is_resumed(lab):
    make(lab, suspend=True)
    at(lab, 35 * MINUTE)
    assert jobs(lab) == []
    lab.change(RESOURCE, "tick", lambda one: one["spec"].update(suspend=False), "default")
    lab.settle()
    assert jobs(lab) == [minute("10:30")]


def test_time_zone_moves_start(lab):
    make(lab, schedule="30 11 * * *", timeZone="Europe/Berlin")
    at(lab, 30 * MINUTE + 1)
    [job] = lab.client.list("jobs.batch").items
    assert job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"] == (
        "2026-11-20T11:30:00+01:00"
    )


def test_schedule_that_changes_starts_nothing_in_arrears(lab):
    make(lab, schedule="0 0 1 1 *")
    lab.pass_time(15 * MINUTE)
    lab.change(RESOURCE, "tick", lambda one: one["spec"].update(schedule="*/10 * * * *"), "default")
    lab.watch()
    assert jobs(lab) == []
    at(lab, 20 * MINUTE + 1)
    assert jobs(lab) == [minute("10:20")]


def test_cronjob_being_deleted_starts_nothing(lab):
    lab.create(
        RESOURCE,
        {**cron_job(), "metadata": {"name": "tick", "finalizers": ["example.org/hold"]}},
        "default",
    )
    lab.settle()
    lab.client.delete(RESOURCE, "tick", namespace="default")
    at(lab, 10 * MINUTE + 1)
    assert jobs(lab) == []


def test_name_that_somebody_else_has_taken_is_left_to_them(lab):
    make(lab)
    template = cron_job()["spec"]["jobTemplate"]["spec"]
    lab.create(
        "jobs.batch",
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "spec": template,
            "metadata": {"name": f"tick-{minute('10:10')}"},
        },
        "default",
    )
    at(lab, 10 * MINUTE + 1)
    assert status(lab) == {}


# --- concurrency


def test_jobs_run_side_by_side_where_that_is_allowed(lab):
    make(lab, outcome="ready")
    at(lab, 10 * MINUTE + 1)
    at(lab, 20 * MINUTE + 1)
    assert [one["name"] for one in status(lab)["active"]] == [
        f"tick-{minute('10:10')}",
        f"tick-{minute('10:20')}",
    ]


def test_forbid_starts_nothing_beside_job_that_runs(lab):
    make(lab, outcome="ready", concurrencyPolicy="Forbid")
    at(lab, 10 * MINUTE + 1)
    at(lab, 20 * MINUTE + 1)
    assert jobs(lab) == [minute("10:10")]
    assert said(lab)[-1] == (
        "Normal JobAlreadyActive: Not starting job because prior execution is running and "
        "concurrency policy is Forbid"
    )


def test_forbid_counts_the_job_that_only_the_stored_status_knows(lab, monkeypatch):
    make(lab, outcome="ready", concurrencyPolicy="Forbid")
    older = lab.client.get(RESOURCE, "tick", namespace="default")
    at(lab, 10 * MINUTE + 1)
    get = Lister.get

    def get_older(lister: Any, namespace: str, name: str) -> Any:
        found = get(lister, namespace, name)
        return older if found is not None and found["kind"] == "CronJob" else found

    monkeypatch.setattr(Lister, "get", get_older)
    at(lab, 20 * MINUTE + 1)
    assert jobs(lab) == [minute("10:10")]
    assert "UnexpectedJob" not in "".join(said(lab))


def test_replace_deletes_job_that_runs(lab):
    make(lab, outcome="ready", concurrencyPolicy="Replace")
    at(lab, 10 * MINUTE + 1)
    at(lab, 20 * MINUTE + 1)
    old, new = f"tick-{minute('10:10')}", f"tick-{minute('10:20')}"
    assert jobs(lab) == [minute("10:20")]
    assert [one["name"] for one in status(lab)["active"]] == [new]
    assert said(lab)[1:] == [
        f"Normal SuccessfulDelete: Deleted job {old}",
        f"Normal SuccessfulCreate: Created job {new}",
    ]


# --- what was missed


def test_cronjob_starts_only_the_last_of_several_missed(lab):
    make(lab)
    at(lab, 55 * MINUTE)
    assert jobs(lab) == [minute("10:50")]


def test_start_beyond_its_deadline_is_missed(lab):
    make(lab, schedule="0 * * * *", startingDeadlineSeconds=30)
    at(lab, HOUR + 31)
    assert jobs(lab) == []
    at(lab, 2 * HOUR + 29)
    assert jobs(lab) == [minute("12:00")]


def test_too_many_missed_starts_are_said(lab):
    make(lab, schedule="* * * * *")
    at(lab, 102 * MINUTE)
    assert jobs(lab) == [minute("11:42")]
    assert (
        "Warning TooManyMissedTimes: too many missed start times. Set or decrease "
        ".spec.startingDeadlineSeconds "
        "or check clock skew"
    ) in said(lab)


def test_schedule_that_is_never_due_is_said(lab):
    make(lab, schedule="0 0 31 2 *")
    assert said(lab) == [
        "Warning InvalidSchedule: invalid schedule: 0 0 31 2 * : time difference between two "
        "schedules is less than 1 second"
    ]


# --- Jobs that are there


def test_cronjob_history_is_limited(lab):
    make(lab, successfulJobsHistoryLimit=2)
    for number in range(1, 5):
        at(lab, number * 10 * MINUTE + 1)
    assert jobs(lab) == [minute("10:30"), minute("10:40")]
    assert f"Normal SuccessfulDelete: Deleted job tick-{minute('10:10')}" in said(lab)


def test_failures_have_limit_of_their_own(lab):
    make(lab, outcome="failed", failedJobsHistoryLimit=1)
    for number in range(1, 4):
        at(lab, number * 10 * MINUTE + 1)
    assert jobs(lab) == [minute("10:30")]


def ended(name: str, kind: str, start: str | None) -> Object:
    return {
        "metadata": {"name": name},
        "status": {
            "conditions": [{"type": kind, "status": "True"}],
            **({"startTime": start} if start else {}),
        },
    }


def test_jobs_that_started_first_go_first_and_those_that_never_did_last():
    jobs = [
        ended("never", "Failed", None),
        ended("b", "Failed", "2026-11-20T10:00:00Z"),
        ended("a", "Failed", "2026-11-20T10:00:00Z"),
        ended("late", "Failed", "2026-11-20T11:00:00Z"),
        ended("good", "Complete", "2026-11-20T09:00:00Z"),
    ]
    order = [
        name_of(one) for one in jobs_beyond_limits({"spec": {"failedJobsHistoryLimit": 0}}, jobs)
    ]
    assert order == ["a", "b", "late", "never"]


def test_limit_of_none_still_notes_success(lab):
    make(lab, successfulJobsHistoryLimit=0)
    at(lab, 10 * MINUTE + 1)
    assert jobs(lab) == []
    assert status(lab) == {
        "lastScheduleTime": "2026-11-20T10:10:00Z",
        "lastSuccessfulTime": "2026-11-20T10:10:01Z",
    }


def test_active_job_that_went_missing_is_noticed(lab):
    make(lab, outcome="ready")
    at(lab, 10 * MINUTE + 1)
    lab.client.delete(
        "jobs.batch", f"tick-{minute('10:10')}", namespace="default", options=_background()
    )
    lab.settle()
    assert status(lab) == {"lastScheduleTime": "2026-11-20T10:10:00Z"}
    assert said(lab)[-1] == f"Normal MissingJob: Active job went missing: tick-{minute('10:10')}"


def test_job_made_by_hand_is_noticed_and_its_success_counts(lab):
    make(lab, schedule="0 0 1 1 *")
    owner = lab.client.get(RESOURCE, "tick", namespace="default")
    reference = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": "tick",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    lab.create(
        "jobs.batch",
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "spec": owner["spec"]["jobTemplate"]["spec"],
            "metadata": {"name": "by-hand", "ownerReferences": [reference]},
        },
        "default",
    )
    lab.settle()
    assert (
        said(lab)[0]
        == "Warning UnexpectedJob: Saw a job that the controller did not create or forgot: by-hand"
    )
    assert status(lab) == {"lastSuccessfulTime": "2026-11-20T10:00:00Z"}


def test_its_jobs_go_with_it(lab):
    make(lab, outcome="ready")
    at(lab, 10 * MINUTE + 1)
    lab.client.delete(RESOURCE, "tick", namespace="default")
    lab.settle()
    assert (jobs(lab), lab.names("pods")) == ([], [])


def _background() -> Any:
    from kubepy.apiserver.request import DeleteOptions

    return DeleteOptions(propagation_policy="Background")


# --- schedules

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
PERIODS = {
    "* * * * *": MINUTE,
    "*/7 * * * *": 7 * MINUTE,
    "0 * * * *": HOUR,
    "30 2 * * *": 24 * HOUR,
    "0 0 * * 1": 7 * 24 * HOUR,
    "5 4 1 * *": 30 * 24 * HOUR,
    "@every 90s": 90,
}


def scheduled(schedule: str, last: datetime | None = None) -> Object:
    return {
        "metadata": {"creationTimestamp": format_time(START)},
        "spec": {"schedule": schedule},
        "status": {"lastScheduleTime": format_time(last)} if last else {},
    }


@settings(deadline=None)
@given(schedule=st.sampled_from(sorted(PERIODS)), passed=st.floats(0, 40))
def test_latest_start_is_last_that_slow_count_finds(schedule: str, passed: float):
    times, now = (
        Times(parse(schedule), UTC),
        START + timedelta(seconds=round(passed * PERIODS[schedule])),
    )
    slow, upcoming = None, times.after(START)
    while upcoming is not None and upcoming <= now:
        slow, upcoming = upcoming, times.after(upcoming)
    assert latest_start(scheduled(schedule), times, now, heed_deadline=True).due == slow
    last = scheduled(schedule, slow)
    assert upcoming is not None
    assert next_start(last, times, now) == upcoming


def test_cronjob_before_first_start_has_nothing_due():
    times = Times(parse("0 * * * *"), UTC)
    assert latest_start(scheduled("0 * * * *"), times, START, heed_deadline=True) == Latest(START)


def test_schedule_that_is_never_due_makes_no_sense():
    with pytest.raises(ScheduleError):
        latest_start(scheduled(""), Times(parse("0 0 31 2 *"), UTC), START, heed_deadline=True)
