"""Which pods go first when there are too many (``ActivePodsWithRanks``). Pure functions."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from functools import cmp_to_key
from typing import NamedTuple

from kubepy.api.meta import Object, annotations_of, uid_of
from kubepy.api.objects.pods import is_pod_active, is_pod_ready, node_name, pod_ready_time
from kubepy.api.values.gonumbers import int_or_none
from kubepy.controllers.pod_order import created_at, most_restarts, standing

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_COST = re.compile(r"0|-[0-9]+|[1-9][0-9]*")


class Traits(NamedTuple):
    """What tells which of two pods goes first. ``rank``: standing, deletion cost, and neighbours of its like on its
    node, so that the lower goes; ``draw``: what decides between pods of about the same age."""

    rank: tuple[bool, int, bool, int, int]
    ready_since: datetime | None
    restarts: tuple[int, int]
    created: datetime | None
    draw: str


def pods_to_delete(pods: list[Object], related: Iterable[Object], count: int, now: datetime) -> list[Object]:
    """The ``count`` pods to delete of ``pods``; ``related`` are the pods of all ReplicaSets of the same owner."""
    if count >= len(pods):
        return pods
    neighbours = Counter(node_name(pod) for pod in related if is_pod_active(pod) and node_name(pod))
    traits = {uid_of(pod): _traits(pod, neighbours) for pod in pods}

    def compare(one: Object, other: Object) -> int:
        return _compare(traits[uid_of(one)], traits[uid_of(other)], now)

    youngest_first = sorted(pods, key=uid_of, reverse=True)
    return sorted(youngest_first, key=cmp_to_key(compare))[:count]


def _traits(pod: Object, neighbours: Counter[str]) -> Traits:
    rank = (*standing(pod), deletion_cost(pod), -neighbours[node_name(pod)])
    return Traits(rank, pod_ready_time(pod) if is_pod_ready(pod) else None, most_restarts(pod), created_at(pod),
                  _draw(pod))


def _draw(pod: Object) -> str:
    """Upstream compares UIDs, which are random. Ours begin with their time; the rest is as good as theirs."""
    return uid_of(pod)[-17:]


def _compare(one: Traits, other: Traits, now: datetime) -> int:
    """Negative if ``one`` goes first. Pods of the very same age are left in their order."""
    if one.rank != other.rank:
        return -1 if one.rank < other.rank else 1
    if one.rank[2] and one.ready_since != other.ready_since:
        return _younger(one.ready_since, other.ready_since, one.draw, other.draw, now)
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.created != other.created:
        return _younger(one.created, other.created, one.draw, other.draw, now)
    return 0


def _younger(one: datetime | None, other: datetime | None, draw: str, other_draw: str, now: datetime) -> int:
    """Compare two times that differ. No time at all is the youngest; ages whose logarithms are alike are drawn."""
    if one is None or other is None:
        return -1 if one is None else 1
    difference = _bucket(one, now) - _bucket(other, now)
    return difference or (-1 if draw < other_draw else 1)


def _bucket(moment: datetime, now: datetime) -> int:
    """The age on a scale on which each step is twice as long as the one before (``logarithmicRankDiff``)."""
    nanoseconds = round((now - moment).total_seconds() * 1e9)
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def deletion_cost(pod: Object) -> int:
    """The annotation's value; 0 without one, and for one that is no int32."""
    text = annotations_of(pod).get(DELETION_COST, "0")
    return int_or_none(text, 32) or 0 if _COST.fullmatch(text) else 0
