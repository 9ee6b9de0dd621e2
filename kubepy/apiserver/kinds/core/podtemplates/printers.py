"""Tables of PodTemplates, and the cells about replicas and their template that workloads share."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubepy.api.meta import Object, nested_map, spec_of, status_of
from kubepy.api.selectors import format_labels
from kubepy.apiserver.printers import Cell, age, printer

REPLICAS_COLUMNS = (
    "Name",
    "Desired",
    "Current",
    "Ready",
    "Age",
    "+Containers",
    "+Images",
    "+Selector",
)


def pod_spec(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the pod spec in a workload's spec; {} for a handwritten one without it."""
    return nested_map(spec, "template", "spec")


def container_cells(pod_spec: dict[str, Any]) -> list[Cell]:
    """Return the names of the containers, and their images."""
    containers = pod_spec.get("containers") or []
    return [
        ",".join(container.get(field, "") for container in containers)
        for field in ("name", "image")
    ]


def replicas_cells(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    status = status_of(obj)
    return [
        obj["metadata"]["name"],
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now),
        *container_cells(pod_spec(spec)),
    ]


@printer("Name", "Containers", "Images", "Pod Labels")
def print_pod_template(obj: Object, _now: datetime) -> list[Cell]:
    template = obj.get("template") or {}
    return [
        obj["metadata"]["name"],
        *container_cells(spec_of(template)),
        format_labels((template.get("metadata") or {}).get("labels")),
    ]
