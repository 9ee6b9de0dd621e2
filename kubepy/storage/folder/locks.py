"""Locks in ``.kubepy/`` that die with their process, and who holds them.

The holder writes its pid and command beside the lock and removes that when it lets go. What is found there by the next
one to take the lock was left by a process that died.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kubepy.storage.errors import FolderError, LockTimeoutError

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = "lock"  # the writers'
POLL_INTERVAL = 0.005  # seconds
LOOK_INTERVAL = 0.5  # seconds, between two looks whether the lock has changed hands
MAX_TURNS = 10  # times the patience with one holder is what somebody waits who never has a turn
# A look at who holds a lock takes it for an instant; taking it "at once" outlasts that.
AT_ONCE = 0.1  # seconds
MAX_HOLDER = 1000  # characters


class Lock:
    """One lock file, and beside it who holds it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._holder_path = f"{path}.holder"
        self._lock: BaseFileLock | None = None
        self._file: tuple[int, int] | None = None  # the lock file that was taken

    def acquire(self, timeout: float) -> bool:
        """Take the lock; returns whether its last holder died with it. Raises LockTimeoutError, FolderError."""
        if not self.try_acquire(timeout):
            raise self._refusal(timeout)
        return self._note_holder()

    def acquire_in_turn(self, patience: float) -> bool:
        """As :meth:`acquire`, where many may come at once: ``patience`` is how long one of them may hold the lock."""
        start = since = time.monotonic()
        hold = self._hold()
        while not self.try_acquire(min(patience, LOOK_INTERVAL)):
            now, seen = time.monotonic(), self._hold()
            if seen not in (None, hold):
                since, hold = now, seen
            if now - since >= patience:
                raise self._refusal(patience)
            if now - start >= MAX_TURNS * patience:
                raise self._refusal(MAX_TURNS * patience)
        return self._note_holder()

    def _refusal(self, waited: float) -> LockTimeoutError:
        holder = self.describe() or "another process"
        return LockTimeoutError(f"{self.path} is held by {holder} (waited {waited:g} s)")

    def _hold(self) -> tuple[int, int] | None:
        """Which hold of the lock this is: each is noted anew."""
        try:
            found = os.stat(self._holder_path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_ino, found.st_mtime_ns

    def _note_holder(self) -> bool:
        try:
            was_left = os.path.exists(self._holder_path)
            self._file = self._identify()
            self._write_holder()
        except OSError as error:
            self.drop()
            raise FolderError(f"{self._holder_path}: cannot be written: {error.strerror}") from error
        return was_left

    def try_acquire(self, timeout: float) -> bool:
        from filelock import FileLock, Timeout

        lock = FileLock(self.path, timeout=timeout)
        try:
            lock.acquire(poll_interval=POLL_INTERVAL)
        except Timeout:
            return False
        except OSError as error:
            raise FolderError(f"{self.path}: cannot be locked: {error.strerror}") from error
        self._lock = lock
        return True

    def is_lost(self) -> bool:
        """Whether the folder of locks was removed meanwhile, so that another process may hold a lock of this name."""
        return self._identify() != self._file

    def _identify(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_dev, found.st_ino

    def release(self) -> None:
        assert self._lock is not None
        try:
            if not self.is_lost():
                os.unlink(self._holder_path)
        except FileNotFoundError:
            pass  # the folder was removed this very moment
        finally:
            self._lock.release()
            self._lock = None

    def drop(self) -> None:
        """Let go of a lock that was only tried."""
        assert self._lock is not None
        self._lock.release()
        self._lock = None

    def holder(self) -> str | None:
        """Who holds the lock now, None when nobody does."""
        description = self.describe()
        if description is None:
            return None
        if self.try_acquire(0):
            self.drop()
            return None
        return description

    def describe(self) -> str | None:
        """What the present (or the last, if it died) holder wrote about itself."""
        try:
            descriptor = os.open(self._holder_path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with open(descriptor, encoding="utf-8", errors="replace") as file:
                pid, _, command = file.read(MAX_HOLDER).partition("\n")
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:  # a symbolic link, which is never followed
                return None
            raise
        return f"process {pid} ({command})" if pid else None

    def _write_holder(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._holder_path, flags, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(f"{os.getpid()}\n{_command()}")


def _command() -> str:
    program, *arguments = sys.argv or [""]
    return " ".join([os.path.basename(program), *arguments])[:200].replace("\n", " ")


@contextmanager
def hold(path: str) -> Iterator[Callable[[], bool]]:
    """Hold a lock for the length of a block, which is given a function that tells whether it was lost meanwhile.

    Raises LockTimeoutError at once when another process has it.
    """
    lock = Lock(path)
    lock.acquire(AT_ONCE)
    try:
        yield lock.is_lost
    finally:
        lock.release()
