"""Storage of objects: what every store takes, gives and raises, and the stores themselves.

A store knows nothing of kinds: it sees a :class:`Key` and a dict. A :class:`Store` reads snapshots and never waits; a
:class:`Transaction` changes many objects under a lock, and either all of them become visible or none.

    interfaces  Store and Transaction: the protocol of every store
    model       keys, snapshots, changes of the change log, files that cannot be objects
    errors      what a store raises
    folder/     FolderStore, in a folder of YAML files, one object a file; its map is in the package
    yaml/       YAML as kubectl reads and writes it, and edits of a text that keep its comments
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
    from kubepy.storage.interfaces import Store, Transaction

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
    """Import the interfaces when one is asked for: at run time nobody needs them."""
    if name not in ("Store", "Transaction"):
        raise AttributeError(name)
    from kubepy.storage import interfaces

    return getattr(interfaces, name)
