"""Tables of APIServices."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, nested_list, spec_of
from kubepy.apiserver.printers import Cell, age, printer


@printer("Name", "Service", "Available", "Age")
def print_api_service(obj: Object, now: datetime) -> list[Cell]:
    service = spec_of(obj).get("service")
    conditions = nested_list(obj, "status", "conditions")
    available = next(
        (condition for condition in conditions if condition["type"] == "Available"),
        {"status": "Unknown"},
    )
    status = available["status"]
    if status != "True" and "reason" in available:
        status = f"{status} ({available['reason']})"
    return [
        obj["metadata"]["name"],
        f"{service['namespace']}/{service['name']}" if service else "Local",
        status,
        age(obj, now),
    ]
