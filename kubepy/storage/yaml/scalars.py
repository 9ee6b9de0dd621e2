"""The values of plain scalars in go-yaml v2 (``resolve.go``): YAML 1.1 with Go's number syntax.

The emitter quotes a string that would mean something else; the loader turns a plain scalar into its
value.
"""

from __future__ import annotations

import math
import re
from calendar import monthrange

Scalar = str | int | float | bool | None

_TRUE = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
# Words that go-yaml v3 takes for text, and YAML 1.2 too.
_OLD_WORDS = frozenset((*_TRUE, *_FALSE)) - {"true", "True", "TRUE", "false", "False", "FALSE"}
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
# Only a scalar that begins with one of these can be anything but a string (go-yaml's resolveTable).
_HINT = frozenset("+-0123456789yYnNtTfFoO~.")

_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DOT_FLOAT = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[Tt ]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})?)?"
)

MAX_DIGITS = 20  # of an integer of 64 bits; Python raises ValueError for more than 4,300
INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
UINT64_MAX = 2**64 - 1


def resolve(text: str) -> Scalar:
    """Return the value of a plain scalar: None, bool, int, float, or the text itself, as for a
    timestamp."""
    if text and text[0] not in _HINT:
        return text
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    digits = text.replace("_", "")
    if first not in "+-0123456789.":
        return text
    if first != ".":
        if is_timestamp(text):
            return text
        match = _INTEGER.fullmatch(digits)
        if match is not None and (integer := _integer(match)) is not None:
            return integer

    if (_DOT_FLOAT.fullmatch(text) if first == "." else _FLOAT.fullmatch(digits)) is None:
        return text
    value = float(digits)
    return text if math.isinf(value) else value


def resolve_v3(text: str) -> Scalar:
    """Return the same in go-yaml v3, which kustomize reads with: ``yes``, ``on``, ``y`` and their
    like are text."""
    return text if text in _OLD_WORDS else resolve(text)


def is_string(text: str) -> bool:
    """Return whether a plain scalar of this text is a string, and no timestamp."""
    if text and text[0] not in _HINT:
        return True
    return isinstance(resolve(text), str) and not is_timestamp(text)


def is_timestamp(text: str) -> bool:
    """Return whether go-yaml takes the text for a timestamp (``parseTimestamp``)."""
    match = _TIMESTAMP.fullmatch(text) if text[4:5] == "-" else None
    if match is None:
        return False
    year = int(match[1])
    month = int(match[2])
    day = int(match[3])
    if not 1 <= month <= 12 or not 1 <= day <= monthrange(year or 4, month)[1]:
        return False
    if match[4] is None:
        return True
    # A time after "T" needs its zone, one after a space has none.
    if (" " in text) == (match[7] is not None):
        return False
    return int(match[4]) < 24 and int(match[5]) < 60 and int(match[6]) < 60


def _integer(match: re.Match[str]) -> int | None:
    """Return an integer as Go's ``ParseInt(text, 0, 64)`` or ``ParseUint`` takes it; None for one
    past 64 bits."""
    sign, hexadecimal, binary, octal, decimal = match.groups()
    if decimal is not None:
        if len(decimal) > MAX_DIGITS:
            return None
        value = int(decimal)
    elif hexadecimal is not None:
        value = int(hexadecimal, 16)
    else:
        value = int(binary, 2) if binary is not None else int(octal, 8)
    value = -value if sign == "-" else value
    if INT64_MIN <= value <= (INT64_MAX if sign else UINT64_MAX):
        return value
    return None


def format_float(value: float) -> str:
    """Return Go's ``strconv.FormatFloat(value, 'g', -1, 64)``: ``1.5``, ``1.2345675e+06``,
    ``1e-07``."""
    mantissa, _, power = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) + (
        len(whole) - 1 if whole != "0" else len(digits) - len(fraction) - 1
    )
    digits = (
        digits.rstrip("0") or "0"
    )  # the shortest ones; ``exponent`` is the power of ten of the first
    sign = "-" if value < 0 else ""
    if not -4 <= exponent < 6:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    if len(digits) <= exponent + 1:
        return sign + digits + "0" * (exponent + 1 - len(digits))
    return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
