"""All that a store holds at one revision, as one value that never changes.

A :class:`State` has tables of objects by resource and namespace, the change log, the timeline,
settings and small values. A commit makes another State, which shares with the one before all that
did not change (``kubepy.storage.sortedmap``). The State of a store that keeps its objects elsewhere
lies over a :class:`Source`, which reads them when they are asked for. Nothing here knows where that
is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import NamedTuple, Protocol

from kubepy.storage.errors import CompactedError
from kubepy.storage.links import LinkEntries, Lookup, Values, link_values
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


class ObjectRecord:
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

    def linked(
        self, link: Lookup, value: str, resource: str | None, namespace: str | None
    ) -> Iterable[ObjectRecord]:
        """Return the objects that a link finds, in no order."""

    def counts(self, link: Lookup) -> Mapping[str, int]:
        """Return the values by which a link finds objects, each with the number of these."""

    def names(self, resource: str) -> list[Key]:
        """Return the keys of the objects of a resource."""

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

    def has_objects(self, now: float) -> bool:
        """Return whether there are objects whose time is not over."""
        if self._merged is None and self._source is not None and not self._changed:
            return self._source.has_objects(*self._place, now)
        return any(record.is_alive(now) for record in self.records().values())

    def names(self) -> Iterable[str] | None:
        """Return the names of all objects, None where they are still with the source."""
        return None if self._merged is None else [name for name, _ in self._merged.items()]

    def size(self) -> int | None:
        """Return the number of objects, None where some are still with the source."""
        return None if self._merged is None else len(self._merged)

    def changes(self) -> Iterable[tuple[str, ObjectRecord]]:
        """Yield what was changed over the source, by name; a record without JSON is of a deleted
        object."""
        return self._changed.items()

    def changed(self, records: Iterable[ObjectRecord]) -> ObjectTable:
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


class State(NamedTuple):
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

    def close(self) -> None:
        """Let go of what the state lies over: neither it nor a state that goes on from it can be
        read any more."""
        if self.source is not None:
            self.source.close()

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
    ) -> list[ObjectRecord]:
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

    def with_links(self, links: Sequence[Lookup]) -> State:
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
        self, changes: Iterable[tuple[ObjectRecord, Object | None, ObjectRecord | None]]
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

    def changed(
        self,
        changes: Iterable[StoredChange[ObjectRecord]],
        log: Iterable[LogEntry],
        revision: int,
        objects: Mapping[Key, Object] = MappingProxyType({}),
    ) -> State:
        """Return the state after a commit. ``objects``: those of the changes that are decoded
        already."""
        places: dict[tuple[str, str], list[ObjectRecord]] = {}
        expiring: list[tuple[tuple[float, Key], bool | None]] = []
        linked: list[tuple[ObjectRecord, Object | None, ObjectRecord | None]] = []
        for key, before, text, changed_at, expires, _ in changes:
            record = ObjectRecord(key, changed_at, text, expires)
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
