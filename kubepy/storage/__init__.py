"""Storage of objects: what every store takes, gives and raises, and the stores themselves.

A store knows nothing of kinds: it sees a :class:`Key` and a dict. A ``Store`` reads snapshots and
never waits; a ``Transaction`` changes many objects under a lock, and either all of them become
visible or none; in etcd they become visible in their order.

    store       Store and Transaction: the protocol of every store
    worktree    WorkTree: what only a store of files has
    state       State: all that a store holds at one revision, as a value that never changes
    model       keys, snapshots, changes of the change log, files that cannot be objects
    errors      what a store raises
    transaction changes that are gathered until they are committed: the same in every store
    folder/     FolderStore, in a folder of YAML files, one object a file; its map is in the package
    memory      MemoryStore, which is gone with its process: empty, or a fork of another store
    etcd/       EtcdStore, in etcd, with the keys and values of a kube-apiserver
    timeline    what writes did to objects, as far back as it is kept
    view        what is recorded at the newest State, and goes on to the next
    indexes     objects by what is in them: a uid, an owner, a node
    sortedmap   the immutable maps that forks share
    frozen      objects that raise when they are changed, in tests and development mode
    manifests   what git's drivers and fsck know of paths and manifests
    homes       private files of a folder that commands call home
    yaml/       YAML as kubectl reads and writes it, and edits of a text that keep its comments
"""

from __future__ import annotations

from kubepy.storage.errors import (
    CompactedError,
    ConflictError,
    EditError,
    ExistsError,
    FolderError,
    LockTimeoutError,
    MissingError,
    NoClusterError,
    RemovedError,
    StorageError,
    is_disk_full,
)
from kubepy.storage.model import Change, ChangesSince, Key, ObjectStream, Problem, Snapshot

__all__ = [
    "Change",
    "ChangesSince",
    "CompactedError",
    "ConflictError",
    "EditError",
    "ExistsError",
    "FolderError",
    "Key",
    "LockTimeoutError",
    "MissingError",
    "NoClusterError",
    "ObjectStream",
    "Problem",
    "RemovedError",
    "Snapshot",
    "StorageError",
    "is_disk_full",
]
