"""A snapshot of a state folder, which a state lies over: the index as it is now, read when it is
asked for.

The snapshot is a read transaction on a connection of its own, so taking it costs no more than
looking for edits of the files, and it stays as it is while others write, and after the index has
been removed. SQLite cannot shorten its log (``index.db-wal``) beyond the oldest snapshot that a
process holds.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet, finalize

from kubepy.lazy import lazy_imports
from kubepy.storage.errors import LostStateError
from kubepy.storage.folder.access import Access
from kubepy.storage.folder.database import DamagedError, Database, Row
from kubepy.storage.folder.files import StateFolder
from kubepy.storage.folder.manifest import DECODED_TOGETHER, Decoder
from kubepy.storage.folder.paths import path_of
from kubepy.storage.folder.reader import MAX_COMPARISONS, FolderView, Reader
from kubepy.storage.folder.settings import with_recorded_changes
from kubepy.storage.indexes import partial_object, parts_of
from kubepy.storage.model import (
    ADDED,
    DELETED,
    MODIFIED,
    VOLUME_PREFIX,
    Key,
    LogEntry,
    Object,
    former_state,
)
from kubepy.storage.sortedmap import SortedMap
from kubepy.storage.state import Expiring, ObjectRecord, Records, SourceTables, State
from kubepy.storage.timeline import NEVER, TimelineEntry
from kubepy.storage.transaction import StoredChange

with lazy_imports():
    from kubepy.storage.folder import volumefiles

if TYPE_CHECKING:
    from kubepy.storage.indexes import FieldIndex
    from kubepy.storage.state import KeyedObjects, Keys, Places

T = TypeVar("T")


class FolderSource:
    """The rows of an index at one revision (:class:`kubepy.storage.state.Source`). Any thread may
    read it; the records that were read are kept.

    Raises LostStateError where the index cannot be read any more.

    :param database: a connection on which a read transaction has begun.
    :param end: ends the transaction.
    :param decoder: so that transactions and whoever reads objects here decode each once; None: the
        objects are those of the records that are kept, as for a fork.
    :param renew: makes the index anew, where it turns out to be damaged.
    :param folder: has the contents of volumes, as they are when they are read.
    """

    def __init__(
        self,
        database: Database,
        end: Callable[[Database], object],
        folder: StateFolder,
        decoder: Decoder | None = None,
        renew: Callable[[], object] = lambda: None,
    ) -> None:
        self._database = database
        self._folder = folder
        self._decoder = decoder
        self._renew = renew
        self._lock = threading.RLock()
        self._objects: dict[Key, ObjectRecord | None] = {}
        self._records: dict[tuple[str, str], Records] = {}
        self._expiring: Expiring | None = None
        self._timeline: list[TimelineEntry] | None = None
        self._scanned: dict[str, dict[str, list[Key]]] = {}  # by index and value
        self._left_out: frozenset[str] | None = None  # the paths of files that cannot be objects
        self._close = finalize(self, end, database)
        self.revision = database.counter("revision")
        self.compacted = database.counter("compacted")

    def close(self) -> None:
        self._close()

    @property
    def is_lost(self) -> bool:
        return not self._close.alive

    def read(self, query: Callable[[Database], T]) -> T:
        """Run a query of the snapshot."""
        path = self._database.path
        with self._lock:
            if self.is_lost:
                raise LostStateError(f"{path}: nothing can be read here any more")
            try:
                return query(self._database)
            except (sqlite3.Error, DamagedError, TypeError, ValueError) as error:
                self.close()
                self._renew()
                raise LostStateError(
                    f"{path}: what was forked cannot be read any more: {error}"
                ) from error

    # --- records

    def row(self, key: Key) -> Row | None:
        """Return the row of an object, None where there is none."""
        row = self.read(lambda database: database.row(key))
        return row if row is not None and row.json is not None else None

    def get(self, key: Key) -> ObjectRecord | None:
        if key not in self._objects:
            row = self.row(key)
            self._objects[key] = _record(row) if row is not None else None
        return self._objects[key]

    def records(self, resource: str, namespace: str) -> Records:
        records = self._records.get((resource, namespace))
        if records is None:
            rows = self.read(lambda database: database.rows(resource, namespace))
            records = self._records[resource, namespace] = SortedMap(
                (row.name, self._objects.get(row.key) or _record(row))
                for row in rows
                if row.json is not None
            )
        return records

    def _kept_object(self, row: Row) -> Object:
        record = self._objects.get(row.key)
        if record is None:
            record = self._objects[row.key] = _record(row)
        return record.object

    # --- objects

    def objects(self, resource: str, namespace: str | None) -> KeyedObjects:
        return self._decoded(lambda database: database.rows(resource, namespace), kept=True)

    def objects_at(self, keys: Collection[Key]) -> KeyedObjects:
        return self._decoded(lambda database: database.rows_of(keys), kept=True)

    def found(
        self,
        index: FieldIndex,
        values: Collection[str],
        resource: str | None,
        namespace: str | None,
    ) -> KeyedObjects:
        if self._has_index(index):
            return self._decoded(
                lambda database: database.found(index, values, resource, namespace)
            )
        by_value = self._scanned_by(index)
        keys = {
            key
            for value in values
            for key in by_value.get(value, ())
            if resource in (None, key.resource) and namespace in (None, key.namespace)
        }
        return sorted(self._decoded(lambda database: database.rows_of(keys)), key=_key_of)

    def parts(
        self,
        paths: Sequence[str],
        resource: str,
        namespace: str | None,
        index: FieldIndex | None,
        value: str,
    ) -> KeyedObjects:
        if index is not None and not self._has_index(index):
            return parts_of(self.found(index, [value], resource, namespace), paths)

        def query(database: Database) -> KeyedObjects:
            rows = database.parts(paths, resource, namespace, index, value)
            seen = [(row.key, text) for row, text in rows if self._is_seen(row)]
            parts: KeyedObjects = []
            fields = [path.split(".") for path in paths]
            for start in range(0, len(seen), DECODED_TOGETHER):
                some = seen[start : start + DECODED_TOGETHER]
                lists = json.loads(f"[{','.join([text for _, text in some])}]")
                parts += [
                    (key, partial_object(fields, values[1:]))
                    for (key, _), values in zip(some, lists, strict=True)
                ]
            return parts

        return self.read(query)

    def _decoded(
        self, select: Callable[[Database], Iterable[Row]], *, kept: bool = False
    ) -> KeyedObjects:
        """Return the objects of the live rows of a query. ``kept``: transactions will read them as
        well."""

        def query(database: Database) -> KeyedObjects:
            rows = [row for row in select(database) if row.json is not None and self._is_seen(row)]
            if self._decoder is None:
                return [(row.key, self._kept_object(row)) for row in rows]
            objects = self._decoder.objects(rows, kept=kept)
            return [(row.key, obj) for row, obj in zip(rows, objects, strict=True)]

        return self.read(query)

    def _is_seen(self, row: Row) -> bool:
        """Return whether lists have a row; they leave out those whose files cannot be objects."""
        if self._left_out is None:
            self._left_out = frozenset(
                path
                for path, (_, problem) in self._database.problems().items()
                if not problem.keeps_object
            )
        return not self._left_out or path_of(row.key) not in self._left_out

    def counts(self, index: FieldIndex) -> Mapping[str, int]:
        if self._has_index(index):
            return self.read(lambda database: database.index_counts(index))
        return {value: len(keys) for value, keys in self._scanned_by(index).items()}

    def _has_index(self, index: FieldIndex) -> bool:
        return self.read(lambda database: database.has_index(index))

    def _scanned_by(self, index: FieldIndex) -> Mapping[str, list[Key]]:
        """Return the keys of the objects that an index finds, by their values, where SQLite has
        none: all objects are looked at once."""
        if index.name not in self._scanned:
            resources = index.resources or sorted({resource for resource, _ in self.places()})
            by_value: dict[str, list[Key]] = {}
            for resource in resources:
                for key, obj in self._decoded(lambda database: database.rows(resource)):  # noqa: B023
                    for value in index.values_of(key, obj):
                        by_value.setdefault(value, []).append(key)
            self._scanned[index.name] = by_value
        return self._scanned[index.name]

    # --- what can be told without the objects

    def keys(self, resource: str, namespace: str | None = None, prefix: str = "") -> Keys:
        return self.read(lambda database: database.keys(resource, namespace, prefix))

    def count(self, resource: str) -> int:
        return self.read(lambda database: database.count(resource))

    def places(self) -> Places:
        return self.read(lambda database: database.places())

    def has_objects(self, resource: str, namespace: str, now: float) -> bool:
        return self.read(lambda database: database.has_objects(resource, namespace, now))

    def expiring(self) -> Expiring:
        if self._expiring is None:
            expiring = self.read(lambda database: database.expiring())
            self._expiring = SortedMap((place, True) for place in sorted(expiring))
        return self._expiring

    def entries(self, since: int) -> list[LogEntry]:
        return self.read(lambda database: database.entries(since))

    def timeline(self, first: int, length: float, after: int = 0) -> list[TimelineEntry]:
        """Return the entries of the timeline, in the order of the writes."""
        if (first, length, after) != (NEVER, inf, 0):
            return self.read(lambda database: database.timeline(first, length, after))
        if self._timeline is None:
            self._timeline = self.read(lambda database: database.timeline(NEVER, inf))
        return self._timeline

    def meta(self, name: str) -> str | None:
        if name.startswith(VOLUME_PREFIX):
            return volumefiles.read(self._folder, name)
        return self.read(lambda database: database.value("meta", name))

    def meta_names(self) -> list[str]:
        recorded = self.read(lambda database: database.names("meta"))
        return [*recorded, *volumefiles.names(self._folder)]


class Snapshots:
    """Takes the states of a store. They share connections, each of which is of one snapshot, then
    free for the next one, and decode each object once. Any thread may take one."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._lock = threading.Lock()
        self._free: list[Database] = []
        self._sources: WeakSet[FolderSource] = WeakSet()  # of the states that end with the store
        self._is_closed = False

    def newest(self, access: Access, reader: Reader, lock_timeout: float) -> State:
        """Return all that is in a folder now, edits from outside included.

        Raises FolderError; LockTimeoutError where others write all the time, and one of them does
        not let go of the lock.
        """
        for _ in range(MAX_COMPARISONS):
            if state := self._try_newest(access, reader):
                return state
        with access.locked(lock_timeout):
            state = self._try_newest(access, reader)
        assert state is not None
        return state

    def _try_newest(self, access: Access, reader: Reader) -> State | None:
        """Take a snapshot, unless another process writes between its parts: then return None."""
        settings, revision, view = access.settings(), reader.recorded_revision(), None
        if revision is None:
            view = reader.view_all()
            revision = view.revision
        connection = self._connection(access.database())
        source = FolderSource(connection, self._give_back, access.folder)
        if source.revision != revision or access.settings() != settings:
            source.close()
            return None
        state = _state_over(source, settings, access)
        if view is None:
            return state
        return _with_unrecorded_edits(state, source, view, access)

    def recorded(self, access: Access) -> State:
        """Return all that the index has: the state at its newest revision, after which the change
        log goes on. Edits from outside that are not recorded are not in it: those of files that
        cannot be objects never are. Raises FolderError."""
        settings, database = access.settings(), access.database()
        database.make_indexes(access.indexes())
        source = FolderSource(
            self._connection(database),
            self._give_back,
            access.folder,
            self._decoder,
            access.renew,
        )
        with self._lock:
            self._sources.add(source)
        return _state_over(source, settings, access)

    def let_go(self) -> None:
        """Let go of the states that are recorded, so that SQLite's log can begin anew: whoever
        reads one takes another."""
        with self._lock:
            sources = list(self._sources)
        for source in sources:
            source.close()

    def close(self) -> None:
        """Let go of them, and of their connections: the last one of all writes SQLite's log into
        the index."""
        self._is_closed = True
        self.let_go()
        with self._lock:
            free, self._free = self._free, []
        for database in free:
            database.close()

    def _connection(self, index: Database) -> Database:
        """Return a connection that sees the present state of an index until it is given back."""
        database = None
        while database is None:
            with self._lock:
                database = self._free.pop() if self._free else None
            if database is None:
                database = index.new_connection()
            elif database.identity != index.identity:  # of an index that was removed
                database.close()
                database = None
        database.connection.execute("BEGIN")
        return database

    def _give_back(self, database: Database) -> None:
        """Let go of a snapshot."""
        is_usable = not (self._is_closed or database.in_memory)
        with suppress(sqlite3.Error):  # of a damaged index, which is made anew by whoever writes
            if is_usable:
                database.connection.execute("COMMIT")
                with self._lock:
                    self._free.append(database)
                return
        database.close()


