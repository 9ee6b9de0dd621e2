"""Room on the disk that is kept for deletions: on a full disk they could not be written either, and
make room.

``.kubepy/reserve`` is a file without contents of use. It is removed when a deletion fails because
the disk is full, and made again when there is room for much more.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import suppress

from kubepy.storage.folder.index import OWN

NAME = "reserve"
BYTES = 512 * 1024
NEEDED = 3 * BYTES  # free on the disk before the file is made
_FULL = (errno.ENOSPC, errno.EDQUOT)


def keep(root: str) -> None:
    """Make the file if it is not there and there is room for it."""
    path = _path(root)
    if os.path.lexists(path):
        return
    with suppress(OSError):
        disk = os.statvfs(os.path.dirname(path))
        if disk.f_bavail * disk.f_frsize >= NEEDED:
            _make(path)


def release(root: str) -> bool:
    """Remove the file; return whether it was there, so that there is room now."""
    try:
        os.unlink(_path(root))
    except OSError:
        return False
    return True


def size_of(path: str) -> int:
    """Return the size of a file in bytes, 0 without one."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def is_full(error: BaseException | None) -> bool:
    """Tell whether an error has come of a full disk, or of a user's share of it that is used up."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if isinstance(error, sqlite3.OperationalError) and "disk is full" in str(error):
            return True
        error = error.__cause__
    return False


def _path(root: str) -> str:
    return os.path.join(root, OWN, NAME)


def _make(path: str) -> None:
    """Make the file, with room on the disk for all of it. Raises OSError, and leaves nothing
    then."""
    descriptor = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    try:
        os.posix_fallocate(descriptor, 0, BYTES)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(descriptor)
