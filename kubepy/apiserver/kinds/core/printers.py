"""Tables of Namespaces, ConfigMaps, Secrets, Events, ServiceAccounts and ComponentStatuses."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, nested_list, status_of
from kubepy.apiserver.printers import Cell, age, printer, since

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


# --- events ---------------------------------------------------------------------------------------


@printer(*EVENT_COLUMNS)
def print_event(obj: Object, now: datetime) -> list[Cell]:
    series = obj.get("series")
    first = since(obj.get("firstTimestamp") or obj.get("eventTime"), now)
    last = since(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else first
    count = obj.get("count") or 1
    if series is not None:
        last = since(series.get("lastObservedTime"), now)
        count = series.get("count", 0)
    about = obj.get("involvedObject") or {}
    kind = about.get("kind", "").lower()
    name = about.get("name")
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


# --- the others -----------------------------------------------------------------------------------


@printer("Name", "Status", "Age")
def print_namespace(obj: Object, now: datetime) -> list[Cell]:
    return [obj["metadata"]["name"], status_of(obj).get("phase", ""), age(obj, now)]


@printer("Name", "Data", "Age")
def print_config_map(obj: Object, now: datetime) -> list[Cell]:
    texts = obj.get("data") or {}
    binaries = obj.get("binaryData") or {}
    return [obj["metadata"]["name"], len(texts) + len(binaries), age(obj, now)]


@printer("Name", "Type", "Data", "Age")
def print_secret(obj: Object, now: datetime) -> list[Cell]:
    data = obj.get("data") or {}
    return [
        obj["metadata"]["name"],
        obj.get("type", ""),
        len(data),
        age(obj, now),
    ]


@printer("Name", "Age")
def print_service_account(obj: Object, now: datetime) -> list[Cell]:
    return [obj["metadata"]["name"], age(obj, now)]


@printer("Name", "Status", "Message", "Error")
def print_component_status(obj: Object, _now: datetime) -> list[Cell]:
    health = next(
        (
            condition
            for condition in nested_list(obj, "conditions")
            if condition["type"] == "Healthy"
        ),
        None,
    )
    if health is None:
        return [obj["metadata"]["name"], "Unknown", "", ""]
    status = "Healthy" if health.get("status") == "True" else "Unhealthy"
    return [obj["metadata"]["name"], status, health.get("message", ""), health.get("error", "")]
