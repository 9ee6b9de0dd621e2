"""Commit changes to the files of the folder: no file under its final name is ever half written, and
no recorded change is ever lost.

    1. stage    new contents go to temporary files in their folders, and are synced; what cannot be written fails here
    2. record   one SQLite transaction (one fsync): rows PENDING, change log, counter. Now it is committed
    3. settle   each file is renamed into place or removed, and so is the file of managers beside it
    4. mark     a SQLite transaction that need not be on disk: rows WRITTEN
    5. sync     before the command ends: the entries of the folders are synced, rows DURABLE

A file under its final name is always whole, since its content is on disk before it gets the name. A
process that dies before 2 leaves temporary files; one that dies after it, or whose disk fills up,
leaves PENDING rows, which the next holder of the lock settles (``recovery``). An edit by somebody
else in between is seen by its stamp, or when the file has come out of its place (``replacing``),
and wins: it came after the commit.
"""  # noqa: E501

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from kubepy.storage import yaml
from kubepy.storage.errors import ConflictError, FolderError, RemovedError
from kubepy.storage.folder import replacing
from kubepy.storage.folder.compare import digest_of, managers_path
from kubepy.storage.folder.database import (
    DURABLE,
    NO_FILE,
    PENDING,
    Database,
    Place,
    Row,
    Stamp,
    row_hash,
    sum_of,
)
from kubepy.storage.folder.files import (
    MANAGED,
    MAX_SIZE,
    PRIVATE,
    SYNC_EACH,
    TEMPORARY_PREFIX,
    TEMPORARY_SUFFIX,
    StateFolder,
    UnreadableError,
    is_racy,
)
from kubepy.storage.folder.manifest import managers_of, to_edited_file, to_file
from kubepy.storage.folder.paths import parent_of, path_of
from kubepy.storage.folder.scan import find_obstacle
from kubepy.storage.folder.settings import SettingsEdit, discard_staged, finish
from kubepy.storage.model import LOG_LENGTH, LOG_SLACK, Key, LogEntry, Object

MAX_TOMBSTONES = 5_000
MAX_REPLACES = (
    4_000  # characters of a row's unsynced versions, after which they are synced without waiting
)
DONE_NEVERTHELESS = "the change itself is made: the files follow as soon as they can be written"


class ObjectWrite(NamedTuple):
    """One object's change in a commit.

    :ivar before: the row of the object; None or a tombstone where there was no object.
    :ivar json: the object; None deletes it.
    :ivar expires: the time at which an object that is kept in the index alone is over; None for one
        with a file.
    :ivar object: the object with its resourceVersion.
    """

    key: Key
    before: Row | None
    json: str | None
    revision: int
    expires: float | None = None
    object: Object | None = None

    @property
    def directory(self) -> str:
        return parent_of(path_of(self.key))


class Commit(NamedTuple):
    """Changes that become visible together.

    :ivar log: their entries of the change log.
    :ivar revision: the newest after them.
    :ivar meta: values of the table ``meta``.
    :ivar settings: a change of ``kubepy.yaml`` that is staged.
    :ivar edited_places: where objects were edited from outside whose rows are not those of the
        index.
    :ivar write_history: writes the entries of the timeline, and what else has happened before.
    """

    writes: list[ObjectWrite]
    log: list[LogEntry]
    revision: int
    meta: Mapping[str, str | None]
    settings: SettingsEdit | None
    write_history: Callable[[Database], None] = lambda database: None
    edited_places: frozenset[Place] = frozenset()


class Staged(NamedTuple):
    """A PENDING row and the temporary files with its content and its managers ("": none).

    :ivar present: the stamp of the file that is to be replaced.
    :ivar digest: that of its content.
    """

    row: Row
    temporary: str
    managers: str = ""
    present: Stamp | None = None
    digest: bytes = b""


# --- staging ---


def temporary_path(row: Row, directory: str) -> str:
    """Return the name of a row's file in a folder until it gets its own; no other commit has this
    name."""
    return f"{directory}/{TEMPORARY_PREFIX}{row.revision}{TEMPORARY_SUFFIX}"


