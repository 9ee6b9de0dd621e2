"""The state of a Job that one sync goes by, as it was observed when the sync began. Pure
functions."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import format_time
from kubepy.api.meta import uid_of
from kubepy.api.objects.pods import is_pod_active, is_pod_terminating, phase_of
from kubepy.controllers.conditions import conditions_of
from kubepy.controllers.job.backoff import BackoffRecord, finish_time, new_backoff_record
from kubepy.controllers.job.indexes import (
    Indexes,
    completion_index,
    index_absolute_failure_count,
    index_failure_count,
    indexes_of,
    parse_indexes,
)
from kubepy.controllers.job.pods import (
    has_backoff_limit_per_index,
    has_tracking_finalizer,
    is_indexed,
)
from kubepy.controllers.job.policies import is_pod_failed, match_pod_failure_policy

if TYPE_CHECKING:
    from kubepy.api.typed import Job, Pod
    from kubepy.runtime.reconcile import Key

SUCCESS_CRITERIA_MET, FAILURE_TARGET = (
    "SuccessCriteriaMet",
    "FailureTarget",
)  # conditions while pods still run
FINAL = {SUCCESS_CRITERIA_MET: "Complete", FAILURE_TARGET: "Failed"}
Uids = Mapping[str, Sequence[str]]  # of pods, by "succeeded" and "failed"


class JobState(NamedTuple):
    """Everything that :mod:`~kubepy.controllers.job.decide` decides by. Nobody changes it.

    New are the pods that have ended and are in no count yet.
    """

    key: Key
    job: Job  # its status has a startTime, unless it is suspended
    observed: Job  # as the informers have it
    pods: Sequence[Pod]  # that it controls
    active_pods: list[Pod]
    uncounted: Uids  # that have ended and are in no count, though their finalizer may be gone
    new_succeeded: Sequence[Pod]
    new_failed: Sequence[Pod]
    completed: Indexes
    failed_indexes: Indexes  # matter only with a limit for each index
    backoff: BackoffRecord  # with the new pods
    now: datetime
    room: int = sys.maxsize  # how many pods may be created at most

    @property
    def failed(self) -> int:
        counted = sum(match_pod_failure_policy(self.job, pod).counts for pod in self.new_failed)
        return (
            (self.job.get("status") or {}).get("failed", 0)
            + counted
            + len(self.uncounted["failed"])
        )

    @property
    def succeeded(self) -> int:
        if is_indexed(self.job):
            return len(self.completed)
        return (
            (self.job.get("status") or {}).get("succeeded", 0)
            + len(self.new_succeeded)
            + len(self.uncounted["succeeded"])
        )

    @property
    def terminating(self) -> int:
        return sum(map(is_pod_terminating, self.pods))

    def pods_awaiting_replacement(self) -> dict[int, Pod]:
        """Return the last failed pod of each index that is to have another one, which takes over
        its failures."""
        if not has_backoff_limit_per_index(self.job):
            return {}
        settled = self.completed | self.failed_indexes | indexes_of(self.active_pods)
        failed = [
            pod
            for pod in self.pods
            if has_tracking_finalizer(pod)
            and has_valid_index(self.job, pod)
            and is_pod_failed(pod, self.job)
        ]
        last: dict[int, Pod] = {}
        for pod in sorted(
            failed, key=lambda pod: (index_absolute_failure_count(pod), finish_time(pod))
        ):
            index = completion_index(pod)
            if index is not None and index not in settled:
                last[index] = pod

        return last


def new_job_state(
    key: Key, job: Job, pods: Sequence[Pod], backoff: BackoffRecord, now: datetime
) -> JobState:
    """Return the state of a Job with these pods; ``backoff`` is the record of the pods that were
    counted before."""
    observed = job
    status = job.get("status") or {}
    if not status.get("startTime") and not is_suspended(job):
        job = {**job, "status": {**status, "startTime": format_time(now)}}
    uids = status.get("uncountedTerminatedPods") or {}
    succeeded_uids = list(uids.get("succeeded") or ())
    failed_uids = list(uids.get("failed") or ())
    tracked = [pod for pod in pods if has_tracking_finalizer(pod) and has_valid_index(job, pod)]
    new_succeeded = [
        pod for pod in tracked if phase_of(pod) == "Succeeded" and uid_of(pod) not in succeeded_uids
    ]
    new_failed = [
        pod for pod in tracked if is_pod_failed(pod, job) and uid_of(pod) not in failed_uids
    ]
    completed: Indexes = set()
    failed_indexes: Indexes = set()
    if is_indexed(job):
        completions = job["spec"]["completions"]
        completed = parse_indexes(status.get("completedIndexes", ""), completions) | indexes_of(
            new_succeeded
        )
        if has_backoff_limit_per_index(job):
            failed_indexes = parse_indexes(status.get("failedIndexes") or "", completions)
            failed_indexes |= indexes_of(pod for pod in new_failed if is_index_failed(job, pod))

    return JobState(
        key,
        job,
        observed,
        pods,
        [pod for pod in pods if is_pod_active(pod)],
        {"succeeded": succeeded_uids, "failed": failed_uids},
        new_succeeded,
        new_failed,
        completed,
        failed_indexes,
        new_backoff_record(backoff, new_succeeded, new_failed),
        now,
    )


def has_valid_index(job: Job, pod: Pod) -> bool:
    """Return whether the pod is for one of the Job's indexes, if that has any."""
    index = completion_index(pod)
    if not is_indexed(job):
        return True
    if index is None:
        return False
    return index < job["spec"]["completions"]


def is_index_failed(job: Job, pod: Pod) -> bool:
    """Return whether no pod is made any more in place of this failed one (``isIndexFailed``)."""
    match = match_pod_failure_policy(job, pod)
    if match.action == "FailIndex":
        return True
    if not match.counts:
        return False
    return index_failure_count(pod) >= job["spec"]["backoffLimitPerIndex"]


def is_finished(job: Job) -> bool:
    return any(
        condition["type"] in FINAL.values() and condition["status"] == "True"
        for condition in conditions_of(job)
    )


def is_suspended(job: Job) -> bool:
    return bool(job["spec"].get("suspend"))
