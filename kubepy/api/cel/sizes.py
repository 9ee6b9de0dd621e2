"""The sizes that values of a structural schema can have, for the estimate of the cost of rules.

Values that a schema does not limit are limited by the size of a request.
Upstream: ``apiserver/pkg/cel/common/schemas.go``, ``apiserver/pkg/cel/limits.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kubepy.api.cel.schemas import escaped, fields_of
from kubepy.api.meta import nested_list, nested_map
from kubepy.api.schema.structural import INT_OR_STRING, Schema

MAX_REQUEST = 3 * 1024 * 1024  # bytes
_MAX_TEXT = MAX_REQUEST - 2  # without quotes
# Texts that are not strings in expressions: the largest number of characters, the smallest of bytes
# in JSON.
_FORMATS = {"duration": (32, 3), "date": (12, 12), "date-time": (32, 21)}
_SCALARS = {"boolean": 4, "number": 1, "integer": 1}


class Shape(NamedTuple):
    """The size that a value can have.

    ``largest``: of characters, items or entries; None for an unknown value. ``least``: the fewest
    bytes in JSON.
    """

    largest: int | None = 0
    least: int = 2
    key: Shape | None = None
    item: Shape | None = None
    fields: Mapping[str, Shape] | None = None


UNKNOWN = Shape(largest=None)
_KEY = Shape()


def shape_of(schema: Schema, *, is_root: bool = False) -> Shape | None:
    """Return the sizes of a schema's values, None if expressions cannot see them."""
    if schema.get(INT_OR_STRING):
        return Shape(4 * max(schema["maxLength"], 0) if "maxLength" in schema else _MAX_TEXT, 1)
    match schema.get("type"):
        case "array":
            item = shape_of(nested_map(schema, "items"))
            if item is None:
                return None
            return Shape(
                _limit(schema, "maxItems", (MAX_REQUEST - 2) // (item.least + 1)), item=item
            )
        case "object":
            return _object(schema, is_root)
        case "string":
            return _text(schema)
        case str(kind) if kind in _SCALARS:
            return Shape(least=_SCALARS[kind])

    return None


def _object(schema: Schema, is_root: bool) -> Shape | None:
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        value = shape_of(others)
        if value is None:
            return None
        # An entry has at least a key of two characters' worth, a colon and a comma.
        return Shape(
            _limit(schema, "maxProperties", (MAX_REQUEST - 2) // (value.least + 6)),
            key=_KEY,
            item=value,
        )

    required = nested_list(schema, "required")
    fields: dict[str, Shape] = {}
    least = 2
    for name, field in fields_of(schema, is_root=is_root).items():
        shape = shape_of(field)
        if shape is None:
            continue
        if (spelled := escaped(name)) is not None:
            fields[spelled] = shape
        if name in required and field.get("default") is None:
            least += len(name.encode()) + shape.least + 4

    return Shape(least=least, fields=fields)


def _text(schema: Schema) -> Shape:
    name = schema.get("format", "")
    if name in _FORMATS:
        return Shape(*_FORMATS[name])
    if name == "byte":
        return Shape(_limit(schema, "maxLength", _MAX_TEXT))
    if "maxLength" in schema:
        return Shape(4 * _limit(schema, "maxLength", 0))  # a character may have four bytes
    if enum := schema.get("enum"):
        return Shape(
            max((len(value.encode()) for value in enum if isinstance(value, str)), default=0)
        )
    return Shape(_MAX_TEXT)


def _limit(schema: Schema, name: str, otherwise: int) -> int:
    limit: int | None = schema.get(name)
    if limit is None:
        return otherwise
    return max(limit, 0)
