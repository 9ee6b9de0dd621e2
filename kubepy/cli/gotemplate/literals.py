"""Parse numbers, characters and strings as Go writes them (``parse/node.go``, ``strconv``)."""

from __future__ import annotations

import math
import re

from kubepy.api.values.goformat import quote
from kubepy.cli.gotemplate.nodes import Int

_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))|(\\)"
)
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def number(text: str) -> Int | float:
    """Parse a number. Raises ValueError with the message of Go's parser."""
    plain = text.replace("_", "").lower()
    digits = plain.lstrip("+-")
    base = {"0x": 16, "0o": 8, "0b": 2}.get(
        digits[:2], 8 if digits[:1] == "0" and digits.isdecimal() else 10
    )
    value: Int | float
    try:
        if base == 16 and ("." in digits or "p" in digits):
            return float.fromhex(plain)
        if base == 10 and not digits.isdecimal():
            value = float(plain)
        else:
            magnitude = int(digits[2:] if digits[1:2] in tuple("xob") else digits, base)
            value = Int(-magnitude if plain.startswith("-") else magnitude)
    except ValueError:
        raise _number_error(text, digits) from None
    except OverflowError:
        raise ValueError(f"illegal number syntax: {quote(text)}") from None

    if isinstance(value, float) and abs(value) == float("inf"):
        raise ValueError(f"illegal number syntax: {quote(text)}")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise _number_error(text, digits)
    return value


def _number_error(text: str, digits: str) -> ValueError:
    """Return Go's error: it takes an invalid integer (08, or a large one) for a float without its
    point."""
    is_float = digits.isdecimal() and not math.isinf(float(digits))
    return ValueError(
        f"{'integer overflow' if is_float else 'illegal number syntax'}: {quote(text)}"
    )


def character(source: str) -> Int:
    """Parse a character constant. Raises ValueError with the message of Go's parser."""
    try:
        text = unquote(source)
    except ValueError:
        text = ""
    if len(text) != 1:
        raise ValueError(f"malformed character constant: {source}")
    return Int(ord(text))


def unquote(source: str) -> str:
    """Parse a Go string or character literal. Raises ValueError."""
    inner = source[1:-1]
    if source[0] == "`":
        return inner.replace("\r", "")

    def replace(match: re.Match[str]) -> str:
        if match[6] or match[1] == ('"' if source[0] == "'" else "'"):
            raise ValueError("invalid syntax")
        if match[1]:
            return _CONTROL.get(match[1], match[1])
        if match[5]:
            return chr(int(match[5], 8))
        return chr(int(match[2] or match[3] or match[4], 16))

    return _ESCAPE.sub(replace, inner)
