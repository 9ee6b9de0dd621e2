"""A snapshot of a state folder, which a fork in memory lies over: the index as it is now, read when
it is asked for.

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

from kubepy.storage.errors import FolderError
from kubepy.storage.folder.access import Access
from kubepy.storage.folder.database import DamagedError, Database, Row
from kubepy.storage.folder.manifest import DECODED_TOGETHER, Decoder
from kubepy.storage.folder.paths import path_of
from kubepy.storage.folder.reader import MAX_COMPARISONS, FolderView, Reader
from kubepy.storage.folder.settings import with_recorded_changes
from kubepy.storage.links import partial_object
from kubepy.storage.model import ADDED, DELETED, MODIFIED, Key, LogEntry, Object, former_state
from kubepy.storage.sortedmap import SortedMap
from kubepy.storage.state import Expiring, ObjectRecord, ObjectTable, Records, State
from kubepy.storage.timeline import NEVER, TimelineEntry
from kubepy.storage.transaction import StoredChange

if TYPE_CHECKING:
    from kubepy.storage.links import Keys, LinkedObjects, Lookup, Names, Places

T = TypeVar("T")


class FolderSource:
    """The rows of an index at one revision. Any thread may read it; what was read is kept.

    Raises FolderError where the index cannot be read any more.
    """

    def __init__(self, index: Database) -> None:
        self._path = index.path
        self._lock = threading.RLock()
        self._objects: dict[Key, ObjectRecord | None] = {}
        self._records: dict[tuple[str, str], Records] = {}
        self._expiring: Expiring | None = None
        self._timeline: list[TimelineEntry] | None = None
        self._scanned: dict[str, dict[str, list[Key]]] = {}  # by link and value
        self._database = index.snapshot_copy()
        self._close = finalize(self, self._database.close)
        self.revision = self._database.counter("revision")
        self.compacted = self._database.counter("compacted")

    def close(self) -> None:
        """Let go of the index; nothing can be read after that."""
        self._close()

    def read(self, query: Callable[[Database], T]) -> T:
        """Run a query of the snapshot."""
        with self._lock:
            try:
                return query(self._database)
            except (sqlite3.Error, DamagedError, TypeError, ValueError) as error:
                raise FolderError(
                    f"{self._path}: what was forked cannot be read any more: {error}"
                ) from error

    def places(self) -> list[tuple[str, str]]:
        """Return the resources and namespaces in which there may be objects."""
        return self.read(lambda database: database.places())

    def row(self, key: Key) -> Row | None:
        """Return the row of an object, None where there is none."""
        row = self.read(lambda database: database.row(key))
        return row if row is not None and row.json is not None else None

    def get(self, key: Key) -> ObjectRecord | None:
        """Return an object, None where there is none."""
        if key not in self._objects:
            row = self.row(key)
            self._objects[key] = _record(row) if row is not None else None
        return self._objects[key]

    def records(self, resource: str, namespace: str) -> Records:
        """Return the objects of a resource in one namespace."""
        records = self._records.get((resource, namespace))
        if records is None:
            rows = self.read(lambda database: database.rows(resource, namespace))
            records = self._records[resource, namespace] = SortedMap(
                (row.name, self._objects.get(row.key) or _record(row))
                for row in rows
                if row.json is not None
            )
        return records

    def linked(
        self, link: Lookup, value: str, resource: str | None, namespace: str | None
    ) -> list[ObjectRecord]:
        """Return the objects that a link finds."""
        if not self.read(lambda database: database.has_index(link)):
            return self._scanned_for(link, value, resource, namespace)
        records = []
        for row in self.read(lambda database: database.linked(link, [value], resource, namespace)):
            record = self._objects.get(row.key)
            if record is None:
                record = self._objects[row.key] = _record(row)
            records.append(record)
        return records

    def counts(self, link: Lookup) -> Mapping[str, int]:
        """Return the values by which a link finds objects, each with the number of these."""
        return self.read(lambda database: database.link_counts(link))

    def _scanned_for(
        self, link: Lookup, value: str, resource: str | None, namespace: str | None
    ) -> list[ObjectRecord]:
        """Return the objects that a link finds whose index is missing: all rows are looked at
        once."""
        if link.name not in self._scanned:
            entries = self._scanned[link.name] = {}
            for key, text in self.read(lambda database: database.link_values(link)):
                entries.setdefault(text, []).append(key)
        keys = (
            key
            for key in self._scanned[link.name].get(value, ())
            if resource in (None, key.resource) and namespace in (None, key.namespace)
        )
        return [record for key in keys if (record := self.get(key)) is not None]

    def names(self, resource: str) -> list[Key]:
        """Return the keys of the objects of a resource."""
        return self.read(lambda database: database.keys(resource))

    def has_objects(self, resource: str, namespace: str, now: float) -> bool:
        """Return whether a namespace has objects of a resource whose time is not over."""
        return self.read(lambda database: database.has_objects(resource, namespace, now))

    def expiring(self) -> Expiring:
        """Return the volatile objects by the times at which they are over."""
        if self._expiring is None:
            expiring = self.read(lambda database: database.expiring())
            self._expiring = SortedMap((place, True) for place in sorted(expiring))
        return self._expiring

    def entries(self, since: int) -> list[LogEntry]:
        """Return the entries of the change log after a revision, oldest first."""
        return self.read(lambda database: database.entries(since))

    def timeline(self, first: int, length: float, after: int = 0) -> list[TimelineEntry]:
        """Return the entries of the timeline, in the order of the writes."""
        if (first, length, after) != (NEVER, inf, 0):
            return self.read(lambda database: database.timeline(first, length, after))
        if self._timeline is None:
            self._timeline = self.read(lambda database: database.timeline(NEVER, inf))
        return self._timeline

    def meta(self, name: str) -> str | None:
        """Return a small value that is no object."""
        return self.read(lambda database: database.value("meta", name))

    def meta_names(self) -> list[str]:
        """Return the names of all such values."""
        return self.read(lambda database: database.names("meta"))


def _record(row: Row) -> ObjectRecord:
    return ObjectRecord(row.key, row.revision, row.json, row.expires)


def take_snapshot(access: Access, reader: Reader, lock_timeout: float) -> State:
    """Return all that is in a folder now, edits from outside included.

    Raises FolderError; LockTimeoutError where others write all the time, and one of them does not
    let go of the lock.
    """
    for _ in range(MAX_COMPARISONS):
        if state := _try_snapshot(access, reader):
            return state
    with access.locked(lock_timeout):
        state = _try_snapshot(access, reader)
    assert state is not None
    return state


def _try_snapshot(access: Access, reader: Reader) -> State | None:
    """Take a snapshot, unless another process writes between its parts: then return None."""
    settings, revision, view = access.settings(), reader.recorded_revision(), None
    if revision is None:
        view = reader.view_all()
        revision = view.revision
    source = FolderSource(access.database())
    if source.revision != revision or access.settings() != settings:
        return None
    state = _recorded(source, settings)
    return _with_unrecorded_edits(state, source, view, access) if view is not None else state


def take_recorded(access: Access) -> State:
    """Return all that the index has: the state at its newest revision, after which the change log
    goes on. Edits from outside that are not recorded are not in it: those of files that cannot be
    objects never are. Raises FolderError."""
    settings = access.settings()
    return _recorded(FolderSource(access.database()), settings)


def _recorded(source: FolderSource, settings: Object) -> State:
    settings = source.read(lambda database: with_recorded_changes(database, settings))
    tables: dict[str, dict[str, ObjectTable]] = {}
    for resource, namespace in source.places():
        tables.setdefault(resource, {})[namespace] = ObjectTable(
            source=source, place=(resource, namespace)
        )
    return State(
        settings, source.revision, tables, compacted=source.compacted, expiring=None, source=source
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


class IndexView:
    """The rows of the index at one revision (:class:`kubepy.storage.links.RecordedView`), read when
    they are asked for on a connection of their own. SQLite's log grows while others write and the
    view is not released.

    Objects that lists leave out because of their files are left out here as well.
    """

    def __init__(self, access: Access, decoder: Decoder) -> None:
        self._access = access
        self._decoder = decoder  # so that transactions and the view decode an object once
        self._index: Database | None = None
        self._source: Database | None = None  # the index as the rest of the process knows it
        self._close: Callable[[], object] = lambda: None
        self._is_open = False
        self._links: dict[str, Lookup] = {}
        self._left_out: frozenset[str] = frozenset()  # paths
        self.revision = 0

    def refresh(self) -> None:
        """Go on to the newest revision; links without an index get theirs."""

        def begin() -> None:
            source = self._access.database()
            if self._source is not source:
                self.close()
                self._links = {link.name: link for link in self._access.links()}
                source.make_links(self._links.values())
                self._source, self._index = source, source.new_connection()
                self._close = finalize(self, self._index.close)

            self.release()
            assert self._index is not None
            self._index.connection.execute("BEGIN")
            self._is_open = True
            self.revision = self._index.counter("revision")
            self._left_out = frozenset(
                path
                for path, (_, problem) in self._index.problems().items()
                if not problem.keeps_object
            )

        self._access.run(begin)

    def close(self) -> None:
        """Close the connection, until the next :meth:`refresh`."""
        self._close()
        self._is_open, self._source = False, None

    def release(self) -> None:
        """Let go of what is seen."""
        if self._is_open and self._index is not None:
            self._is_open = False
            with suppress(
                sqlite3.Error
            ):  # of a damaged index: it was read, and is made anew by whoever writes
                self._index.connection.execute("COMMIT")

    def let_go(self) -> None:
        """Let go of what is seen while others go on from it: what is read next is of no revision
        that is known."""
        self.release()
        self.revision = 0

    def get(self, key: Key) -> Object | None:
        return next((obj for _, obj in self.get_all([key])), None)

    def get_all(self, keys: Collection[Key]) -> LinkedObjects:
        return self._objects(self._read(lambda index: index.rows_of(keys)), kept=True)

    def list(self, resource: str, namespace: str | None = None) -> LinkedObjects:
        return self._objects(self._read(lambda index: index.rows(resource, namespace)), kept=True)

    def linked(
        self, link: str, value: str, resource: str | None = None, namespace: str | None = None
    ) -> LinkedObjects:
        return self.linked_all(link, [value], resource, namespace)

    def linked_all(
        self,
        link: str,
        values: Collection[str],
        resource: str | None = None,
        namespace: str | None = None,
    ) -> LinkedObjects:
        return self._objects(
            self._read(lambda index: index.linked(self._links[link], values, resource, namespace))
        )

    def counts(self, link: str) -> Mapping[str, int]:
        return self._read(lambda index: index.link_counts(self._links[link]))

    def parts(
        self,
        paths: Sequence[str],
        resource: str,
        namespace: str | None = None,
        link: str = "",
        value: str = "",
    ) -> LinkedObjects:
        rows = self._read(
            lambda index: index.parts(
                paths, resource, namespace, self._links[link] if link else None, value
            )
        )
        seen = [
            (row.key, text)
            for row, text in rows
            if not self._left_out or path_of(row.key) not in self._left_out
        ]
        parts: LinkedObjects = []
        fields = [path.split(".") for path in paths]
        for start in range(0, len(seen), DECODED_TOGETHER):
            some = seen[start : start + DECODED_TOGETHER]
            lists = json.loads(f"[{','.join([text for _, text in some])}]")
            parts += [
                (key, partial_object(fields, values[1:]))
                for (key, _), values in zip(some, lists, strict=True)
            ]

        return parts

    def keys(self, resource: str, limit: int | None = None) -> Keys:
        return self._read(lambda index: index.keys(resource, limit))

    def count(self, resource: str) -> int:
        return self._read(lambda index: index.count(resource))

    def names(self, resource: str, namespace: str, prefix: str) -> Names:
        return self._read(lambda index: index.names_from(resource, namespace, prefix))

    def places(self) -> Places:
        return self._read(lambda index: index.places())

    def _read(self, query: Callable[[Database], T]) -> T:
        """Run a query; where the index turns out to be damaged, a second time on the index made
        anew, which has other revisions. Raises FolderError."""
        assert self._index is not None
        try:
            return query(self._index)
        except (sqlite3.Error, DamagedError, TypeError, ValueError):
            self.close()
            self._access.renew()
        self.refresh()
        try:
            return query(self._index)
        except (sqlite3.Error, DamagedError, TypeError, ValueError) as error:
            raise FolderError(f"{self._index.path}: cannot be read: {error}") from error

    def _objects(self, rows: Iterable[Row], *, kept: bool = False) -> LinkedObjects:
        """Return the objects of live rows. ``kept``: transactions will read them as well."""
        live = [
            row
            for row in rows
            if row.json is not None and not (self._left_out and path_of(row.key) in self._left_out)
        ]
        return [
            (row.key, obj)
            for row, obj in zip(live, self._decoder.objects(live, kept=kept), strict=True)
        ]


Views = WeakSet[IndexView]  # of a store, which closes them
