"""The store in memory: empty, or a fork of a snapshot of another store.

All that a store holds is one :class:`StoreState`, which never changes: a commit puts another in its
place. A fork begins with the state of its origin, so it costs nothing, shares all that neither of
them changes, and neither sees the writes of the other. The state of a fork of a state folder lies
over a :class:`Source`, which reads objects when they are asked for.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, takewhile
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from kubepy.storage.errors import CompactedError, LockTimeoutError
from kubepy.storage.frozen import shared
from kubepy.storage.links import (
    Keys,
    LinkedObjects,
    LinkEntries,
    Lookup,
    Names,
    NewLinks,
    Places,
    Values,
    link_values,
    partial_object,
)
from kubepy.storage.model import (
    DELETED,
    LOG_LENGTH,
    LOG_SLACK,
    Admit,
    Change,
    CommittedChanges,
    Key,
    LogEntry,
    LoggedChange,
    LoggedChanges,
    Object,
    ObjectStream,
    Problem,
    Removal,
    Snapshot,
    coalesce,
)
from kubepy.storage.sortedmap import SortedMap
from kubepy.storage.timeline import (
    NewRecorder,
    TimelineEntry,
    TimelineRecorder,
    cut,
    is_overlong,
    longest,
    microseconds,
)
from kubepy.storage.transaction import BufferedTransaction, Expiry, StoredChange, TransactionEntry

Changes = list[Change]
Problems = list[Problem]
TimelineEntries = list[TimelineEntry]


class MemoryRecord:
    """An object as it is stored: its JSON, which is decoded when the object is first asked for.
    ``json`` None: it was deleted."""

    __slots__ = ("_object", "expires", "json", "key", "links", "revision")

    def __init__(
        self, key: Key, revision: int, json: str | None, expires: float | None = None
    ) -> None:
        self.key = key
        self.revision = revision
        self.json = json
        self.expires = expires
        self.links: Values = ()  # its entries in the state's LinkEntries
        self._object: Object | None = None

    @property
    def object(self) -> Object:
        """The object, which is shared."""
        if self._object is None:
            assert self.json is not None
            self._object = decode(self.json, self.revision)
        return self._object

    def is_alive(self, now: float) -> bool:
        return self.expires is None or self.expires > now


def decode(text: str, revision: int) -> Object:
    """Return the object of a JSON text with its resourceVersion."""
    obj: Object = json.loads(text)
    obj["metadata"]["resourceVersion"] = str(revision)
    return shared(obj)


Records = SortedMap[str, MemoryRecord]  # by name
Expiring = SortedMap[tuple[float, Key], bool]
NO_RECORDS: Records = SortedMap()
LAST = Key("\U0010ffff", "", "")  # sorts after every key


class Source(Protocol):
    """A snapshot of another store, read when it is asked for; it stays as it is whatever happens to
    that store."""

    revision: int

    def get(self, key: Key) -> MemoryRecord | None:
        """Return an object, None where there is none."""

    def records(self, resource: str, namespace: str) -> Records:
        """Return the objects of a resource in one namespace."""

    def linked(
        self, link: Lookup, value: str, resource: str | None, namespace: str | None
    ) -> Iterable[MemoryRecord]:
        """Return the objects that a link finds, in no order."""

    def counts(self, link: Lookup) -> Mapping[str, int]:
        """Return the values by which a link finds objects, each with the number of these."""

    def names(self, resource: str) -> list[Key]:
        """Return the keys of the objects of a resource."""

    def expiring(self) -> Expiring:
        """Return the volatile objects by the times at which they are over."""

    def entries(self, since: int) -> list[LogEntry]:
        """Return the entries of the change log after a revision, oldest first."""

    def timeline(self) -> TimelineEntries:
        """Return the entries of the timeline, in the order of the writes."""

    def meta(self, name: str) -> str | None:
        """Return a small value that is no object."""

    def meta_names(self) -> list[str]:
        """Return the names of all such values."""

    def close(self) -> object:
        """Let go of that store; nothing can be read after that."""


class ObjectTable:
    """The objects of a resource in one namespace: what was changed, over what a source has."""

    __slots__ = ("_changed", "_merged", "_place", "_source")

    def __init__(
        self,
        changed: Records = NO_RECORDS,
        source: Source | None = None,
        place: tuple[str, str] = ("", ""),
    ) -> None:
        self._changed = changed
        self._source = source
        self._place = place
        self._merged = changed if source is None else None

    def get(self, name: str) -> MemoryRecord | None:
        if self._merged is not None or self._source is None:
            return (self._merged or NO_RECORDS).get(name)
        record = self._changed.get(name)
        if record is None:
            return self._source.get(Key(*self._place, name))
        return None if record.json is None else record

    def records(self) -> Records:
        """Return all objects; those of the source are read now."""
        if self._merged is None:
            assert self._source is not None
            changes = (
                (name, None if record.json is None else record)
                for name, record in self._changed.items()
            )
            self._merged = self._source.records(*self._place).changed(changes)
        return self._merged

    def names(self) -> Iterable[str] | None:
        """Return the names of all objects, None where they are still with the source."""
        return None if self._merged is None else [name for name, _ in self._merged.items()]

    def size(self) -> int | None:
        """Return the number of objects, None where some are still with the source."""
        return None if self._merged is None else len(self._merged)

    def changes(self) -> Iterable[tuple[str, MemoryRecord]]:
        """Yield what was changed over the source, by name; a record without JSON is of a deleted
        object."""
        return self._changed.items()

    def changed(self, records: Iterable[MemoryRecord]) -> ObjectTable:
        """Return the table with some objects changed; a record without JSON removes its object."""
        if self._merged is None:
            return ObjectTable(
                self._changed.changed((record.key.name, record) for record in records),
                self._source,
                self._place,
            )
        return ObjectTable(
            self._merged.changed(
                (record.key.name, None if record.json is None else record) for record in records
            )
        )


Tables = Mapping[str, Mapping[str, ObjectTable]]  # by resource and namespace


class StoreState(NamedTuple):
    """All that a store holds at one revision. Nothing in it is ever changed.

    :ivar log: the changes by their revisions, without those that are still read from the source.
    :ivar compacted: the revision from which on the change log reaches.
    :ivar meta: the small values that were set; a source may have others.
    :ivar expiring: the volatile objects by the times at which they are over; None until the source
        is asked.
    :ivar timeline: the entries of the timeline by the revisions of their writes, without those of
        the source.
    :ivar forgotten: the revision of the newest entry that was removed from the timeline.
    :ivar links: what objects are looked up by.
    :ivar linked: the entries of the objects, without those that are as the source has them.
    """

    settings: Object
    revision: int = 0
    tables: Tables = MappingProxyType({})
    log: SortedMap[int, LogEntry] = SortedMap()
    compacted: int = 0
    meta: Mapping[str, str | None] = MappingProxyType({})
    expiring: Expiring | None = SortedMap()
    source: Source | None = None
    timeline: SortedMap[int, TimelineEntry] = SortedMap()
    forgotten: int = 0
    links: tuple[Lookup, ...] = ()
    linked: LinkEntries = LinkEntries()

    def get(self, key: Key) -> MemoryRecord | None:
        table = self.tables.get(key.resource, {}).get(key.namespace)
        return table.get(key.name) if table is not None else None

    def records(self, resource: str, namespace: str | None) -> list[MemoryRecord]:
        """Return the objects of a resource (in one namespace, or None: everywhere), in key
        order."""
        tables = self.tables.get(resource, {})
        if namespace is not None:
            table = tables.get(namespace)
            return table.records().values() if table is not None else []
        return [record for name in sorted(tables) for record in tables[name].records().values()]

    def keys(self, resource: str) -> Iterator[Key]:
        """Yield the keys of the objects of a resource, in key order."""
        tables = self.tables.get(resource, {})
        by_namespace: dict[str, list[str]] = {}
        if self.source is not None and any(table.names() is None for table in tables.values()):
            for key in self.source.names(resource):
                by_namespace.setdefault(key.namespace, []).append(key.name)
        for namespace in sorted(tables):
            names = tables[namespace].names()
            if names is None:
                changes = dict(tables[namespace].changes())
                present = {*by_namespace.get(namespace, ()), *changes}
                names = [
                    name
                    for name in sorted(present)
                    if name not in changes or changes[name].json is not None
                ]
            yield from (Key(resource, namespace, name) for name in names)

    def count(self, resource: str) -> int:
        """Return the number of objects of a resource."""
        sizes = [table.size() for table in self.tables.get(resource, {}).values()]
        if None in sizes:  # the source knows
            return sum(1 for _ in self.keys(resource))
        return sum(size for size in sizes if size is not None)

    def find(
        self, name: str, value: str, resource: str | None = None, namespace: str | None = None
    ) -> list[MemoryRecord]:
        """Return the objects that a link finds by a value (of one resource, in one namespace), in
        key order."""
        found = [
            record
            for key in self.linked.keys(name, value, resource, namespace)
            if (record := self.get(key)) is not None
        ]
        if self.source is None:
            return found
        link = next(link for link in self.links if link.name == name)
        older = (
            record
            for record in self.source.linked(link, value, resource, namespace)
            if (present := self.get(record.key)) is not None and present.revision == record.revision
        )
        return sorted([*found, *older], key=lambda record: record.key)

    def counts(self, name: str) -> Counter[str]:
        """Return the values of a link, each with the number of objects that have it, at most."""
        counts = self.linked.counts(name)
        if self.source is not None:  # also objects that are others now, or gone
            counts.update(
                self.source.counts(next(link for link in self.links if link.name == name))
            )
        return counts

    def with_links(self, links: Sequence[Lookup]) -> StoreState:
        """Return the state in which objects are looked up by these links."""
        if self.links == tuple(links):
            return self
        state = self._replace(links=tuple(links), linked=LinkEntries())
        records = [
            record
            for tables in self.tables.values()
            for table in tables.values()
            for _, record in table.changes()
        ]
        return state._replace(
            linked=state._link(
                (record, None, None) for record in records if record.json is not None
            )
        )

    def _link(
        self, changes: Iterable[tuple[MemoryRecord, Object | None, MemoryRecord | None]]
    ) -> LinkEntries:
        """Return the entries after changes: the new record, its object if that is known, and the
        record before."""
        values: dict[Key, tuple[Values, Values]] = {}
        for record, obj, before in changes:
            if record.json is not None:
                record.links = link_values(
                    self.links, record.key, record.object if obj is None else obj, record.json
                )
            values[record.key] = before.links if before is not None else (), record.links
        return self.linked.changed(values)

    def entries(self, since: int) -> list[LogEntry]:
        """Return the entries of the change log after a revision, oldest first. Raises
        CompactedError."""
        if not self.compacted <= since <= self.revision:
            raise CompactedError(
                f"the change log reaches from revision {self.compacted} to {self.revision}, not "
                f"to {since}"
            )
        older = (
            self.source.entries(since)
            if self.source is not None and since < self.source.revision
            else []
        )
        return [*older, *(entry for _, entry in self.log.after(since))]

    def changes(self, since: int) -> Changes:
        """Return what changed after a revision, oldest first. Raises CompactedError."""
        return [change.decoded(decode) for change in self.logged_changes(since)]

    def logged_changes(self, since: int) -> LoggedChanges:
        """Return what :meth:`changes` does with objects as text. Raises CompactedError."""
        changes: list[LoggedChange] = []
        for revision, change_type, key, last, former in coalesce(self.entries(since)):
            if change_type == DELETED:
                assert last is not None
                changes.append(LoggedChange(revision, DELETED, key, last, former=former))
            elif (record := self.get(key)) is not None and record.json is not None:
                changes.append(
                    LoggedChange(
                        record.revision, change_type, key, record.json, record.expires, former
                    )
                )
        return changes

    def meta_value(self, name: str) -> str | None:
        if name in self.meta or self.source is None:
            return self.meta.get(name)
        return self.source.meta(name)

    def all_meta(self) -> dict[str, str | None]:
        """Return all small values."""
        names = {*self.meta, *(self.source.meta_names() if self.source is not None else ())}
        return {name: self.meta_value(name) for name in sorted(names)}

    def all_expiring(self) -> Expiring:
        """Return the volatile objects by the times at which they are over; some may have gone
        since."""
        if self.expiring is None:
            assert self.source is not None
            return self.source.expiring()
        return self.expiring

    def timeline_entries(self, after: int = 0) -> TimelineEntries:
        """Return the entries of the timeline after a revision, and perhaps others before those, in
        the order of the writes."""
        older = (
            self.source.timeline()
            if self.source is not None and after < self.source.revision
            else []
        )
        return [
            *(entry for entry in older if entry.revision > self.forgotten),
            *self.timeline.values(),
        ]

    def with_timeline(self, entries: TimelineEntries, keep: float) -> StoreState:
        """Return the state with further entries of the timeline. ``keep``:
        see :class:`TimelineRecorder`."""
        timeline = self.timeline.changed((entry.revision, entry) for entry in entries)
        _, first = next(timeline.after(0))
        if not is_overlong(first.at, entries[-1].at, len(timeline), keep):
            return self._replace(timeline=timeline)
        present = timeline.values()
        kept = cut(present, entries[-1].at - microseconds(keep), longest(keep))
        return self._replace(
            timeline=SortedMap((entry.revision, entry) for entry in kept),
            forgotten=present[-len(kept) - 1].revision,
        )

    def changed(
        self,
        changes: Iterable[StoredChange[MemoryRecord]],
        log: Iterable[LogEntry],
        revision: int,
        objects: Mapping[Key, Object] = MappingProxyType({}),
    ) -> StoreState:
        """Return the state after a commit. ``objects``: those of the changes that are decoded
        already."""
        places: dict[tuple[str, str], list[MemoryRecord]] = {}
        expiring: list[tuple[tuple[float, Key], bool | None]] = []
        linked: list[tuple[MemoryRecord, Object | None, MemoryRecord | None]] = []
        for key, before, text, changed_at, expires, _ in changes:
            record = MemoryRecord(key, changed_at, text, expires)
            places.setdefault((key.resource, key.namespace), []).append(record)
            linked.append((record, objects.get(key), before))
            if before is not None and before.expires is not None:
                expiring.append(((before.expires, key), None))
            if expires is not None and text is not None:
                expiring.append(((expires, key), True))

        tables: dict[str, Mapping[str, ObjectTable]] = dict(self.tables)
        for (resource, namespace), records in places.items():
            of_resource = tables.get(resource, {})
            tables[resource] = {
                **of_resource,
                namespace: of_resource.get(namespace, ObjectTable()).changed(records),
            }

        after = self._replace(
            revision=revision,
            tables=tables,
            linked=self._link(linked) if self.links else self.linked,
            log=self.log.changed((entry.revision, entry) for entry in log),
            expiring=self.all_expiring().changed(expiring) if expiring else self.expiring,
        )
        if revision - after.compacted <= LOG_LENGTH + LOG_SLACK:
            return after
        compacted = revision - LOG_LENGTH
        return after._replace(compacted=compacted, log=SortedMap(after.log.after(compacted)))


class MemoryTransaction(BufferedTransaction[MemoryRecord]):
    """Changes to a store in memory.

    :ivar meta: the small values that were set.
    :ivar settings: the settings that were changed.
    """

    def __init__(
        self,
        state: StoreState,
        volatile: Mapping[str, float],
        now: Callable[[], float],
        recorder: TimelineRecorder | None,
    ) -> None:
        super().__init__(state.revision, volatile, now, recorder)
        self._state = state
        self.meta: dict[str, str | None] = {}
        self.settings: Object = {}

    def changes(self, since: int) -> Changes:
        """Return changes as things stood when the transaction began: without its own writes."""
        return self._state.changes(since)

    def load(self, key: Key) -> MemoryRecord | None:
        return self._state.get(key)

    def load_all(self, resource: str, namespace: str | None) -> Iterable[MemoryRecord]:
        return self._state.records(resource, namespace)

    def load_expired(self, now: float, after: Expiry, limit: int) -> Iterable[Expiry]:
        later = (expiry for expiry, _ in self._state.all_expiring().after(after))
        expired = takewhile(lambda expiry: expiry[0] <= now, later)
        return list(islice((expiry for expiry in expired if self._state.get(expiry[1])), limit))

    def next_expiry_after(self, now: float) -> float:
        later = self._state.all_expiring().after((now, LAST))
        return next((expires for (expires, _), _ in later), inf)

    def decode(self, key: Key, entry: TransactionEntry[MemoryRecord]) -> Object:
        assert entry.before is not None
        return entry.before.object

    def after(self) -> StoreState:
        """Return the state with everything that was changed."""
        state = self._state
        if self._touched:
            objects = {
                key: obj for key in self._touched if (obj := self._entries[key].object) is not None
            }
            state = state.changed(self.changed(), self.log(), self._revision, objects)
        if self.timeline and self._recorder is not None:
            state = state.with_timeline(self.timeline, self._recorder.keep)
        settings = {
            name: value
            for name, value in {**state.settings, **self.settings}.items()
            if value is not None
        }
        return state._replace(meta={**state.meta, **self.meta}, settings=settings)


class MemoryStore:
    """A store that is gone with its process. Several threads may use it: one writes at a time, all
    read meanwhile.

    :param state: the settings, or the state of another store, which this one is a fork of then.
    :param volatile: resources whose objects expire, and after how many seconds (events: 3600).
    :param now: the cluster's time in seconds since the epoch, for ``volatile``.
    :param lock_timeout: seconds that a transaction waits for one of another thread.
    """

    folder = ""

    def __init__(
        self,
        state: StoreState | Mapping[str, Any] | None = None,
        *,
        volatile: Mapping[str, float] | None = None,
        now: Callable[[], float] | None = None,
        lock_timeout: float = 30.0,
    ) -> None:
        self._state = (
            state
            if isinstance(state, StoreState)
            else StoreState({"formatVersion": 1, **(state or {})})
        )
        self._volatile = dict(volatile or {})
        self._now = now or time.time
        self.lock_timeout = lock_timeout
        self._lock = threading.Lock()
        self._writer: tuple[int, MemoryTransaction] | None = (
            None  # the thread of the transaction under way
        )
        self._held: dict[str, str] = {}  # the holders of named locks
        self._listener: Callable[[CommittedChanges], None] | None = None
        self._new_recorder: NewRecorder | None = None
        self._shares_source = False

    def connect(
        self,
        admit: Admit,
        removal: Removal,
        now: Callable[[], float],
        new_recorder: NewRecorder | None = None,
        links: NewLinks = tuple,
    ) -> None:
        """Take the cluster's time, a function for its timeline, and what objects are looked up by;
        nothing edits objects here but transactions."""
        self._now = now
        self._new_recorder = new_recorder
        self._state = self._state.with_links(links())

    def set_warn(self, warn: Callable[[str], None]) -> None:
        """Ignore the function: nothing here can be damaged."""

    def close(self) -> None:
        """Do nothing: the store is gone with the last that refers to it."""

    def sync(self) -> None:
        """Do nothing: nothing here outlasts the process."""

    def fork(self) -> MemoryStore:
        """Return an independent store with everything that is committed in this one."""
        fork = MemoryStore(
            self._state, volatile=self._volatile, now=self._now, lock_timeout=self.lock_timeout
        )
        fork._shares_source = True
        return fork

    def release(self) -> None:
        """Let go of the folder that this store is a fork of: neither it nor a fork of it can be
        read any more.

        A fork of a store in memory shares the folder with that store, which is the one to let go of
        it.
        """
        if self._state.source is not None and not self._shares_source:
            self._state.source.close()

    def state(self) -> StoreState:
        """Return all that is committed."""
        return self._state

    recorded_state = state

    def view(self) -> MemoryView:
        """Return a view of what is committed here."""
        return MemoryView(self)

    # --- reading ---

    def get(self, key: Key) -> Object | None:
        """Return an object, None where there is none."""
        record = self._state.get(key)
        return record.object if record is not None and record.is_alive(self._now()) else None

    def find(self, key: Key) -> tuple[Object | None, Problem | None]:
        """Return an object; no object here has a problem."""
        return self.get(key), None

    def list(self, resource: str, namespace: str | None = None) -> Snapshot:
        """Return the objects of a resource (in one namespace, or None: everywhere)."""
        state, now = self._state, self._now()
        records = state.records(resource, namespace)
        return Snapshot(
            state.revision, [record.object for record in records if record.is_alive(now)]
        )

    def stream(self, resource: str, namespace: str | None = None) -> ObjectStream:
        """Return the same objects one by one."""
        snapshot = self.list(resource, namespace)
        return ObjectStream(snapshot.revision, iter(snapshot.objects))

    def revision(self) -> int:
        """Return the newest revision."""
        return self._state.revision

    def resources(self) -> Names:
        """Return the resources of which there are objects, sorted."""
        now = self._now()
        return sorted(
            resource
            for resource, tables in self._state.tables.items()
            if any(
                record.is_alive(now)
                for table in tables.values()
                for record in table.records().values()
            )
        )

    def namespaces(self) -> Names:
        """Return the namespaces in which there are objects that do not expire, sorted."""
        names = {
            name
            for resource, tables in self._state.tables.items()
            if resource not in self._volatile
            for name, table in tables.items()
            if name and table.records()
        }
        return sorted(names)

    def changes(
        self, since: int, *, reads: Iterable[Key] | None = None, looked_within: float = 0.0
    ) -> Changes:
        """Return what changed after a revision, oldest first; several changes of one object may
        have become one.

        Raises CompactedError if the log no longer reaches back that far: list again.
        """
        return self._state.changes(since)

    def logged_changes(self, since: int, *, scan: bool) -> tuple[int, LoggedChanges]:
        """Return the newest revision, and what :meth:`changes` does with objects as text; there is
        nothing to scan."""
        state = self._state
        return state.revision, state.logged_changes(since)

    def timeline(self, *, since: int | None = None, after: int = 0) -> TimelineEntries:
        """Return the entries of the timeline that are kept, in the order of the writes."""
        keep = recorder.keep if (recorder := self._recorder()) is not None else inf
        first = microseconds(self._now() - keep)
        entries = cut(
            self._state.timeline_entries(after),
            first if since is None else max(first, since),
            longest(keep),
        )
        return [entry for entry in entries if entry.revision > after]

    def refresh(
        self, resource: str, namespace: str | None = None
    ) -> tuple[int, tuple[Problem, ...]]:
        """Return the newest revision, and no problems: there are no files."""
        return self._state.revision, ()

    def listen(self, listener: Callable[[CommittedChanges], None]) -> None:
        """Take a function that is called with what each transaction has changed, before the next
        one begins."""
        self._listener = listener

    def problems(self, *, look: bool = True) -> Problems:
        """Return nothing: there are no files."""
        return []

    def watch_files(self) -> None:
        """Do nothing: only this process changes the objects."""

    def wait_for_change(self, seconds: float) -> bool:
        """Return False: nothing tells of changes."""
        return False

    def is_quiet(self) -> bool:
        """Return False: asking for the changes costs no more."""
        return False

    def describe(self, problem: Problem) -> str:
        """Return a problem as it is."""
        return str(problem)

    def check(self) -> Names:
        """Return nothing: there is nothing that could disagree."""
        return []

    def repair(self) -> Names:
        """Return nothing: there is nothing to repair."""
        return []

    # --- writing ---

    @contextmanager
    def transaction(
        self, *, refresh: bool = False, looked_within: float = 0.0
    ) -> Iterator[MemoryTransaction]:
        """Run the block and commit. An exception in the block changes nothing. Raises
        LockTimeoutError.

        ``refresh``, ``looked_within``: as for other stores; nothing is ever edited from outside."""
        if self._current() is not None:
            raise RuntimeError("a transaction is under way in this store; transactions do not nest")
        if not self._lock.acquire(timeout=max(self.lock_timeout, 0.0)):
            raise LockTimeoutError(
                f"the store is held by another thread (waited {self.lock_timeout:g} s)"
            )

        try:
            changes = MemoryTransaction(
                self._state, self._volatile, lambda: self._now(), self._recorder()
            )
            self._writer = threading.get_ident(), changes
            yield changes
            self._state = changes.after()
            if self._listener is not None and not changes.is_empty():
                self._listener(changes.committed())
        finally:
            self._writer = None
            self._lock.release()

    def _recorder(self) -> TimelineRecorder | None:
        return self._new_recorder() if self._new_recorder is not None else None

    def _current(self) -> MemoryTransaction | None:
        """Return this thread's transaction that is under way."""
        writer = self._writer
        return writer[1] if writer is not None and writer[0] == threading.get_ident() else None

    def settings(self) -> Object:
        """Return the settings of the cluster."""
        current = self._current()
        return dict(self._state.settings if current is None else current.after().settings)

    def set_settings(self, changes: Mapping[str, Any]) -> None:
        """Change settings (None removes one), as part of the transaction that is under way, else in
        one of its own."""
        if (current := self._current()) is not None:
            current.settings.update(changes)
        else:
            with self.transaction() as transaction:
                transaction.settings.update(changes)

    def meta(self, name: str) -> str | None:
        """Return a small value that is no object (the last id that was given)."""
        current = self._current()
        if current is not None and name in current.meta:
            return current.meta[name]
        return self._state.meta_value(name)

    def set_meta(self, name: str, value: str | None, others: Mapping[str, str | None] = {}) -> None:
        """Set such a value, and ``others``, as part of the transaction that is under way, else in
        one of its own."""
        if (current := self._current()) is not None:
            current.meta.update({name: value, **others})
        else:
            with self.transaction() as transaction:
                transaction.meta.update({name: value, **others})

    # --- other locks ---

    @contextmanager
    def hold(self, name: str) -> Iterator[Callable[[], bool]]:
        """Hold a named lock for the length of a block, which gets a function that returns whether
        it was lost: never.

        Raises LockTimeoutError, which names the holder, at once.
        """
        holder = f"thread {threading.current_thread().name} of process {os.getpid()}"
        if (present := self._held.setdefault(name, holder)) is not holder:
            raise LockTimeoutError(f"{name} is held by {present}")
        try:
            yield lambda: False
        finally:
            del self._held[name]

    def holder(self, name: str) -> str | None:
        """Return the thread that holds a named lock, None when there is none."""
        return self._held.get(name)


