"""The terminal that a command prints to: a stream that nobody else can steer, its colours, width
and characters.

Output to anything else (a pipe, a file, the streams of a Python program) is plain and does not
depend on a width or a locale, so that the same cluster always prints the same bytes there.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from io import TextIOBase, TextIOWrapper
from typing import IO, cast

from kubepy.quoting import printable

WIDTH = 80  # of a terminal that does not report its own, and of everything that is no terminal

_NOT_PLAIN = re.compile(r"[^\n\t -~]")
# Categories of Unicode: controls (ESC, BEL, the 8-bit CSI), formatting (bidirectional marks,
# characters without a width), halves of pairs, and what some terminals take for a line break.
_STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")
_KUBECTLS = {"\x1b": "^[", "\r": "\\r"}  # cli-runtime/pkg/printers/terminal.go


class Colour(StrEnum):
    """Colours and styles (the codes of ECMA-48) that can be read on a light and on a dark
    background."""

    BOLD = "1"
    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"
    BLUE = "34"
    MAGENTA = "35"
    CYAN = "36"
    INVERSE = "7"


class Terminal(TextIOBase):
    """A terminal as a stream of text, in which only kubepy's own controls have an effect.

    Names, messages and file contents come from strangers. Each character in what is written that
    would steer the terminal, or that its encoding does not have, is shown as an escape sequence.
    Colours and movements of the cursor stand between two marks (:meth:`controls`). No stranger can
    write a mark: it is drawn anew for each stream.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._mark = f"\x1b{os.urandom(8).hex()}"

    @classmethod
    def of(cls, stream: IO[str]) -> Terminal:
        """Return the Terminal that writes to a stream: the stream itself if it is one."""
        if isinstance(stream, Terminal):
            return stream
        return cls(stream)

    def controls(self, codes: str) -> str:
        """Return control characters in the form that :meth:`write` passes on, to be put into a
        text."""
        mark = self._mark
        return f"{mark}{codes}{mark}"

    def write(self, text: str, /) -> int:
        parts = text.split(self._mark)
        encoding = self.encoding
        parts[::2] = [cleaned(part, encoding) for part in parts[::2]]  # the others are controls
        self._stream.write("".join(parts))
        return len(text)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._stream, "encoding", None) or "utf-8"

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        """Leave the stream open: it belongs to the process."""


def guard(stream: IO[str]) -> IO[str]:
    """Return a stream to write to in place of this one: a :class:`Terminal` for a terminal, any
    other as it is."""
    if stream.isatty():
        return cast(IO[str], Terminal.of(stream))
    return stream


def guard_process() -> None:
    """Guard those of the process's standard streams that are terminals, and take over the
    terminal's encoding."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or not stream.isatty():
            continue
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding=encoding_of_process(stream.encoding))
        setattr(sys, name, guard(stream))


def cleaned(text: str, encoding: str = "utf-8") -> str:
    """Return a text without any character that would steer a terminal with this encoding.

    An escape sequence stands for each, those of kubectl where it has one, else those of Go's
    strings.
    """
    text = _NOT_PLAIN.sub(_shown, text)
    if text.isascii():
        return text
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _shown(match: re.Match[str]) -> str:
    """Return a character as it is if it is harmless, else an escape sequence."""
    character = match[0]
    if unicodedata.category(character) not in _STEERING:
        return character
    return _KUBECTLS.get(character) or printable(character)


# --- the characters that it knows -----------------------------------------------------------------


def encoding_of_process(stream_encoding: str) -> str:
    """Return the encoding of the process's terminal, as its environment names it.

    :param stream_encoding: the one that Python has found for the stream, which counts where the
        environment has none.
    """
    named = os.environ.get("PYTHONIOENCODING", "").partition(":")[0]
    if not named:
        language = _language()
        if language in ("C", "POSIX"):
            return "ascii"
        codeset = language.partition(".")[2]
        named = codeset.partition("@")[0]
    if named and _extends_ascii(named):
        return named
    return stream_encoding


def _language() -> str:
    """Return the locale of characters that the environment names, "" for none."""
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        if language := os.environ.get(name):
            return language
    return ""


def _extends_ascii(encoding: str) -> bool:
    """Return whether Python knows an encoding and it has ASCII's characters at their places."""
    plain = "".join(map(chr, range(0x20, 0x7F)))
    try:
        return plain.encode(encoding) == plain.encode("ascii")
    except (LookupError, UnicodeError):
        return False


def can_print(stream: IO[str], text: str) -> bool:
    """Return whether a stream's encoding has all characters of a text. One without an encoding is
    in memory: it has."""
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


# --- its width and colours ------------------------------------------------------------------------


def width_of(stream: IO[str] | Terminal) -> int:
    """Return the columns of a terminal; WIDTH for one that does not say, and for what is no
    terminal."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except OSError:
        return WIDTH
    return columns or WIDTH


def shortened(text: str, width: int, mark: str = "...") -> str:
    """Return a text that fits in so many columns; what is cut off is replaced by the mark."""
    if len(text) <= width:
        return text
    kept = max(width - len(mark), 0)
    return text[:kept] + mark[: max(width, 0)]


def shows_colours(stream: IO[str]) -> bool:
    """Return whether a stream is a terminal that may be sent colours (client-go's
    ``AllowsColorOutput``)."""
    if not stream.isatty() or "NO_COLOR" in os.environ:
        return False
    return os.environ.get("TERM") != "dumb"


class Painter:
    """Paints texts for one stream: with colours where it shows them, otherwise not at all."""

    def __init__(self, stream: IO[str]) -> None:
        self._terminal: Terminal | None = None
        if isinstance(stream, Terminal) and shows_colours(stream):
            self._terminal = stream

    def __call__(self, text: str, *colours: Colour) -> str:
        """Return the text in these colours and styles; as it is where there are none."""
        if self._terminal is None or not text or not colours:
            return text
        begin = self._terminal.controls(_sequence(colours))
        end = self._terminal.controls(_sequence(()))
        return f"{begin}{text}{end}"


def _sequence(colours: Iterable[Colour]) -> str:
    """Return the control sequence that chooses colours; without any it ends all."""
    codes = ";".join(colours) or "0"
    return f"\033[{codes}m"
