"""Tables as kubectl prints them: rows of a type, decorated with namespace, kind and labels, in elastic columns.

The columns of a type and its cells come from ``kubepy.apiserver.printers``. Upstream:
``cli-runtime/pkg/printers/tableprinter.go``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import Object, labels_of, namespace_of
from kubepy.api.scheme import Resource
from kubepy.api.selectors import format_labels
from kubepy.cli.runtime.infos import printed_kind
from kubepy.cli.runtime.tabwriter import Layout, align

if TYPE_CHECKING:
    from kubepy.apiserver.printers.tables import Table

MIN_WIDTH, PADDING = 6, 3


class Style(NamedTuple):
    """How a table is shown.

    ``own_columns``: those of the kind, as a server has them; else only NAME and AGE. ``subresource``: what the objects
    are, if they are not of the type themselves.
    """

    wide: bool = False
    headers: bool = True
    with_namespace: bool = False
    with_kind: bool = False
    labels: Sequence[str] = ()
    show_labels: bool = False
    own_columns: bool = True
    subresource: str = ""


def lines(resource: Resource, objects: Sequence[Object], style: Style, now: datetime) -> list[str]:
    """The header and a line for each object, cells separated by tabs; none at all without objects."""
    if not objects:
        return []
    columns, rows = _table(resource, objects, style, now)
    named = next((index for index, column in enumerate(columns) if column.name == "Name" and not style.subresource), -1)
    shown = [index for index, column in enumerate(columns) if style.wide or column.priority == 0]
    text = [_join([_header(columns[index].name) for index in shown], _extra_headers(style), "NAMESPACE", style)]
    text = text if style.headers else []
    for obj, cells in zip(objects, rows, strict=True):
        kind = f"{printed_kind(resource)}/" if style.with_kind else ""
        own = [kind + show(cells[index]) if index == named else show(cells[index]) for index in shown]
        text.append(_join(own, _label_cells(obj, style), namespace_of(obj), style))
    return text


def _table(resource: Resource, objects: Sequence[Object], style: Style, now: datetime) -> Table:
    from kubepy.apiserver.printers import BARE, table
    from kubepy.apiserver.printers.tables import print_table

    return table(resource, objects, now, style.subresource) if style.own_columns else print_table(BARE, objects, now)


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
    return [*cells, format_labels(labels)] if style.show_labels else cells


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


def format_lines(text: list[str], remembered: list[int] | None = None) -> str:
    """Tab-separated lines in columns three spaces apart; ``remembered``: the widths that came before, for the next."""
    return align(text, Layout(PADDING, MIN_WIDTH, [] if remembered is None else remembered))
