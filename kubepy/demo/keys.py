"""Single keys of a terminal."""

from __future__ import annotations

import os
from typing import IO

try:
    import termios
    import tty
except ModuleNotFoundError:  # the system has no terminals of this kind
    HAS_KEYS = False
else:
    HAS_KEYS = True

ON = frozenset("\r\n ")
OFF = frozenset(("q", "Q", "\x03", "\x04", ""))  # Ctrl-C, Ctrl-D, the end of the input


def wait_to_go_on(stream: IO[str]) -> bool:
    """Wait for Enter or the space bar, and return True; q, or the end of the input, is False."""
    while True:
        key = read_key(stream)
        if key in ON:
            return True
        if key in OFF:
            return False


def read_key(stream: IO[str]) -> str:
    """Return the next key of a terminal, without waiting for Enter; "" at the end of its input.

    Where the system cannot give single keys, it is the first character of the next line.
    """
    if not HAS_KEYS:
        return stream.readline()[:1]
    descriptor = stream.fileno()
    settings = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        return os.read(descriptor, 1).decode("latin-1")
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, settings)
