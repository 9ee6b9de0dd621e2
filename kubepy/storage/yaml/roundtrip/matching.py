"""Finds the items of a list again in another state of the same list."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from typing import Any

# What tells the items of the API's lists apart, the surest first. ``uid`` comes after ``name``: an owner that was made
# again is the same owner to whoever wrote a comment beside it.
NATURAL_KEYS = (
    ("name",), ("mountPath",), ("devicePath",), ("containerPort",), ("containerPort", "protocol"), ("uid",), ("type",),
    ("ip",), ("port",), ("port", "protocol"), ("conditionType",), ("topologyKey",),
    ("topologyKey", "whenUnsatisfiable"), ("key",), ("key", "operator"), ("key", "effect"),
    ("key", "operator", "value", "effect"), ("host",), ("path",), ("kind", "name"), ("hostname",), ("address",),
)


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal; true is not 1."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def match(old: Sequence[Any], new: Sequence[Any]) -> list[int | None]:
    """For each new item the index of the old one that it was, None for one that was not there.

    Items are the same that have the same natural key; without one, those that are equal, and of the others those at the
    same place between them.
    """
    old_keys, new_keys = _natural_keys(old, new)
    places = {key: index for index, key in enumerate(old_keys) if key is not None}
    found = [places.get(key) if key is not None else None for key in new_keys]
    _match_equal(old, new, old_keys, new_keys, found)
    _match_places(old, new, old_keys, new_keys, found)
    return found


def _natural_keys(old: Sequence[Any], new: Sequence[Any]) -> tuple[list[Hashable], list[Hashable]]:
    """Each item's key by the first natural key that all have and none shares; None where there is no such."""
    everything = [*old, *new]
    if everything and all(isinstance(item, dict) for item in everything):
        for names in NATURAL_KEYS:
            old_keys, new_keys = [_key(item, names) for item in old], [_key(item, names) for item in new]
            if None not in old_keys and None not in new_keys and _are_unique(old_keys) and _are_unique(new_keys):
                return old_keys, new_keys
    return [None] * len(old), [None] * len(new)


def _key(item: dict[str, Any], names: tuple[str, ...]) -> Hashable:
    values = tuple(item.get(name) for name in names)
    is_key = all(isinstance(value, str | int) for value in values[:1]) and not any(
        isinstance(value, dict | list) for value in values)
    return values if is_key else None


def _are_unique(keys: list[Hashable]) -> bool:
    return len(set(keys)) == len(keys)


def _match_equal(old: Sequence[Any], new: Sequence[Any], old_keys: list[Hashable], new_keys: list[Hashable],
                 found: list[int | None]) -> None:
    """Match equal items that have no key, in order; then those that were moved."""
    a = [_text(item) if key is None else "" for item, key in zip(old, old_keys, strict=True)]
    b = [_text(item) if key is None else "" for item, key in zip(new, new_keys, strict=True)]
    if not any(b):
        return
    for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            if b[block.b + offset]:
                found[block.b + offset] = block.a + offset
    taken = set(found)
    moved = {text: index for index, text in enumerate(a) if text and index not in taken}
    for index, text in enumerate(b):
        if text and found[index] is None:
            found[index] = moved.pop(text, None)


def _match_places(old: Sequence[Any], new: Sequence[Any], old_keys: list[Hashable], new_keys: list[Hashable],
                  found: list[int | None]) -> None:
    """Match what is left between two matches with what is left between the same two, in order."""
    taken = {index for index in found if index is not None}
    at = 0
    for index, item in enumerate(new):
        match_index = found[index]
        if match_index is not None:
            at = match_index + 1
        elif at < len(old) and at not in taken and old_keys[at] is None and new_keys[index] is None:
            if _are_alike(old[at], item):
                found[index] = at
                taken.add(at)
            at += 1


def _are_alike(a: Any, b: Any) -> bool:
    """Whether one item can have become another: both of a kind, and with the same name where they have one."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.get("name") == b.get("name")
    return not isinstance(a, dict) and not isinstance(b, dict) and isinstance(a, list) == isinstance(b, list)


def _text(item: Any) -> str:
    return json.dumps(item, sort_keys=True)


def increasing(indexes: Sequence[int | None]) -> set[int]:
    """The indexes of a longest run that only rises: what can stay where it is when the others are moved."""
    tails: list[int] = []
    before: dict[int, int | None] = {}
    for index in indexes:
        if index is None:
            continue
        place = bisect_left(tails, index)
        before[index] = tails[place - 1] if place else None
        tails[place:place + 1] = [index]
    run: set[int] = set()
    last = tails[-1] if tails else None
    while last is not None:
        run.add(last)
        last = before[last]
    return run
