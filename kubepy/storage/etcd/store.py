"""The store in etcd.

A commit writes one object after the other, each in a transaction of etcd that compares the key's
mod_revision, which is the object's resourceVersion (``commit``). What is read is a State over etcd
at one revision (``source``), until somebody looks at everything: from then on it is in memory and
follows a watch (``following``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kubepy.lazy import lazy_imports
from kubepy.storage.errors import (
    CompactedError,
    LockTimeoutError,
    StorageError,
)
from kubepy.storage.etcd.client import Compare, Delete, Put
from kubepy.storage.etcd.errors import EtcdCompactedError, EtcdError, lost_if_compacted
from kubepy.storage.etcd.keyspace import Keyspace
from kubepy.storage.etcd.ownkeys import (
    dump_entries,
    dump_settings,
    end_of,
    load_entries,
    load_settings,
)
from kubepy.storage.etcd.rest import Rest
from kubepy.storage.etcd.source import RangeSource, RangeTables
from kubepy.storage.etcd.values import AS_THEY_ARE
from kubepy.storage.etcd.writeorder import IN_ORDER, WriteOrder
from kubepy.storage.model import (
    ADDED,
    DELETED,
    Change,
    ChangesSince,
    CommittedChanges,
    Key,
    Object,
    ObjectStream,
    Snapshot,
    decode,
)
from kubepy.storage.state import ObjectRecord, State
from kubepy.storage.timeline import cut, is_overlong, longest, microseconds

with lazy_imports():  # a command that reads needs none of them
    from kubepy.storage.etcd import commit, following, history, leases

if TYPE_CHECKING:
    from kubepy.storage.etcd.address import Address
    from kubepy.storage.etcd.client import EtcdClient, KeyValue
    from kubepy.storage.etcd.commit import EtcdTransaction, KeyWrite
    from kubepy.storage.etcd.following import Follower
    from kubepy.storage.etcd.leases import HeldLock, SharedLeases
    from kubepy.storage.etcd.values import StoredForms
    from kubepy.storage.indexes import FieldIndex, NewIndexes
    from kubepy.storage.timeline import NewRecorder, TimelineEntry

Records = list[ObjectRecord]
MANY = 1_000  # revisions that it takes a while to read, so that others are told of it
HISTORY = 5_000  # revisions that a state reaches back at most
DEFAULT_SETTINGS: Object = {"formatVersion": 1}


class EtcdStore:
    """A cluster in etcd. Any number of processes and machines may use it at once; so may threads.

    :param forms: the forms in which a control plane stores objects (``kubepy.api.storedforms``).
    :param volatile: resources whose objects expire, and after how many seconds.
    :param now: a time that is not the system's, for ``volatile``; a cluster with a clock has one.
    :param client: the connection, in place of one of its own.
    :param order: the objects for which the order of the writes of a transaction matters.
    """

    def __init__(
        self,
        address: Address,
        *,
        forms: StoredForms = AS_THEY_ARE,
        volatile: Mapping[str, float] | None = None,
        now: Callable[[], float] | None = None,
        client: EtcdClient | None = None,
        order: WriteOrder = IN_ORDER,
    ) -> None:
        self.address = address
        self.lock_timeout = 0.0
        self._keyspace = Keyspace(address, forms, client, volatile or ())
        self._client = self._keyspace.client
        self._own = self._keyspace.own
        self._volatile = dict(volatile or {})
        self._has_own_time = now is not None
        self._order = order
        self._now = now or time.time
        self._new_recorder: NewRecorder | None = None
        self._new_indexes: NewIndexes = tuple
        self._listener: Callable[[CommittedChanges], None] | None = None
        self._follower: Follower | None = None
        self._lock = threading.Lock()
        self._local = threading.local()
        self._held: dict[str, HeldLock] = {}
        self._checked_floor = -1
        self._was_made = False
        self._opening: Object | None = None  # the settings, where they were read a moment ago
        self._defaults: Object = DEFAULT_SETTINGS

    def connect(
        self,
        now: Callable[[], float],
        new_recorder: NewRecorder | None = None,
        indexes: NewIndexes = tuple,
    ) -> None:
        """Take the cluster's time, a function for its timeline, and what objects are found by."""
        self._now = now
        self._new_recorder = new_recorder
        self._new_indexes = indexes

    def write_whole(self, complete: Callable[[str], str]) -> None:
        """Let a function make the JSON of objects whole that are written. What is read may have
        either form."""
        self._keyspace.values.complete = complete

    def close(self) -> None:
        """Let go of etcd."""
        if self._follower is not None:
            self._follower.close()
        self._client.close()

    def sync(self) -> None:
        """Do nothing: what etcd has answered is durable."""

    @cached_property
    def _leases(self) -> SharedLeases:
        return leases.SharedLeases(self._client)

    def unread_values(self) -> dict[str, str]:
        """Return the values that were met and hold no object that can be read, and are left out: by
        the key of etcd, what is wrong."""
        return dict(self._keyspace.values.unread)

    # --- states

    def state(self) -> State:
        """Return everything at the newest revision. What it does not have in memory is read when
        it is asked for, until etcd is compacted."""
        revision, settings = self._newest()
        if self._follower is not None:
            return self._followed(revision)
        has_own_time = self._has_clock(settings)
        source = RangeSource(
            self._keyspace,
            revision,
            lambda: self._load(revision, keeps_time=has_own_time),
            tuple(self._volatile) if has_own_time else (),
        )
        return State(
            settings,
            revision,
            RangeTables(source),
            compacted=self._floor(revision),
            expiring=None,
            source=source,
            indexes=self._indexes(),
        )

    def _newest(self) -> tuple[int, Object]:
        """Return the newest revision, and the settings at it."""
        kv, revision = self._client.get(self._own.settings)
        return revision, self._settings_of(kv)

    def _settings_of(self, kv: KeyValue | None) -> Object:
        return {**self._defaults, **(load_settings(kv.value) if kv is not None else {})}

    def _has_clock(self, settings: Object) -> bool:
        return self._has_own_time or settings.get("clock") is not None

    def _indexes(self) -> tuple[FieldIndex, ...]:
        return tuple(self._new_indexes())

    def _load(self, revision: int, *, keeps_time: bool) -> State:
        """Load everything at a revision; from then on states follow etcd. Raises
        EtcdCompactedError."""
        follower = following.Follower(
            self._keyspace, revision, self._indexes(), keeps_time=keeps_time
        )
        state = follower.state(revision)
        with self._lock:
            if self._follower is None:
                self._follower = follower
        return state

    def _followed(self, revision: int) -> State:
        """Return the state in memory, at a revision or a later one."""
        follower = self._follower
        assert follower is not None
        try:
            follower.follow(revision)
        except CompactedError:  # it was left alone for too long
            follower = self._reload(follower)
        state = follower.state(self._floor(revision)).with_indexes(self._indexes())
        return state._replace(settings={**self._defaults, **state.settings})

    def _reload(self, follower: Follower) -> Follower:
        with self._lock:
            if self._follower is not follower:
                assert self._follower is not None
                return self._follower
            follower.close()
            revision, settings = self._newest()
            keeps_time = self._has_clock(settings)
            with lost_if_compacted():
                self._follower = following.Follower(
                    self._keyspace, revision, self._indexes(), keeps_time=keeps_time
                )
            return self._follower

    def _floor(self, revision: int) -> int:
        """Return a revision from which on etcd remembers what has happened."""
        floor = max(revision - HISTORY, 0)
        if floor <= self._checked_floor:
            return self._checked_floor
        asked = max(floor, 1)
        if asked < revision:
            try:
                self._client.get(self._own.mark, asked)
            except EtcdCompactedError:
                floor = self._oldest(asked, revision)
        self._checked_floor = floor
        return floor

    def _oldest(self, gone: int, newest: int) -> int:
        """Return the oldest revision that is there after one that was compacted.

        A watch would be told of it, but not before etcd looks after watches of the past: up to
        100 ms. A dozen reads are faster.
        """
        while newest - gone > 1:
            middle = (gone + newest) // 2
            try:
                self._client.get(self._own.mark, middle)
            except EtcdCompactedError:
                gone = middle
            else:
                newest = middle
        return newest

    # --- reading

    @property
    def revision(self) -> int:
        """The newest revision."""
        return self._client.get(self._own.mark)[1]

    def get(self, key: Key) -> Object | None:
        """Return an object, None where there is none."""
        if key.resource in self._volatile:
            record = self.state().get(key)
            return record.object if record is not None and record.is_alive(self._now()) else None
        kv, _ = self._client.get(self._keyspace.keys.of(key))
        if kv is None:
            return None
        return decode(self._keyspace.values.decode(key, kv.value), kv.mod_revision)

    def list(self, resource: str, namespace: str | None = None) -> Snapshot:
        """Return the objects of a resource (in one namespace, or None: everywhere)."""
        revision, records = self._records(resource, namespace)
        return Snapshot(revision, [record.object for record in records])

    def stream(self, resource: str, namespace: str | None = None) -> ObjectStream:
        """Return the same objects one by one."""
        revision, records = self._records(resource, namespace)
        objects = (
            decode(record.json, record.revision) for record in records if record.json is not None
        )
        return ObjectStream(revision, objects)

    def _records(self, resource: str, namespace: str | None) -> tuple[int, Records]:
        if self._follower is None and resource not in self._volatile:
            return self._read_records(resource, namespace)
        state, now = self.state(), self._now()
        if namespace is None and isinstance(state.source, RangeSource):
            state.source.read_whole(resource)
        records = state.records(resource, namespace)
        return state.revision, [record for record in records if record.is_alive(now)]

    def _read_records(self, resource: str, namespace: str | None) -> tuple[int, Records]:
        """Read the objects of a resource at the newest revision, without a state."""
        start, end = self._keyspace.keys.range_of(resource, namespace or None)
        with lost_if_compacted():  # between two pages
            pages = list(self._client.pages(start, end))
        records = [
            record
            for record in self._keyspace.records(pages, {})
            if record.key.resource == resource and namespace in (None, record.key.namespace)
        ]
        return pages[0].revision, sorted(records, key=_key_of)

    def changes(self, since: int) -> ChangesSince:
        """Return what changed after a revision, oldest first. Raises CompactedError."""
        revision, noted = self._keyspace.rest.newest()
        if self._follower is not None:
            state = self._followed(revision)
            if since >= state.compacted:
                return state.changes(since)
            revision = state.revision
        if since > revision:
            raise CompactedError(f"revision {since} is not there: the newest is {revision}")
        if not noted.since <= since <= noted.until:
            noted = Rest(since, since)
        if noted.until >= revision:
            return ChangesSince(revision, [])
        past = history.read_history(self._keyspace, noted.until, revision)
        if past.is_quiet and (past.is_undisturbed or revision - noted.until > MANY):
            self._keyspace.rest.note(Rest(noted.since, revision))
        return ChangesSince(revision, past.changes())

    def watch(self, listener: Callable[[CommittedChanges], None]) -> None:
        """Call a function with each object that this store has written."""
        self._listener = listener

    def wait_for_change(self, seconds: float) -> bool:
        """Wait until something is written to etcd, at most so long; return False, at once, where
        it cannot be watched: whoever looks for changes then hears why.

        From then on everything is in memory: who waits will need it.
        """
        if self._follower is None:
            try:
                revision, settings = self._newest()
                self._load(revision, keeps_time=self._has_clock(settings))
            except (StorageError, CompactedError):
                return False
        assert self._follower is not None
        return self._follower.wait(seconds)

    # --- writing

    @contextmanager
    def transaction(self) -> Iterator[EtcdTransaction]:
        """Run the block, and write what it has changed: one object after the other, in order."""
        if self._current() is not None:
            raise RuntimeError("a transaction is under way in this store; transactions do not nest")
        recorder = self._new_recorder() if self._new_recorder is not None else None
        changes = commit.EtcdTransaction(
            self.state(), self._volatile, lambda: self._now(), recorder, self._order
        )
        self._local.current = changes
        try:
            yield changes
            self._commit(changes)
        finally:
            self._local.current = None

    def _current(self) -> EtcdTransaction | None:
        """Return this thread's transaction that is under way."""
        current: EtcdTransaction | None = getattr(self._local, "current", None)
        return current

    def _commit(self, changes: EtcdTransaction) -> None:
        has_clock = self._has_clock(changes.all_settings())
        context = commit.CommitContext(
            self._keyspace,
            tuple(self._held.values()),
            None if has_clock else self._leases,
            self._volatile,
            self._wrote,
            self._order,
        )
        commit.EtcdCommit(context, changes).run()
        if changes.timeline and changes.recorder is not None:
            self._shorten_timeline(changes.timeline[-1], changes.recorder.keep)

    def _wrote(self, write: KeyWrite, revision: int) -> None:
        """Take notice of an object that was written."""
        key, entry = write.key, write.entry
        if self._follower is not None and write.json is not None:
            record = ObjectRecord(key, revision, write.json, write.expires)
            self._follower.written[key, revision] = record
        if self._listener is None:
            return
        former = None if entry.type in (ADDED, DELETED) else entry.json
        text = write.json
        if text is None:
            assert entry.json is not None
            text = entry.json
        change = Change(revision, entry.type, key, text, write.expires, former)
        self._listener(CommittedChanges(revision - 1, revision, [change]))

    def settings(self) -> Object:
        """Return the settings of the cluster."""
        current = self._current()
        if current is not None:
            return current.all_settings()
        settings, self._opening = self._opening, None
        return self._newest()[1] if settings is None else settings

    def meta(self, name: str) -> str | None:
        """Return a small value that is no object."""
        current = self._current()
        if current is not None:
            return current.meta_value(name)
        return self._keyspace.meta(name)

    def set_values(
        self, meta: Mapping[str, str | None] = {}, *, settings: Mapping[str, Any] = {}
    ) -> None:
        """Set small values and settings (None removes one), as part of the transaction that is
        under way, else in one of its own."""
        current = self._current()
        if current is not None:
            current.set_values(meta, settings)
            return
        with self.transaction() as transaction:
            transaction.set_values(meta, settings)

    def initialize(self, settings: Mapping[str, Any]) -> bool:
        """Make an empty cluster with these settings, unless there is one; return whether it was
        made."""
        key = self._own.settings
        text = dump_settings({**DEFAULT_SETTINGS, **settings})
        return self._client.txn([Compare(key, 0)], [Put(key, text)]).succeeded

    def remove(self) -> None:
        """Remove the cluster: all keys below its prefix, which it must have."""
        prefix = self.address.prefix
        if not prefix:
            raise EtcdError(f"{self.address}: a cluster without a prefix is not removed")
        start = f"{prefix}/".encode()
        self._client.txn([], [Delete(start, end_of(start))])

    def has_settings(self) -> bool:
        """Tell whether a cluster of kubepy's is there. It does not go away any more."""
        if not self._was_made:
            kv, _ = self._client.get(self._own.settings)
            if kv is not None:
                self._was_made = True
                self._opening = self._settings_of(kv)
        return self._was_made

    def has_objects(self) -> bool:
        """Tell whether there is any object, as in the etcd of a control plane."""
        keys = self._keyspace.keys
        first = self._client.range(*keys.everything, limit=2, keys_only=True)
        return any(kv.key != keys.tick for kv in first.kvs)

    def assume(self, settings: Mapping[str, Any]) -> None:
        """Let a cluster without settings have these, until some are set."""
        self._defaults = {**DEFAULT_SETTINGS, **settings}

    def add_to_timeline(self, entries: Sequence[TimelineEntry]) -> None:
        """Add entries of another store after those that are there."""
        put = Put(self._own.new_timeline_key(), dump_entries(entries))
        self._keyspace.rest.write([], [put])

    def _shorten_timeline(self, last: TimelineEntry, keep: float) -> None:
        """Remove entries that are not kept any more, once there are many of them."""
        start = self._own.timeline
        first = self._client.range(start, end_of(start), limit=1)
        if not first.kvs:
            return
        oldest = load_entries(first.kvs[0].value, 0)[0]
        if not is_overlong(oldest.at, last.at, first.total, keep):
            return
        kvs: list[KeyValue] = []
        for page in self._client.pages(start, end_of(start)):
            kvs += page.kvs
        entries = [
            entry._replace(revision=number)
            for number, kv in enumerate(kvs)
            for entry in load_entries(kv.value, 0)
        ]
        kept = cut(entries, last.at - microseconds(keep), longest(keep))
        end = kept[0].revision if kept else len(kvs)
        for kv in kvs[:end]:
            self._keyspace.rest.write([], [Delete(kv.key)])

    # --- locks

    @contextmanager
    def hold(self, name: str) -> Iterator[Callable[[], bool]]:
        """Hold a named lock for the length of a block, which gets a function that returns whether
        it was lost. What this store writes meanwhile is written only as long as it is held.

        Raises LockTimeoutError, which names the holder, at once.
        """
        holder = self.holder(name)
        if holder is not None:  # who waits for the lock asks often, and leaves no leases behind
            raise LockTimeoutError(f"{name} is held by {holder}")
        key, seconds = self._own.lock(name), self.address.lease
        lock = leases.HeldLock(self._client, self._keyspace.rest, name, key, seconds)
        self._held[name] = lock
        try:
            yield lock.is_lost
        finally:
            del self._held[name]
            lock.release()

    def holder(self, name: str) -> str | None:
        """Return the process that holds a named lock, None when there is none."""
        kv, _ = self._client.get(self._own.lock(name))
        return kv.value.decode() if kv is not None else None


def _key_of(record: ObjectRecord) -> Key:
    return record.key
