"""What a ReplicaSet's status says (``calculateStatus``). Pure functions."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.clock import format_time
from kubepy.api.meta import Object, labels_of
from kubepy.api.objects.pods import is_pod_available, is_pod_ready
from kubepy.controllers.conditions import find_condition, with_condition, without_condition

REPLICA_FAILURE = "ReplicaFailure"


def new_status(replica_set: Object, pods: list[Object], terminating: int | None, failure: str, now: datetime) -> Object:
    """The status for these active pods; ``failure`` is the error of creating or deleting pods, "" for none.

    As the API writes it: replicas always, and ``terminating`` unless it is None; other counts when they are not 0.
    """
    template_labels = (replica_set["spec"]["template"].get("metadata") or {}).get("labels") or {}
    seconds = replica_set["spec"].get("minReadySeconds") or 0
    counts = {
        "fullyLabeledReplicas": sum(template_labels.items() <= labels_of(pod).items() for pod in pods),
        "readyReplicas": sum(map(is_pod_ready, pods)),
        "availableReplicas": sum(is_pod_available(pod, seconds, now) for pod in pods),
    }
    status: Object = {"replicas": len(pods), "observedGeneration": replica_set["metadata"].get("generation", 0)}
    if terminating is not None:
        status["terminatingReplicas"] = terminating
    status |= {name: value for name, value in counts.items() if value}
    if conditions := _conditions(replica_set, len(pods), failure, now):
        status["conditions"] = conditions
    return status


def _conditions(replica_set: Object, pods: int, failure: str, now: datetime) -> list[Object]:
    before = (replica_set.get("status") or {}).get("conditions") or []
    if not failure:
        return without_condition(before, REPLICA_FAILURE)
    if find_condition(before, REPLICA_FAILURE):
        return list(before)
    missing = pods < replica_set["spec"].get("replicas", 0)
    return with_condition(before, {
        "type": REPLICA_FAILURE, "status": "True", "reason": "FailedCreate" if missing else "FailedDelete",
        "message": failure, "lastTransitionTime": format_time(now),
    })
