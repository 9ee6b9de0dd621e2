"""Describe HorizontalPodAutoscalers."""

from __future__ import annotations

from typing import Any

from kubepy.api.meta import AnyObject, nested_list, nested_map, status_of
from kubepy.api.objects.autoscalers import V1, to_v2
from kubepy.api.values.goformat import quote
from kubepy.cli.describers.writer import (
    DescribeContext,
    PrefixWriter,
    events,
    format_date,
    heading,
    labels_and_annotations,
)

UNKNOWN = "<unknown>"


def autoscaler(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    obj = to_v2(obj) if obj["apiVersion"] == V1 else obj
    spec = obj["spec"]
    status = status_of(obj)
    target = spec["scaleTargetRef"]
    heading(writer, obj)
    labels_and_annotations(writer, obj)
    writer.field(0, "CreationTimestamp", format_date(obj["metadata"].get("creationTimestamp")))
    writer.field(0, "Reference", f"{target.get('kind', '')}/{target.get('name', '')}")
    writer.field(0, "Metrics", "( current / target )")
    current = nested_list(status, "currentMetrics")
    for index, metric in enumerate(nested_list(spec, "metrics")):
        writer.line(1, _metric(metric, current[index] if index < len(current) else {}))
    writer.field(0, "Min replicas", spec.get("minReplicas", "<unset>"))
    writer.field(0, "Max replicas", spec.get("maxReplicas", 0))
    _behavior(writer, spec.get("behavior"))
    writer.field(
        0,
        f"{target.get('kind', '')} pods",
        f"{status.get('currentReplicas', 0)} current / {status.get('desiredReplicas', 0)} desired",
    )
    if conditions := status.get("conditions"):
        writer.line(0, "Conditions:")
        writer.table(
            1,
            "Type\tStatus\tReason\tMessage",
            (
                [
                    condition["type"],
                    condition["status"],
                    condition.get("reason", ""),
                    condition.get("message", ""),
                ]
                for condition in conditions
            ),
        )

    events(writer, context)


# --- metrics --------------------------------------------------------------------------------------


def _metric(metric: AnyObject, status: AnyObject) -> str:
    """Format a metric: its name, its current value and its target."""
    kind = metric.get("type", "")
    key = kind[:1].lower() + kind[1:]
    source = metric.get(key) or {}
    target = nested_map(source, "target")
    current = (status.get(key) or {}).get("current")
    name = quote(nested_map(source, "metric").get("name", ""))
    match kind:
        case "External":
            return f"{name} " + _value(target, current, "averageValue" in target)
        case "Pods":
            return (
                f"{name} on pods:\t{_current(current, 'averageValue')} / "
                f"{target.get('averageValue', '<nil>')}"
            )
        case "Object":
            described = nested_map(source, "describedObject")
            return f"{name} on {described.get('kind', '')}/{described.get('name', '')} " + _value(
                target, current, target.get("type") == "AverageValue"
            )
        case "Resource":
            return f"resource {source.get('name', '')} on pods{_utilization(target, current)}"
        case "ContainerResource":
            return (
                f"resource {source.get('name', '')} of container "
                f"{quote(source.get('container', ''))} on pods" + _utilization(target, current)
            )

    return f"<unknown metric type {quote(kind)}>"


def _value(target: AnyObject, current: AnyObject | None, average: bool) -> str:
    key = "averageValue" if average else "value"
    title = "target average value" if average else "target value"
    return f"({title}):\t{_current(current, key)} / {target.get(key, '<nil>')}"


def _current(current: AnyObject | None, key: str) -> Any:
    if current is None:
        return UNKNOWN
    return current.get(key, UNKNOWN)


def _utilization(target: AnyObject, current: AnyObject | None) -> str:
    """Format the use of a resource: an amount, or a percentage of the requests."""
    if "averageValue" in target:
        return f":\t{_current(current, 'averageValue')} / {target['averageValue']}"
    used = (current or {}).get("averageUtilization")
    goal = target.get("averageUtilization")
    usage = UNKNOWN if used is None else f"{used}% ({(current or {}).get('averageValue', '<nil>')})"
    return f"  (as a percentage of request):\t{usage} / {'<auto>' if goal is None else f'{goal}%'}"


# --- behavior -------------------------------------------------------------------------------------


def _behavior(writer: PrefixWriter, behavior: AnyObject | None) -> None:
    if behavior is None:
        return
    writer.line(0, "Behavior:")
    for title, key in (("Scale Up", "scaleUp"), ("Scale Down", "scaleDown")):
        rules = behavior.get(key)
        if rules is None:
            continue
        writer.line(1, f"{title}:")
        if "stabilizationWindowSeconds" in rules:
            writer.line(2, f"Stabilization Window: {rules['stabilizationWindowSeconds']} seconds")
        if policies := rules.get("policies"):
            writer.line(2, f"Select Policy: {rules.get('selectPolicy', 'Max')}")
            writer.line(2, "Policies:")
            for policy in policies:
                writer.line(
                    3,
                    f"- Type: {policy.get('type', '')}\tValue: {policy.get('value', 0)}\t"
                    f"Period: {policy.get('periodSeconds', 0)} seconds",
                )
