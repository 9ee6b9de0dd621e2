"""The status of a Deployment, and whether it makes progress. Pure functions (``sync.go``,
``progress.go``)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, cast

from kubepy.api.clock import format_time, later, parse_optional_time
from kubepy.api.meta import AnyObject, Object, name_of
from kubepy.controllers.conditions import (
    Conditions,
    conditions_of,
    find_condition,
    with_condition,
    without_condition,
)
from kubepy.controllers.deployment.sizes import count, max_unavailable, replicas, total
from kubepy.controllers.deployment.state import DeploymentState

if TYPE_CHECKING:
    from kubepy.api.typed import Deployment, DeploymentStatus, ReplicaSet

PROGRESSING = "Progressing"
NO_DEADLINE = 2**31 - 1


def new_condition(
    condition_type: str, status: str, reason: str, message: str, now: datetime
) -> Object:
    time = format_time(now)
    return {
        "type": condition_type,
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": time,
        "lastTransitionTime": time,
    }


def with_progressing(
    state: DeploymentState, status: str, reason: str, message: str
) -> DeploymentStatus:
    """Return the status that the Deployment has, with this Progressing condition."""
    before = state.deployment.get("status") or {}
    condition = new_condition(PROGRESSING, status, reason, message, state.now)
    return cast(
        "DeploymentStatus",
        {**before, "conditions": with_condition(conditions_of(state.deployment), condition)},
    )


def has_progress_deadline(deployment: Deployment) -> bool:
    return deployment["spec"].get("progressDeadlineSeconds", NO_DEADLINE) != NO_DEADLINE


def progressing_condition(deployment: Deployment) -> Object | None:
    return find_condition(conditions_of(deployment), PROGRESSING)


def calculate_status(state: DeploymentState) -> DeploymentStatus:
    """Return the counts, and whether enough replicas are available (``calculateStatus``).

    As the API writes it: counts only when they are not 0, but terminatingReplicas always.
    """
    deployment = state.deployment
    new = state.new_replica_set
    replica_sets = [*state.old_replica_sets, *([new] if new is not None else [])]
    available = _sum(replica_sets, "availableReplicas")
    counts = {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": _sum(replica_sets, "replicas"),
        "updatedReplicas": count(new, "replicas") if new is not None else 0,
        "readyReplicas": _sum(replica_sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total(replica_sets) - available),
    }
    status: Object = {name: value for name, value in counts.items() if value}
    terminating = _terminating_replicas(replica_sets)
    if terminating is not None:
        status["terminatingReplicas"] = terminating
    if "collisionCount" in (before := deployment.get("status") or {}):
        status["collisionCount"] = before["collisionCount"]
    if available >= replicas(deployment) - max_unavailable(deployment):
        availability = new_condition(
            "Available",
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
            state.now,
        )
    else:
        availability = new_condition(
            "Available",
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
            state.now,
        )

    status["conditions"] = with_condition(conditions_of(deployment), availability)
    return cast("DeploymentStatus", status)


def _sum(replica_sets: Iterable[ReplicaSet], field: str) -> int:
    return sum(count(replica_set, field) for replica_set in replica_sets)


def _terminating_replicas(replica_sets: Iterable[ReplicaSet]) -> int | None:
    """Return their sum; None when the status of a ReplicaSet that has been looked at does not
    say."""
    statuses = [replica_set.get("status") or {} for replica_set in replica_sets]
    observed = [
        status
        for status in statuses
        if status.get("observedGeneration") or "terminatingReplicas" in status
    ]
    if any("terminatingReplicas" not in status for status in observed):
        return None
    return sum(status["terminatingReplicas"] for status in observed)


def is_complete(deployment: Deployment, status: AnyObject) -> bool:
    """``DeploymentComplete``."""
    desired = replicas(deployment)
    for name in ("updatedReplicas", "replicas", "availableReplicas"):
        if status.get(name, 0) != desired:
            return False
    generation: int = deployment["metadata"].get("generation", 0)
    observed: int = status.get("observedGeneration", 0)
    return observed >= generation


def is_progressing(deployment: Deployment, status: AnyObject) -> bool:
    """Return whether the status shows progress over the one before (``DeploymentProgressing``)."""
    before: AnyObject = deployment.get("status") or {}
    old_before = before.get("replicas", 0) - before.get("updatedReplicas", 0)
    old_now = status.get("replicas", 0) - status.get("updatedReplicas", 0)
    if old_now < old_before:
        return True
    return any(
        status.get(name, 0) > before.get(name, 0)
        for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )


def is_timed_out(deployment: Deployment, status: AnyObject, now: datetime) -> bool:
    """``DeploymentTimedOut``."""
    condition = find_condition(status.get("conditions"), PROGRESSING)
    if condition is None or condition.get("reason") == "NewReplicaSetAvailable":
        return False
    return progress_deadline(deployment, condition) < now


def progress_deadline(deployment: Deployment, progressing: AnyObject) -> datetime:
    """Return the time from which a rollout with this last progress counts as stuck; long ago for a
    condition without a time."""
    seconds = deployment["spec"]["progressDeadlineSeconds"]
    return later(parse_optional_time(progressing.get("lastUpdateTime")), seconds)


def rollout_status(state: DeploymentState) -> DeploymentStatus:
    """Return the status of a Deployment that is rolling out: counts, progress, failures
    (``syncRolloutStatus``).

    When the last rollout is done, a mere resync tells nothing about progress.
    """
    status = cast(Object, calculate_status(state))
    condition = progressing_condition(state.deployment)
    is_settled = (
        status.get("replicas", 0) == status.get("updatedReplicas", 0)
        and condition is not None
        and condition.get("reason") == "NewReplicaSetAvailable"
    )
    if not has_progress_deadline(state.deployment):
        status["conditions"] = without_condition(status["conditions"], PROGRESSING)
    elif not is_settled:
        status["conditions"] = _progress_conditions(state, status, condition)

    failure = _replica_failure(state)
    if failure is not None:
        status["conditions"] = with_condition(status["conditions"], failure)
    else:
        status["conditions"] = without_condition(status["conditions"], "ReplicaFailure")

    return cast("DeploymentStatus", status)


def _progress_conditions(
    state: DeploymentState, status: Object, current: Object | None
) -> Conditions:
    """Return the conditions with the Progressing one of this status."""
    deployment = state.deployment
    new = state.new_replica_set
    conditions: Conditions = status["conditions"]
    if new is not None:
        subject = f'ReplicaSet "{name_of(new)}"'
    else:
        subject = f'Deployment "{name_of(deployment)}"'

    if is_complete(deployment, status):
        return with_condition(
            conditions,
            new_condition(
                PROGRESSING,
                "True",
                "NewReplicaSetAvailable",
                f"{subject} has successfully progressed.",
                state.now,
            ),
        )

    if is_progressing(deployment, status):
        condition = new_condition(
            PROGRESSING, "True", "ReplicaSetUpdated", f"{subject} is progressing.", state.now
        )
        if current is not None and current["status"] == "True":
            condition["lastTransitionTime"] = current.get("lastTransitionTime")
        return [*without_condition(conditions, PROGRESSING), condition]

    if is_timed_out(deployment, status, state.now):
        return with_condition(
            conditions,
            new_condition(
                PROGRESSING,
                "False",
                "ProgressDeadlineExceeded",
                f"{subject} has timed out progressing.",
                state.now,
            ),
        )

    return conditions


def _replica_failure(state: DeploymentState) -> Object | None:
    """Return the failure condition of a ReplicaSet as the Deployment's; the new ReplicaSet's before
    the others'."""
    new = state.new_replica_set
    for replica_set in [*([new] if new is not None else []), *state.old_replica_sets]:
        condition = find_condition(conditions_of(replica_set), "ReplicaFailure")
        if condition is not None:
            return {**condition, "lastUpdateTime": condition.get("lastTransitionTime")}
    return None
