"""Conditions in the status of workloads. Pure functions over lists, which are never changed in
place.

Upstream: ``SetDeploymentCondition`` and ``SetCondition`` of
``pkg/controller/{deployment/util,replicaset}``, and ``ensureJobConditionStatus`` of
``pkg/controller/job``.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from kubepy.api.clock import format_time
from kubepy.api.meta import AnyObject, Object

Conditions = list[Object]


def conditions_of(obj: AnyObject) -> Conditions:
    """Return ``status.conditions``, an empty list where there are none."""
    status = obj.get("status") or {}
    conditions: Conditions = status.get("conditions") or []
    return conditions


def find_condition(conditions: Iterable[Any] | None, condition_type: str) -> Object | None:
    return next(
        (condition for condition in conditions or () if condition["type"] == condition_type), None
    )


def without_condition(conditions: Conditions | None, condition_type: str) -> Conditions:
    if not conditions:
        return []
    return [condition for condition in conditions if condition["type"] != condition_type]


def with_condition(conditions: Conditions | None, condition: Object) -> Conditions:
    """Put a condition at the end, in place of the one of its type; one with that status and reason
    stays as it is.

    A condition whose status stays keeps its lastTransitionTime.
    """
    current = find_condition(conditions, condition["type"])
    if current is not None and current["status"] == condition["status"]:
        if current.get("reason", "") == condition.get("reason", ""):
            return list(conditions or [])
        if "lastUpdateTime" in condition:
            condition = {**condition, "lastTransitionTime": current.get("lastTransitionTime")}
    return [*without_condition(conditions, condition["type"]), condition]


def new_job_condition(
    condition_type: str, status: str, reason: str, message: str, now: datetime
) -> Object:
    time = format_time(now)
    return {
        "type": condition_type,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": time,
        "lastTransitionTime": time,
    }


def ensure_job_condition(conditions: Conditions, condition: Object) -> Conditions:
    """Put a condition in the place of the one of its type; one that says the same stays as it is,
    and one that is not there is not added with the status False."""
    for index, current in enumerate(conditions):
        if current["type"] == condition["type"]:
            if all(
                current.get(field, "") == condition[field]
                for field in ("status", "reason", "message")
            ):
                return conditions
            return [*conditions[:index], condition, *conditions[index + 1 :]]
    if condition["status"] != "False":
        return [*conditions, condition]
    return conditions
