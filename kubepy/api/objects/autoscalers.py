"""HorizontalPodAutoscalers in their two versions: ``autoscaling/v1`` knows of one metric, the use of cpu.

What else there is stands in annotations there. Upstream: ``pkg/apis/autoscaling/v1/conversion.go``.
"""

from __future__ import annotations

from typing import Any

from kubepy.api.meta import AnyObject, Object
from kubepy.api.values.goformat import to_json

V1, V2 = "autoscaling/v1", "autoscaling/v2"
METRICS = "autoscaling.alpha.kubernetes.io/metrics"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
_UTILIZATION = "targetCPUUtilizationPercentage"

# Each type of metric: its key, and where its parts stand in v2 and in v1.
_NAMED = ((("name",), "name"), (("container",), "container"), (("target", "averageUtilization"),
          "targetAverageUtilization"), (("target", "averageValue"), "targetAverageValue"))
_PARTS: dict[str, tuple[str, tuple[tuple[tuple[str, ...], str], ...]]] = {
    "Resource": ("resource", _NAMED),
    "ContainerResource": ("containerResource", _NAMED),
    "Pods": ("pods", ((("metric", "name"), "metricName"), (("metric", "selector"), "selector"),
                      (("target", "averageValue"), "targetAverageValue"))),
    "Object": ("object", ((("describedObject",), "target"), (("metric", "name"), "metricName"),
                          (("metric", "selector"), "selector"), (("target", "value"), "targetValue"),
                          (("target", "averageValue"), "averageValue"))),
    "External": ("external", ((("metric", "name"), "metricName"), (("metric", "selector"), "metricSelector"),
                              (("target", "value"), "targetValue"),
                              (("target", "averageValue"), "targetAverageValue"))),
}
_TARGET_TYPES = {"averageUtilization": "Utilization", "averageValue": "AverageValue", "value": "Value"}


def to_v1(obj: AnyObject) -> Object:
    """An autoscaler of ``autoscaling/v2`` as v1 shows it; ``obj`` is not changed."""
    spec, status, annotations = dict(obj.get("spec") or {}), dict(obj.get("status") or {}), {}
    metrics, behavior = spec.pop("metrics", None) or [], spec.pop("behavior", None)
    cpu = next((one for one in metrics if _is_cpu_use(one)), None)
    if cpu is not None:
        spec[_UTILIZATION] = cpu["resource"]["target"]["averageUtilization"]
    if others := [_metric_to_v1(one) for one in metrics if one is not cpu]:
        annotations[METRICS] = to_json(others)
    if behavior:
        annotations[BEHAVIOR] = to_json(_with_keys(behavior, str.upper))
    for key in ("currentMetrics", "conditions"):
        status.pop(key, None)
    return {**obj, "apiVersion": V1, "metadata": _annotated(obj["metadata"], annotations), "spec": spec,
            "status": {"currentReplicas": 0, "desiredReplicas": 0, **status}}


def to_v2(obj: AnyObject) -> Object:
    """An autoscaler of v1 as v2 writes it; its status, which only the server's own writes are about, is left out."""
    metadata, spec = obj["metadata"], dict(obj.get("spec") or {})
    annotations = metadata.get("annotations") or {}
    utilization, metrics = spec.pop(_UTILIZATION, None), [_metric_to_v2(one) for one in _read(annotations, METRICS, [])]
    if utilization is not None:
        target = {"averageUtilization": utilization, "type": "Utilization"}
        metrics.append({"resource": {"name": "cpu", "target": target}, "type": "Resource"})
    if metrics:
        spec["metrics"] = metrics
    if behavior := _with_keys(_read(annotations, BEHAVIOR, {}), str.lower):
        spec["behavior"] = behavior
    kept = {key: value for key, value in annotations.items() if key not in (METRICS, BEHAVIOR)}
    return {"apiVersion": V2, "kind": obj["kind"], "metadata": metadata if kept == annotations
            else _annotated({**metadata, "annotations": {}}, kept), "spec": spec}


def _is_cpu_use(metric: AnyObject) -> bool:
    resource = metric.get("resource") or {}
    return (metric.get("type"), resource.get("name")) == ("Resource", "cpu") and (
        (resource.get("target") or {}).get("averageUtilization") is not None)


def _annotated(metadata: AnyObject, annotations: dict[str, str]) -> Object:
    merged = {**(metadata.get("annotations") or {}), **annotations}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**rest, "annotations": merged} if merged else rest


def _read(annotations: dict[str, str], key: str, nothing: Any) -> Any:
    """What an annotation holds; one that does not hold what it should counts for nothing."""
    from kubepy.storage.yaml import YamlError, read_json

    try:
        found = read_json(annotations.get(key) or "null")
    except YamlError:
        return nothing
    return found if isinstance(found, type(nothing)) else nothing


def _metric_to_v1(metric: AnyObject) -> Object:
    key, parts = _PARTS.get(metric.get("type", ""), ("", ()))
    source = metric.get(key) or {}
    shown = {name: found for path, name in parts if (found := _at(source, path)) is not None}
    return {"type": metric.get("type", ""), **({key: shown} if key else {})}


def _metric_to_v2(metric: Any) -> Object:
    kind = metric.get("type", "") if isinstance(metric, dict) else ""
    key, parts = _PARTS.get(kind, ("", ()))
    source: Object = {}
    for path, name in parts:
        if (found := (metric.get(key) or {}).get(name)) is not None:
            _put(source, path, found)
    if isinstance(target := source.get("target"), dict):
        target["type"] = next(kind for field, kind in _TARGET_TYPES.items() if field in target)
    return {**({key: source} if key else {}), "type": kind}


def _at(source: AnyObject, path: tuple[str, ...]) -> Any:
    for step in path:
        source = source.get(step) or {}
    return source or None


def _put(source: Object, path: tuple[str, ...], value: Any) -> None:
    for step in path[:-1]:
        source = source.setdefault(step, {})
    source[path[-1]] = value


def _with_keys(value: Any, change: Any) -> Any:
    """With the first letter of each key changed: the annotation has Go's names of the fields."""
    if isinstance(value, dict):
        return {change(key[:1]) + key[1:]: _with_keys(item, change) for key, item in value.items()}
    return [_with_keys(item, change) for item in value] if isinstance(value, list) else value
