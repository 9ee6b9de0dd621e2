"""Tables of custom resources: the columns that their definition asks for, AGE if it asks for none.

Upstream: ``apiextensions-apiserver/pkg/registry/customresource/tableconvertor``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from kubepy.api.jsonpath import JSONPath, JSONPathError, parse, print_value
from kubepy.api.meta import Object
from kubepy.api.scheme import PrinterColumn, Resource
from kubepy.apiserver.printers import Cell, Column, Table, since

AGE = PrinterColumn(
    "Age", "date", ".metadata.creationTimestamp"
)  # its description is that of the field


def custom_table(resource: Resource, objects: Sequence[Object], now: datetime) -> Table:
    printer_columns = resource.printer_columns or (AGE,)
    paths = [
        parse(f"{{{column.json_path}}}", allow_missing_keys=True) for column in printer_columns
    ]
    columns = [Column("Name", format="name"), *(_column(column) for column in printer_columns)]
    rows = [
        [
            obj["metadata"]["name"],
            *(
                _cell(column.type, path, obj, now)
                for column, path in zip(printer_columns, paths, strict=True)
            ),
        ]
        for obj in objects
    ]
    return Table(columns, rows)


def _column(column: PrinterColumn) -> Column:
    description = f"Custom resource definition column (in JSONPath format): {column.json_path}"
    return Column(
        column.name,
        column.priority,
        column.type,
        column.format,
        column.description or ("" if column is AGE else description),
    )


def _cell(kind: str, path: JSONPath, obj: Object, now: datetime) -> Cell:
    """Return the first value that the path finds; None without one of the column's type."""
    try:
        results = path.find(obj)
    except JSONPathError:  # the server leaves the cell empty then, too
        return None
    if not results or not results[0]:
        return None
    value = results[0][0]
    if kind != "string":
        return _typed(kind, value, now)
    if value is None:
        return "<no value>"
    return print_value(value)


def _typed(kind: str, value: Any, now: datetime) -> Cell:
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind == "date":
        try:
            if isinstance(value, str):
                return since(value, now)
            return None
        except ValueError:
            return "<invalid>"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if kind == "integer" or float(value).is_integer():
        return int(value)
    return float(value)
