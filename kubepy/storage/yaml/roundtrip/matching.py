"""Match the items of a list with those of another state of the same list."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any

# The keys that tell the items of the API's lists apart, the surest first. ``uid`` comes after
# ``name``: an owner that was made again is the same owner to whoever wrote a comment beside it.
NATURAL_KEYS = (
    ("name",),
    ("mountPath",),
    ("devicePath",),
    ("containerPort",),
    ("containerPort", "protocol"),
    ("uid",),
    ("type",),
    ("ip",),
    ("port",),
    ("port", "protocol"),
    ("conditionType",),
    ("topologyKey",),
    ("topologyKey", "whenUnsatisfiable"),
    ("key",),
    ("key", "operator"),
    ("key", "effect"),
    ("key", "operator", "value", "effect"),
    ("host",),
    ("path",),
    ("kind", "name"),
    ("hostname",),
    ("address",),
)

MAX_PAIRS = 250_000  # how many pairs of items are compared to find the longest runs that stay
MAX_STEPS = 20  # how many items are passed over to find one that was renamed


def same(a: Any, b: Any) -> bool:
    """Return whether two JSON values are equal; true is not 1."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def match(old: Sequence[Any], new: Sequence[Any]) -> list[int | None]:
    """Return for each new item the index of the old one that it was, None for one that was not
    there.

    Items with the same natural key are the same; without such a key, items that are equal, and of
    the others those at the same place between them. An item in which nothing but its key is another
    was renamed.
    """
    names = _natural_key(old, new)
    if names:
        places = {_key(item, names): index for index, item in enumerate(old)}
        matches = [places.get(_key(item, names)) for item in new]
    else:
        matches = _match_equal(old, new)
    _match_places(old, new, names, matches)
    return matches


def _natural_key(old: Sequence[Any], new: Sequence[Any]) -> tuple[str, ...]:
    """Return the first natural key that all items have and no two of a list share; () where there
    is none."""
    if not all(isinstance(item, dict) for item in (*old, *new)):
        return ()
    for names in NATURAL_KEYS:
        keys = [[_key(item, names) for item in items] for items in (old, new)]
        if all(None not in values and len(set(values)) == len(values) for values in keys):
            return names
    return ()


def _key(item: dict[str, Any], names: tuple[str, ...]) -> Hashable:
    values = tuple(item.get(name) for name in names)
    is_key = all(isinstance(value, str | int) for value in values[:1]) and not any(
        isinstance(value, dict | list) for value in values
    )
    return values if is_key else None


def _match_equal(old: Sequence[Any], new: Sequence[Any]) -> list[int | None]:
    """Match equal items in order, then those that were moved."""
    a, b = ([json.dumps(item, sort_keys=True) for item in items] for items in (old, new))
    matches: list[int | None] = [None] * len(new)
    if len(a) * len(b) <= MAX_PAIRS:
        for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks():
            matches[block.b : block.b + block.size] = range(block.a, block.a + block.size)
    taken = set(matches)
    left: dict[str, list[int]] = {}
    for index in reversed(range(len(a))):
        if index not in taken:
            left.setdefault(a[index], []).append(index)
    return [
        left[text].pop() if index is None and left.get(text) else index
        for text, index in zip(b, matches, strict=True)
    ]


def _match_places(
    old: Sequence[Any], new: Sequence[Any], names: tuple[str, ...], matches: list[int | None]
) -> None:
    """Match what is left between two matches with what is left between the same two, in order."""
    taken = {index for index in matches if index is not None}
    at = 0
    for place, item in enumerate(new):
        index = matches[place]
        if index is None:
            untaken = takewhile(
                lambda candidate: candidate not in taken, range(at, min(at + MAX_STEPS, len(old)))
            )
            index = next(
                (candidate for candidate in untaken if _are_alike(old[candidate], item, names)),
                None,
            )
        if index is not None:
            matches[place] = index
            taken.add(index)
            at = index + 1


def _are_alike(a: Any, b: Any, names: tuple[str, ...]) -> bool:
    """Return whether one item can have become another: both of a kind, and the same but for a
    natural key."""
    if names:
        return same({**a, **dict.fromkeys(names)}, {**b, **dict.fromkeys(names)})
    if isinstance(a, dict) and isinstance(b, dict):
        return a.get("name") == b.get("name")
    return (
        not isinstance(a, dict)
        and not isinstance(b, dict)
        and isinstance(a, list) == isinstance(b, list)
    )


def increasing(indexes: Sequence[int | None]) -> set[int]:
    """Return the indexes of a longest run that only rises: those that can stay when the others are
    moved."""
    tails: list[int] = []
    before: dict[int, int | None] = {}
    for index in indexes:
        if index is None:
            continue
        place = bisect_left(tails, index)
        before[index] = tails[place - 1] if place else None
        tails[place : place + 1] = [index]
    run: set[int] = set()
    last = tails[-1] if tails else None
    while last is not None:
        run.add(last)
        last = before[last]
    return run
