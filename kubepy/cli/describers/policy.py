"""Describe PodDisruptionBudgets, PriorityClasses, ResourceQuotas and LimitRanges."""

from __future__ import annotations

from collections.abc import Sequence

from kubepy.api.meta import AnyObject, name_of, namespace_of, nested_list, nested_map, status_of
from kubepy.api.selectors import format_label_selector, format_labels
from kubepy.api.values.quantity import Quantity
from kubepy.cli.describers.writer import DescribeContext, PrefixWriter, events, go_value, heading


def pod_disruption_budget(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    spec = obj["spec"]
    status = obj.get("status", {})
    heading(writer, obj)
    if "minAvailable" in spec:
        writer.field(0, "Min available", spec["minAvailable"])
    elif "maxUnavailable" in spec:
        writer.field(0, "Max unavailable", spec["maxUnavailable"])

    selector = spec.get("selector")
    writer.field(0, "Selector", "<unset>" if selector is None else format_label_selector(selector))
    writer.line(0, "Status:")
    for name, key in (
        ("Allowed disruptions", "disruptionsAllowed"),
        ("Current", "currentHealthy"),
        ("Desired", "desiredHealthy"),
        ("Total", "expectedPods"),
    ):
        writer.field(2, name, status.get(key, 0))

    events(writer, context)


def priority_class(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj, namespaced=False)
    writer.field(0, "Value", obj.get("value", 0))
    writer.field(0, "GlobalDefault", go_value(bool(obj.get("globalDefault"))))
    writer.field(0, "PreemptionPolicy", obj.get("preemptionPolicy", ""))
    writer.field(0, "Description", obj.get("description", ""))
    writer.field(0, "Annotations", format_labels(obj["metadata"].get("annotations")))
    events(writer, context)


QUOTA_SCOPES = {
    "Terminating": "Matches all pods that have an active deadline. These pods have a limited "
    "lifespan on a node before"
    " being actively terminated by the system.",
    "NotTerminating": "Matches all pods that do not have an active deadline. These pods usually "
    "include long running"
    " pods whose container command is not expected to terminate.",
    "BestEffort": "Matches all pods that do not have resource requirements set. These pods have a "
    "best effort quality"
    " of service.",
    "NotBestEffort": "Matches all pods that have at least one resource requirement set. These "
    "pods have a burstable or"
    " guaranteed quality of service.",
}
_LIMITS = ("min", "max", "defaultRequest", "default", "maxLimitRequestRatio")


def resource_quota(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    writer.field(0, "Name", name_of(obj))
    writer.field(0, "Namespace", namespace_of(obj))
    _scopes(writer, obj, 0, " * ")
    writer.line(0, "Resource\tUsed\tHard\n--------\t----\t----")
    _amounts(writer, obj, 0)


def quotas_of_namespace(writer: PrefixWriter, quotas: Sequence[AnyObject]) -> None:
    writer.line(0, "")
    writer.line(0, "Resource Quotas" if quotas else "No resource quota.")
    for quota in quotas:
        writer.field(1, "Name", name_of(quota))
        _scopes(writer, quota, 1, "* ")
        writer.line(1, "Resource\tUsed\tHard")
        writer.line(1, "--------\t---\t---")
        _amounts(writer, quota, 1)


def _scopes(writer: PrefixWriter, quota: AnyObject, level: int, mark: str) -> None:
    if scopes := sorted(nested_list(quota["spec"], "scopes")):
        writer.field(level, "Scopes", ", ".join(scopes))
        for scope in scopes:
            if scope in QUOTA_SCOPES:
                writer.line(level, f"{mark}{QUOTA_SCOPES[scope]}")


def _amounts(writer: PrefixWriter, quota: AnyObject, level: int) -> None:
    """Write the used amounts in the unit format of their limits."""
    status = status_of(quota)
    used = nested_map(status, "used")
    for resource, hard in sorted(nested_map(status, "hard").items()):
        amount = Quantity.parse(used.get(resource, "0"))
        unit_format = Quantity.parse(hard).format
        if amount.format != unit_format:
            amount = Quantity.of(amount.value(), unit_format)
        writer.line(level, f"{resource}\t{amount}\t{hard}")


def limit_range(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    writer.field(0, "Name", name_of(obj))
    writer.field(0, "Namespace", namespace_of(obj))
    _limits(writer, [obj], "")


def limits_of_namespace(writer: PrefixWriter, limit_ranges: Sequence[AnyObject]) -> None:
    writer.line(0, "")
    if not limit_ranges:
        writer.line(0, "No LimitRange resource.")
        return
    writer.line(0, "Resource Limits")
    _limits(writer, limit_ranges, " ")


def _limits(writer: PrefixWriter, limit_ranges: Sequence[AnyObject], lead: str) -> None:
    writer.line(
        0,
        f"{lead}Type\tResource\tMin\tMax\tDefault Request\tDefault Limit\tMax Limit/Request Ratio",
    )
    writer.line(
        0,
        f"{lead}----\t--------\t---\t---\t---------------\t-------------\t-----------------------",
    )
    for limit in (limit for obj in limit_ranges for limit in nested_list(obj, "spec", "limits")):
        for resource in sorted({name for column in _LIMITS for name in limit.get(column) or {}}):
            cells = [str((limit.get(column) or {}).get(resource, "-")) for column in _LIMITS]
            writer.line(0, "\t".join([f"{lead}{limit['type']}", resource, *cells]))
