"""The store: snapshots, transactions, the change log. (Contract; storage's author fills it in.)"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from kubepy.storage.keys import Key

Object = dict[str, Any]
# Looks at an object read from a file that another program wrote: returns it complete, raises ValueError if the file
# cannot hold it (a kind that is not its folder's). A pure function of (key, object, file mtime in seconds).
Admit = Callable[[Key, Object, float], Object]


class Snapshot(NamedTuple):
    """Objects in key order as they were at one revision; each carries ``metadata.resourceVersion``."""

    revision: int
    objects: list[Object]


class Change(NamedTuple):
    """One entry of the change log. ``object`` is the state after it, or for DELETED the last state."""

    revision: int
    type: str  # ADDED, MODIFIED, DELETED
    key: Key
    object: Object


class Problem(NamedTuple):
    """A file in the folder that cannot be an object: its path relative to the folder, a line (0: none), and why."""

    path: str
    line: int
    why: str


class Transaction:
    """Changes that become visible together. Reads see the transaction's own writes.

    Objects that come out are shared: never change one. Objects that go in belong to the transaction from then on.
    """

    @property
    def revision(self) -> int:
        """The newest revision: the store's at the start, then that of each write."""
        raise NotImplementedError

    def get(self, key: Key) -> Object | None:
        raise NotImplementedError

    def list(self, resource: str, namespace: str | None = None) -> list[Object]:
        """All objects of a resource (in one namespace, or None: everywhere), in key order."""
        raise NotImplementedError

    def create(self, key: Key, obj: Object) -> Object:
        """Store a new object; returns it with its resourceVersion. Raises ExistsError."""
        raise NotImplementedError

    def update(self, key: Key, obj: Object, *, expected: str | None = None) -> Object:
        """Replace an object; with ``expected``, only if it has that resourceVersion.

        One that changes nothing writes nothing and returns what is there. Raises MissingError, ConflictError.
        """
        raise NotImplementedError

    def delete(self, key: Key, *, expected: str | None = None) -> Object:
        """Remove an object; returns its last state. Raises MissingError, ConflictError."""
        raise NotImplementedError


class Store:
    """An open state folder. Cheap to open; nothing is read before it is asked for.

    :param folder: the state folder.
    :param admit: see :data:`Admit`; None admits everything.
    :param volatile: resources that live in ``.kubepy/`` only, and for how many seconds (events: 3600).
    :param now: the cluster's time in seconds since the epoch, for ``volatile``.
    :param lock_timeout: seconds that a transaction waits for the folder's lock.
    """

    def __init__(
        self,
        folder: Path,
        *,
        admit: Admit | None = None,
        volatile: Mapping[str, float] | None = None,
        now: Callable[[], float] | None = None,
        lock_timeout: float = 30.0,
    ) -> None:
        raise NotImplementedError

    @classmethod
    def initialize(cls, folder: Path, settings: Mapping[str, Any]) -> None:
        """Make an empty cluster: ``kubepy.yaml`` with the settings, ``.gitignore``. Raises FolderError if one exists."""
        raise NotImplementedError

    def settings(self) -> Object:
        """What ``kubepy.yaml`` says. Raises NoClusterError, FolderError (with path and line)."""
        raise NotImplementedError

    def get(self, key: Key) -> Object | None:
        raise NotImplementedError

    def list(self, resource: str, namespace: str | None = None) -> Snapshot:
        raise NotImplementedError

    def revision(self) -> int:
        raise NotImplementedError

    def resources(self) -> list[str]:
        """The resources of which there are objects, sorted."""
        raise NotImplementedError

    def changes(self, since: int) -> list[Change]:
        """What changed after a revision, oldest first, edits from outside included; several changes of one object may
        have become one. Raises CompactedError if the log no longer reaches back that far: list again."""
        raise NotImplementedError

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Take the lock, take in edits from outside, run the block, commit. An exception in the block changes nothing.

        Raises LockTimeoutError, FolderError.
        """
        raise NotImplementedError
        yield

    def meta(self, name: str) -> str | None:
        """A small value of this machine's own, kept in ``.kubepy/`` (where the id sequence stands, contexts)."""
        raise NotImplementedError

    def set_meta(self, name: str, value: str | None) -> None:
        raise NotImplementedError

    def problems(self) -> list[Problem]:
        """Every file in the folder that cannot be an object, by path (``kubepy fsck``)."""
        raise NotImplementedError

    def check(self) -> list[str]:
        """Everything in which files, index, journal and change log disagree; empty when the folder is sound."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError
