"""The structural schemas of CustomResourceDefinitions: what they drop and fill in.

Upstream: ``apiextensions-apiserver/pkg/apiserver/schema/{pruning,defaulting}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubepy.api.meta import Object, clone

Schema = Mapping[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
_ALWAYS_THERE = frozenset(("apiVersion", "kind", "metadata"))


def prune(schema: Schema, value: Any, *, is_resource: bool = True) -> list[str]:
    """Drop from a value what its schema does not know; returns the paths of what was dropped.

    A resource keeps its kind, version and metadata.
    """
    return list(_prune({**schema, EMBEDDED: True} if is_resource else schema, value, ""))


def _prune(schema: Schema, value: Any, path: str) -> Iterator[str]:
    """What is to be preserved is so through lists in lists, but within a field that is described only as described."""
    if isinstance(value, list):
        items: Schema = schema.get("items") or ({PRESERVE: True} if schema.get(PRESERVE) else {})
        preserved = {**items, PRESERVE: True} if schema.get(PRESERVE) else items
        for index, item in enumerate(value):
            yield from _prune(preserved, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        yield from _prune_map(schema, value, path)


def _prune_map(schema: Schema, value: Object, path: str) -> Iterator[str]:
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
    """The schema of a field or of a map's values; one of any kind is empty."""
    fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
    if key in fields:
        field: Schema = fields[key]
        return field
    return None if not others else others if isinstance(others, dict) else {}


def drop_nulls(schema: Schema, value: Any) -> None:
    """Drop from a value the nulls of fields that cannot be null and have no default to take their place."""
    if isinstance(value, list):
        for item in value:
            drop_nulls(schema.get("items") or {}, item)
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
    """Set the defaults of the schema in an object; those of items and of a map's values take the places of nulls."""
    if isinstance(value, list):
        _fill_in_each(schema.get("items") or {}, value, range(len(value)))
    if not isinstance(value, dict):
        return
    fields = schema.get("properties") or {}
    for key, field in fields.items():
        if field.get("default") is not None and (key not in value or _cannot_be_null(field, value[key])):
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
