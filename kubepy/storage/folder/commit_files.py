"""How a commit reaches the files, and how what was left of one is finished.

    1. stage    new contents go to temporary files in their folders, and are synced; what cannot be written fails here
    2. record   one SQLite transaction (one fsync): rows PENDING, change log, counter. Now it is committed
    3. settle   each file is replaced or removed, and so is the file of managers beside it
    4. done     a SQLite transaction that need not be on disk: rows WRITTEN
    5. sync     before the command ends: the entries of the folders are synced, rows DURABLE

A file under its final name is always whole, since its content is on disk before it gets the name. A process that dies
before 2 leaves temporary files; one that dies after it, or whose disk fills up, leaves PENDING rows, which the next
holder of the lock settles. An edit by somebody else in between is seen by its stamp and wins: it came after the commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kubepy.storage.errors import ConflictError, FolderError
from kubepy.storage.folder.compare import digest_of, managers_path
from kubepy.storage.folder.database import DURABLE, NO_FILE, PENDING, Database, LogEntry, Row, Stamp
from kubepy.storage.folder.files import (
    MANAGED,
    MAX_SIZE,
    PRIVATE,
    SYNC_EACH,
    TEMPORARY_PREFIX,
    TEMPORARY_SUFFIX,
    Folder,
    UnreadableError,
)
from kubepy.storage.folder.manifest import managers_of, to_edited_file, to_file
from kubepy.storage.folder.paths import path_of
from kubepy.storage.folder.scan import obstacle_before
from kubepy.storage.model import Key

LOG_LENGTH = 20_000  # revisions the change log reaches back at least
LOG_SLACK = 5_000
MAX_TOMBSTONES = 5_000
MAX_REPLACES = 4_000  # characters of a row's unsynced versions, after which they are synced without waiting
DONE_NEVERTHELESS = "the change itself is made: the files follow as soon as they can be written"


class Write(NamedTuple):
    """One object's change in a commit. ``json`` None: deleted. ``before`` is its row, None or a tombstone: none."""

    key: Key
    before: Row | None
    json: str | None
    revision: int
    expires: float | None = None


class Commit(NamedTuple):
    """Changes that become visible together, their log entries, and the revision after them."""

    writes: list[Write]
    log: list[LogEntry]
    revision: int


class Staged(NamedTuple):
    """A PENDING row and the temporary files with its content and its managers ("": none)."""

    row: Row
    temporary: str
    managers: str = ""
    present: Stamp | None = None  # of the file that is to be replaced


def stage(folder: Folder, row: Row, number: int, *, sync: bool, before: str | None = None) -> Staged:
    """Write the content of a row's file beside it, under a name of its own; the row gets its stamp.

    ``sync``: make the contents durable. ``before``: the JSON of the object that the present file holds, where it is
    known. Raises FolderError for an object that is too large and for a present file that cannot be read, OSError.
    """
    data, canonical = _content(folder, row, before)
    if len(data) > MAX_SIZE:
        raise FolderError(f"{folder.absolute(path_of(row.key))}: would be larger than 3 MiB")
    directory = path_of(row.key).rpartition("/")[0]
    temporary = f"{directory}/{TEMPORARY_PREFIX}{number}{TEMPORARY_SUFFIX}"
    mode = 0o600 if row.resource in PRIVATE else 0o666
    stamp, racy = folder.write_temporary(temporary, data, mode, sync=sync)
    row = row._replace(**stamp._asdict(), digest=digest_of(data), racy=int(racy), canonical=canonical)
    return Staged(row, temporary)


def _content(folder: Folder, row: Row, before: str | None) -> tuple[bytes, int]:
    """The content of a row's file, and 1 if it is canonical. A file to which somebody gave another form keeps it."""
    assert row.json is not None
    if row.canonical:
        return to_file(row.json), 1
    try:
        present, _, _ = folder.read(path_of(row.key))
    except FileNotFoundError:
        return to_file(row.json), 1
    except UnreadableError as error:
        raise FolderError(f"{folder.absolute(path_of(row.key))}: {error}") from error
    if before is not None and present == to_file(before):
        return to_file(row.json), 1
    return to_edited_file(row.json, present), 0


