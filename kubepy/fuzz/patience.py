"""The end of patience with a function that does not return."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LONGEST_CALL = 60.0  # seconds of computing that one call of a function may take


class CallTooLong(BaseException):
    """A function has not returned in time. No ``except Exception`` of it stops this."""


@contextmanager
def limited_calls(seconds: float = LONGEST_CALL) -> Iterator[None]:
    """Raise CallTooLong in the block where a call takes longer; calls begin with the block, and
    with :func:`begin_call`, from where on it is LONGEST_CALL.

    :param seconds: of computing, which the first call may take.

    Only the main thread of a process can be interrupted; elsewhere, and where the system has no
    timers, nothing is limited.
    """
    if not _can_limit():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def begin_call() -> None:
    """Begin to count anew: the last call has returned."""
    if _can_limit():
        signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_CALL)


def _can_limit() -> bool:
    if not hasattr(signal, "setitimer"):
        return False
    return threading.current_thread() is threading.main_thread()


def _end(number: int, frame: FrameType | None) -> None:
    raise CallTooLong
