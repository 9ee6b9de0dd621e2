"""Values as Go prints them in messages and columns: ``%v``, ``%#v``, ``%q``, ``%#U``, ``%T`` and
``encoding/json``.

Values are those of parsed JSON: None, bool, int (Go's int64), float (float64), str, list and dict.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from kubepy.quoting import printable as printable
from kubepy.quoting import quote as quote
from kubepy.storage.frozen import plain_type

if TYPE_CHECKING:
    from datetime import timedelta

_FRACTION = re.compile(
    r"(?:^|[\[,:])-?\d+[.eE]"
)  # matches in every JSON text without blanks that has a float
_TYPE_NAMES: dict[type, str] = {
    type(None): "<nil>",
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}
UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_PART = r"([0-9]+\.?[0-9]*|\.[0-9]+)([^0-9.]+)"  # of a duration
_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
MAX_DURATION = (2**63 - 1) / 1e9  # seconds: Go's durations are nanoseconds of 64 bits


class Ordered(dict[str, Any]):
    """A map whose keys, and those of all maps in it, are in the order in which Go prints them: a
    struct's fields."""


def in_go_order(value: Any) -> Any:
    """Return a value with the keys of its maps sorted, as Go prints maps; Ordered maps stay as they
    are."""
    if isinstance(value, dict):
        if isinstance(value, Ordered):
            return value
        return {key: in_go_order(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [in_go_order(item) for item in value]
    return value


def type_name(value: Any) -> str:
    """Return the Go type of a value from unstructured JSON (``%T``)."""
    return _TYPE_NAMES[plain_type(value)]


def json_type_name(value: Any) -> str:
    """Return the name of a value's type in errors of Go's JSON decoder: bool, number, string,
    array, object or null."""
    if isinstance(value, bool):
        return "bool"
    names = {str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return names.get(plain_type(value), "null")


def format_value(value: Any) -> str:
    """Format a value (``%v``): ``map[a:1 b:[x y]]``, ``<nil>``, strings as they are."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        if value:
            return "true"
        return "false"

    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{format_value(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(format_value, value)) + "]"
    if isinstance(value, float):
        return format_float(value)
    return str(value)


def format_float(value: float) -> str:
    """Format a float64 (``%v``): the shortest digits, with an exponent below 1e-4 and from 1e6."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"inf": "+Inf", "-inf": "-Inf"}.get(str(value), "NaN")
    size = abs(value)
    if size and (size < 1e-4 or size >= 1e6):
        return _with_exponent(value)
    return _without_exponent(value)


def parse_bool(text: str) -> bool:
    """Read a truth value as ``strconv.ParseBool``. Raises ValueError."""
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise ValueError(f"strconv.ParseBool: parsing {quote(text)}: invalid syntax")


def format_duration(seconds: float) -> str:
    """Format a time.Duration (``%v``): ``300ms``, ``1.5s``, ``1m30s``, ``1h0m0s``."""
    sign = "-" if seconds < 0 else ""
    nanos = abs(round(seconds * 1e9))
    for unit, size in (("ns", 1), ("µs", 1000), ("ms", 1_000_000)):
        if 0 < nanos < 1000 * size:
            return f"{sign}{_quotient(nanos, size)}{unit}"
    minutes, rest = divmod(nanos, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    larger = ""
    if hours:
        larger = f"{hours}h{minutes}m"
    elif minutes:
        larger = f"{minutes}m"
    return f"{sign}{larger}{_quotient(rest, 1_000_000_000)}s"


def parse_duration(text: str) -> float:
    """Read ``1.5s``, ``2m``, ``1h30m``, ``0`` as ``time.ParseDuration``; returns seconds."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return 0.0
    total = 0.0
    rest = unsigned
    while rest:
        number = re.match(r"(\d+\.?\d*|\.\d+)", rest)
        if not number:
            break
        unit = re.match(r"[^0-9.]*", rest[number.end() :])
        word = unit[0] if unit else ""
        if not word:
            raise ValueError(f"time: missing unit in duration {quote_bytes(text)}")
        if word not in UNITS:
            raise ValueError(
                f"time: unknown unit {quote_bytes(word)} in duration {quote_bytes(text)}"
            )
        total += float(number[0]) * UNITS[word]
        rest = rest[number.end() + len(word) :]

    if rest or not unsigned or total > MAX_DURATION:
        raise ValueError(f"time: invalid duration {quote_bytes(text)}")
    if text.startswith("-"):
        return -total
    return total


def parse_span(text: str) -> float:
    """Read a duration that may begin with days (``7d``, ``1d12h``), in seconds.

    Raises ValueError, also for parts of a microsecond, which no clock has.
    """
    from decimal import Decimal  # a millisecond that most commands do not need

    with_days = re.fullmatch(r"([+-]?)([0-9]+(?:\.[0-9]+)?)d(.*)", text, re.DOTALL)
    if with_days is None:
        seconds = parse_duration(text)
    else:
        sign, days, rest = with_days.groups()
        seconds = float(days) * 24 * UNITS["h"] + (parse_duration(rest) if rest else 0.0)
        seconds = -seconds if sign == "-" else seconds
    if sum(Decimal(number) * _NANOSECONDS[unit] for number, unit in re.findall(_PART, text)) % 1000:
        raise ValueError(f"the duration {quote(text)} is too exact: time goes by microseconds")
    return seconds


def seconds_of(duration: timedelta | str | float) -> float:
    """Return a length of time in seconds: a timedelta, a text such as ``"30m"``, or a number of
    them. Raises ValueError for one that cannot be read, or is negative."""
    if isinstance(duration, str):
        seconds = parse_span(duration)
    elif isinstance(duration, int | float):
        seconds = float(duration)
    else:
        seconds = duration.total_seconds()
    if not seconds >= 0:
        raise ValueError(f"a length of time must not be negative: {duration}")
    return seconds


def _quotient(nanos: int, size: int) -> str:
    """Return ``nanos / size`` without trailing zeros."""
    whole, rest = divmod(nanos, size)
    fraction = f"{rest:0{len(str(size)) - 1}d}".rstrip("0") if rest else ""
    if fraction:
        return f"{whole}.{fraction}"
    return str(whole)


def _with_exponent(value: float) -> str:
    """Return the shortest digits as ``d.ddde±dd``."""
    sign, digits, point = _digits(value)
    exponent = point - 1
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _without_exponent(value: float) -> str:
    sign, digits, point = _digits(value)
    if point <= 0:
        if digits != "0":
            return f"{sign}0.{'0' * -point}{digits}"
        return f"{sign}0"
    whole = digits[:point].ljust(point, "0")
    fraction = digits[point:]
    if fraction:
        return f"{sign}{whole}.{fraction}"
    return sign + whole


def _digits(value: float) -> tuple[str, str, int]:
    """Return sign, shortest significant digits, and the power of ten by which 0.<digits> is to be
    multiplied."""
    if value == 0:
        return ("-" if str(value).startswith("-") else ""), "0", 1
    mantissa, _, exponent = repr(value).partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    lost = len(whole + fraction) - len(digits)
    return sign, digits.rstrip("0"), len(whole) - lost + int(exponent or 0)


def quote_bytes(text: str) -> str:
    """Quote a text as Go's package ``time`` does: non-ASCII and control characters as their
    bytes."""

    def shown(character: str) -> str:
        if " " <= character < "\x7f":
            if character in '"\\':
                return f"\\{character}"
            return character
        return "".join(f"\\x{byte:02x}" for byte in character.encode(errors="surrogateescape"))

    return '"' + "".join(map(shown, text)) + '"'


def code_point(character: str) -> str:
    """Format a character (``%#U``): ``U+0041 'A'``, ``U+0009``."""
    return f"U+{ord(character):04X}" + (f" '{character}'" if character.isprintable() else "")


def go_syntax(value: Any) -> str:
    """Format a value in Go's syntax (``%#v``): ``map[string]interface {}{"a":1}``."""
    if isinstance(value, dict):
        entries = ", ".join(f"{quote(key)}:{go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{entries}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(go_syntax, value))}}}"
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, str):
        return quote(value)
    return format_value(value)


def to_json(value: Any, indent: int = 0, *, sort_keys: bool = True, depth: int = 0) -> str:
    """Format a value as ``json.Marshal`` does: keys sorted, no blanks, ``<``, ``>`` and ``&``
    escaped.

    ``indent``: as ``json.MarshalIndent``, of a value so many levels deep in a document. Without
    ``sort_keys`` keys stay in their order, as the fields of a struct.
    """
    text = _ENCODERS[sort_keys](value)
    if indent or _FRACTION.search(text):
        text = _laid_out(text, layout_of(indent, depth))
    for character in "<>&\u2028\u2029":
        if character in text:
            text = text.replace(character, f"\\u{ord(character):04x}")
    return text


_ENCODERS = tuple(
    json.JSONEncoder(ensure_ascii=False, sort_keys=sort_keys, separators=(",", ":")).encode
    for sort_keys in (False, True)
)
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"')  # in a JSON text
_TOKEN = re.compile(r"\{\}|\[\]|[{}\[\],:]|[^{}\[\],:]+")  # between two strings of a JSON text
_MAX_PIECES = 5_000
_MAX_WHOLES = 100


class JSONLayout(dict[str, tuple[str, "JSONLayout"]]):
    """The pieces of JSON text between two strings, at one depth: each as it is written, and the
    layout after it.

    There are few different ones in many objects, so each is worked out once: Python's own encoder
    is fast without line breaks only.

    :param indent: blanks a level, 0 for a text on one line.
    """

    def __init__(self, indent: int, depth: int) -> None:
        self._indent = indent
        self._depth = depth
        self.wholes: dict[
            tuple[str, ...], list[str]
        ] = {}  # all pieces of a text, as they are written

    def __missing__(self, piece: str) -> tuple[str, JSONLayout]:
        text = ""
        depth = self._depth
        for token in _TOKEN.findall(piece):
            if token[-1].isdigit():
                text += token if token.lstrip("-").isdigit() else _json_float(float(token))
                continue
            depth += (token in ("{", "[")) - (token in ("}", "]"))
            line = "\n" + " " * (self._indent * depth) if self._indent else ""
            if token in ("}", "]"):
                text += line + token
            elif token in ("{", "[", ","):
                text += token + line
            else:
                text += ": " if self._indent and token == ":" else token

        if len(self) >= _MAX_PIECES:  # numbers are parts of them
            self.clear()
        self[piece] = laid_out = text, layout_of(self._indent, depth)
        return laid_out


@cache
def layout_of(indent: int, depth: int) -> JSONLayout:
    """Return the only layout of a depth."""
    return JSONLayout(indent, depth)


def _laid_out(text: str, layout: JSONLayout) -> str:
    """Return a JSON text without blanks with the line breaks of a layout, and its floats as Go
    writes them."""
    parts = _STRING.split(text) if "\\" in text else text.split('"')  # every second is a string
    structure = tuple(parts[::2])
    wholes = layout.wholes
    pieces = wholes.get(structure)
    if pieces is None:
        pieces = []
        for piece in structure:
            written, layout = layout[piece]
            pieces.append(written)
        if len(wholes) >= _MAX_WHOLES:
            wholes.clear()
        wholes[structure] = pieces  # complete by now: other threads see it
    parts[::2] = pieces
    return '"'.join(parts)


def _json_float(value: float) -> str:
    """Format a float64 as ``encoding/json``: with an exponent below 1e-6 and from 1e21, without its
    leading zero."""
    size = abs(value)
    if size and (size < 1e-6 or size >= 1e21):
        return re.sub(r"e-0(\d)$", r"e-\1", _with_exponent(value))
    return _without_exponent(value)
