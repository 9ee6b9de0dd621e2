"""Opening ``.kubepy/index.db``: made anew when it is missing, of another version or damaged; in memory where the
folder cannot be written."""

from __future__ import annotations

import os
import sqlite3

from kubepy.storage.database import Database, remove_files
from kubepy.storage.errors import FolderError

OWN = ".kubepy"
INDEX = "index.db"
LOCK_TIMEOUT = 30.0  # seconds
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id() -> str | None:
    """What changes whenever the machine starts; None where the system does not say (then every file is synced)."""
    try:
        with open(BOOT_ID, encoding="ascii") as file:
            return file.read().strip() or None
    except OSError:
        return None


def make_own_folder(root: str) -> None:
    """Make ``.kubepy/``. Raises FolderError."""
    path = os.path.join(root, OWN)
    if os.path.islink(path):
        raise FolderError(f"{path} is a symbolic link")
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise FolderError(f"{path}: cannot be made: {error.strerror}") from error


def open_existing(root: str) -> Database | None:
    """The index if there is a sound one of this version that can be used here."""
    path = os.path.join(root, OWN, INDEX)
    if os.path.islink(os.path.dirname(path)) or not os.path.exists(path):
        return None
    try:
        database = Database(path)
    except sqlite3.Error:  # a folder, or not ours to read
        return None
    try:
        if database.is_current():
            return database
    except sqlite3.Error:  # not a database, damaged, or in a folder where SQLite cannot work
        pass
    database.close()
    return None


def create(root: str) -> Database:
    """A new, empty index in place of whatever is there. For the holder of the lock. Raises FolderError."""
    path = os.path.join(root, OWN, INDEX)
    unfinished = path + ".new"
    try:
        remove_files(unfinished)
        _create_at(unfinished)
        remove_files(path)
        os.rename(unfinished, path)
        return Database(path)
    except (OSError, sqlite3.Error) as error:
        raise FolderError(f"{path}: cannot be made: {error}") from error


def _create_at(path: str) -> None:
    database = Database(path)
    try:
        database.create()
    finally:
        database.close()


def begin(root: str) -> None:
    """The index of a new cluster, whose revisions begin at 1. Raises FolderError."""
    from kubepy.storage.locks import LOCK, Lock

    make_own_folder(root)
    lock = Lock(os.path.join(root, OWN, LOCK))
    lock.acquire(LOCK_TIMEOUT)
    try:
        existing = open_existing(root)
        database = existing or create(root)
        if existing is None:
            database.set_built()
        database.close()
    finally:
        lock.release()


def open_in_memory(root: str) -> Database:
    """A copy of the index in memory, an empty one if it cannot be copied."""
    database = Database(":memory:")
    if _copy(os.path.join(root, OWN, INDEX), database):
        return database
    database.close()
    empty = Database(":memory:")
    empty.create()
    return empty


def _copy(path: str, database: Database) -> bool:
    """Copy an index whose log (``-wal``) is all in it; SQLite itself reads none in a folder it cannot write to."""
    from urllib.parse import quote

    if not os.path.isfile(path) or os.path.islink(os.path.dirname(path)) or os.path.exists(f"{path}-wal"):
        return False
    try:
        source = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?immutable=1", uri=True)
    except sqlite3.Error:
        return False
    try:
        source.backup(database.connection)
        return database.is_current()
    except sqlite3.Error:
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
