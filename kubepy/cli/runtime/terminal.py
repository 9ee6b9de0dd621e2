"""The terminal that a command prints to: whether it shows colours, how wide it is, and which characters it knows.

Output to anything else (a pipe, a file, the streams of a Python program) is plain and does not depend on a width, so
that the same cluster always prints the same bytes there.
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import IO

WIDTH = 80  # of a terminal that does not report its own, and of everything that is no terminal


class Colour(StrEnum):
    """Colours and styles (the codes of ECMA-48) that can be read on a light and on a dark background."""

    BOLD = "1"
    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"
    BLUE = "34"
    MAGENTA = "35"
    CYAN = "36"
    INVERSE = "7"


def shows_colours(stream: IO[str]) -> bool:
    """Return whether a stream is a terminal that may be sent colours (client-go's ``AllowsColorOutput``)."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and "NO_COLOR" not in os.environ


def width_of(stream: IO[str]) -> int:
    """Return the columns of a terminal; WIDTH for one that does not say, and for what is no terminal."""
    try:
        return (stream.isatty() and os.get_terminal_size(stream.fileno()).columns) or WIDTH
    except OSError:
        return WIDTH


def can_print(stream: IO[str], text: str) -> bool:
    """Return whether a stream's encoding has all characters of a text. One without an encoding is in memory: it has."""
    try:
        text.encode(encoding_of(stream) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def encoding_of(stream: IO[str]) -> str | None:
    """Return the encoding that a reader of a stream expects. The program itself always writes UTF-8, so for the streams
    of the process it is the one that the environment names."""
    if stream is sys.stdout or stream is sys.stderr:
        if named := os.environ.get("PYTHONIOENCODING", "").partition(":")[0]:
            return named
        language = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "")
        if language in ("C", "POSIX"):
            return "ascii"
        if "." in language:
            return language.partition(".")[2].partition("@")[0]
    return getattr(stream, "encoding", None)


def shortened(text: str, width: int, mark: str = "...") -> str:
    """Return a text that fits in so many columns; what is cut off is replaced by the mark."""
    if len(text) <= width:
        return text
    return text[:max(width - len(mark), 0)] + mark[:max(width, 0)]


class Painter:
    """Paints texts for one stream: with colours where it shows them, otherwise not at all."""

    def __init__(self, stream: IO[str]) -> None:
        self.in_colour = shows_colours(stream)

    def __call__(self, text: str, *colours: Colour) -> str:
        """Return the text in these colours and styles; as it is where there are none."""
        if not (self.in_colour and text and colours):
            return text
        return f"\033[{';'.join(colours)}m{text}\033[0m"
