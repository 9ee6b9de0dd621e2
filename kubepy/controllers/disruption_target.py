"""The ``DisruptionTarget`` condition that says why a pod is being taken away (KEP-3329)."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, namespace_of
from kubepy.api.objects.pods import set_condition
from kubepy.apiserver.client import Client


def mark(client: Client, pod: Object, reason: str, message: str, now: datetime, *, phase: str = "") -> Object:
    """Write the condition, and with ``phase`` that phase, into the pod's status; returns the pod. Raises Status."""
    condition: Object = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
    if generation := pod["metadata"].get("generation"):
        condition["observedGeneration"] = generation
    status = pod.get("status") or {}
    conditions = list(status.get("conditions") or [])
    set_condition(conditions, condition, now)
    new = {**status, "conditions": conditions, **({"phase": phase} if phase else {})}
    return client.update("pods", {**pod, "status": new}, namespace=namespace_of(pod), subresource="status")
