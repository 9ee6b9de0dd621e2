"""Tables of PriorityClasses."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object
from kubepy.apiserver.printers import Cell, age, printer


@printer("Name", "Value", "Global-Default", "Age", "PreemptionPolicy")
def print_priority_class(obj: Object, now: datetime) -> list[Cell]:
    return [
        obj["metadata"]["name"],
        obj.get("value", 0),
        obj.get("globalDefault", False),
        age(obj, now),
        obj.get("preemptionPolicy", ""),
    ]
