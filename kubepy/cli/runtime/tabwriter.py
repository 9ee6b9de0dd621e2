"""Elastic tab stops, as Go's ``text/tabwriter`` lays them out.

A cell ends with a tab; the last piece of a line belongs to no column. A column is a run of neighbouring lines that all
have a cell there, and is as wide as its widest cell plus the padding.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TAB = re.compile("[\t\v]")


class Layout(NamedTuple):
    """``remembered``: how wide each column has been, which none falls below again; None: every block is on its own."""

    padding: int
    min_width: int = 0
    remembered: list[int] | None = None


def align(lines: list[str], layout: Layout) -> str:
    """The lines with their tabs replaced by spaces, each ended by a newline. Widens what the layout remembers."""
    rows = [_TAB.split(line) if "\v" in line else line.split("\t") for line in lines]
    widths: list[list[int]] = [[] for _ in rows]
    _measure(rows, widths, 0, len(rows), layout)
    return "".join(_join(row, width) + "\n" for row, width in zip(rows, widths, strict=True))


def _measure(rows: list[list[str]], widths: list[list[int]], start: int, stop: int, layout: Layout) -> None:
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
        width = max(layout.min_width, max(len(rows[at][column]) for at in range(line, end)) + layout.padding)
        if layout.remembered is not None:
            width = _widest(layout.remembered, widths[line], width)
        for at in range(line, end):
            widths[at].append(width)
        _measure(rows, widths, line, end, layout)
        line = end


def _widest(remembered: list[int], before: list[int], width: int) -> int:
    """The width of the column behind those ``before``, this time or ever."""
    remembered.extend(before[len(remembered):])
    column = len(before)
    if len(remembered) == column:
        remembered.append(width)
    remembered[column] = max(remembered[column], width)
    return remembered[column]


def _join(row: list[str], widths: list[int]) -> str:
    return "".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) + row[-1]
