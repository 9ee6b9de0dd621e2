"""Tables of FlowSchemas and PriorityLevelConfigurations."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, nested_list, spec_of
from kubepy.apiserver.printers import Cell, age, printer


@printer("Name", "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL")
def print_flow_schema(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    dangling = next(
        (
            condition["status"]
            for condition in nested_list(obj, "status", "conditions")
            if condition["type"] == "Dangling"
        ),
        "?",
    )
    return [
        obj["metadata"]["name"],
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        (spec.get("distinguisherMethod") or {}).get("type", "<none>"),
        age(obj, now),
        dangling,
    ]


@printer(
    "Name", "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"
)
def print_priority_level(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    limited = spec.get("limited")
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing")
    shares = "<none>" if limited is None else limited.get("nominalConcurrencyShares", 0)
    queues = [
        (queuing or {}).get(key, "<none>" if queuing is None else 0)
        for key in ("queues", "handSize", "queueLengthLimit")
    ]
    return [obj["metadata"]["name"], spec.get("type", ""), shares, *queues, age(obj, now)]