def stage(
    folder: StateFolder,
    row: Row,
    obj: Object,
    *,
    sync: bool,
    before: str | None = None,
    written: yaml.Written | None = None,
) -> Staged:
    """Write the content of a row's file beside it, under a name of its own; the row gets its stamp.

    :param obj: the object of the row.
    :param sync: make the content durable.
    :param before: the JSON of the object in the present file, where it is known.
    :param written: as of :func:`yaml.dump`.

    Raises FolderError for an object that is too large and for a present file that cannot be read,
    OSError.
    """
    path = path_of(row.key)
    try:
        data, canonical = _content_of(folder, row, obj, before, written)
    except TypeError:  # it has tuples, or keys that are numbers: only its JSON has them otherwise
        data, canonical = _content_of(folder, row, json.loads(row.json or ""), before, written)
    if len(data) > MAX_SIZE:
        raise FolderError(f"{folder.absolute(path)}: would be larger than 3 MiB")
    temporary = temporary_path(row, parent_of(path))
    mode = 0o600 if row.resource in PRIVATE else 0o666
    stamp = folder.write_temporary(temporary, data, mode, sync=sync)
    row = Row(
        *row[:5],
        *stamp,
        digest=digest_of(data),
        state=row.state,
        replaces=row.replaces,
        managers=row.managers,
        canonical=canonical,
        expires=row.expires,
    )
    return Staged(row, temporary)


def _content_of(
    folder: StateFolder, row: Row, obj: Object, before: str | None, written: yaml.Written | None
) -> tuple[bytes, int]:
    """Return the content of a row's file, and 1 if it is canonical. A file to which somebody gave
    another form keeps that form."""
    if row.canonical:
        return to_file(obj, written), 1
    try:
        present, _, _ = folder.read(path_of(row.key))
    except FileNotFoundError:
        return to_file(obj, written), 1
    except UnreadableError as error:
        raise FolderError(f"{folder.absolute(path_of(row.key))}: {error}") from error
    if before is not None and present == to_file(json.loads(before)):
        return to_file(obj, written), 1
    return to_edited_file(obj, present), 0


def stage_managers(folder: StateFolder, row: Row, data: bytes | None, *, sync: bool) -> str:
    """Write the managers of an object that server-side apply has touched to a temporary file;
    return its path or "" where there are none.

    They are kept in a file beside the object's, so that a clone has them too.
    """
    if data is None:
        return ""
    directory = parent_of(managers_path(row.key))
    folder.make_directory(directory)
    temporary = temporary_path(row, directory)
    folder.write_temporary(temporary, data, 0o666, sync=sync)
    return temporary


