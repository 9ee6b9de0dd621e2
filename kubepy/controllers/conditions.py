"""Conditions in the status of workloads: a list, in which one that changes moves to the end.

Upstream: ``SetDeploymentCondition`` and ``SetCondition`` of ``pkg/controller/{deployment/util,replicaset}``.
"""

from __future__ import annotations

from kubepy.api.meta import Object

Conditions = list[Object]


def find_condition(conditions: Conditions | None, kind: str) -> Object | None:
    return next((one for one in conditions or [] if one["type"] == kind), None)


def without_condition(conditions: Conditions | None, kind: str) -> Conditions:
    return [one for one in conditions or [] if one["type"] != kind]


def with_condition(conditions: Conditions | None, condition: Object) -> Conditions:
    """The conditions with this one; where its status and reason stand already, as they were.

    A condition whose status stays keeps its lastTransitionTime.
    """
    current = find_condition(conditions, condition["type"])
    if current is not None and _verdict(current) == _verdict(condition):
        return list(conditions or [])
    if current is not None and current["status"] == condition["status"] and "lastUpdateTime" in condition:
        condition = {**condition, "lastTransitionTime": current.get("lastTransitionTime")}
    return [*without_condition(conditions, condition["type"]), condition]


def _verdict(condition: Object) -> tuple[str, str]:
    return condition["status"], condition.get("reason", "")
