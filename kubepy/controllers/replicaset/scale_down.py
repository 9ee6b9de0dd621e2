"""Which pods go first when there are too many (``ActivePodsWithRanks``). Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from kubepy.cluster.objects.meta import Object, annotations_of
from kubepy.cluster.objects.pods import is_pod_active, is_pod_available, node_name
from kubepy.controllers.pod_order import least_wanted_first

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def pods_to_delete(pods: list[Object], related: Iterable[Object], count: int, min_ready_seconds: int,
                   now: datetime) -> list[Object]:
    """The ``count`` pods to delete of ``pods``; ``related`` are the pods of all ReplicaSets of the same owner.

    Upstream does not ask for availability: there a pod that has just become ready can outlive one that a Deployment
    counts on, if that shares its node with more of its like, and a rolling update falls short of what it promises.
    """
    if count >= len(pods):
        return pods
    neighbours = Counter(node_name(pod) for pod in related if is_pod_active(pod) and node_name(pod))

    def between(pod: Object) -> tuple[int, bool, int]:
        return deletion_cost(pod), is_pod_available(pod, min_ready_seconds, now), -neighbours[node_name(pod)]

    return least_wanted_first(pods, between)[:count]


def deletion_cost(pod: Object) -> int:
    """The annotation's value; 0 without one, and for one that is no int32."""
    text = annotations_of(pod).get(DELETION_COST, "0")
    if not text.lstrip("-").isdigit() or not -(2**31) <= int(text) < 2**31:
        return 0
    return int(text)
