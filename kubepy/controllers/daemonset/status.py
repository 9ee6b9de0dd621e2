"""What a DaemonSet's status says (``updateDaemonSetStatus``). Pure functions."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.objects.pods import is_pod_available, is_pod_ready
from kubepy.controllers.daemonset.placement import Placement
from kubepy.controllers.daemonset.pods import is_updated, oldest_first, template_generation


class Counts(NamedTuple):
    """Of one node, where each is 0 or 1, or of all."""

    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0


def count_on_node(daemon_set: Object, placement: Placement, pods: list[Object], hash_: str, now: datetime) -> Counts:
    """One pod a node counts, the oldest scheduled one, also when it is being deleted."""
    if not placement.should_run:
        return Counts(misscheduled=int(bool(pods)))
    if not pods:
        return Counts(desired=1)
    pod = pods[0] if len(pods) == 1 else oldest_first(pods)[0]
    ready = is_pod_ready(pod)
    available = ready and is_pod_available(pod, daemon_set["spec"].get("minReadySeconds") or 0, now)
    updated = is_updated(pod, hash_, template_generation(daemon_set))
    return Counts(1, 1, 0, int(ready), int(available), int(updated))


def new_status(daemon_set: Object, counts: Counts, *, observed: bool) -> Object:
    """The status with these counts; with ``observed`` this generation has been acted upon.

    As the API writes it: the first four counts always, the others only when they are not 0.
    """
    status: Object = dict(daemon_set.get("status") or {})
    if observed:
        status["observedGeneration"] = daemon_set["metadata"].get("generation", 0)
    status |= {
        "desiredNumberScheduled": counts.desired,
        "currentNumberScheduled": counts.current,
        "numberMisscheduled": counts.misscheduled,
        "numberReady": counts.ready,
    }
    optional = {
        "updatedNumberScheduled": counts.updated,
        "numberAvailable": counts.available,
        "numberUnavailable": counts.desired - counts.available,
    }
    for name, value in optional.items():
        status.pop(name, None)
        if value:
            status[name] = value
    return status
