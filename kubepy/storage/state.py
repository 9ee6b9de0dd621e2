"""All that a store holds at one revision, as one value that never changes.

A :class:`State` has tables of objects by resource and namespace, the change log, the timeline,
settings and small values. A commit makes another State, which shares with the one before all that
did not change (``kubepy.storage.sortedmap``). The State of a store that keeps its objects elsewhere
lies over a :class:`Source`, which reads them when they are asked for. Nothing here knows where that
is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import NamedTuple, Protocol

from kubepy.storage.errors import CompactedError
from kubepy.storage.indexes import (
    FieldIndex,
    IndexEntries,
    Values,
    index_values,
    parts_of,
)
from kubepy.storage.model import (
    DELETED,
    LOG_LENGTH,
    LOG_SLACK,
    Change,
    Changes,
    ChangesSince,
    Key,
    LogEntry,
    Object,
    coalesce,
    decode,
)
from kubepy.storage.sortedmap import SortedMap
from kubepy.storage.timeline import NEVER, TimelineEntry, cut, is_overlong, longest, microseconds
from kubepy.storage.transaction import StoredChange

TimelineEntries = list[TimelineEntry]
KeyedObjects = list[tuple[Key, Object]]
Keys = list[Key]
Places = list[tuple[str, str]]  # resources and namespaces


class ObjectRecord:
    """An object as it is stored: its JSON, which is decoded when the object is first asked for.

    :param obj: the object, where it is known already; then ``json`` may be None.
    """

    __slots__ = ("_object", "expires", "json", "key", "revision", "values")

    def __init__(
        self,
        key: Key,
        revision: int,
        json: str | None,
        expires: float | None = None,
        obj: Object | None = None,
    ) -> None:
        self.key = key
        self.revision = revision
        self.json = json
        self.expires = expires
        self.values: Values = ()  # its entries in the state's IndexEntries
        self._object = obj

    @property
    def is_there(self) -> bool:
        """Whether there is an object; else it was deleted."""
        return self.json is not None or self._object is not None

    @property
    def object(self) -> Object:
        """The object, which is shared."""
        if self._object is None:
            assert self.json is not None
            self._object = decode(self.json, self.revision)
        return self._object

    def is_alive(self, now: float) -> bool:
        return self.expires is None or self.expires > now


Records = SortedMap[str, ObjectRecord]  # by name
Expiring = SortedMap[tuple[float, Key], bool]
NO_RECORDS: Records = SortedMap()
LAST = Key("\U0010ffff", "", "")  # sorts after every key


class Source(Protocol):
    """A snapshot of another store, read when it is asked for; it stays as it is whatever happens to
    that store."""

    revision: int

    def get(self, key: Key) -> ObjectRecord | None:
        """Return an object, None where there is none."""

    def records(self, resource: str, namespace: str) -> Records:
        """Return the objects of a resource in one namespace."""

    def objects(self, resource: str, namespace: str | None) -> KeyedObjects:
        """Return the objects of a resource (in one namespace, or None: everywhere), in key order,
        without those whose files cannot be objects."""

    def objects_at(self, keys: Collection[Key]) -> KeyedObjects:
        """Return the objects that are there at these keys, likewise."""

    def found(
        self,
        index: FieldIndex,
        values: Collection[str],
        resource: str | None,
        namespace: str | None,
    ) -> KeyedObjects:
        """Return the objects that an index finds by any of some values, likewise."""

    def parts(
        self,
        paths: Sequence[str],
        resource: str,
        namespace: str | None,
        index: FieldIndex | None,
        value: str,
    ) -> KeyedObjects:
        """Return some fields of the objects of a resource (that an index finds), likewise."""

    def counts(self, index: FieldIndex) -> Mapping[str, int]:
        """Return the values by which an index finds objects, each with the number of these."""

    def keys(self, resource: str, namespace: str | None = None, prefix: str = "") -> Keys:
        """Return the keys of the objects of a resource (in one namespace, or None: everywhere)
        whose names begin so, in key order."""

    def count(self, resource: str) -> int:
        """Return the number of objects of a resource, without reading them."""

    def places(self) -> Places:
        """Return the resources and namespaces in which there may be objects."""

    def has_objects(self, resource: str, namespace: str, now: float) -> bool:
        """Return whether a namespace has objects of a resource whose time is not over."""

    def expiring(self) -> Expiring:
        """Return the volatile objects by the times at which they are over."""

    def entries(self, since: int) -> list[LogEntry]:
        """Return the entries of the change log after a revision, oldest first."""

    def timeline(self, first: int, length: float, after: int = 0) -> TimelineEntries:
        """Return the entries of the timeline that ``cut`` leaves, and of them those after a
        revision, in the order of the writes."""

    def meta(self, name: str) -> str | None:
        """Return a small value that is no object."""

    def meta_names(self) -> list[str]:
        """Return the names of all such values."""

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be read any more; whoever tries gets a LostStateError."""

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

    def get(self, name: str) -> ObjectRecord | None:
        if self._merged is not None:
            return self._merged.get(name)
        record = self._changed.get(name)
        if record is None:
            assert self._source is not None
            return self._source.get(Key(*self._place, name))
        return record if record.is_there else None

    def records(self) -> Records:
        """Return all objects; those of the source are read now."""
        if self._merged is None:
            assert self._source is not None
            changes = (
                (name, record if record.is_there else None)
                for name, record in self._changed.items()
            )
            self._merged = self._source.records(*self._place).changed(changes)
        return self._merged

    def has_objects(self, now: float) -> bool:
        """Return whether there are objects whose time is not over."""
        if self._merged is None and self._source is not None and not self._changed:
            return self._source.has_objects(*self._place, now)
        return any(record.is_alive(now) for record in self.records().values())

    @property
    def is_read(self) -> bool:
        """Whether the source is not needed any more."""
        return self._merged is not None

    def is_as_in_source(self, name: str, obj: Object) -> bool:
        """Return whether an object of the source was not changed since."""
        record = self._changed.get(name)
        if record is None:
            return self._source is not None
        return bool(obj["metadata"]["resourceVersion"] == str(record.revision))

    def changes(self) -> Iterable[tuple[str, ObjectRecord]]:
        """Yield what was changed over the source, by name; a record may be of a deleted
        object."""
        return self._changed.items()

    def changed(self, records: Iterable[ObjectRecord]) -> ObjectTable:
        """Return the table with some objects changed; the record of a deleted one removes it."""
        if self._merged is None:
            return ObjectTable(
                self._changed.changed((record.key.name, record) for record in records),
                self._source,
                self._place,
            )
        return ObjectTable(
            self._merged.changed(
                (record.key.name, record if record.is_there else None) for record in records
            )
        )


