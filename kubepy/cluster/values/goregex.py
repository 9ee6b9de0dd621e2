"""Go's regular expressions (RE2) as Python's: ``pattern`` of schemas and ``matches`` of rules.

What RE2 writes otherwise is rewritten: ``$`` and ``\\z``, ``\\Q…\\E``, classes such as ``[[:alpha:]]`` and ``\\p{L}``,
names of groups. ``\\d``, ``\\w`` and ``\\s`` are about ASCII. Look-around and back-references,
which RE2 does not know, are refused.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache

_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\\x00-\\x7f", "blank": "\\t ", "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@\\[-`{-~", "space": "\\t-\\r ",
    "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_UNKNOWN_TO_GO = ("(?=", "(?!", "(?<=", "(?<!", "(?>", "(?#", "(?(", "(?P=")


class GoRegexError(ValueError):
    """A pattern that Go's ``regexp`` does not compile."""


@lru_cache(maxsize=512)
def compile_go(pattern: str) -> re.Pattern[str]:
    """Raises GoRegexError."""
    if any(form in pattern for form in _UNKNOWN_TO_GO):
        raise GoRegexError(f"error parsing regexp: invalid or unsupported Perl syntax: `{pattern}`")
    try:
        return re.compile(_Translation(pattern).result(), re.ASCII)
    except re.error as error:
        raise GoRegexError(f"error parsing regexp: {error.msg}: `{pattern}`") from None


class _Translation:
    """One pattern, read once from left to right."""

    def __init__(self, pattern: str) -> None:
        self._rest = pattern
        self._in_class = False

    def result(self) -> str:
        parts = []
        while self._rest:
            parts.append(self._next())
        return "".join(parts)

    def _take(self, text: str) -> bool:
        if not self._rest.startswith(text):
            return False
        self._rest = self._rest[len(text):]
        return True

    def _next(self) -> str:
        if self._take("\\"):
            return self._escape()
        if self._in_class:
            return self._inside_class()
        if self._take("["):
            self._in_class = True
            opening = "[^" if self._take("^") else "["
            return opening + ("\\]" if self._take("]") else "")
        if self._take("$"):
            return r"\Z"
        if self._take("(?<"):
            return "(?P<"
        return self._character()

    def _character(self) -> str:
        found, self._rest = self._rest[0], self._rest[1:]
        return found

    def _inside_class(self) -> str:
        if self._take("]"):
            self._in_class = False
            return "]"
        if self._take("[:"):
            name, _, self._rest = self._rest.partition(":]")
            return self._posix(name)
        found = self._character()
        return f"\\{found}" if found in "[&|~" else found

    def _posix(self, name: str) -> str:
        if name.removeprefix("^") not in _POSIX:
            raise GoRegexError(f"error parsing regexp: invalid character class range: `[:{name}:]`")
        if name.startswith("^"):
            return _ranges_of(lambda character: re.match(f"[{_POSIX[name[1:]]}]", character) is None)
        return _POSIX[name]

    def _escape(self) -> str:
        if not self._rest:
            raise GoRegexError("error parsing regexp: trailing backslash at end of expression: ``")
        found = self._character()
        match found:
            case "z":
                return r"\Z"
            case "Q":
                quoted, _, self._rest = self._rest.partition("\\E")
                return re.escape(quoted)
            case "p" | "P":
                return self._unicode_class(negated=found == "P")
            case "x" if self._take("{"):
                digits, _, self._rest = self._rest.partition("}")
                return re.escape(chr(int(digits, 16)))
            case "Z" | "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9":
                if found == "0":
                    return r"\0"
                raise GoRegexError(f"error parsing regexp: invalid escape sequence: `\\{found}`")
        return f"\\{found}"

    def _unicode_class(self, *, negated: bool) -> str:
        if self._take("{"):
            name, _, self._rest = self._rest.partition("}")
        else:
            name = self._character()
        if name.startswith("^"):
            name, negated = name[1:], not negated
        ranges = _category_ranges(name, negated)
        return ranges if self._in_class else f"[{ranges}]"


@cache
def _category_ranges(name: str, negated: bool) -> str:
    """The characters of a general category (``L``, ``Lu``) as the inside of a class."""
    if name not in _CATEGORIES and name not in {category[0] for category in _CATEGORIES}:
        raise GoRegexError(f"error parsing regexp: invalid character class range: `\\p{{{name}}}`")
    return _ranges_of(lambda character: unicodedata.category(character).startswith(name) != negated)


_CATEGORIES = ("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf",
               "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co")  # fmt: skip


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
