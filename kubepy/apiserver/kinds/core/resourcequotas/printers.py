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
    shares = {name: f"{name}: {used.get(name, 0)}/{hard[name]}" for name in sorted(hard)}
    return [
        obj["metadata"]["name"],
        ", ".join(share for name, share in shares.items() if not name.startswith("limits.")),
        ", ".join(share for name, share in shares.items() if name.startswith("limits.")),
        age(obj, now),
    ]
