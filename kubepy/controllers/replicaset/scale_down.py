"""Which pods go first when there are too many (``ActivePodsWithRanks``). Pure functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from functools import cmp_to_key

from kubepy.cluster.clock import parse_time
from kubepy.cluster.meta import Object, annotations_of, uid_of
from kubepy.cluster.pods import is_pod_active, is_pod_ready, node_name, phase_of, pod_ready_time

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}


def pods_to_delete(pods: list[Object], related: Iterable[Object], count: int, now: datetime) -> list[Object]:
    """The ``count`` pods to delete of ``pods``; ``related`` are the pods of all ReplicaSets of the same owner."""
    if count >= len(pods):
        return pods
    neighbours = Counter(node_name(pod) for pod in related if is_pod_active(pod) and node_name(pod))
    ranks = {uid_of(pod): neighbours[node_name(pod)] for pod in pods}

    def compare(one: Object, other: Object) -> int:
        return _compare(one, other, ranks[uid_of(one)] - ranks[uid_of(other)], now)

    return sorted(pods, key=cmp_to_key(compare))[:count]


def _compare(one: Object, other: Object, rank_difference: int, now: datetime) -> int:
    """Negative when ``one`` is to go before ``other``; the first rule that tells them apart decides."""
    if by_state := _by_state(one, other):
        return by_state
    if rank_difference:
        return -rank_difference
    if is_pod_ready(one) and is_pod_ready(other):
        by_readiness = _younger_first(pod_ready_time(one), pod_ready_time(other), one, other, now)
        if by_readiness:
            return by_readiness
    if restarts := _most_restarts(other) - _most_restarts(one):
        return restarts
    return _younger_first(_created(one), _created(other), one, other, now)


def _by_state(one: Object, other: Object) -> int:
    """Unassigned before assigned, pending before running, not ready before ready, cheap before dear."""
    return (bool(node_name(one)) - bool(node_name(other))
            or PHASE_ORDER.get(phase_of(one), 0) - PHASE_ORDER.get(phase_of(other), 0)
            or is_pod_ready(one) - is_pod_ready(other)
            or deletion_cost(one) - deletion_cost(other))


def deletion_cost(pod: Object) -> int:
    """The annotation's value; 0 without one, and for one that is no int32."""
    text = annotations_of(pod).get(DELETION_COST, "0")
    if not text.lstrip("-").isdigit() or not -(2**31) <= int(text) < 2**31:
        return 0
    return int(text)


def _younger_first(one_time: datetime | None, other_time: datetime | None, one: Object, other: Object,
                   now: datetime) -> int:
    """On a logarithmic scale: pods of like age go by uid, which is as good as chance."""
    if one_time == other_time:
        return 0
    if one_time is None or other_time is None:
        return -1 if one_time is None else 1
    difference = _magnitude(now, one_time) - _magnitude(now, other_time)
    return difference or (-1 if uid_of(one) < uid_of(other) else 1)


def _magnitude(now: datetime, then: datetime) -> int:
    nanoseconds = (now - then).total_seconds() * 1e9
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def _most_restarts(pod: Object) -> int:
    return max((one.get("restartCount", 0) for one in pod.get("status", {}).get("containerStatuses") or []), default=0)


def _created(pod: Object) -> datetime | None:
    text = pod["metadata"].get("creationTimestamp")
    return parse_time(text) if text else None
