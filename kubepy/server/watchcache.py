"""The objects of the cluster and their latest changes in memory, for watches and lists.

One thread reads the change log and feeds everybody. It is told of the commits of this process at
once, with their objects, and polls for those of others and for edits from outside. Where the change
log no longer reaches back to what the cache has, as after ``.kubepy`` was removed, it begins anew,
and watchers must list again.

The objects are a :class:`~kubepy.storage.state.State`, which never changes, so a list is of one
moment without a lock, and the objects as they were at an earlier revision come from undoing the
changes since. Upstream: ``apiserver/pkg/storage/cacher``.
"""

from __future__ import annotations

import threading
import time
import traceback
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api import errors
from kubepy.api.meta import name_of, namespace_of
from kubepy.apiserver.client import CRDS
from kubepy.apiserver.implied import ImpliedObjects
from kubepy.apiserver.settings import IMPLIED_ALWAYS
from kubepy.storage import (
    CompactedError,
    Key,
    LockTimeoutError,
    Problem,
    RemovedError,
    StorageError,
)
from kubepy.storage.model import (
    ADDED,
    DELETED,
    Change,
    CommittedChanges,
    LogEntry,
    Object,
    in_full,
    to_json,
)
from kubepy.storage.state import ObjectRecord, State

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster

COUNTER_SECONDS = (
    0.02  # how often the counter of revisions is read, for the commits of other processes
)
SCAN_SECONDS = 0.1  # how often files are looked at, for edits from outside …
SCAN_COST_RATIO = 8  # … or after so many times as long as that takes, in a large folder …
MAX_SCAN_SECONDS = 1.0  # … but never less often than this
RETRY_SECONDS = 0.1  # after an error of the store
MAX_EVENTS = 10_000  # of one resource
MAX_EVENT_BYTES = 16 << 20  # of one resource
MIN_EVENTS = 16  # however large they are
COMPACTION_SECONDS = 300.0  # kube-apiserver's --etcd-compaction-interval
NAMESPACES = "namespaces"
UNKNOWN = ObjectRecord(
    Key("", "", ""), 0, None
)  # an object that was there, in a state that nobody knows any more

EMPTY = State({}, -1)  # the state before anything was read

MAX_ENCODING_BYTES = 64 << 20  # of all objects

EncodingKey = tuple[Key, int, object]  # the object, its revision, and its form
Touched = frozenset[str]
Events = dict[str, "list[CachedEvent]"]  # by resource


class CachedEvent(NamedTuple):
    """A change of one object.

    :ivar old: the state before; None where there was none.
    :ivar new: the state after; None after a deletion.
    """

    revision: int
    key: Key
    old: ObjectRecord | None
    new: ObjectRecord | None


class ImpliedRecord(ObjectRecord):
    """An object that is there without being stored (``kubepy.apiserver.implied``)."""

    __slots__ = ()


