"""Tables of DaemonSets, Deployments, ReplicaSets, StatefulSets and ControllerRevisions."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, controller_of, spec_of, status_of
from kubepy.api.selectors import (
    SelectorError,
    format_label_selector,
    format_labels,
    from_label_selector,
)
from kubepy.apiserver.kinds.core.podtemplates.printers import (
    REPLICAS_COLUMNS,
    container_cells,
    pod_spec,
    replicas_cells,
)
from kubepy.apiserver.printers import Cell, age, printer


@printer(
    "Name",
    "Desired",
    "Current",
    "Ready",
    "Up-to-date",
    "Available",
    "Node Selector",
    "Age",
    "+Containers",
    "+Images",
    "+Selector",
)
def print_daemon_set(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    status = status_of(obj)
    counts = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        obj["metadata"]["name"],
        *(status.get(count, 0) for count in counts),
        format_labels(pod_spec(spec).get("nodeSelector")),
        age(obj, now),
        *container_cells(pod_spec(spec)),
        format_label_selector(spec.get("selector")),
    ]


@printer("Name", "Ready", "Up-to-date", "Available", "Age", "+Containers", "+Images", "+Selector")
def print_deployment(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    status = status_of(obj)
    try:
        selector = str(from_label_selector(spec.get("selector")))
    except SelectorError:
        selector = "<invalid>"

    return [
        obj["metadata"]["name"],
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
        *container_cells(pod_spec(spec)),
        selector,
    ]


@printer(*REPLICAS_COLUMNS)
def print_replica_set(obj: Object, now: datetime) -> list[Cell]:
    return [*replicas_cells(obj, now), format_label_selector(spec_of(obj).get("selector"))]


@printer("Name", "Ready", "Age", "+Containers", "+Images")
def print_stateful_set(obj: Object, now: datetime) -> list[Cell]:
    ready = status_of(obj).get("readyReplicas", 0)
    return [
        obj["metadata"]["name"],
        f"{ready}/{spec_of(obj).get('replicas', 0)}",
        age(obj, now),
        *container_cells(pod_spec(spec_of(obj))),
    ]


@printer("Name", "Controller", "Revision", "Age")
def print_controller_revision(obj: Object, now: datetime) -> list[Cell]:
    owner = controller_of(obj)
    controller = "<none>"
    if owner:
        group, slash, _ = owner["apiVersion"].rpartition("/")
        kind = f"{owner['kind']}.{group}" if slash else owner["kind"]
        controller = f"{kind.lower()}/{owner['name']}"
    return [obj["metadata"]["name"], controller, obj.get("revision", 0), age(obj, now)]
