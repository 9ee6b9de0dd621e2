"""What the status of a DaemonSet will say (``updateDaemonSetStatus``). Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kubepy.api.typed import DaemonSet, DaemonSetStatus


class Counts(NamedTuple):
    """Numbers of nodes, as the status gives them; of each node one pod counts."""

    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0


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
    unavailable = counts.desired - counts.available
    if unavailable:
        status["numberUnavailable"] = unavailable
    return status
