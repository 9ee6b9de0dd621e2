"""Everything in etcd at one revision, read when it is asked for (:class:`Source`)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from kubepy.lazy import lazy_imports
from kubepy.storage.errors import LostStateError
from kubepy.storage.etcd.client import Get, RangeResult
from kubepy.storage.etcd.errors import ValueFormatError, lost_if_compacted
from kubepy.storage.indexes import parts_of
from kubepy.storage.model import Key, LogEntry
from kubepy.storage.sortedmap import SortedMap
from kubepy.storage.state import Expiring, ObjectRecord, ObjectTable, Records, State

with lazy_imports():
    from kubepy.storage.etcd import history

if TYPE_CHECKING:
    from kubepy.storage.etcd.client import KeyValue
    from kubepy.storage.etcd.keyspace import Keyspace
    from kubepy.storage.indexes import FieldIndex
    from kubepy.storage.state import KeyedObjects, Keys, Places
    from kubepy.storage.timeline import TimelineEntry

T = TypeVar("T")
ABSENCES_TO_LIST_AT = 16  # reading all names of a place costs as much as some single reads
READ_TOGETHER = 100  # keys: etcd takes 128 operations in a transaction


class Namespaces(Mapping[str, ObjectTable]):
    """The tables of a resource, by namespace. Which there are is asked only by whoever wants
    all."""

    def __init__(self, source: RangeSource, resource: str) -> None:
        self._source = source
        self._resource = resource

    def __getitem__(self, namespace: str) -> ObjectTable:
        return ObjectTable(source=self._source, place=(self._resource, namespace))

    def __iter__(self) -> Iterator[str]:
        keys = self._source.keys(self._resource)
        namespaces = {key.namespace for key in keys}
        return iter(sorted(namespaces))

    def __len__(self) -> int:
        return len(list(iter(self)))


class RangeTables(Mapping[str, Mapping[str, ObjectTable]]):
    """The tables of a state over a :class:`RangeSource`: each is asked for when it is needed."""

    def __init__(self, source: RangeSource) -> None:
        self._source = source

    def __getitem__(self, resource: str) -> Mapping[str, ObjectTable]:
        return Namespaces(self._source, resource)

    def __iter__(self) -> Iterator[str]:
        resources = {resource for resource, _ in self._source.places()}
        return iter(sorted(resources))

    def __len__(self) -> int:
        return len(list(iter(self)))


class RangeSource:
    """Reads etcd as it was at a revision, by a range for each question; whoever looks at
    everything lets it be loaded.

    :param load: loads all objects at the revision.
    :param volatile: the resources of which objects may say when they are over; () in a cluster
        with the system's time, whose volatile objects have leases.
    """

    def __init__(
        self,
        keyspace: Keyspace,
        revision: int,
        load: Callable[[], State],
        volatile: Collection[str] = (),
    ) -> None:
        self._keyspace = keyspace
        self._client = keyspace.client
        self._keys = keyspace.keys
        self.revision = revision
        self._load = load
        self._volatile = volatile
        self._everything: State | None = None
        self._objects: dict[Key, ObjectRecord | None] = {}
        self._unread: dict[Key, ValueFormatError] = {}  # of these
        self._records: dict[tuple[str, str], Records] = {}
        self._whole: set[str] = set()  # resources of which all namespaces were read
        # The names of all objects of a place are read once it was asked for several in vain.
        self._absences: Counter[tuple[str, str]] = Counter()
        self._names: dict[tuple[str, str], set[str]] = {}
        self._expirations: dict[Key, tuple[float, int]] | None = None
        self.is_lost = False

    def close(self) -> None:
        """Do nothing: etcd keeps the revision until it is compacted."""

    def _read(self, query: Callable[[], T]) -> T:
        try:
            with lost_if_compacted():
                return query()
        except LostStateError:
            self.is_lost = True
            raise

    @property
    def everything(self) -> State:
        """All objects, loaded now if they are not yet."""
        if self._everything is None:
            self._everything = self._read(self._load)
        return self._everything

    # --- records

    def get(self, key: Key) -> ObjectRecord | None:
        if self._everything is not None:
            return self._everything.get(key)
        place = key.resource, key.namespace
        if place in self._records or key.resource in self._whole:
            return self._records.get(place, SortedMap()).get(key.name)
        if key not in self._objects:
            if not self._may_be_there(key):
                return None
            self.read_ahead([key])
        if key in self._unread:
            raise self._unread[key]
        return self._objects[key]

    def _may_be_there(self, key: Key) -> bool:
        """Tell whether a key has to be asked for. Who makes many objects asks for each name whether
        it is taken, which costs etcd's time to answer."""
        place = key.resource, key.namespace
        if place not in self._names:
            if self._absences[place] < ABSENCES_TO_LIST_AT:
                return True
            self._names[place] = {present.name for present in self.keys(*place)}
        return key.name in self._names[place]

    def read_ahead(self, keys: Iterable[Key]) -> None:
        """Read objects together. Values that hold none are noted."""
        missing = [key for key in keys if key not in self._objects]
        for start in range(0, len(missing), READ_TOGETHER):
            some = missing[start : start + READ_TOGETHER]
            for key, kv in zip(some, self._read(lambda: self._kvs(some)), strict=True):  # noqa: B023
                self._objects[key] = None
                if kv is None:
                    self._absences[key.resource, key.namespace] += 1
                    continue
                try:
                    self._objects[key] = self._record(key, kv)
                except ValueFormatError as error:
                    self._unread[key] = error
                    self._keyspace.values.find(key, kv.value)

    def _kvs(self, keys: Sequence[Key]) -> list[KeyValue | None]:
        if len(keys) == 1:
            return [self._client.get(self._keys.of(keys[0]), self.revision)[0]]
        reads = [Get(self._keys.of(key), revision=self.revision) for key in keys]
        answers = self._client.txn([], reads).responses
        kvs: list[KeyValue | None] = []
        for answer in answers:
            assert isinstance(answer, RangeResult)
            kvs.append(answer.kvs[0] if answer.kvs else None)
        return kvs

    def _record(self, key: Key, kv: KeyValue) -> ObjectRecord:
        """Return the object of a value. Raises ValueFormatError for one that holds none."""
        text = self._keyspace.values.decode(key, kv.value)
        expires, revision = self._expirations_of(key.resource).get(key, (None, 0))
        is_current = revision == kv.mod_revision
        return ObjectRecord(key, kv.mod_revision, text, expires if is_current else None)

    def _expirations_of(self, resource: str) -> Mapping[Key, tuple[float, int]]:
        if resource not in self._volatile:
            return {}
        if self._expirations is None:
            self._expirations = self._read(lambda: self._keyspace.expirations(self.revision))
        return self._expirations

    def records(self, resource: str, namespace: str) -> Records:
        if self._everything is not None:
            table = self._everything.tables.get(resource, {}).get(namespace)
            return table.records() if table is not None else SortedMap()
        if (resource, namespace) not in self._records and resource not in self._whole:
            records = self._range(resource, namespace or None)
            if namespace == "":
                records = [record for record in records if not record.key.namespace]
            self._keep(resource, namespace, records)
        return self._records.get((resource, namespace), SortedMap())

    def _range(self, resource: str, namespace: str | None) -> list[ObjectRecord]:
        start, end = self._keys.range_of(resource, namespace)

        def read() -> list[ObjectRecord]:
            pages = self._client.pages(start, end, revision=self.revision)
            return list(self._keyspace.records(pages, self._expirations_of(resource)))

        records = self._read(read)
        return [record for record in records if record.key.resource == resource]

    def _keep(self, resource: str, namespace: str, records: Iterable[ObjectRecord]) -> None:
        named = sorted((record.key.name, record) for record in records)
        self._records[resource, namespace] = SortedMap(
            (name, self._objects.get(record.key) or record) for name, record in named
        )

    def read_whole(self, resource: str) -> None:
        """Read the objects of a resource in all namespaces."""
        if self._everything is not None or resource in self._whole:
            return
        by_namespace: dict[str, list[ObjectRecord]] = {}
        for record in self._range(resource, None):
            by_namespace.setdefault(record.key.namespace, []).append(record)
        for namespace, records in by_namespace.items():
            if (resource, namespace) not in self._records:
                self._keep(resource, namespace, records)
        self._whole.add(resource)

    # --- objects

    def objects(self, resource: str, namespace: str | None) -> KeyedObjects:
        if self._everything is not None:
            return self._everything.objects(resource, namespace)
        if namespace is None:
            self.read_whole(resource)
            namespaces = sorted(name for place, name in self._records if place == resource)
        else:
            namespaces = [namespace]
        return [
            (record.key, record.object)
            for name in namespaces
            for record in self.records(resource, name).values()
        ]

    def objects_at(self, keys: Collection[Key]) -> KeyedObjects:
        if self._everything is None:
            self.read_ahead(keys)
        records = [self.get(key) for key in keys if key not in self._unread]
        return [(record.key, record.object) for record in records if record is not None]

    def found(
        self,
        index: FieldIndex,
        values: Collection[str],
        resource: str | None,
        namespace: str | None,
    ) -> KeyedObjects:
        return self.everything.found(index.name, values, resource, namespace)

    def parts(
        self,
        paths: Sequence[str],
        resource: str,
        namespace: str | None,
        index: FieldIndex | None,
        value: str,
    ) -> KeyedObjects:
        if index is not None:
            return parts_of(self.found(index, [value], resource, namespace), paths)
        return parts_of(self.objects(resource, namespace), paths)

    def counts(self, index: FieldIndex) -> Mapping[str, int]:
        return self.everything.counts(index.name)

    # --- what can be told without the objects

    def keys(self, resource: str, namespace: str | None = None, prefix: str = "") -> Keys:
        if self._everything is not None:
            return self._everything.keys(resource, namespace, prefix)
        if resource in self._whole:
            keys = [
                record.key
                for place, records in self._records.items()
                if place[0] == resource
                for record in records.values()
            ]
        else:
            keys = self._read_keys(*self._keys.range_of(resource, namespace or None))
        return sorted(
            key
            for key in keys
            if key.resource == resource
            and namespace in (None, key.namespace)
            and key.name.startswith(prefix)
        )

    def _read_keys(self, start: bytes, end: bytes) -> Keys:
        def read() -> Keys:
            pages = self._client.pages(start, end, revision=self.revision, keys_only=True)
            keys = [self._keys.parse(kv.key) for page in pages for kv in page.kvs]
            return [key for key in keys if key is not None]

        return self._read(read)

    def count(self, resource: str) -> int:
        if self._everything is not None:
            return self._everything.count(resource)
        start, end = self._keys.range_of(resource, None)
        counted = self._read(
            lambda: self._client.range(start, end, revision=self.revision, count_only=True)
        )
        return counted.total

    def places(self) -> Places:
        if self._everything is not None:
            return self._everything.places()
        keys = self._read_keys(*self._keys.everything)
        return list({key[:2]: None for key in keys})

    def has_objects(self, resource: str, namespace: str, now: float) -> bool:
        records = self.records(resource, namespace).values()
        return any(record.is_alive(now) for record in records)

    def expiring(self) -> Expiring:
        if self._everything is not None:
            return self._everything.all_expiring()
        if not self._volatile:
            return SortedMap()
        expirations = self._expirations_of(next(iter(self._volatile)))
        return SortedMap(sorted(((moment, key), True) for key, (moment, _) in expirations.items()))

    # --- what is not objects

    def entries(self, since: int) -> list[LogEntry]:
        """Return the entries of the change log after a revision. Raises LostStateError."""
        with lost_if_compacted():
            return history.read_history(self._keyspace, since, self.revision).entries

    def timeline(self, first: int, length: float, after: int = 0) -> list[TimelineEntry]:
        return self._read(lambda: self._keyspace.timeline(self.revision, first, length, after))

    def meta(self, name: str) -> str | None:
        return self._read(lambda: self._keyspace.meta(name, self.revision))

    def meta_names(self) -> list[str]:
        return self._read(lambda: self._keyspace.meta_names(self.revision))


