"""Transactions: changes that are gathered in memory and become visible together. What is the same
in every store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from heapq import heappop, heappush
from math import inf
from typing import Generic, NamedTuple, Protocol, TypeVar

from kubepy.storage.errors import ConflictError, ExistsError, MissingError
from kubepy.storage.frozen import shared, thawed
from kubepy.storage.model import (
    ADDED,
    DELETED,
    MODIFIED,
    Change,
    CommittedChanges,
    Key,
    LogEntry,
    Object,
    Objects,
    Snapshot,
    coalesce,
    has_moved,
    set_version,
    to_json,
)
from kubepy.storage.timeline import TimelineEntry, TimelineRecorder

LogEntries = list[LogEntry]
TimelineEntries = list[TimelineEntry]
Expiry = tuple[float, Key]  # the time at which an object is over, and its key
EXPIRED_WITH_A_WRITE = 50  # objects that a write removes at most because their time is over


class StoredObject(Protocol):
    """An object as a store keeps it; ``json`` None: it was deleted."""

    @property
    def key(self) -> Key: ...
    @property
    def revision(self) -> int: ...
    @property
    def json(self) -> str | None: ...
    @property
    def expires(self) -> float | None: ...


Stored = TypeVar("Stored", bound=StoredObject)


class TransactionEntry(Generic[Stored]):
    """One object as the transaction sees it: as it was stored before, and its state now (``json``
    None: not there)."""

    __slots__ = (
        "_json",
        "before",
        "deleted_at",
        "expires",
        "has_moved",
        "is_there",
        "object",
        "revision",
        "written",
    )

    def __init__(self, before: Stored | None) -> None:
        self._json = before.json if before is not None else None
        self.is_there = self._json is not None
        self.before = before if self.is_there else None
        self.revision = before.revision if before is not None else 0
        self.expires = before.expires if before is not None else None
        self.object: Object | None = None
        self.written: Object | None = None  # the object, if the transaction has written it
        self.deleted_at = 0  # the revision at which the object before was deleted, if it was
        self.has_moved = False  # a write has changed its labels or owners

    @property
    def json(self) -> str | None:
        """The JSON of the object, which is made when it is first asked for."""
        if self._json is None and self.is_there and self.object is not None:
            self._json = to_json(self.object)
        return self._json

    def set(self, obj: Object | None, text: str | None) -> None:
        """Set the object (None: it is not there), and its JSON where that is known."""
        self.object, self._json, self.is_there = obj, text, obj is not None
        self.written = obj


class StoredChange(NamedTuple, Generic[Stored]):
    """One object's change in a commit.

    :ivar before: the object as it was stored; None where there was none.
    :ivar json: the object; None deletes it.
    :ivar expires: the time at which a volatile object is over; None for every other.
    :ivar object: the object with its resourceVersion, where the transaction has written it.
    """

    key: Key
    before: Stored | None
    json: str | None
    revision: int
    expires: float | None = None
    object: Object | None = None


class BufferedTransaction(Generic[Stored]):
    """Changes that become visible together. Reads see the transaction's own writes.

    Objects that come out are shared: never change one. Objects that go in belong to the transaction
    from then on.

    The resourceVersions of written objects, and the ``revision``, are those that the commit leads
    to if nobody else writes before it. A store in which others may do so renumbers them then.

    Volatile objects that are over are removed before the first write after that, in the order in
    which they expire, so that revisions do not depend on how writes are grouped into transactions.

    :param revision: the store's newest.
    :param volatile: resources that expire, and after how many seconds.
    :param now: the cluster's time in seconds, which may move on within the transaction.
    :param recorder: makes the entries of the timeline; None: there is none.
    :ivar timeline: the entries, in the order of the writes.
    """

    foresees_revision = True

    def __init__(
        self,
        revision: int,
        volatile: Mapping[str, float],
        now: Callable[[], float],
        recorder: TimelineRecorder | None = None,
    ) -> None:
        self._base = self._revision = revision
        self._volatile = volatile
        self._now = now
        self._recorder = recorder
        self._recorded = recorder.resources if recorder is not None else frozenset()
        self.timeline: TimelineEntries = []
        self._entries: dict[Key, TransactionEntry[Stored]] = {}
        self._listed: set[tuple[str, str | None]] = set()
        self._keys: dict[
            str, set[Key]
        ] = {}  # of the objects there are, by resource, as far as loaded
        self._lists: dict[tuple[str, str | None], Objects] = {}
        self._touched: dict[Key, None] = {}
        self._next_expiry: float | None = None  # of a stored object; None: not yet asked for
        self._expired: list[
            Expiry
        ] = []  # a heap of stored objects that are over, as far as they are loaded …
        self._last_expired: Expiry = (-inf, Key("", "", ""))  # … which is up to this one
        self._expiring: list[Expiry] = []  # a heap of this transaction's own writes

    # --- the store's part ---

    def load(self, key: Key) -> Stored | None:
        """Return a stored object, one whose time is over too; None where there is none."""
        raise NotImplementedError

    def load_together(self, keys: Collection[Key]) -> Iterable[tuple[Key, Stored]]:
        """Return stored objects, those of them that are cheaper to load so than one by one."""
        return ()

    def load_all(self, resource: str, namespace: str | None) -> Iterable[Stored]:
        """Return the stored objects of a resource (in one namespace, or None: everywhere), those
        whose time is over among them."""
        raise NotImplementedError

    def load_expired(self, now: float, after: Expiry, limit: int) -> Iterable[Expiry]:
        """Return the first stored objects, strictly after one, that are over by a moment, in the
        order in which they expire."""
        raise NotImplementedError

    def next_expiry_after(self, now: float) -> float:
        """Return when the next stored object expires; infinity where none does."""
        raise NotImplementedError

    def decode(self, key: Key, entry: TransactionEntry[Stored]) -> Object:
        """Return the object of an entry that is as it was stored: that of ``entry.before``."""
        raise NotImplementedError

    def check_access(self, key: Key, *, reading: bool = False) -> None:
        """Refuse a key under which nothing can be read or written now. Raises FolderError."""

    def is_listed(self, stored: Stored) -> bool:
        """Return whether lists have a stored object."""
        return stored.json is not None

    # --- reading ---

    @property
    def revision(self) -> int:
        """The newest revision: the store's at the start, then that of each write."""
        return self._revision

    def get(self, key: Key) -> Object | None:
        """Return an object, None where there is none. Raises FolderError where the object's file
        cannot be one."""
        self.check_access(key, reading=True)
        entry = self._entry(key)
        return self._object(key, entry) if self._is_present(entry) else None

    def list(self, resource: str, namespace: str | None = None) -> Snapshot:
        """Return all objects of a resource (in one namespace, or None: everywhere), in key
        order."""
        return Snapshot(self._revision, self._listed_objects(resource, namespace)[:])

    def _listed_objects(self, resource: str, namespace: str | None) -> Objects:
        """Return the objects of a list, which is made once for as long as none of them changes."""
        objects = self._lists.get((resource, namespace))
        if objects is None:
            if (resource, namespace) not in self._listed and (resource, None) not in self._listed:
                for stored in self.load_all(resource, namespace):
                    if stored.key not in self._entries:
                        self._remember(stored.key, stored)
                self._listed.add((resource, namespace))
            keys = [
                key
                for key in self._keys.get(resource, ())
                if namespace is None or key.namespace == namespace
            ]
            entries = ((key, self._entry(key)) for key in sorted(keys))
            objects = [
                self._object(key, entry) for key, entry in entries if self._is_present(entry)
            ]
            if resource not in self._volatile:
                self._lists[resource, namespace] = objects

        return objects

    def read_ahead(self, keys: Collection[Key]) -> None:
        """Read objects together that will be asked for one by one."""
        for key, stored in self.load_together([key for key in keys if key not in self._entries]):
            self._remember(key, stored)

    def _entry(self, key: Key) -> TransactionEntry[Stored]:
        return self._entries.get(key) or self._remember(key, self.load(key))

    def _remember(self, key: Key, stored: Stored | None) -> TransactionEntry[Stored]:
        entry = self._entries[key] = TransactionEntry(stored)
        if stored is not None and self.is_listed(stored):
            self._keys.setdefault(key.resource, set()).add(key)
        return entry

    def _is_present(self, entry: TransactionEntry[Stored]) -> bool:
        return entry.is_there and (entry.expires is None or entry.expires > self._now())

    def _object(self, key: Key, entry: TransactionEntry[Stored]) -> Object:
        if entry.object is None:
            entry.object = self.decode(key, entry)
        return entry.object

    # --- writing ---

    def create(self, key: Key, obj: Object, *, is_plain: bool = False) -> Object:
        """Store a new object; return it with its resourceVersion. Raises ExistsError, FolderError,
        ValueError.

        :param is_plain: the object holds texts, integers, booleans, null, lists and dicts of them,
            and nothing else, so that its JSON can be made later.
        """
        self.check_access(key)
        entry = self._entry(key)
        if self._is_present(entry):
            raise ExistsError(f"{_describe(key)} is there already")
        _check_place(key, obj)
        if entry.is_there:  # over, and not yet removed
            self._remove(key, entry)
        return self._put(key, entry, obj, None if is_plain else to_json(obj))

    def update(
        self, key: Key, obj: Object, *, expected: str | None = None, is_plain: bool = False
    ) -> Object:
        """Replace an object; with ``expected``, only if it has that resourceVersion.

        One that changes nothing writes nothing and returns what is there. Raises MissingError,
        ConflictError, FolderError, ValueError. ``is_plain``: as :meth:`create`.
        """
        entry = self._existing(key, expected)
        _check_place(key, obj)
        if is_plain and _differs(obj, self._object(key, entry)):
            return self._put(key, entry, obj, None)
        text = to_json(obj)
        return self._object(key, entry) if text == entry.json else self._put(key, entry, obj, text)

    def remove_expired(self) -> None:
        """Remove all volatile objects that are over by now."""
        self._remove_expired(sys.maxsize)

    def delete(self, key: Key, *, expected: str | None = None) -> Object:
        """Remove an object; return its last state. Raises MissingError, ConflictError,
        FolderError."""
        entry = self._existing(key, expected)
        last = self._object(key, entry)
        self._remove_expired()
        self._remove(key, entry)
        return last

    def _existing(self, key: Key, expected: str | None) -> TransactionEntry[Stored]:
        self.check_access(key)
        entry = self._entry(key)
        if not self._is_present(entry):
            raise MissingError(f"{_describe(key)} is not there")
        if expected is not None and expected != str(entry.revision):
            raise ConflictError(
                f"{_describe(key)} has resourceVersion {entry.revision}, not {expected}"
            )
        return entry

    def _put(
        self, key: Key, entry: TransactionEntry[Stored], obj: Object, text: str | None
    ) -> Object:
        obj = thawed(obj)
        self._remove_expired()
        self._touch(key, entry, obj)
        if entry.is_there and entry.before is not None and not entry.has_moved:
            entry.has_moved = has_moved(self._object(key, entry), obj)
        entry.set(obj, text)
        if (seconds := self._volatile.get(key.resource)) is not None:
            entry.expires = self._now() + seconds
            heappush(self._expiring, (entry.expires, key))
        obj["metadata"]["resourceVersion"] = str(self._revision)
        self._keys.setdefault(key.resource, set()).add(key)
        entry.object = shared(obj)
        return entry.object

    def _remove(self, key: Key, entry: TransactionEntry[Stored]) -> None:
        self._touch(key, entry, None)
        if entry.before and not entry.deleted_at:
            entry.deleted_at = self._revision
        entry.set(None, None)
        self._keys.get(key.resource, set()).discard(key)

    def _touch(self, key: Key, entry: TransactionEntry[Stored], new: Object | None) -> None:
        """Give an entry whose object changes the next revision, and note what that does to the
        object."""
        self._revision += 1
        if self._recorder is not None and key.resource in self._recorded:
            old = self._object(key, entry) if entry.is_there else None
            self.timeline += self._recorder.entries(key, self._revision, self._now(), old, new)
        entry.revision = self._revision
        self._touched[key] = None
        self._lists.pop((key.resource, None), None)
        self._lists.pop((key.resource, key.namespace), None)

    def _remove_expired(self, limit: int = EXPIRED_WITH_A_WRITE) -> None:
        """Remove objects that are over by now, as many as a write does: one after a long pause
        costs no more than another, and revisions do not depend on how writes are grouped into
        transactions."""
        now = self._now()
        if self._next_expiry is None:
            self._next_expiry = self.next_expiry_after(-inf)
        while limit and (first := self._first_expired(now)) is not None:
            expires, key = first
            entry = self._entry(key)
            if entry.is_there and entry.expires == expires:  # else it was written again
                self._remove(key, entry)
                limit -= 1

    def _first_expired(self, now: float) -> Expiry | None:
        """Take the object that was the first to expire out of those that are over by now."""
        if not self._expired and self._next_expiry is not None and self._next_expiry <= now:
            self._expired = [*self.load_expired(now, self._last_expired, EXPIRED_WITH_A_WRITE)]
            if self._expired:
                self._last_expired = self._expired[-1]
            else:
                self._next_expiry = self.next_expiry_after(now)
        own = self._expiring if self._expiring and self._expiring[0][0] <= now else []
        heaps = [heap for heap in (self._expired, own) if heap]
        return heappop(min(heaps, key=lambda heap: heap[0])) if heaps else None

    # --- committing ---

    def renumber(self, base: int) -> None:
        """Give the writes the revisions after another one, in their order, and put these into the
        objects: for a store that learns them when it commits."""
        shift = base - self._base
        self._base = base
        self._revision += shift
        for entry in map(self._entries.__getitem__, self._touched):
            entry.revision += shift
            if entry.deleted_at:
                entry.deleted_at += shift
            for obj in (entry.object, entry.written):
                if obj is not None:
                    set_version(obj, entry.revision)
        self.timeline = [entry._replace(revision=entry.revision + shift) for entry in self.timeline]

    def settle(self, key: Key, revision: int) -> None:
        """Give the last write of an object the revision that a commit of this object alone has led
        to, and put it into the object."""
        entry = self._entries[key]
        entry.revision = revision
        for obj in (entry.object, entry.written):
            if obj is not None:
                set_version(obj, revision)

    def is_empty(self) -> bool:
        """Return whether there is nothing to commit."""
        return not any(
            entry.is_there or entry.before is not None
            for entry in map(self._entries.__getitem__, self._touched)
        )

    def changed(self) -> Iterable[StoredChange[Stored]]:
        """Return the changes in key order, without objects that were made and deleted within the
        transaction."""
        entries = ((key, self._entries[key]) for key in sorted(self._touched))
        return [
            StoredChange(
                key, entry.before, entry.json, entry.revision, entry.expires, entry.written
            )
            for key, entry in entries
            if entry.is_there or entry.before is not None
        ]

    def log(self) -> LogEntries:
        """Return the entries of the change log, oldest first."""
        log: LogEntries = []
        for key in self._touched:
            entry = self._entries[key]
            if entry.before and entry.deleted_at:
                log.append(LogEntry(entry.deleted_at, DELETED, *key, entry.before.json))
            if entry.is_there:
                log.append(self._logged(key, entry))
        return sorted(log)

    def _logged(self, key: Key, entry: TransactionEntry[Stored]) -> LogEntry:
        """Return the entry of the change log for an object that is there."""
        if entry.before is None or entry.deleted_at:
            return LogEntry(entry.revision, ADDED, *key, None)
        former = entry.before.json if entry.has_moved else None
        return LogEntry(entry.revision, MODIFIED, *key, former)

    def committed(self) -> CommittedChanges:
        """Return the changes as those hear of them who listen to the store."""
        changes = []
        for revision, change_type, key, last, former in coalesce(self.log()):
            entry = self._entry(key)
            text = entry.json if last is None else last
            assert text is not None
            changes.append(Change(revision, change_type, key, text, entry.expires, former))
        return CommittedChanges(self._base, self._revision, changes)


def _check_place(key: Key, obj: Object) -> None:
    """Check that an object may be stored under a key. Raises ValueError."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") != key.name:
        raise ValueError(f"the object of {_describe(key)} must carry its name")
    if (metadata.get("namespace") or "") != key.namespace:
        raise ValueError(f"the object of {_describe(key)} must carry its namespace")


def _differs(new: Object, old: Object) -> bool:
    """Tell whether two plain objects differ beyond their metadata, which has the
    resourceVersion."""
    return new.keys() != old.keys() or any(
        new[field] != old[field] for field in new if field != "metadata"
    )


def _describe(key: Key) -> str:
    return f'{key.resource} "{f"{key.namespace}/" if key.namespace else ""}{key.name}"'
