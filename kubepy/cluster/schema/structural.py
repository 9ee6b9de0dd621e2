"""The structural schemas of CustomResourceDefinitions: what they drop and fill in.

Upstream: ``apiextensions-apiserver/pkg/apiserver/schema/{pruning,defaulting}``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubepy.cluster.objects.meta import Object, clone

Schema = Mapping[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
_ALWAYS_THERE = frozenset(("apiVersion", "kind", "metadata"))


def prune(schema: Schema, value: Any, *, is_resource: bool = True) -> list[str]:
    """Drop from a value what its schema does not know; returns the paths of what was dropped.

    A resource keeps its kind, version and metadata.
    """
    return list(_prune(schema, value, "", is_resource=is_resource))


def _prune(schema: Schema, value: Any, path: str, *, is_resource: bool) -> Iterator[str]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _prune(schema.get("items") or {}, item, f"{path}[{index}]", is_resource=False)
    elif isinstance(value, dict):
        yield from _prune_map(schema, value, path, is_resource or bool(schema.get(EMBEDDED)))


def _prune_map(schema: Schema, value: Object, path: str, is_resource: bool) -> Iterator[str]:
    fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for key in sorted(value):
        place = f"{path}.{key}" if path else key
        if is_resource and key in _ALWAYS_THERE:
            continue
        if key in fields:
            yield from _prune(fields[key], value[key], place, is_resource=False)
        elif isinstance(others, dict):
            yield from _prune(others, value[key], place, is_resource=False)
        elif not others and not schema.get(PRESERVE):
            del value[key]
            yield place


def fill_in(schema: Schema, value: Any) -> None:
    """Set the defaults of the schema in an object."""
    if isinstance(value, list):
        for item in value:
            fill_in(schema.get("items") or {}, item)
    if not isinstance(value, dict):
        return
    for key, field in (schema.get("properties") or {}).items():
        if "default" in field and (key not in value or (value[key] is None and not field.get("nullable"))):
            value[key] = clone(field["default"])
        if key in value:
            fill_in(field, value[key])
    if isinstance(others := schema.get("additionalProperties"), dict):
        for key in value.keys() - (schema.get("properties") or {}).keys():
            fill_in(others, value[key])
