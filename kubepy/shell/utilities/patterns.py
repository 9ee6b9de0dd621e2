"""POSIX regular expressions, basic and extended, with GNU's additions.

Text is in Latin-1 here, one character a byte, as programs see it in the C locale. Alternatives
are matched by re2, which takes the longest as POSIX says, all else by Python's ``re``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from kubepy.shell.utility import Unknown

CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r" \t\n\r\f\v",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
    "print": r"\x20-\x7e",
    "graph": r"\x21-\x7e",
    "cntrl": r"\x00-\x1f\x7f",
    "xdigit": "0-9A-Fa-f",
}
ESCAPED_CLASSES = {
    "w": "[a-zA-Z0-9_]",
    "W": "[^a-zA-Z0-9_]",
    "s": r"[ \t\n\r\f\v]",
    "S": r"[^ \t\n\r\f\v]",
}
BOUNDARIES = {"b": r"\b", "B": r"\B", "<": r"\b(?=\w)", ">": r"\b(?<=\w)", "`": r"\A"}
CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
INTERVAL = re.compile(r"(\d*)(,?)(\d*)")
UNMATCHED_BRACKET = "Unmatched [, [^, [:, [., or [="
START, END, LAST = "\0start\0", "\0end\0", "\0last\0"


class BadPattern(Exception):
    """A regular expression that is not one, in the words of the GNU C library."""


class PatternMatch(NamedTuple):
    """The places of a match and of its groups; ``(-1, -1)`` for a group that took no part."""

    spans: tuple[tuple[int, int], ...]
    text: str

    @property
    def start(self) -> int:
        return self.spans[0][0]

    @property
    def end(self) -> int:
        return self.spans[0][1]

    def group(self, number: int) -> str:
        """Return the text of a group, empty if it took no part."""
        start, end = self.spans[number]
        if start >= 0:
            return self.text[start:end]
        return ""


class Pattern(Protocol):
    """A compiled expression."""

    groups: int

    def search(self, text: str, start: int = 0) -> PatternMatch | None: ...


class _BacktrackingPattern:
    """An expression that Python's ``re`` matches."""

    def __init__(self, source: str, flags: int) -> None:
        self._compiled = re.compile(source, flags)
        self.groups = self._compiled.groups

    def search(self, text: str, start: int = 0) -> PatternMatch | None:
        match = self._compiled.search(text, start)
        if match is None:
            return None
        return PatternMatch(tuple(match.span(group) for group in range(self.groups + 1)), text)


class _LongestPattern:
    """An expression with alternatives, of which re2 takes the longest."""

    def __init__(self, source: str, *, ignore_case: bool) -> None:
        try:
            import re2
        except ImportError:
            raise BadPattern("google-re2, which matches alternatives, is not installed") from None

        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.longest_match = True
        options.log_errors = False
        options.case_sensitive = not ignore_case
        self._compiled: Any = re2.compile(source.encode("latin-1"), options)
        self.groups = self._compiled.groups

    def search(self, text: str, start: int = 0) -> PatternMatch | None:
        match = self._compiled.search(text.encode("latin-1"), start)
        if match is None:
            return None
        return PatternMatch(tuple(match.span(group) for group in range(self.groups + 1)), text)


