"""Where a cluster is kept: a folder of YAML files, one object a file, and a SQLite database beside them.

The files are the truth; ``.kubepy/index.db`` is this machine's own (parsed objects, resource versions, the journal,
the change log, events) and is rebuilt from the files when it is gone. A :class:`Store` reads snapshots and never waits;
a :class:`Transaction` changes many objects under the folder's lock, and either all of them become visible or none.
Storage knows nothing of kinds: a :class:`Key` and a dict is all it sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubepy.storage.errors import (
    CompactedError,
    ConflictError,
    ExistsError,
    FolderError,
    LockTimeoutError,
    MissingError,
    NoClusterError,
    StorageError,
)
from kubepy.storage.keys import Key
from kubepy.storage.model import Change, EditError, Problem, Snapshot
from kubepy.storage.store import Store

if TYPE_CHECKING:
    from kubepy.storage.transaction import Transaction

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
    if name != "Transaction":
        raise AttributeError(name)
    from kubepy.storage.transaction import Transaction  # readers do not need what writing takes

    return Transaction
