"""The folder that commands call home: whether this user has made it, and the files in its
``.kubepy/`` that are this machine's own (contexts, the keys of a server)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kubepy.lazy import lazy_imports
from kubepy.storage.folder.origin import (
    OWN,
    examine,
    is_own_content,
    trust,
    trust_in_this_process,
    write_content,
    write_private,
)

with lazy_imports():
    from kubepy.storage.folder import evidence, gitindex, index, locks

if TYPE_CHECKING:
    from kubepy.storage.folder.gitindex import Worktree
    from kubepy.storage.folder.locks import Lock

__all__ = [
    "OWN",
    "examine",
    "find_worktree",
    "has_modes",
    "is_own_content",
    "lock_of",
    "make_own_folder",
    "own_path",
    "trust",
    "trust_in_this_process",
    "write_content",
    "write_private",
]


def own_path(folder: str, name: str) -> str:
    """Return the path of a file in ``.kubepy/``."""
    return os.path.join(folder, OWN, name)


def make_own_folder(folder: str) -> None:
    """Make ``.kubepy/``, or make it private to its owner. Raises FolderError, also for one that is
    not this user's."""
    index.make_own_folder(folder)


def lock_of(folder: str, name: str) -> Lock:
    """Return a lock that dies with its process, by the name of its file in ``.kubepy/``."""
    return locks.Lock(own_path(folder, name))


def has_modes(path: str) -> bool:
    """Return whether the file system of a file has modes: if not, everything on it is for
    everybody."""
    return evidence.has_modes(path)


def find_worktree(folder: str) -> Worktree | None:
    """Return the working tree of git around a folder, None where there is none."""
    return gitindex.find_worktree(folder)
