"""The status of a Job: pods are counted once, and the end is announced
(``trackJobStatusAndRemoveFinalizers``).

Upstream writes the pods that it is about to count into ``status.uncountedTerminatedPods`` first,
because a crash between taking off their finalizers and counting them would lose them. Here both
happen in one transaction, so that only pods whose finalizer could not be taken off wait there. Pure
functions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api.clock import format_time
from kubepy.api.meta import Object, is_being_deleted, uid_of
from kubepy.api.objects.pods import is_pod_ready, phase_of
from kubepy.controllers.conditions import conditions_of, ensure_job_condition, new_job_condition
from kubepy.controllers.job.decide import Ending
from kubepy.controllers.job.indexes import format_indexes
from kubepy.controllers.job.pods import (
    has_backoff_limit_per_index,
    has_tracking_finalizer,
    is_indexed,
)
from kubepy.controllers.job.policies import is_pod_failed, match_pod_failure_policy
from kubepy.controllers.job.state import (
    FINAL,
    SUCCESS_CRITERIA_MET,
    JobState,
    Uids,
    has_valid_index,
    is_suspended,
)

if TYPE_CHECKING:
    from kubepy.api.typed import Job, JobStatus, Pod


class JobOutcome(NamedTuple):
    """The numbers of pods after the sync's creations and deletions, and the uids of those without
    finalizer by now."""

    active: int
    ready: int
    terminating: int
    released: frozenset[str] = frozenset()


def first_outcome(state: JobState) -> JobOutcome:
    """Return the numbers before anything was done."""
    return JobOutcome(
        len(state.active_pods), sum(map(is_pod_ready, state.active_pods)), state.terminating
    )


class Tracking(NamedTuple):
    """The pods whose finalizer may go, and the uids of all that are to be counted."""

    done: Sequence[Pod]
    uncounted: Uids


class JobEvent(NamedTuple):
    event_type: str
    reason: str
    message: str


def suspension_event(state: JobState) -> JobEvent | None:
    """Return the event of a Job that has been suspended or resumed since its status was written."""
    before = conditions_of(state.job)
    if ensure_job_condition(before, _suspended_condition(state)) == before:
        return None
    return JobEvent(
        "Normal",
        *(
            ("Suspended", "Job suspended")
            if is_suspended(state.job)
            else ("Resumed", "Job resumed")
        ),
    )


def with_suspension(state: JobState) -> JobStatus:
    """Return the status with the Suspended condition; a Job's time begins again when it is
    resumed."""
    status = cast(Object, dict(state.job.get("status") or {}))
    if suspension_event(state) is not None:
        status["conditions"] = ensure_job_condition(
            conditions_of(state.job), _suspended_condition(state)
        )
        status.pop("startTime", None)
        if not is_suspended(state.job):
            status["startTime"] = format_time(state.now)
    return cast("JobStatus", status)


def _suspended_condition(state: JobState) -> Object:
    if is_suspended(state.job):
        return new_job_condition("Suspended", "True", "JobSuspended", "Job suspended", state.now)
    return new_job_condition("Suspended", "False", "JobResumed", "Job resumed", state.now)


# --- counting -------------------------------------------------------------------------------------


def track(state: JobState, outcome: JobOutcome, ending: Ending | None) -> Tracking:
    """Return the pods that have ended and need not be looked at again (``canRemoveFinalizer``), to
    be counted once."""
    job = state.job
    awaiting = {uid_of(pod) for pod in state.pods_awaiting_replacement().values()}
    ends = is_being_deleted(job) or ending is not None
    done = [
        pod
        for pod in state.pods
        if has_tracking_finalizer(pod)
        and uid_of(pod) not in outcome.released
        and (
            ends
            or phase_of(pod) == "Succeeded"
            or (is_pod_failed(pod, job) and uid_of(pod) not in awaiting)
        )
    ]
    succeeded = list(state.uncounted["succeeded"])
    failed = list(state.uncounted["failed"])
    is_failing = (
        ending is not None and ending.condition_type != SUCCESS_CRITERIA_MET
    )  # then every pod counts as failed
    for pod in done:
        uid = uid_of(pod)
        if uid in failed:
            continue
        if phase_of(pod) == "Succeeded":
            if not is_indexed(job) and uid not in succeeded:
                succeeded.append(uid)
        elif (
            (is_failing or is_pod_failed(pod, job))
            and has_valid_index(job, pod)
            and match_pod_failure_policy(job, pod).counts
        ):
            failed.append(uid)

    return Tracking(done, {"succeeded": succeeded, "failed": failed})


def still_uncounted(state: JobState, tracking: Tracking, released: Collection[str]) -> Uids:
    """Return the uids that cannot be counted yet, as their pods still bear the finalizer."""
    tracked = {
        uid_of(pod)
        for pod in state.pods
        if has_tracking_finalizer(pod) and uid_of(pod) not in released
    }
    return {
        outcome: [uid for uid in uids if uid in tracked]
        for outcome, uids in tracking.uncounted.items()
    }


def new_status(
    state: JobState, status: JobStatus, outcome: JobOutcome, tracking: Tracking
) -> JobStatus:
    """Return ``status`` with all counts (of a Job that goes on, or whose end could not be brought
    about)."""
    counted = cast(
        Object,
        {
            **status,
            "active": outcome.active,
            "ready": outcome.ready,
            "terminating": outcome.terminating,
        },
    )
    uncounted = still_uncounted(state, tracking, outcome.released)
    for name, uids in tracking.uncounted.items():
        counted[name] = counted.get(name, 0) + len(uids) - len(uncounted[name])
    counted["uncountedTerminatedPods"] = {name: uids for name, uids in uncounted.items() if uids}
    if is_indexed(state.job):
        counted["succeeded"] = len(state.completed)
        counted["completedIndexes"] = format_indexes(state.completed)
    if has_backoff_limit_per_index(state.job):
        counted["failedIndexes"] = format_indexes(state.failed_indexes)
    for field in ("active", "succeeded", "failed", "completedIndexes", "conditions"):
        if not counted.get(field):
            counted.pop(field, None)
    return cast("JobStatus", counted)


# --- the end --------------------------------------------------------------------------------------


def with_ending(state: JobState, status: JobStatus, ending: Ending) -> JobStatus:
    """Return a counted status with the announcement of the end, and the end itself once no pod is
    left running."""
    changed: Object = {**status}
    announced = new_job_condition(
        ending.condition_type, "True", ending.reason, ending.message, state.now
    )
    changed["conditions"] = ensure_job_condition(changed.get("conditions") or [], announced)
    if is_ended(status):
        final = new_job_condition(
            FINAL[ending.condition_type], "True", ending.reason, ending.message, state.now
        )
        changed["conditions"] = ensure_job_condition(changed["conditions"], final)
        if ending.condition_type == SUCCESS_CRITERIA_MET:
            changed["completionTime"] = format_time(state.now)
    return cast("JobStatus", changed)


def is_ended(status: JobStatus) -> bool:
    """Return whether every pod of a Job that ends has been counted and none is terminating."""
    if status.get("uncountedTerminatedPods"):
        return False
    return status.get("terminating", 0) == 0


def ending_events(job: Job, status: JobStatus, ending: Ending) -> list[JobEvent]:
    """Return the events of a Job that has ended."""
    if ending.condition_type != SUCCESS_CRITERIA_MET:
        return [JobEvent("Warning", ending.reason, ending.message)]
    events = [JobEvent("Normal", "Completed", "Job completed")]
    completions = job["spec"].get("completions")
    if completions is not None and status.get("succeeded", 0) > completions:
        message = "Too many succeeded pods running after completion count reached"
        events.insert(0, JobEvent("Warning", "TooManySucceededPods", message))
    return events
