"""Progress of long work: one line on a terminal, overwritten again and again, and cleared when the
work is done.

It goes to stderr, and only to a terminal: in a pipe or a file the output is kubectl's, byte for
byte.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import IO

from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy import terminal

PATIENCE = 0.5  # seconds; shorter work shows nothing
INTERVAL = 0.1  # seconds between two updates of the line


class Progress:
    """The line. :meth:`show` is cheap when there is nothing to draw: it may be called for every
    object."""

    def __init__(self, stream: IO[str], now: Callable[[], float] = time.monotonic) -> None:
        self._terminal = terminal.Terminal.of(stream) if stream.isatty() else None
        self._now = now
        self._start = now()
        self._due = self._start + PATIENCE if self._terminal else float("inf")
        self._drawn = 0  # characters
        self._shown = ""

    @property
    def is_watched(self) -> bool:
        """True if there is a terminal that somebody may look at."""
        return self._terminal is not None

    def show(self, activity: str, done: int = 0, total: int = 0, about: str = "") -> None:
        """Show ``applying 120/1500``, ``waiting 12s 3/10 pods/web``; a long end is cut off."""
        now = self._now()
        if now < self._due or self._terminal is None:
            return
        self._due = now + INTERVAL
        count = f"{done}/{total}" if total else str(done or "")
        self._draw(self._terminal, " ".join(part for part in (activity, count, about) if part))

    def seconds(self) -> int:
        """Return the time that the work has taken so far."""
        return int(self._now() - self._start)

    def clear(self) -> None:
        """Clear the line, before other output or when the work is done."""
        if self._drawn and self._terminal is not None:
            carriage_return = self._terminal.controls("\r")
            self._terminal.write(carriage_return + " " * self._drawn + carriage_return)
            self._terminal.flush()
            self._drawn = 0
            self._shown = ""

    def _draw(self, screen: terminal.Terminal, text: str) -> None:
        room = (
            terminal.width_of(screen) - 1
        )  # in the last column the cursor would go to the next line
        shown = terminal.shortened(terminal.cleaned(text, screen.encoding), room)
        if shown == self._shown:
            return
        screen.write(screen.controls("\r") + shown.ljust(self._drawn))
        screen.flush()
        self._drawn = max(self._drawn, len(shown))
        self._shown = shown
