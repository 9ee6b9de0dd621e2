"""The events of a YAML text: libyaml's, or those of ruamel.yaml's parser in Python where there is
no libyaml (WebAssembly).

Both find the same mistakes, and word some of them differently; libyaml's words count.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError

try:
    from ruamel.yaml.cyaml import CParser  # type: ignore[attr-defined]
except ImportError:
    CParser = None

_END = "did not find expected comment or line break"
# The words of the parser in Python, and libyaml's.
_WORDS = (
    ("mapping values are not allowed here", "mapping values are not allowed in this context"),
    ("mapping keys are not allowed here", "mapping keys are not allowed in this context"),
    (
        "sequence entries are not allowed here",
        "block sequence entries are not allowed in this context",
    ),
    ("found character .* that cannot start", "found character that cannot start"),
    (
        "expected (?:a comment or a line break|chomping or indentation indicators), but found .*",
        _END,
    ),
    ("expected escape sequence of .*", "did not find expected hexdecimal number"),
    ("expected (alphabetic or numeric character), but found .*", r"did not find expected \1"),
    ("expected the node content, but found .*", "did not find expected node content"),
    ("expected (',' or '.'), but got .*", r"did not find expected \1"),
    ("expected '(<document start>)', but found .*", r"did not find expected \1"),
)
_BLOCK_END = "expected <block end>, but found"
_IN_BLOCK = {
    "while parsing a block mapping": "did not find expected key",
    "while parsing a block collection": "did not find expected '-' indicator",
}


def reader_of_events(text: str) -> Callable[[], Any]:
    """Return a function that returns the next event of a text. It raises MarkedYAMLError and
    ReaderError for what is no YAML."""
    if CParser is not None:
        next_event: Callable[[], Any] = CParser(text).get_event
        return next_event
    return _PythonEvents(text).next_event


class _PythonEvents:
    """The events of ruamel.yaml's parser in Python."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parser: Any = None

    def next_event(self) -> Any:
        """Return the next event. Raises MarkedYAMLError, ReaderError."""
        try:
            if self._parser is None:
                self._parser = self._open()
            return self._parser.get_event()
        except MarkedYAMLError as error:
            error.problem = _libyamls_words(error.context or "", error.problem or "")
            raise
        except ReaderError as error:
            error.reason = "control characters are not allowed"
            raise

    def _open(self) -> Any:
        """Return the parser, which reads the text at once. Raises ReaderError."""
        yaml = YAML(typ="safe", pure=True)
        yaml.version = (1, 1)
        _, parser = yaml.get_constructor_parser(self._text)
        return parser


def _libyamls_words(context: str, problem: str) -> str:
    if problem.startswith(_BLOCK_END):
        return _IN_BLOCK.get(context, problem)
    for pattern, words in _WORDS:
        problem = re.sub(pattern, words, problem, count=1)
    return problem
