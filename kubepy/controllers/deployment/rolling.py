"""Which old ReplicaSets a rolling update may make smaller. Pure functions (``rolling.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object, name_of
from kubepy.api.objects.deployments import by_age
from kubepy.controllers.deployment.sizes import ReplicaSets, count, max_unavailable, replicas, total

Steps = list[tuple[Object, int]]


def old_sizes(deployment: Object, new: Object, old: ReplicaSets) -> Steps:
    """The old ReplicaSets that are to be scaled down and to what, in order; one may come twice.

    First go replicas that are not available, which costs no availability; then as many as maxUnavailable allows.
    """
    min_available = replicas(deployment) - max_unavailable(deployment)
    room = total([*old, new]) - min_available - _unavailable_of(new)
    if room <= 0 or total(old) == 0:
        return []
    steps, is_known = _unhealthy(by_age(old), room)
    if not is_known:
        return steps
    sizes = {name_of(one): replicas(one) for one in old} | {name_of(one): size for one, size in steps}
    spare = sum(map(_available_of, [*old, new])) - min_available
    return steps + _available(by_age(old), sizes, spare)


def _available_of(replica_set: Object) -> int:
    return count(replica_set, "availableReplicas")


def _unavailable_of(replica_set: Object) -> int:
    """Negative while its status is that of a larger size."""
    return replicas(replica_set) - _available_of(replica_set)


def _unhealthy(old: ReplicaSets, room: int) -> tuple[Steps, bool]:
    """Oldest first (``cleanupUnhealthyReplicas``), and whether the status of all that were looked at is that of their
    size. If not, what there is cannot be judged, and the rest waits for that ReplicaSet's next word."""
    steps: Steps = []
    for one in old:
        unhealthy = _unavailable_of(one)
        if room <= 0 or unhealthy == 0 or replicas(one) == 0:
            continue
        if unhealthy < 0:
            return steps, False
        cut = min(room, unhealthy)
        steps.append((one, replicas(one) - cut))
        room -= cut
    return steps, True


def _available(old: ReplicaSets, sizes: dict[str, int], spare: int) -> Steps:
    """``scaleDownOldReplicaSetsForRollingUpdate``: oldest first."""
    steps: Steps = []
    for one in old:
        cut = min(sizes[name_of(one)], spare)
        if cut > 0:
            steps.append((one, sizes[name_of(one)] - cut))
            spare -= cut
    return steps
