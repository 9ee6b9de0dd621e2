"""Tables of HorizontalPodAutoscalers and Scales."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubepy.api.meta import Object, nested_list, spec_of, status_of
from kubepy.api.objects.autoscalers import V1, to_v2
from kubepy.apiserver.printers import Cell, age, printer

MOST_METRICS = 2
# Where a metric of each type is, in the spec and in the status, and whether its name is shown.
METRICS = {
    "External": ("external", False),
    "Pods": ("pods", False),
    "Object": ("object", False),
    "Resource": ("resource", True),
    "ContainerResource": ("containerResource", True),
}


# --- HorizontalPodAutoscalers ---------------------------------------------------------------------


@printer("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age")
def print_autoscaler(obj: Object, now: datetime) -> list[Cell]:
    obj = to_v2(obj) if obj.get("apiVersion") == V1 else obj
    spec = spec_of(obj)
    status = status_of(obj)
    target = spec.get("scaleTargetRef") or {}
    minimum = spec.get("minReplicas")
    return [
        obj["metadata"]["name"],
        f"{target.get('kind', '')}/{target.get('name', '')}",
        metrics(nested_list(spec, "metrics"), nested_list(status, "currentMetrics")),
        "<unset>" if minimum is None else str(minimum),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(obj, now),
    ]


def metrics(specs: list[dict[str, Any]], statuses: list[dict[str, Any]]) -> str:
    """Return TARGETS: ``cpu: 20%/50%, 3/5 (avg) + 1 more...`` (``formatHPAMetrics``)."""
    shown = [
        _metric(spec, statuses[index] if index < len(statuses) else {})
        for index, spec in enumerate(specs)
    ]
    more = ""
    if len(shown) > MOST_METRICS:
        more = f" + {len(shown) - MOST_METRICS} more..."
    if shown:
        return ", ".join(shown[:MOST_METRICS]) + more
    return "<none>"


def _metric(spec: dict[str, Any], status: dict[str, Any]) -> str:
    if spec.get("type") not in METRICS:
        return "<unknown type>"
    key, named = METRICS[spec["type"]]
    source = spec.get(key) or {}
    shares = _share(source.get("target") or {}, status.get(key), named, spec["type"] == "Pods")
    if named:
        return f"{source.get('name', '')}: {shares}"
    return shares


def _share(target: dict[str, Any], status: dict[str, Any] | None, named: bool, pods: bool) -> str:
    """Return the current amount and the target; ``<nil>`` for a status without the amount."""
    average = target.get("averageValue")
    current = (status or {}).get("current") or {}
    absent = "<unknown>" if status is None else "<nil>"
    if average is not None and not named and not pods:
        return f"{current.get('averageValue', '<unknown>')}/{average} (avg)"
    if average is not None or pods:
        return f"{current.get('averageValue', absent)}/{average}"
    if not named:
        return f"{current.get('value', absent)}/{target.get('value')}"
    current_percent = current.get("averageUtilization")
    target_percent = target.get("averageUtilization")
    shown = "<unknown>" if current_percent is None else f"{current_percent}%"
    return f"{shown}/{'<auto>' if target_percent is None else f'{target_percent}%'}"


# --- the others -----------------------------------------------------------------------------------


@printer("Name", "Desired", "Available", "Age")
def print_scale(obj: Object, now: datetime) -> list[Cell]:
    return [
        obj["metadata"]["name"],
        spec_of(obj).get("replicas", 0),
        status_of(obj).get("replicas", 0),
        age(obj, now),
    ]
