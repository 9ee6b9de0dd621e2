"""Single keys of a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from kubepy import system

ReadKey = Callable[[], str]
ON = frozenset("\r\n ")
OFF = frozenset(("q", "Q", "\x03", "\x04", ""))  # Ctrl-C, Ctrl-D, the end of the input


@contextmanager
def single_keys(stream: IO[str]) -> Iterator[ReadKey]:
    """Let a terminal give each key as it is pressed, for the length of a block; what was typed
    before is dropped.

    The block gets a function that returns the next key, "" at the end of the input. Where the
    system cannot give single keys, it is the first character of the next line.
    """
    if not system.has_terminals():
        yield lambda: stream.readline()[:1]
        return
    descriptor = stream.fileno()
    with system.single_keys(descriptor):
        yield lambda: os.read(descriptor, 1).decode("latin-1")


def wait_to_go_on(read_key: ReadKey) -> bool:
    """Wait for Enter or the space bar, and return True; q, or the end of the input, is False."""
    while True:
        key = read_key()
        if key in ON:
            return True
        if key in OFF:
            return False
