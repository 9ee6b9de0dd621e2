"""The past as etcd remembers it: the changes of objects between two revisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kubepy.storage.errors import CompactedError
from kubepy.storage.etcd.errors import UnreachableError
from kubepy.storage.model import (
    ADDED,
    DELETED,
    MODIFIED,
    Change,
    Changes,
    Key,
    LogEntry,
    coalesce,
    former_state,
)

if TYPE_CHECKING:
    from kubepy.storage.etcd.client import KeyEvent, Watch, WatchBatch
    from kubepy.storage.etcd.keyspace import Keyspace
    from kubepy.storage.etcd.values import Values


class ObjectState(NamedTuple):
    """An object as a change has left it."""

    revision: int
    json: str
    expires: float | None


class PastChanges(NamedTuple):
    """The changes of objects from one revision to another.

    :ivar entries: the change log, oldest first.
    :ivar objects: the newest states of objects that are there.
    :ivar is_quiet: no object was written.
    :ivar is_undisturbed: nobody else has written to etcd either.
    """

    entries: list[LogEntry]
    objects: Mapping[Key, ObjectState]
    is_quiet: bool = True
    is_undisturbed: bool = True

    def changes(self) -> Changes:
        """Return the changes, of which each object has one."""
        changes: Changes = []
        for revision, change_type, key, last, former in coalesce(self.entries):
            if last is not None:
                changes.append(Change(revision, DELETED, key, last, former_json=former))
            elif change_type != DELETED and (state := self.objects.get(key)) is not None:
                changes.append(
                    Change(state.revision, change_type, key, state.json, state.expires, former)
                )
        return changes


def read_history(keyspace: Keyspace, since: int, until: int) -> PastChanges:
    """Read what happened after a revision up to another. Raises CompactedError."""
    entries: list[LogEntry] = []
    objects: dict[Key, ObjectState] = {}
    is_quiet = is_undisturbed = True
    if since >= until:
        return PastChanges(entries, objects)
    for events in _batches(keyspace, since, until):
        expirations = expirations_of(keyspace, events)
        for event in events:
            if event.kv.mod_revision > until:
                break
            key = keyspace.keys.parse(event.kv.key)
            if key is None:
                is_undisturbed = is_undisturbed and keyspace.is_own(event.kv.key)
                continue
            is_quiet = False
            entry, text = _entry(keyspace.values, key, event)
            if entry is not None:
                entries.append(entry)
            if text is None:
                objects.pop(key, None)
            else:
                revision = event.kv.mod_revision
                expires = expirations.get((key, revision))
                objects[key] = ObjectState(revision, text, expires)
    return PastChanges(entries, objects, is_quiet, is_undisturbed)


def expirations_of(keyspace: Keyspace, events: Iterable[KeyEvent]) -> dict[tuple[Key, int], float]:
    """Return when the objects of some writes are over: those that say so."""
    own = keyspace.own
    expirations: dict[tuple[Key, int], float] = {}
    if not keyspace.watches_all:
        if any(_is_volatile(keyspace, event) for event in events):
            for key, (moment, revision) in keyspace.expirations().items():
                expirations[key, revision] = moment
        return expirations
    for event in events:
        if not event.is_delete and event.kv.key.startswith(own.expiring):
            moment, key = own.read_expiry(event.kv.key)
            expirations[key, event.kv.mod_revision] = moment
    return expirations


def _is_volatile(keyspace: Keyspace, event: KeyEvent) -> bool:
    if event.is_delete:
        return False
    key = keyspace.keys.parse(event.kv.key)
    if key is None:
        return False
    return key.resource in keyspace.volatile


def _batches(keyspace: Keyspace, since: int, until: int) -> Iterator[list[KeyEvent]]:
    """Yield the events after a revision, until they reach another."""
    watch = keyspace.watch(since + 1, prev_kv=True)
    try:
        if not keyspace.watches_all:
            keyspace.tick()
        reached = since
        while reached < until:
            batch = next_of(watch, keyspace.timeout)
            yield batch.events
            reached = batch.revision
    finally:
        watch.close()


def next_of(watch: Watch, timeout: float) -> WatchBatch:
    """Wait for what a watch has for certain. Raises UnreachableError, CompactedError."""
    batch = watch.next_batch(timeout)
    if batch is None:
        raise UnreachableError(f"etcd: a watch gave nothing for {timeout:g} s", 14)
    return batch


def _entry(values: Values, key: Key, event: KeyEvent) -> tuple[LogEntry | None, str | None]:
    """Return the entry of the change log for an event, and the object after it. A value that cannot
    be read counts as no object, as in lists. Raises CompactedError."""
    revision = event.kv.mod_revision
    before = None
    if event.prev_kv is not None:
        before = values.find(key, event.prev_kv.value)
    text = None
    if not event.is_delete:
        text = values.find(key, event.kv.value)
    if text is None and before is not None:
        return LogEntry(revision, DELETED, *key, before), None
    if text is None:
        if event.is_delete and event.prev_kv is None:
            raise CompactedError(f"what {key.place} was at revision {revision} is compacted")
        return None, None
    is_new = event.kv.create_revision == revision
    was_unread = event.prev_kv is not None and before is None
    if is_new or was_unread:
        return LogEntry(revision, ADDED, *key, None), text
    return LogEntry(revision, MODIFIED, *key, former_state(before, text)), text
