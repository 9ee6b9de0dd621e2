"""Tables of ReplicationControllers."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, spec_of
from kubepy.api.selectors import format_labels
from kubepy.apiserver.kinds.core.podtemplates.printers import REPLICAS_COLUMNS, replicas_cells
from kubepy.apiserver.printers import Cell, printer


@printer(*REPLICAS_COLUMNS)
def print_replication_controller(obj: Object, now: datetime) -> list[Cell]:
    return [*replicas_cells(obj, now), format_labels(spec_of(obj).get("selector"))]
