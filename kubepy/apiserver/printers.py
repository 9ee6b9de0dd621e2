"""Objects as tables: a printer for each kind gives its columns, and a row for each object
(``pkg/printers``).

:func:`kubepy.apiserver.kinds.table` finds the printer of a kind; the groups of
:mod:`kubepy.apiserver.kinds` hold them. Durations in cells are written as upstream's
``apimachinery/pkg/util/duration`` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object

Cell = str | int | float | bool | None


class Column(NamedTuple):
    """``priority`` 0 is always shown, 1 in wide tables only. ``name`` is not in capitals yet.

    ``type`` is that of OpenAPI; ``format`` ``name`` marks the names of objects.
    """

    name: str
    priority: int = 0
    type: str = "string"
    format: str = ""
    description: str = ""


class Table(NamedTuple):
    """A row for each object, in their order, with a cell for each column, those of wide tables
    included."""

    columns: list[Column]
    rows: list[list[Cell]]


class Printer(NamedTuple):
    """The columns of a kind, those of wide tables with a leading ``+``, and the function that
    returns a row."""

    columns: tuple[str, ...]
    row: Callable[[Object, datetime], list[Cell]]


def printer(*columns: str) -> Callable[[Callable[[Object, datetime], list[Cell]]], Printer]:
    """Make the printer of a kind from the decorated function, which returns the row of an
    object."""
    return lambda row: Printer(columns, row)


def print_table(printer: Printer, objects: Sequence[Object], now: datetime) -> Table:
    columns = [
        Column(name.removeprefix("+"), int(name.startswith("+"))) for name in printer.columns
    ]
    return Table(columns, [printer.row(obj, now) for obj in objects])


# --- durations ------------------------------------------------------------------------------------

MINUTE, HOUR, DAY, YEAR = 60, 3600, 24 * 3600, 365 * 24 * 3600


def human_duration(seconds: float) -> str:
    """Format ``3m20s``, ``5d``; ``<invalid>`` for two seconds or more in the future
    (``HumanDuration``)."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * MINUTE:
        return _two(whole, MINUTE, "m", 1, "s")
    if whole < 3 * HOUR:
        return f"{whole // MINUTE}m"
    if whole < 8 * HOUR:
        return _two(whole, HOUR, "h", MINUTE, "m")
    if whole < 2 * DAY:
        return f"{whole // HOUR}h"
    if whole < 8 * DAY:
        return _two(whole, DAY, "d", HOUR, "h")
    if whole < 2 * YEAR:
        return f"{whole // DAY}d"
    if whole < 8 * YEAR:
        return _two(whole, YEAR, "y", DAY, "d")
    return f"{whole // YEAR}y"


def _two(seconds: int, unit: int, letter: str, smaller: int, smaller_letter: str) -> str:
    rest = seconds % unit // smaller
    if rest:
        return f"{seconds // unit}{letter}{rest}{smaller_letter}"
    return f"{seconds // unit}{letter}"


def since(time: str | None, now: datetime) -> str:
    """Return the time since an API time, ``<unknown>`` without one
    (``translateTimestampSince``)."""
    if time:
        return human_duration((now - parse_time(time)).total_seconds())
    return "<unknown>"


def age(obj: Object, now: datetime) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


# --- kinds without columns of their own -----------------------------------------------------------


@printer("Name", "Created At")
def print_plain(obj: Object, _now: datetime) -> list[Cell]:
    """Print a kind that has no columns of its own: a role, a limit range
    (``rest.NewDefaultTableConvertor``)."""
    return [obj["metadata"].get("name", ""), obj["metadata"].get("creationTimestamp")]


@printer("Name", "Age")
def print_bare(obj: Object, now: datetime) -> list[Cell]:
    """Print an object as a client does that knows nothing of its kind."""
    return [obj["metadata"].get("name", ""), age(obj, now)]
