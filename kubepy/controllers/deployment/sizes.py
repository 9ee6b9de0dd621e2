"""Sizes of a Deployment and its ReplicaSets. Pure functions.

Upstream: ``pkg/controller/deployment/util/deployment_util.go`` and ``scale`` in ``sync.go``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kubepy.api.meta import AnyObject, annotations_of, name_of
from kubepy.api.objects.deployments import DESIRED_REPLICAS, MAX_REPLICAS, by_age
from kubepy.api.values.gonumbers import int_or_none, scaled_value

if TYPE_CHECKING:
    from kubepy.api.typed import Deployment, ReplicaSet


def replicas(obj: AnyObject) -> int:
    """Return ``spec.replicas`` of a Deployment or ReplicaSet."""
    return int(obj["spec"].get("replicas", 0))


def count(obj: AnyObject, field: str) -> int:
    """Return a count in the status; 0 where it is left out."""
    status = obj.get("status") or {}
    return int(status.get(field, 0))


def total(replica_sets: Iterable[ReplicaSet]) -> int:
    return sum(map(replicas, replica_sets))


def active(replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    return [replica_set for replica_set in replica_sets if replicas(replica_set) > 0]


def is_rolling(deployment: Deployment) -> bool:
    return deployment["spec"]["strategy"]["type"] == "RollingUpdate"


def _resolve_fenceposts(deployment: Deployment) -> tuple[int, int]:
    """Return maxSurge (rounded up) and maxUnavailable (rounded down); never both 0
    (``ResolveFenceposts``)."""
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    surge = scaled_value(rolling.get("maxSurge"), replicas(deployment), round_up=True)
    unavailable = scaled_value(rolling.get("maxUnavailable"), replicas(deployment), round_up=False)
    return surge, unavailable or (0 if surge else 1)


def max_surge(deployment: Deployment) -> int:
    if is_rolling(deployment):
        return _resolve_fenceposts(deployment)[0]
    return 0


def max_unavailable(deployment: Deployment) -> int:
    if not is_rolling(deployment) or replicas(deployment) == 0:
        return 0
    return min(_resolve_fenceposts(deployment)[1], replicas(deployment))


def new_replica_set_size(deployment: Deployment, others: Iterable[ReplicaSet], present: int) -> int:
    """Return how large the new ReplicaSet, which has ``present`` replicas, may be beside the others
    (``NewRSNewReplicas``)."""
    desired = replicas(deployment)
    if not is_rolling(deployment):
        return desired
    room = desired + max_surge(deployment) - total(others) - present
    if room > 0:
        return present + min(room, desired - present)
    return present


def active_or_latest(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """Return the only ReplicaSet with pods, or where none has any the newest; None where several
    have (``FindActiveOrLatest``)."""
    replica_sets = [*by_age(old), *([new] if new is not None else [])]
    with_pods = active(replica_sets)
    if len(with_pods) > 1 or not replica_sets:
        return None
    if with_pods:
        return with_pods[0]
    return replica_sets[-1]


def is_saturated(deployment: Deployment, replica_set: ReplicaSet | None) -> bool:
    """Return whether the ReplicaSet has all pods that the Deployment desires, and all are
    available."""
    if replica_set is None:
        return False
    desired = replicas(deployment)
    if replicas(replica_set) != desired:
        return False
    if annotations_of(replica_set).get(DESIRED_REPLICAS) != str(desired):
        return False
    return count(replica_set, "availableReplicas") == desired


def proportional_sizes(
    deployment: Deployment, replica_sets: Sequence[ReplicaSet]
) -> list[tuple[ReplicaSet, int]]:
    """Return the active ReplicaSets with the sizes they are to have, in the order in which to scale
    them.

    The replicas to add or take away are shared in proportion to their sizes; the largest gets what
    rounding leaves.
    """
    allowed = replicas(deployment) + max_surge(deployment) if replicas(deployment) > 0 else 0
    to_add = allowed - total(replica_sets)
    if not to_add or not replica_sets:
        return [(replica_set, replicas(replica_set)) for replica_set in replica_sets]
    oldest_first = by_age(replica_sets)
    largest_first = sorted(
        reversed(oldest_first) if to_add > 0 else oldest_first, key=replicas, reverse=True
    )
    sizes: dict[str, int] = {}
    added = 0
    for replica_set in largest_first:
        left = to_add - added
        share = _replica_set_fraction(deployment, replica_set) if left else 0
        share = min(share, left) if to_add > 0 else max(share, left)
        sizes[name_of(replica_set)] = replicas(replica_set) + share
        added += share

    largest = name_of(largest_first[0])
    sizes[largest] = max(0, sizes[largest] + to_add - added)
    return [(replica_set, sizes[name_of(replica_set)]) for replica_set in largest_first]


def _replica_set_fraction(deployment: Deployment, replica_set: ReplicaSet) -> int:
    """Return by how much the ReplicaSet would change if it kept its share
    (``getReplicaSetFraction``).

    Its annotation says how large all ReplicaSets could be together when this one was scaled last.
    """
    if replicas(deployment) == 0:
        return -replicas(replica_set)
    annotated = max(int_or_none(annotations_of(replica_set).get(MAX_REPLICAS, ""), 32) or 0, 0)
    before = annotated or count(deployment, "replicas")
    if before == 0:
        return 0
    size = replicas(replica_set) * (replicas(deployment) + max_surge(deployment)) / before
    return math.floor(size + 0.5) - replicas(replica_set)
