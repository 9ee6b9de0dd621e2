"""What a Job's failure and success policies say (``pod_failure_policy.go``, ``success_policy.go``). Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.api.objects.pods import phase_of
from kubepy.controllers.job.indexes import Indexes, parse_indexes


class Failure(NamedTuple):
    """How a failed pod is to be taken. ``action``: the matching rule's, "" for none; ``message``: of one that fails
    the whole Job."""

    counts: bool = True
    action: str = ""
    message: str = ""


def only_replaces_failed(job: Object) -> bool:
    """Whether a terminating pod is replaced only when it has ended (``onlyReplaceFailedPods``)."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


def is_failed(pod: Object, job: Object) -> bool:
    """Whether a pod counts as failed; one that is being deleted does, where it is replaced at once."""
    if phase_of(pod) == "Failed":
        return True
    if only_replaces_failed(job):
        return False
    return bool(pod["metadata"].get("deletionTimestamp")) and phase_of(pod) != "Succeeded"


def judge_failure(job: Object, pod: Object) -> Failure:
    """What the first rule that a failed pod matches makes of it (``matchPodFailurePolicy``)."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or []
    for position, rule in enumerate(rules):
        why = _match(rule, pod)
        if not why:
            continue
        if rule["action"] == "FailJob":
            return Failure(action="FailJob", message=f"{why} matching FailJob rule at index {position}")
        return Failure(counts=rule["action"] != "Ignore", action=rule["action"])
    return Failure()


def _match(rule: Object, pod: Object) -> str:
    """How the pod matches the rule, in words; "" if it does not."""
    where, status = f"{namespace_of(pod)}/{name_of(pod)}", pod.get("status") or {}
    if rule.get("onExitCodes") is not None:
        statuses = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
        found = _exited(statuses, rule["onExitCodes"])
        return f"Container {found[0]} for pod {where} failed with exit code {found[1]}" if found else ""
    patterns = {(one["type"], one.get("status")) for one in rule.get("onPodConditions") or []}
    matching = [one["type"] for one in status.get("conditions") or [] if (one["type"], one.get("status")) in patterns]
    return f"Pod {where} has condition {matching[0]}" if matching else ""


def _exited(statuses: Iterable[Object], requirement: Object) -> tuple[str, int] | None:
    """Name and exit code of the first container that failed as required."""
    for status in statuses:
        code = (status.get("state", {}).get("terminated") or {}).get("exitCode", 0)
        if not code or requirement.get("containerName") not in (None, status["name"]):
            continue
        if (code in requirement["values"]) == (requirement["operator"] == "In"):
            return status["name"], code
    return None


def success_rule(job: Object, succeeded: Indexes) -> int | None:
    """The position of the first rule of the success policy that is met, if there is one (``matchSuccessPolicy``)."""
    rules = (job["spec"].get("successPolicy") or {}).get("rules") or []
    for position, rule in enumerate(rules if succeeded else []):
        if _is_met(rule, succeeded, job["spec"]["completions"]):
            return position
    return None


def _is_met(rule: Object, succeeded: Indexes, completions: int) -> bool:
    count = rule.get("succeededCount")
    if rule.get("succeededIndexes") is None:
        return count is not None and len(succeeded) >= count
    required = parse_indexes(rule["succeededIndexes"], completions)
    return bool(required) and (required <= succeeded or (count is not None and len(required & succeeded) >= count))
