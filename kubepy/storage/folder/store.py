"""The store: snapshots, transactions, the change log."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from kubepy.storage.errors import FolderError, LockTimeoutError
from kubepy.storage.folder import index
from kubepy.storage.folder import settings as cluster_settings
from kubepy.storage.folder.access import Access
from kubepy.storage.folder.database import Row
from kubepy.storage.folder.files import Folder
from kubepy.storage.folder.manifest import Decoder
from kubepy.storage.folder.paths import is_folder_path
from kubepy.storage.folder.reader import Reader
from kubepy.storage.model import Admit, Change, Key, Object, Problem, Removal, Snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from kubepy.storage.folder.transaction import Transaction


Names = list[str]
Changes = list[Change]
Problems = list[Problem]


class Store:
    """An open state folder. Cheap to open; nothing is read before it is asked for.

    :param folder: the state folder.
    :param admit: see :data:`Admit`; None admits everything.
    :param removal: see :data:`Removal`; None: every object is gone with its file.
    :param volatile: resources that live in ``.kubepy/`` only, and for how many seconds (events: 3600).
    :param now: the cluster's time in seconds since the epoch, for ``volatile``.
    :param lock_timeout: seconds that a transaction waits for one other process to let go of the folder's lock.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        admit: Admit | None = None,
        removal: Removal | None = None,
        volatile: Mapping[str, float] | None = None,
        now: Callable[[], float] | None = None,
        lock_timeout: float = 30.0,
    ) -> None:
        self._volatile = dict(volatile or {})
        self._folder = Folder(os.fspath(folder), frozenset(self._volatile))
        self._now = now or time.time
        self._access = Access(self._folder, admit, removal, self._now)
        self._reader = Reader(self._access)
        self._lock_timeout = lock_timeout
        self._decoder = Decoder()
        self._meta_writes: dict[str, str | None] | None = None  # of the transaction under way
        self._is_unsynced = False

    @classmethod
    def initialize(cls, folder: Path | str, settings: Mapping[str, Any]) -> None:
        """Make an empty cluster: ``kubepy.yaml`` with the settings, ``.gitignore``.

        Raises FolderError if there is one, or the folder cannot be written.
        """
        root = os.fspath(folder)
        cluster_settings.initialize(root, settings)
        index.begin(root)

    def settings(self) -> Object:
        """What ``kubepy.yaml`` says. Raises NoClusterError, FolderError (with path and line)."""
        return self._access.run(self._access.settings)

    def close(self) -> None:
        """Let go of the folder; what was committed is made durable first. Raises FolderError."""
        try:
            self.sync()
        finally:
            self._access.close()

    def sync(self) -> None:
        """Make durable on its own what this store has committed: from then on the files are the truth, also after
        another start of the machine. Until then the index can restore it. Raises FolderError."""
        if self._is_unsynced:
            self._access.sync()
            self._is_unsynced = False

    def set_warn(self, warn: Callable[[str], None]) -> None:
        """Take a function for lines to the user: that a damaged index had to be rebuilt."""
        self._access.set_warn(warn)

    # --- reading ---

    def get(self, key: Key) -> Object | None:
        """Raises FolderError where the object's file cannot be one."""
        return self.find(key)[0]

    def find(self, key: Key) -> tuple[Object | None, Problem | None]:
        """The same with the problem of a file whose object counts as it last was."""
        return self._access.run(lambda: self._find(key))

    def _find(self, key: Key) -> tuple[Object | None, Problem | None]:
        look = self._reader.look_at(key)
        problem = look.problems[0] if look.problems else None
        if problem and not problem.keeps_object:
            raise FolderError(self._folder.absolute(str(problem)))
        row = look.rows.get(key)
        return (self._object(row) if row and self._is_alive(row) else None), problem

    def list(self, resource: str, namespace: str | None = None) -> Snapshot:
        return self._access.run(lambda: self._list(resource, namespace))

    def _list(self, resource: str, namespace: str | None) -> Snapshot:
        look = self._reader.look_for(resource, namespace)
        rows = (look.rows[key] for key in sorted(look.rows))
        return Snapshot(look.revision, [self._object(row) for row in rows if self._is_alive(row)], tuple(look.problems))

    def revision(self) -> int:
        return self._access.run(lambda: self._access.database().counter("revision"))

    def resources(self) -> Names:
        """The resources of which there are objects, sorted."""
        return self._access.run(
            lambda: sorted({row.resource for row in self._reader.look().rows.values() if self._is_alive(row)}))

    def namespaces(self) -> Names:
        """The namespaces in which there are objects with a file, sorted."""
        look = self._access.run(lambda: self._reader.look())
        return sorted({row.namespace for row in look.rows.values() if row.namespace and row.expires is None})

    def changes(self, since: int) -> Changes:
        """What changed after a revision, oldest first, edits from outside included; several changes of one object may
        have become one. Raises CompactedError if the log no longer reaches back that far: list again."""
        return self._access.run(lambda: self._changes(since))

    def _changes(self, since: int) -> Changes:
        from kubepy.storage.folder.changelog import read_changes

        self._reader.look()  # takes in edits from outside
        return read_changes(self._access.database(), since)

    def problems(self) -> Problems:
        """Every file that cannot be an object and every folder that cannot be read, by path (``kubepy fsck``)."""
        return self._access.run(self._problems)

    def _problems(self) -> Problems:
        from kubepy.storage.folder.strays import strays

        found = {one.path: one for one in [*strays(self._folder), *self._reader.look().problems]}
        return sorted(found.values())

    def describe(self, problem: Problem) -> str:
        """A problem with the whole path of its file, and what follows from it, as warnings have it."""
        consequence = "its objects count as they last were" if is_folder_path(problem.path) else "this file is left out"
        if problem.keeps_object:
            consequence = "the object counts as it last was"
        return f"{self._folder.absolute(str(problem))}: {consequence}"

    def check(self) -> Names:
        """Everything in which files, index, journal and change log disagree; empty when the folder is sound."""
        from kubepy.storage.folder.check import check, check_leftovers

        try:
            with self._access.locked(0):
                return [*check(self._access), *(f"{path}: is left over" for path in check_leftovers(self._folder))]
        except (LockTimeoutError, FolderError):  # somebody is writing, or nobody can
            return self._access.run(lambda: check(self._access))

    def repair(self) -> Names:
        """Put right what can be without guessing; returns what was done, a line each. Raises LockTimeoutError,
        FolderError."""
        from kubepy.storage.folder.repair import repair

        with self._access.locked(self._lock_timeout), self._access.errors():
            return list(repair(self._access))

    def _object(self, row: Row) -> Object:
        assert row.json is not None
        return self._decoder.object(row.key, row.json, row.revision)

    def _is_alive(self, row: Row) -> bool:
        return row.expires is None or row.expires > self._now()

    # --- writing ---

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Take the lock, take in edits from outside, run the block, commit. An exception in the block changes nothing.

        Raises LockTimeoutError, FolderError; ConflictError when a file was edited while the block ran.
        """
        from kubepy.storage.folder.transaction import Transaction

        if self._meta_writes is not None:
            raise RuntimeError("a transaction is under way in this store; transactions do not nest")
        with self._access.locked(self._lock_timeout):
            transaction = Transaction(self._access, self._decoder, self._volatile)
            self._meta_writes = {}
            try:
                yield transaction
                self._commit(transaction, self._meta_writes)
            finally:
                self._meta_writes = None

    def _commit(self, transaction: Transaction, meta: Mapping[str, str | None]) -> None:
        from kubepy.storage.folder.commit_files import Journal

        journal = Journal(self._folder, self._access.boot)

        def write() -> None:
            database = transaction.database()
            if not transaction.is_empty() and not journal.is_recorded:
                self._access.check_in_place(database)
                self._is_unsynced = True
                outcome = transaction.outcome(database.expired(self._now()))
                journal.commit(database, outcome, meta.items())
            elif meta or transaction.revision > database.counter("revision"):
                # Writes that came to nothing have had revisions, which somebody may have seen: no other may have them.
                with database.write():
                    database.set_counter("revision", max(transaction.revision, database.counter("revision")))
                    for name, value in meta.items():
                        database.set_value("meta", name, value)

        self._access.run(write)

    def meta(self, name: str) -> str | None:
        """A small value of this machine's own, kept in ``.kubepy/`` (where the id sequence stands, contexts)."""
        if self._meta_writes is not None and name in self._meta_writes:
            return self._meta_writes[name]
        return self._access.run(lambda: self._access.database().value("meta", name))

    def set_meta(self, name: str, value: str | None) -> None:
        """Inside a transaction of this store it is part of it; else it takes the lock for itself."""
        if self._meta_writes is not None:
            self._meta_writes[name] = value
        else:
            with self.transaction():
                self._meta_writes = {name: value}

    # --- other locks ---

    def hold(self, name: str) -> AbstractContextManager[Callable[[], bool]]:
        """Hold a lock of the folder that dies with this process (``manager.lock``) for the length of a block, which is
        given a function that tells whether the lock was lost: ``.kubepy/`` may be removed at any time.

        Raises LockTimeoutError, which says who holds it, at once; FolderError.
        """
        from kubepy.storage.folder.locks import hold

        self._access.database()
        index.make_own_folder(self._folder.root)
        return hold(self._access.own_path(name))

    def holder(self, name: str) -> str | None:
        """Who holds such a lock: ``process 4711 (kubepy controller --watch)``; None when nobody does."""
        from kubepy.storage.folder.locks import Lock

        return Lock(self._access.own_path(name)).holder()
