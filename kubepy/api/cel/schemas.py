"""Types and values of a structural schema as expressions see them.

Expressions do not see fields that the schema does not describe.
Upstream: ``apiserver/pkg/cel/common/{schemas,values}.go``.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

from kubepy.api.cel.times import parse_duration, parse_timestamp
from kubepy.api.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
)
from kubepy.api.cel.values import CelError, MapList, Record, SetList, reserved
from kubepy.api.meta import nested_list, nested_map
from kubepy.api.schema.structural import EMBEDDED, INT_OR_STRING, Schema

ESCAPED_NAMES = 4096  # whose spelling is kept
_WORDS = frozenset(
    (
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    )
)
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_NAME = re.compile(r"[A-Za-z_][\w./-]*", re.ASCII)
_METADATA: Schema = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
}
_TEXT_TYPES = {
    "byte": BYTES,
    "duration": DURATION,
    "date": TIMESTAMP,
    "datetime": TIMESTAMP,
}  # by format
_UNDESCRIBED: Schema = {}  # of a field that its object's schema says nothing of
_ROOT = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _METADATA}


@lru_cache(ESCAPED_NAMES)
def escaped(name: str) -> str | None:
    """Return the spelling of a field's name in expressions, None if it has none."""
    if name in _WORDS:
        return reserved(name)
    if not _NAME.fullmatch(name):
        return None
    for text, escape in _ESCAPES:
        name = name.replace(text, escape)
    return name


def fields_of(schema: Schema, *, is_root: bool = False) -> Mapping[str, Schema]:
    """Return the fields of an object; those that every object has are added if the schema does not
    describe them."""
    fields = nested_map(schema, "properties")
    if not (is_root or schema.get(EMBEDDED)):
        return fields
    metadata = nested_map(fields, "metadata")
    common = [
        fields.get("kind"),
        fields.get("apiVersion"),
        *(nested_map(metadata, "properties").get(name) for name in ("name", "generateName")),
    ]
    if metadata.get("type") == "object" and all(
        (field or {}).get("type") == "string" for field in common
    ):
        return fields
    return {**fields, **_ROOT}


def type_of_schema(schema: Schema, *, is_root: bool = False) -> Type | None:
    """Return the type of a schema's values, None if expressions cannot see them."""
    if schema.get(INT_OR_STRING):
        return DYN
    match schema.get("type"):
        case "array":
            item = type_of_schema(nested_map(schema, "items"))
            if item is None:
                return None
            return list_of(item)
        case "object" if isinstance(others := schema.get("additionalProperties"), Mapping):
            value = type_of_schema(others)
            if value is None:
                return None
            return map_of(STRING, value)
        case "object":
            types = {
                escaped(name): type_of_schema(field)
                for name, field in fields_of(schema, is_root=is_root).items()
            }
            return Type(
                "object",
                fields={
                    name: type
                    for name, type in types.items()
                    if name is not None and type is not None
                },
            )
        case "string":
            return _TEXT_TYPES.get(schema.get("format", "").replace("-", ""), STRING)
        case "integer":
            return INT
        case "number":
            return DOUBLE
        case "boolean":
            return BOOL

    return None


# --- values ---------------------------------------------------------------------------------------


class ConvertedValues:
    """Values of JSON as expressions see them.

    What is converted once is kept: the rules of an object, of its fields and of their fields look
    at the same parts of it. The values that are given must stay as they are meanwhile.
    """

    def __init__(self) -> None:
        # By identity; values and schemas are kept, so that no others get their places.
        self._converted: dict[tuple[int, int, bool], tuple[Any, Schema, Any]] = {}

    def value_of(self, value: Any, schema: Schema, *, is_root: bool = False) -> Any:
        """Convert a value of a schema. Raises CelError for a text that does not have the schema's
        format."""
        if value is None or schema.get(INT_OR_STRING):
            return value
        if isinstance(value, dict | list):
            place = id(value), id(schema), is_root
            known = self._converted.get(place)
            if known is not None:
                return known[2]
            converted = (
                self._object(value, schema, is_root)
                if isinstance(value, dict)
                else self._list(value, schema)
            )
            self._converted[place] = value, schema, converted
            return converted
        if isinstance(value, str):
            return _text(value, schema.get("format", ""))
        if schema.get("type") == "number":
            return float(value)
        if isinstance(value, float) and schema.get("type") == "integer":
            return int(value)
        return value

    def _list(self, value: list[Any], schema: Schema) -> Any:
        of_items = nested_map(schema, "items")
        items = [self.value_of(item, of_items) for item in value]
        match schema.get("x-kubernetes-list-type"):
            case "set":
                return SetList(items)
            case "map":
                map_list = MapList(items)
                map_list.keys = tuple(
                    escaped(key) or key for key in nested_list(schema, "x-kubernetes-list-map-keys")
                )
                return map_list
        return items

    def _object(self, value: dict[str, Any], schema: Schema, is_root: bool) -> Any:
        """Convert an object. Null fields are absent; fields that expressions cannot name keep
        objects different."""
        others = schema.get("additionalProperties")
        if isinstance(others, Mapping):
            return {key: self.value_of(item, others) for key, item in value.items()}
        fields = fields_of(schema, is_root=is_root)
        record = Record()
        for key, item in value.items():
            if item is None:
                continue
            name = escaped(key) if key in fields else None
            record[name or f"\0{key}"] = self.value_of(item, fields.get(key) or _UNDESCRIBED)
        return record


def _text(value: str, name: str) -> Any:
    """Convert a text of a format: bytes, a duration or a time."""
    match name.replace("-", ""):
        case "byte":
            try:
                return b64decode(value, validate=True)
            except ValueError:
                raise CelError(f"illegal base64 data in {value}") from None
        case "duration":
            return parse_duration(value)
        case "date":
            try:
                day = date.fromisoformat(value)
            except ValueError:
                raise CelError(f"invalid date {value}") from None
            return datetime(day.year, day.month, day.day, tzinfo=UTC)
        case "datetime":
            return parse_timestamp(value)

    return value
