"""Tables of devices and of claims to them."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, spec_of, status_of
from kubepy.apiserver.printers import Cell, age, printer


@printer("Name", "Age")
def print_named(obj: Object, now: datetime) -> list[Cell]:
    return [obj["metadata"]["name"], age(obj, now)]


@printer("Name", "State", "Age")
def print_resource_claim(obj: Object, now: datetime) -> list[Cell]:
    return [obj["metadata"]["name"], ",".join(_claim_states(obj)), age(obj, now)]


def _claim_states(obj: Object) -> list[str]:
    status = status_of(obj)
    deleted = bool(obj["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if status.get("allocation") is None:
        return states or ["pending"]
    return [*states, "allocated", *(["reserved"] if status.get("reservedFor") else [])]


@printer("Name", "Node", "Driver", "Pool", "Age")
def print_resource_slice(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    return [
        obj["metadata"]["name"],
        spec.get("nodeName", ""),
        spec.get("driver", ""),
        (spec.get("pool") or {}).get("name", ""),
        age(obj, now),
    ]
