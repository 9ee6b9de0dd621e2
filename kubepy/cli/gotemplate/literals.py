"""The constants of a template: numbers, characters and strings as Go writes them (``parse/node.go``, ``strconv``)."""

from __future__ import annotations

import math
import re

from kubepy.api.values.goformat import quote
from kubepy.cli.gotemplate.nodes import Int

_ESCAPE = re.compile(r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))|(\\)")
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def number(text: str) -> Int | float:
    """Raises ValueError with what Go's parser says."""
    plain = text.replace("_", "").lower()
    digits = plain.lstrip("+-")
    base = {"0x": 16, "0o": 8, "0b": 2}.get(digits[:2], 8 if digits[:1] == "0" and digits.isdecimal() else 10)
    try:
        if base == 16 and ("." in digits or "p" in digits):
            return float.fromhex(plain)
        whole = _integer(plain, digits, base)
    except ValueError:
        raise _wrong(text, digits) from None
    except OverflowError:
        raise ValueError(f"illegal number syntax: {quote(text)}") from None
    if isinstance(whole, float) and abs(whole) == float("inf"):
        raise ValueError(f"illegal number syntax: {quote(text)}")
    if isinstance(whole, int) and not -(2**63) <= whole < 2**64:
        raise _wrong(text, digits)
    return whole


def _wrong(text: str, digits: str) -> ValueError:
    """Go takes what is no integer for a float (08, or one that is too large), and then misses its point."""
    is_float = digits.isdecimal() and not math.isinf(float(digits))
    return ValueError(f"{'integer overflow' if is_float else 'illegal number syntax'}: {quote(text)}")


def character(source: str) -> Int:
    """Raises ValueError with what Go's parser says."""
    try:
        found = unquote(source)
    except ValueError:
        found = ""
    if len(found) != 1:
        raise ValueError(f"malformed character constant: {source}")
    return Int(ord(found))


def _integer(plain: str, digits: str, base: int) -> Int | float:
    if base == 10 and not digits.isdecimal():
        return float(plain)
    value = int(digits[2:] if digits[1:2] in tuple("xob") else digits, base)
    return Int(-value if plain.startswith("-") else value)


def unquote(source: str) -> str:
    """What a Go string or character literal stands for. Raises ValueError."""
    inner = source[1:-1]
    if source[0] == "`":
        return inner.replace("\r", "")

    def replace(found: re.Match[str]) -> str:
        if found[6] or found[1] == ('"' if source[0] == "'" else "'"):
            raise ValueError("invalid syntax")
        if found[1]:
            return _CONTROL.get(found[1], found[1])
        return chr(int(found[5], 8)) if found[5] else chr(int(found[2] or found[3] or found[4], 16))

    return _ESCAPE.sub(replace, inner)
