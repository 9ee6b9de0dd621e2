"""Tables of nodes, namespaces, events and the other kinds of the core group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubepy.api.meta import Object, labels_of
from kubepy.apiserver.printers import Cell, age, printer, since

ROLE_PREFIX = "node-role.kubernetes.io/"
ROLE = "kubernetes.io/role"
EVENT_COLUMNS = (
    "Last Seen",
    "Type",
    "Reason",
    "Object",
    "+Subobject",
    "+Source",
    "Message",
    "+First Seen",
    "+Count",
    "+Name",
)


# --- nodes ----------------------------------------------------------------------------------------


@printer(
    "Name",
    "Status",
    "Roles",
    "Age",
    "Version",
    "+Internal-IP",
    "+External-IP",
    "+OS-Image",
    "+Kernel-Version",
    "+Container-Runtime",
)
def print_node(obj: Object, now: datetime) -> list[Cell]:
    status = obj.get("status") or {}
    info = status.get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or "<unknown>"
    if architecture := info.get("architecture"):
        kernel += f" ({architecture})"
    return [
        obj["metadata"]["name"],
        node_status(obj),
        ",".join(node_roles(obj)) or "<none>",
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or "<unknown>",
        kernel,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def node_status(node: Object) -> str:
    """Return ``Ready,SchedulingDisabled`` and the like."""
    conditions = {
        condition["type"]: condition.get("status")
        for condition in (node.get("status") or {}).get("conditions") or []
    }
    ready = "Unknown"
    if "Ready" in conditions:
        ready = "Ready" if conditions["Ready"] == "True" else "NotReady"
    return f"{ready},SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else ready


def node_roles(node: Object) -> list[str]:
    """Return the roles that a node's labels give it, sorted (``findNodeRoles``)."""
    labels = labels_of(node)
    roles = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)}
    return sorted((roles | {labels.get(ROLE, "")}) - {""})


def _address(status: dict[str, Any], kind: str) -> str:
    return next(
        (
            address["address"]
            for address in status.get("addresses") or []
            if address["type"] == kind
        ),
        "<none>",
    )


# --- events ---------------------------------------------------------------------------------------


@printer(*EVENT_COLUMNS)
def print_event(obj: Object, now: datetime) -> list[Cell]:
    series = obj.get("series")
    first = since(obj.get("firstTimestamp") or obj.get("eventTime"), now)
    last = since(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else first
    count = obj.get("count") or 1
    if series is not None:
        last, count = since(series.get("lastObservedTime"), now), series.get("count", 0)
    about = obj.get("involvedObject") or {}
    kind, name = about.get("kind", "").lower(), about.get("name")
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        about.get("fieldPath", ""),
        event_source(obj),
        obj.get("message", "").strip(),
        first,
        count,
        obj["metadata"]["name"],
    ]


def event_source(event: Object) -> str:
    """Return component and host, ``kubelet, node-1``, or the component alone."""
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent", "")
    host = source.get("host") or event.get("reportingInstance", "")
    return f"{component}, {host}" if host else component


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


# --- the others -----------------------------------------------------------------------------------


@printer("Name", "Status", "Age")
def print_namespace(obj: Object, now: datetime) -> list[Cell]:
    return [obj["metadata"]["name"], (obj.get("status") or {}).get("phase", ""), age(obj, now)]


@printer("Name", "Data", "Age")
def print_config_map(obj: Object, now: datetime) -> list[Cell]:
    size = len(obj.get("data") or {}) + len(obj.get("binaryData") or {})
    return [obj["metadata"]["name"], size, age(obj, now)]


@printer("Name", "Type", "Data", "Age")
def print_secret(obj: Object, now: datetime) -> list[Cell]:
    return [obj["metadata"]["name"], obj.get("type", ""), len(obj.get("data") or {}), age(obj, now)]


@printer("Name", "Age")
def print_service_account(obj: Object, now: datetime) -> list[Cell]:
    return [obj["metadata"]["name"], age(obj, now)]


@printer("Name", "Request", "Limit", "Age")
def print_resource_quota(obj: Object, now: datetime) -> list[Cell]:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    shares = {name: f"{name}: {used.get(name, 0)}/{hard[name]}" for name in sorted(hard)}
    return [
        obj["metadata"]["name"],
        ", ".join(share for name, share in shares.items() if not name.startswith("limits.")),
        ", ".join(share for name, share in shares.items() if name.startswith("limits.")),
        age(obj, now),
    ]


@printer("Name", "Status", "Message", "Error")
def print_component_status(obj: Object, _now: datetime) -> list[Cell]:
    health = next(
        (condition for condition in obj.get("conditions") or [] if condition["type"] == "Healthy"),
        None,
    )
    if health is None:
        return [obj["metadata"]["name"], "Unknown", "", ""]
    status = "Healthy" if health.get("status") == "True" else "Unhealthy"
    return [obj["metadata"]["name"], status, health.get("message", ""), health.get("error", "")]


@printer("Name", "Holder", "Age")
def print_lease(obj: Object, now: datetime) -> list[Cell]:
    return [
        obj["metadata"]["name"],
        (obj.get("spec") or {}).get("holderIdentity", ""),
        age(obj, now),
    ]
