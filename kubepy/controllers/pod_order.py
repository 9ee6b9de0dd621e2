"""The order in which a controller gives up active pods that it has too many of (``controller.ActivePods``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kubepy.cluster.clock import parse_time
from kubepy.cluster.objects.meta import Object
from kubepy.cluster.objects.pods import is_pod_ready, node_name, phase_of, pod_ready_time

PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}
NEVER = float("inf")


def least_wanted_first(pods: Iterable[Object], between: Callable[[Object], Any] = lambda _: 0) -> list[Object]:
    """Unassigned before assigned, pending before running, not ready before ready, then ``between``, then by age.

    The younger go first: those ready for a shorter time, restarted more often, created later. ReplicaSets compare ages
    on a logarithmic scale, and leave pods of like age to chance; here the younger is always the first, and of pods of
    the same second the one that changed last.
    """
    return sorted(pods, key=lambda pod: (
        bool(node_name(pod)), PHASE_ORDER.get(phase_of(pod), 0), is_pod_ready(pod), between(pod),
        -_ready_since(pod), -_most_restarts(pod), -_created(pod), -_changed(pod)))


def _ready_since(pod: Object) -> float:
    """Without a time of its Ready condition a pod counts as the youngest."""
    if not is_pod_ready(pod):
        return 0.0
    since = pod_ready_time(pod)
    return since.timestamp() if since else NEVER


def _most_restarts(pod: Object) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return max((one.get("restartCount", 0) for one in statuses), default=0)


def _created(pod: Object) -> float:
    text = pod["metadata"].get("creationTimestamp")
    return parse_time(text).timestamp() if text else NEVER


def _changed(pod: Object) -> int:
    return int(pod["metadata"].get("resourceVersion") or 0)
