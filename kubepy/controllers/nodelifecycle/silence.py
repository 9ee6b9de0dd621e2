"""A kubelet that has never reported (``tryUpdateNodeHealth``).

Nodes are not given up for falling silent later: the simulated kubelet has no heartbeat.
"""

from __future__ import annotations

from datetime import datetime

from kubepy.api.clock import format_time
from kubepy.api.meta import Object
from kubepy.api.objects.nodes import get_condition

STARTUP_GRACE_SECONDS = 60.0
CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
REASON, MESSAGE = "NodeStatusNeverUpdated", "Kubelet never posted node status."


def has_never_reported(node: Object) -> bool:
    return get_condition(node, "Ready") is None


def given_up(node: Object, now: datetime) -> Object:
    """The node with each condition Unknown that its kubelet should have reported."""
    conditions = list((node.get("status") or {}).get("conditions") or ())
    conditions += [_unknown(kind, node, now) for kind in CONDITIONS if get_condition(node, kind) is None]
    return {**node, "status": {**(node.get("status") or {}), "conditions": conditions}}


def _unknown(kind: str, node: Object, now: datetime) -> Object:
    return {
        "type": kind, "status": "Unknown", "reason": REASON, "message": MESSAGE,
        "lastHeartbeatTime": node["metadata"].get("creationTimestamp"), "lastTransitionTime": format_time(now),
    }  # fmt: skip
