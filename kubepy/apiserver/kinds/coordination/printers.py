"""Tables of Leases."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, spec_of
from kubepy.apiserver.printers import Cell, age, printer


@printer("Name", "Holder", "Age")
def print_lease(obj: Object, now: datetime) -> list[Cell]:
    return [
        obj["metadata"]["name"],
        spec_of(obj).get("holderIdentity", ""),
        age(obj, now),
    ]
