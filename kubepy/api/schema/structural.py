"""The structural schemas of CustomResourceDefinitions: pruning, defaults, list types, paths to
fields.

Upstream: ``apiextensions-apiserver/pkg/apiserver/schema/{pruning,defaulting,listtype,cel}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kubepy.api.errors import FieldError, duplicate, invalid_value
from kubepy.api.meta import clone, nested_list, nested_map

Schema = Mapping[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
_ALWAYS_THERE = frozenset(("apiVersion", "kind", "metadata"))


def prune(schema: Schema, value: Any, *, is_resource: bool = True) -> list[str]:
    """Drop unknown fields from a value; returns their paths. A resource keeps its kind, version and
    metadata."""
    return list(_prune({**schema, EMBEDDED: True} if is_resource else schema, value, ""))


def _prune(schema: Schema, value: Any, path: str) -> Iterator[str]:
    """Unknown fields are preserved through lists in lists, but not within a field that has a schema
    of its own."""
    if isinstance(value, list):
        items: Schema = schema.get("items") or ({PRESERVE: True} if schema.get(PRESERVE) else {})
        preserved = {**items, PRESERVE: True} if schema.get(PRESERVE) else items
        for index, item in enumerate(value):
            yield from _prune(preserved, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key in sorted(value):
            place = f"{path}.{key}" if path else key
            if schema.get(EMBEDDED) and key in _ALWAYS_THERE:
                continue
            if (below := _schema_of(schema, key)) is not None:
                yield from _prune(below, value[key], place)
            elif not schema.get(PRESERVE):
                del value[key]
                yield place


def _schema_of(schema: Schema, key: str) -> Schema | None:
    """Return the schema of a field or of a map's values, {} where anything goes; None for an
    unknown field."""
    fields = nested_map(schema, "properties")
    others = schema.get("additionalProperties")
    if key in fields:
        field: Schema = fields[key]
        return field
    if not others:
        return None
    if isinstance(others, dict):
        return others
    return {}


def drop_nulls(schema: Schema, value: Any) -> None:
    """Drop nulls of fields that are neither nullable nor have a default to take the place of
    null."""
    if isinstance(value, list):
        for item in value:
            drop_nulls(nested_map(schema, "items"), item)
    if not isinstance(value, dict):
        return
    for key in list(value):
        below = _schema_of(schema, key)
        if below and _cannot_be_null(below, value[key]) and below.get("default") is None:
            del value[key]
        elif below:
            drop_nulls(below, value[key])


def _cannot_be_null(schema: Schema, value: Any) -> bool:
    return value is None and not schema.get("nullable")


def fill_in(schema: Schema, value: Any) -> None:
    """Set the defaults of the schema in an object; those of items and of a map's values replace
    nulls."""
    if isinstance(value, list):
        _fill_in_each(nested_map(schema, "items"), value, range(len(value)))
    if not isinstance(value, dict):
        return
    fields = nested_map(schema, "properties")
    for key, field in fields.items():
        if field.get("default") is not None and (
            key not in value or _cannot_be_null(field, value[key])
        ):
            value[key] = clone(field["default"])
        if key in value:
            fill_in(field, value[key])
    if isinstance(others := schema.get("additionalProperties"), dict):
        _fill_in_each(others, value, value.keys() - fields.keys())


def _fill_in_each(schema: Schema, values: Any, places: Iterable[Any]) -> None:
    for place in places:
        if _cannot_be_null(schema, values[place]) and schema.get("default") is not None:
            values[place] = clone(schema["default"])
        fill_in(schema, values[place])


# --- duplicate items in lists of type set and map -------------------------------------------------


def validate_lists(schema: Schema, value: Any, path: str = "") -> list[FieldError]:
    """Return the errors of items that are in a list twice.

    :param schema: of the value, or what :func:`schema_of_lists` has left of it.
    """
    return list(_walk(schema, value, path))


def schema_of_lists(schema: Schema) -> Schema:
    """Return what a schema says of lists of type set and map, without the fields that have none in
    them."""
    if isinstance(others := schema.get("additionalProperties"), Mapping):
        parts: Schema = {"additionalProperties": schema_of_lists(others)}
    else:
        fields = {
            name: schema_of_lists(field) for name, field in nested_map(schema, "properties").items()
        }
        parts = {"properties": {name: field for name, field in fields.items() if field}}
    if "items" in schema:
        parts = {**parts, "items": schema_of_lists(nested_map(schema, "items"))}
    left = {name: part for name, part in parts.items() if part}
    if schema.get("x-kubernetes-list-type") in ("set", "map"):
        for name in ("x-kubernetes-list-type", "x-kubernetes-list-map-keys"):
            left[name] = schema.get(name)
    return left


def _walk(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    if not schema:
        return
    if isinstance(value, list):
        match schema.get("x-kubernetes-list-type"):
            case "set":
                yield from (
                    duplicate(f"{path}[{index}]", value[index]) for index in _repeats(value)
                )
            case "map" if not all(item is None or isinstance(item, dict) for item in value):
                index, item = next(
                    (index, item)
                    for index, item in enumerate(value)
                    if item is not None and not isinstance(item, dict)
                )
                yield invalid_value(
                    f"{path}[{index}]", item, "must be an object for an array of list-type map"
                )
            case "map":
                keys = nested_list(schema, "x-kubernetes-list-map-keys")
                item_keys = [
                    {key: item[key] for key in keys if key in item} if item else {}
                    for item in value
                ]
                yield from (
                    duplicate(f"{path}[{index}]", item_keys[index]) for index in _repeats(item_keys)
                )
        for index, item in enumerate(value):
            yield from _walk(nested_map(schema, "items"), item, f"{path}[{index}]")
    elif isinstance(value, dict):
        fields = nested_map(schema, "properties")
        others = schema.get("additionalProperties")
        for key in sorted(value):
            if isinstance(others, Mapping):
                yield from _walk(others, value[key], f"{path}[{key}]")
            elif key in fields:
                yield from _walk(fields[key], value[key], f"{path}.{key}" if path else key)


def _repeats(values: list[Any]) -> list[int]:
    """Return the index at which each repeated value occurs for the second time."""
    counts: dict[str, int] = {}
    repeats = []
    for index, value in enumerate(values):
        text = json.dumps(value, sort_keys=True)
        counts[text] = counts.get(text, 0) + 1
        if counts[text] == 2:
            repeats.append(index)
    return repeats


# --- paths to fields ------------------------------------------------------------------------------


# A quoted text without an end is one token up to the end of the path.
_TOKEN = re.compile(r"'.*?(?<!\\)'|'.*|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "'": "'",
    "\\": "\\",
}


class FieldPath(NamedTuple):
    """A field. ``text`` is its path as errors write it: a dot before every field, brackets around
    keys of maps."""

    text: str
    schema: Schema


def find_field(schema: Schema, path: str, *, arrays: bool = True) -> FieldPath:
    """Return the field at a path. ``arrays`` allows names in brackets. Raises ValueError in
    upstream's words."""
    tokens = iter(_TOKEN.findall(path))
    place = FieldPath("", schema)
    for token in tokens:
        if token == "[" and not arrays:
            raise ValueError("array notation is not allowed")
        if token == "[":
            name = _next(tokens)
            if len(name) < 2 or name[0] != "'" or name[-1] != "'":
                raise ValueError(f"expected single quoted string but got {name}")
            place = _step(place, _ESCAPED.sub(_unescape, name[1:-1]))
            if (end := _next(tokens)) != "]":
                raise ValueError(f"expected ] but got {end}")
        elif token == ".":
            place = _step(place, _next(tokens))
        else:
            raise ValueError(f"expected [ or . but got: {token}")

    return place


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise ValueError("unexpected end of JSON path")
    return token


def _step(place: FieldPath, name: str) -> FieldPath:
    """Return the field of that name, or the values of a map."""
    properties = place.schema.get("properties")
    others = place.schema.get("additionalProperties")
    if properties and name in properties:
        return FieldPath(f"{place.text}.{name}", properties[name])
    if not properties and isinstance(others, dict):
        return FieldPath(f"{place.text}[{name}]", others)
    raise ValueError("does not refer to a valid field")


def _unescape(match: re.Match[str]) -> str:
    if match[1] not in _ESCAPES:
        raise ValueError(f"invalid string literal: invalid escape char {match[0]}")
    return _ESCAPES[match[1]]