def stage_managers(folder: Folder, row: Row, number: int, *, sync: bool) -> str:
    """Write the managers of an object that server-side apply has touched to a temporary file; returns its path or "".

    They are kept in a file beside the object's, so that a clone has them too.
    """
    data = managers_of(row.json) if row.json is not None else None
    if data is None:
        return ""
    directory = f"{path_of(row.key).rpartition('/')[0]}/{MANAGED}"
    folder.make_directory(directory)
    temporary = f"{directory}/{TEMPORARY_PREFIX}{number}{TEMPORARY_SUFFIX}"
    folder.write_temporary(temporary, data, 0o666, sync=sync)
    return temporary


class Journal:
    """Commits to one folder. Everything here is for the holder of the lock."""

    def __init__(self, folder: Folder, boot: str | None) -> None:
        self.folder = folder
        self.boot = boot
        self.is_recorded = False  # from then on the commit has happened, whatever else fails

    # --- commit ---

    def commit(self, database: Database, commit: Commit, meta: Iterable[tuple[str, str | None]]) -> None:
        """Raises ConflictError when a file was edited since it was compared, FolderError when one cannot be written;
        then nothing is changed. Where a disk fills up after the commit is recorded, the FolderError says so."""
        staged: list[Staged] = []
        try:
            self._make_directories(commit.writes)
            files = sum(write.json is not None and write.expires is None for write in commit.writes)
            for number, write in enumerate(commit.writes):
                staged.append(self._stage(write, number, sync=files <= SYNC_EACH))
            if files > SYNC_EACH:
                self.folder.sync_all()
            self._record(database, staged, commit, meta)
            self.is_recorded = True
        except BaseException:
            self._discard(commit.writes)
            raise
        try:
            self._settle(database, staged)
            self._trim(database)
        except BaseException as error:
            self._discard(commit.writes)  # the rows are PENDING, and hold all that the files are to be
            if isinstance(error, (FolderError, OSError, sqlite3.OperationalError)):
                raise FolderError(f"{_words(error)} ({DONE_NEVERTHELESS})") from error
            raise

    def _make_directories(self, writes: Iterable[Write]) -> None:
        """Raises FolderError where something is in the way of a folder, that of managers included."""
        written = [write for write in writes if write.json is not None and write.expires is None]
        for directory in sorted({path_of(write.key).rpartition("/")[0] for write in written}):
            self.folder.make_directory(directory)
        managed = (managers_path(write.key) for write in written if '"managedFields"' in (write.json or ""))
        for directory in sorted({path.rpartition("/")[0] for path in managed}):
            if obstacle := obstacle_before(self.folder, f"{directory}/"):
                raise FolderError(f"{self.folder.absolute(obstacle.path)}: {obstacle.why}")

    def _stage(self, write: Write, number: int, *, sync: bool) -> Staged:
        if write.expires is not None:
            row = Row(*write.key, write.revision, write.json, expires=write.expires)
            return Staged(row, "")
        path = path_of(write.key)
        before = self._check_unedited(path, write.before)
        if write.json is None:
            assert write.before is not None
            return Staged(write.before._replace(revision=write.revision, json=None, state=PENDING), "")
        replaces = _replaced_versions(write.before, has_file=before is not None)
        present = write.before if before is not None else None
        row = Row(*write.key, write.revision, write.json, state=PENDING, replaces=replaces,
                  canonical=present.canonical if present else 1)
        try:
            staged = stage(self.folder, row, number, sync=sync, before=present.json if present else None)
            managers = stage_managers(self.folder, row, number, sync=sync)
            return staged._replace(managers=managers, present=before)
        except OSError as error:
            raise FolderError(f"{self.folder.absolute(path)}: cannot be written: {error.strerror}") from error

    def _check_unedited(self, path: str, before: Row | None) -> Stamp | None:
        stamp = self.folder.stamp(path)
        expected = before.stamp if before and before.json is not None else None
        if stamp != expected:
            raise ConflictError(f"{self.folder.absolute(path)} was edited in the meantime")
        return stamp

    def _discard(self, writes: Iterable[Write]) -> None:
        """Remove what was staged, and the folders made for it."""
        directories = {path_of(write.key).rpartition("/")[0] for write in writes if write.expires is None}
        for directory in sorted(directories):
            if self.folder.is_inside(f"{directory}/"):
                self.folder.remove_temporaries(directory)
                self.folder.remove_temporaries(f"{directory}/{MANAGED}")
                self.folder.remove_empty_managed(directory)
                self.folder.remove_empty(directory)

    def _record(self, database: Database, staged: Sequence[Staged], commit: Commit,
                meta: Iterable[tuple[str, str | None]]) -> None:
        with database.write():
            database.put(one.row for one in staged if one.row.json is not None or one.row.expires is None)
            database.remove(one.row.key for one in staged if one.row.json is None and one.row.expires is not None)
            database.log(commit.log)
            database.set_counter("revision", commit.revision)
            for name, value in meta:
                database.set_value("meta", name, value)

    # --- settling ---

    def _settle(self, database: Database, staged: Sequence[Staged]) -> None:
        rows = [settle(self.folder, one) for one in staged if one.row.expires is None]
        tidy(self.folder, rows)
        with database.write(durable=False):
            database.mark_written(rows)
        if self.boot is None or any(len(row.replaces) > MAX_REPLACES for row in rows):
            sync_written(database, self.folder)

    def _trim(self, database: Database) -> None:
        """Keep the change log and the tombstones within bounds."""
        revision = database.counter("revision")
        if revision - database.counter("compacted") > LOG_LENGTH + LOG_SLACK:
            with database.write(durable=False):
                database.compact(revision - LOG_LENGTH)
        if database.tombstones() > MAX_TOMBSTONES:
            self._drop_tombstones(database)

    def _drop_tombstones(self, database: Database) -> None:
        """Make the removal of files durable; then nothing needs to be known of them any more."""
        rows = [row for row in database.outlines() if row.json is None and row.state != PENDING]
        directories = {path_of(row.key).rpartition("/")[0] for row in rows}
        if any(obstacle_before(self.folder, f"{directory}/") for directory in directories):
            return  # some other time
        self.folder.sync_directories(directories)
        with database.write(durable=False):
            database.remove(row.key for row in rows)


