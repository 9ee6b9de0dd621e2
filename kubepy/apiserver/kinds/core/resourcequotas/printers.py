"""Tables of ResourceQuotas."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, status_of
from kubepy.apiserver.printers import Cell, age, printer


@printer("Name", "Request", "Limit", "Age")
def print_resource_quota(obj: Object, now: datetime) -> list[Cell]:
    status = status_of(obj)
    hard = status.get("hard") or {}
    used = status.get("used") or {}
    requests = []
    limits = []
    for name in sorted(hard):
        share = f"{name}: {used.get(name, 0)}/{hard[name]}"
        if name.startswith("limits."):
            limits.append(share)
        else:
            requests.append(share)

    return [
        obj["metadata"]["name"],
        ", ".join(requests),
        ", ".join(limits),
        age(obj, now),
    ]
