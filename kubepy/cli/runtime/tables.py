"""Tables as kubectl prints them: rows of a type, with namespace, kind and labels beside them, in
aligned columns.

The columns of a type and its cells come from ``kubepy.apiserver.kinds``. Upstream:
``cli-runtime/pkg/printers/tableprinter.go``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from kubepy.api.meta import Object, labels_of, namespace_of
from kubepy.api.scheme import Resource
from kubepy.api.selectors import format_labels
from kubepy.cli.runtime.infos import printed_kind
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import goformat
    from kubepy.apiserver import kinds, printers

MIN_WIDTH = 6
PADDING = 3


class Style(NamedTuple):
    """The appearance of a table.

    :param own_columns: the columns of the kind, as a server has them; else only NAME and AGE.
    :param subresource: the subresource that the objects are, "" for objects of the type itself.
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
    """Return the header and a line for each object, cells separated by tabs; nothing without
    objects."""
    if not objects:
        return []
    if style.own_columns:
        columns, rows = kinds.table(resource, objects, now, style.subresource)
    else:
        columns, rows = printers.print_table(printers.print_bare, objects, now)

    named = next(
        (
            index
            for index, column in enumerate(columns)
            if column.name == "Name" and not style.subresource
        ),
        -1,
    )
    shown = [index for index, column in enumerate(columns) if style.wide or column.priority == 0]
    text = []
    if style.headers:
        labels = [
            label.rpartition("/")[2].upper() for label in style.labels
        ]  # example.org/team is headed TEAM
        labels += ["LABELS"] if style.show_labels else []
        text.append(
            _join([columns[index].name.upper() for index in shown], labels, "NAMESPACE", style)
        )

    for obj, cells in zip(objects, rows, strict=True):
        kind = f"{printed_kind(resource)}/" if style.with_kind else ""
        own = [
            kind + show(cells[index]) if index == named else show(cells[index]) for index in shown
        ]
        labels = [labels_of(obj).get(label, "") for label in style.labels]
        labels += [format_labels(labels_of(obj))] if style.show_labels else []
        text.append(_join(own, labels, namespace_of(obj), style))

    return text


def _join(cells: list[str], labels: list[str], namespace: str, style: Style) -> str:
    return "\t".join([*([namespace] if style.with_namespace else []), *cells, *labels])


def show(cell: object) -> str:
    """Return the text of a cell: cut at its first line break, Go's words for bools, "" for None."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        if cell:
            return "true"
        return "false"
    text = goformat.format_float(cell) if isinstance(cell, float) else str(cell)
    if text.isprintable():
        return text
    for position, character in enumerate(text):
        if character in "\f\n\r":
            return escaped(text[:position]) + "..."
    return escaped(text)


def escaped(text: str) -> str:
    """Escape characters that would steer a terminal (``printers.WriteEscaped``)."""
    if "\x1b" in text or "\r" in text:
        return text.replace("\x1b", "^[").replace("\r", "\\r")
    return text


def format_lines(text: list[str], remembered: list[int] | None = None) -> str:
    """Align tab-separated lines in columns three spaces apart; ``remembered``: the widths of
    earlier lines."""
    return align(text, Layout(PADDING, MIN_WIDTH, [] if remembered is None else remembered))


# --- elastic tab stops ----------------------------------------------------------------------------


class Layout(NamedTuple):
    """The distances of columns.

    :param remembered: the largest width of each column so far, below which none falls; None: every
        block is on its own.
    """

    padding: int
    min_width: int = 0
    remembered: list[int] | None = None


def align(lines: list[str], layout: Layout) -> str:
    """Replace the tabs of lines by spaces, and end each by a newline; widens the remembered widths.

    A cell ends with a tab; the last piece of a line belongs to no column. A column is a run of
    neighbouring lines that all have a cell there, and is as wide as its widest cell plus the
    padding (Go's ``text/tabwriter``).
    """
    rows = [re.split("[\t\v]", line) if "\v" in line else line.split("\t") for line in lines]
    widths: list[list[int]] = [[] for _ in rows]
    _measure(rows, widths, 0, len(rows), layout)
    formats = {tuple(cell_widths): "" for cell_widths in widths}
    for columns in formats:
        formats[columns] = "".join(f"%-{width}s" for width in columns) + "%s\n"
    return "".join(
        [
            formats[tuple(cell_widths)] % tuple(row)
            for row, cell_widths in zip(rows, widths, strict=True)
        ]
    )


def _measure(
    rows: list[list[str]], widths: list[list[int]], start: int, stop: int, layout: Layout
) -> None:
    """Set the widths of the columns to the right of those already set, block by block."""
    line = start
    while line < stop:
        column = len(widths[line])
        if column >= len(rows[line]) - 1:
            line += 1
            continue
        end = line
        while end < stop and column < len(rows[end]) - 1:
            end += 1
        width = max(
            layout.min_width, max(len(rows[at][column]) for at in range(line, end)) + layout.padding
        )
        if layout.remembered is not None:
            layout.remembered.extend(widths[line][len(layout.remembered) :])
            if len(layout.remembered) == column:
                layout.remembered.append(width)
            width = layout.remembered[column] = max(layout.remembered[column], width)
        for at in range(line, end):
            widths[at].append(width)
        _measure(rows, widths, line, end, layout)
        line = end
