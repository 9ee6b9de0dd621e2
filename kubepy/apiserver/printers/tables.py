"""What a table is, and a kind's printer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from kubepy.api.meta import Object

Cell = str | int | bool | None


class Column(NamedTuple):
    """``priority`` 0 is always shown, 1 in wide tables only. ``name`` is not in capitals yet."""

    name: str
    priority: int = 0


class Table(NamedTuple):
    """A row for each object, in their order, with a cell for each column, those of wide tables included."""

    columns: list[Column]
    rows: list[list[Cell]]


class Printer(NamedTuple):
    """How a kind is shown. ``columns``: names, those of wide tables with a leading ``+``."""

    columns: tuple[str, ...]
    row: Callable[[Object, datetime], list[Cell]]


def print_table(printer: Printer, objects: Sequence[Object], now: datetime) -> Table:
    columns = [Column(name.removeprefix("+"), int(name.startswith("+"))) for name in printer.columns]
    return Table(columns, [printer.row(obj, now) for obj in objects])
