"""Memory that connections have used, given back to the system when many of them have gone.

Python frees it, but glibc keeps free pieces between others for later requests: after a thousand
watchers that were cut a server would stay as large as with them. ``malloc_trim`` returns whole free
pages; other C libraries do so themselves, or have no such function.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from kubepy import system

MANY = 50  # connections that must have gone
TRIM_SECONDS = 10.0  # between two trims, each of which takes some milliseconds per 100 MB


class MemoryKeeper:
    """Gives memory back when the number of connections has fallen by many, and falls no more.

    :param trim: gives it back.
    """

    def __init__(self, trim: Callable[[], None] | None = None) -> None:
        self._trim = trim or find_trim()
        self._highest = 0
        self._last = 0
        self._next = 0.0

    def check(self, connections: int, now: float) -> None:
        """Take note of the number of connections at a moment, in seconds. It is called every
        second."""
        is_falling, self._last = connections < self._last, connections
        self._highest = max(self._highest, connections)
        if is_falling or self._highest - connections < MANY or now < self._next:
            return
        self._highest = connections
        self._next = now + TRIM_SECONDS
        self._trim()


def find_trim() -> Callable[[], None]:
    """Return the C library's function that gives free memory back, or one that does nothing."""
    try:
        malloc_trim = getattr(system.c_library(), "malloc_trim")  # noqa: B009
    except (AttributeError, OSError):
        return lambda: None
    malloc_trim.argtypes = (ctypes.c_size_t,)
    return lambda: malloc_trim(0)