class Journal:
    """Commits to one folder. For the holder of the lock.

    :ivar is_recorded: step 2 is done: the commit has happened, whatever else fails.
    """

    def __init__(self, folder: StateFolder, boot: str | None) -> None:
        self.folder = folder
        self.boot = boot
        self.is_recorded = False
        # parts of the objects of a commit, many of which have some in common
        self._written: yaml.Written = {}

    def commit(self, database: Database, commit: Commit) -> None:
        """Commit changes.

        Raises ConflictError when a file was edited since it was compared, FolderError when one
        cannot be written; then nothing is changed. Where a disk fills up after the commit is
        recorded, the FolderError says so.
        """
        staged: list[Staged] = []
        try:
            self._make_directories(commit.writes)
            files = sum(write.json is not None and write.expires is None for write in commit.writes)
            for write in commit.writes:
                staged.append(self._stage(write, sync=files <= SYNC_EACH))
            self._written.clear()
            if files > SYNC_EACH:
                self.folder.sync_all()
            sums = self._sums_after(database, commit)
            self._record(database, staged, commit)
            self.is_recorded = True
        except BaseException:
            self._written.clear()
            self._discard_staged(commit)
            raise

        try:
            self._settle(database, staged, commit.settings, sums)
            self._trim(database)
        except BaseException as error:
            if rescue_all(self.folder, [file.row for file in staged], commit.settings):
                self._discard_staged(
                    commit
                )  # the rows are PENDING, and hold all that the files are to be
            if isinstance(error, (FolderError, OSError, sqlite3.OperationalError)):
                reason = (
                    f"{error.filename}: {error.strerror}"
                    if isinstance(error, OSError)
                    else str(error)
                )
                if isinstance(error, RemovedError) or database.is_replaced():
                    raise RemovedError(
                        f"{reason} (.kubepy was removed while it was written to)"
                    ) from error
                raise FolderError(f"{reason} ({DONE_NEVERTHELESS})") from error
            raise

    # --- steps ---

    def _make_directories(self, writes: Iterable[ObjectWrite]) -> None:
        """Raise FolderError where something is in the way of a folder, that of managers
        included."""
        with_files = [write for write in writes if write.json is not None and write.expires is None]
        for directory in sorted({write.directory for write in with_files}):
            self.folder.make_directory(directory)
        managed = (
            managers_path(write.key)
            for write in with_files
            if '"managedFields"' in (write.json or "")
        )
        for directory in sorted({parent_of(path) for path in managed}):
            if obstacle := find_obstacle(self.folder, f"{directory}/"):
                raise FolderError(f"{self.folder.absolute(obstacle.path)}: {obstacle.reason}")

    def _stage(self, write: ObjectWrite, *, sync: bool) -> Staged:
        if write.expires is not None:
            row = Row(*write.key, write.revision, write.json, expires=write.expires)
            return Staged(row, "")
        path, before = path_of(write.key), write.before
        present = self.folder.stamp(path)
        digest = before.digest if before and before.racy and present is not None else b""
        if present != (before.stamp if before and before.json is not None else None) or (
            digest and replacing.digest_at(self.folder, path) != digest
        ):
            raise ConflictError(f"{self.folder.absolute(path)} was edited in the meantime")

        if write.object is None:
            assert write.json is None
            assert before is not None
            row = before._replace(revision=write.revision, json=None, state=PENDING, racy=0)
            return Staged(row, temporary_path(row, parent_of(path)))

        present_row = before if present is not None else None
        row = Row(
            *write.key,
            write.revision,
            write.json,
            state=PENDING,
            replaces=_versions_to_replace(before, has_file=present is not None),
            canonical=present_row.canonical if present_row else 1,
        )
        try:
            staged = stage(
                self.folder,
                row,
                write.object,
                sync=sync,
                before=present_row.json if present_row else None,
                written=self._written,
            )
            managers = stage_managers(self.folder, row, managers_of(write.object), sync=sync)
            replaced = present_row.digest if present_row else b""
            return staged._replace(managers=managers, present=present, digest=replaced)
        except OSError as error:
            raise FolderError(
                f"{self.folder.absolute(path)}: cannot be written: {error.strerror}"
            ) from error

    def _discard_staged(self, commit: Commit) -> None:
        """Remove the temporary files of a commit, and the folders made for them."""
        discard_staged(self.folder)
        for directory in sorted(
            {write.directory for write in commit.writes if write.expires is None}
        ):
            if self.folder.is_inside(f"{directory}/"):
                self.folder.remove_temporaries(directory)
                self.folder.remove_temporaries(f"{directory}/{MANAGED}")
                self.folder.remove_empty_managed(directory)
                self.folder.remove_empty(directory)

    def _record(self, database: Database, staged: Sequence[Staged], commit: Commit) -> None:
        rows = [file.row for file in staged]
        with database.write():
            database.put(row for row in rows if row.json is not None or row.expires is None)
            database.remove(row.key for row in rows if row.json is None and row.expires is not None)
            database.log(commit.log)
            commit.write_history(database)
            database.set_counter("revision", commit.revision)
            for name, value in commit.meta.items():
                database.set_value("meta", name, value)
            if commit.settings:
                commit.settings.record(database)

    def _sums_after(self, database: Database, commit: Commit) -> dict[Place, int]:
        """Return the sums of the folders that the commit changes, without the files that it
        replaces."""
        with_files = [write for write in commit.writes if write.expires is None]
        sums = database.sums_to_change(
            {write.key[:2] for write in with_files} - commit.edited_places
        )
        for write in with_files:
            if write.before is not None and write.key[:2] in sums:
                sums[write.key[:2]] -= row_hash(write.before)
        return sums

    def _settle(
        self,
        database: Database,
        staged: Sequence[Staged],
        settings: SettingsEdit | None,
        sums: dict[Place, int],
    ) -> None:
        """Rename the staged files into place and mark their rows WRITTEN. ``sums``:
        as :meth:`_sums_after`."""
        rows = [settle(self.folder, file) for file in staged if file.row.expires is None]
        rows = [
            row._replace(racy=int(row.json is not None and may_hide_edit(self.folder, row)))
            for row in rows
        ]
        tidy(self.folder, rows)
        is_set = settings is not None and settings.replace_file(self.folder)
        with database.write(durable=False):
            database.mark_written(rows)
            for row in rows:
                if row[:2] in sums:
                    sums[row[:2]] += row_hash(row)
            database.put_sums({place: sum_of([total]) for place, total in sums.items()})
            if settings is not None and is_set:
                settings.mark_written(database, self.folder)

        if settings is not None and not is_set:
            finish(database, self.folder)
        if self.boot is None or any(len(row.replaces) > MAX_REPLACES for row in rows):
            sync_written(database, self.folder)

    def _trim(self, database: Database) -> None:
        """Keep the change log and the tombstones within bounds."""
        revision = database.counter("revision")
        if revision - database.counter("compacted") > LOG_LENGTH + LOG_SLACK:
            with database.write(durable=False):
                database.compact(revision - LOG_LENGTH)
        if database.tombstones() <= MAX_TOMBSTONES:
            return
        rows = [row for row in database.tombstone_rows() if row.state != PENDING]
        directories = {parent_of(path_of(row.key)) for row in rows}
        if any(find_obstacle(self.folder, f"{directory}/") for directory in directories):
            return  # a later commit drops the tombstones
        self.folder.sync_directories(directories)  # a removal that is durable needs no tombstone
        with database.write(durable=False):
            database.remove(row.key for row in rows)


