"""Which pods go first when there are too many (``ActivePodsWithRanks``). Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kubepy.cluster.meta import Object, annotations_of
from kubepy.cluster.pods import is_pod_active, node_name
from kubepy.controllers.pod_order import least_wanted_first

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def pods_to_delete(pods: list[Object], related: Iterable[Object], count: int) -> list[Object]:
    """The ``count`` pods to delete of ``pods``; ``related`` are the pods of all ReplicaSets of the same owner."""
    if count >= len(pods):
        return pods
    neighbours = Counter(node_name(pod) for pod in related if is_pod_active(pod) and node_name(pod))
    return least_wanted_first(pods, lambda pod: (deletion_cost(pod), -neighbours[node_name(pod)]))[:count]


def deletion_cost(pod: Object) -> int:
    """The annotation's value; 0 without one, and for one that is no int32."""
    text = annotations_of(pod).get(DELETION_COST, "0")
    if not text.lstrip("-").isdigit() or not -(2**31) <= int(text) < 2**31:
        return 0
    return int(text)
