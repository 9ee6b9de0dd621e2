"""Open ``.kubepy/index.db``, rebuilt when it is missing, of another version or damaged; in memory
where the folder cannot be written."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from math import inf

from kubepy import system
from kubepy.lazy import lazy_imports
from kubepy.storage.errors import FolderError, RemovedIndexError, is_disk_full
from kubepy.storage.folder import origin
from kubepy.storage.folder.database import DamagedError, Database, is_damage, remove_files
from kubepy.storage.folder.origin import ORIGIN_VALUE, own_link
from kubepy.storage.model import DELETED, MODIFIED, REBUILT

with lazy_imports():
    from kubepy.storage import processes, timeline
    from kubepy.storage.folder import locks

OWN = origin.OWN
INDEX = origin.INDEX
LOCK_TIMEOUT = 30.0  # seconds
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id() -> str | None:
    """Return the id of this start of the machine; None where the system has none (then every file
    is synced)."""
    try:
        with open(BOOT_ID, encoding="utf-8") as file:
            return file.read().strip() or None
    except OSError:
        return None


class StrangeIndexError(Exception):
    """The index, or SQLite's log beside it, was not made here: somebody has put it into the
    folder."""


class NoRoomError(FolderError):
    """The disk is full, so that not even what SQLite needs to read the index can be made."""


def make_own_folder(root: str, *, network: bool = False) -> None:
    """Make ``.kubepy/``, or make it private to its owner: the index holds Secrets.

    ``network``: the webhooks of a new one may be called. Raises FolderError, also for one that is
    not this user's.
    """
    path = os.path.join(root, OWN)
    try:
        if not os.path.lexists(path):
            origin.make(root, network=network)
        if not origin.is_own(root):
            raise _refusal(root)
        status = os.stat(path)
        is_own = status.st_uid == system.user_id()
        if is_own and system.is_open_to_others(stat.S_IMODE(status.st_mode)):
            os.chmod(path, 0o700)
    except OSError as error:
        is_removed = isinstance(error, FileNotFoundError) and os.path.isdir(
            root
        )  # at this very moment, once more
        kind = RemovedIndexError if is_removed else FolderError
        raise kind(f"{path}: cannot be made: {error.strerror}") from error

    if not is_own and not system.is_usable_folder(path):
        raise FolderError(
            f"{path} belongs to another user: Permission denied"
        ) from PermissionError(errno.EACCES, path)


def _refusal(root: str) -> FolderError:
    """Return the error for a ``.kubepy/`` that is not this user's, or that was removed at this very
    moment."""
    path = os.path.join(root, OWN)
    if not os.path.lexists(path) or origin.is_own(root):
        return RemovedIndexError(f"{path}: cannot be made: {os.strerror(errno.ENOENT)}")
    if link := own_link(root):
        return FolderError(f"{link} is a symbolic link")
    if origin.is_anothers(root):
        error = FolderError(f"{path} belongs to another user: Permission denied")
        error.__cause__ = PermissionError(errno.EACCES, path)
        return error
    return FolderError(
        f'{path} was not made by you on this machine, and cannot be renamed ("kubepy trust" uses '
        f"it)"
    )


def remove_leftovers(root: str) -> None:
    """Remove the temporary files in ``.kubepy/`` of processes that died, each named
    ``NAME.PID.tmp``, and every ``.kubepy/`` that they had not finished."""
    origin.remove_left_by_the_dead(root)
    own = os.path.join(root, OWN)
    for name in os.listdir(own):
        if name.endswith(".tmp") and not processes.is_alive(name.split(".")[-2]):
            os.unlink(os.path.join(own, name))


def open_existing(root: str) -> Database | None:
    """Open the index if there is one of this version that can be used here. Raises DamagedError,
    StrangeIndexError, NoRoomError."""
    path = os.path.join(root, OWN, INDEX)
    if not os.path.exists(path) or not origin.is_own(root):
        return None
    if origin.has_strange_log(root):
        raise StrangeIndexError("has a log that kubepy has not written here")
    database = None
    try:
        database = Database(path)
        if database.is_current():
            _check_origin(root, database)
            return database
    except UnicodeDecodeError as error:  # SQLite quotes a damaged schema
        raise DamagedError(str(error)) from error
    except sqlite3.Error as error:
        if database is not None:
            database.close()
        if is_damage(error):
            raise DamagedError(str(error)) from error
        if is_disk_full(error):
            raise NoRoomError(f"{path}: no space left on the disk to open it") from error
        return None  # not ours to read, or in a folder where SQLite cannot work

    database.close()
    return None


def _check_origin(root: str, database: Database) -> None:
    """Raise StrangeIndexError, DamagedError for an index that was not made for its folder."""
    try:
        codes = database.value("internal", ORIGIN_VALUE) or ""
        if not origin.is_own_index(root, codes) and not database.is_replaced():
            raise StrangeIndexError("was not made by kubepy here")
    except BaseException:
        database.close()
        raise


def create(root: str, revision: int = 0) -> Database:
    """Make a new, empty index in place of whatever is there; its revisions go on from the given
    one. For the holder of the lock. Raises FolderError."""
    path = os.path.join(root, OWN, INDEX)
    unfinished = path + ".new"
    try:
        remove_files(unfinished)
        os.close(os.open(unfinished, system.WRITE_NEW, 0o600))
        database = Database(unfinished)
        try:
            database.create(revision)
            codes = origin.index_codes(os.path.join(root, OWN), unfinished)
            with database.write():
                if codes:
                    database.set_value("internal", ORIGIN_VALUE, codes)
                if revision:
                    database.set_value("meta", REBUILT, str(revision))
        finally:
            database.close()
        remove_files(path)
        os.rename(unfinished, path)
        return Database(path)
    except (OSError, sqlite3.Error) as error:
        raise FolderError(f"{path}: cannot be made: {error}") from error


def begin(root: str) -> None:
    """Make the index of a new cluster, whose revisions begin at 1. Raises FolderError."""
    make_own_folder(root)
    lock = locks.Lock(os.path.join(root, OWN, locks.LOCK))
    lock.acquire(LOCK_TIMEOUT)
    try:
        try:
            existing = open_existing(root)
        except DamagedError:
            existing = None
        database = existing or create(root)
        if existing is None:
            database.set_built()
            database.set_value("internal", "boot", boot_id() or "")
        database.close()
        remove_leftovers(root)
        origin.sync_folder(os.path.join(root, OWN))
        origin.sync_folder(root)
        origin.sync_folder(os.path.dirname(os.path.abspath(root)))
    finally:
        lock.release()


def open_in_memory(root: str, *, empty: bool = False) -> Database:
    """Make a copy of the index in memory; an empty index if it cannot be copied, or if
    ``empty``."""
    database = Database(":memory:")
    if not empty and _copy_index(root, database):
        return database
    database.close()
    new = Database(":memory:")
    new.create()
    new.set_value("internal", "boot", boot_id() or "")
    return new


def _copy_index(root: str, database: Database) -> bool:
    """Copy the index, unless part of it is in a log (``-wal``): SQLite reads no log in a folder it
    cannot write to.

    Return whether it was copied.
    """
    from urllib.parse import quote

    path = os.path.join(root, OWN, INDEX)
    if not os.path.isfile(path) or not origin.is_own(root) or os.path.exists(f"{path}-wal"):
        return False
    try:
        source = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?immutable=1", uri=True)
    except sqlite3.Error:
        return False

    try:
        source.backup(database.connection)
        return database.is_current() and origin.is_own_index(
            root, database.value("internal", ORIGIN_VALUE) or ""
        )
    except (sqlite3.Error, DamagedError):
        return False
    finally:
        source.close()


def discard(root: str) -> None:
    """Remove a damaged index; the next access makes a new one. Raises FolderError."""
    path = os.path.join(root, OWN, INDEX)
    try:
        remove_files(path)
    except OSError as error:
        raise FolderError(f"{path} is damaged and cannot be removed: {error.strerror}") from error


def find_damage(database: Database) -> Iterator[str]:
    """Yield the contents of an index that no kubepy can have written, a line each."""
    try:
        yield from check_integrity(database)
        for row in database.rows():
            texts, numbers = (
                (*row.key, row.replaces, row.managers),
                (row.revision, *row.stamp, row.racy, row.state),
            )
            has_texts, has_numbers = _are(str, texts), _are(int, numbers)
            if not has_texts or not has_numbers or not isinstance(row.digest, bytes):
                yield f"{row[:3]}: a column has another type"
            json.loads(row.json or "null")
            row.replaced()
        database.check_log()
        database.counter("compacted")
        for entry in database.entries(0):
            json.loads(entry.json or "null")
            is_named = entry.type and entry.resource and entry.name
            has_state_before = entry.json is not None
            is_sound = (
                has_state_before
                if entry.type == DELETED
                else entry.type == MODIFIED or not has_state_before
            )
            if not _are(str, entry[1:5]) or not is_named or not is_sound:
                yield f"an entry of the change log has other types: {entry[:5]}"
        for noted in database.timeline(timeline.NEVER, inf):
            if not _are(int, noted[:2]) or not _are(str, (*noted.key, noted.note)):
                yield f"an entry of the timeline has other types: {noted[:3]}"
        for stamp, problem in database.problems().values():
            if not _are(int, (*stamp, problem.line)) or not isinstance(problem.reason, str):
                yield "a problem has other types"
        for table in ("meta", "internal"):
            for name in database.names(table):
                database.value(table, name)
    except (
        DamagedError,
        sqlite3.Error,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        yield str(error)


def _are(kind: type, values: tuple[object, ...]) -> bool:
    return all(isinstance(value, kind) for value in values)


def check_integrity(database: Database) -> Iterator[str]:
    """Yield what SQLite's own check finds wrong in a database, a line each."""
    for (line,) in database.connection.execute("PRAGMA integrity_check"):
        if line != "ok":
            yield f"index: {line}"
