"""The store of a state folder: snapshots, transactions, the change log."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from math import inf
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from kubepy.lazy import lazy_imports
from kubepy.quoting import printable
from kubepy.storage.errors import FolderError, LockTimeoutError, is_disk_full
from kubepy.storage.folder import index
from kubepy.storage.folder import settings as cluster_settings
from kubepy.storage.folder.access import Access
from kubepy.storage.folder.compare import hides_folder
from kubepy.storage.folder.database import DamagedError, Row
from kubepy.storage.folder.files import StateFolder
from kubepy.storage.folder.manifest import Decoder
from kubepy.storage.folder.paths import path_of
from kubepy.storage.folder.reader import FolderView, Reader, read_changes
from kubepy.storage.model import (
    DELETED,
    VOLUME_PREFIX,
    Admit,
    ChangesSince,
    CommittedChanges,
    Key,
    Object,
    ObjectStream,
    Problem,
    Removal,
    Snapshot,
)

with lazy_imports():
    from kubepy.storage.folder import (
        commit_files,
        copying,
        fsck,
        gitindex,
        locks,
        misplaced,
        origin,
        snapshot,
        transaction,
        volumefiles,
    )

if TYPE_CHECKING:
    from pathlib import Path

    from kubepy.storage.folder.snapshot import Snapshots
    from kubepy.storage.folder.transaction import FolderTransaction
    from kubepy.storage.indexes import NewIndexes
    from kubepy.storage.state import State
    from kubepy.storage.timeline import NewRecorder

P = ParamSpec("P")
T = TypeVar("T")

Names = list[str]
Objects = list[Object]
RowList = list[Row]
Problems = list[Problem]


def _reads(
    method: Callable[Concatenate[FolderStore, P], T],
) -> Callable[Concatenate[FolderStore, P], T]:
    """Decorate a method that reads: an index that turns out to be damaged is rebuilt, and the
    method runs again."""

    @wraps(method)
    def run(self: FolderStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._access.run(lambda: method(self, *args, **kwargs))

    return run


class FolderStore:
    """An open state folder: a store and its work tree. Cheap to open: nothing is read before it is
    asked for.

    :param folder: the state folder.
    :param admit: see :data:`Admit`; None admits everything.
    :param removal: see :data:`Removal`; None: every object is gone with its file.
    :param volatile: resources that live in ``.kubepy/`` only, and for how many seconds (events:
        3600).
    :param now: the cluster's time in seconds since the epoch, for ``volatile``.
    :param lock_timeout: seconds that a transaction waits for one other process to let go of the
        folder's lock.
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
        self._folder = StateFolder(os.fspath(folder), frozenset(self._volatile))
        self._access = Access(self._folder, admit, removal, now or time.time)
        self._reader = Reader(self._access)
        self.lock_timeout = lock_timeout
        self._decoder = Decoder()
        self._meta_writes: dict[str, str | None] | None = None  # of the transaction under way
        self._settings_writes: Object = {}  # likewise
        self._is_unsynced = False
        self._taken: Snapshots | None = None  # None: nobody has asked for a state
        self._listener: Callable[[CommittedChanges], None] | None = None

    @classmethod
    def initialize(cls, folder: Path | str, settings: Mapping[str, Any]) -> None:
        """Make an empty cluster: ``kubepy.yaml`` with the settings, ``.gitignore``.

        Raises FolderError if there is one, or a part of one, or the folder cannot be written.
        """
        root = os.fspath(folder)
        cluster_settings.check_finished(root)
        cluster_settings.initialize(root, settings)
        index.begin(root)

    @property
    def folder(self) -> str:
        """The path of the state folder."""
        return self._folder.root

    def connect(
        self,
        now: Callable[[], float],
        new_recorder: NewRecorder | None = None,
        indexes: NewIndexes = tuple,
    ) -> None:
        """Take the cluster's time in seconds since the epoch, a function for its timeline, and what
        objects are found by."""
        self._access.connect(now, new_recorder, indexes)

    def admit_edits(self, admit: Admit, removal: Removal) -> None:
        """Take what the API server does with objects that something else than it has written."""
        self._access.admit_edits(admit, removal)

    @_reads
    def settings(self) -> Object:
        """Return what ``kubepy.yaml`` says. Raises NoClusterError, FolderError (with path and
        line)."""
        settings = {**self._access.settings(), **self._settings_writes}
        return {name: value for name, value in settings.items() if value is not None}

    def close(self) -> None:
        """Let go of the folder; what was committed is made durable first. Raises FolderError."""
        try:
            self.sync()
        finally:
            if self._taken is not None:
                self._taken.close()
            self._access.close()
            self._access.stop_watching()

    def sync(self) -> None:
        """Make durable on its own what this store has committed: from then on the files are the
        truth, also after another start of the machine. Until then the index can restore it. A git
        repository that keeps intent only learns of it too. Raises FolderError."""
        if self._is_unsynced:
            self._access.sync()
            self._is_unsynced = False
            gitindex.compare_by_content(self._folder.root)

    def set_warn(self, warn: Callable[[str], None]) -> None:
        """Take a function for lines to the user: a damaged index had to be rebuilt, others have
        made the folder."""
        self._access.set_warn(warn)

    def network_refusal(self) -> str:
        """Return why no webhook may be called from this folder, "" where they may; the user is told
        once."""
        if origin.may_use_network(self.folder):
            return ""
        self._access.tell(
            f"{printable(self.folder)} was not made by you on this machine: its webhooks are not "
            f"called "
            '("kubepy trust" allows it)'
        )
        return "kubepy calls no webhook of a state folder that was made elsewhere"

    @_reads
    def state(self) -> State:
        """Return all that is recorded. Objects are read from the index when they are asked for.
        Raises FolderError."""
        return self._snapshots().recorded(self._access)

    @_reads
    def newest_state(self) -> State:
        """Return all that is here now, edits from outside included, also those that cannot be
        recorded. Raises FolderError."""
        return self._snapshots().newest(self._access, self._reader, self.lock_timeout)

    def _snapshots(self) -> Snapshots:
        if self._taken is None:
            self._taken = snapshot.Snapshots(self._decoder)
        return self._taken

    def copy_to(self, folder: str) -> None:
        """Copy everything to a new state folder: the files as they are, and the index. Raises
        FolderError, LockTimeoutError."""
        if self._meta_writes is not None:
            raise RuntimeError("a transaction is under way in this store: nothing can be copied")
        self._access.run(lambda: copying.copy_folder(self._access, folder, self.lock_timeout))

    # --- what an edited file is checked by ---

    def object_of_file(self, key: Key) -> Object | None:
        """Return an object as its file is at this moment, or as it last was if the file cannot be
        an object; None without either."""
        return self._access.object_of_file(key)

    def recorded_resources(self) -> Names:
        """Return the resources of which the index has objects with files, sorted, without a look at
        files."""
        return [name for name in self._access.database().resources() if name not in self._volatile]

    def is_recorded(self, key: Key) -> bool:
        """Return whether the index has an object, or a problem with its file."""
        database = self._access.database()
        row = database.row(key)
        return (row is not None and row.json is not None) or path_of(key) in database.problems()

    def recorded(self, resource: str) -> Objects:
        """Return the objects of a resource as the index has them, without a look at their files."""
        return self._decoder.objects(self._access.recorded(resource), kept=False)

    def knows_files(self) -> bool:
        """Return whether the files were read before: not while an index is made anew."""
        return self._access.opened().is_built()

    def warn_of_file(self, key: Key, text: str) -> None:
        """Tell the user something about the file of an object."""
        self._access.warn(f"{self._folder.absolute(path_of(key))}: {text}")

    # --- reading ---

    def get(self, key: Key) -> Object | None:
        """Return an object, None where there is none. Raises FolderError where the object's file
        cannot be one."""
        return self.find(key)[0]

    @_reads
    def find(self, key: Key) -> tuple[Object | None, Problem | None]:
        """Return an object, and the problem of a file whose object counts as it last was.

        Raises FolderError where the object's file cannot be one.
        """
        view = self._reader.view_object(key)
        problem = view.problems[0] if view.problems else None
        if problem and not problem.keeps_object:
            raise FolderError(self._folder.absolute(str(problem)))
        row = view.rows.get(key)
        return (self._object(row) if row and self._is_alive(row) else None), problem

    @_reads
    def list(self, resource: str, namespace: str | None = None) -> Snapshot:
        """Return the objects of a resource (in one namespace, or None: everywhere)."""
        view = self._reader.view_list(resource, namespace)
        return Snapshot(
            view.revision, self._decoder.objects(self._alive_rows(view)), tuple(view.problems)
        )

    @_reads
    def stream(self, resource: str, namespace: str | None = None) -> ObjectStream:
        """Return the same objects one by one; as text they are in memory until it is their turn."""
        view = self._reader.view_list(resource, namespace)
        return ObjectStream(
            view.revision, self._decoded(self._alive_rows(view)), tuple(view.problems)
        )

    def _alive_rows(self, view: FolderView) -> RowList:
        """Return the rows of a view in key order, without objects whose time is over."""
        return [row for key in sorted(view.rows) if self._is_alive(row := view.rows[key])]

    def _decoded(self, rows: RowList) -> Iterator[Object]:
        """Decode rows; takes each from the list, so that its text does not outlive its object."""
        rows.reverse()
        while rows:
            row = rows.pop()
            try:
                yield self._decoder.passing(row)
            except DamagedError:
                self._access.renew()
                if (obj := self.get(row.key)) is not None:
                    yield obj

    @property
    def revision(self) -> int:
        """The newest revision that is recorded."""
        return self._recorded_revision()

    @_reads
    def _recorded_revision(self) -> int:
        return self._access.database().counter("revision")

    @_reads
    def namespaces(self) -> Names:
        """Return the namespaces in which there are objects with a file, sorted."""
        return sorted(
            {
                namespace
                for resource, namespace in self._places()
                if namespace and resource not in self._volatile
            }
        )

    def _places(self) -> set[tuple[str, str]]:
        """Return the resources and namespaces in which there are objects."""
        view, database = self._reader.view_all(), self._access.database()
        places = {
            place
            for place in database.places()
            if place not in view.places and database.has_objects(*place, self._access.now())
        }
        return places | {
            (row.resource, row.namespace) for row in view.rows.values() if self._is_alive(row)
        }

    @_reads
    def look(self, max_age: float = 0.0, *, keys: Iterable[Key] | None = None) -> None:
        """Record edits from outside, unless the last look of this store at all files is no older
        than so many seconds.

        :param keys: the objects that are to be read. Of the edits that changed a file in place
            only those of these objects are sure to be seen then, and the cost does not grow with
            the folder.
        """
        if keys is not None:
            self._reader.look_for(keys)
        elif not self._access.has_looked_within(max_age):
            self._reader.look_for_all()

    @_reads
    def changes(self, since: int) -> ChangesSince:
        """Return what changed after a revision, as it is recorded, oldest first; several changes of
        one object may have become one. Raises CompactedError if the log no longer reaches back that
        far: list again."""
        changes = read_changes(self._access.database(), since)
        self._decoder.forget(change.key for change in changes.changes if change.type == DELETED)
        return changes

    @_reads
    def look_in(
        self, resource: str, namespace: str | None = None
    ) -> tuple[int, tuple[Problem, ...]]:
        """Record edits from outside to objects of a resource; return the newest revision after
        that, and the files among them that cannot be objects."""
        problems = self._reader.view_summaries(resource, namespace).problems
        return self._access.database().counter("revision"), tuple(problems)

    def watch(self, listener: Callable[[CommittedChanges], None]) -> None:
        """Call a function with what each transaction of this store has changed, under the lock."""
        self._listener = listener

    @_reads
    def problems(self, max_age: float = 0.0) -> Problems:
        """Return every file that cannot be an object and every folder that cannot be read, by path.

        :param max_age: the age in seconds that the last look of this store may have (inf: any).
        """
        is_fresh = max_age == inf and self._reader.problems is not None
        if not is_fresh and not self._reader.look_watched():
            self._reader.view_all()
        named = cluster_settings.named_files(self._access.settings())
        problems = [*misplaced.beside_folders(self._folder, named), *(self._reader.problems or ())]
        return sorted({problem.path: problem for problem in problems}.values())

    @_reads
    def known_problems(self) -> Problems:
        """Return the problems that are recorded, each as its file is now, by path; without a look
        at other files."""
        database = self._access.database()
        problems = database.problems()
        if changed := [
            path for path, (stamp, _) in problems.items() if self._folder.stamp(path) != stamp
        ]:
            self._reader.look_at(changed)
            problems = self._access.database().problems()
        return [problem for _, problem in problems.values()]

    def other_files(self) -> tuple[Names, Names]:
        """Return the paths of files below the folders of objects that are neither an object's nor a
        problem of their own: those with the ending of a manifest, and all others."""
        known = {
            path_of(row.key)
            for row in self._access.database().row_summaries()
            if row.json is not None and row.expires is None
        }
        known.update(problem.path for problem in self.problems(inf))
        return misplaced.other_files(self._folder, known)

    def watch_files(self) -> None:
        """Let the operating system name the files that change, as long as this store is open: then
        a look for edits from outside looks at these alone. Where it cannot, a look is one at
        everything, as without."""
        self._access.watch_files()

    def wait_for_change(self, seconds: float) -> bool:
        """Wait until a file of the folder or its index changes, at most so long; return False, at
        once, where there is no watch that tells."""
        return self._access.watch is not None and self._access.watch.wait(seconds)

    def is_quiet(self) -> bool:
        """Return whether nothing at all has happened in the folder for a moment, as far as a watch
        can tell."""
        return self._access.watch is not None and self._access.watch.is_quiet()

    def describe(self, problem: Problem) -> str:
        """Return a problem with the whole path of its file, and what follows from it, as warnings
        have it."""
        consequence = "this file is left out"
        if hides_folder(problem):
            consequence = "its objects count as they last were"
        if problem.keeps_object:
            consequence = "the object counts as it last was"
        return f"{self._folder.absolute(str(problem))}: {consequence}"

    def check(self) -> Names:
        """Return everything in which files, index, journal and change log disagree, a line each."""
        try:
            with self._access.locked(0):
                defects = fsck.check(self._access)
                return [
                    *defects,
                    *(f"{path}: is left over" for path in fsck.leftovers(self._folder)),
                ]
        except (LockTimeoutError, FolderError):  # another process is writing, or none can
            return self._access.run(lambda: fsck.check(self._access))

    def repair(self) -> Names:
        """Repair what can be repaired safely, and return each repair as a line. Raises
        LockTimeoutError, FolderError."""
        with self._access.locked(self.lock_timeout), self._access.errors():
            return list(fsck.repair(self._access))

    def _object(self, row: Row) -> Object:
        assert row.json is not None
        return self._decoder.object(row.key, row.json, row.revision)

    def _is_alive(self, row: Row) -> bool:
        return row.expires is None or row.expires > self._access.now()

    # --- writing ---

    def transaction(self) -> AbstractContextManager[FolderTransaction]:
        """Take the lock, run the block, commit. An exception in the block changes nothing. Edits
        from outside count in what the block reads.

        Raises LockTimeoutError, FolderError; ConflictError when a file was edited while the block
        ran.
        """
        return self._transaction(is_refreshed=False)

    def fresh_transaction(self, max_age: float = 0.0) -> AbstractContextManager[FolderTransaction]:
        """Run a transaction that records all edits from outside first.

        :param max_age: where the last look of this store at all files is no older than so many
            seconds, edits since then wait for the next look. One of a file that the block writes is
            a conflict.
        """
        return self._transaction(
            is_refreshed=True, looks=not self._access.has_looked_within(max_age)
        )

    @contextmanager
    def _transaction(
        self, *, is_refreshed: bool, looks: bool = False
    ) -> Iterator[FolderTransaction]:
        if self._meta_writes is not None:
            raise RuntimeError("a transaction is under way in this store; transactions do not nest")
        with self._access.locked(self.lock_timeout, self._access.unseen if looks else ()):
            changes = transaction.FolderTransaction(
                self._access,
                self._decoder,
                self._volatile,
                self._access.now,
                is_refreshed=is_refreshed,
            )
            self._meta_writes = {}
            try:
                yield changes
                self._commit(changes, self._without_volumes(self._meta_writes))
            finally:
                self._meta_writes = None
                self._settings_writes = {}
                if self._access.is_using_reserve() and self._taken is not None:
                    self._taken.let_go()  # SQLite's log can begin anew then

    def _without_volumes(self, meta: Mapping[str, str | None]) -> Mapping[str, str | None]:
        """Return the values that go into the index, and write the others: the contents of volumes.
        These are on the disk before what tells of them is committed. Raises FolderError."""
        recorded = {}
        for name, value in meta.items():
            if name.startswith(VOLUME_PREFIX):
                volumefiles.write(self._folder, name, value)
            else:
                recorded[name] = value
        return recorded

    def _commit(self, changes: FolderTransaction, meta: Mapping[str, str | None]) -> None:
        journal = commit_files.Journal(self._folder, self._access.boot)

        def write() -> None:
            database = changes.database()
            if (self._settings_writes or not changes.is_empty()) and not journal.is_recorded:
                self._access.check_in_place(database)
                self._is_unsynced = True
                edit = (
                    cluster_settings.stage(self._folder, self._settings_writes)
                    if self._settings_writes
                    else None
                )
                journal.commit(database, changes.to_commit(meta, edit))
            elif meta or changes.revision > database.counter("revision"):
                # Writes that came to nothing have had revisions, which somebody may have seen: no
                # other may have them.
                with database.write():
                    changes.write_history(database)
                    database.set_counter(
                        "revision", max(changes.revision, database.counter("revision"))
                    )
                    for name, value in meta.items():
                        database.set_value("meta", name, value)

        if self._access.is_nearly_full() and changes.makes_room():
            self._access.use_reserve()
        try:
            self._access.run(write)
        except FolderError as error:
            if not is_disk_full(error) or not changes.makes_room():
                raise
            if not self._access.give_up_reserve(error):
                raise
            self._access.run(self._access.finish if journal.is_recorded else write)

        self._decoder.forget(change.key for change in changes.changed() if change.json is None)
        if self._listener is not None and not changes.is_empty():
            self._listener(changes.committed())

    @_reads
    def meta(self, name: str) -> str | None:
        """Return a small value of this machine's own, kept in ``.kubepy/`` (the last id that was
        given, contexts), or the content of a volume, kept in files. Raises FolderError."""
        if self._meta_writes is not None and name in self._meta_writes:
            return self._meta_writes[name]
        if name.startswith(VOLUME_PREFIX):
            return volumefiles.read(self._folder, name)
        return self._access.database().value("meta", name)

    def set_values(
        self, meta: Mapping[str, str | None] = {}, *, settings: Mapping[str, Any] = {}
    ) -> None:
        """Set such values, and settings in ``kubepy.yaml`` (None removes one), as part of this
        store's transaction that is under way, else in one of its own. Everything else in
        ``kubepy.yaml`` stays as it is. Raises as a transaction does."""
        if self._meta_writes is None:
            with self.transaction():
                self.set_values(meta, settings=settings)
        else:
            self._meta_writes.update(meta)
            self._settings_writes.update(settings)

    # --- other locks ---

    def hold(self, name: str) -> AbstractContextManager[Callable[[], bool]]:
        """Hold a lock of the folder that dies with this process (``manager.lock``) for the length
        of a block, which gets a function that returns whether the lock was lost: ``.kubepy/`` may
        be removed at any time.

        Raises LockTimeoutError, which names the holder, at once; FolderError.
        """
        self._access.database()
        index.make_own_folder(self._folder.root)
        return locks.hold(self._access.own_path(name))

    def holder(self, name: str) -> str | None:
        """Return the holder of such a lock: ``process 4711 (kubepy controller --watch)``; None when
        there is none."""
        return locks.Lock(self._access.own_path(name)).holder()