class MemoryView:
    """The state of a store in memory at one revision
    (:class:`kubepy.storage.links.RecordedView`)."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._state = store.state()

    @property
    def revision(self) -> int:
        return self._state.revision

    def refresh(self) -> None:
        self._state = self._store.state()

    def release(self) -> None:
        """Do nothing: a state stays as it is, whatever happens to its store."""

    def get(self, key: Key) -> Object | None:
        record = self._state.get(key)
        return record.object if record is not None else None

    def get_all(self, keys: Collection[Key]) -> LinkedObjects:
        return [(key, obj) for key in keys if (obj := self.get(key)) is not None]

    def list(self, resource: str, namespace: str | None = None) -> LinkedObjects:
        return _with_keys(self._state.records(resource, namespace))

    def linked(
        self, link: str, value: str, resource: str | None = None, namespace: str | None = None
    ) -> LinkedObjects:
        return _with_keys(self._state.find(link, value, resource, namespace))

    def linked_all(
        self,
        link: str,
        values: Collection[str],
        resource: str | None = None,
        namespace: str | None = None,
    ) -> LinkedObjects:
        return [
            entry for value in values for entry in self.linked(link, value, resource, namespace)
        ]

    def counts(self, link: str) -> Mapping[str, int]:
        return self._state.counts(link)

    def parts(
        self,
        paths: Sequence[str],
        resource: str,
        namespace: str | None = None,
        link: str = "",
        value: str = "",
    ) -> LinkedObjects:
        objects = (
            self.linked(link, value, resource, namespace)
            if link
            else self.list(resource, namespace)
        )
        fields = [path.split(".") for path in paths]
        return [
            (
                key,
                partial_object(
                    fields, ((obj.get(section) or {}).get(field) for section, field in fields)
                ),
            )
            for key, obj in objects
        ]

    def keys(self, resource: str, limit: int | None = None) -> Keys:
        return list(islice(self._state.keys(resource), limit))

    def count(self, resource: str) -> int:
        return self._state.count(resource)

    def names(self, resource: str, namespace: str, prefix: str) -> Names:
        return [
            key.name
            for key in self._state.keys(resource)
            if key.namespace == namespace and key.name.startswith(prefix)
        ]

    def places(self) -> Places:
        return [
            (resource, namespace)
            for resource, tables in self._state.tables.items()
            for namespace in tables
        ]


def _with_keys(records: Iterable[MemoryRecord]) -> LinkedObjects:
    return [(record.key, record.object) for record in records]
