"""Lines with levels of indentation and tab-separated cells, and the blocks that several kinds share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object, controller_of
from kubepy.cli.runtime.tables import escaped
from kubepy.cli.runtime.tabwriter import Layout, align


class Surroundings(NamedTuple):
    """What a describer may look at beside its object."""

    now: datetime
    events: list[Object] | None  # about the object; None: not to be shown
    list: Callable[[str, str | None], list[Object]]  # resource, namespace (None: all)


PADDING = 2
MAX_ANNOTATION = 140
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
HIDDEN_ANNOTATIONS = {LAST_APPLIED}


class Writer:
    """Collects lines; ``text`` aligns their cells as kubectl's tab writer does."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, level: int, text: str) -> None:
        self.lines.extend(("  " * level + text).split("\n"))

    def field(self, level: int, name: str, value: object) -> None:
        self.line(level, f"{name}:\t{value}")

    def several(self, level: int, name: str, values: Iterable[str]) -> None:
        """``name:`` with one value a line, each under the first; ``<none>`` where there is none."""
        first, *rest = list(values) or ["<none>"]
        self.line(level, f"{name}:\t{first}")
        for value in rest:
            self.lines.append("  " * level + f"\t{value}")

    def several_nested(self, level: int, name: str, values: Iterable[str], none: str = "<none>") -> None:
        """The same, with every value as far in as the name, and the second one's place twice as far."""
        pad, found = "  " * level, list(values)
        self.lines.append(f"{pad}{name}:\t" + (pad + found[0] if found else none))
        self.lines.extend(f"{pad}{pad}\t{pad}{value}" for value in found[1:])

    def table(self, level: int, headers: str, rows: Iterable[Iterable[object]]) -> None:
        """Headers (with tabs between them), a line of dashes under each, and the rows."""
        self.line(level, headers)
        self.line(level, "\t".join("-" * len(header) for header in headers.split("\t")))
        for row in rows:
            self.line(level, "\t".join(str(cell) for cell in row))

    def text(self) -> str:
        return align([escaped(line) for line in self.lines], Layout(PADDING))

    def raw(self) -> str:
        """The lines with their tabs, as `rollout history --revision` prints them."""
        return "".join(escaped(line) + "\n" for line in self.lines)


def format_date(text: str | None) -> str:
    """RFC 1123 with a numeric zone, the local one: ``Fri, 20 Nov 2026 10:45:20 +0000``; Go's zero time for None."""
    moment = _moment(text)
    day, month = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"][moment.weekday()], MONTHS[moment.month - 1]
    return f"{day}, {moment.day:02} {month} {moment.year:04} {moment:%H:%M:%S %z}"


def format_time(text: str | None) -> str:
    """A time as Go prints it where nothing else is asked for: ``2026-11-20 10:45:20 +0000 UTC``."""
    moment = _moment(text)
    return f"{moment.year:04}-{moment:%m-%d %H:%M:%S %z %Z}"


def _moment(text: str | None) -> datetime:
    return parse_time(text).astimezone() if text else datetime(1, 1, 1, tzinfo=UTC)


MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def label_block(writer: Writer, name: str, values: Mapping[str, str] | None) -> None:
    writer.several(0, name, (f"{key}={value}" for key, value in sorted((values or {}).items())))


def annotation_block(writer: Writer, name: str, values: Mapping[str, str] | None) -> None:
    writer.several(0, name, annotation_lines(values or {}))


def annotation_lines(values: Mapping[str, str]) -> list[str]:
    """Each annotation on a line, or, if it is long or has several, on those below its key."""
    return [line for key, value in sorted(values.items()) if key not in HIDDEN_ANNOTATIONS
            for line in _annotation_lines(key, value.removesuffix("\n"))]


def _annotation_lines(key: str, value: str) -> list[str]:
    if len(value.encode()) + len(key) + 2 <= MAX_ANNOTATION and "\n" not in value:
        return [f"{key}: {value}"]
    return [f"{key}:", *(f"  {shorten(line, MAX_ANNOTATION - 2)}" for line in value.split("\n"))]


