"""The module ``re2`` of google-re2, as far as kubepy uses it, on RE2JS: the same matcher in
JavaScript, in time linear in the text.

google-re2 has no wheel for WebAssembly. RE2JS counts in UTF-16, of which the places in a text are
those of Python where no character is beyond U+FFFF; others are left to it one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class error(Exception):  # its name in google-re2
    """A pattern that is none; its message is bytes."""


class Options:
    """What google-re2 lets one choose."""

    class Encoding:
        """The encodings of patterns and texts."""

        UTF8 = "utf-8"
        LATIN1 = "latin-1"

    def __init__(self) -> None:
        self.encoding = Options.Encoding.UTF8
        self.log_errors = True
        self.never_capture = False
        self.max_mem = 8 << 20
        self.longest_match = False
        self.case_sensitive = True


class _Match:
    def __init__(self, text: str, spans: list[tuple[int, int]], encoding: str | None) -> None:
        self._text = text
        self._spans = spans
        self._encoding = encoding

    def __getitem__(self, group: int) -> Any:
        start, end = self._spans[group]
        part = self._text[start:end]
        return part.encode(self._encoding) if self._encoding else part

    def span(self, group: int = 0) -> tuple[int, int]:
        return self._spans[group]

    def start(self, group: int = 0) -> int:
        return self._spans[group][0]

    def end(self, group: int = 0) -> int:
        return self._spans[group][1]


class _Pattern:
    def __init__(self, compiled: Any, options: Options) -> None:
        self._compiled = compiled
        self._options = options
        self.groups: int = 0 if options.never_capture else compiled.groupCount()

    def search(self, text: bytes | str, start: int = 0) -> _Match | None:
        """Return the first match from a place on."""
        return next(self._matches(text, start), None)

    def finditer(self, text: bytes | str) -> Iterator[_Match]:
        """Yield all matches without overlaps."""
        return self._matches(text, 0)

    def _matches(self, text: bytes | str, start: int) -> Iterator[_Match]:
        encoding = self._options.encoding if isinstance(text, bytes) else None
        decoded = text.decode(self._options.encoding) if isinstance(text, bytes) else text
        places = _Places(decoded)
        matcher = self._compiled.matcher(decoded)
        is_found = matcher.find(places.in_javascript(start))
        while is_found:
            spans = [
                (places.in_python(matcher.start(group)), places.in_python(matcher.end(group)))
                for group in range(self.groups + 1)
            ]
            yield _Match(decoded, spans, encoding)
            is_found = matcher.find()


class _Places:
    """Places in a text, in Python's characters and in the units of UTF-16 that JavaScript counts.

    In a text of bytes they are those of google-re2 where it is ASCII, or Latin-1.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._is_plain = all(character <= "\uffff" for character in text)

    def in_javascript(self, place: int) -> int:
        if self._is_plain:
            return place
        return len(self._text[:place].encode("utf-16-le")) // 2

    def in_python(self, place: int) -> int:
        if self._is_plain or place < 0:
            return place
        return len(self._text.encode("utf-16-le")[: 2 * place].decode("utf-16-le"))


def compile(pattern: bytes | str, options: Options | None = None) -> _Pattern:
    """Compile a pattern. Raises error."""
    from js import RE2JS  # type: ignore[import-not-found]
    from pyodide.ffi import JsException  # type: ignore[import-not-found]

    options = options or Options()
    source = pattern.decode(options.encoding) if isinstance(pattern, bytes) else pattern
    flags = 0
    if options.longest_match:
        flags |= RE2JS.LONGEST_MATCH
    if not options.case_sensitive:
        flags |= RE2JS.CASE_INSENSITIVE
    try:
        compiled = RE2JS.compile(source, flags)
    except JsException as problem:
        raise error(_words(str(problem)).encode()) from None
    return _Pattern(compiled, options)


def _words(message: str) -> str:
    """Return the message of RE2JS as google-re2 words it: the problem, and the part after a
    colon."""
    text = message.partition("error parsing regexp: ")[2] or message
    problem, _, part = text.partition(": `")
    words = {
        "missing closing )": "missing )",
        "missing closing ]": "missing ]",
        "missing argument to repetition operator": "no argument for repetition operator",
        "invalid nested repetition operator": "bad repetition operator",
        "invalid repeat count": "invalid repetition size",
        "invalid or unsupported Perl syntax": "invalid perl operator",
        "invalid named capture": "invalid named capture group",
        "trailing backslash at end of expression": "trailing \\",
    }
    return f"{words.get(problem, problem)}: {part.removesuffix('`')}"
