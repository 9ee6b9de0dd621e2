"""Room on the disk that is kept for deletions: on a full disk they could not be written either, and
make room.

``.kubepy/reserve`` is a file without contents of use. Where a disk is nearly full, a commit that
makes room gets a part of it, and all of it if that is not enough. After the commit the file is made
again, as large as there is room: others would take what is free.
"""

from __future__ import annotations

import os
from contextlib import suppress
from math import inf

from kubepy import system
from kubepy.storage.folder.index import OWN

NAME = "reserve"
BYTES = 1280 * 1024  # enough for the deletion of an object of half a MB, which is written twice
SHARE = 3  # the file takes so much of what is free: a third
PART = 128 * 1024  # a commit of a few objects takes no more
LOW = 2 * PART  # a disk on which less is free is nearly full
_BLOCK = 4096


class Reserve:
    """The file of one folder. For the holder of the lock.

    :ivar is_in_use: a part of it is given up.
    :ivar was_used: it was, since this was last set.
    """

    def __init__(self, root: str) -> None:
        self._path = os.path.join(root, OWN, NAME)
        self.is_in_use = self.was_used = False

    def is_low(self) -> bool:
        """Return whether the disk is nearly full."""
        return self._free_bytes() < LOW

    def make(self) -> None:
        """Make the file if it is not there, or is not whole, and there is room for much more."""
        if (size := size_of(self._path)) < BYTES:
            share = min(BYTES, (size + self._free_bytes()) / SHARE)
            if share == BYTES or share >= size + PART:
                self._grow(share)

    def give_part(self) -> None:
        """Give a part of the room up."""
        self.is_in_use = self.was_used = True
        with suppress(OSError):
            os.truncate(self._path, max(size_of(self._path) - PART, 0))

    def give_up(self) -> bool:
        """Give all of the room up; return whether there was some."""
        self.is_in_use = self.was_used = True
        size = size_of(self._path)
        with suppress(OSError):
            os.truncate(self._path, 0)
        return size > 0

    def take_back(self) -> None:
        """Make the file again, as large as there is room."""
        if self.is_in_use:
            self.is_in_use = False
            self._grow(BYTES)

    def _grow(self, wanted: float) -> None:
        """Make the file, or make it larger, as far as there is room."""
        with suppress(OSError):
            descriptor = os.open(self._path, system.WRITE, 0o600)
            try:
                room = os.fstat(descriptor).st_size + self._free_bytes()
                size = int(min(wanted, room)) // _BLOCK * _BLOCK
                system.reserve(descriptor, size)
            finally:
                os.close(descriptor)

    def _free_bytes(self) -> float:
        """Return how much is free on the disk for this user, infinity where it does not tell."""
        try:
            return system.free_bytes(os.path.dirname(self._path))
        except OSError:
            return inf


def size_of(path: str) -> int:
    """Return the size of a file in bytes, 0 without one."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