class EventWindow:
    """The latest changes of the objects of one resource, oldest first.

    :ivar floor: the revision after which all changes are known.
    """

    __slots__ = ("events", "floor", "size")

    def __init__(self, floor: int) -> None:
        self.events: list[CachedEvent] = []
        self.floor = floor
        self.size = 0

    def add(self, events: list[CachedEvent]) -> None:
        """Take changes in; the oldest ones are forgotten where there are too many."""
        self.events.extend(events)
        self.size += sum(map(_size, events))
        while len(self.events) > MAX_EVENTS or (
            self.size > MAX_EVENT_BYTES and len(self.events) > MIN_EVENTS
        ):
            dropped = self.events[: max(len(self.events) // 4, 1)]
            del self.events[: len(dropped)]
            self.size -= sum(map(_size, dropped))
            self.floor = dropped[-1].revision

    def after(self, revision: int) -> list[CachedEvent]:
        return self.events[bisect_right(self.events, revision, key=lambda event: event.revision) :]


def _size(event: CachedEvent) -> int:
    return len(event.new.json or "") if event.new is not None else 0


class Compaction:
    """The revisions at which nobody may list any more: each can be listed for five minutes after
    the next one came, as where a kube-apiserver compacts etcd."""

    def __init__(self) -> None:
        self._newest: deque[tuple[int, int]] = deque()  # second by second, those with changes

    @staticmethod
    def now() -> float:
        return time.monotonic()

    def note(self, revision: int) -> None:
        """Note the newest revision."""
        if self._newest and self._newest[-1][1] >= revision:
            return
        second = int(self.now()) + 1
        if self._newest and self._newest[-1][0] == second:
            self._newest.pop()
        self._newest.append((second, revision))

    def floor(self) -> int:
        """Return the oldest revision at which lists are possible."""
        end = self.now() - COMPACTION_SECONDS
        while len(self._newest) > 1 and self._newest[1][0] <= end:
            self._newest.popleft()
        if self._newest and self._newest[0][0] <= end:
            return self._newest[0][1]
        return 0


class Encodings:
    """Encoded objects. Any thread may use it; the oldest ones make place for new ones."""

    def __init__(self, max_bytes: int = MAX_ENCODING_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._encodings: dict[EncodingKey, bytes] = {}
        self._size = 0

    def get(self, key: EncodingKey) -> bytes | None:
        return self._encodings.get(key)

    def put(self, key: EncodingKey, encoding: bytes) -> None:
        with self._lock:
            if key not in self._encodings:
                self._size += len(encoding)
            self._encodings[key] = encoding
            while self._size > self._max_bytes:
                oldest = next(iter(self._encodings))
                self._size -= len(self._encodings.pop(oldest))


class WatchCache:
    """The cache of one cluster, fed by a thread of its own from :meth:`start` to :meth:`close`.

    :param open_cluster: returns the open cluster for the thread of the cache.
    :param log: takes a line about the store where it cannot be read.
    """

    def __init__(
        self,
        open_cluster: Callable[[], LocalCluster],
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._open_cluster = open_cluster
        self._log = log
        self._thread = threading.Thread(target=self._run, name="watch cache", daemon=True)
        self._changed = threading.Condition()  # guards everything below
        self._state = EMPTY  # the objects, stored and implied
        self._windows: dict[str, EventWindow] = {}  # by resource
        self._compaction = Compaction()
        self._is_loaded = False
        self._first = 0  # the revision at which the cache began
        self._history: list[tuple[LogEntry, ObjectRecord | None]] = []  # the change log up to there
        self._history_floor = 0
        self._wanted = 0  # the revision that somebody waits for
        self._commits: list[CommittedChanges] = []
        self._listeners: dict[int, Callable[[Touched | None], None]] = {}
        self._listener_ids = 0
        self._is_closed = False
        self._implied: frozenset[str] = frozenset()  # the resources with implied objects
        self._refreshes: dict[tuple[str, str], tuple[float, tuple[int, tuple[Problem, ...]]]] = {}
        self.encodings = Encodings()
        self.watches: Any = None  # of kubepy.server.watch, which serves them
        self.definitions_revision = 0  # at which CustomResourceDefinitions last changed

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the thread, and tell listeners to end theirs."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        self._notify(None)

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def revision(self) -> int:
        """The newest revision that the cache has; -1 before it has any."""
        return self._state.revision

    def attach(self, cluster: LocalCluster) -> None:
        """Hear of the commits of a cluster at once."""
        cluster.store.watch(self._take)

    def _take(self, commit: CommittedChanges) -> None:
        with self._changed:
            self._commits.append(commit)
            self._changed.notify_all()

    # --- reading ----------------------------------------------------------------------------------

    def wait_for(self, revision: int, timeout: float) -> bool:
        """Wait until the cache has a revision; return whether it has."""
        if self._has(revision):
            return True
        with self._changed:
            self._wanted = max(self._wanted, revision)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._is_closed or self._has(revision), timeout)
            return self._has(revision)

    def has_noticed(self, revision: int) -> bool:
        """Tell whether custom kinds were read again for every change of a definition up to a
        revision: the cache has taken it in, or what it has still to take in changes none."""
        with self._changed:
            if not self._is_loaded:
                return False
            noticed = self.revision
            for commit in self._commits:
                is_next = commit.base <= noticed
                if not is_next or any(change.key.resource == CRDS for change in commit.changes):
                    break
                noticed = max(noticed, commit.revision)
            return revision <= noticed

    def _has(self, revision: int) -> bool:
        return self._is_loaded and revision <= self.revision

    def look_in(
        self, cluster: LocalCluster, resource: str, namespace: str, asked: float
    ) -> tuple[int, tuple[Problem, ...]]:
        """Do what :meth:`WorkTree.look_in` does; requests that came before a look at the files
        began share it. Without files, return the newest revision.

        :param asked: the time at which the request came, by ``time.monotonic``; 0: any look will
            do.
        """
        if cluster.worktree is None:
            return cluster.store.revision, ()
        began, result = self._refreshes.get((resource, namespace), (0.0, (0, ())))
        if began <= asked:
            began = time.monotonic()
            result = cluster.worktree.look_in(resource, namespace or None)
            self._refreshes[resource, namespace] = began, result
        return result

    def snapshot(
        self, resource: str, namespace: str, revision: int | None = None
    ) -> tuple[list[ObjectRecord], int]:
        """Return the objects of a resource in a namespace ("": in all) as they are, or as they were
        at a revision, in the order of lists, and that revision.

        Raises Expired for one that is too long ago.
        """
        with self._changed:
            state = self._state
            window = self._windows.get(resource) or EventWindow(self._first)
            self._compaction.note(state.revision)
            if revision is None or revision >= state.revision:
                revision, undone = state.revision, []
            elif revision >= max(window.floor, self._compaction.floor()):
                undone = window.after(revision)
            else:
                raise errors.Expired(f"too old resource version: {revision}")

        records = state.records(resource, namespace or None)
        if not undone:
            return records, revision
        # Of several changes of one object the first one knows the state before all of them.
        before = {event.key: event.old for event in reversed(undone)}
        records = [record for record in records if record.key not in before]
        for key, old in before.items():
            if old is not None and namespace in ("", key.namespace):
                records.append(old)
        return sorted(records, key=lambda record: record.key), revision

    def events(
        self, resource: str, since: int, limit: int | None = None
    ) -> tuple[list[CachedEvent], int]:
        """Return the changes after a revision, oldest first, and the revision that they lead to.

        :param limit: return about so many of them at most.

        Raises Expired for a revision after which changes are forgotten.
        """
        with self._changed:
            window = self._windows.get(resource) or EventWindow(self._first)
            if since >= window.floor:
                events = window.after(since)
                if limit is None or len(events) <= limit:
                    return events, self.revision
                end = events[limit - 1].revision
                return [event for event in events if event.revision <= end], end
            if window.floor != self._first or since < self._history_floor:
                raise errors.Expired(
                    f"too old resource version: {since} ({max(window.floor, self._history_floor)})"
                )
            first = self._first
        return self._older_events(resource, since), first

    def _older_events(self, resource: str, since: int) -> list[CachedEvent]:
        """Return the changes up to the beginning of the cache, as the change log has them: one for
        several changes of an object. What was before a modification is not known. Raises
        Expired."""
        history = [(entry, record) for entry, record in self._history if entry.revision > since]
        if resource in self._implied and any(
            entry.resource in (NAMESPACES, CRDS) for entry, _ in history
        ):
            raise errors.Expired(f"too old resource version: {since} ({self._first})")

        events: list[CachedEvent] = []
        new: set[Key] = set()  # the objects that were made after the revision
        for entry, record in history:
            key = Key(*entry[2:5])
            if entry.resource != resource:
                continue
            if entry.type == ADDED:
                new.add(key)
            if record is not None:
                events.append(
                    CachedEvent(entry.revision, key, None if key in new else UNKNOWN, record)
                )
            elif entry.type == DELETED and key not in new:
                old = ObjectRecord(key, entry.revision, entry.json)
                events.append(CachedEvent(entry.revision, key, old, None))
            elif entry.type == DELETED:
                new.discard(key)

        return events

    def subscribe(self, listener: Callable[[Touched | None], None]) -> Callable[[], None]:
        """Call a function with the resources that have changed, None when all must list again or
        the cache is closed.

        It is called in the thread of the cache, and must be quick. Returns a function that ends
        this.
        """
        with self._changed:
            self._listener_ids += 1
            number = self._listener_ids
            self._listeners[number] = listener
        return lambda: (self._listeners.pop(number, None), None)[1]

    def _notify(self, touched: Touched | None) -> None:
        for listener in list(self._listeners.values()):
            listener(touched)

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        cluster, scan_due, problem = None, 0.0, ""
        while not self._is_closed:
            try:
                if cluster is None:
                    cluster = self._open_cluster()
                    cluster.store.lock_timeout = 0.0  # watchers wait for this thread
                    if cluster.worktree is not None:
                        cluster.worktree.watch_files()
                    self.attach(cluster)
                if not self._is_loaded:
                    self._load(cluster)
                self._wait(scan_due)
                self._apply_commits(cluster)
                if (now := time.monotonic()) >= scan_due:
                    self._read_log(cluster, scan=True)
                    cost = time.monotonic() - now
                    scan_due = (
                        now
                        + cost
                        + min(max(SCAN_SECONDS, SCAN_COST_RATIO * cost), MAX_SCAN_SECONDS)
                    )
                    self._remove_expired(cluster)
                elif not _is_quiet(cluster) and cluster.store.revision != self.revision:
                    self._read_log(cluster, scan=False)
                problem = ""
            except CompactedError:
                self._is_loaded = False
            except (LockTimeoutError, RemovedError):  # of a moment
                time.sleep(RETRY_SECONDS)
            except StorageError as error:
                if problem != (problem := str(error)):
                    self._log(f"watch cache: {problem}")
                time.sleep(RETRY_SECONDS)
            except Exception:
                self._log(f"internal error: watch cache: {traceback.format_exc()}")
                self._is_loaded = False
                time.sleep(RETRY_SECONDS)

    def _wait(self, scan_due: float) -> None:
        """Wait until there is something to do, or the next look at the store is due."""
        timeout = min(COUNTER_SECONDS, max(scan_due - time.monotonic(), 0.0))
        with self._changed:
            if not self._commits and not self._is_closed and self._wanted <= self.revision:
                self._changed.wait(timeout)
            self._wanted = 0

    def _load(self, cluster: LocalCluster) -> None:
        """Begin with everything that is in the store, and tell watchers to list again. Raises
        StorageError."""
        recorded = cluster.recorded_state()
        try:
            state = recorded.of_objects()
            floor = recorded.compacted
            history = [(entry, _survivor(state, entry)) for entry in recorded.entries(floor)]
        finally:
            recorded.close()

        self._implied = cluster.settings.implied_resources
        implied_events = _implied_changes(cluster, state, self._implied)
        state = _with_events(state, implied_events, state.revision)
        with self._changed:
            was_loaded = self._state is not EMPTY
            cluster.client.forget_custom_kinds()
            self._state = state
            self._windows = {}
            self._first = state.revision
            self._history, self._history_floor = history, floor
            self._is_loaded = True
            self.definitions_revision = state.revision
            self._changed.notify_all()

        if was_loaded:
            self._notify(None)

    def _apply_commits(self, cluster: LocalCluster) -> None:
        """Take in what this process has committed. Raises StorageError."""
        with self._changed:
            commits, self._commits = self._commits, []
        for commit in commits:
            if commit.base > self.revision:  # others have committed before it, or files were edited
                _, changes, _ = in_full(cluster.store.changes, self.revision)
                before = [change for change in changes if change.revision <= commit.base]
                self._apply(cluster, before, commit.base)
            if commit.revision > self.revision:
                self._apply(cluster, commit.changes, commit.revision)

    def _read_log(self, cluster: LocalCluster, *, scan: bool) -> None:
        """Take in what the change log has. Raises StorageError, CompactedError."""
        if scan:
            cluster.look()
        revision, changes, _ = in_full(cluster.store.changes, self.revision)
        self._apply_commits(cluster)
        if revision > self.revision:
            later = [change for change in changes if change.revision > self.revision]
            self._apply(cluster, later, revision)

    def _apply(self, cluster: LocalCluster, changes: Iterable[Change], revision: int) -> None:
        """Take in changes that lead to a revision."""
        state = self._state
        events = _events(state, changes)
        state = _with_events(state, events, revision)
        stale = self._implied if NAMESPACES in events else self._implied & events.keys()
        if CRDS in events:
            stale |= IMPLIED_ALWAYS  # the APIs that definitions serve
        if stale:
            implied_events = _implied_changes(cluster, state, stale)
            state = _with_events(state, implied_events, revision)
            for resource, of_resource in implied_events.items():
                events[resource] = [*events.get(resource, ()), *of_resource]
        with self._changed:
            for resource, of_resource in events.items():
                self._windows.setdefault(resource, EventWindow(self._first)).add(of_resource)
            if CRDS in events:
                self.definitions_revision = revision
                cluster.client.forget_custom_kinds()
            self._state = state
            self._compaction.note(revision)
            self._changed.notify_all()

        self._notify(frozenset(events))

    def _remove_expired(self, cluster: LocalCluster) -> None:
        """Delete objects whose time is over, so that watchers hear of it. Raises FolderError."""
        cluster.client.take_over_time()
        now = cluster.clock.now().timestamp()
        first, _ = next(self._state.all_expiring().items(), ((inf, None), True))
        if first[0] > now:
            return
        with suppress(LockTimeoutError), cluster.store.transaction() as transaction:
            transaction.remove_expired()


def _is_quiet(cluster: LocalCluster) -> bool:
    """Return whether it is known, at next to no cost, that nothing has changed."""
    return cluster.worktree is not None and cluster.worktree.is_quiet()


def _events(state: State, changes: Iterable[Change]) -> Events:
    """Return what changes make of a state."""
    events: Events = {}
    present: dict[Key, ObjectRecord | None] = {}
    for change in changes:
        key = change.key
        old = present[key] if key in present else state.get(key)
        new = None
        if change.type != DELETED:
            new = ObjectRecord(key, change.revision, change.json, change.expires)
        present[key] = new
        if old is not None or new is not None:
            event = CachedEvent(change.revision, key, old, new)
            events.setdefault(key.resource, []).append(event)
    return events


def _with_events(state: State, events: Events, revision: int) -> State:
    """Return the state at a revision, to which events have led."""
    return state.with_records(
        [
            (event.new or ObjectRecord(event.key, event.revision, None), event.old)
            for of_resource in events.values()
            for event in of_resource
        ],
        revision,
    )


def _implied_changes(cluster: LocalCluster, state: State, resources: Iterable[str]) -> Events:
    """Return the changes of objects that are there without being stored."""

    def stored(resource: str, namespace: str | None) -> list[Object]:
        records = state.records(resource, namespace)
        return [record.object for record in records if not isinstance(record, ImpliedRecord)]

    implied_objects = ImpliedObjects(cluster.settings, cluster.store, cluster.clock)
    revision = state.revision
    changes: Events = {}
    for resource in resources:
        records = state.records(resource, None)
        implied = {record.key: record for record in records if isinstance(record, ImpliedRecord)}
        missing: dict[Key, ImpliedRecord] = {}
        for obj in implied_objects.missing(resource, None, stored(resource, None), stored):
            key = Key(resource, namespace_of(obj), name_of(obj))
            missing[key] = ImpliedRecord(key, 1, to_json(obj))
        events = [
            CachedEvent(revision, key, old, None)
            for key, old in implied.items()
            if key not in missing
        ]
        for key, new in missing.items():
            known = implied.get(key)
            if known is None or known.json != new.json:
                events.append(CachedEvent(revision, key, known, new))
        if events:
            changes[resource] = events

    return changes


def _survivor(state: State, entry: LogEntry) -> ObjectRecord | None:
    """Return the object whose newest change an entry of the log is."""
    record = state.get(Key(*entry[2:5])) if entry.type != DELETED else None
    return record if record is not None and record.revision == entry.revision else None
