"""What tests ask of any store and any cluster, whether it keeps files or not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from math import inf
from weakref import WeakKeyDictionary

from kubepy.apiserver.cluster import LocalCluster
from kubepy.storage import Change, Key
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.memory import MemoryStore
from kubepy.storage.model import Object, in_full
from kubepy.storage.state import State
from kubepy.storage.store import Store, Transaction
from kubepy.storage.timeline import TimelineEntry, microseconds
from kubepy.storage.worktree import WorkTree

_timelines: WeakKeyDictionary[Store, tuple[Callable[[], float], float]] = WeakKeyDictionary()


def changes(store: Store, since: int, *, reads: Iterable[Key] | None = None) -> list[Change]:
    """Return what changed after a revision, edits of files included."""
    if isinstance(store, FolderStore):
        store.look(keys=reads)
    return in_full(store.changes, since).changes


def newest_state(store: Store) -> State:
    """Return everything as it is now, edits of files included."""
    return store.newest_state() if isinstance(store, FolderStore) else store.state()


def fork_of(store: Store) -> MemoryStore:
    """Return an independent store in memory that goes on from another one."""
    now = store._access.now if isinstance(store, FolderStore) else store._now  # type: ignore[attr-defined]
    volatile = store._volatile  # type: ignore[attr-defined]
    return MemoryStore(
        newest_state(store), volatile=volatile, now=now, lock_timeout=store.lock_timeout
    )


def resources(store: Store, now: float = 0.0) -> list[str]:
    return newest_state(store).resources(now)


def namespaces(store: Store) -> list[str]:
    """Return the namespaces in which there are objects other than events."""
    if isinstance(store, FolderStore):
        return store.namespaces()
    tables = store.state().tables
    names = {
        namespace
        for resource, by_namespace in tables.items()
        if resource != "events"
        for namespace, table in by_namespace.items()
        if namespace and table.records()
    }
    return sorted(names)


def keep_timeline(store: Store, now: Callable[[], float], keep: float) -> None:
    """Note for how long a store keeps its timeline, for :func:`timeline_of`."""
    _timelines[store] = now, keep


def timeline_of(store: Store, *, since: int | None = None, after: int = 0) -> list[TimelineEntry]:
    """Return the entries of the timeline that are kept, edits of files included."""
    if isinstance(store, FolderStore):
        store.look()
    now, keep = _timelines.get(store, (time.time, inf))
    first = microseconds(now() - keep)
    first = first if since is None else max(first, since)
    return store.state().timeline_since(first, keep, after)


def transaction_of(store: Store, *, refresh: bool) -> AbstractContextManager[Transaction]:
    """Begin a transaction, with all edits of files from its beginning or not."""
    if refresh and isinstance(store, FolderStore):
        return store.fresh_transaction()
    return store.transaction()


def find(store: Store, key: Key) -> Object | None:
    return store.find(key)[0] if isinstance(store, FolderStore) else store.get(key)


def disagreements(store: Store) -> list[str]:
    """Return everything in which the parts of a store disagree."""
    return store.check() if isinstance(store, FolderStore) else []


def files_of(cluster: LocalCluster) -> WorkTree:
    assert cluster.worktree is not None
    return cluster.worktree
