"""Times and durations of expressions (cel-go's ``common/types/{timestamp,duration}.go``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from kubepy.api.cel.types import overload
from kubepy.api.cel.values import INT_MAX, INT_MIN, CelError, Duration
from kubepy.quoting import printable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZERO = datetime(1, 1, 1, tzinfo=UTC)
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
# Digits: more than 64 bits hold, and more than one needs for nanoseconds as a part of an hour.
LONGEST_WHOLE = 20
LONGEST_FRACTION = 18
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_RFC3339 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?([Zz]|[+-]\d{2}:\d{2})"
)
_OFFSET = re.compile(r"([+-]?)(\d{2}):(\d{2})")


def parse_timestamp(text: str) -> datetime:
    """Read a time of RFC 3339. Raises CelError."""
    match = _RFC3339.fullmatch(text)
    try:
        if match is None:
            raise ValueError(text)
        micros = int((match[7] or "0").ljust(6, "0")[:6])
        zone = UTC if match[8] in "Zz" else _fixed(match[8])
        year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
        return datetime(year, month, day, hour, minute, second, micros, zone)
    except ValueError:
        raise CelError(
            "type conversion error from 'string' to 'google.protobuf.Timestamp'"
        ) from None


def format_timestamp(time: datetime) -> str:
    """Format a time in the zone of its text."""
    text = time.replace(tzinfo=None, microsecond=0).isoformat()
    zone = time.strftime("%z")
    fraction = f".{time.microsecond:06d}".rstrip("0") if time.microsecond else ""
    return f"{text}{fraction}{'Z' if zone == '+0000' else f'{zone[:3]}:{zone[3:]}'}"


def parse_duration(text: str) -> Duration:
    """Read a duration such as ``1h30m``. Raises CelError."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in "+-" else text
    total = 0
    at = 0
    while part := _PART.match(rest, at):
        whole, _, fraction = part[1].partition(".")
        unit = _UNITS[part[2]]
        if len(whole.lstrip("0")) > LONGEST_WHOLE:
            raise CelError("duration out of range")
        fraction = fraction[:LONGEST_FRACTION]
        total += int(whole.lstrip("0") or 0) * unit + int(fraction or 0) * unit // 10 ** len(
            fraction
        )
        at = part.end()

    if (at < len(rest) or not rest) and rest != "0":
        raise CelError("type conversion error from 'string' to 'google.protobuf.Duration'")
    if not INT_MIN <= total <= INT_MAX:
        raise CelError("duration out of range")
    return Duration(sign * total)


def format_seconds(nanos: int) -> str:
    """Format a duration in seconds, as ``string(duration)`` does."""
    whole, part = divmod(abs(nanos), 10**9)
    fraction = f".{part:09d}".rstrip("0") if part else ""
    return f"{'-' if nanos < 0 else ''}{whole}{fraction}s"


def shifted(time: datetime, nanos: int) -> datetime:
    try:
        return time + timedelta(microseconds=nanos // 1000)
    except OverflowError:
        raise CelError("timestamp overflow") from None


def _fixed(offset: str) -> timezone:
    match = _OFFSET.fullmatch(offset)
    if match is None:
        raise CelError(printable(f"unknown time zone {offset}"))
    minutes = int(match[2]) * 60 + int(match[3])
    return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))


def _in_zone(time: datetime, zone: str) -> datetime:
    if zone in ("", "UTC"):
        return time.astimezone(UTC)
    if _OFFSET.fullmatch(zone):
        return time.astimezone(_fixed(zone))
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return time.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError):
        raise CelError(printable(f"unknown time zone {zone}")) from None


def _getter(name: str, get: Callable[[datetime], int]) -> None:
    def run(time: datetime, zone: str = "UTC") -> int:
        return get(_in_zone(time, zone))

    overload(f"timestamp.{name}() -> int", f"timestamp.{name}(string) -> int")(run)


_getter("getFullYear", lambda time: time.year)
_getter("getMonth", lambda time: time.month - 1)
_getter("getDayOfMonth", lambda time: time.day - 1)
_getter("getDate", lambda time: time.day)
_getter("getDayOfWeek", lambda time: time.isoweekday() % 7)
_getter("getDayOfYear", lambda time: time.timetuple().tm_yday - 1)
_getter("getHours", lambda time: time.hour)
_getter("getMinutes", lambda time: time.minute)
_getter("getSeconds", lambda time: time.second)
_getter("getMilliseconds", lambda time: time.microsecond // 1000)


def _of_duration(name: str, get: Callable[[int], int]) -> None:
    overload(f"duration.{name}() -> int")(lambda duration: get(duration.nanos))


def _truncated(nanos: int, unit: int) -> int:
    return int(abs(nanos) // unit * (-1 if nanos < 0 else 1))


_of_duration("getHours", lambda nanos: _truncated(nanos, _UNITS["h"]))
_of_duration("getMinutes", lambda nanos: _truncated(nanos, _UNITS["m"]))
_of_duration("getSeconds", lambda nanos: _truncated(nanos, _UNITS["s"]))
_of_duration("getMilliseconds", lambda nanos: _truncated(nanos, _UNITS["ms"]))

__all__: list[Any] = [
    "EPOCH",
    "format_seconds",
    "format_timestamp",
    "parse_duration",
    "parse_timestamp",
    "shifted",
]
