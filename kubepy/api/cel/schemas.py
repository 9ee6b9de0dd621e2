"""Objects of a structural schema as expressions see them: their types and their values.

Upstream: ``apiserver/pkg/cel/common/{schemas,values}.go``. What a schema does not describe is not seen.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from kubepy.api.cel.times import parse_duration, parse_timestamp
from kubepy.api.cel.types import BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, Type, list_of, map_of
from kubepy.api.cel.values import CelError, MapList, Record, SetList, reserved
from kubepy.api.schema.structural import EMBEDDED, INT_OR_STRING, Schema

_WORDS = frozenset(("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
                    "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"))
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_NAME = re.compile(r"[A-Za-z_][\w./-]*", re.ASCII)
_METADATA: Schema = {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}}
_ROOT = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _METADATA}


def escaped(name: str) -> str | None:
    """How an expression writes a field's name, None if it cannot."""
    if name in _WORDS:
        return reserved(name)
    if not _NAME.fullmatch(name):
        return None
    for text, escape in _ESCAPES:
        name = name.replace(text, escape)
    return name


def fields_of(schema: Schema, *, is_root: bool = False) -> dict[str, Schema]:
    fields = dict(schema.get("properties") or {})
    if not (is_root or schema.get(EMBEDDED)) or _has_root(fields):
        return fields
    return {**fields, **_ROOT}


def _has_root(fields: Mapping[str, Schema]) -> bool:
    """Whether a schema describes itself what every object has."""
    metadata = fields.get("metadata") or {}
    described = [fields.get("kind"), fields.get("apiVersion"),
                 *((metadata.get("properties") or {}).get(name) for name in ("name", "generateName"))]
    return metadata.get("type") == "object" and all((one or {}).get("type") == "string" for one in described)


def type_of_schema(schema: Schema, *, is_root: bool = False) -> Type | None:
    """None for what expressions cannot see."""
    if schema.get(INT_OR_STRING):
        return DYN
    match schema.get("type"):
        case "array":
            item = type_of_schema(schema.get("items") or {})
            return None if item is None else list_of(item)
        case "object":
            return _object_type(schema, is_root)
        case "string":
            return _text_type(schema.get("format", ""))
        case "integer":
            return INT
        case "number":
            return DOUBLE
        case "boolean":
            return BOOL
    return None


def _object_type(schema: Schema, is_root: bool) -> Type | None:
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        value = type_of_schema(others)
        return None if value is None else map_of(STRING, value)
    found = {escaped(name): type_of_schema(one) for name, one in fields_of(schema, is_root=is_root).items()}
    return Type("object", fields={name: one for name, one in found.items() if name is not None and one is not None})


def _text_type(name: str) -> Type:
    match name.replace("-", ""):
        case "byte":
            return BYTES
        case "duration":
            return DURATION
        case "date" | "datetime":
            return TIMESTAMP
    return STRING


# --- values ---------------------------------------------------------------------------------------------------------


def value_of(value: Any, schema: Schema, *, is_root: bool = False) -> Any:
    """A value of a schema. Raises CelError for a text that has not the form that the schema asks for."""
    if value is None or schema.get(INT_OR_STRING):
        return value
    if isinstance(value, dict):
        return _object(value, schema, is_root)
    if isinstance(value, list):
        return _list(value, schema)
    if isinstance(value, str):
        return _text(value, schema.get("format", ""))
    if schema.get("type") == "number":
        return float(value)
    return int(value) if isinstance(value, float) and schema.get("type") == "integer" else value


# A null is no field. What expressions cannot name still makes objects different: it has a name that nobody can write.
def _object(value: dict[str, Any], schema: Schema, is_root: bool) -> dict[str, Any]:
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        return {key: value_of(one, others) for key, one in value.items()}
    fields = fields_of(schema, is_root=is_root)
    return Record({(escaped(key) if key in fields else None) or f"\0{key}": value_of(one, fields.get(key) or {})
                   for key, one in value.items() if one is not None})


def _list(value: list[Any], schema: Schema) -> list[Any]:
    items = [value_of(item, schema.get("items") or {}) for item in value]
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return SetList(items)
        case "map":
            made = MapList(items)
            made.keys = tuple(escaped(key) or key for key in schema.get("x-kubernetes-list-map-keys") or ())
            return made
    return items


def _text(value: str, name: str) -> Any:
    match name.replace("-", ""):
        case "byte":
            return _bytes(value)
        case "duration":
            return parse_duration(value)
        case "date":
            return _date(value)
        case "datetime":
            return parse_timestamp(value)
    return value


def _bytes(value: str) -> bytes:
    try:
        return b64decode(value, validate=True)
    except ValueError:
        raise CelError(f"illegal base64 data in {value}") from None


def _date(value: str) -> datetime:
    try:
        day = date.fromisoformat(value)
    except ValueError:
        raise CelError(f"invalid date {value}") from None
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
