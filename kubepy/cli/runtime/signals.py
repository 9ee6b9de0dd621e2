"""The signals that end a command."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from kubepy.cli.errors import SilentExit

if TYPE_CHECKING:
    from types import FrameType


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the command as an error does for the length of a block, so that nothing is
    left half made."""

    def end(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # what is there is removed first
        raise SilentExit(128 + number)

    before = None
    try:
        with suppress(ValueError):  # not in the main thread: a Python program runs the command
            before = signal.signal(signal.SIGTERM, end)
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
