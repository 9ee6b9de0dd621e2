"""Functions of lists, sets and optional values.

Upstream: ``apiserver/pkg/cel/library/lists.go``, cel-go's ``ext/{lists,sets}.go`` and
``cel/library.go``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from kubepy.api.cel import times
from kubepy.api.cel.operators import equal, to_int, to_uint
from kubepy.api.cel.types import overload
from kubepy.api.cel.values import NONE, CelError, Duration, OptionalValue, Uint, kind_of

MAX_RANGE = 100_000
_ORDERED = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")


def _comparable(items: list[Any]) -> list[Any]:
    """Return the list. Raises CelError if its items have no order."""
    kinds = {kind_of(item) for item in items}
    if len(kinds) > 1 or not kinds <= set(_ORDERED):
        raise CelError("no such overload")
    return items


@overload("list<A>.isSorted() -> bool")
def _is_sorted(items: list[Any]) -> bool:
    return all(left <= right for left, right in pairwise(_comparable(items)))


@overload(
    "list<int>.sum() -> int",
    "list<uint>.sum() -> uint",
    "list<double>.sum() -> double",
    "list<duration>.sum() -> duration",
)
def _sum(items: list[Any]) -> Any:
    if items and isinstance(items[0], Duration):
        return Duration(sum(item.nanos for item in items))
    if items and isinstance(items[0], Uint):
        return to_uint(sum(items))
    if items and isinstance(items[0], float):
        return sum(items)
    return to_int(sum(items))


@overload("list<A>.min() -> A")
def _min(items: list[Any]) -> Any:
    if not items:
        raise CelError("min called on empty list")
    return min(_comparable(items))


@overload("list<A>.max() -> A")
def _max(items: list[Any]) -> Any:
    if not items:
        raise CelError("max called on empty list")
    return max(_comparable(items))


@overload("list<A>.indexOf(A) -> int")
def _index_of(items: list[Any], item: Any) -> int:
    return next((index for index, other in enumerate(items) if equal(other, item)), -1)


@overload("list<A>.lastIndexOf(A) -> int")
def _last_index_of(items: list[Any], item: Any) -> int:
    return next((index for index in reversed(range(len(items))) if equal(items[index], item)), -1)


@overload("list<A>.slice(int, int) -> list<A>")
def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


@overload("list<A>.flatten() -> list<dyn>", "list<A>.flatten(int) -> list<dyn>")
def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        flat += _flatten(item, depth - 1) if depth and isinstance(item, list) else [item]
    return flat


@overload("lists.range(int) -> list<int>")
def _range(count: int) -> list[int]:
    if count > MAX_RANGE:
        raise CelError(f"range of {count} exceeds the limit of {MAX_RANGE}")
    return list(range(count))


@overload("list<A>.reverse() -> list<A>")
def _reverse(items: list[Any]) -> list[Any]:
    return items[::-1]


def sort_by(items: list[Any], keys: list[Any]) -> list[Any]:
    """Sort items by keys, as ``list.sortBy(item, key)`` does. Raises CelError if the keys have no
    order."""
    _comparable(keys)
    return [items[index] for index in sorted(range(len(items)), key=lambda index: keys[index])]


@overload("list<A>.sort() -> list<A>")
def _sort(items: list[Any]) -> list[Any]:
    return sorted(_comparable(items))


@overload("list<A>.distinct() -> list<A>")
def _distinct(items: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for item in items:
        if not any(equal(item, other) for other in kept):
            kept.append(item)
    return kept


@overload("list<A>.first() -> optional<A>")
def _first(items: list[Any]) -> OptionalValue:
    return _optional(items[:1])


@overload("list<A>.last() -> optional<A>")
def _last(items: list[Any]) -> OptionalValue:
    return _optional(items[-1:])


def _optional(items: list[Any]) -> OptionalValue:
    if items:
        return OptionalValue(items[0], has_value=True)
    return NONE


# --- sets -----------------------------------------------------------------------------------------


@overload("sets.contains(list<A>, list<A>) -> bool")
def _contains(items: list[Any], others: list[Any]) -> bool:
    return all(any(equal(other, item) for item in items) for other in others)


@overload("sets.equivalent(list<A>, list<A>) -> bool")
def _equivalent(items: list[Any], others: list[Any]) -> bool:
    return _contains(items, others) and _contains(others, items)


@overload("sets.intersects(list<A>, list<A>) -> bool")
def _intersects(items: list[Any], others: list[Any]) -> bool:
    return any(equal(item, other) for item in items for other in others)


# --- optional values ------------------------------------------------------------------------------


@overload("optional.of(A) -> optional<A>", namespace=True)
def _of(value: Any) -> OptionalValue:
    return OptionalValue(value, has_value=True)


@overload("optional.ofNonZeroValue(A) -> optional<A>", namespace=True)
def _of_non_zero(value: Any) -> OptionalValue:
    is_zero = not value or value in (Duration(0), times.ZERO)
    if is_zero:
        return NONE
    return OptionalValue(value, has_value=True)


@overload("optional.none() -> optional<A>", namespace=True)
def _none() -> OptionalValue:
    return NONE


@overload("optional<A>.hasValue() -> bool")
def _has_value(value: OptionalValue) -> bool:
    return value.has_value


@overload("optional<A>.value() -> A")
def _value(value: OptionalValue) -> Any:
    if not value.has_value:
        raise CelError("optional.none() dereference")
    return value.value


@overload("optional<A>.orValue(A) -> A")
def _or_value(value: OptionalValue, otherwise: Any) -> Any:
    if value.has_value:
        return value.value
    return otherwise


@overload("optional<A>.or(optional<A>) -> optional<A>")
def _or(value: OptionalValue, otherwise: OptionalValue) -> OptionalValue:
    if value.has_value:
        return value
    return otherwise
