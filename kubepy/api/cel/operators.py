"""The operators and conversions of the language itself (cel-go's ``common/stdlib`` and
``common/types``)."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from kubepy.api.cel import times
from kubepy.api.cel.types import overload
from kubepy.api.cel.values import (
    INT_MAX,
    INT_MIN,
    TYPE_NAMES,
    UINT_MAX,
    CelError,
    CelType,
    Duration,
    MapList,
    Record,
    SetList,
    Uint,
    equals_any,
    kind_of,
    reserved,
)
from kubepy.api.values.goformat import format_float
from kubepy.api.values.gonumbers import parse_int, parse_uint

NUMBERS = ("int", "uint", "double")


def equal(left: Any, right: Any) -> bool:
    """Compare two values: numbers of all kinds by value; values of different other kinds are
    unequal."""
    left_kind = kind_of(left)
    right_kind = kind_of(right)
    if left_kind in NUMBERS and right_kind in NUMBERS:
        return bool(left == right)
    if left_kind != right_kind:
        return False
    if isinstance(left, SetList | MapList):
        return len(left) == len(right) and all(
            any(equal(item, other) for other in right) for item in left
        )

    if isinstance(left, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    return bool(left == right)


@overload("_==_(A, A) -> bool")
def _equal(left: Any, right: Any) -> bool:
    return equal(left, right)


@overload("_!=_(A, A) -> bool")
def _unequal(left: Any, right: Any) -> bool:
    return not equal(left, right)


@overload("@in(A, list<A>) -> bool", "@member(A, list<A>) -> bool")
def _in_list(item: Any, items: list[Any]) -> bool:
    return any(equal(item, other) for other in items)


@overload("@in(A, map<A, B>) -> bool")
def _in_map(key: Any, entries: dict[Any, Any]) -> bool:
    return key in entries


def _compared(name: str, compare: Callable[[Any, Any], bool]) -> None:
    same = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
    pairs = [(kind, kind) for kind in same]
    pairs += [(left, right) for left in NUMBERS for right in NUMBERS if left != right]
    overload(*(f"_{name}_({left}, {right}) -> bool" for left, right in pairs))(compare)


_compared("<", lambda left, right: left < right)
_compared("<=", lambda left, right: left <= right)
_compared(">", lambda left, right: left > right)
_compared(">=", lambda left, right: left >= right)


# --- arithmetic -----------------------------------------------------------------------------------


def to_int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise CelError("integer overflow")
    return value


def to_uint(value: int) -> Uint:
    if not 0 <= value <= UINT_MAX:
        raise CelError("unsigned integer overflow")
    return Uint(value)


def _whole(name: str, compute: Callable[[int, int], int]) -> None:
    overload(f"_{name}_(int, int) -> int")(lambda left, right: to_int(compute(left, right)))
    overload(f"_{name}_(uint, uint) -> uint")(
        lambda left, right: to_uint(compute(int(left), int(right)))
    )


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise CelError("division by zero")
    quotient = abs(left) // abs(right)
    if (left < 0) == (right < 0):
        return quotient
    return -quotient


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise CelError("modulus by zero")
    return left - right * _quotient(left, right)


_whole("+", lambda left, right: left + right)
_whole("-", lambda left, right: left - right)
_whole("*", lambda left, right: left * right)
_whole("/", _quotient)
_whole("%", _remainder)


@overload(
    "_+_(double, double) -> double", "_+_(string, string) -> string", "_+_(bytes, bytes) -> bytes"
)
def _plus(left: Any, right: Any) -> Any:
    return left + right


@overload("_+_(list<A>, list<A>) -> list<A>")
def _plus_list(left: list[Any], right: list[Any]) -> list[Any]:
    """Concatenate lists, unite sets; in maps items of the right side replace those with the same
    keys."""
    if isinstance(left, SetList):
        return SetList([*left, *(item for item in right if not equals_any(item, left))])
    if isinstance(left, MapList):
        merged = {left.key_of(item): item for item in left} | {
            left.key_of(item): item for item in right
        }
        united = MapList(merged.values())
        united.keys = left.keys
        return united
    return [*left, *right]


@overload("_-_(double, double) -> double")
def _minus(left: float, right: float) -> float:
    return left - right


@overload("_*_(double, double) -> double")
def _times(left: float, right: float) -> float:
    return left * right


@overload("_/_(double, double) -> double")
def _over(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left)


@overload("-_(int) -> int")
def _negated(value: int) -> int:
    return to_int(-value)


@overload("-_(double) -> double")
def _negated_double(value: float) -> float:
    return -value


@overload("!_(bool) -> bool")
def _not(value: bool) -> bool:
    return not value


@overload("_+_(timestamp, duration) -> timestamp")
def _later(time: datetime, by: Duration) -> datetime:
    return times.shifted(time, by.nanos)


@overload("_+_(duration, timestamp) -> timestamp")
def _after(by: Duration, time: datetime) -> datetime:
    return times.shifted(time, by.nanos)


@overload("_-_(timestamp, duration) -> timestamp")
def _earlier(time: datetime, by: Duration) -> datetime:
    return times.shifted(time, -by.nanos)


@overload("_-_(timestamp, timestamp) -> duration")
def _between(left: datetime, right: datetime) -> Duration:
    return Duration(to_int((left - right) // timedelta(microseconds=1) * 1000))


@overload("_+_(duration, duration) -> duration")
def _together(left: Duration, right: Duration) -> Duration:
    return Duration(to_int(left.nanos + right.nanos))


@overload("_-_(duration, duration) -> duration")
def _shorter(left: Duration, right: Duration) -> Duration:
    return Duration(to_int(left.nanos - right.nanos))


# --- parts ----------------------------------------------------------------------------------------


@overload("_[_](list<A>, int) -> A")
def _item(items: list[Any], index: int) -> Any:
    if not 0 <= index < len(items):
        raise CelError(f"index out of bounds: {index}")
    return items[index]


@overload("_[_](map<A, B>, A) -> B")
def _entry(entries: dict[Any, Any], key: Any) -> Any:
    if key not in entries:
        raise CelError(f"no such key: {key}")
    return entries[key]


@overload(
    "size(string) -> int",
    "size(bytes) -> int",
    "size(list<A>) -> int",
    "size(map<A, B>) -> int",
    "string.size() -> int",
    "bytes.size() -> int",
    "list<A>.size() -> int",
    "map<A, B>.size() -> int",
)
def _size(value: Any) -> int:
    return len(value)


# --- conversions ----------------------------------------------------------------------------------


@overload("dyn(A) -> dyn")
def _dyn(value: Any) -> Any:
    return value


@overload("type(A) -> type")
def _type(value: Any) -> CelType:
    kind = kind_of(value)
    return CelType(TYPE_NAMES.get(kind, kind))


@overload("bool(bool) -> bool", "bool(string) -> bool")
def _bool(value: Any) -> bool:
    if value in ("1", "t", "true", "TRUE", "True", True):
        return True
    if value in ("0", "f", "false", "FALSE", "False", False):
        return False
    raise CelError("type conversion error from 'string' to 'bool'")


@overload(
    "int(int) -> int",
    "int(uint) -> int",
    "int(double) -> int",
    "int(string) -> int",
    "int(timestamp) -> int",
    "int(duration) -> int",
)
def _int(value: Any) -> int:
    if isinstance(value, datetime):
        return int((value - times.EPOCH).total_seconds())
    if isinstance(value, Duration):
        return value.nanos
    if isinstance(value, float) and not INT_MIN < value < INT_MAX:
        raise CelError("integer overflow")
    return to_int(_number(parse_int, value, "int"))


@overload("uint(uint) -> uint", "uint(int) -> uint", "uint(double) -> uint", "uint(string) -> uint")
def _uint(value: Any) -> Uint:
    if isinstance(value, float) and not 0 <= value < UINT_MAX:
        raise CelError("unsigned integer overflow")
    return to_uint(_number(parse_uint, value, "uint"))


@overload(
    "double(double) -> double",
    "double(int) -> double",
    "double(uint) -> double",
    "double(string) -> double",
)
def _double(value: Any) -> float:
    return float(_number(_parse_float, value, "double"))


def _parse_float(text: str) -> float:
    """Read a double as ``strconv.ParseFloat`` does. Raises ValueError, also if it is too large."""
    value = float(text)
    if text.strip() != text or "_" in text or (math.isinf(value) and "inf" not in text.lower()):
        raise ValueError(text)
    return value


def _number(parse: Callable[[str], Any], value: Any, kind: str) -> Any:
    if not isinstance(value, str):
        if kind != "double":
            return int(value)
        return float(value)
    try:
        return parse(value)
    except ValueError:
        raise CelError(f"type conversion error from 'string' to '{kind}'") from None


@overload(
    "string(string) -> string",
    "string(bool) -> string",
    "string(int) -> string",
    "string(uint) -> string",
    "string(double) -> string",
    "string(bytes) -> string",
    "string(timestamp) -> string",
    "string(duration) -> string",
)
def to_string(value: Any) -> str:
    if isinstance(value, bool):
        if value:
            return "true"
        return "false"

    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None

    if isinstance(value, datetime):
        return times.format_timestamp(value)
    if isinstance(value, Duration):
        return times.format_seconds(value.nanos)
    return str(value)


@overload("bytes(bytes) -> bytes", "bytes(string) -> bytes")
def _bytes(value: str | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    return value.encode()


@overload(
    "timestamp(timestamp) -> timestamp",
    "timestamp(string) -> timestamp",
    "timestamp(int) -> timestamp",
)
def _timestamp(value: Any) -> datetime:
    if isinstance(value, int):
        return times.shifted(times.EPOCH, value * 10**9)
    if isinstance(value, datetime):
        return value
    return times.parse_timestamp(value)


@overload(
    "duration(duration) -> duration", "duration(string) -> duration", "duration(int) -> duration"
)
def _duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, int):
        return Duration(value)
    return times.parse_duration(value)


def field_of(value: Any, name: str) -> Any:
    """Return ``value.name``. Raises CelError."""
    if not isinstance(value, dict):
        raise CelError("no such overload")
    spelled = _spelled(value, name)
    if spelled not in value:
        raise CelError(f"no such key: {name}")
    return value[spelled]


def has_field(value: Any, name: str) -> bool:
    """Return ``has(value.name)``. Raises CelError if the value has no fields."""
    if not isinstance(value, dict):
        raise CelError("no such overload")
    return _spelled(value, name) in value


def _spelled(value: dict[str, Any], name: str) -> str:
    """Return the key of a field; records spell names that are reserved words of CEL in another
    way."""
    if isinstance(value, Record) and reserved(name) in value:
        return reserved(name)
    return name


__all__ = ["Record", "equal", "field_of", "has_field", "to_int", "to_string", "to_uint"]
