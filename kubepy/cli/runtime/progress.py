"""How far long work is: one line on a terminal, written over again and again, and gone when the work is done.

It goes to stderr, and only where that is a terminal: what a pipe or a file gets is kubectl's, byte for byte.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import IO

PATIENCE = 0.5  # seconds; work below that shows nothing
INTERVAL = 0.1  # between two looks of the line
WIDTH = 80  # of a terminal that does not tell


class Progress:
    """The line. :meth:`show` costs next to nothing where there is nothing to draw: call it for every object."""

    def __init__(self, stream: IO[str], now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = now
        self._start = now()
        self.is_watched = stream.isatty()
        self._due = self._start + PATIENCE if self.is_watched else float("inf")
        self._drawn = 0  # characters
        self._shown = ""

    def show(self, what: str, done: int = 0, total: int = 0, about: str = "") -> None:
        """``applying 120/1500``, ``waiting 12s 3/10 pods/web``. What comes last may be cut off."""
        now = self._now()
        if now < self._due:
            return
        self._due = now + INTERVAL
        count = f"{done}/{total}" if total else str(done or "")
        self._draw(" ".join(part for part in (what, count, about) if part))

    def seconds(self) -> int:
        """How long the work has taken so far."""
        return int(self._now() - self._start)

    def clear(self) -> None:
        """Take the line away: something else is to be written, or the work is done."""
        if self._drawn:
            self._stream.write("\r" + " " * self._drawn + "\r")
            self._stream.flush()
            self._drawn, self._shown = 0, ""

    def _draw(self, text: str) -> None:
        room = self._width() - 1  # in the last column the cursor would go to the next line
        shown = text if len(text) <= room else text[:max(room - 3, 0)] + "..."[:room]
        if shown == self._shown:
            return
        self._stream.write("\r" + shown.ljust(self._drawn))
        self._stream.flush()
        self._drawn, self._shown = max(self._drawn, len(shown)), shown

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or WIDTH
        except OSError:
            return WIDTH
