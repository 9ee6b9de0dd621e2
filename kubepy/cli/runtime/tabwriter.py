"""Elastic tab stops, as Go's ``text/tabwriter`` lays them out.

A cell ends with a tab; the last piece of a line belongs to no column. A column is a run of neighbouring lines that all
have a cell there, and is as wide as its widest cell plus the padding.
"""

from __future__ import annotations


def align(lines: list[str], padding: int, min_width: int = 0) -> str:
    """The lines with their tabs replaced by spaces, each ended by a newline."""
    rows = [line.split("\t") for line in lines]
    widths: list[list[int]] = [[] for _ in rows]
    _measure(rows, widths, 0, len(rows), padding, min_width)
    return "".join(_join(row, width) + "\n" for row, width in zip(rows, widths, strict=True))


def _measure(rows: list[list[str]], widths: list[list[int]], start: int, stop: int, padding: int, least: int) -> None:
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
        width = max(least, max(len(rows[at][column]) for at in range(line, end)) + padding)
        for at in range(line, end):
            widths[at].append(width)
        _measure(rows, widths, line, end, padding, least)
        line = end


def _join(row: list[str], widths: list[int]) -> str:
    return "".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) + row[-1]
