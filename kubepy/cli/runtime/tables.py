"""Tables as kubectl prints them: rows of a type, decorated with namespace, kind and labels, in elastic columns.

The columns of a type and its cells come from ``kubepy.cluster.printers``. Upstream:
``cli-runtime/pkg/printers/tableprinter.go``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from kubepy.cli.runtime.resources import printed_kind
from kubepy.cli.runtime.tabwriter import align
from kubepy.cluster.objects.meta import Object, labels_of, namespace_of
from kubepy.cluster.scheme import Resource

MIN_WIDTH, PADDING = 6, 3


class Style(NamedTuple):
    """How a table is shown. ``event`` is the first cell of a row of a watch ("" : no such column)."""

    wide: bool = False
    headers: bool = True
    with_namespace: bool = False
    with_kind: bool = False
    labels: Sequence[str] = ()
    show_labels: bool = False


def lines(resource: Resource, objects: Sequence[Object], style: Style, now: datetime) -> list[str]:
    """The header and a line for each object, cells separated by tabs; none at all without objects."""
    if not objects:
        return []
    from kubepy.cluster.printers import table

    columns, rows = table(resource, objects, now)
    shown = [index for index, column in enumerate(columns) if style.wide or column.priority == 0]
    text = [_join([_header(columns[index].name) for index in shown], _extra_headers(style), "NAMESPACE", style)]
    text = text if style.headers else []
    for obj, cells in zip(objects, rows, strict=True):
        own = [show(cells[index]) for index in shown]
        if style.with_kind and own:
            own[0] = f"{printed_kind(resource)}/{own[0]}"
        text.append(_join(own, _label_cells(obj, style), namespace_of(obj), style))
    return text


def _header(name: str) -> str:
    return name.upper()


def _join(cells: list[str], extra: list[str], namespace: str, style: Style) -> str:
    return "\t".join([*([namespace] if style.with_namespace else []), *cells, *extra])


def _extra_headers(style: Style) -> list[str]:
    """``example.org/team`` is headed TEAM."""
    headers = [label.rpartition("/")[2].upper() for label in style.labels]
    return [*headers, "LABELS"] if style.show_labels else headers


def _label_cells(obj: Object, style: Style) -> list[str]:
    labels = labels_of(obj)
    cells = [labels.get(label, "") for label in style.labels]
    return [*cells, show_labels(labels)] if style.show_labels else cells


def show_labels(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) or "<none>"


def show(cell: object) -> str:
    """One cell: cut at its first line break, Go's words for bools, None as nothing, control characters harmless."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    text = str(cell)
    for position, character in enumerate(text):
        if character in "\f\n\r":
            return escaped(text[:position]) + "..."
    return escaped(text)


def escaped(text: str) -> str:
    """Escape characters that would steer a terminal (``printers.WriteEscaped``)."""
    return text.replace("\x1b", "^[").replace("\r", "\\r") if "\x1b" in text or "\r" in text else text


def format_lines(text: list[str]) -> str:
    """Tab-separated lines in columns three spaces apart."""
    return align(text, PADDING, MIN_WIDTH)
