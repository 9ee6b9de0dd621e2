"""The store in memory: empty, or a fork of another store.

All that it holds is one :class:`~kubepy.storage.state.State`: a commit puts another in its place. A
fork begins with the state of its origin, so it costs nothing, shares all that neither of them
changes, and neither sees the writes of the other.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice, takewhile
from math import inf
from typing import Any

from kubepy.storage.errors import LockTimeoutError
from kubepy.storage.indexes import NewIndexes
from kubepy.storage.model import (
    ChangesSince,
    CommittedChanges,
    Key,
    Object,
    ObjectStream,
    Snapshot,
)
from kubepy.storage.state import LAST, ObjectRecord, State
from kubepy.storage.timeline import NewRecorder, TimelineRecorder
from kubepy.storage.transaction import BufferedTransaction, Expiry, TransactionEntry


def uid_in(obj: Object) -> object:
    """Return the uid of an object; None where it has none."""
    return obj["metadata"].get("uid")


class MemoryTransaction(BufferedTransaction[ObjectRecord]):
    """Changes to a store in memory.

    :ivar meta: the small values that were set.
    :ivar settings: the settings that were changed.
    """

    def __init__(
        self,
        state: State,
        volatile: Mapping[str, float],
        now: Callable[[], float],
        recorder: TimelineRecorder | None,
    ) -> None:
        super().__init__(state.revision, volatile, now, recorder)
        self._state = state
        self.meta: dict[str, str | None] = {}
        self.settings: Object = {}

    def load(self, key: Key) -> ObjectRecord | None:
        return self._state.get(key)

    def load_all(self, resource: str, namespace: str | None) -> Iterable[ObjectRecord]:
        return self._state.records(resource, namespace)

    def load_expired(self, now: float, after: Expiry, limit: int) -> Iterable[Expiry]:
        later = (expiry for expiry, _ in self._state.all_expiring().after(after))
        expired = takewhile(lambda expiry: expiry[0] <= now, later)
        return list(islice((expiry for expiry in expired if self._state.get(expiry[1])), limit))

    def next_expiry_after(self, now: float) -> float:
        later = self._state.all_expiring().after((now, LAST))
        return next((expires for (expires, _), _ in later), inf)

    def decode(self, key: Key, entry: TransactionEntry[ObjectRecord]) -> Object:
        assert entry.before is not None
        return entry.before.object

    def restore(self, other: State) -> None:
        """Make everything what it is in another state: objects that differ are written, and the
        others keep their resourceVersions. The timeline becomes that of the other state."""
        for resource, namespace in sorted({*self._state.places(), *other.places()}):
            present = {record.key: record for record in self._state.records(resource, namespace)}
            wanted = {record.key: record for record in other.records(resource, namespace)}
            for key in sorted(present.keys() | wanted.keys()):
                self._restore(key, present.get(key), wanted.get(key))
        own_meta: dict[str, str | None] = dict.fromkeys(self._state.all_meta())
        self.meta = {**own_meta, **other.all_meta()}
        self.settings = {**dict.fromkeys(self._state.settings), **other.settings}
        self._state = self._state._replace(timeline=other.timeline, forgotten=other.forgotten)

    def _restore(self, key: Key, present: ObjectRecord | None, wanted: ObjectRecord | None) -> None:
        """Write an object as another state has it; one with another uid replaces the one that is
        there."""
        if present is wanted:
            return
        entry = self._entry(key)
        if wanted is None:
            self._remove(key, entry)
            return
        if present is not None:
            if (present.json, present.expires) == (wanted.json, wanted.expires):
                return
            if uid_in(present.object) != uid_in(wanted.object):
                self._remove(key, entry)
        obj = {**wanted.object, "metadata": {**wanted.object["metadata"]}}
        self._put(key, entry, obj, wanted.json)
        entry.expires = wanted.expires

    def after(self) -> State:
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
        meta = state.meta.changed((name, (value,)) for name, value in self.meta.items())
        return state._replace(meta=meta, settings=settings)


class MemoryStore:
    """A store that is gone with its process. Several threads may use it: one writes at a time, all
    read meanwhile.

    :param state: the settings, or the state of another store, which this one is a fork of then.
    :param volatile: resources whose objects expire, and after how many seconds (events: 3600).
    :param now: the cluster's time in seconds since the epoch, for ``volatile``.
    :param lock_timeout: seconds that a transaction waits for one of another thread.
    """

    def __init__(
        self,
        state: State | Mapping[str, Any] | None = None,
        *,
        volatile: Mapping[str, float] | None = None,
        now: Callable[[], float] | None = None,
        lock_timeout: float = 30.0,
    ) -> None:
        if isinstance(state, State):
            self._state = state._replace(is_borrowed=True)
        else:
            self._state = State({"formatVersion": 1, **(state or {})})
        self._volatile = dict(volatile or {})
        self._now = now or time.time
        self._patience = lock_timeout
        self._own = threading.local()
        self._lock = threading.Lock()
        self._writer: tuple[int, MemoryTransaction] | None = (
            None  # the thread of the transaction under way
        )
        self._held: dict[str, str] = {}  # the holders of named locks
        self._listener: Callable[[CommittedChanges], None] | None = None
        self._new_recorder: NewRecorder | None = None

    @property
    def lock_timeout(self) -> float:
        """The seconds that a transaction of this thread waits for one of another thread."""
        patience: float = getattr(self._own, "lock_timeout", self._patience)
        return patience

    @lock_timeout.setter
    def lock_timeout(self, seconds: float) -> None:
        self._own.lock_timeout = seconds

    def connect(
        self,
        now: Callable[[], float],
        new_recorder: NewRecorder | None = None,
        indexes: NewIndexes = tuple,
    ) -> None:
        """Take the cluster's time, a function for its timeline, and what objects are found by."""
        self._now = now
        self._new_recorder = new_recorder
        self._state = self._state.with_indexes(indexes())

    def close(self) -> None:
        """Do nothing: the store is gone with the last that refers to it."""

    def sync(self) -> None:
        """Do nothing: nothing here outlasts the process."""

    def state(self) -> State:
        """Return all that is committed."""
        return self._state

    def read_in_full(self) -> None:
        """Read what is still in the store that this one is a fork of. Raises LockTimeoutError."""
        with self._exclusively():
            self._state = self._state.in_full()

    def restore(self, other: State) -> None:
        """Become what another state is, in one commit: objects, settings, small values, timeline.

        Revisions go on: an object that differs gets a new resourceVersion, and whoever watches sees
        each change. Raises LockTimeoutError.
        """
        with self._exclusively():
            changes = MemoryTransaction(self._state, {}, lambda: -inf, None)
            changes.restore(other)
            self._commit(changes)

    # --- reading ---

    def get(self, key: Key) -> Object | None:
        """Return an object, None where there is none."""
        record = self._state.get(key)
        return record.object if record is not None and record.is_alive(self._now()) else None

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

    @property
    def revision(self) -> int:
        """The newest revision."""
        return self._state.revision

    def changes(self, since: int) -> ChangesSince:
        """Return what changed after a revision, oldest first; several changes of one object may
        have become one.

        Raises CompactedError if the log no longer reaches back that far: list again.
        """
        return self._state.changes(since)

    def watch(self, listener: Callable[[CommittedChanges], None]) -> None:
        """Call a function with what each transaction has changed, before the next one begins."""
        self._listener = listener

    def wait_for_change(self, seconds: float) -> bool:
        """Return False: nothing tells."""
        return False

    # --- writing ---

    @contextmanager
    def transaction(self) -> Iterator[MemoryTransaction]:
        """Run the block and commit. An exception in the block changes nothing. Raises
        LockTimeoutError."""
        with self._exclusively():
            changes = MemoryTransaction(
                self._state, self._volatile, lambda: self._now(), self._recorder()
            )
            self._writer = threading.get_ident(), changes
            try:
                yield changes
                self._commit(changes)
            finally:
                self._writer = None

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Keep all other threads from writing for the length of a block. Raises RuntimeError inside
        a transaction of this thread, LockTimeoutError."""
        if self._current() is not None:
            raise RuntimeError("a transaction is under way in this store; transactions do not nest")
        if not self._lock.acquire(timeout=max(self.lock_timeout, 0.0)):
            raise LockTimeoutError(
                f"the store is held by another thread (waited {self.lock_timeout:g} s)"
            )
        try:
            yield
        finally:
            self._lock.release()

    def _commit(self, changes: MemoryTransaction) -> None:
        """Make everything visible that a transaction has changed."""
        self._state = changes.after()
        if self._listener is not None and not changes.is_empty():
            self._listener(changes.committed())

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

    def meta(self, name: str) -> str | None:
        """Return a small value that is no object (the last id that was given)."""
        current = self._current()
        if current is not None and name in current.meta:
            return current.meta[name]
        return self._state.meta_value(name)

    def set_values(
        self, meta: Mapping[str, str | None] = {}, *, settings: Mapping[str, Any] = {}
    ) -> None:
        """Set small values and settings (None removes one), as part of the transaction that is
        under way, else in one of its own."""
        current = self._current()
        if current is None:
            with self.transaction() as transaction:
                transaction.meta.update(meta)
                transaction.settings.update(settings)
        else:
            current.meta.update(meta)
            current.settings.update(settings)

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
