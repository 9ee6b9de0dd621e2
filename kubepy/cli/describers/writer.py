"""Write lines with indentation and tab-separated cells, and the blocks that several kinds share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

from kubepy.api.clock import parse_time
from kubepy.api.meta import AnyObject, controller_of
from kubepy.cli.runtime.tables import Layout, align, escaped
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver import printers as duration


class DescribeContext(NamedTuple):
    """The information that a describer uses beside its object.

    :param events: those about the object; None: they are not to be printed.
    :param list: lists the objects of a resource in a namespace (None: in all namespaces).
    :param unknowns: what is not known of the containers of a pod, a line each.
    """

    now: datetime
    events: Sequence[AnyObject] | None
    list: Callable[[str, str | None], Sequence[AnyObject]]
    unknowns: Sequence[str] = ()


PADDING = 2
MAX_ANNOTATION = 140
ZONE: ContextVar[tzinfo | None] = ContextVar(
    "zone", default=None
)  # of the times; None: the machine's
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
HIDDEN_ANNOTATIONS = {LAST_APPLIED}


class PrefixWriter:
    """A list of lines; ``text`` aligns their cells as kubectl's tab writer does."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, level: int, text: str) -> None:
        self.lines.extend(("  " * level + text).split("\n"))

    def field(self, level: int, name: str, value: object) -> None:
        self.line(level, f"{name}:\t{value}")

    def several(self, level: int, name: str, values: Iterable[str]) -> None:
        """Write ``name:`` with one value a line, each under the first; ``<none>`` when there are no
        values."""
        first, *rest = list(values) or ["<none>"]
        self.line(level, f"{name}:\t{first}")
        for value in rest:
            self.lines.append("  " * level + f"\t{value}")

    def several_nested(
        self, level: int, name: str, values: Iterable[str], none: str = "<none>"
    ) -> None:
        """Write the same with upstream's indentation of nested lists, which grows from the second
        value on."""
        pad = "  " * level
        items = list(values)
        self.lines.append(f"{pad}{name}:\t" + (pad + items[0] if items else none))
        self.lines.extend(f"{pad}{pad}\t{pad}{value}" for value in items[1:])

    def table(self, level: int, headers: str, rows: Iterable[Iterable[object]]) -> None:
        """Write headers (with tabs between them), a line of dashes under each, and the rows."""
        self.line(level, headers)
        self.line(level, "\t".join("-" * len(header) for header in headers.split("\t")))
        for row in rows:
            self.line(level, "\t".join(str(cell) for cell in row))

    def text(self) -> str:
        return align([escaped(line) for line in self.lines], Layout(PADDING))

    def raw(self) -> str:
        """Return the lines with their tabs, as `rollout history --revision` prints them."""
        return "".join(escaped(line) + "\n" for line in self.lines)


def format_date(text: str | None) -> str:
    """Format a time as RFC 1123 in the zone of ``ZONE``: ``Fri, 20 Nov 2026 10:45:20 +0000``.

    None becomes Go's zero time.
    """
    moment = _moment(text)
    day = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"][moment.weekday()]
    month = MONTHS[moment.month - 1]
    return f"{day}, {moment.day:02} {month} {moment.year:04} {moment:%H:%M:%S %z}"


def format_time(text: str | None) -> str:
    """Format a time as Go prints it by default: ``2026-11-20 10:45:20 +0000 UTC``."""
    moment = _moment(text)
    return f"{moment.year:04}-{moment:%m-%d %H:%M:%S %z %Z}"


def _moment(text: str | None) -> datetime:
    if text:
        return parse_time(text).astimezone(ZONE.get())
    return datetime(1, 1, 1, tzinfo=UTC)


MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def label_block(writer: PrefixWriter, name: str, values: Mapping[str, str] | None) -> None:
    writer.several(0, name, (f"{key}={value}" for key, value in sorted((values or {}).items())))


def annotation_block(writer: PrefixWriter, name: str, values: Mapping[str, str] | None) -> None:
    writer.several(0, name, annotation_lines(values or {}))


def annotation_lines(values: Mapping[str, str]) -> list[str]:
    """Return a line for each annotation; the lines of a long one stand below its key."""
    lines = []
    for key, annotation in sorted(values.items()):
        value = annotation.removesuffix("\n")
        if key in HIDDEN_ANNOTATIONS:
            continue
        if len(value.encode()) + len(key) + 2 <= MAX_ANNOTATION and "\n" not in value:
            lines.append(f"{key}: {value}")
        else:
            lines += [
                f"{key}:",
                *(f"  {shorten(line, MAX_ANNOTATION - 2)}" for line in value.split("\n")),
            ]
    return lines