def shorten(text: str, length: int = MAX_ANNOTATION) -> str:
    """At most so many bytes of a text; a character that is cut through is left out."""
    data = text.encode()
    return text if len(data) <= length else data[:length].decode(errors="ignore") + "..."


def heading(writer: Writer, obj: Object, *, created: bool = False, namespaced: bool = True) -> None:
    """Name, Namespace and, for the kinds that show it, CreationTimestamp."""
    metadata = obj["metadata"]
    writer.field(0, "Name", metadata["name"])
    if namespaced:
        writer.field(0, "Namespace", metadata.get("namespace", ""))
    if created:
        writer.field(0, "CreationTimestamp", format_date(metadata.get("creationTimestamp")))


def labels_and_annotations(writer: Writer, obj: Object) -> None:
    label_block(writer, "Labels", obj["metadata"].get("labels"))
    annotation_block(writer, "Annotations", obj["metadata"].get("annotations"))


def controlled_by(writer: Writer, obj: Object) -> None:
    if (controller := controller_of(obj)) is not None:
        writer.field(0, "Controlled By", f"{controller['kind']}/{controller['name']}")


def events(writer: Writer, around: Surroundings) -> None:
    """The Events table, unless it is not to be shown (``--show-events=false``)."""
    found, now = around.events, around.now
    if found is None:
        return
    if not found:
        writer.line(0, "Events:\t<none>")
        return
    writer.line(0, "Events:")
    in_order = sorted(found, key=_last)
    writer.line(1, "Type\tReason\tAge\tFrom\tMessage")
    writer.line(1, "----\t------\t----\t----\t-------")  # one more than Age has letters, as kubectl has it
    for event in in_order:
        writer.line(1, "\t".join(_event_cells(event, now)))


def _last(event: Object) -> str:
    """When it was last seen; "", before all others, for those that tell only an eventTime, as the scheduler's do."""
    return event.get("lastTimestamp") or ""


def event_age(event: Object, now: datetime) -> str:
    """How long ago an event was: ``5s``, ``5s (x3 over 2m)``."""
    first = since(event.get("eventTime") or event.get("firstTimestamp"), now)
    if series := event.get("series"):
        return f"{since(series.get('lastObservedTime'), now)} (x{series.get('count', 0)} over {first})"
    if event.get("count", 0) > 1:
        return f"{since(event.get('lastTimestamp'), now)} (x{event['count']} over {first})"
    return first


def _event_cells(event: Object, now: datetime) -> list[str]:
    age = event_age(event, now)
    source = event.get("source", {}).get("component") or event.get("reportingComponent", "")
    message = event.get("message", "").strip()
    if field_path := event.get("involvedObject", {}).get("fieldPath"):
        message = f"{field_path}: {message}"
    return [event.get("type", ""), event.get("reason", ""), age, source, message]


def since(text: str | None, now: datetime) -> str:
    """The time since a timestamp in kubectl's short form; ``<unknown>`` without one."""
    from kubepy.apiserver.printers.duration import human_duration

    return human_duration((now - parse_time(text)).total_seconds()) if text else "<unknown>"


def conditions_table(writer: Writer, conditions: list[Object] | None) -> None:
    """Conditions of a Deployment or ReplicaSet: type, status, reason."""
    if conditions:
        writer.line(0, "Conditions:")
        writer.table(1, "Type\tStatus\tReason", (
            [f"{one['type']} ", one["status"], one.get("reason", "")] for one in conditions))


def dated_conditions(writer: Writer, conditions: Iterable[Object]) -> None:
    """Conditions with the time since when they have been so, and why."""
    writer.line(0, "Conditions:")
    writer.table(1, "Type\tStatus\tLastTransitionTime\tReason\tMessage", (
        [one["type"], one["status"], format_date(one.get("lastTransitionTime")), one.get("reason", ""),
         one.get("message", "")] for one in conditions))


def go_value(value: Any) -> str:
    """A value as Go's ``%v`` prints it: ``true``, ``<nil>``, ``[a b]``, ``map[a:b]``."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{' '.join(go_value(one) for one in value)}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_value(one)}' for key, one in sorted(value.items()))}]"
    return str(value)


def true_or_false(value: bool | None) -> str:
    return "<unset>" if value is None else str(value)
