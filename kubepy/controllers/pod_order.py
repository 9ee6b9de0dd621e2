"""The order in which a controller gives up active pods that it has too many of
(``controller.ActivePods``)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from kubepy.api.clock import parse_time
from kubepy.api.objects.pods import (
    is_pod_ready,
    is_restartable_init_container,
    node_name,
    phase_of,
    pod_ready_time,
)

if TYPE_CHECKING:
    from kubepy.api.typed import Pod

PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}


def sort_active_pods(pods: Iterable[Pod]) -> list[Pod]:
    """Sort unassigned before assigned, pending before running, not ready before ready, then the
    younger first: those ready for a shorter time, restarted more often, created later.

    Of pods of the same second the one that changed last goes first; upstream leaves them to chance.
    A pod that bears no time counts as the youngest.
    """

    def order(pod: Pod) -> tuple[float, ...]:
        return (
            *progress(pod),
            _youngest_first(pod_ready_time(pod)) if is_pod_ready(pod) else 0.0,
            *(-restarts for restarts in max_container_restarts(pod)),
            _youngest_first(creation_time(pod)),
            -int(pod["metadata"].get("resourceVersion") or 0),
        )

    return sorted(pods, key=order)


def _youngest_first(time: datetime | None) -> float:
    """Return a number that is the smaller the later a time is; without a time the smallest."""
    if time is None:
        return float("-inf")
    return -time.timestamp()


def progress(pod: Pod) -> tuple[bool, int, bool]:
    """Return how far a pod has come (assigned, running, ready): the lower, the less is lost with
    it."""
    return bool(node_name(pod)), PHASE_ORDER.get(phase_of(pod), 0), is_pod_ready(pod)


def max_container_restarts(pod: Pod) -> tuple[int, int]:
    """Return the most restarts of one container, and of one sidecar (``maxContainerRestarts``)."""
    status = pod.get("status") or {}
    sidecars = {
        container["name"]
        for container in pod["spec"].get("initContainers") or ()
        if is_restartable_init_container(container)
    }
    regular = [
        container.get("restartCount", 0) for container in status.get("containerStatuses") or []
    ]
    others = [
        container.get("restartCount", 0)
        for container in status.get("initContainerStatuses") or []
        if container["name"] in sidecars
    ]
    return max(regular, default=0), max(others, default=0)


def creation_time(pod: Pod) -> datetime | None:
    text = pod["metadata"].get("creationTimestamp")
    if text:
        return parse_time(text)
    return None
