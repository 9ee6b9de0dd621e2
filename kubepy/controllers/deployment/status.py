"""What a Deployment's status says, and whether it makes progress. Pure functions (``sync.go``, ``progress.go``)."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.clock import format_time, later, parse_optional_time
from kubepy.api.meta import Object, name_of
from kubepy.controllers.conditions import Conditions, find_condition, with_condition, without_condition
from kubepy.controllers.deployment.sizes import ReplicaSets, count, max_unavailable, replicas, total

PROGRESSING = "Progressing"
NO_DEADLINE = 2**31 - 1


def condition(kind: str, status: str, reason: str, message: str, now: datetime) -> Object:
    time = format_time(now)
    return {"type": kind, "status": status, "reason": reason, "message": message,
            "lastUpdateTime": time, "lastTransitionTime": time}


def has_progress_deadline(deployment: Object) -> bool:
    return bool(deployment["spec"].get("progressDeadlineSeconds", NO_DEADLINE) != NO_DEADLINE)


def progressing_condition(deployment: Object) -> Object | None:
    return find_condition((deployment.get("status") or {}).get("conditions"), PROGRESSING)


def counted_status(deployment: Object, new: Object | None, old: ReplicaSets, now: datetime) -> Object:
    """The counts, and whether enough replicas are available (``calculateStatus``).

    As the API writes it: counts only when they are not 0, but terminatingReplicas always.
    """
    everything = [*old, *([new] if new is not None else [])]
    before = deployment.get("status") or {}
    available = _sum(everything, "availableReplicas")
    counts = {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": _sum(everything, "replicas"),
        "updatedReplicas": count(new, "replicas") if new is not None else 0,
        "readyReplicas": _sum(everything, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total(everything) - available),
    }
    status: Object = {name: value for name, value in counts.items() if value}
    if (terminating := _terminating(everything)) is not None:
        status["terminatingReplicas"] = terminating
    if "collisionCount" in before:
        status["collisionCount"] = before["collisionCount"]
    status["conditions"] = with_condition(before.get("conditions"), _availability(deployment, available, now))
    return status


def _sum(replica_sets: ReplicaSets, field: str) -> int:
    return sum(count(one, field) for one in replica_sets)


def _terminating(replica_sets: ReplicaSets) -> int | None:
    """None when a ReplicaSet that has been looked at does not tell."""
    found = [one.get("status") or {} for one in replica_sets]
    told = [one for one in found if one.get("observedGeneration") or "terminatingReplicas" in one]
    if any("terminatingReplicas" not in one for one in told):
        return None
    return sum(int(one["terminatingReplicas"]) for one in told)


def _availability(deployment: Object, available: int, now: datetime) -> Object:
    if available >= replicas(deployment) - max_unavailable(deployment):
        return condition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now)
    return condition("Available", "False", "MinimumReplicasUnavailable",
                     "Deployment does not have minimum availability.", now)


def is_complete(deployment: Object, status: Object) -> bool:
    """``DeploymentComplete``."""
    wanted = replicas(deployment)
    return (all(status.get(name, 0) == wanted for name in ("updatedReplicas", "replicas", "availableReplicas"))
            and status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0))


def is_progressing(deployment: Object, status: Object) -> bool:
    """Whether the status shows progress over the one before (``DeploymentProgressing``)."""
    before = deployment.get("status") or {}
    old_before = before.get("replicas", 0) - before.get("updatedReplicas", 0)
    old_now = status.get("replicas", 0) - status.get("updatedReplicas", 0)
    return old_now < old_before or any(
        status.get(name, 0) > before.get(name, 0) for name in ("updatedReplicas", "readyReplicas", "availableReplicas"))


def is_timed_out(deployment: Object, status: Object, now: datetime) -> bool:
    current = find_condition(status.get("conditions"), PROGRESSING)
    if current is None or current.get("reason") == "NewReplicaSetAvailable":
        return False
    return deadline(deployment, current) < now


def deadline(deployment: Object, current: Object) -> datetime:
    """When a rollout whose last progress is ``current`` counts as stuck; a condition without a time is long overdue."""
    seconds = deployment["spec"]["progressDeadlineSeconds"]
    return later(parse_optional_time(current.get("lastUpdateTime")), seconds)


def rollout_status(deployment: Object, new: Object | None, old: ReplicaSets, now: datetime) -> Object:
    """The status of a Deployment that is rolling out: counts, progress, failures (``syncRolloutStatus``)."""
    status = counted_status(deployment, new, old, now)
    current = progressing_condition(deployment)
    if not has_progress_deadline(deployment):
        status["conditions"] = without_condition(status["conditions"], PROGRESSING)
    elif not _is_settled(status, current):
        status["conditions"] = _progress(deployment, new, status, current, now)
    failure = _replica_failure(new, old)
    if failure is not None:
        status["conditions"] = with_condition(status["conditions"], failure)
    else:
        status["conditions"] = without_condition(status["conditions"], "ReplicaFailure")
    return status


def _is_settled(status: Object, current: Object | None) -> bool:
    """Whether the last rollout is done: then a mere resync tells nothing about progress."""
    return (status.get("replicas", 0) == status.get("updatedReplicas", 0) and current is not None
            and current.get("reason") == "NewReplicaSetAvailable")


def _progress(deployment: Object, new: Object | None, status: Object, current: Object | None,
              now: datetime) -> Conditions:
    conditions: Conditions = status["conditions"]
    subject = f'ReplicaSet "{name_of(new)}"' if new is not None else f'Deployment "{name_of(deployment)}"'
    if is_complete(deployment, status):
        return with_condition(conditions, condition(
            PROGRESSING, "True", "NewReplicaSetAvailable", f"{subject} has successfully progressed.", now))
    if is_progressing(deployment, status):
        fresh = condition(PROGRESSING, "True", "ReplicaSetUpdated", f"{subject} is progressing.", now)
        if current is not None and current["status"] == "True":
            fresh["lastTransitionTime"] = current.get("lastTransitionTime")
        return [*without_condition(conditions, PROGRESSING), fresh]
    if is_timed_out(deployment, status, now):
        return with_condition(conditions, condition(
            PROGRESSING, "False", "ProgressDeadlineExceeded", f"{subject} has timed out progressing.", now))
    return conditions


def _replica_failure(new: Object | None, old: ReplicaSets) -> Object | None:
    """The failure condition of a ReplicaSet as the Deployment's; the new ReplicaSet's before the others'."""
    for one in [*([new] if new is not None else []), *old]:
        found = find_condition((one.get("status") or {}).get("conditions"), "ReplicaFailure")
        if found is not None:
            return {**found, "lastUpdateTime": found.get("lastTransitionTime")}
    return None
