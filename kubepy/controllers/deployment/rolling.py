"""Which old ReplicaSets a rolling update may make smaller. Pure functions (``rolling.go``)."""

from __future__ import annotations

from kubepy.cluster.objects.deployments import by_age
from kubepy.cluster.objects.meta import Object, name_of
from kubepy.controllers.deployment.sizes import ReplicaSets, count, max_unavailable, replicas, total


def old_sizes(deployment: Object, new: Object, old: ReplicaSets) -> list[tuple[Object, int]]:
    """The old ReplicaSets that are to be scaled down and to what, in order; one may come twice.

    First go replicas that are not available, which costs no availability; then as many as maxUnavailable allows.
    """
    min_available = replicas(deployment) - max_unavailable(deployment)
    unavailable_new = replicas(new) - _available_of(new)
    room = total([*old, new]) - min_available - unavailable_new
    if room <= 0 or total(old) == 0:
        return []
    steps = _unhealthy(by_age(old), room)
    sizes = {name_of(one): replicas(one) for one in old} | {name_of(one): size for one, size in steps}
    spare = sum(map(_available_of, [*old, new])) - min_available
    return steps + _available(by_age(old), sizes, spare)


def _available_of(replica_set: Object) -> int:
    """What a status counts beyond the size it is to have is about to go. Upstream fails then, and tries again."""
    return min(count(replica_set, "availableReplicas"), replicas(replica_set))


def _unhealthy(old: ReplicaSets, room: int) -> list[tuple[Object, int]]:
    """``cleanupUnhealthyReplicas``: oldest first."""
    steps = []
    for one in old:
        unhealthy = replicas(one) - _available_of(one)
        if room > 0 and replicas(one) > 0 and unhealthy != 0:
            cut = min(room, unhealthy)
            steps.append((one, replicas(one) - cut))
            room -= cut
    return steps


def _available(old: ReplicaSets, sizes: dict[str, int], spare: int) -> list[tuple[Object, int]]:
    """``scaleDownOldReplicaSetsForRollingUpdate``: oldest first."""
    steps = []
    for one in old:
        cut = min(sizes[name_of(one)], spare)
        if cut > 0:
            steps.append((one, sizes[name_of(one)] - cut))
            spare -= cut
    return steps