Tables = Mapping[str, Mapping[str, ObjectTable]]  # by resource and namespace


class SourceTables(Mapping[str, Mapping[str, ObjectTable]]):
    """The tables of a source, which is asked for its places when the first of them is needed."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._tables: dict[str, dict[str, ObjectTable]] | None = None

    def _read(self) -> Tables:
        if self._tables is None:
            tables: dict[str, dict[str, ObjectTable]] = {}
            for place in self._source.places():
                resource, namespace = place
                table = ObjectTable(source=self._source, place=place)
                tables.setdefault(resource, {})[namespace] = table
            self._tables = tables
        return self._tables

    def __getitem__(self, resource: str) -> Mapping[str, ObjectTable]:
        return self._read()[resource]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


class State(NamedTuple):
    """All that a store holds at one revision. Nothing in it is ever changed.

    :ivar log: the changes by their revisions, without those that are still read from the source.
    :ivar compacted: the revision from which on the change log reaches.
    :ivar meta: the small values that were set, None for one that was removed; a source may have
        others.
    :ivar expiring: the volatile objects by the times at which they are over; None until the source
        is asked.
    :ivar timeline: the entries of the timeline by the revisions of their writes, without those of
        the source.
    :ivar forgotten: the revision of the newest entry that was removed from the timeline.
    :ivar indexes: what objects are found by.
    :ivar index_entries: the entries of the objects, without those that are as the source has them.
    :ivar is_borrowed: the source is that of another state, which closes it.
    """

    settings: Object
    revision: int = 0
    tables: Tables = MappingProxyType({})
    log: SortedMap[int, LogEntry] = SortedMap()
    compacted: int = 0
    meta: SortedMap[str, tuple[str | None]] = SortedMap()
    expiring: Expiring | None = SortedMap()
    source: Source | None = None
    timeline: SortedMap[int, TimelineEntry] = SortedMap()
    forgotten: int = 0
    indexes: tuple[FieldIndex, ...] = ()
    index_entries: IndexEntries = IndexEntries()
    is_borrowed: bool = False

    # --- objects with their JSON

    def get(self, key: Key) -> ObjectRecord | None:
        table = self.tables.get(key.resource, {}).get(key.namespace)
        return table.get(key.name) if table is not None else None

    def records(self, resource: str, namespace: str | None) -> list[ObjectRecord]:
        """Return the objects of a resource (in one namespace, or None: everywhere), in key
        order."""
        tables = self.tables.get(resource, {})
        if namespace is not None:
            table = tables.get(namespace)
            return table.records().values() if table is not None else []
        return [record for name in sorted(tables) for record in tables[name].records().values()]

    def resources(self, now: float) -> list[str]:
        """Return the resources of which there are objects whose time is not over, sorted."""
        return sorted(
            resource
            for resource, tables in self.tables.items()
            if any(table.has_objects(now) for table in tables.values())
        )

    # --- objects for whoever follows the change log

    def objects(self, resource: str, namespace: str | None = None) -> KeyedObjects:
        """Return the objects of a resource (in one namespace, or None: everywhere), in key
        order."""
        if (source := self._whole_source()) is not None:
            return source.objects(resource, namespace)
        return _with_keys(self.records(resource, namespace))

    def objects_at(self, keys: Collection[Key]) -> KeyedObjects:
        """Return the objects that are there at these keys."""
        if (source := self._whole_source()) is not None:
            return source.objects_at(keys)
        return _with_keys(record for key in keys if (record := self.get(key)) is not None)

    def found(
        self,
        index: str,
        values: Collection[str],
        resource: str | None = None,
        namespace: str | None = None,
    ) -> KeyedObjects:
        """Return the objects that an index finds by any of some values (of one resource, in one
        namespace), in key order."""
        if (source := self._whole_source()) is not None:
            return source.found(self._index(index), values, resource, namespace)
        found: dict[Key, Object] = {}
        for value in values:
            for key in self.index_entries.keys(index, value, resource, namespace):
                if (record := self.get(key)) is not None:
                    found[key] = record.object
        if self.source is not None:
            for key, obj in self.source.found(self._index(index), values, resource, namespace):
                if self.tables[key.resource][key.namespace].is_as_in_source(key.name, obj):
                    found[key] = obj
        return sorted(found.items())

    def parts(
        self,
        paths: Sequence[str],
        resource: str,
        namespace: str | None = None,
        index: str = "",
        value: str = "",
    ) -> KeyedObjects:
        """Return only some fields of the objects of a resource (that an index finds), in key order
        (:func:`~kubepy.storage.indexes.parts_of`)."""
        if (source := self._whole_source()) is not None:
            used = self._index(index) if index else None
            return source.parts(paths, resource, namespace, used, value)
        if index:
            return parts_of(self.found(index, [value], resource, namespace), paths)
        return parts_of(self.objects(resource, namespace), paths)

    def counts(self, index: str) -> Mapping[str, int]:
        """Return the values of an index, each with the number of objects that have it, at most."""
        counts = self.index_entries.counts(index)
        if self.source is not None:  # also objects that are others now, or gone
            counts.update(self.source.counts(self._index(index)))
        return counts

    def keys(self, resource: str, namespace: str | None = None, prefix: str = "") -> Keys:
        """Return the keys of the objects of a resource (in one namespace, or None: everywhere)
        whose names begin so, in key order."""
        if (source := self._whole_source()) is not None:
            return source.keys(resource, namespace, prefix)
        keys: Keys = []
        unread: dict[str, set[str]] = {}  # by namespace: the names that the source does not tell
        tables = self.tables.get(resource, {})
        places = tables if namespace is None else tables.keys() & {namespace}
        for place in places:
            table = tables[place]
            changes = dict(table.records().items() if table.is_read else table.changes())
            for name, record in changes.items():
                if record.is_there and name.startswith(prefix):
                    keys.append(Key(resource, place, name))
            if not table.is_read:
                unread[place] = set(changes)
        if unread and self.source is not None:
            for key in self.source.keys(resource, namespace, prefix):
                if key.name not in unread.get(key.namespace, (key.name,)):
                    keys.append(key)
        return sorted(keys)

    def count(self, resource: str) -> int:
        """Return the number of objects of a resource."""
        if (source := self._whole_source()) is not None:
            return source.count(resource)
        if self.source is not None:
            return len(self.keys(resource))
        return sum(len(table.records()) for table in self.tables.get(resource, {}).values())

    def places(self) -> Places:
        """Return the resources and namespaces in which there may be objects, in no order."""
        return [(resource, name) for resource, tables in self.tables.items() for name in tables]

    def _whole_source(self) -> Source | None:
        """Return the source where it has all objects as they are, and this state is its only
        reader."""
        if self.is_borrowed or self.source is None or self.source.revision != self.revision:
            return None
        return self.source

    # --- indexes

    def _index(self, name: str) -> FieldIndex:
        return next(index for index in self.indexes if index.name == name)

    def with_indexes(self, indexes: Sequence[FieldIndex]) -> State:
        """Return the state in which objects are found by these indexes."""
        if self.indexes == tuple(indexes):
            return self
        state = self._replace(indexes=tuple(indexes), index_entries=IndexEntries())
        records = [
            record
            for tables in self.tables.values()
            for table in tables.values()
            for _, record in table.changes()
        ]
        return state._replace(
            index_entries=state._entered([(record, None) for record in records if record.is_there])
        )

    def _entered(
        self,
        changes: Iterable[tuple[ObjectRecord, ObjectRecord | None]],
        objects: Mapping[Key, Object] = MappingProxyType({}),
    ) -> IndexEntries:
        """Return the entries after changes: each record with the one before it. ``objects``: those
        that are decoded already."""
        edits: list[tuple[tuple[str, ...], Key | None]] = []
        by_resource: dict[str, list[FieldIndex]] = {}
        for record, before in changes:
            key = record.key
            if record.is_there:
                indexes = by_resource.get(key.resource)
                if indexes is None:
                    indexes = [index for index in self.indexes if index.includes(key.resource)]
                    by_resource[key.resource] = indexes
                record.values = index_values(indexes, objects.get(key) or record.object)
            old = before.values if before is not None else ()
            if old != record.values:
                edits += [((*value, *key), None) for value in old if value not in record.values]
                edits += [((*value, *key), key) for value in record.values if value not in old]
        return self.index_entries.changed(edits) if edits else self.index_entries

    # --- the change log

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

    def changes(self, since: int) -> ChangesSince:
        """Return what changed after a revision, oldest first. Raises CompactedError."""
        changes: Changes = []
        for revision, change_type, key, last, former in coalesce(self.entries(since)):
            if change_type == DELETED:
                assert last is not None
                changes.append(Change(revision, DELETED, key, last, former_json=former))
            elif (record := self.get(key)) is not None and record.json is not None:
                change = Change(
                    record.revision, change_type, key, record.json, record.expires, former
                )
                changes.append(change)
        return ChangesSince(self.revision, changes)

    # --- small values, and the timeline

    def meta_value(self, name: str) -> str | None:
        entry = self.meta.get(name)
        if entry is not None:
            return entry[0]
        return self.source.meta(name) if self.source is not None else None

    def all_meta(self) -> dict[str, str | None]:
        """Return all small values."""
        own_names = (name for name, _ in self.meta.items())
        names = {*own_names, *(self.source.meta_names() if self.source is not None else ())}
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
            self.source.timeline(NEVER, inf)
            if self.source is not None and after < self.source.revision
            else []
        )
        return [
            *(entry for entry in older if entry.revision > self.forgotten),
            *self.timeline.values(),
        ]

    def timeline_since(self, first: int, keep: float, after: int = 0) -> TimelineEntries:
        """Return the entries of the timeline that are kept, in the order of the writes.

        :param first: a time in microseconds; what comes before the last older entry, and that
            entry, is left out.
        :param keep: see :class:`TimelineRecorder`.
        :param after: leave out the writes up to this revision.
        """
        if self.source is not None and not self.timeline and not self.forgotten:
            return self.source.timeline(first, longest(keep), after)
        entries = cut(self.timeline_entries(after), first, longest(keep))
        return [entry for entry in entries if entry.revision > after]

    def with_timeline(self, entries: TimelineEntries, keep: float) -> State:
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

    # --- from state to state

    def close(self) -> None:
        """Let go of what the state lies over: neither it nor a state that goes on from it can be
        read any more."""
        if self.source is not None and not self.is_borrowed:
            self.source.close()

    def is_lost(self) -> bool:
        """Return whether the state cannot be read any more."""
        return self.source is not None and self.source.is_lost

    def changed(
        self,
        changes: Iterable[StoredChange[ObjectRecord]],
        log: Iterable[LogEntry],
        revision: int,
        objects: Mapping[Key, Object] = MappingProxyType({}),
    ) -> State:
        """Return the state after a commit. ``objects``: those of the changes that are decoded
        already."""
        records = [
            (ObjectRecord(key, changed_at, text, expires), before)
            for key, before, text, changed_at, expires, _ in changes
        ]
        after = self.with_records(records, revision, objects)
        after = after._replace(log=self.log.changed((entry.revision, entry) for entry in log))
        if revision - after.compacted <= LOG_LENGTH + LOG_SLACK:
            return after
        compacted = revision - LOG_LENGTH
        return after._replace(compacted=compacted, log=SortedMap(after.log.after(compacted)))

    def with_records(
        self,
        changes: Iterable[tuple[ObjectRecord, ObjectRecord | None]],
        revision: int,
        objects: Mapping[Key, Object] = MappingProxyType({}),
    ) -> State:
        """Return the state at a later revision without a change log of how it came about.

        :param changes: each record with the one before it; one may be of a deleted object.
        """
        places: dict[tuple[str, str], list[ObjectRecord]] = {}
        expiring: list[tuple[tuple[float, Key], bool | None]] = []
        changes = list(changes)
        for record, before in changes:
            key = record.key
            places.setdefault((key.resource, key.namespace), []).append(record)
            if before is not None and before.expires is not None:
                expiring.append(((before.expires, key), None))
            if record.expires is not None and record.is_there:
                expiring.append(((record.expires, key), True))

        tables: dict[str, Mapping[str, ObjectTable]] = dict(self.tables)
        for (resource, namespace), records in places.items():
            of_resource = tables.get(resource, {})
            table = of_resource.get(namespace, ObjectTable()).changed(records)
            tables[resource] = {**of_resource, namespace: table}

        return self._replace(
            revision=revision,
            tables=tables,
            index_entries=self._entered(changes, objects) if self.indexes else self.index_entries,
            expiring=self.all_expiring().changed(expiring) if expiring else self.expiring,
        )

    def of_objects(self) -> State:
        """Return the state with the objects alone, all of them read, so that it lies over
        nothing."""
        tables = {
            resource: {name: ObjectTable(table.records()) for name, table in by_namespace.items()}
            for resource, by_namespace in self.tables.items()
        }
        return State({}, self.revision, tables, expiring=self.all_expiring())

    def in_full(self) -> State:
        """Return the same state, all of it read, so that it lies over nothing and any thread may
        read it."""
        if self.source is None:
            return self
        entries = self.entries(self.compacted)
        state = self.of_objects()._replace(
            settings=self.settings,
            log=SortedMap((entry.revision, entry) for entry in entries),
            compacted=self.compacted,
            meta=SortedMap((name, (value,)) for name, value in self.all_meta().items()),
            timeline=SortedMap((entry.revision, entry) for entry in self.timeline_entries()),
            forgotten=self.forgotten,
        )
        return state.with_indexes(self.indexes)


def _with_keys(records: Iterable[ObjectRecord]) -> KeyedObjects:
    return [(record.key, record.object) for record in records]
