"""The status of a StatefulSet. Pure functions (``computeReplicaStatus``,
``completeRollingUpdate``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kubepy.api.meta import AnyObject
from kubepy.controllers.statefulset.pods import Replica, is_rolling
from kubepy.controllers.statefulset.state import StatefulSetState

if TYPE_CHECKING:
    from kubepy.api.typed import StatefulSet, StatefulSetStatus


def compute_replica_status(
    state: StatefulSetState, replicas: Iterable[Replica]
) -> StatefulSetStatus:
    """Return the status for these pods. A pod that is being deleted counts, but at no revision.

    As the API writes it: replicas and availableReplicas always, other counts only when they are not
    0.
    """
    created = [replica for replica in replicas if replica.is_created]
    ready = [replica for replica in created if replica.is_running_and_ready]
    revisions = [replica.revision for replica in created if not replica.is_being_deleted]
    status: StatefulSetStatus = {
        "observedGeneration": state.stateful_set["metadata"].get("generation", 0),
        "currentRevision": state.current_revision,
        "updateRevision": state.update_revision,
        "collisionCount": state.collision_count,
        "replicas": len(created),
        "availableReplicas": sum(map(state.is_available, ready)),
    }
    if ready:
        status["readyReplicas"] = len(ready)
    current = revisions.count(state.current_revision)
    if current:
        status["currentReplicas"] = current
    updated = revisions.count(state.update_revision)
    if updated:
        status["updatedReplicas"] = updated
    return status


def with_one_less_current(status: StatefulSetStatus) -> StatefulSetStatus:
    """Return the status after one pod was deleted for an update.

    A pod of neither revision is not in the count: upstream then writes -1, which the API server
    refuses.
    """
    rest: StatefulSetStatus = {**status}
    left = rest.pop("currentReplicas", 0) - 1
    if left > 0:
        return {**rest, "currentReplicas": left}
    return rest


def complete_rolling_update(
    stateful_set: StatefulSet, status: StatefulSetStatus
) -> StatefulSetStatus:
    """Return the status in which the update revision has become the current one, if all pods are
    updated and ready."""
    replicas = stateful_set["spec"].get("replicas", 1)
    counts = (
        status.get("updatedReplicas", 0),
        status.get("readyReplicas", 0),
        status.get("replicas", 0),
    )
    if not is_rolling(stateful_set) or any(count != replicas for count in counts):
        return status
    completed: StatefulSetStatus = {**status, "currentRevision": status["updateRevision"]}
    if replicas:
        return {**completed, "currentReplicas": replicas}
    return completed


def is_inconsistent(before: AnyObject, status: StatefulSetStatus) -> bool:
    """Return whether the status is worth writing (``inconsistentStatus``)."""
    fields = (
        "replicas",
        "currentReplicas",
        "readyReplicas",
        "updatedReplicas",
        "availableReplicas",
        "currentRevision",
        "updateRevision",
    )
    if status["observedGeneration"] > before.get("observedGeneration", 0):
        return True
    return any(before.get(name) != status.get(name) for name in fields)
