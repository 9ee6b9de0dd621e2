"""Open and make clusters. This is the only place above storage that knows which stores there are.

A place is the path of a state folder, or ``memory:`` for :func:`open_cluster` and
:func:`make_cluster`. CONTRIBUTING says how a store is added.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kubepy.apiserver.cluster import NO_SETTINGS, UNFINISHED, VOLATILE, LocalCluster
from kubepy.lazy import lazy_imports
from kubepy.storage import FolderError, NoClusterError
from kubepy.storage.folder.store import FolderStore

if TYPE_CHECKING:
    from pathlib import Path  # three milliseconds that opening a cluster does not need

    from kubepy.storage.state import State

with lazy_imports():
    from kubepy.storage import memory
    from kubepy.storage.folder import copying, shared

MEMORY = "memory:"


def open_cluster(
    place: Path | str, *, create: bool = False, lock_timeout: float = 30.0
) -> LocalCluster:
    """Open a cluster; one in memory is made.

    :param create: make the cluster if there is none, around the files that are there, or only
        settings written by hand. It is to be furnished with a node then, and
        :meth:`finished <LocalCluster.finish>`. One in memory has no node either.

    Raises NoClusterError, FolderError.
    """
    if place == MEMORY:
        return make_cluster(MEMORY)
    is_new = False
    try:
        cluster = _open_folder(place, lock_timeout)
    except NoClusterError:
        if not create:
            raise
        is_new = True
        FolderStore.initialize(place, {})
        cluster = _open_folder(place, lock_timeout)

    if create and cluster.has_no_default_namespace() and (is_new or cluster.is_unfinished()):
        cluster.store.set_values({UNFINISHED: "yes"})
        cluster.bootstrap()
    return cluster


def make_cluster(
    place: Path | str, settings: Mapping[str, Any] = NO_SETTINGS, *, lock_timeout: float = 30.0
) -> LocalCluster:
    """Make a cluster with these settings (``clock``, ``seed``) and its first objects. Raises
    FolderError, also for settings that ``kubepy.yaml`` could not have."""
    if place == MEMORY:
        cluster = LocalCluster(memory.MemoryStore(settings, volatile=VOLATILE), new_memory_store)
    else:
        FolderStore.initialize(place, settings)
        cluster = _open_folder(place, lock_timeout)
    cluster.bootstrap()
    return cluster


def begin_cluster(folder: Path | str, settings: Mapping[str, str | int]) -> None:
    """Make a cluster in a folder, or go on with one that is not yet
    :meth:`finished <LocalCluster.finish>`.

    :param settings: for ``kubepy.yaml``; one that is there gets those that it lacks.

    Raises FolderError, also where ``kubepy.yaml`` says something else.
    """
    path = os.path.join(folder, "kubepy.yaml")
    if not os.path.exists(path):
        FolderStore.initialize(folder, settings)
    store = FolderStore(folder)
    present = store.settings()
    for name, value in settings.items():
        if present.get(name, value) != value:
            raise FolderError(f"kubepy.yaml: {name}: is {present[name]} already, not {value}")
    missing = {name: value for name, value in settings.items() if name not in present}
    if missing:
        store.set_values(settings=missing)
    store.set_values({UNFINISHED: "yes"})
    store.close()


def open_shared(folder: str, *, lock_timeout: float = 30.0) -> LocalCluster:
    """Open a state folder for several threads (:meth:`LocalCluster.apart`). Raises NoClusterError,
    FolderError."""
    store = shared.SharedFolderStore(folder, volatile=VOLATILE, lock_timeout=lock_timeout)
    return LocalCluster(store, new_memory_store, store)


def copy_cluster(cluster: LocalCluster, folder: Path | str) -> None:
    """Make an independent cluster in a new state folder that goes on from what is committed in
    another one, as its :meth:`LocalCluster.fork` does; of a state folder every file is copied as it
    is. Raises FolderError, LockTimeoutError."""
    if cluster.worktree is not None:
        cluster.worktree.copy_to(os.fspath(folder))
    else:
        copying.write_state(cluster.store.state(), os.fspath(folder))


def new_memory_store(state: State) -> memory.MemoryStore:
    """Make a store in memory that goes on from the state of another store."""
    return memory.MemoryStore(state, volatile=VOLATILE)


def _open_folder(folder: Path | str, lock_timeout: float) -> LocalCluster:
    store = FolderStore(folder, volatile=VOLATILE, lock_timeout=lock_timeout)
    return LocalCluster(store, new_memory_store, store)