def shorten(text: str, length: int = MAX_ANNOTATION) -> str:
    """Cut a text to at most so many bytes, before a character that would be cut through."""
    data = text.encode()
    if len(data) <= length:
        return text
    return data[:length].decode(errors="ignore") + "..."


def heading(
    writer: PrefixWriter, obj: AnyObject, *, created: bool = False, namespaced: bool = True
) -> None:
    """Write Name, Namespace and, for the kinds that show it, CreationTimestamp."""
    metadata = obj["metadata"]
    writer.field(0, "Name", metadata["name"])
    if namespaced:
        writer.field(0, "Namespace", metadata.get("namespace", ""))
    if created:
        writer.field(0, "CreationTimestamp", format_date(metadata.get("creationTimestamp")))


def labels_and_annotations(writer: PrefixWriter, obj: AnyObject) -> None:
    label_block(writer, "Labels", obj["metadata"].get("labels"))
    annotation_block(writer, "Annotations", obj["metadata"].get("annotations"))


def controlled_by(writer: PrefixWriter, obj: AnyObject) -> None:
    if (controller := controller_of(obj)) is not None:
        writer.field(0, "Controlled By", f"{controller['kind']}/{controller['name']}")


def events(writer: PrefixWriter, context: DescribeContext) -> None:
    """Write the Events table, unless ``--show-events=false``."""
    if context.events is None:
        return
    if not context.events:
        writer.line(0, "Events:\t<none>")
        return
    writer.line(0, "Events:")
    # Events that have only an eventTime, as the scheduler's, come first.
    in_order = sorted(context.events, key=lambda event: event.get("lastTimestamp") or "")
    writer.line(1, "Type\tReason\tAge\tFrom\tMessage")
    writer.line(
        1, "----\t------\t----\t----\t-------"
    )  # kubectl has one dash more than Age has letters
    for event in in_order:
        source = event.get("source", {}).get("component") or event.get("reportingComponent", "")
        message = event.get("message", "").strip()
        if field_path := event.get("involvedObject", {}).get("fieldPath"):
            message = f"{field_path}: {message}"
        cells = [
            event.get("type", ""),
            event.get("reason", ""),
            event_age(event, context.now),
            source,
            message,
        ]
        writer.line(1, "\t".join(cells))


def event_age(event: AnyObject, now: datetime) -> str:
    """Return the age of an event: ``5s``, ``5s (x3 over 2m)``."""
    first = since(event.get("eventTime") or event.get("firstTimestamp"), now)
    if series := event.get("series"):
        return (
            f"{since(series.get('lastObservedTime'), now)} (x{series.get('count', 0)} over {first})"
        )
    if event.get("count", 0) > 1:
        return f"{since(event.get('lastTimestamp'), now)} (x{event['count']} over {first})"
    return first


def since(text: str | None, now: datetime) -> str:
    """Return the time since a timestamp in kubectl's short form; ``<unknown>`` without one."""
    if text:
        return duration.human_duration((now - parse_time(text)).total_seconds())
    return "<unknown>"


def conditions_table(writer: PrefixWriter, conditions: list[AnyObject] | None) -> None:
    """Write the conditions of a Deployment or ReplicaSet: type, status, reason."""
    if conditions:
        writer.line(0, "Conditions:")
        writer.table(
            1,
            "Type\tStatus\tReason",
            (
                [f"{condition['type']} ", condition["status"], condition.get("reason", "")]
                for condition in conditions
            ),
        )


def dated_conditions(writer: PrefixWriter, conditions: Iterable[AnyObject]) -> None:
    """Write conditions with their last transition, reason and message."""
    writer.line(0, "Conditions:")
    writer.table(
        1,
        "Type\tStatus\tLastTransitionTime\tReason\tMessage",
        (
            [
                condition["type"],
                condition["status"],
                format_date(condition.get("lastTransitionTime")),
                condition.get("reason", ""),
                condition.get("message", ""),
            ]
            for condition in conditions
        ),
    )


def go_value(value: Any) -> str:
    """Format a value as Go's ``%v`` does: ``true``, ``<nil>``, ``[a b]``, ``map[a:b]``."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        if value:
            return "true"
        return "false"
    if isinstance(value, list | tuple):
        return f"[{' '.join(go_value(item) for item in value)}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_value(item)}' for key, item in sorted(value.items()))}]"
    return str(value)


def true_or_false(value: bool | None) -> str:
    if value is None:
        return "<unset>"
    return str(value)
