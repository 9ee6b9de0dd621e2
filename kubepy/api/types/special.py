"""Errors of decoding, and the types that read their JSON themselves: times, quantities,
int-or-string, free-form JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any

from kubepy.api.clock import format_micro_time, format_time
from kubepy.api.values.goformat import format_duration, parse_duration, quote_bytes, to_json
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import quantity

# The place of a value: (outer place, key or index, name of the Go struct that has the key, or "");
# None at the root.
Where = tuple[Any, str | int, str] | None


class DecodeError(ValueError):
    """A value that cannot be decoded, in the server's words.

    ``value``, ``go_type`` and ``where`` are set if only the type of the value is wrong.
    """

    def __init__(
        self, message: str, value: Any = None, go_type: str = "", where: Where = None
    ) -> None:
        super().__init__(message)
        self.value = value
        self.go_type = go_type
        self.where = where


def mismatch(value: Any, where: Where, go_type: str, *, exactly: bool = False) -> DecodeError:
    """Return an error like
    ``json: cannot unmarshal string into Go struct field PodSpec.spec.hostPID of type bool``.

    ``exactly`` shows a number, because another number would fit.
    """
    message = (
        f"json: cannot unmarshal {_kind_of(value, exactly)} into Go {_target(where)} of "
        f"type {go_type}"
    )
    return DecodeError(message, value, go_type, where)


def _target(where: Where) -> str:
    keys: list[str] = []
    struct = ""
    while where is not None:
        outer, key, name = where
        if name:
            keys.append(str(key))
            struct = struct or name
        where = outer
    if struct:
        return f"struct field {struct}.{'.'.join(reversed(keys))}"
    return "value"


def _kind_of(value: Any, exactly: bool) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        if exactly:
            return f"number {to_json(value)}"
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    return "array"


def path_of(where: Where) -> str:
    """Return a place as strict decoding names it: ``spec.containers[0].image``."""
    parts: list[str] = []
    while where is not None:
        outer, key, _ = where
        parts.append(f"[{key}]" if isinstance(key, int) else f".{key}")
        where = outer
    return "".join(reversed(parts)).lstrip(".")


# --- types with an UnmarshalJSON of their own -----------------------------------------------------


INT32_MIN = -(2**31)
INT32_MAX = 2**31 - 1


def _time(value: Any, where: Where, state: list[str]) -> str | None:
    if value is None:
        return None
    return decode_time(_text(value, where))


def _micro_time(value: Any, where: Where, state: list[str]) -> str | None:
    if value is None:
        return None
    return decode_micro_time(_text(value, where))


def _text(value: Any, where: Where) -> str:
    if type(value) is not str:
        raise mismatch(value, where, "string")
    return value


def _quantity(value: Any, where: Where, state: list[str]) -> str:
    if value is None:
        return "0"
    if isinstance(value, bool | dict | list):
        raise DecodeError(quantity.FORMAT_WRONG)
    try:  # the JSON decoder accepts white space around a quantity, the parser does not
        return str(quantity.Quantity.parse(value.strip() if isinstance(value, str) else value))
    except quantity.QuantityError as error:
        raise DecodeError(str(error)) from None


def _int_or_string(value: Any, where: Where, state: list[str]) -> int | str:
    if type(value) is str or (type(value) is int and INT32_MIN <= value <= INT32_MAX):
        return value
    if value is None:
        return 0
    if type(value) is float and value.is_integer() and INT32_MIN <= value <= INT32_MAX:
        return int(value)
    raise mismatch(value, where, "int32", exactly=True)


def _duration(value: Any, where: Where, state: list[str]) -> str:
    try:
        return format_duration(0 if value is None else parse_duration(_text(value, where)))
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _free_form(value: Any, where: Where, state: list[str]) -> Any:
    return value


SPECIAL: dict[str, Callable[[Any, Where, list[str]], Any]] = {
    "meta/v1.Time": _time,
    "meta/v1.MicroTime": _micro_time,
    "meta/v1.Duration": _duration,
    "resource.Quantity": _quantity,
    "intstr.IntOrString": _int_or_string,
    "meta/v1.FieldsV1": _free_form,
    "runtime.RawExtension": _free_form,
    "apiextensions/v1.JSON": _free_form,
    "apiextensions/v1beta1.JSON": _free_form,
}


# --- times: metav1.Time and metav1.MicroTime ------------------------------------------------------


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
    """Return a time in whole seconds and UTC: ``2026-11-20T10:13:48Z``; None for Go's zero time.
    Raises DecodeError."""
    moment = _parse(text, RFC3339)
    if _is_zero(moment):
        return None
    return format_time(moment)


@lru_cache(maxsize=1024)
def decode_micro_time(text: str) -> str | None:
    moment = _parse(text, RFC3339_MICRO)
    if _is_zero(moment):
        return None
    return format_micro_time(moment)


def _is_zero(moment: datetime) -> bool:
    return moment == datetime(1, 1, 1, tzinfo=UTC)


def _parse(text: str, layout: _Layout) -> datetime:
    """Parse as Go's ``time.Parse``, in UTC."""
    parts: dict[str, str] = {}
    rest = text
    for name, pattern in layout:
        match = re.match(pattern, rest)
        if match is None:
            shown = "".join(part for part, _ in layout)
            raise DecodeError(
                f"parsing time {quote_bytes(text)} as {quote_bytes(shown)}: "
                f"cannot parse {quote_bytes(rest)} as {quote_bytes(name)}"
            )
        parts[name], rest = match[0], rest[match.end() :]
        low, high, unit = _RANGES.get(name, (0, 0, ""))
        if unit and not low <= int(match[0][:2]) <= high:
            raise DecodeError(f"parsing time {quote_bytes(text)}: {unit} out of range")

    if rest:
        raise DecodeError(f"parsing time {quote_bytes(text)}: extra text: {quote_bytes(rest)}")
    seconds, _, fraction = parts["05"].replace(",", ".").partition(".")
    micro = int((fraction or parts.get(".000000", "")[1:]).ljust(6, "0")[:6])
    try:
        zone = parts["Z07:00"].replace("Z", "+00:00")
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6])) * (
            -1 if zone[0] == "-" else 1
        )
        local = datetime(
            int(parts["2006"]),
            int(parts["01"]),
            int(parts["02"]),
            int(parts["15"]),
            int(parts["04"]),
            int(seconds),
            micro,
            timezone(offset),
        )
        return local.astimezone(UTC)
    except (ValueError, OverflowError):
        raise DecodeError(f"parsing time {quote_bytes(text)}: day out of range") from None


_RANGES = {
    "01": (1, 12, "month"),
    "15": (0, 23, "hour"),
    "04": (0, 59, "minute"),
    "05": (0, 59, "second"),
}
