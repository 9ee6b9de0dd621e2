"""The sizes of ReplicaSets in a rolling update (``rolling.go``). Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubepy.api.meta import name_of
from kubepy.api.objects.deployments import by_age
from kubepy.controllers.deployment.sizes import count, max_unavailable, replicas, total

if TYPE_CHECKING:
    from kubepy.api.typed import Deployment, ReplicaSet

# ReplicaSets and the sizes to scale them to, in order; one may come twice.
Scales = list[tuple["ReplicaSet", int]]


def scale_down_old(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> Scales:
    """Return the old ReplicaSets that are to be scaled down and to what
    (``reconcileOldReplicaSets``).

    First go replicas that are not available, which costs no availability; then as many as
    maxUnavailable allows.
    """
    min_available = replicas(deployment) - max_unavailable(deployment)
    room = total([*old, new]) - min_available - _unavailable_replicas(new)
    if room <= 0 or total(old) == 0:
        return []
    scales, is_known = cleanup_unhealthy_replicas(by_age(old), room)
    if not is_known:
        return scales
    sizes = {name_of(replica_set): replicas(replica_set) for replica_set in old}
    sizes |= {name_of(replica_set): size for replica_set, size in scales}
    spare = (
        sum(count(replica_set, "availableReplicas") for replica_set in [*old, new]) - min_available
    )
    for replica_set in by_age(old):  # scaleDownOldReplicaSetsForRollingUpdate
        size = sizes[name_of(replica_set)]
        cut = min(size, spare)
        if cut > 0:
            scales.append((replica_set, size - cut))
            spare -= cut

    return scales


def cleanup_unhealthy_replicas(old: Sequence[ReplicaSet], room: int) -> tuple[Scales, bool]:
    """Return the scales that take unavailable replicas away, oldest first, and whether each status
    is of its size.

    A status of a larger size cannot be judged: all that comes after it waits for that ReplicaSet's
    next status.
    """
    scales: Scales = []
    for replica_set in old:
        unhealthy = _unavailable_replicas(replica_set)
        if room <= 0 or unhealthy == 0 or replicas(replica_set) == 0:
            continue
        if unhealthy < 0:
            return scales, False
        cut = min(room, unhealthy)
        scales.append((replica_set, replicas(replica_set) - cut))
        room -= cut
    return scales, True


def _unavailable_replicas(replica_set: ReplicaSet) -> int:
    """Return how many replicas are not available; negative while the status is of a larger size."""
    return replicas(replica_set) - count(replica_set, "availableReplicas")
