"""Merging an applied configuration into an object, and taking fields out of one.

Upstream: ``structured-merge-diff/typed/{merge,remove}.go``.
"""

from __future__ import annotations

from typing import Any

from kubepy.api.schema.openapi import Schema
from kubepy.apiserver.managedfields.fieldpath import Fields, Path, field
from kubepy.apiserver.managedfields.typed import (
    ABSENT,
    TypedError,
    child,
    elements,
    is_atomic,
    is_declared,
)
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.managedfields import fieldpath


def merge(live: Any, config: Any, schema: Schema | None, path: Path = ()) -> Any:
    """Merge a configuration into the live value.

    The configuration's values win and lists take its order; nothing is removed. Where the live list
    has several items with one key, the configuration's item replaces all of them. Raises
    TypedError.
    """
    is_granular = isinstance(live, dict | list) and not is_atomic(schema, live)
    if config is ABSENT or (config is None and live and is_granular):
        return live
    if isinstance(config, dict) and isinstance(live, dict) and not is_atomic(schema, config):
        names = [*live, *(name for name in config if name not in live)]
        return {
            name: merge(
                live.get(name, ABSENT),
                config.get(name, ABSENT),
                child(schema, name),
                (*path, field(name)),
            )
            for name in names
        }

    if (
        isinstance(config, list)
        and isinstance(live, list)
        and schema is not None
        and not is_atomic(schema, config)
    ):
        return _merge_lists(live, config, schema, path)

    return config


def _merge_lists(live: list[Any], config: list[Any], schema: Schema, path: Path) -> list[Any]:
    before = elements(schema, live, path)
    after = elements(schema, config, path)
    old = {
        element: ABSENT if before.count(element) > 1 else value
        for element, value in zip(before, live, strict=True)
    }
    new = dict(zip(after, config, strict=True))
    if len(new) < len(after):
        duplicate = next(element for element in after if after.count(element) > 1)
        raise TypedError(path, f"duplicate entries for key {fieldpath.path_text((duplicate,))}")
    return [
        merge(old.get(element, ABSENT), new[element], schema.items(), (*path, element))
        if element in new
        else live[index]
        for index, element in interleaved(before, after)
    ]


def interleaved(live: list[str], config: list[str]) -> list[tuple[int, str]]:
    """Order the items of a merged list, given by their path elements.

    Items of the configuration keep its order. An item that only the live list has follows the item
    that precedes it there. Returns for each item its index in ``live``, or -1 if the configuration
    has it, and its path element.
    """
    shared = [element for element in config if element in live]
    merged: set[str] = set()
    order: list[tuple[int, str]] = []
    live_index = config_index = 0
    while live_index < len(live) or config_index < len(config):
        live_item = live[live_index] if live_index < len(live) else None
        config_item = config[config_index] if config_index < len(config) else None
        if live_item is not None and live_item == config_item:
            merged.add(live_item)
            order.append((-1, live_item))
            live_index = live_index + 1
            config_index = config_index + 1
            shared = shared[1:]
        elif (
            live_item is not None
            and config_item is not None
            and live_item in config
            and shared
            and shared[0] != live_item
        ):
            live_index += 1  # it comes where the configuration has it
        elif live_item is not None and live_item not in config:
            order.append((live_index, live_item))
            live_index += 1
        else:
            live_index += live_item in merged
            if config_item is not None:
                merged.add(config_item)
                order.append((-1, config_item))
                config_index = config_index + 1
                shared = shared[1:] if shared and shared[0] == config_item else shared

    return order


# --- removing -------------------------------------------------------------------------------------


def remove(value: Any, fields: Fields, schema: Schema | None, path: Path = ()) -> Any:
    """Return the value without these fields and items.

    Maps and lists that become empty are null, or ABSENT at the top; atomic values stay whole.
    """
    if not isinstance(value, dict | list) or not value:
        return value
    if is_atomic(schema, value):
        return value
    if isinstance(value, dict):
        kept = {
            name: _without(inner, fields, child(schema, name), (*path, field(name)))
            for name, inner in value.items()
            if (*path, field(name)) not in fields
        }
        return kept or ABSENT

    assert schema is not None
    kept_items = [
        _without(inner, fields, schema.items(), (*path, element))
        for element, inner in zip(elements(schema, value, path), value, strict=True)
        if (*path, element) not in fields
    ]
    return kept_items or ABSENT


def _without(value: Any, fields: Fields, schema: Schema | None, path: Path) -> Any:
    """Remove the fields below a path; as upstream, a map or list that becomes empty is null."""
    if not any(field[: len(path)] == path for field in fields):
        return value
    remaining = remove(value, fields, schema, path)
    return None if remaining is ABSENT else remaining


def with_named_fields(fields: Fields, schema: Schema | None) -> Fields:
    """Add every field of a type that leads to a member of the set
    (``EnsureNamedFieldsAreMembers``)."""
    members = set(fields)
    for path in fields:
        members.update(_named_parents(path, schema))
    return frozenset(members)


def _named_parents(path: Path, schema: Schema | None) -> list[Path]:
    parents: list[Path] = []
    for depth, element in enumerate(path[:-1], 1):
        if schema is None:
            break
        if element.startswith("f:"):
            if is_declared(schema, element[2:]):
                parents.append(path[:depth])
            schema = child(schema, element[2:])
        else:
            schema = schema.items()
    return parents
