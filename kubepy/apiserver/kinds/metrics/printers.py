"""Tables of the usage of pods and nodes."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, nested_list
from kubepy.api.objects.usage import MEASURED, total
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.printers import Cell, printer


@printer("Name", "cpu", "memory", "Window")
def print_pod_metrics(obj: Object, now: datetime) -> list[Cell]:
    usage = total(
        {name: Quantity.parse(amount) for name, amount in container["usage"].items()}
        for container in nested_list(obj, "containers")
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
