"""Locks in ``.kubepy/`` that die with their process, and the name of the process that holds one.

The holder writes its pid and command into a file beside the lock, and removes that file when it
lets go. Whoever takes the lock and finds such a file knows that the last holder died.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kubepy import system
from kubepy.storage.errors import FolderError, LockTimeoutError, RemovedIndexError

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = "lock"  # the writers'
POLL_INTERVAL = 0.005  # seconds
LOOK_INTERVAL = 0.5  # seconds between two checks whether another process holds the lock by now
MAX_TURNS = 10  # a waiter that never gets a turn gives up after its patience times this factor
# Asking for the holder of a lock takes the lock for an instant; taking it "at once" outlasts that.
AT_ONCE = 0.1  # seconds
MAX_HOLDER = 1000  # characters
NAMELESS = "another process"  # a holder that has not written its name, for want of room or yet


class Lock:
    """One lock file, and beside it the file that names its holder."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._holder_path = f"{path}.holder"
        self._lock: BaseFileLock | None = None
        self._file: tuple[int, int] | None = None  # the lock file that was taken

    def acquire(self, timeout: float) -> bool:
        """Take the lock; return whether its last holder died with it. Raises LockTimeoutError,
        FolderError."""
        if not self.try_acquire(timeout):
            raise self._refusal(timeout)
        return self._note_holder()

    def acquire_in_turn(self, patience: float) -> bool:
        """Take the lock where many processes may want it at once; return whether its last holder
        died with it.

        ``patience``: seconds that one of the others may hold it. Raises LockTimeoutError,
        FolderError.
        """
        start = since = time.monotonic()
        holding = self._identify_holding()
        while not self.try_acquire(min(patience, LOOK_INTERVAL)):
            now, current_holding = time.monotonic(), self._identify_holding()
            if current_holding not in (None, holding):
                since, holding = now, current_holding
            if now - since >= patience:
                raise self._refusal(patience)
            if now - start >= MAX_TURNS * patience:
                raise self._refusal(MAX_TURNS * patience)
        return self._note_holder()

    def _refusal(self, waited: float) -> LockTimeoutError:
        holder = self.describe() or NAMELESS
        return LockTimeoutError(f"{self.path} is held by {holder} (waited {waited:g} s)")

    def _identify_holding(self) -> tuple[int, int] | None:
        """Identify the present holding of the lock by the holder's file, which each holder writes
        anew."""
        try:
            status = os.stat(self._holder_path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status.st_ino, status.st_mtime_ns

    def _note_holder(self) -> bool:
        """Write the holder's file; return whether the last holder left one."""
        program, *arguments = sys.argv or [""]
        command = " ".join([os.path.basename(program), *arguments])[:200].replace("\n", " ")
        flags = system.WRITE | os.O_TRUNC
        try:
            was_left = os.path.exists(self._holder_path)
            self._file = self._identify()
            descriptor = os.open(self._holder_path, flags, 0o600)
            try:
                with open(descriptor, "w", encoding="utf-8", errors="replace") as file:
                    file.write(f"{os.getpid()}\n{command}")
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise  # on a full disk the holder is nameless
        except OSError as error:
            self.drop()
            kind = RemovedIndexError if isinstance(error, FileNotFoundError) else FolderError
            raise kind(f"{self._holder_path}: cannot be written: {error.strerror}") from error

        return was_left

    def try_acquire(self, timeout: float) -> bool:
        """Take the lock without naming the holder; return whether it was free in time. Raises
        FolderError."""
        from filelock import FileLock, Timeout  # a command that only reads takes no lock

        folder = os.path.dirname(self.path)
        root = os.path.dirname(folder)
        if not os.path.isdir(folder):  # FileLock would make it, for a state folder that is gone
            raise RemovedIndexError(f"{self.path}: cannot be locked: {os.strerror(errno.ENOENT)}")
        lock = FileLock(self.path, timeout=timeout)
        try:
            before = os.stat(root)
            lock.acquire(poll_interval=POLL_INTERVAL)
            if not os.path.samestat(
                before, os.stat(root)
            ):  # it went after that look, and FileLock has made it
                lock.release()
                if os.listdir(folder) == [os.path.basename(self.path)]:
                    os.unlink(self.path)
                    os.rmdir(folder)
                    if not os.listdir(root):
                        os.rmdir(root)
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        except Timeout:
            return False
        except OSError as error:
            is_removed = isinstance(
                error, (FileNotFoundError, FileExistsError)
            )  # between two looks of FileLock
            kind = RemovedIndexError if is_removed else FolderError
            raise kind(f"{self.path}: cannot be locked: {error.strerror}") from error

        self._lock = lock
        return True

    def is_lost(self) -> bool:
        """Return whether the folder of locks was removed meanwhile: another process may hold a lock
        of this name."""
        return self._identify() != self._file

    def _identify(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status.st_dev, status.st_ino

    def release(self, last: Callable[[], object] = lambda: None) -> None:
        """Let go of the lock, the holder's file first; ``last`` is called between the two."""
        assert self._lock is not None
        try:
            if not self.is_lost():
                os.unlink(self._holder_path)
            last()
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
        """Return the process that holds the lock now, None when none does."""
        description = self.describe()
        if description is None:
            return None
        is_locked = self._is_locked()
        if is_locked is None:
            is_locked = not self.try_acquire(0)
            if not is_locked:
                self.drop()
        return description if is_locked else None

    def _is_locked(self) -> bool | None:
        """Ask as filelock does, whose import costs a command that only reads more than all else
        here; None where the system does not answer."""
        try:
            descriptor = os.open(self.path, system.UPDATE)
            try:
                return system.is_locked(descriptor)
            finally:
                os.close(descriptor)
        except OSError:
            return None

    def describe(self) -> str | None:
        """Return what the present holder (or the last, if it died) wrote about itself, None when
        there is none."""
        try:
            descriptor = os.open(self._holder_path, system.READ)
            with open(descriptor, encoding="utf-8", errors="replace") as file:
                pid, _, command = file.read(MAX_HOLDER).partition("\n")
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:  # a symbolic link, which is never followed
                return None
            raise
        return f"process {pid} ({command})" if pid else NAMELESS


@contextmanager
def hold(path: str) -> Iterator[Callable[[], bool]]:
    """Hold a lock for the length of a block, which gets a function that returns whether the lock
    was lost meanwhile.

    Raises LockTimeoutError at once when another process has it.
    """
    lock = Lock(path)
    lock.acquire(AT_ONCE)
    try:
        yield lock.is_lost
    finally:
        lock.release()
