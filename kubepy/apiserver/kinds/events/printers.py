"""Tables of Events of events.k8s.io."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object
from kubepy.apiserver.kinds.core.printers import EVENT_COLUMNS, print_event
from kubepy.apiserver.printers import Cell, printer


@printer(*EVENT_COLUMNS)
def print_new_event(obj: Object, now: datetime) -> list[Cell]:
    """Print an event of events.k8s.io: the same event, with other names for its fields."""
    core = {
        **obj,
        "involvedObject": obj.get("regarding"),
        "message": obj.get("note", ""),
        "source": obj.get("deprecatedSource"),
        "firstTimestamp": obj.get("deprecatedFirstTimestamp"),
        "lastTimestamp": obj.get("deprecatedLastTimestamp"),
        "count": obj.get("deprecatedCount"),
        "reportingComponent": obj.get("reportingController", ""),
    }
    return print_event.row(core, now)
