"""What files themselves tell of where they were made: their inodes, their times of birth, and
whether git has them."""

from __future__ import annotations

import os
import sqlite3
import stat
import struct
from collections.abc import Iterator
from contextlib import closing
from itertools import islice

from kubepy import system
from kubepy.storage.folder import gitindex
from kubepy.storage.folder.database import Database, Stamp
from kubepy.storage.folder.files import read_file, stamp_of
from kubepy.storage.folder.paths import ancestors_of, parent_of, path_of
from kubepy.storage.model import Key

SETTINGS_FILE = "kubepy.yaml"
SAMPLE = 200  # rows of an index that are compared with their files
STATX_SIZE = 256  # bytes of statx(2)'s answer
STATX_BTIME = 0x800
_MASK_AT, _SECONDS_AT, _NANOSECONDS_AT = 0, 80, 88
TICK_NS = 5 * 10**7  # more than two times that are set together differ
AT_FDCWD, AT_SYMLINK_NOFOLLOW = -100, 0x100
UNREADABLE = ("", 0, 0)
_GIT_STAT, _GIT_STAT_AT = (
    struct.Struct(">IIII"),
    8,
)  # of an entry of git's index: mtime, its nanoseconds, device, inode


def birth_ns(path: str) -> int:
    """Return when a file was made, in nanoseconds: nobody can set that time. 0 where the system
    does not tell."""
    import ctypes

    statx = getattr(system.c_library(), "statx", None)
    if statx is None:
        return 0
    answer = ctypes.create_string_buffer(STATX_SIZE)
    if statx(AT_FDCWD, os.fsencode(path), AT_SYMLINK_NOFOLLOW, STATX_BTIME, answer) != 0:
        return 0
    if not int.from_bytes(answer.raw[_MASK_AT : _MASK_AT + 4], "little") & STATX_BTIME:
        return 0
    seconds = int.from_bytes(answer.raw[_SECONDS_AT : _SECONDS_AT + 8], "little", signed=True)
    return seconds * 10**9 + int.from_bytes(
        answer.raw[_NANOSECONDS_AT : _NANOSECONDS_AT + 4], "little"
    )


def has_modes(path: str) -> bool:
    """Return whether the file system of a file has modes: if not, everything on it is for
    everybody."""
    before = stat.S_IMODE(os.stat(path).st_mode)
    try:
        os.chmod(path, 0o600)
        has_changed = stat.S_IMODE(os.stat(path).st_mode) == 0o600
        os.chmod(path, before)
    except OSError:
        return True
    return has_changed


def has_set_times(path: str) -> bool:
    """Return whether somebody has set the time of modification of a file, as archives do: it is
    before the file was made, or after its last change."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    if status.st_mtime_ns > status.st_ctime_ns + TICK_NS:
        return True
    return status.st_mtime_ns < birth_ns(path) - TICK_NS


# --- an index without marks -----------------------------------------------------------------------


def knows_its_files(root: str, index: str) -> bool:
    """Return whether an index has the inodes and change times of the files around it, which it can
    only have from here.

    ``kubepy.yaml`` is enough; else it must know half of the objects' files that it names first.
    """
    if not os.path.isfile(index):
        return False
    try:
        with closing(Database(index)) as database:
            text = database.value("internal", "settings")
            if text is not None and _has_stamp(root, SETTINGS_FILE, _settings_stamp(text)):
                return True
            found = [
                _has_stamp(root, path, stamp) for path, stamp in islice(_rows(database), SAMPLE)
            ]
    except (
        sqlite3.Error,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        RecursionError,
    ):  # damaged, or no index
        return False

    return 2 * sum(found) > len(found)


def _settings_stamp(text: str) -> str:
    import json

    return str(json.loads(text)["stamp"])


def _rows(database: Database) -> Iterator[tuple[str, str]]:
    """Yield the paths and the stamps of objects in an index that have a file."""
    rows = database.connection.execute(
        "SELECT resource, namespace, name, mtime_ns, size, inode, ctime_ns FROM objects "
        "WHERE inode > 0 AND json IS NOT NULL ORDER BY resource, namespace, name"
    )
    for resource, namespace, name, *stamp in rows:
        yield path_of(Key(resource, namespace, name)), str(Stamp(*stamp))


def _has_stamp(root: str, path: str, stamp: str) -> bool:
    """Return whether a file has a stamp and lies in the state folder itself.

    What is reached through a link, symbolic or hard, tells nothing: its stamp can be read, and put
    into an index, by whoever has the file somewhere else.
    """
    folders = ancestors_of(parent_of(path))
    if any(os.path.islink(os.path.join(root, folder)) for folder in folders):
        return False
    try:
        status = os.lstat(os.path.join(root, path))
    except OSError:
        return False
    return status.st_nlink == 1 and str(stamp_of(status)) == stamp


def note_in_index(path: str, name: str, words: str, *, most: int) -> None:
    """Add words to one of the store's own values in an index, and keep as many of the former ones.
    Raises sqlite3.Error."""
    with closing(Database(path)) as database, database.write():
        former = [
            word
            for word in (database.value("internal", name) or "").split()
            if word not in words.split()
        ]
        database.set_value("internal", name, " ".join([*former[-most:], *words.split()]))


# --- git ------------------------------------------------------------------------------------------


def is_known_to_git(folder: str) -> bool:
    """Return whether files of a folder are in the index of the repository around it, as far as that
    can be read."""
    return any(True for _ in _git_entries(folder))


def is_written_by_git(folder: str, name: str) -> bool:
    """Return whether git has written a file of a folder, and nobody else since."""
    path = os.path.join(folder, name)
    worktree = gitindex.find_worktree(os.path.realpath(os.path.dirname(folder)))
    try:
        status = os.lstat(path)
        if (
            worktree is None
            or status.st_mtime_ns > os.stat(os.path.join(worktree.directory, "index")).st_mtime_ns
        ):
            return False  # git writes its index last
    except OSError:
        return False
    mine = (name, status.st_ino & 0xFFFFFFFF, status.st_mtime_ns)
    return any(entry in (mine, UNREADABLE) for entry in _git_entries(folder))


def _git_entries(folder: str) -> Iterator[tuple[str, int, int]]:
    """Yield the files of a folder in git's index: their names in it, inodes (32 bits) and times of
    modification, in ns.

    UNREADABLE stands for all that is in an index that cannot be read.
    """
    folder = os.path.realpath(folder)
    worktree = gitindex.find_worktree(os.path.dirname(folder))
    if worktree is None:
        return
    try:
        content = read_file(os.path.join(worktree.directory, "index"))
    except OSError:  # nothing has been added yet
        return

    prefix = os.fsencode(os.path.relpath(folder, worktree.root)) + b"/"
    try:
        for entry in gitindex.entries(content, gitindex.size_of_names(content)):
            if entry.path.startswith(prefix):
                seconds, nanoseconds, _, inode = _GIT_STAT.unpack_from(
                    content, entry.at + _GIT_STAT_AT
                )
                yield (
                    os.fsdecode(entry.path.removeprefix(prefix)),
                    inode,
                    seconds * 10**9 + nanoseconds,
                )
    except gitindex.IndexFormatError:
        yield UNREADABLE
