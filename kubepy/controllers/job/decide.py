"""The decision of one sync of a Job: whether it ends, and the pods to create or delete
(``syncJob``, ``manageJob``).

Pure functions of a :class:`~kubepy.controllers.job.state.JobState`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import later, parse_time
from kubepy.api.meta import is_being_deleted
from kubepy.api.objects.pods import is_pod_terminating, phase_of
from kubepy.controllers.conditions import conditions_of, find_condition
from kubepy.controllers.job.backoff import BackoffRecord, finish_time, remaining_delay
from kubepy.controllers.job.indexes import (
    first_pending_indexes,
    index_absolute_failure_count,
    indexes_of,
)
from kubepy.controllers.job.pods import (
    active_pods_for_removal,
    for_index,
    has_backoff_limit_per_index,
    is_indexed,
    new_pod,
)
from kubepy.controllers.job.policies import (
    is_pod_failed,
    match_pod_failure_policy,
    match_success_policy,
    only_replaces_failed_pods,
)
from kubepy.controllers.job.state import (
    FAILURE_TARGET,
    SUCCESS_CRITERIA_MET,
    JobState,
    is_suspended,
)

if TYPE_CHECKING:
    from kubepy.api.typed import Job, Pod

MAX_PODS_PER_SYNC = 500  # that are created or deleted


class Ending(NamedTuple):
    """The end of a Job. ``condition_type`` is SUCCESS_CRITERIA_MET or FAILURE_TARGET."""

    condition_type: str
    reason: str
    message: str


COMPLETED = Ending(
    SUCCESS_CRITERIA_MET, "CompletionsReached", "Reached expected number of succeeded pods"
)


class JobActions(NamedTuple):
    """The pods to create or to delete, never both. ``requeue_after``: seconds until the next look,
    if any.

    ``release``: the pods' finalizers are taken off first, so that they are not counted as failed.
    """

    ending: Ending | None = None
    create: Sequence[Pod] = ()
    delete: Sequence[Pod] = ()
    release: bool = False
    requeue_after: float | None = None


def decide(state: JobState) -> JobActions:
    """Delete the active pods of a Job that ends; otherwise create and delete pods as it needs
    them."""
    ending = find_ending(state)
    if ending is not None:
        return JobActions(ending, delete=state.active_pods)
    actions = JobActions() if is_being_deleted(state.job) else manage(state)
    due = active_deadline(state.job)
    if due is not None:
        seconds = (due - state.now).total_seconds()
        actions = actions._replace(requeue_after=min(seconds, actions.requeue_after or seconds))
    return actions


# --- pods -----------------------------------------------------------------------------------------


def manage(state: JobState) -> JobActions:
    """Decide about the pods of a Job that goes on (``manageJob``)."""
    if is_suspended(state.job):
        return JobActions(delete=state.active_pods, release=True)
    active = len(state.active_pods)
    wanted = wanted_active_pods(state)
    surplus = active_pods_for_removal(state.job, state.active_pods, max(active - wanted, 0))
    if surplus:
        return JobActions(delete=surplus[:MAX_PODS_PER_SYNC], release=True)
    missing = wanted - active - (state.terminating if only_replaces_failed_pods(state.job) else 0)
    if missing > 0:
        return create_pods(state, min(missing, MAX_PODS_PER_SYNC, state.room))
    return JobActions()


def wanted_active_pods(state: JobState) -> int:
    """Return how many pods should be active: never more than are left to succeed."""
    spec = state.job["spec"]
    completions = spec.get("completions")
    if completions is None:
        if state.succeeded > 0:
            return len(state.active_pods)
        return spec["parallelism"]
    return max(min(completions - state.succeeded, spec["parallelism"]), 0)


def create_pods(state: JobState, count: int) -> JobActions:
    """Create pods, unless those that failed did so too short a time ago."""
    if not has_backoff_limit_per_index(state.job) and (
        delay := remaining_delay(state.backoff, state.now)
    ):
        return JobActions(requeue_after=delay)

    pod = new_pod(state.job)
    if not is_indexed(state.job):
        return JobActions(create=[pod] * count)
    taken = state.completed | state.failed_indexes | indexes_of(state.active_pods)
    if only_replaces_failed_pods(state.job):
        taken |= indexes_of(filter(is_pod_terminating, state.pods))
    pending = first_pending_indexes(taken, count, state.job["spec"]["completions"])
    replaced = state.pods_awaiting_replacement()
    delays = dict.fromkeys(pending, 0.0)
    for index in delays.keys() & replaced.keys():  # failures of an index count apart
        failures = index_absolute_failure_count(replaced[index]) + 1
        delays[index] = remaining_delay(
            BackoffRecord(failures, finish_time(replaced[index])), state.now
        )

    due = [index for index in pending if not delays[index]]
    return JobActions(
        create=[for_index(state.job, pod, index, replaced.get(index)) for index in due],
        requeue_after=min(delays.values()) if pending and not due else None,
    )


# --- the end --------------------------------------------------------------------------------------


def find_ending(state: JobState) -> Ending | None:
    """Return the end of the Job, if it ends: one that is announced first, then failures, then the
    success policy."""
    for condition_type in (SUCCESS_CRITERIA_MET, FAILURE_TARGET):
        condition = find_condition(conditions_of(state.job), condition_type)
        if condition is not None and condition["status"] == "True":
            return Ending(condition_type, condition.get("reason", ""), condition.get("message", ""))
    ending = _failure_by_policy(state) or _failure_by_limit(state) or _failure_by_indexes(state)
    if ending is None and is_indexed(state.job):
        rule = match_success_policy(state.job, state.completed)
        if rule is not None:
            ending = Ending(SUCCESS_CRITERIA_MET, "SuccessPolicy", f"Matched rules at index {rule}")
    return ending


def is_complete(state: JobState, active: int) -> bool:
    """Return whether enough pods have succeeded and none is active any more."""
    completions = state.job["spec"].get("completions")
    needed = 1 if completions is None else completions
    return active == 0 and state.succeeded >= needed


def active_deadline(job: Job) -> datetime | None:
    """Return the time at which the Job must have ended; None for one without a deadline, or that
    does not run."""
    seconds = job["spec"].get("activeDeadlineSeconds")
    started = (job.get("status") or {}).get("startTime")
    if seconds is None or not started or is_suspended(job):
        return None
    return later(parse_time(started), seconds)


def _failure_by_policy(state: JobState) -> Ending | None:
    if state.job["spec"].get("podFailurePolicy") is None:
        return None
    for pod in state.pods:
        if is_pod_failed(pod, state.job) and (
            message := match_pod_failure_policy(state.job, pod).message
        ):
            return Ending(FAILURE_TARGET, "PodFailurePolicy", message)
    return None


def _failure_by_limit(state: JobState) -> Ending | None:
    if state.failed > state.job["spec"]["backoffLimit"] or past_backoff_limit_on_failure(state):
        return Ending(
            FAILURE_TARGET, "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        )
    due = active_deadline(state.job)
    if due is not None and due <= state.now:
        return Ending(
            FAILURE_TARGET, "DeadlineExceeded", "Job was active longer than specified deadline"
        )
    return None


def past_backoff_limit_on_failure(state: JobState) -> bool:
    """Return whether pods that restart in place, and so never fail, have restarted too often."""
    if state.job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts: int = sum(
        container.get("restartCount", 0)
        for pod in state.pods
        if phase_of(pod) in ("Running", "Pending")
        for container in [
            *(pod["status"].get("initContainerStatuses") or ()),
            *(pod["status"].get("containerStatuses") or ()),
        ]
    )
    limit: int = state.job["spec"]["backoffLimit"]
    if limit:
        return restarts >= limit
    return restarts > 0


def _failure_by_indexes(state: JobState) -> Ending | None:
    if not is_indexed(state.job) or not has_backoff_limit_per_index(state.job):
        return None
    spec = state.job["spec"]
    failed = len(state.failed_indexes)
    max_failed_indexes = spec.get("maxFailedIndexes")
    if max_failed_indexes is not None and failed > max_failed_indexes:
        return Ending(
            FAILURE_TARGET,
            "MaxFailedIndexesExceeded",
            "Job has exceeded the specified maximal number of failed indexes",
        )
    if failed and failed + len(state.completed) >= spec["completions"]:
        return Ending(FAILURE_TARGET, "FailedIndexes", "Job has failed indexes")
    return None