class _Translator:
    """The translation of one POSIX expression to Python's syntax."""

    def __init__(self, source: str, *, extended: bool) -> None:
        self.source = source
        self.extended = extended
        self.position = 0
        self.output: list[str] = []
        self.has_alternatives = False
        self.needs_backtracking = False
        self.depth = 0
        self.groups = 0
        self.is_at_start = True

    def translate(self) -> str:
        while self.position < len(self.source):
            self._read_item()
        if self.depth:
            raise BadPattern(f"Unmatched {self._spelled('(')}")
        return "".join(self.output)

    def _spelled(self, operator: str) -> str:
        return f"{operator} or \\{operator}"

    def _next(self) -> str:
        character = self.source[self.position]
        self.position += 1
        return character

    def _read_item(self) -> None:
        character = self._next()
        if character == "\\":
            self._read_escape()
        elif character == "[":
            self._add(self._bracket())
        elif character == ".":
            self._add(".")
        elif character == "*":
            self._read_star()
        elif character == "^" and self._is_start_anchor():
            self.output.append(START)
        elif character == "$" and self._is_end_anchor():
            self.output.append(END)
            self.is_at_start = False
        elif self.extended and character in "(){}|+?":
            self._read_operator(character)
        else:
            self._add(re.escape(character))

    def _add(self, text: str) -> None:
        self.output.append(text)
        self.is_at_start = False

    def _is_start_anchor(self) -> bool:
        return self.extended or self.is_at_start

    def _is_end_anchor(self) -> bool:
        rest = self.source[self.position :]
        return self.extended or not rest or rest.startswith(("\\)", "\\|"))

    def _read_star(self) -> None:
        if not self.is_at_start:
            self._repeat("*")
        elif not self.extended:
            self._add(r"\*")

    def _repeat(self, operator: str) -> None:
        if not self.output:
            raise BadPattern("Invalid preceding regular expression")
        # In a group of its own: Python reads `a*+` and `a*?` as other operators.
        atom = self.output.pop()
        self.output.append(f"(?:{atom}{operator})")

    def _read_escape(self) -> None:
        if self.position == len(self.source):
            raise BadPattern("Trailing backslash")
        character = self._next()
        if not self.extended and character in "(){}|+?":
            self._read_operator(character)
        elif character in ESCAPED_CLASSES:
            self._add(ESCAPED_CLASSES[character])
        elif character in BOUNDARIES:
            self.needs_backtracking |= character in "<>"
            self._add(BOUNDARIES[character])
        elif character == "'":
            self._add(LAST)
        elif character in CONTROLS:
            self._add(re.escape(CONTROLS[character]))
        elif character.isdigit() and character != "0":
            self._read_back_reference(character)
        else:
            self._add(re.escape(character))

    def _read_back_reference(self, digit: str) -> None:
        if int(digit) > self.groups:
            raise BadPattern("Invalid back reference")
        self.needs_backtracking = True
        self._add(f"(?:\\{digit})")

    def _read_operator(self, operator: str) -> None:
        if operator == "(":
            self.depth += 1
            self.groups += 1
            self.output.append("(")
            self.is_at_start = True
        elif operator == ")":
            self._close_group()
        elif operator == "|":
            self.has_alternatives = True
            self.output.append("|")
            self.is_at_start = True
        elif operator == "{":
            self._read_interval()
        elif operator in "+?" and not self.is_at_start:
            self._repeat(operator)
        elif operator == "}" or not self.extended:
            self._add(re.escape(operator))

    def _close_group(self) -> None:
        if not self.depth:
            if not self.extended:
                raise BadPattern(f"Unmatched {self._spelled(')')}")
            self._add(r"\)")
            return
        self.depth -= 1
        opening = len(self.output) - 1
        while self.output[opening] != "(":
            opening -= 1
        group = "".join(self.output[opening:]) + ")"
        del self.output[opening:]
        self._add(group)

    def _read_interval(self) -> None:
        match = INTERVAL.match(self.source, self.position)
        assert match is not None  # it matches an empty text, too
        closing = "\\}"
        if self.extended:
            closing = "}"
        is_interval = match.end() > self.position
        if not is_interval or not self.source.startswith(closing, match.end()):
            self._read_odd_brace(is_open=match.end() == len(self.source))
            return
        self.position = match.end() + len(closing)
        least, comma, most = match.groups()
        least = least or "0"
        if most and int(least) > int(most):
            raise BadPattern("Invalid content of \\{\\}")
        if self.is_at_start:
            raise BadPattern("Invalid preceding regular expression")
        self._repeat(f"{{{least}{comma}{most}}}")

    def _read_odd_brace(self, *, is_open: bool) -> None:
        """Read a brace that begins no interval: in an extended expression it stands for itself."""
        if self.extended:
            self._add(r"\{")
        elif is_open:
            raise BadPattern("Unmatched \\{")
        else:
            raise BadPattern("Invalid content of \\{\\}")

    def _bracket(self) -> str:
        source = self.source
        negation = ""
        if source.startswith("^", self.position):
            negation = "^"
        self.position += len(negation)
        members: list[str] = []
        while True:
            if self.position >= len(source):
                raise BadPattern(UNMATCHED_BRACKET)
            if source[self.position] == "]" and members:
                self.position += 1
                break
            members.append(self._member())
        return f"[{negation}{''.join(members)}]"

    def _member(self) -> str:
        source = self.source
        if source.startswith(("[:", "[.", "[="), self.position):
            return self._named_member()
        first = self._next()
        is_range = source.startswith("-", self.position)
        if not is_range or source.startswith("-]", self.position):
            return _escaped_member(first)
        self.position += 1
        if self.position >= len(source):
            raise BadPattern(UNMATCHED_BRACKET)
        last = self._next()
        if last < first:
            raise BadPattern("Invalid range end")
        start = _escaped_member(first)
        end = _escaped_member(last)
        return f"{start}-{end}"

    def _named_member(self) -> str:
        """Read ``[:alpha:]`` or ``[.x.]``."""
        source = self.source
        kind = source[self.position + 1]
        start = self.position + 2
        end = source.find(f"{kind}]", start)
        if end < 0:
            raise Unknown(f"[{kind} in a pattern")
        name = source[start:end]
        self.position = end + 2
        if kind == ":":
            if name not in CLASSES:
                raise BadPattern("Invalid character class name")
            return CLASSES[name]
        if len(name) != 1:
            raise Unknown(f"[{kind}{name}{kind}]")
        return _escaped_member(name)


