"""What a DaemonSet's status says (``updateDaemonSetStatus``). Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from kubepy.cluster.objects.meta import Object
from kubepy.cluster.objects.pods import is_pod_available, is_pod_ready
from kubepy.controllers.daemonset.placement import Placement
from kubepy.controllers.daemonset.pods import NodePods, is_updated, oldest_first, template_generation


class Counts(NamedTuple):
    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0


def count(daemon_set: Object, placements: Mapping[str, Placement], node_pods: NodePods, hash_: str,
          now: datetime) -> Counts:
    """One pod a node counts, the oldest scheduled one, also when it is being deleted."""
    generation = template_generation(daemon_set)
    min_ready_seconds = daemon_set["spec"].get("minReadySeconds") or 0
    desired = current = misscheduled = ready = available = updated = 0
    for node, placement in placements.items():
        pods = node_pods.get(node)
        if not placement.should_run:
            misscheduled += bool(pods)
            continue
        desired += 1
        if not pods:
            continue
        pod = pods[0] if len(pods) == 1 else oldest_first(pods)[0]
        current += 1
        if is_pod_ready(pod):
            ready += 1
            available += not min_ready_seconds or is_pod_available(pod, min_ready_seconds, now)
        updated += is_updated(pod, hash_, generation)
    return Counts(desired, current, misscheduled, ready, available, updated)


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
