"""The status of a DaemonSet (``updateDaemonSetStatus``). Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kubepy.controllers.daemonset.pods import oldest_first
from kubepy.controllers.daemonset.state import DaemonSetState

if TYPE_CHECKING:
    from kubepy.api.typed import DaemonSet, DaemonSetStatus


class Counts(NamedTuple):
    """Numbers of nodes, as the status gives them."""

    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0


def count_nodes(state: DaemonSetState) -> Counts:
    """Count one pod a node, the oldest scheduled one, also when it is being deleted."""
    pods_on = state.nodes_to_daemon_pods
    desired = [node for node, placement in state.placements.items() if placement.should_run]
    misscheduled = sum(node in pods_on for node, placement in state.placements.items() if not placement.should_run)
    on_nodes = [pods_on[node] for node in desired if node in pods_on]
    counted = [pods[0] if len(pods) == 1 else oldest_first(pods)[0] for pods in on_nodes]
    ready = [pod for pod in counted if pod.is_ready]
    available = sum(map(state.is_available, ready)) if state.min_ready_seconds else len(ready)
    updated = sum(map(state.is_updated, counted))
    return Counts(len(desired), len(counted), misscheduled, len(ready), available, updated)


def new_status(daemon_set: DaemonSet, counts: Counts, *, observed: bool) -> DaemonSetStatus:
    """Return the status with these counts; with ``observed`` this generation has been acted upon.

    As the API writes it: the first four counts always, the others only when they are not 0.
    """
    status: DaemonSetStatus = {
        **(daemon_set.get("status") or {}),
        "desiredNumberScheduled": counts.desired,
        "currentNumberScheduled": counts.current,
        "numberMisscheduled": counts.misscheduled,
        "numberReady": counts.ready,
    }
    if observed:
        status["observedGeneration"] = daemon_set["metadata"].get("generation", 0)
    status.pop("updatedNumberScheduled", None)
    status.pop("numberAvailable", None)
    status.pop("numberUnavailable", None)
    if counts.updated:
        status["updatedNumberScheduled"] = counts.updated
    if counts.available:
        status["numberAvailable"] = counts.available
    if unavailable := counts.desired - counts.available:
        status["numberUnavailable"] = unavailable
    return status
