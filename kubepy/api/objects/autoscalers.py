"""Conversion of HorizontalPodAutoscalers between ``autoscaling/v1`` and ``autoscaling/v2``.

v1 has one metric, the utilization of cpu; all others stand in annotations there.
Upstream: ``pkg/apis/autoscaling/v1/conversion.go``.
"""

from __future__ import annotations

from typing import Any

from kubepy.api.meta import AnyObject, Object, nested_map, spec_of, status_of
from kubepy.api.values.goformat import to_json
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.storage import yaml

V1 = "autoscaling/v1"
V2 = "autoscaling/v2"
METRICS = "autoscaling.alpha.kubernetes.io/metrics"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
CURRENT_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
_UTILIZATION = "targetCPUUtilizationPercentage"

# For each type of metric its key, and the paths of its parts in v2 with their names in v1.
_NAMED = (
    (("name",), "name"),
    (("container",), "container"),
    (("target", "averageUtilization"), "targetAverageUtilization"),
    (("target", "averageValue"), "targetAverageValue"),
)
_PARTS: dict[str, tuple[str, tuple[tuple[tuple[str, ...], str], ...]]] = {
    "Resource": ("resource", _NAMED),
    "ContainerResource": ("containerResource", _NAMED),
    "Pods": (
        "pods",
        (
            (("metric", "name"), "metricName"),
            (("metric", "selector"), "selector"),
            (("target", "averageValue"), "targetAverageValue"),
        ),
    ),
    "Object": (
        "object",
        (
            (("describedObject",), "target"),
            (("metric", "name"), "metricName"),
            (("metric", "selector"), "selector"),
            (("target", "value"), "targetValue"),
            (("target", "averageValue"), "averageValue"),
        ),
    ),
    "External": (
        "external",
        (
            (("metric", "name"), "metricName"),
            (("metric", "selector"), "metricSelector"),
            (("target", "value"), "targetValue"),
            (("target", "averageValue"), "targetAverageValue"),
        ),
    ),
}
_TARGET_TYPES = {
    "averageUtilization": "Utilization",
    "averageValue": "AverageValue",
    "value": "Value",
}


def to_v1(obj: AnyObject) -> Object:
    """Convert an autoscaler of ``autoscaling/v2`` to v1; ``obj`` is not changed."""
    spec = dict(spec_of(obj))
    status = dict(status_of(obj))
    annotations = {}
    metrics = spec.pop("metrics", None) or []
    behavior = spec.pop("behavior", None)
    cpu = None
    for metric in metrics:
        resource = nested_map(metric, "resource")
        is_cpu = (metric.get("type"), resource.get("name")) == ("Resource", "cpu")
        if (
            cpu is None
            and is_cpu
            and nested_map(resource, "target").get("averageUtilization") is not None
        ):
            cpu = metric

    if cpu is not None:
        spec[_UTILIZATION] = cpu["resource"]["target"]["averageUtilization"]
    if others := [_metric_to_v1(metric) for metric in metrics if metric is not cpu]:
        annotations[METRICS] = to_json(others)
    if behavior:
        annotations[BEHAVIOR] = to_json(_with_keys(behavior, str.upper))
    current = status.pop("currentMetrics", None) or []
    conditions = status.pop("conditions", None)
    for metric in current:
        resource = nested_map(metric, "resource")
        utilization = nested_map(resource, "current").get("averageUtilization")
        if resource.get("name") == "cpu" and utilization is not None:
            status["currentCPUUtilizationPercentage"] = utilization

    if current:
        annotations[CURRENT_METRICS] = to_json(
            [_metric_status_to_v1(metric) for metric in current], sort_keys=False
        )

    if conditions:
        fields = ("type", "status", "lastTransitionTime", "reason", "message")
        annotations[CONDITIONS] = to_json(
            [
                {field: condition[field] for field in fields if field in condition}
                for condition in conditions
            ],
            sort_keys=False,
        )

    return {
        **obj,
        "apiVersion": V1,
        "metadata": _annotated(obj["metadata"], annotations),
        "spec": spec,
        "status": {"currentReplicas": 0, "desiredReplicas": 0, **status},
    }


