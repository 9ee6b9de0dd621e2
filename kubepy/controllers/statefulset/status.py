"""What a StatefulSet's status says. Pure functions (``computeReplicaStatus``, ``completeRollingUpdate``)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kubepy.api.meta import Object
from kubepy.controllers.statefulset.members import Member, Versions, is_rolling, min_ready_seconds


def counted_status(set_: Object, versions: Versions, members: Iterable[Member], collisions: int,
                   now: datetime) -> Object:
    """The status for these pods. A pod that is going counts, but at no revision.

    As the API writes it: replicas and availableReplicas always, other counts only when they are not 0.
    """
    created = [one for one in members if one.is_created]
    ready = [one for one in created if one.is_running_and_ready]
    staying = [one.revision for one in created if not one.is_leaving]
    seconds = min_ready_seconds(set_)
    status: Object = {
        "observedGeneration": set_["metadata"].get("generation", 0),
        "currentRevision": versions.current,
        "updateRevision": versions.update,
        "collisionCount": collisions,
        "replicas": len(created),
        "availableReplicas": sum(one.is_available(seconds, now) for one in ready),
    }
    counts = {"readyReplicas": len(ready), "currentReplicas": staying.count(versions.current),
              "updatedReplicas": staying.count(versions.update)}
    return status | {name: value for name, value in counts.items() if value}


def with_one_less_current(status: Object) -> Object:
    """The status after one pod was deleted for an update.

    A pod of neither revision is not in the count: upstream then writes -1, which the API server refuses.
    """
    left = max(status.get("currentReplicas", 0) - 1, 0)
    rest = {name: value for name, value in status.items() if name != "currentReplicas"}
    return {**rest, "currentReplicas": left} if left else rest


def completed(set_: Object, status: Object) -> Object:
    """The status in which the update revision has become the current one, if all pods are updated and ready."""
    wanted = set_["spec"].get("replicas", 1)
    counts = (status.get(name, 0) for name in ("updatedReplicas", "readyReplicas", "replicas"))
    if not is_rolling(set_) or any(count != wanted for count in counts):
        return status
    current = {"currentReplicas": wanted} if wanted else {}
    return {**status, "currentRevision": status["updateRevision"], **current}


def is_different(before: Object, status: Object) -> bool:
    """Whether the status is worth writing (``inconsistentStatus``)."""
    fields = ("replicas", "currentReplicas", "readyReplicas", "updatedReplicas", "availableReplicas",
              "currentRevision", "updateRevision")
    return (status["observedGeneration"] > before.get("observedGeneration", 0)
            or any(before.get(name) != status.get(name) for name in fields))
