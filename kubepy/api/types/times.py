"""Times as ``metav1.Time`` and ``metav1.MicroTime`` read and write them; what is no time is told as Go's does."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from kubepy.api.clock import format_micro_time, format_time
from kubepy.api.types.errors import DecodeError
from kubepy.api.values.goformat import quote_bytes

_DATE = (("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T"))
_CLOCK = (("15", r"\d\d?"), (":", ":"), ("04", r"\d\d"), (":", ":"))
_ZONE = ("Z07:00", r"Z|[+-]\d\d:\d\d")
_SECONDS = (("05", r"\d\d(?:[.,]\d+)?"), _ZONE)
_MICROSECONDS = (("05", r"\d\d"), (".000000", r"[.,]\d{6}"), _ZONE)

_Layout = tuple[tuple[str, str], ...]
RFC3339: _Layout = (*_DATE, *_CLOCK, *_SECONDS)
RFC3339_MICRO: _Layout = (*_DATE, *_CLOCK, *_MICROSECONDS)


@lru_cache(maxsize=4096)
def decode_time(text: str) -> str | None:
    """Whole seconds in UTC: ``2026-11-20T10:13:48Z``; None for Go's zero time. Raises DecodeError."""
    moment = _parse(text, RFC3339)
    return None if _is_zero(moment) else format_time(moment)


@lru_cache(maxsize=1024)
def decode_micro_time(text: str) -> str | None:
    moment = _parse(text, RFC3339_MICRO)
    return None if _is_zero(moment) else format_micro_time(moment)


def _is_zero(moment: datetime) -> bool:
    return moment == datetime(1, 1, 1, tzinfo=UTC)


def _parse(text: str, layout: _Layout) -> datetime:
    """Go's ``time.Parse``, in UTC."""
    found: dict[str, str] = {}
    rest = text
    for name, pattern in layout:
        match = re.match(pattern, rest)
        if match is None:
            shown = "".join(part for part, _ in layout)
            raise DecodeError(f"parsing time {quote_bytes(text)} as {quote_bytes(shown)}: "
                              f"cannot parse {quote_bytes(rest)} as {quote_bytes(name)}")
        found[name], rest = match[0], rest[match.end() :]
        _check_range(name, match[0], text)
    if rest:
        raise DecodeError(f"parsing time {quote_bytes(text)}: extra text: {quote_bytes(rest)}")
    return _moment(found, text)


_RANGES = {"01": (1, 12, "month"), "15": (0, 23, "hour"), "04": (0, 59, "minute"), "05": (0, 59, "second")}


def _check_range(name: str, digits: str, text: str) -> None:
    low, high, what = _RANGES.get(name, (0, 0, ""))
    if what and not low <= int(digits[:2]) <= high:
        raise DecodeError(f"parsing time {quote_bytes(text)}: {what} out of range")


def _moment(found: dict[str, str], text: str) -> datetime:
    seconds, _, fraction = found["05"].replace(",", ".").partition(".")
    micro = int((fraction or found.get(".000000", "")[1:]).ljust(6, "0")[:6])
    try:
        local = datetime(int(found["2006"]), int(found["01"]), int(found["02"]), int(found["15"]), int(found["04"]),
                         int(seconds), micro, _zone(found["Z07:00"]))
        return local.astimezone(UTC)
    except (ValueError, OverflowError):
        raise DecodeError(f"parsing time {quote_bytes(text)}: day out of range") from None


def _zone(text: str) -> timezone:
    if text == "Z":
        return UTC
    sign = -1 if text[0] == "-" else 1
    return timezone(sign * timedelta(hours=int(text[1:3]), minutes=int(text[4:6])))
