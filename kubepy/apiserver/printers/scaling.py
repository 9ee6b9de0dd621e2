"""Tables of what says how many pods, how important, and with which devices: HPAs, PDBs, classes,
claims."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubepy.api.meta import Object
from kubepy.api.objects.autoscalers import V1, to_v2
from kubepy.api.objects.usage import MEASURED, total
from kubepy.api.values.quantity import Quantity
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
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    minimum = spec.get("minReplicas")
    return [
        obj["metadata"]["name"],
        f"{target.get('kind', '')}/{target.get('name', '')}",
        metrics(spec.get("metrics") or [], status.get("currentMetrics") or []),
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
    more = f" + {len(shown) - MOST_METRICS} more..." if len(shown) > MOST_METRICS else ""
    return ", ".join(shown[:MOST_METRICS]) + more if shown else "<none>"


def _metric(spec: dict[str, Any], status: dict[str, Any]) -> str:
    if spec.get("type") not in METRICS:
        return "<unknown type>"
    key, named = METRICS[spec["type"]]
    source = spec.get(key) or {}
    shares = _share(source.get("target") or {}, status.get(key), named, spec["type"] == "Pods")
    return f"{source.get('name', '')}: {shares}" if named else shares


def _share(target: dict[str, Any], status: dict[str, Any] | None, named: bool, pods: bool) -> str:
    """Return the current amount and the target; ``<nil>`` for a status without the amount."""
    average, current = target.get("averageValue"), (status or {}).get("current") or {}
    absent = "<unknown>" if status is None else "<nil>"
    if average is not None and not named and not pods:
        return f"{current.get('averageValue', '<unknown>')}/{average} (avg)"
    if average is not None or pods:
        return f"{current.get('averageValue', absent)}/{average}"
    if not named:
        return f"{current.get('value', absent)}/{target.get('value')}"
    current_percent, target_percent = (
        current.get("averageUtilization"),
        target.get("averageUtilization"),
    )
    shown = "<unknown>" if current_percent is None else f"{current_percent}%"
    return f"{shown}/{'<auto>' if target_percent is None else f'{target_percent}%'}"


@printer("Name", "cpu", "memory", "Window")
def print_pod_metrics(obj: Object, now: datetime) -> list[Cell]:
    usage = total(
        {name: Quantity.parse(amount) for name, amount in container["usage"].items()}
        for container in obj.get("containers") or ()
    )
    amounts = (str(usage.get(name, Quantity(0))) for name in MEASURED)
    return [obj["metadata"]["name"], *amounts, obj.get("window", "")]


@printer("Name", "cpu", "memory", "Window")
def print_node_metrics(obj: Object, now: datetime) -> list[Cell]:
    usage = obj.get("usage") or {}
    return [
        obj["metadata"]["name"],
        *(usage.get(name, "0") for name in MEASURED),
        obj.get("window", ""),
    ]


# --- the others -----------------------------------------------------------------------------------


@printer("Name", "Desired", "Available", "Age")
def print_scale(obj: Object, now: datetime) -> list[Cell]:
    return [
        obj["metadata"]["name"],
        (obj.get("spec") or {}).get("replicas", 0),
        (obj.get("status") or {}).get("replicas", 0),
        age(obj, now),
    ]


@printer("Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age")
def print_disruption_budget(obj: Object, now: datetime) -> list[Cell]:
    spec = obj.get("spec") or {}
    return [
        obj["metadata"]["name"],
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        (obj.get("status") or {}).get("disruptionsAllowed", 0),
        age(obj, now),
    ]


@printer("Name", "Value", "Global-Default", "Age", "PreemptionPolicy")
def print_priority_class(obj: Object, now: datetime) -> list[Cell]:
    return [
        obj["metadata"]["name"],
        obj.get("value", 0),
        obj.get("globalDefault", False),
        age(obj, now),
        obj.get("preemptionPolicy", ""),
    ]


@printer("Name", "Handler", "Age")
def print_runtime_class(obj: Object, now: datetime) -> list[Cell]:
    return [obj["metadata"]["name"], obj.get("handler", ""), age(obj, now)]


@printer("Name", "Age")
def print_named(obj: Object, now: datetime) -> list[Cell]:
    return [obj["metadata"]["name"], age(obj, now)]


@printer("Name", "State", "Age")
def print_resource_claim(obj: Object, now: datetime) -> list[Cell]:
    return [obj["metadata"]["name"], ",".join(_claim_states(obj)), age(obj, now)]


def _claim_states(obj: Object) -> list[str]:
    status = obj.get("status") or {}
    deleted = bool(obj["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if status.get("allocation") is None:
        return states or ["pending"]
    return [*states, "allocated", *(["reserved"] if status.get("reservedFor") else [])]


@printer("Name", "Node", "Driver", "Pool", "Age")
def print_resource_slice(obj: Object, now: datetime) -> list[Cell]:
    spec = obj.get("spec") or {}
    return [
        obj["metadata"]["name"],
        spec.get("nodeName", ""),
        spec.get("driver", ""),
        (spec.get("pool") or {}).get("name", ""),
        age(obj, now),
    ]
