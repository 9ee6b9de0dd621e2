"""Tables of what runs pods: DaemonSets, Deployments, ReplicaSets, StatefulSets, Jobs and their
revisions."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object, controller_of
from kubepy.api.selectors import (
    SelectorError,
    format_label_selector,
    format_labels,
    from_label_selector,
)
from kubepy.apiserver.printers import Cell, age, human_duration, printer, since

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


def spec_of(obj: Object) -> dict[str, Any]:
    return obj.get("spec") or {}


def pod_spec(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the pod spec in a workload's spec; {} for a handwritten one without it."""
    return (spec.get("template") or {}).get("spec") or {}


def container_cells(pod_spec: dict[str, Any]) -> list[Cell]:
    """Return the names of the containers, and their images."""
    containers = pod_spec.get("containers") or []
    return [
        ",".join(container.get(field, "") for container in containers)
        for field in ("name", "image")
    ]


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
    spec, status = spec_of(obj), obj.get("status") or {}
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
    spec, status = spec_of(obj), obj.get("status") or {}
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
    return [*_replicas(obj, now), format_label_selector(spec_of(obj).get("selector"))]


@printer(*REPLICAS_COLUMNS)
def print_replication_controller(obj: Object, now: datetime) -> list[Cell]:
    return [*_replicas(obj, now), format_labels(spec_of(obj).get("selector"))]


def _replicas(obj: Object, now: datetime) -> list[Cell]:
    spec, status = spec_of(obj), obj.get("status") or {}
    return [
        obj["metadata"]["name"],
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now),
        *container_cells(pod_spec(spec)),
    ]


@printer("Name", "Ready", "Age", "+Containers", "+Images")
def print_stateful_set(obj: Object, now: datetime) -> list[Cell]:
    ready = (obj.get("status") or {}).get("readyReplicas", 0)
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


# --- batch ----------------------------------------------------------------------------------------


@printer("Name", "Status", "Completions", "Duration", "Age", "+Containers", "+Images", "+Selector")
def print_job(obj: Object, now: datetime) -> list[Cell]:
    status, duration = obj.get("status") or {}, ""
    if status.get("startTime"):
        end = parse_time(status["completionTime"]) if status.get("completionTime") else now
        duration = human_duration((end - parse_time(status["startTime"])).total_seconds())
    return [
        obj["metadata"]["name"],
        _job_status(obj),
        _completions(obj),
        duration,
        age(obj, now),
        *container_cells(pod_spec(spec_of(obj))),
        format_label_selector(spec_of(obj).get("selector")),
    ]


def _job_status(obj: Object) -> str:
    conditions: dict[str, str] = {}
    for condition in (obj.get("status") or {}).get("conditions") or []:
        conditions.setdefault(condition["type"], condition["status"])
    for kind in ("Complete", "Failed"):
        if conditions.get(kind) == "True":
            return kind
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if conditions.get(kind) == "True":
            return kind
    return "Running"


def _completions(obj: Object) -> str:
    spec = spec_of(obj)
    succeeded = (obj.get("status") or {}).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


@printer(
    "Name",
    "Schedule",
    "Timezone",
    "Suspend",
    "Active",
    "Last Schedule",
    "Age",
    "+Containers",
    "+Images",
    "+Selector",
)
def print_cron_job(obj: Object, now: datetime) -> list[Cell]:
    spec, status = spec_of(obj), obj.get("status") or {}
    job = spec_of(spec.get("jobTemplate") or {})
    last = status.get("lastScheduleTime")
    return [
        obj["metadata"]["name"],
        spec.get("schedule", ""),
        spec.get("timeZone", "<none>"),
        {None: "<unset>", True: "True", False: "False"}[spec.get("suspend")],
        len(status.get("active") or []),
        since(last, now) if last else "<none>",
        age(obj, now),
        *container_cells(pod_spec(job)),
        format_label_selector(job.get("selector")),
    ]
