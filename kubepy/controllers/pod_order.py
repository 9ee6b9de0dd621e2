"""The order in which a controller gives up active pods that it has too many of (``controller.ActivePods``)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object
from kubepy.api.objects.pods import (
    is_pod_ready,
    is_restartable_init_container,
    node_name,
    phase_of,
    pod_ready_time,
)

PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}
NEVER = float("inf")


def least_wanted_first(pods: Iterable[Object]) -> list[Object]:
    """Unassigned before assigned, pending before running, not ready before ready, then by age, the younger first: those
    ready for a shorter time, restarted more often, created later.

    Of pods of the same second the one that changed last goes first; upstream leaves them to chance.
    """
    return sorted(pods, key=lambda pod: (
        *standing(pod), -_seconds(pod_ready_time(pod)) if is_pod_ready(pod) else 0.0,
        *(-restarts for restarts in most_restarts(pod)), -_seconds(created_at(pod)), -_changed(pod)))


def standing(pod: Object) -> tuple[bool, int, bool]:
    """How far a pod has come: the lower, the less is lost with it."""
    return bool(node_name(pod)), PHASE_ORDER.get(phase_of(pod), 0), is_pod_ready(pod)


def most_restarts(pod: Object) -> tuple[int, int]:
    """The most restarts of one container, and of one sidecar (``maxContainerRestarts``)."""
    status = pod.get("status") or {}
    sidecars = {one["name"] for one in pod["spec"].get("initContainers") or () if is_restartable_init_container(one)}
    regular = [one.get("restartCount", 0) for one in status.get("containerStatuses") or []]
    others = [one.get("restartCount", 0) for one in status.get("initContainerStatuses") or []
              if one["name"] in sidecars]
    return max(regular, default=0), max(others, default=0)


def created_at(pod: Object) -> datetime | None:
    text = pod["metadata"].get("creationTimestamp")
    return parse_time(text) if text else None


def _seconds(moment: datetime | None) -> float:
    """A pod that bears no time counts as the youngest."""
    return moment.timestamp() if moment is not None else NEVER


def _changed(pod: Object) -> int:
    return int(pod["metadata"].get("resourceVersion") or 0)
