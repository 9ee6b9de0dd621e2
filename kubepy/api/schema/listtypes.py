"""Lists that are sets or maps hold nothing twice (``apiextensions-apiserver/pkg/apiserver/schema/listtype``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kubepy.api.errors import FieldError, duplicate, invalid_value
from kubepy.api.schema.structural import Schema


def validate_lists(schema: Schema, value: Any, path: str = "") -> list[FieldError]:
    return list(_walk(schema, value, path))


def _walk(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    if isinstance(value, list):
        yield from _check(schema, value, path)
        for index, item in enumerate(value):
            yield from _walk(schema.get("items") or {}, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for key in sorted(value):
            if isinstance(others, Mapping):
                yield from _walk(others, value[key], f"{path}[{key}]")
            elif key in fields:
                yield from _walk(fields[key], value[key], f"{path}.{key}" if path else key)


def _check(schema: Schema, value: list[Any], path: str) -> Iterator[FieldError]:
    match schema.get("x-kubernetes-list-type"):
        case "set":
            yield from (duplicate(f"{path}[{index}]", value[index]) for index in _repeats(value))
        case "map":
            yield from _check_map(schema.get("x-kubernetes-list-map-keys") or [], value, path)


def _check_map(keys: list[str], value: list[Any], path: str) -> Iterator[FieldError]:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            yield invalid_value(f"{path}[{index}]", item, "must be an object for an array of list-type map")
            return
    found = [{key: item[key] for key in keys if key in item} if item else {} for item in value]
    yield from (duplicate(f"{path}[{index}]", found[index]) for index in _repeats(found))


def _repeats(values: list[Any]) -> list[int]:
    """Where a value comes for the second time; what comes still more often is told once."""
    seen: dict[str, int] = {}
    second = []
    for index, value in enumerate(values):
        text = json.dumps(value, sort_keys=True)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            second.append(index)
    return second
