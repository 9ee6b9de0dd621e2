"""The status of a DaemonSet (``updateDaemonSetStatus``). Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

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
    desired = current = misscheduled = ready = available = updated = 0
    for node, placement in state.placements.items():
        pods = state.nodes_to_daemon_pods.get(node)
        if not placement.should_run:
            misscheduled += bool(pods)
            continue
        desired += 1
        if pods:
            current += 1
            pod = pods[0] if len(pods) == 1 else oldest_first(pods)[0]
            updated += state.is_updated(pod)
            if pod.is_ready:
                ready += 1
                available += state.is_available(pod)
    return Counts(desired, current, misscheduled, ready, available, updated)


def new_status(daemon_set: DaemonSet, counts: Counts, *, observed: bool) -> DaemonSetStatus:
    """Return the status with these counts; with ``observed`` this generation has been acted upon.

    As the API writes it: the first four counts always, the others only when they are not 0.
    """
    status = {
        **(daemon_set.get("status") or {}),
        "desiredNumberScheduled": counts.desired,
        "currentNumberScheduled": counts.current,
        "numberMisscheduled": counts.misscheduled,
        "numberReady": counts.ready,
    }
    if observed:
        status["observedGeneration"] = daemon_set["metadata"].get("generation", 0)
    optional = {
        "updatedNumberScheduled": counts.updated,
        "numberAvailable": counts.available,
        "numberUnavailable": counts.desired - counts.available,
    }
    for name, value in optional.items():
        status.pop(name, None)
        if value:
            status[name] = value
    return cast("DaemonSetStatus", status)
