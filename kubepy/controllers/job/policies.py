"""The failure and success policies of a Job (``pod_failure_policy.go``, ``success_policy.go``).
Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import name_of, namespace_of
from kubepy.api.objects.pods import phase_of
from kubepy.controllers.job.indexes import Indexes, parse_indexes

if TYPE_CHECKING:
    from kubepy.api.typed import (
        ContainerStatus,
        Job,
        Pod,
        PodFailurePolicyOnExitCodesRequirement,
        PodFailurePolicyRule,
        SuccessPolicyRule,
    )


class FailureMatch(NamedTuple):
    """The failure policy's word on a failed pod. ``action``: the matching rule's, "" for none;
    ``message``: of a pod that fails the whole Job."""

    counts: bool = True
    action: str = ""
    message: str = ""


def only_replaces_failed_pods(job: Job) -> bool:
    """Return whether a terminating pod is replaced only when it has ended
    (``onlyReplaceFailedPods``)."""
    spec = job["spec"]
    if spec.get("podReplacementPolicy") == "Failed":
        return True
    return spec.get("podFailurePolicy") is not None


def is_pod_failed(pod: Pod, job: Job) -> bool:
    """Return whether a pod counts as failed; one that is being deleted does, where it is replaced
    at once."""
    if phase_of(pod) == "Failed":
        return True
    if only_replaces_failed_pods(job):
        return False
    if not pod["metadata"].get("deletionTimestamp"):
        return False
    return phase_of(pod) != "Succeeded"


def match_pod_failure_policy(job: Job, pod: Pod) -> FailureMatch:
    """Return the outcome of the first rule that a failed pod matches
    (``matchPodFailurePolicy``)."""
    for position, rule in enumerate((job["spec"].get("podFailurePolicy") or {}).get("rules") or []):
        reason = _match(rule, pod)
        if not reason:
            continue
        if rule["action"] == "FailJob":
            return FailureMatch(
                action="FailJob", message=f"{reason} matching FailJob rule at index {position}"
            )
        return FailureMatch(counts=rule["action"] != "Ignore", action=rule["action"])
    return FailureMatch()


def _match(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """Return how the pod matches the rule, in words; "" if it does not."""
    pod_name = f"{namespace_of(pod)}/{name_of(pod)}"
    status = pod.get("status") or {}
    if rule.get("onExitCodes") is not None:
        statuses = [
            *(status.get("containerStatuses") or []),
            *(status.get("initContainerStatuses") or []),
        ]
        container, code = _first_failed_container(statuses, rule["onExitCodes"])
        if code:
            return f"Container {container} for pod {pod_name} failed with exit code {code}"
        return ""

    patterns = {
        (pattern["type"], pattern.get("status")) for pattern in rule.get("onPodConditions") or []
    }
    matching = [
        condition["type"]
        for condition in status.get("conditions") or []
        if (condition["type"], condition.get("status")) in patterns
    ]
    if matching:
        return f"Pod {pod_name} has condition {matching[0]}"
    return ""


def _first_failed_container(
    statuses: Iterable[ContainerStatus], requirement: PodFailurePolicyOnExitCodesRequirement
) -> tuple[str, int]:
    """Return name and exit code of the first container that failed as required; the code is 0
    without one."""
    for status in statuses:
        code = ((status.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
        if not code or requirement.get("containerName") not in (None, status["name"]):
            continue
        if (code in requirement["values"]) == (requirement["operator"] == "In"):
            return status["name"], code
    return "", 0


def match_success_policy(job: Job, succeeded: Indexes) -> int | None:
    """Return the position of the first rule of the success policy that is met, if any
    (``matchSuccessPolicy``)."""
    if not succeeded:
        return None
    policy = job["spec"].get("successPolicy") or {}
    for position, rule in enumerate(policy.get("rules") or []):
        if _is_met(rule, succeeded, job["spec"]["completions"]):
            return position
    return None


def _is_met(rule: SuccessPolicyRule, succeeded: Indexes, completions: int) -> bool:
    count = rule.get("succeededCount")
    if rule.get("succeededIndexes") is None:
        return count is not None and len(succeeded) >= count
    required = parse_indexes(rule["succeededIndexes"], completions)
    if not required:
        return False
    if required <= succeeded:
        return True
    return count is not None and len(required & succeeded) >= count