class FollowedSource:
    """The change log and the timeline of a followed state, which it does not hold itself.

    Objects are in the state, and small values, if all keys are watched.

    :param log: the change log after ``floor``, oldest first; what is after ``length`` entries is
        later than the revision.
    """

    is_lost = False

    def __init__(
        self, keyspace: Keyspace, revision: int, floor: int, log: list[LogEntry], length: int
    ) -> None:
        self._keyspace = keyspace
        self.revision = revision
        self._floor = floor
        self._log = log
        self._length = length

    def close(self) -> None:
        """Do nothing: the next state takes this one's place."""

    def entries(self, since: int) -> list[LogEntry]:
        older: list[LogEntry] = []
        if since < self._floor:
            with lost_if_compacted():
                older = history.read_history(self._keyspace, since, self._floor).entries
        start = bisect_right(self._log, since, hi=self._length, key=_revision_of)
        return [*older, *self._log[start : self._length]]

    def timeline(self, first: int, length: float, after: int = 0) -> list[TimelineEntry]:
        with lost_if_compacted():
            return self._keyspace.timeline(self.revision, first, length, after)

    def get(self, key: Key) -> ObjectRecord | None:
        return None

    def records(self, resource: str, namespace: str) -> Records:
        return SortedMap()

    def objects(self, resource: str, namespace: str | None) -> KeyedObjects:
        return []

    def objects_at(self, keys: Collection[Key]) -> KeyedObjects:
        return []

    def found(
        self,
        index: FieldIndex,
        values: Collection[str],
        resource: str | None,
        namespace: str | None,
    ) -> KeyedObjects:
        return []

    def parts(
        self,
        paths: Sequence[str],
        resource: str,
        namespace: str | None,
        index: FieldIndex | None,
        value: str,
    ) -> KeyedObjects:
        return []

    def counts(self, index: FieldIndex) -> Mapping[str, int]:
        return {}

    def keys(self, resource: str, namespace: str | None = None, prefix: str = "") -> Keys:
        return []

    def count(self, resource: str) -> int:
        return 0

    def places(self) -> Places:
        return []

    def has_objects(self, resource: str, namespace: str, now: float) -> bool:
        return False

    def expiring(self) -> Expiring:
        return SortedMap()

    def meta(self, name: str) -> str | None:
        if self._keyspace.watches_all:
            return None
        with lost_if_compacted():
            return self._keyspace.meta(name, self.revision)

    def meta_names(self) -> list[str]:
        if self._keyspace.watches_all:
            return []
        with lost_if_compacted():
            return self._keyspace.meta_names(self.revision)


def _revision_of(entry: LogEntry) -> int:
    return entry.revision