def _versions_to_replace(before: Row | None, *, has_file: bool) -> str:
    """Return the versions of a file that a power cut may bring back once it is replaced
    (``Row.replaces``)."""
    if before is None:
        return NO_FILE
    newest = [str(before.version) if has_file else NO_FILE]
    if before.state == DURABLE:
        return newest[0]
    if not has_file:  # a tombstone whose file may come back
        newest.append(str(before.version))
    return " ".join([*newest, *map(str, before.replaced())])


# --- settling ---


def settle(folder: StateFolder, staged: Staged) -> Row:
    """Bring the files of a PENDING row to what it says, unless somebody else edited them since.

    Return the row with the change time and the stamp of managers that the files have now. Raises
    FolderError.
    """
    row, path = staged.row, path_of(staged.row.key)
    ctime_ns = row.ctime_ns
    try:
        if row.json is None:
            if folder.stamp(path) == row.stamp and folder.is_inside(path):
                replacing.remove(folder, staged.temporary, path, row.digest)
        elif _replace(folder, staged, path):
            replaced = folder.stamp(path)
            ctime_ns = replaced.ctime_ns if replaced else 0
        managers = settle_managers(folder, row, staged.managers)
        return row._replace(ctime_ns=ctime_ns, managers=managers)
    except OSError as error:
        kind = (
            RemovedError if isinstance(error, FileNotFoundError) else FolderError
        )  # staged files are in .kubepy
        raise kind(f"{folder.absolute(path)}: cannot be replaced: {error.strerror}") from error


def _replace(folder: StateFolder, staged: Staged, path: str) -> bool:
    """Put a staged file in its place; return False where somebody has edited the present one since.
    Raises OSError."""
    if staged.present is None:
        return replacing.create(folder, staged.temporary, path)
    if folder.stamp(path) != staged.present:
        folder.remove(staged.temporary)
        return False
    return replacing.replace(folder, staged.temporary, path, staged.digest, staged.row.digest)


def rescue_all(folder: StateFolder, rows: Iterable[Row], settings: SettingsEdit | None) -> bool:
    """Give the edits their names back that a commit of PENDING rows had in hand when it was cut
    short; return False where that fails: then they keep their temporary names, for whoever
    recovers."""
    try:
        for row in rows:
            if row.expires is None:
                rescue(folder, row)
        if settings is not None:
            settings.exchange.rescue(folder)
    except OSError:
        return False
    return True


def rescue(folder: StateFolder, row: Row) -> None:
    """Remove the temporary file of a PENDING row; an edit that it holds gets its name back. Raises
    OSError."""
    path = path_of(row.key)
    versions = row.replaced() if row.json is not None else [row.version, *row.replaced()]
    content = row.digest if row.json is not None else None
    replacing.rescue(
        folder,
        temporary_path(row, parent_of(path)),
        path,
        content,
        frozenset(version.digest for version in versions),
    )


def may_hide_edit(folder: StateFolder, row: Row) -> bool:
    """Return whether a file that was written may have been edited since with nothing to see in its
    stamp, or still may: as long as an edit could leave the change time that the file got by its
    rename. The content of an older one tells.
    """
    return (
        is_racy(row.stamp, time.time_ns())
        or replacing.digest_at(folder, path_of(row.key)) != row.digest
    )


def settle_managers(folder: StateFolder, row: Row, temporary: str) -> str:
    """Rename the staged managers into place, or remove those of an object that has none; return
    their stamp.

    A folder in that place stays: the managers are lost then, but not the commit.
    """
    path = managers_path(row.key)
    if not temporary and not folder.is_directory(parent_of(path)):
        return ""
    if folder.is_directory(path):
        if temporary:
            folder.remove(temporary)
        return ""
    if temporary:
        folder.rename_into_place(temporary, path)
        return str(folder.stamp(path) or "")
    folder.remove(path)
    return ""


def tidy(folder: StateFolder, rows: Iterable[Row]) -> None:
    """Remove folders that deletions left empty."""
    for directory in sorted({parent_of(path_of(row.key)) for row in rows}):
        if not find_obstacle(folder, f"{directory}/"):  # else not ours to tidy, whatever is there
            folder.remove_empty_managed(directory)
            folder.remove_empty(directory)


def sync_written(database: Database, folder: StateFolder) -> None:
    """Make the folder entries of all WRITTEN files durable, and mark their rows so. No lock is
    needed for it.

    Raises OSError, sqlite3.Error.
    """
    written = database.unsynced()
    if not written:
        return
    directories = {parent_of(path_of(key)) for key, _ in written}
    managed = {
        path for directory in directories if folder.is_directory(path := f"{directory}/{MANAGED}")
    }
    folder.sync_directories(directories | managed)
    with database.write():
        database.mark_durable(written)
