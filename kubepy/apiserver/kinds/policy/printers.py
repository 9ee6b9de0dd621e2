"""Tables of PodDisruptionBudgets."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, spec_of, status_of
from kubepy.apiserver.printers import Cell, age, printer


@printer("Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age")
def print_disruption_budget(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    return [
        obj["metadata"]["name"],
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        status_of(obj).get("disruptionsAllowed", 0),
        age(obj, now),
    ]
