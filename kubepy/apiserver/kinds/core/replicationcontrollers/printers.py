"""Tables of ReplicationControllers."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object
from kubepy.api.selectors import format_labels
from kubepy.apiserver.kinds.core.podtemplates.printers import container_cells, pod_spec
from kubepy.apiserver.printers import Cell, age, printer, spec_of

REPLICAS_COLUMNS = (
    "Name",
    "Desired",
    "Current",
    "Ready",
    "Age",
    "+Containers",
    "+Images",
    "+Selector",
)


@printer(*REPLICAS_COLUMNS)
def print_replication_controller(obj: Object, now: datetime) -> list[Cell]:
    return [*replicas_cells(obj, now), format_labels(spec_of(obj).get("selector"))]


def replicas_cells(obj: Object, now: datetime) -> list[Cell]:
    spec, status = spec_of(obj), obj.get("status") or {}
    return [
        obj["metadata"]["name"],
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now),
        *container_cells(pod_spec(spec)),
    ]
