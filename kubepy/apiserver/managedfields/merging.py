"""Merging an applied configuration into an object, and taking fields out of one.

Upstream: ``structured-merge-diff/typed/{merge,remove}.go``.
"""

from __future__ import annotations

from typing import Any

from kubepy.api.schema.openapi import Schema
from kubepy.apiserver.managedfields.fieldpath import Fields, Path, field
from kubepy.apiserver.managedfields.typed import ABSENT, TypedError, child, elements, is_atomic, is_declared
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.apiserver.managedfields import fieldpath


def merge(live: Any, config: Any, schema: Schema | None, path: Path = ()) -> Any:
    """Merge a configuration into the live value: its leaves win, nothing is removed, lists take its order.

    Of items that the live list has twice, the configuration's replace both. Raises TypedError.
    """
    is_granular = isinstance(live, dict | list) and not is_atomic(schema, live)
    if config is ABSENT or (config is None and live and is_granular):
        return live
    if isinstance(config, dict) and isinstance(live, dict) and not is_atomic(schema, config):
        names = [*live, *(name for name in config if name not in live)]
        return {name: merge(live.get(name, ABSENT), config.get(name, ABSENT), child(schema, name),
                            (*path, field(name))) for name in names}
    if isinstance(config, list) and isinstance(live, list) and schema is not None and not is_atomic(schema, config):
        return _merge_lists(live, config, schema, path)
    return config


def _merge_lists(live: list[Any], config: list[Any], schema: Schema, path: Path) -> list[Any]:
    before, after = elements(schema, live, path), elements(schema, config, path)
    old = {element: ABSENT if before.count(element) > 1 else value
           for element, value in zip(before, live, strict=True)}
    new = dict(zip(after, config, strict=True))
    if len(new) < len(after):
        twice = next(element for element in after if after.count(element) > 1)
        raise TypedError(path, f"duplicate entries for key {fieldpath.path_text((twice,))}")
    return [merge(old.get(element, ABSENT), new[element], schema.items(), (*path, element)) if element in new
            else live[index] for index, element in interleaved(before, after)]


def interleaved(live: list[str], config: list[str]) -> list[tuple[int, str]]:
    """Order a merged list: as the configuration, each item of the live list alone behind those that it followed.

    Yields the index in ``live`` (-1 for items of the configuration alone) and the path element.
    """
    shared = [element for element in config if element in live]
    merged: set[str] = set()
    order: list[tuple[int, str]] = []
    left = right = 0
    while left < len(live) or right < len(config):
        mine = live[left] if left < len(live) else None
        theirs = config[right] if right < len(config) else None
        if mine is not None and mine == theirs:
            merged.add(mine)
            order.append((-1, mine))
            left, right, shared = left + 1, right + 1, shared[1:]
        elif mine is not None and theirs is not None and mine in config and shared and shared[0] != mine:
            left += 1  # it comes where the configuration has it
        elif mine is not None and mine not in config:
            order.append((left, mine))
            left += 1
        else:
            left += mine in merged
            if theirs is not None:
                merged.add(theirs)
                order.append((-1, theirs))
                right, shared = right + 1, shared[1:] if shared and shared[0] == theirs else shared
    return order


# --- removing -----------------------------------------------------------------------------------------------------


def remove(value: Any, fields: Fields, schema: Schema | None, path: Path = ()) -> Any:
    """Return the value without these fields and items.

    A container that becomes empty by that is null; atomic values stay whole.
    """
    if not isinstance(value, dict | list) or not value:
        return value
    if is_atomic(schema, value):
        return value
    if isinstance(value, dict):
        kept = {name: _without(inner, fields, child(schema, name), (*path, field(name)))
                for name, inner in value.items() if (*path, field(name)) not in fields}
        return kept or ABSENT
    assert schema is not None
    kept_items = [_without(inner, fields, schema.items(), (*path, element))
                  for element, inner in zip(elements(schema, value, path), value, strict=True)
                  if (*path, element) not in fields]
    return kept_items or ABSENT


def _without(value: Any, fields: Fields, schema: Schema | None, path: Path) -> Any:
    """Remove the paths below a path; a container that becomes empty is null, as upstream's."""
    if not any(field[:len(path)] == path for field in fields):
        return value
    left = remove(value, fields, schema, path)
    return None if left is ABSENT else left


def with_named_fields(fields: Fields, schema: Schema | None) -> Fields:
    """Add every field of a type that leads to a member of the set (``EnsureNamedFieldsAreMembers``)."""
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
