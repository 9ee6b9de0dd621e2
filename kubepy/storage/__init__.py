"""Storage of objects: what every store takes, gives and raises, and the stores themselves.

A store knows nothing of kinds: it sees a :class:`Key` and a dict. A :class:`Store` reads snapshots and never waits; a
:class:`Transaction` changes many objects under a lock, and either all of them become visible or none.

    errors   what a store raises
    model    keys, snapshots, changes of the change log, files that cannot be objects
    folder/  the store in a folder of YAML files, one object a file; its map is in the package
    yaml/    YAML as kubectl reads and writes it, and edits of a text that keep its comments
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubepy.storage.errors import (
    CompactedError,
    ConflictError,
    EditError,
    ExistsError,
    FolderError,
    LockTimeoutError,
    MissingError,
    NoClusterError,
    StorageError,
)
from kubepy.storage.model import Change, Key, Problem, Snapshot

if TYPE_CHECKING:
    from kubepy.storage.folder.store import Store
    from kubepy.storage.folder.transaction import Transaction

__all__ = [
    "Change",
    "CompactedError",
    "ConflictError",
    "EditError",
    "ExistsError",
    "FolderError",
    "Key",
    "LockTimeoutError",
    "MissingError",
    "NoClusterError",
    "Problem",
    "Snapshot",
    "StorageError",
    "Store",
    "Transaction",
]


def __getattr__(name: str) -> Any:
    """Import a store when it is first asked for: a command that needs only keys and errors does not load SQLite."""
    if name == "Store":
        from kubepy.storage.folder.store import Store

        return Store
    if name == "Transaction":
        from kubepy.storage.folder.transaction import Transaction

        return Transaction
    raise AttributeError(name)
