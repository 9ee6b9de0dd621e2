"""Open and make clusters. This is the only place above storage that knows which stores there are.

A place is the path of a state folder, an address of etcd (``etcd://HOST:PORT/PREFIX``), or
``memory:`` for :func:`open_cluster` and :func:`make_cluster`. CONTRIBUTING says how a store is
added.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kubepy.apiserver.cluster import NO_SETTINGS, UNFINISHED, VOLATILE, LocalCluster
from kubepy.apiserver.settings import FULL, NEVER, new_cluster_settings
from kubepy.lazy import lazy_imports
from kubepy.storage import FolderError, NoClusterError
from kubepy.storage.errors import LostStateError

if TYPE_CHECKING:
    from pathlib import Path  # three milliseconds that opening a cluster does not need

    from kubepy.storage import Key
    from kubepy.storage.etcd.store import EtcdStore
    from kubepy.storage.model import Object
    from kubepy.storage.state import State
    from kubepy.storage.store import Store
    from kubepy.storage.worktree import WorkTree

with lazy_imports():
    from kubepy.api import storedforms
    from kubepy.kubelet import usage
    from kubepy.runtime import checkpoint as checkpoints
    from kubepy.storage import memory, model
    from kubepy.storage import state as states
    from kubepy.storage.etcd import address as addresses
    from kubepy.storage.etcd import copying as etcd_copying
    from kubepy.storage.etcd import store as etcd_stores
    from kubepy.storage.etcd import writeorder as writeorders
    from kubepy.storage.folder import copying, shared
    from kubepy.storage.folder import store as folder_stores


class ImportedObject(NamedTuple):
    """An object that a cluster is made of.

    :ivar revision: its resourceVersion, which no other object has.
    :ivar expires: when it is over, in seconds since the epoch; None: never.
    """

    key: Key
    revision: int
    object: Object
    expires: float | None = None


MEMORY = "memory:"
ETCD = ("etcd://", "etcds://")
# In etcd is all that every cluster has, so that a kube-apiserver can be started on it. Pods get the
# token of their ServiceAccount where somebody asks for that, as in a folder …
NEW_IN_ETCD: Mapping[str, Any] = MappingProxyType(
    {"bootstrap": FULL, "admission": {"disablePlugins": ["ServiceAccount"]}}
)
# … and what a control plane has made there keeps its controllers until somebody says otherwise.
OF_A_CONTROL_PLANE: Mapping[str, Any] = MappingProxyType({"bootstrap": FULL, "reconcile": NEVER})


def is_in_etcd(place: Path | str) -> bool:
    """Return whether a place is an address of etcd."""
    return isinstance(place, str) and place.startswith(ETCD)


def shown(place: str) -> str:
    """Return a place as messages name it: without the password of etcd."""
    return str(addresses.parse_address(place)) if is_in_etcd(place) else place


def private_folder(place: str) -> str:
    """Return the folder of what is this machine's own: the keys of a server, a kubeconfig. For a
    state folder it is that folder, which has a part for it; for an etcd it is one in the user's
    home, which is made."""
    if not is_in_etcd(place):
        return place
    address = addresses.parse_address(place)
    name = f"{address.shown_endpoints}{address.prefix}".replace("/", "_")
    state_home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    folder = os.path.join(state_home, "kubepy", name)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


def endpoints_of(place: str) -> tuple[tuple[str, int], ...]:
    """Return the hosts and ports of an address of etcd; none for a folder."""
    if not is_in_etcd(place):
        return ()
    return addresses.parse_address(place).endpoints


def has_cluster(place: Path | str, store: Store | None = None) -> bool:
    """Return whether there is a cluster. Raises EtcdError.

    :param store: of :func:`open_values`, if it is open already.
    """
    if not is_in_etcd(place):
        return os.path.exists(os.path.join(place, "kubepy.yaml"))
    etcd = _etcd_store(place) if store is None else cast("EtcdStore", store)
    try:
        return etcd.has_settings() or etcd.has_objects()
    finally:
        if store is None:
            etcd.close()


def open_cluster(
    place: Path | str,
    *,
    create: bool = False,
    lock_timeout: float = 30.0,
    store: Store | None = None,
) -> LocalCluster:
    """Open a cluster; one in memory is made.

    :param create: make the cluster if there is none, around the files that are there, or only
        settings written by hand. It is to be furnished with a node then, and
        :meth:`finished <LocalCluster.finish>`. One in memory has no node either.
    :param store: of :func:`open_values`, if it is open already; the cluster closes it.

    Raises NoClusterError, FolderError.
    """
    if place == MEMORY:
        return make_cluster(MEMORY)
    is_new = False
    try:
        cluster = _open(place, lock_timeout, store)
    except NoClusterError:
        if not create:
            raise
        is_new = True
        _initialize(place, {})
        cluster = _open(place, lock_timeout)

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
        settings = new_cluster_settings(settings)
        cluster = _cluster(memory.MemoryStore(settings, volatile=VOLATILE))
    else:
        _initialize(place, settings)
        cluster = _open(place, lock_timeout)
    cluster.bootstrap()
    return cluster


def cluster_of_objects(
    objects: Iterable[ImportedObject], settings: Mapping[str, Any], meta: Mapping[str, str]
) -> LocalCluster:
    """Make a cluster in memory of objects as they are, with their resourceVersions, and of small
    values. What every cluster has besides is for :meth:`LocalCluster.bootstrap`. Raises
    FolderError."""
    records = [
        states.ObjectRecord(
            imported.key, imported.revision, model.to_json(imported.object), imported.expires
        )
        for imported in objects
    ]
    revision = max((record.revision for record in records), default=0)
    state = states.State({"formatVersion": 1, **new_cluster_settings(settings)})
    state = state.with_records(((record, None) for record in records), revision)
    values = state.meta.changed((name, (value,)) for name, value in meta.items())
    return _cluster(new_memory_store(state._replace(meta=values, compacted=revision)))


def begin_cluster(place: Path | str, settings: Mapping[str, Any]) -> None:
    """Make a cluster in a folder or in etcd, or go on with one that is not yet
    :meth:`finished <LocalCluster.finish>`.

    :param settings: those of the cluster; one that is there gets those that it lacks.

    Raises StorageError, also where the settings say something else.
    """
    if not has_cluster(place):
        _initialize(place, settings)
    store: Store = _etcd_store(place) if is_in_etcd(place) else folder_stores.FolderStore(place)
    present = store.settings()
    own_kubelet = present.get("kubelet")
    containers = own_kubelet.get("containers") if isinstance(own_kubelet, dict) else None
    if containers and "kubelet" in settings:  # every new cluster has that
        kubelet = {"containers": containers, **settings["kubelet"]}
        settings = {**settings, "kubelet": kubelet}
    for name, value in settings.items():
        if present.get(name, value) != value:
            raise FolderError(f"kubepy.yaml: {name}: is {present[name]} already, not {value}")
    missing = {name: value for name, value in settings.items() if name not in present}
    if missing:
        store.set_values(settings=missing)
    store.set_values({UNFINISHED: "yes"})
    store.close()


def remove_cluster(place: str) -> None:
    """Remove a cluster from etcd: all keys below its prefix. Raises StorageError."""
    etcd = _etcd_store(place)
    try:
        etcd.remove()
    finally:
        etcd.close()


def open_shared(
    place: str, settings: Mapping[str, Any] = NO_SETTINGS, *, lock_timeout: float = 30.0
) -> LocalCluster:
    """Open a cluster for several threads (:meth:`LocalCluster.apart`).

    :param settings: those of a cluster in memory, which is made.

    Raises NoClusterError, StorageError.
    """
    if place == MEMORY:
        return make_cluster(MEMORY, settings)
    if is_in_etcd(place):
        return _open(place, lock_timeout)
    store = shared.SharedFolderStore(place, volatile=VOLATILE, lock_timeout=lock_timeout)
    return _cluster(store, store, place)


def open_values(place: str) -> Store:
    """Open the small values of a cluster in etcd, which need not be there yet."""
    return _etcd_store(place)


def copy_cluster(cluster: LocalCluster, place: Path | str) -> None:
    """Make an independent cluster in a new state folder, or in an etcd, that goes on from what is
    committed in another one, as its :meth:`LocalCluster.fork` does. From folder to folder every
    file is copied as it is. Raises StorageError."""
    if is_in_etcd(place):
        _copy_to_etcd(cluster, os.fspath(place))
    elif cluster.worktree is not None:
        cluster.worktree.copy_to(os.fspath(place))
        _copy_rules(cluster, os.fspath(place))
    else:
        now = cluster.clock.now().timestamp()
        expiries = {resource: now + seconds for resource, seconds in VOLATILE.items()}
        shorten = cluster.client.with_short_managers
        for is_last in (False, False, True):
            try:
                copying.write_state(cluster.store.state(), os.fspath(place), expiries, shorten)
                _copy_rules(cluster, os.fspath(place))
                return
            except LostStateError:  # its revision was compacted while it was read
                if is_last:
                    raise


def _copy_rules(cluster: LocalCluster, place: str) -> None:
    """Copy the file of rules that the settings name into a new state folder."""
    rules = cluster.settings.kubelet.rules
    if rules is None or not rules.file:
        return
    path = os.path.join(place, rules.file)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(rules.text)


def _copy_to_etcd(cluster: LocalCluster, place: str) -> None:
    """Copy a cluster into an etcd, with the objects that a folder implies. The checkpoint of the
    controllers goes by the revisions of the copy from then on."""
    state = cluster.recorded_state()
    settings = {name: value for name, value in state.settings.items() if name != "formatVersion"}
    if settings.get("bootstrap") != FULL:
        settings = {**NEW_IN_ETCD, **settings, "bootstrap": FULL}
    rules = cluster.settings.kubelet.rules
    if rules is not None and rules.file:  # an etcd has no files
        settings["kubelet"] = {**settings["kubelet"], "rules": json.loads(rules.source)}
    store = _etcd_store(place)
    store.connect(lambda: cluster.clock.now().timestamp())
    store.write_whole(cluster.client.as_stored_whole)
    try:
        revision = etcd_copying.write_state(state, store, settings, cluster.implied_objects())
        checkpoints.move(store, state, revision)
    finally:
        state.close()
        store.close()


def restore_cluster(cluster: LocalCluster, other: LocalCluster) -> None:
    """Let a cluster in memory become what another one in memory is; the memory of the controllers,
    who must not work meanwhile, is that of the other one's. Whoever watches sees what changes.

    Raises LockTimeoutError, ValueError for a cluster that is not in memory.
    """
    store = cluster.store
    if not isinstance(store, memory.MemoryStore):
        raise ValueError("only a cluster in memory can become what another one is")
    state = other.store.state().in_full()
    cluster.client.take_over_time()  # so that going back to where it was is a change
    store.restore(state)
    checkpoints.move(store, state, store.revision)
    cluster.client.take_over_time()
    cluster.client.forget_custom_kinds()


def read_in_full(cluster: LocalCluster) -> None:
    """Read what a cluster in memory has not read yet of the folder or etcd that it was forked from,
    so that any thread may use it. Do nothing for a cluster that is not in memory.

    Raises LockTimeoutError.
    """
    if isinstance(cluster.store, memory.MemoryStore):
        cluster.store.read_in_full()


def new_memory_store(state: State) -> memory.MemoryStore:
    """Make a store in memory that goes on from the state of another store."""
    return memory.MemoryStore(state, volatile=VOLATILE)


def _initialize(place: Path | str, settings: Mapping[str, Any]) -> None:
    """Make an empty cluster."""
    settings = new_cluster_settings(settings)
    if not is_in_etcd(place):
        folder_stores.FolderStore.initialize(place, settings)
        return
    store = _etcd_store(place)
    try:
        store.initialize(settings if "bootstrap" in settings else {**NEW_IN_ETCD, **settings})
    finally:
        store.close()


def _cluster(store: Store, worktree: WorkTree | None = None, place: str = MEMORY) -> LocalCluster:
    return LocalCluster(
        store,
        new_memory_store,
        worktree,
        usage_source=lambda client: usage.known_usage(client),
        private_folder=lambda: _private_folder(place),
    )


def _private_folder(place: str) -> str:
    """Return the folder of what is this machine's own, "" for a cluster in memory. Raises
    FolderError."""
    if place == MEMORY:
        return ""
    try:
        return private_folder(place)
    except OSError as error:
        raise FolderError(f"{error.filename}: {error.strerror}") from error


def _open(place: Path | str, lock_timeout: float, opened: Store | None = None) -> LocalCluster:
    """Open a cluster that is there. Raises NoClusterError."""
    if not is_in_etcd(place):
        store = folder_stores.FolderStore(place, volatile=VOLATILE, lock_timeout=lock_timeout)
        return _cluster(store, store, os.fspath(place))
    etcd = _etcd_store(place) if opened is None else cast("EtcdStore", opened)
    try:
        if not etcd.has_settings():
            if not etcd.has_objects():
                raise NoClusterError(f"{etcd.address}: there is no cluster")
            etcd.assume(OF_A_CONTROL_PLANE)
        cluster = _cluster(etcd, place=os.fspath(place))
        etcd.write_whole(cluster.client.as_stored_whole)
        cluster.unread_values = etcd.unread_values
        return cluster
    except BaseException:
        etcd.close()
        raise


def _etcd_store(place: Path | str) -> EtcdStore:
    address = addresses.parse_address(os.fspath(place))
    return etcd_stores.EtcdStore(
        address,
        forms=storedforms,
        volatile=VOLATILE,
        order=writeorders.WriteOrder(_is_unordered, _is_record, _side),
    )


def _is_unordered(key: Key, obj: Object) -> bool:
    """Return whether an object may be written at the same time as others: what nobody goes by until
    the status of its owner, which comes later, counts it. The pods of a StatefulSet follow one
    another."""
    if key.resource != "pods":
        return key.resource == "events"
    owners = obj["metadata"].get("ownerReferences") or ()
    return all(owner.get("kind") != "StatefulSet" for owner in owners)


def _is_record(key: Key) -> bool:
    """Return whether an object is a record of what happened to others: a Job's status counts pods
    that are gone, or lose their finalizers after that."""
    return key.resource == "jobs.batch"


def _side(key: Key, obj: Object) -> str:
    """Return on which side an object is whose order does not matter otherwise. A pod goes because
    another one is ready, as a rolling update counts them, or for one that is made after it."""
    if key.resource != "pods":
        return ""
    return "going" if obj["metadata"].get("deletionTimestamp") else "staying"
