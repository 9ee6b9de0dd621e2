"""Whether a Job ends, and how: a pure decision over what one look at it has found (``syncJob``)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from kubepy.api.clock import format_time, later, parse_time
from kubepy.api.meta import Object
from kubepy.api.objects.pods import phase_of
from kubepy.controllers.conditions import find_condition
from kubepy.controllers.job.indexes import Indexes
from kubepy.controllers.job.pods import has_limit_per_index, is_indexed
from kubepy.controllers.job.policies import is_failed, judge_failure, success_rule

SUCCESS, FAILURE = "SuccessCriteriaMet", "FailureTarget"  # what is said while pods still run
FINAL = {SUCCESS: "Complete", FAILURE: "Failed"}


class Ending(NamedTuple):
    """Why a Job ends. ``kind`` is SUCCESS or FAILURE."""

    kind: str
    reason: str
    message: str


class Facts(NamedTuple):
    """``failed`` counts pods; ``failed_indexes`` matter only with a limit for each index."""

    job: Object
    pods: list[Object]
    failed: int
    succeeded_indexes: Indexes
    failed_indexes: Indexes
    now: datetime


COMPLETED = Ending(SUCCESS, "CompletionsReached", "Reached expected number of succeeded pods")


def is_finished(job: Object) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(one["type"] in FINAL.values() and one["status"] == "True" for one in conditions)


def is_suspended(job: Object) -> bool:
    return bool(job["spec"].get("suspend"))


def find_ending(facts: Facts) -> Ending | None:
    """What was said already comes first, then failures, then the success policy."""
    return (_announced(facts.job) or _policy_failure(facts) or _limit_failure(facts) or _index_failure(facts)
            or _policy_success(facts))


def _announced(job: Object) -> Ending | None:
    for kind in (SUCCESS, FAILURE):
        found = find_condition((job.get("status") or {}).get("conditions"), kind)
        if found is not None and found["status"] == "True":
            return Ending(kind, found.get("reason", ""), found.get("message", ""))
    return None


def _policy_failure(facts: Facts) -> Ending | None:
    if facts.job["spec"].get("podFailurePolicy") is None:
        return None
    for pod in facts.pods:
        if is_failed(pod, facts.job) and (message := judge_failure(facts.job, pod).message):
            return Ending(FAILURE, "PodFailurePolicy", message)
    return None


def _limit_failure(facts: Facts) -> Ending | None:
    limit = facts.job["spec"]["backoffLimit"]
    if facts.failed > limit or _restarted_too_often(facts.job, facts.pods, limit):
        return Ending(FAILURE, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    due = deadline(facts.job)
    if due is not None and due <= facts.now:
        return Ending(FAILURE, "DeadlineExceeded", "Job was active longer than specified deadline")
    return None


def deadline(job: Object) -> datetime | None:
    """When the Job must have ended; None for one without a deadline, or that does not run."""
    seconds, started = job["spec"].get("activeDeadlineSeconds"), (job.get("status") or {}).get("startTime")
    if seconds is None or not started or is_suspended(job):
        return None
    return later(parse_time(started), seconds)


def _restarted_too_often(job: Object, pods: Iterable[Object], limit: int) -> bool:
    """``pastBackoffLimitOnFailure``: pods that restart in place never fail, so their restarts count."""
    if job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts: int = sum(
        one.get("restartCount", 0)
        for pod in pods if phase_of(pod) in ("Running", "Pending")
        for field in ("initContainerStatuses", "containerStatuses") for one in pod["status"].get(field) or ())
    return restarts >= limit if limit else restarts > 0


def _index_failure(facts: Facts) -> Ending | None:
    if not is_indexed(facts.job) or not has_limit_per_index(facts.job):
        return None
    spec, failed = facts.job["spec"], len(facts.failed_indexes)
    most = spec.get("maxFailedIndexes")
    if most is not None and failed > most:
        return Ending(FAILURE, "MaxFailedIndexesExceeded",
                      "Job has exceeded the specified maximal number of failed indexes")
    if failed and failed + len(facts.succeeded_indexes) >= spec["completions"]:
        return Ending(FAILURE, "FailedIndexes", "Job has failed indexes")
    return None


def _policy_success(facts: Facts) -> Ending | None:
    rule = success_rule(facts.job, facts.succeeded_indexes) if is_indexed(facts.job) else None
    return None if rule is None else Ending(SUCCESS, "SuccessPolicy", f"Matched rules at index {rule}")


def condition(kind: str, verdict: str, reason: str, message: str, now: datetime) -> Object:
    time = format_time(now)
    return {"type": kind, "status": verdict, "reason": reason, "message": message,
            "lastProbeTime": time, "lastTransitionTime": time}


def with_job_condition(conditions: list[Object], new: Object) -> list[Object]:
    """The conditions with this one in its place (``ensureJobConditionStatus``): one that says the same stays as it
    was, and one that is not there is not added to say no."""
    said = ("status", "reason", "message")
    for index, one in enumerate(conditions):
        if one["type"] == new["type"]:
            same = all(one.get(field, "") == new[field] for field in said)
            return conditions if same else [*conditions[:index], new, *conditions[index + 1:]]
    return [*conditions, new] if new["status"] != "False" else conditions