def _state_over(source: FolderSource, settings: Object, access: Access) -> State:
    settings = source.read(lambda database: with_recorded_changes(database, settings))
    return State(
        settings,
        source.revision,
        SourceTables(source),
        compacted=source.compacted,
        expiring=None,
        source=source,
        indexes=tuple(access.indexes()),
    )


def _with_unrecorded_edits(
    state: State, source: FolderSource, view: FolderView, access: Access
) -> State:
    """Return the state after the edits from outside that the index could not take in: another
    process has the lock, or nothing can be written here. Objects that are left out because of their
    files are not in the state."""
    changes: list[StoredChange[ObjectRecord]] = []
    log: list[LogEntry] = []
    timeline: list[TimelineEntry] = []
    recorder = access.recorder()
    revision = state.revision
    for key in sorted(view.unrecorded):
        before, after = source.row(key), view.rows.get(key)
        text = after.json or (access.database().row(key) or after).json if after else None
        if text == (before.json if before else None):
            continue
        revision += 1
        if text is None:
            assert before is not None
            log.append(LogEntry(revision, DELETED, *key, before.json))
        else:
            former = former_state(before.json, text) if before else None
            log.append(LogEntry(revision, MODIFIED if before else ADDED, *key, former))
        changes.append(StoredChange(key, _record(before) if before else None, text, revision))
        if recorder is not None and key.resource in recorder.resources:
            old, new = (
                json.loads(content) if content else None
                for content in (before and before.json, text)
            )
            timeline += recorder.entries(
                key, revision, recorder.edit_time(), old, new, is_outside=True
            )

    state = state.changed(changes, log, revision) if changes else state
    return (
        state.with_timeline(timeline, recorder.keep) if timeline and recorder is not None else state
    )


def _record(row: Row) -> ObjectRecord:
    return ObjectRecord(row.key, row.revision, row.json, row.expires)


def _key_of(entry: tuple[Key, Object]) -> Key:
    return entry[0]
