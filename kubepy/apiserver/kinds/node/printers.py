"""Tables of RuntimeClasses."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object
from kubepy.apiserver.printers import Cell, age, printer


@printer("Name", "Handler", "Age")
def print_runtime_class(obj: Object, now: datetime) -> list[Cell]:
    return [obj["metadata"]["name"], obj.get("handler", ""), age(obj, now)]