def _escaped_member(character: str) -> str:
    if character in "\\]^-[&~|":
        return f"\\{character}"
    return character


def compile_pattern(
    source: str, *, extended: bool, ignore_case: bool = False, multiline: bool = False
) -> Pattern:
    """Compile a POSIX expression. Raises BadPattern."""
    translator = _Translator(source, extended=extended)
    body = translator.translate()
    flags = re.DOTALL | re.ASCII
    if ignore_case:
        flags |= re.IGNORECASE
    is_longest = translator.has_alternatives and not translator.needs_backtracking
    if multiline:
        flags |= re.MULTILINE
        body = body.replace(START, "^").replace(END, "$")
    if is_longest:
        ending = r"\z"
        prefix = "(?s)"
        if multiline:
            prefix = "(?sm)"
    else:
        ending = r"\Z"
        prefix = ""
    body = body.replace(START, r"\A").replace(END, ending).replace(LAST, ending)
    if is_longest:
        return _LongestPattern(prefix + body, ignore_case=ignore_case)
    try:
        return _BacktrackingPattern(body, flags)
    except re.error as error:
        raise BadPattern("Invalid regular expression") from error


def fixed_pattern(texts: list[str], *, ignore_case: bool = False) -> Pattern:
    """Compile texts that stand for themselves; the longest wins."""
    longest_first = sorted(texts, key=len, reverse=True)
    source = "|".join(re.escape(text) for text in longest_first)
    flags = re.DOTALL | re.ASCII
    if ignore_case:
        flags |= re.IGNORECASE
    return _BacktrackingPattern(source, flags)


def matches(pattern: Pattern, text: str) -> Iterator[PatternMatch]:
    """Yield all matches without overlaps; no empty one at the end of another."""
    position = 0
    last_end = -1
    while position <= len(text):
        match = pattern.search(text, position)
        if match is None:
            return
        is_empty = match.start == match.end
        if not (is_empty and match.start == last_end):
            yield match
        last_end = match.end
        position = match.end
        if is_empty:
            position = match.end + 1
