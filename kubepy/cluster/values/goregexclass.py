"""Characters and classes of characters in Go's regular expressions."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable
from functools import cache

_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\\x00-\\x7f", "blank": "\\t ", "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@\\[-`{-~", "space": "\\t-\\r ",
    "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CATEGORIES = ("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf",
               "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co")  # fmt: skip
# Escapes of classes as the inside of one. Go's white space is without the vertical tab.
CLASS_ESCAPES = {
    "d": "0-9", "w": "0-9A-Za-z_", "s": "\\t\\n\\f\\r ",
    "D": "\\x00-/:-\\U0010ffff", "W": "\\x00-/:-@\\[-\\^`{-\\U0010ffff",
    "S": "\\x00-\\x08\\x0b\\x0e-\\x1f!-\\U0010ffff",
}  # fmt: skip
_OCTAL = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})")
_HEXADECIMAL = re.compile(r"\\x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))")


class GoRegexError(ValueError):
    """A pattern that Go's ``regexp`` does not compile: why, and the part of it that is wrong."""

    def __init__(self, why: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {why}: `{part}`")


class Reader:
    """A pattern and what is left of it."""

    def __init__(self, pattern: str) -> None:
        self.pattern = self.rest = pattern

    def skip(self, count: int) -> None:
        self.rest = self.rest[count:]

    def take(self, text: str) -> bool:
        """Whether the text is next; then it has been read."""
        if not self.rest.startswith(text):
            return False
        self.skip(len(text))
        return True

    def character(self) -> str:
        found = self.rest[0]
        self.skip(1)
        return found


def escaped(one: str) -> str:
    """A character that means itself, in a class and outside."""
    return one if one.isalnum() or one == "_" or ord(one) > 127 else f"\\x{ord(one):02x}"


def character(reader: Reader, whole_class: str) -> str:
    """The next character, escaped or not. ``whole_class`` is the class it is in, "" for none."""
    if not reader.rest:
        raise GoRegexError("missing closing ]", whole_class)
    if reader.rest[0] != "\\":
        return reader.character()
    if reader.rest == "\\":
        raise GoRegexError("trailing backslash at end of expression", "")
    if found := _OCTAL.match(reader.rest):
        reader.skip(found.end())
        return chr(int(found[1], 8))
    if found := _HEXADECIMAL.match(reader.rest):
        return _hexadecimal(reader, found)
    return _plain_escape(reader)


def _hexadecimal(reader: Reader, found: re.Match[str]) -> str:
    code = int(found[1] or found[2], 16)
    if code > sys.maxunicode:
        raise GoRegexError("invalid escape sequence", found[0])
    reader.skip(found.end())
    return chr(code)


def _plain_escape(reader: Reader) -> str:
    one = reader.rest[1]
    if one not in _CONTROLS and (one.isalnum() or ord(one) > 127):
        raise GoRegexError("invalid escape sequence", reader.rest[:2])
    reader.skip(2)
    return _CONTROLS.get(one, one)


def named_class(reader: Reader) -> str | None:
    """``[:alpha:]`` as the inside of a class, None if none is next."""
    name, closing, rest = reader.rest[2:].partition(":]")
    if not reader.rest.startswith("[:") or not closing:
        return None
    if name.removeprefix("^") not in _POSIX:
        raise GoRegexError("invalid character class range", f"[:{name}:]")
    reader.rest = rest
    if name.startswith("^"):
        return _ranges_of(lambda one: re.match(f"[{_POSIX[name[1:]]}]", one) is None)
    return _POSIX[name]


def category(reader: Reader) -> str:
    """``\\p{L}``, ``\\pL`` or ``\\P…`` as the inside of a class."""
    before, negated = reader.rest, reader.rest[1] == "P"
    reader.skip(2)
    if reader.take("{"):
        name, _, reader.rest = reader.rest.partition("}")
    else:
        name = reader.rest[:1]
        reader.skip(1)
    if name.startswith("^"):
        name, negated = name[1:], not negated
    if name not in _CATEGORIES and name not in {one[0] for one in _CATEGORIES}:
        raise GoRegexError("invalid character class range", before[:len(before) - len(reader.rest)])
    return _category_ranges(name, negated)


@cache
def _category_ranges(name: str, negated: bool) -> str:
    """The characters of a general category (``L``, ``Lu``) as the inside of a class."""
    return _ranges_of(lambda one: unicodedata.category(one).startswith(name) != negated)


def _ranges_of(is_member: Callable[[str], bool]) -> str:
    ranges: list[str] = []
    start = -1
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and is_member(chr(code))
        if inside and start < 0:
            start = code
        elif not inside and start >= 0:
            ranges.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = -1
    return "".join(ranges)