def _words(error: BaseException) -> str:
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)


def _replaced_versions(before: Row | None, *, has_file: bool) -> str:
    """The versions of a file that a power cut may bring back once it is replaced (``Row.replaces``)."""
    if before is None:
        return NO_FILE
    newest = [str(before.version) if has_file else NO_FILE]
    if before.state == DURABLE:
        return newest[0]
    if not has_file:  # a tombstone whose file may come back
        newest.append(str(before.version))
    return " ".join([*newest, *map(str, before.replaced())])


def settle(folder: Folder, staged: Staged) -> Row:
    """Bring the files of a PENDING row to what it says, unless somebody else edited them since; returns the row with
    the change time and the stamp of managers that they have now. Raises FolderError."""
    row, path = staged.row, path_of(staged.row.key)
    try:
        stamp = folder.stamp(path)
        if row.json is None:
            if stamp == row.stamp and folder.is_inside(path):
                folder.remove(path)
        elif stamp is None or stamp == staged.present:
            folder.replace(staged.temporary, path)
            replaced = folder.stamp(path)
            row = row._replace(ctime_ns=replaced.ctime_ns if replaced else 0)
        else:
            folder.remove(staged.temporary)
        return row._replace(managers=settle_managers(folder, row, staged.managers))
    except OSError as error:
        raise FolderError(f"{folder.absolute(path)}: cannot be replaced: {error.strerror}") from error


def settle_managers(folder: Folder, row: Row, temporary: str) -> str:
    """Put the staged managers in their place, or remove those of an object that has none; returns their stamp.

    A folder in that place stays: it costs the managers, never the commit.
    """
    path = managers_path(row.key)
    if folder.is_directory(path):
        if temporary:
            folder.remove(temporary)
        return ""
    if temporary:
        folder.replace(temporary, path)
        return str(folder.stamp(path) or "")
    if folder.is_directory(path.rpartition("/")[0]):
        folder.remove(path)
    return ""


def tidy(folder: Folder, rows: Iterable[Row]) -> None:
    """Remove folders that deletions left empty."""
    for directory in sorted({path_of(row.key).rpartition("/")[0] for row in rows}):
        if not obstacle_before(folder, f"{directory}/"):  # else not ours to tidy, whatever is there
            folder.remove_empty_managed(directory)
            folder.remove_empty(directory)


def sync_written(database: Database, folder: Folder) -> None:
    """Make the folder entries of all WRITTEN files durable, and mark their rows so. No lock is needed for it.

    Raises OSError, sqlite3.Error.
    """
    written = database.unsynced()
    if not written:
        return
    directories = {path_of(key).rpartition("/")[0] for key, _ in written}
    managed = {path for directory in directories if folder.is_directory(path := f"{directory}/{MANAGED}")}
    folder.sync_directories(directories | managed)
    with database.write():
        database.mark_durable(written)
