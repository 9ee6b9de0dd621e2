"""How many pods a Deployment and its ReplicaSets are to have. Pure functions over plain dicts.

Upstream: ``pkg/controller/deployment/util/deployment_util.go`` and ``scale`` in ``sync.go``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from kubepy.api.meta import Object, annotations_of, name_of
from kubepy.api.objects.deployments import DESIRED_REPLICAS, MAX_REPLICAS, by_age
from kubepy.api.values.gonumbers import int_or_none, scaled_value

ReplicaSets = list[Object]


def replicas(obj: Object) -> int:
    """``spec.replicas`` of a Deployment or ReplicaSet."""
    return int(obj["spec"].get("replicas", 0))


def count(obj: Object, field: str) -> int:
    """A count in status; 0 where it is left out."""
    return int((obj.get("status") or {}).get(field, 0))


def total(replica_sets: Iterable[Object]) -> int:
    return sum(map(replicas, replica_sets))


def active(replica_sets: Iterable[Object]) -> ReplicaSets:
    return [one for one in replica_sets if replicas(one) > 0]


def is_rolling(deployment: Object) -> bool:
    return bool(deployment["spec"]["strategy"]["type"] == "RollingUpdate")


def _fenceposts(deployment: Object) -> tuple[int, int]:
    """maxSurge (rounded up) and maxUnavailable (rounded down); never both 0 (``ResolveFenceposts``)."""
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    surge = scaled_value(rolling.get("maxSurge"), replicas(deployment), round_up=True)
    unavailable = scaled_value(rolling.get("maxUnavailable"), replicas(deployment), round_up=False)
    return surge, unavailable or (0 if surge else 1)


def max_surge(deployment: Object) -> int:
    return _fenceposts(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Object) -> int:
    if not is_rolling(deployment) or replicas(deployment) == 0:
        return 0
    return min(_fenceposts(deployment)[1], replicas(deployment))


def new_replica_set_size(deployment: Object, others: Iterable[Object], present: int) -> int:
    """How large the new ReplicaSet, which has ``present`` replicas, may be beside the others (``NewRSNewReplicas``)."""
    wanted = replicas(deployment)
    if not is_rolling(deployment):
        return wanted
    room = wanted + max_surge(deployment) - total(others) - present
    return present + min(room, wanted - present) if room > 0 else present


def active_or_latest(new: Object | None, old: ReplicaSets) -> Object | None:
    """The only ReplicaSet with pods, or where none has any the newest; None where several have."""
    everything = [*by_age(old), *([new] if new is not None else [])]
    with_pods = active(everything)
    if len(with_pods) > 1 or not everything:
        return None
    return with_pods[0] if with_pods else everything[-1]


def is_saturated(deployment: Object, replica_set: Object | None) -> bool:
    """Whether the ReplicaSet has all pods that the Deployment wants, and all are available."""
    if replica_set is None:
        return False
    wanted = replicas(deployment)
    return (replicas(replica_set) == wanted and annotations_of(replica_set).get(DESIRED_REPLICAS) == str(wanted)
            and count(replica_set, "availableReplicas") == wanted)


def proportional_sizes(deployment: Object, replica_sets: ReplicaSets) -> list[tuple[Object, int]]:
    """The active ReplicaSets with the sizes they are to have, in the order in which to scale them.

    What is to be added or taken away is shared in proportion to their sizes; what rounding leaves goes to the largest.
    """
    allowed = replicas(deployment) + max_surge(deployment) if replicas(deployment) > 0 else 0
    to_add = allowed - total(replica_sets)
    ordered = _largest_first(replica_sets, newer_first=to_add > 0) if to_add else replica_sets
    sizes: dict[str, int] = {}
    added = 0
    for one in ordered:
        share = _proportion(deployment, one, to_add, added)
        sizes[name_of(one)] = replicas(one) + share
        added += share
    if ordered and to_add:
        largest = name_of(ordered[0])
        sizes[largest] = max(0, sizes[largest] + to_add - added)
    return [(one, sizes[name_of(one)]) for one in ordered]


def _largest_first(replica_sets: ReplicaSets, *, newer_first: bool) -> ReplicaSets:
    aged = by_age(replica_sets)
    return sorted(reversed(aged) if newer_first else aged, key=replicas, reverse=True)


def _proportion(deployment: Object, replica_set: Object, to_add: int, added: int) -> int:
    if to_add in (0, added):
        return 0
    fraction, allowed = _fraction(deployment, replica_set), to_add - added
    return min(fraction, allowed) if to_add > 0 else max(fraction, allowed)


def _fraction(deployment: Object, replica_set: Object) -> int:
    """By how much the ReplicaSet would change if it kept its share (``getReplicaSetFraction``)."""
    if replicas(deployment) == 0:
        return -replicas(replica_set)
    before = _max_replicas(replica_set) or count(deployment, "replicas")
    if before == 0:
        return 0
    size = replicas(replica_set) * (replicas(deployment) + max_surge(deployment)) / before
    return math.floor(size + 0.5) - replicas(replica_set)


def _max_replicas(replica_set: Object) -> int:
    """The size that all ReplicaSets could have together when this one was scaled last; 0 where it is not known."""
    return max(int_or_none(annotations_of(replica_set).get(MAX_REPLICAS, ""), 32) or 0, 0)