def to_v2(obj: AnyObject) -> Object:
    """Convert an autoscaler of v1 to v2, without its status, which clients do not write."""
    metadata = obj["metadata"]
    spec = dict(spec_of(obj))
    annotations = nested_map(metadata, "annotations")
    utilization = spec.pop(_UTILIZATION, None)
    metrics = [_metric_to_v2(metric) for metric in _read(annotations, METRICS, [])]
    if utilization is not None:
        target = {"averageUtilization": utilization, "type": "Utilization"}
        metrics.append({"resource": {"name": "cpu", "target": target}, "type": "Resource"})
    if metrics:
        spec["metrics"] = metrics
    if behavior := _with_keys(_read(annotations, BEHAVIOR, {}), str.lower):
        spec["behavior"] = behavior
    of_v2 = (METRICS, BEHAVIOR, CURRENT_METRICS, CONDITIONS)
    kept = {key: value for key, value in annotations.items() if key not in of_v2}
    return {
        "apiVersion": V2,
        "kind": obj["kind"],
        "metadata": metadata
        if kept == annotations
        else _annotated({**metadata, "annotations": {}}, kept),
        "spec": spec,
    }


def _annotated(metadata: AnyObject, annotations: dict[str, str]) -> Object:
    merged = {**nested_map(metadata, "annotations"), **annotations}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    if merged:
        return {**rest, "annotations": merged}
    return rest


def _read(annotations: dict[str, str], key: str, nothing: Any) -> Any:
    """Read the JSON in an annotation; return ``nothing`` if it has another type or cannot be
    read."""
    try:
        value = yaml.read_json(annotations.get(key) or "null")
    except yaml.YamlError:
        return nothing
    if isinstance(value, type(nothing)):
        return value
    return nothing


def _metric_to_v1(metric: AnyObject) -> Object:
    key, parts = _PARTS.get(metric.get("type", ""), ("", ()))
    source = metric.get(key) or {}
    converted: Object = {}
    for path, name in parts:
        value = source
        for step in path:
            value = value.get(step) or {}
        if value:
            converted[name] = value
    return {"type": metric.get("type", ""), **({key: converted} if key else {})}


def _metric_status_to_v1(metric: AnyObject) -> Object:
    """Convert the status of a metric of resources; others have none without an adapter."""
    for key in ("resource", "containerResource"):
        if (source := metric.get(key)) is not None:
            current = nested_map(source, "current")
            converted: Object = {"name": source.get("name", "")}
            if (utilization := current.get("averageUtilization")) is not None:
                converted["currentAverageUtilization"] = utilization
            converted["currentAverageValue"] = current.get("averageValue", "0")
            if "container" in source:
                converted["container"] = source["container"]
            return {"type": metric["type"], key: converted}
    return {"type": metric.get("type", "")}


def _metric_to_v2(metric: Any) -> Object:
    kind = metric.get("type", "") if isinstance(metric, dict) else ""
    key, parts = _PARTS.get(kind, ("", ()))
    source: Object = {}
    for path, name in parts:
        if (value := (metric.get(key) or {}).get(name)) is not None:
            place = source
            for step in path[:-1]:
                place = place.setdefault(step, {})
            place[path[-1]] = value
    if isinstance(target := source.get("target"), dict):
        target["type"] = next(kind for field, kind in _TARGET_TYPES.items() if field in target)
    return {**({key: source} if key else {}), "type": kind}


def _with_keys(value: Any, change: Any) -> Any:
    """Change the first letter of each key: annotations spell fields as Go does."""
    if isinstance(value, dict):
        return {change(key[:1]) + key[1:]: _with_keys(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_keys(item, change) for item in value]
    return value
