"""Go's regular expressions (RE2) as Python's: ``pattern`` of schemas and ``matches`` of rules.

A pattern is read once from left to right, as Go's parser reads it, and refused where and in the words that Go refuses
it. What RE2 writes otherwise is rewritten: flags in the middle of a group, ``$`` and ``\\z``, ``\\Q…\\E``, classes such
as ``[[:alpha:]]`` and ``\\p{L}``, names of groups; ``\\d``, ``\\w`` and ``\\s`` are about ASCII. Only whether a text
matches is asked, so that greediness as a flag (``(?U)``) means nothing. Upstream: ``regexp/syntax/parse.go``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from kubepy.cluster.values.gonumbers import int_or_none
from kubepy.cluster.values.goregexclass import CLASS_ESCAPES, Reader, category, character, escaped, named_class
from kubepy.cluster.values.goregexclass import GoRegexError as GoRegexError

MAX_REPEAT = 1000
_REPEAT = re.compile(r"\{([0-9]+)(,([0-9]+)?)?\}")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:(-)([imsU]+))?([:)])")
_OTHER_PERL = re.compile(r"\(\?[imsU-]*.?", re.DOTALL)
_NAMED = re.compile(r"\(\?P?<([A-Za-z0-9_]+)>")
_BOUNDARIES = {"A": r"\A", "b": r"\b", "B": r"\B", "z": r"\Z"}


@lru_cache(maxsize=512)
def compile_go(pattern: str) -> re.Pattern[str]:
    """Raises GoRegexError."""
    translated = _Translation(pattern).result()
    try:
        return re.compile(translated, re.ASCII)
    except re.error as error:
        raise GoRegexError(error.msg, pattern) from None


class _Group(NamedTuple):
    """An open group: flags that were set within it, for what is left of it, and whether lines end at ``$``."""

    flags: tuple[str, ...] = ()
    multiline: bool = False


class _Translation:
    def __init__(self, pattern: str) -> None:
        self._reader = Reader(pattern)
        self._groups = [_Group()]
        self._repeatable = False
        self._last_repeat = ""  # the pattern from the repetition on that has just been read

    def result(self) -> str:
        parts = []
        while self._reader.rest:
            parts.append(self._next())
        if len(self._groups) > 1:
            raise GoRegexError("missing closing )", self._reader.pattern)
        return "".join(parts) + self._closings()

    def _next(self) -> str:
        match self._reader.rest[0]:
            case "(":
                return self._opening()
            case ")":
                return self._closing()
            case "|":
                self._reader.skip(1)
                self._after(repeatable=False)
                return self._closings() + "|" + "".join(f"(?{one}:" for one in self._groups[-1].flags)
            case "*" | "+" | "?":
                return self._repetition(self._reader.rest[0])
            case "{" if found := _REPEAT.match(self._reader.rest):
                return self._counted(found)
        self._after(repeatable=True)
        return self._atom()

    def _after(self, *, repeatable: bool) -> None:
        self._repeatable, self._last_repeat = repeatable, ""

    # --- groups -----------------------------------------------------------------------------------------------------

    def _opening(self) -> str:
        rest, multiline = self._reader.rest, self._groups[-1].multiline
        if found := _FLAGS.match(rest):
            return self._flags(found)
        opening = "("
        if rest.startswith(("(?P<", "(?<")):
            opening = self._name(_NAMED.match(rest))
        elif rest.startswith("(?"):
            found = _OTHER_PERL.match(rest)
            raise GoRegexError("invalid or unsupported Perl syntax", found[0] if found else rest)
        else:
            self._reader.skip(1)
        self._groups.append(_Group(multiline=multiline))
        self._after(repeatable=False)
        return opening

    def _name(self, found: re.Match[str] | None) -> str:
        if found is None:
            named, end, _ = self._reader.rest.partition(">")
            raise GoRegexError("invalid named capture", named + end)
        self._reader.skip(found.end())
        return f"(?P<{found[1]}>" if not found[1][0].isdigit() else "("

    def _flags(self, found: re.Match[str]) -> str:
        self._reader.skip(found.end())
        on, off = found[1].replace("U", ""), (found[3] or "").replace("U", "")
        flags = on + (f"-{off}" if off else "")
        multiline = "m" in on or (self._groups[-1].multiline and "m" not in off)
        if found[4] == ":":
            self._groups.append(_Group(multiline=multiline))
            self._after(repeatable=False)
            return f"(?{flags}:"
        self._groups[-1] = _Group((*self._groups[-1].flags, flags), multiline)
        self._last_repeat = ""
        return f"(?{flags}:"

    def _closing(self) -> str:
        if len(self._groups) == 1:
            raise GoRegexError("unexpected )", self._reader.pattern)
        self._reader.skip(1)
        closings = self._closings()
        self._groups.pop()
        self._after(repeatable=True)
        return closings + ")"

    def _closings(self) -> str:
        return ")" * len(self._groups[-1].flags)

    # --- repetitions ------------------------------------------------------------------------------------------------

    def _counted(self, found: re.Match[str]) -> str:
        least, most = int_or_none(found[1]), int_or_none(found[3] or found[1])
        if least is None or most is None or max(least, most) > MAX_REPEAT or least > most:
            raise GoRegexError("invalid repeat count", found[0])
        return self._repetition(found[0])

    def _repetition(self, operator: str) -> str:
        before = self._reader.rest
        self._reader.skip(len(operator))
        lazy = "?" if self._reader.take("?") else ""
        if self._last_repeat:
            read = len(self._last_repeat) - len(self._reader.rest)
            raise GoRegexError("invalid nested repetition operator", self._last_repeat[:read])
        if not self._repeatable:
            raise GoRegexError("missing argument to repetition operator", operator + lazy)
        self._last_repeat = before
        return operator + lazy

    # --- what is repeated -------------------------------------------------------------------------------------------

    def _atom(self) -> str:
        reader = self._reader
        if reader.rest.startswith("["):
            return character_class(reader)
        if reader.rest.startswith("\\"):
            return self._escape()
        found = reader.character()
        if found == "$":
            return "(?m:$)" if self._groups[-1].multiline else r"\Z"
        return found if found in "^." else escaped(found)

    def _escape(self) -> str:
        reader, following = self._reader, self._reader.rest[1:2]
        if following in _BOUNDARIES:
            reader.skip(2)
            return _BOUNDARIES[following]
        if following == "Q":
            reader.skip(2)
            quoted, _, reader.rest = reader.rest.partition("\\E")
            return "".join(f"(?:{escaped(one)})" for one in quoted) or "(?:)"
        if following and following in CLASS_ESCAPES:
            reader.skip(2)
            return f"[{CLASS_ESCAPES[following]}]"
        if following in ("p", "P"):
            return f"[{category(reader)}]"
        return escaped(character(reader, whole_class=""))


def character_class(reader: Reader) -> str:
    """``[…]`` as Python has it. The reader is at its beginning."""
    whole = reader.rest
    reader.skip(1)
    parts = ["[^" if reader.take("^") else "["]
    first = True
    while first or not reader.take("]"):
        parts.append(_member(reader, whole))
        first = False
    return "".join(parts) + "]"


def _member(reader: Reader, whole: str) -> str:
    if (found := named_class(reader)) is not None:
        return found
    if reader.rest[:2] in (r"\p", r"\P"):
        return category(reader)
    if reader.rest[:1] == "\\" and (found := CLASS_ESCAPES.get(reader.rest[1:2])) is not None:
        reader.skip(2)
        return found
    return _range(reader, whole)


def _range(reader: Reader, whole: str) -> str:
    before = reader.rest
    first = last = character(reader, whole)
    if len(reader.rest) >= 2 and reader.rest[0] == "-" and reader.rest[1] != "]":
        reader.skip(1)
        last = character(reader, whole)
    if last < first:
        raise GoRegexError("invalid character class range", before[:len(before) - len(reader.rest)])
    return escaped(first) if first == last else f"{escaped(first)}-{escaped(last)}"
