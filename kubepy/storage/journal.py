"""How a commit reaches the files, and how what was left of one is finished.

    1. stage    new contents go to temporary files in their folders; what cannot be written fails here
    2. record   one SQLite transaction (one fsync): rows PENDING, change log, counter. Now it is committed
    3. settle   each file is replaced or removed
    4. done     a SQLite transaction that need not be on disk: rows WRITTEN

A process that dies before 2 leaves temporary files; one that dies after it, or whose disk fills up, leaves PENDING
rows, which whoever takes the lock next settles. An edit by somebody else in between is seen by its stamp and wins: it
comes after the commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kubepy.storage.compare import digest_of, managers_path
from kubepy.storage.database import DURABLE, PENDING, WRITTEN, Database, LogEntry, Row, Stamp
from kubepy.storage.errors import ConflictError, FolderError
from kubepy.storage.folder import MAX_SIZE, TEMPORARY_PREFIX, TEMPORARY_SUFFIX, Folder
from kubepy.storage.keys import Key, path_of
from kubepy.storage.manifest import managers_of, to_file
from kubepy.storage.survey import obstacle_before

PRIVATE = frozenset({"secrets"})
LOG_LENGTH = 20_000  # revisions the change log reaches back at least
LOG_SLACK = 5_000
MAX_TOMBSTONES = 5_000
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
    """A PENDING row and the temporary file with its content ("": none)."""

    row: Row
    temporary: str


def stage(folder: Folder, row: Row, number: int, *, sync: bool) -> Staged:
    """Write the content of a row's file beside it, under a name of its own; the row gets its stamp."""
    assert row.json is not None
    data = to_file(row.json)
    if len(data) > MAX_SIZE:
        raise FolderError(f"{folder.absolute(path_of(row.key))}: would be larger than 3 MiB")
    directory = path_of(row.key).rpartition("/")[0]
    temporary = f"{directory}/{TEMPORARY_PREFIX}{number}{TEMPORARY_SUFFIX}"
    mode = 0o600 if row.resource in PRIVATE else 0o666
    stamp, racy = folder.write_temporary(temporary, data, mode, sync=sync)
    return Staged(row._replace(**stamp._asdict(), digest=digest_of(data), racy=int(racy)), temporary)


class Journal:
    """Commits to one folder. Everything here is for the holder of the lock."""

    def __init__(self, database: Database, folder: Folder, boot: str | None) -> None:
        self.database = database
        self.folder = folder
        self.boot = boot

    # --- commit ---

    def commit(self, commit: Commit, meta: Iterable[tuple[str, str | None]]) -> None:
        """Raises ConflictError when a file was edited since it was compared, FolderError when one cannot be written;
        then nothing is changed. Where a disk fills up after the commit is recorded, the FolderError says so."""
        staged: list[Staged] = []
        try:
            self._make_directories(commit.writes)
            for number, write in enumerate(commit.writes):
                staged.append(self._stage(write, number))
            self._record(staged, commit, meta)
        except BaseException:
            self._discard(commit.writes)
            raise
        try:
            self._settle(staged)
            self._trim()
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

    def _stage(self, write: Write, number: int) -> Staged:
        if write.expires is not None:
            row = Row(*write.key, write.revision, write.json, expires=write.expires)
            return Staged(row, "")
        path = path_of(write.key)
        before = self._check_unedited(path, write.before)
        if write.json is None:
            assert write.before is not None
            return Staged(write.before._replace(revision=write.revision, json=None, state=PENDING), "")
        replaces = str(before) if before else ""
        try:
            return self._stage_file(write, path, replaces, number)
        except OSError as error:
            raise FolderError(f"{self.folder.absolute(path)}: cannot be written: {error.strerror}") from error

    def _stage_file(self, write: Write, path: str, replaces: str, number: int) -> Staged:
        assert write.json is not None
        row = Row(*write.key, write.revision, write.json, state=PENDING, replaces=replaces)
        return stage(self.folder, row, number, sync=self.boot is None)

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
                self.folder.remove_empty(directory)

    def _record(self, staged: Sequence[Staged], commit: Commit, meta: Iterable[tuple[str, str | None]]) -> None:
        with self.database.write():
            self.database.put(one.row for one in staged if one.row.json is not None or one.row.expires is None)
            self.database.remove(one.row.key for one in staged if one.row.json is None and one.row.expires is not None)
            self.database.log(commit.log)
            self.database.set_counter("revision", commit.revision)
            for name, value in meta:
                self.database.set_value("meta", name, value)

    # --- settling ---

    def _settle(self, staged: Sequence[Staged]) -> None:
        files = [one for one in staged if one.row.expires is None]
        for one in files:
            settle(self.folder, one, sync=self.boot is None)
        rows = [one.row for one in files]
        tidy(self.folder, rows, sync=self.boot is None)
        with self.database.write(durable=False):
            self.database.set_state((row.key for row in rows), DURABLE if self.boot is None else WRITTEN)

    def _trim(self) -> None:
        """Keep the change log and the tombstones within bounds."""
        revision = self.database.counter("revision")
        if revision - self.database.counter("compacted") > LOG_LENGTH + LOG_SLACK:
            with self.database.write(durable=False):
                self.database.compact(revision - LOG_LENGTH)
        if self.database.tombstones() > MAX_TOMBSTONES:
            self._drop_tombstones()

    def _drop_tombstones(self) -> None:
        """Make the removal of files durable; then nothing needs to be known of them any more."""
        rows = [row for row in self.database.outlines() if row.json is None and row.state != PENDING]
        for directory in sorted({path_of(row.key).rpartition("/")[0] for row in rows}):
            if obstacle_before(self.folder, f"{directory}/"):
                return  # some other time
            self.folder.sync_directory(directory)
        with self.database.write(durable=False):
            self.database.remove(row.key for row in rows)


def _words(error: BaseException) -> str:
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)


def settle(folder: Folder, staged: Staged, *, sync: bool) -> None:
    """Bring the file of a PENDING row to what the row says, unless somebody else edited it since."""
    row, path = staged.row, path_of(staged.row.key)
    try:
        stamp = folder.stamp(path)
        if row.json is None:
            if stamp == row.stamp and folder.is_inside(path):
                folder.remove(path)
        elif stamp is None or str(stamp) == row.replaces:
            folder.replace(staged.temporary, path)
        else:
            folder.remove(staged.temporary)
        settle_managers(folder, row, sync=sync)
    except OSError as error:
        raise FolderError(f"{folder.absolute(path)}: cannot be replaced: {error.strerror}") from error


def settle_managers(folder: Folder, row: Row, *, sync: bool) -> None:
    """Keep the managers of an object that server-side apply has touched in a file beside it: a clone has them too."""
    data = managers_of(row.json) if row.json is not None else None
    path = managers_path(row.key)
    directory = path.rpartition("/")[0]
    if data is not None:
        folder.make_directory(directory)
        temporary = f"{directory}/{TEMPORARY_PREFIX}0{TEMPORARY_SUFFIX}"
        folder.write_temporary(temporary, data, 0o666, sync=sync)
        folder.replace(temporary, path)
    elif folder.is_directory(directory):
        folder.remove(path)


def tidy(folder: Folder, rows: Iterable[Row], *, sync: bool) -> None:
    """Remove folders that deletions left empty; ``sync``: make the entries of the others durable."""
    for directory in sorted({path_of(row.key).rpartition("/")[0] for row in rows}):
        if obstacle_before(folder, f"{directory}/"):
            continue  # not ours to tidy, whatever is there
        folder.remove_empty_managed(directory)
        folder.remove_empty(directory)
        if sync:
            folder.sync_directory(directory)
