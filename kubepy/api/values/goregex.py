"""Go's regular expressions (RE2): ``pattern`` of schemas, ``matches`` of rules, selectors of
kustomizations.

google-re2 matches them, in time linear in the text, as Go's ``regexp`` does. Go refuses a few
patterns that RE2 accepts, and words its errors differently; both differences are bridged here.
Upstream: ``regexp/syntax/parse.go``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from kubepy.api.values.gonumbers import int_or_none

# RE2 needs more memory for a pattern than Go: it has an instruction for each byte, Go one for each
# character.
_MAX_MEMORY = 64 << 20
_MAX_HEIGHT = 1000
_MAX_REPEAT = 1000
# RE2's words → Go's.
_WORDS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "unexpected )": "unexpected )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "expression too large",
}
_COUNTED = re.compile(r"\{(\d+)(?:,(\d+)?)?\}\??")
_TOKEN = re.compile(
    r"""
    \\Q.*?(?:\\E|\Z)                                              # quoted
  | \\.                                                          # an escape
  | \[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*+\]                       # a class
  | \(\?P?<(?P<name>[^>]*)>
  | .""",
    re.DOTALL | re.VERBOSE,
)
_SURROGATE = re.compile("[\ud800-\udfff]")


class GoRegexError(ValueError):
    """A pattern that Go's ``regexp`` does not compile: the problem, and the wrong part of the
    pattern."""

    def __init__(self, problem: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{part}`")


class NoRegexEngineError(GoRegexError):
    """google-re2 is not installed. Python's ``re`` is no substitute: some patterns take it longer
    than anybody lives, and patterns come from strangers."""

    def __init__(self, pattern: str) -> None:
        ValueError.__init__(self, f"google-re2, which matches `{pattern}`, is not installed")


class GoRegex:
    """A compiled pattern. Texts are matched as UTF-8; a lone surrogate counts as U+FFFD, as in a Go
    string."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def search(self, text: str) -> bool:
        """Return whether any part of the text matches."""
        return self._compiled.search(_encoded(text)) is not None

    def find(self, text: str) -> str | None:
        """Return the leftmost match."""
        match = self._compiled.search(_encoded(text))
        if match is None:
            return None
        leftmost: bytes = match[0]
        return leftmost.decode()

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """Return the matches that do not overlap; a negative limit means all. No empty match
        follows another match."""
        matches: list[str] = []
        end = -1
        for match in self._compiled.finditer(_encoded(text).decode()):
            if len(matches) == limit:
                break
            if match.start() != match.end() or match.start() != end:
                matches.append(match[0])
            end = match.end()
        return matches


@lru_cache(maxsize=512)
def compile_go(pattern: str) -> GoRegex:
    """Compile a pattern of Go's syntax. Raises GoRegexError, also where there is nothing that
    matches in linear time."""
    try:
        import re2
    except ImportError:
        raise NoRegexEngineError(pattern) from None

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MAX_MEMORY
    try:
        compiled = re2.compile(_encoded(pattern), options)
    except re2.error as error:
        raise _error_of(error.args[0].decode(errors="replace"), pattern) from None
    _refuse_what_go_refuses(pattern)
    return GoRegex(compiled)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


def _error_of(message: str, pattern: str) -> GoRegexError:
    """Return RE2's error as Go reports it."""
    problem, _, part = message.partition(": ")
    if problem == "trailing \\":
        return GoRegexError("trailing backslash at end of expression", "")
    if problem == "invalid UTF-8":  # RE2's error for an escape that ends too early
        return GoRegexError("invalid escape sequence", pattern[pattern.rfind("\\") :])
    if part.startswith("(?<"):
        return GoRegexError("invalid named capture", pattern[pattern.index(part) :])
    if problem == "invalid repetition size" and (count := _COUNTED.fullmatch(part)):
        least = int_or_none(count[1])
        most = int_or_none(count[2] or count[1])
        is_wrong = least is None or most is None or max(least, most) > _MAX_REPEAT or least > most
        part = part.removesuffix("?") if is_wrong else part
    return GoRegexError(_WORDS.get(problem, problem), part or pattern)


def _refuse_what_go_refuses(pattern: str) -> None:
    """Raise GoRegexError if only RE2 accepts the pattern: for ``\\C``, names beyond ASCII, very
    deep nesting."""
    depth = 0
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if text == "\\C":
            raise GoRegexError("invalid escape sequence", text)
        if token["name"] is not None and not re.fullmatch(r"\w+", token["name"], re.ASCII):
            raise GoRegexError("invalid named capture", text)
        depth += text.startswith("(") - (text == ")")
        if depth >= _MAX_HEIGHT:
            raise GoRegexError("expression nests too deeply", pattern)
