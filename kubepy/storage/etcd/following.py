"""Everything in one etcd in memory: loaded once, then following a watch."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubepy.storage.errors import StorageError
from kubepy.storage.etcd.history import expirations_of, next_of
from kubepy.storage.etcd.notices import WatchBatch
from kubepy.storage.etcd.ownkeys import end_of, load_settings, load_text
from kubepy.storage.etcd.source import FollowedSource
from kubepy.storage.model import (
    ADDED,
    DELETED,
    LOG_LENGTH,
    MODIFIED,
    Key,
    LogEntry,
    Object,
    has_moved,
)
from kubepy.storage.sortedmap import SortedMap
from kubepy.storage.state import ObjectRecord, State

if TYPE_CHECKING:
    from kubepy.storage.etcd.client import KeyEvent, Watch
    from kubepy.storage.etcd.keyspace import Keyspace
    from kubepy.storage.indexes import FieldIndex

PAGE = 2000
GRACE = 0.01  # seconds in which the event of a write has mostly come
Written = dict[tuple[Key, int], ObjectRecord]


class Follower:
    """A state in memory that follows etcd. Any thread may ask for it.

    :param keeps_time: volatile objects say when they are over (``/kubepy/expiring/``).
    :ivar floor: the revision that was loaded: the change log in memory begins there.
    :ivar written: objects that this process has written, which need not be read again.
    """

    def __init__(
        self,
        keyspace: Keyspace,
        revision: int,
        indexes: Sequence[FieldIndex],
        *,
        keeps_time: bool,
    ) -> None:
        self._keyspace = keyspace
        self._lock = threading.Lock()
        self._watch: Watch | None = None
        self._log: list[LogEntry] = []
        self._log_floor = self.floor = revision
        self.written: Written = {}
        self._objects = self._load(revision, indexes, keeps_time=keeps_time)

    def close(self) -> None:
        self._end_watch()

    @property
    def revision(self) -> int:
        return self._objects.revision

    def _load(self, revision: int, indexes: Sequence[FieldIndex], *, keeps_time: bool) -> State:
        """Read everything at a revision. Raises EtcdCompactedError."""
        keyspace = self._keyspace
        client, own = keyspace.client, keyspace.own
        pages = client.pages(*keyspace.keys.everything, revision=revision, page=PAGE)
        expirations = keyspace.expirations(revision) if keeps_time else {}
        records = sorted(keyspace.records(pages, expirations), key=lambda record: record.key)
        meta: list[tuple[str, tuple[str | None]]] = []
        for page in client.pages(own.meta, end_of(own.meta), revision=revision):
            meta += [(own.meta_name(kv.key), (load_text(kv.value),)) for kv in page.kvs]
        state = State(
            self._settings(revision),
            meta=SortedMap(sorted(meta)),
            indexes=tuple(indexes),
        )
        return state.with_records([(record, None) for record in records], revision)

    def _settings(self, revision: int) -> Object:
        keyspace = self._keyspace
        kv, _ = keyspace.client.get(keyspace.own.settings, revision)
        if kv is None:
            return {}
        return load_settings(kv.value)

    def state(self, compacted: int) -> State:
        """Return what was followed so far. ``compacted``: from where on etcd has history."""
        with self._lock:
            state = self._objects
            source = FollowedSource(
                self._keyspace, state.revision, self._log_floor, self._log, len(self._log)
            )
            compacted = min(compacted, self._log_floor)
        if not self._keyspace.watches_all:
            state = state._replace(settings=self._settings(state.revision))
        return state._replace(compacted=compacted, source=source, is_borrowed=True)

    def follow(self, revision: int) -> None:
        """Go on to a revision at least. Raises CompactedError, after which all must be loaded
        anew."""
        with self._lock:
            if self._watch is None and self._objects.revision < revision:
                self._begin_watch()
            while self._objects.revision < revision:
                assert self._watch is not None
                try:
                    batch = self._next_batch(self._watch)
                except StorageError:
                    self._end_watch()
                    raise
                self._take(batch.events, batch.revision)

    def _next_batch(self, watch: Watch) -> WatchBatch:
        """Wait for what the watch has for certain. One of objects alone is given an event, unless
        it is known that there was none."""
        keyspace = self._keyspace
        if not keyspace.watches_all:
            batch = watch.next_batch(GRACE)
            if batch is not None:
                return batch
            _, noted = keyspace.rest.newest()
            if noted.since <= self._objects.revision < noted.until:
                return WatchBatch(noted.until, [])
            keyspace.tick()
        return next_of(watch, keyspace.timeout)

    def wait(self, seconds: float) -> bool:
        """Wait for the next events, at most so long; return False, at once, where another thread
        does so, or etcd cannot be watched."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            watch = self._watch or self._begin_watch()
            until = time.monotonic() + seconds
            while (batch := watch.next_batch(max(0.0, until - time.monotonic()))) is not None:
                self._take(batch.events, batch.revision)
                if not self._are_ticks(batch.events):
                    break
        except StorageError:  # whoever follows next begins another watch, and hears of it
            self._end_watch()
            return False
        finally:
            self._lock.release()
        return True

    def _are_ticks(self, events: Sequence[KeyEvent]) -> bool:
        """Return whether events were made for a watch of objects alone, and nothing has happened.
        Two that follow each other's would never rest."""
        return all(event.kv.key == self._keyspace.keys.tick for event in events)

    def _begin_watch(self) -> Watch:
        """Watch from what is known on. Raises EtcdError."""
        start = self._objects.revision + 1
        self._watch = self._keyspace.watch(start)
        if not self._keyspace.watches_all:  # small values are read from now on
            self._objects = self._objects._replace(meta=SortedMap())
        return self._watch

    def _end_watch(self) -> None:
        """End a watch that has failed for good."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _take(self, events: Sequence[KeyEvent], revision: int) -> None:
        """Take events in, which lead to a revision. One that is known may be later."""
        keys, own = self._keyspace.keys, self._keyspace.own
        state = self._objects
        expirations = expirations_of(self._keyspace, events)
        meta: dict[str, str | None] = {}
        settings: Object | None = None
        changes: dict[Key, ObjectRecord] = {}
        objects: dict[Key, Object] = {}
        for event in events:
            path = event.kv.key
            key = keys.parse(path)
            if key is not None:
                present = changes[key] if key in changes else state.get(key)
                record = self._record(key, event, expirations)
                self._note(record, present)
                changes[key] = record
                if record.json is not None:
                    objects[key] = record.object
                else:
                    objects.pop(key, None)
            elif path.startswith(own.meta):
                value = None if event.is_delete else load_text(event.kv.value)
                meta[own.meta_name(path)] = value
            elif path == own.settings and not event.is_delete:
                settings = load_settings(event.kv.value)

        if changes:
            records = [(changes[key], state.get(key)) for key in sorted(changes)]
            state = state.with_records(records, revision, objects)
        if meta:
            values = [
                (name, None if meta[name] is None else (meta[name],)) for name in sorted(meta)
            ]
            state = state._replace(meta=state.meta.changed(values))
        if settings is not None:
            state = state._replace(settings=settings)
        self._objects = state._replace(revision=max(revision, state.revision))
        self._shorten()

    def _record(
        self, key: Key, event: KeyEvent, expirations: dict[tuple[Key, int], float]
    ) -> ObjectRecord:
        """Return the object after an event, without JSON where it is gone, or where its value is no
        object that can be read."""
        revision = event.kv.mod_revision
        values = self._keyspace.values
        if event.is_delete:
            values.forget(key)
            return ObjectRecord(key, revision, None)
        record = self.written.pop((key, revision), None)
        if record is not None:
            return record
        text = values.find(key, event.kv.value)
        return ObjectRecord(key, revision, text, expirations.get((key, revision)))

    def _note(self, record: ObjectRecord, before: ObjectRecord | None) -> None:
        """Add a change to the log."""
        former = before.json if before is not None else None
        if record.json is None:
            if former is not None:
                self._log.append(LogEntry(record.revision, DELETED, *record.key, former))
            return
        if before is None or former is None:
            self._log.append(LogEntry(record.revision, ADDED, *record.key, None))
            return
        moved = former if has_moved(before.object, record.object) else None
        self._log.append(LogEntry(record.revision, MODIFIED, *record.key, moved))

    def _shorten(self) -> None:
        """Forget the beginning of a log that is long. States have the list as it was."""
        if len(self._log) > 2 * LOG_LENGTH:
            forgotten = len(self._log) - LOG_LENGTH
            self._log_floor = self._log[forgotten - 1].revision
            self._log = self._log[forgotten:]
        if len(self.written) > LOG_LENGTH:  # of a watch that is far behind
            self.written.clear()
