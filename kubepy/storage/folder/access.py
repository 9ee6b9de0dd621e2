"""Open a state folder and its index, with the lock or without, and keep the index up to date with
the files."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from kubepy.lazy import lazy_imports
from kubepy.storage.errors import FolderError, LockTimeoutError, RemovedIndexError, is_disk_full
from kubepy.storage.folder import index, origin, settings
from kubepy.storage.folder.compare import (
    UNFORESEEN,
    Examiner,
    digest_of,
    doubted_extents,
    has_hidden_folder,
)
from kubepy.storage.folder.database import (
    BUSY_SECONDS,
    DamagedError,
    Database,
    Row,
    Stamp,
    is_damage,
)
from kubepy.storage.folder.files import StateFolder, UnreadableError, is_racy
from kubepy.storage.folder.manifest import ContentError
from kubepy.storage.folder.paths import path_of
from kubepy.storage.folder.scan import EVERYTHING, Extents, without_overlaps
from kubepy.storage.model import Admit, Key, Object, Removal

with lazy_imports():
    from kubepy.storage.folder import (
        commit_files,
        locks,
        outside_edits,
        recovery,
        reserve,
        watching,
    )

if TYPE_CHECKING:
    from kubepy.storage.folder.outside_edits import OutsideEdits
    from kubepy.storage.folder.watching import FolderWatch
    from kubepy.storage.indexes import NewIndexes
    from kubepy.storage.timeline import NewRecorder, TimelineRecorder

T = TypeVar("T")
FileObject = tuple[
    Stamp | None, Object | None, bytes
]  # the stamp, unless it is racy; what is read; the digest

# Seconds that readers get to let go of SQLite's log, so that it can begin anew.
READERS_PATIENCE = 0.05

# The exceptions that reading garbage raises. A defect of ours raises them too, so the index is
# checked before it is blamed.
_UNEXPECTED = (
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    RecursionError,
)


class Access:
    """The folder and the open index of one process; the index is reopened or rebuilt when it is not
    usable.

    :param now: the cluster's time in seconds.
    """

    def __init__(
        self,
        folder: StateFolder,
        admit: Admit | None,
        removal: Removal | None,
        now: Callable[[], float],
    ) -> None:
        self.folder = folder
        self.boot = index.boot_id()
        self.now = now
        self.admit_edits(admit, removal)
        self.connect(now)
        self._database: Database | None = None
        self._settings: tuple[Stamp, Object, bool] | None = (
            None  # read at a stamp, which may be racy
        )
        self._unwritable: FolderError | None = None
        self._warn: Callable[[str], None] | None = None
        self._lock: locks.Lock | None = None  # the folder's, while this process has it
        self._reserve = reserve.Reserve(folder.root)
        self._newest = 1  # the newest revision of the indexes that were removed
        # the newest revision of the index that was removed last, until another one is in its place
        self._outlived = 0
        self._looked = (
            -math.inf
        )  # when it has recorded all edits last, on the clock of :func:`time.monotonic`
        self.watch: FolderWatch | None = None
        self._told: list[
            str
        ] = []  # the warnings of a damaged index, of a folder that others have made
        self._file_objects: dict[Key, FileObject] = {}
        self._damaged: tuple[int, int] | None = (
            None  # the file of an index that is not to be opened again
        )

    def connect(
        self,
        now: Callable[[], float],
        new_recorder: NewRecorder | None = None,
        indexes: NewIndexes = tuple,
    ) -> None:
        """Take the cluster's time, a function for its timeline, and what objects are found by."""
        self.indexes = indexes
        self.now = now
        self.recorder: Callable[[], TimelineRecorder | None] = new_recorder or (lambda: None)
        self.examiner = Examiner(self.folder, self._admit, self._removal, now)

    def admit_edits(self, admit: Admit | None, removal: Removal | None) -> None:
        """Take the functions of the API server for objects that something else than it has
        written."""
        self._admit, self._removal = admit, removal
        self.examiner = Examiner(self.folder, admit, removal, self.now)

    def own_path(self, name: str) -> str:
        """Return the whole path of a file in ``.kubepy/``."""
        return os.path.join(self.folder.root, index.OWN, name)

    def close(self) -> None:
        """Close the index."""
        if self._database is not None:
            self._close(self._database)
            self._database, self._looked = None, -math.inf
            if self.watch is not None:
                self.watch.doubt()

    def _close(self, database: Database) -> None:
        """Close an index. The last connection takes SQLite's log into it, and what becomes free
        belongs to the reserve."""
        if self._lock is not None or not self._reserve.was_used:
            database.close()
            return
        self._reserve.was_used = False
        lock = locks.Lock(self.own_path(locks.LOCK))
        try:
            is_held = lock.try_acquire(0)
        except FolderError:
            is_held = False

        try:
            if is_held and reserve.size_of(self.own_path(f"{index.INDEX}-wal")):
                self._reserve.give_part()
            database.close()
        finally:
            if is_held:
                self._reserve.is_in_use = True
                self._reserve.take_back()
                lock.drop()

    def sync(self) -> None:
        """Make what was committed durable; where the index was removed, all of the file system.
        Raises FolderError."""
        try:
            with self.errors():
                if self._database is not None and not self._database.is_replaced():
                    self._sync_written(self._database)
                elif os.path.isdir(self.folder.root):
                    self.folder.sync_all()
        except FolderError as error:
            raise FolderError(f"{error} ({commit_files.DONE_NEVERTHELESS})") from error

    def _sync_written(self, database: Database) -> None:
        """Sync the files that were written; with the reserve where there is no room to note it."""
        try:
            commit_files.sync_written(database, self.folder)
        except sqlite3.OperationalError as error:
            if not is_disk_full(error):
                raise
            with self.locked(index.LOCK_TIMEOUT, ()):
                self._reserve.give_part()
                commit_files.sync_written(self.opened(), self.folder)

    # --- opening ---

    def database(self) -> Database:
        """Return the index, in memory where nothing can be written. Raises NoClusterError,
        FolderError."""
        self._check_settings()
        if self._database is not None:
            was_only_locked_out = self._database.in_memory and self._unwritable is None
            if not was_only_locked_out and not self._database.is_replaced():
                return self._database
            self._let_go()

        self._database = self._open_existing()
        if self._database is None:
            self.try_catch_up()
        elif (
            self._goes_back(self._database)
            and not self.try_catch_up(())
            and self._unwritable is None
        ):
            self._database.close()
            self._database = None
            raise RemovedIndexError(
                f"{self.own_path('')} was removed, and another process works with a new one"
            )

        if self._database is None:
            self._database = index.open_in_memory(self.folder.root)
            self.record_outside_edits()
        return self._database

    def opened(self) -> Database:
        """Return the index that the holder of the lock works with."""
        assert self._database is not None
        return self._database

    def settings(self) -> Object:
        """Return what ``kubepy.yaml`` says. Raises NoClusterError, FolderError."""
        self._check_settings()
        assert self._settings is not None
        return self._settings[1]

    def settings_at(self, stamp: Stamp) -> Object | None:
        """Return what ``kubepy.yaml`` said when it had a stamp, None if it was not read then."""
        if self._settings is None or self._settings[0] != stamp or self._settings[2]:
            return None
        return self._settings[1]

    def _check_settings(self) -> None:
        """Read ``kubepy.yaml`` before anything else is touched: the folder may be of a newer
        version."""
        stamp = settings.check_cluster(self.folder)
        if self._settings is not None and self._settings[0] == stamp and not self._settings[2]:
            return
        if self._database is None:
            self._database = self._open_existing()
        read_ns = time.time_ns()
        try:
            with self.index_errors():
                values = self._read_settings(self._database, stamp, read_ns)
        except DamagedError:
            assert self._database is not None
            self._warn_of_damage()
            self._damaged = self._database.identity
            self.close()
            values = self._read_settings(None, stamp, read_ns)

        self._settings = stamp, values, is_racy(stamp, read_ns)

    def _read_settings(self, database: Database | None, stamp: Stamp, read_ns: int) -> Object:
        """Return the settings of the file, which had a stamp at ``read_ns``. Raises
        DamagedError."""
        if database is None:
            return settings.read(self.folder)[2]
        values = settings.cached(database, self.folder, stamp)
        if values is None:
            text, _, values = settings.read(self.folder)
            settings.remember(database, stamp, values, text, read_ns)
        return settings.with_recorded_changes(database, values)

    def _open_existing(self) -> Database | None:
        """Open the index if there is a usable one. Of damage the user is warned; the next process
        that may write makes the index anew."""
        self._examine_origin()
        try:
            database = index.open_existing(self.folder.root)
        except DamagedError:
            self._warn_of_damage()
            return None
        except index.StrangeIndexError as error:
            self.tell(f"{self.own_path(index.INDEX)} {error}: it is rebuilt from the files")
            return None
        except index.NoRoomError:
            if self._lock is not None:  # nothing is to be made anew then
                raise
            return None

        if database is not None and database.identity == self._damaged:
            database.close()
            return None
        return database

    def _examine_origin(self) -> None:
        """Put a ``.kubepy/`` aside that others have made."""
        if line := origin.examine(self.folder.root):
            self.tell(line)

    def _warn_of_damage(self) -> None:
        self.tell(f"{self.own_path(index.INDEX)} was damaged and is rebuilt from the files")

    def tell(self, line: str) -> None:
        """Warn the user of something, once."""
        if line in self._told:
            return
        self._told.append(line)
        if self._warn:
            self._warn(line)

    def warn(self, text: str) -> None:
        """Tell the user something, if somebody listens."""
        if self._warn:
            self._warn(text)

    # --- what an edited file is checked by ---

    def object_of_file(self, key: Key) -> Object | None:
        """Return an object as its file is at this moment, or as it last was if the file cannot be
        an object; None without either.

        The same object is returned as long as the file stays the same.
        """
        known = self._file_objects.get(key)
        if known is not None and known[0] == self.folder.stamp(path_of(key)):
            return known[1]
        try:
            data, stamp, racy = self.folder.read(path_of(key))
        except (FileNotFoundError, UnreadableError):
            return None

        digest = digest_of(data)
        obj: Object | None
        if known is None or known[2] != digest:
            row = self.opened().row(key)
            obj = json.loads(row.json) if row and row.json else None
            if obj is None or row is None or row.digest != digest:
                obj = self._parse(key, data, stamp) or obj
        else:
            obj = known[1]

        self._file_objects[key] = None if racy else stamp, obj, digest
        return obj

    def _parse(self, key: Key, data: bytes, stamp: Stamp) -> Object | None:
        """Return the object in the bytes of its file, None for what cannot be one."""
        try:
            return self.examiner.load(key, data, stamp)
        except (ContentError, ValueError, RecursionError, *UNFORESEEN):
            return None

    def recorded(self, resource: str) -> list[Row]:
        """Return the live rows of a resource, without a look at their files."""
        return [row for row in self.opened().rows(resource) if row.json is not None]

    def set_warn(self, warn: Callable[[str], None]) -> None:
        """Take the function that warns the user; it is called now for what has shown already."""
        self._warn = warn
        for line in self._told:
            warn(line)

    # --- catching up ---

    @contextmanager
    def locked(
        self, timeout: float, extents: Extents | Callable[[], Extents] = EVERYTHING
    ) -> Iterator[None]:
        """Hold the folder's lock, with every commit finished and every edit from outside in some
        extents recorded.

        ``timeout``: seconds that one other process may hold it, 0 for not at all. ``extents``: a
        function is called with the lock, and returns where there may be edits that are not
        recorded. Raises LockTimeoutError, FolderError.
        """
        lock = locks.Lock(self.own_path(locks.LOCK))
        with self.errors():
            self._check_settings()
            self._examine_origin()
            index.make_own_folder(self.folder.root)

        was_left = self._with_room(
            lambda: lock.acquire_in_turn(timeout) if timeout else lock.acquire(0)
        )
        self._lock = lock
        try:
            self._reserve.make()
            self._with_room(lambda: self._catch_up(was_left, extents))
            yield
        finally:
            self._lock = None
            if self._reserve.is_in_use:
                self._shorten_log()
            lock.release(self._reserve.take_back)

    def _catch_up(self, was_left: bool, extents: Extents | Callable[[], Extents]) -> None:
        """Finish commits and record edits, in an index that can be written. ``was_left``: the last
        holder of the lock died with it."""
        if self._database is not None and (
            self._database.in_memory or self._database.is_replaced()
        ):
            self._let_go()

        if self._database is None:
            self._database = self._open_existing()
        database = self._database or self._create()
        try:
            with self.index_errors():
                database.check_log()
                if self._goes_back(database):
                    self._go_beyond(database)
                self._recover(database, was_left, extents)
        except DamagedError:
            self._warn_of_damage()
            self._recover(self._create(), was_left)

    def _recover(
        self,
        database: Database,
        was_left: bool,
        extents: Extents | Callable[[], Extents] = EVERYTHING,
    ) -> None:
        settings.finish(
            database, self.folder
        )  # before the rows, by which the next process knows that there is work
        is_usual = not was_left and database.is_built() and self.is_same_boot(database)
        recovery.Recovery(database, self.folder, self.boot).run(unclean=was_left)
        if not is_usual or has_hidden_folder(
            database.problems()
        ):  # which may be within reach again
            extents = EVERYTHING

        is_all = callable(extents) or extents == EVERYTHING
        extents = extents() if callable(extents) else extents
        if extents and self.record_outside_edits(extents):
            recovery.Recovery(database, self.folder, self.boot).run(unclean=False)
        if is_all:
            self.note_look(is_recorded=True)

    def _let_go(self) -> None:
        """Close an index that was removed, or one in memory; those that come after it go on from
        its revisions."""
        with suppress(sqlite3.Error):
            newest = self.opened().counter("revision")
            self._newest = max(self._newest, newest)
            self._outlived = 0 if self.opened().in_memory else newest
        self.close()

    def _goes_back(self, database: Database) -> bool:
        """Return whether the index in the place of one that was removed has given revisions of that
        one again.

        It was made by a process that did not know the removed one, at a time that stands. Whoever
        goes on from a revision of the removed one would miss what changed meanwhile.
        """
        return self._outlived > 0 and database.counter("compacted") < self._outlived

    def _go_beyond(self, database: Database) -> None:
        """Let the change log begin after all revisions of the index that was removed: everybody
        lists again. For the holder of the lock."""
        with database.write():
            revision = max(self._outlived, database.counter("revision")) + 1
            database.set_counter("revision", revision)
            database.compact(revision)
        self._outlived = 0

    def _create(self) -> Database:
        """Make a new index. Others read it before the files are in it: its counter is never 0, the
        resource version that everything matches, and its first revisions are beyond those of the
        index before."""
        self.close()
        try:
            self._database = index.create(
                self.folder.root, max(self._newest, int(self.now() * 1000) - 1)
            )
        except FolderError as error:
            self._check_lock(error)
            raise
        return self._database

    def _check_lock(self, cause: Exception | None = None) -> None:
        """Raise RemovedIndexError where the lock of this process was removed: another one may have
        it now."""
        if self._lock and self._lock.is_lost():
            raise RemovedIndexError(
                f"{self.own_path('')} was removed while it was written to"
            ) from cause

    def record_outside_edits(self, extents: Extents = EVERYTHING) -> bool:
        """Record edits from outside in the index; return whether there are PENDING rows now.

        For the holder of the lock, or for an index in memory.
        """
        is_changed = self.outside_edits().record(
            extents, same_boot=self.is_same_boot(self.opened())
        )
        if extents == EVERYTHING:
            self.note_look(is_recorded=True)
        return is_changed

    def note_look(self, *, is_recorded: bool) -> None:
        """Note that all edits from outside are seen by now, and whether they are recorded."""
        self._looked = time.monotonic()
        if self.watch is not None and is_recorded:
            self.watch.confirm()

    def watch_files(self) -> None:
        """Let the system name the files that change from now on."""
        if self.watch is None:
            self.watch = watching.FolderWatch(self.folder)

    def stop_watching(self) -> None:
        """Let go of the watches."""
        if self.watch is not None:
            self.watch.close()
            self.watch = None

    def unseen(self) -> Extents:
        """Return where there may be edits from outside that are not recorded: where the watch names
        files; without one, and where the index may not have what was recorded, everywhere."""
        database = self.opened()
        if (
            self.watch is None
            or database.in_memory
            or not self.is_same_boot(database)
            or has_hidden_folder(database.problems())
        ):
            return EVERYTHING
        changed = self.watch.changed()
        if changed == EVERYTHING:
            return EVERYTHING
        return tuple(without_overlaps({*changed, *doubted_extents(database)}))

    def has_looked_within(self, seconds: float) -> bool:
        """Return whether all edits were seen not longer ago than so many seconds."""
        return time.monotonic() - self._looked < seconds

    def outside_edits(self) -> OutsideEdits:
        """Return what finds the edits from outside that the index does not have."""
        return outside_edits.OutsideEdits(self.opened(), self.examiner, self.now(), self.recorder())

    def try_catch_up(self, extents: Extents = EVERYTHING) -> bool:
        """Catch up in some extents, unless another process has the lock, or this process cannot
        write here; return whether it did."""
        if self._database is not None and self._database.in_memory:
            self.record_outside_edits(extents if self._database.is_built() else EVERYTHING)
            return True
        try:
            with self.locked(0, extents):
                return True
        except LockTimeoutError:
            return False
        except FolderError as error:
            self._unwritable = error
            return False

    def is_same_boot(self, database: Database) -> bool:
        """Return whether the machine was not started anew since the index was last recovered."""
        return database.value("internal", "boot") == (self.boot or "")

    def check_in_place(self, database: Database) -> None:
        """Refuse to commit to an index that was removed meanwhile. Raises RemovedIndexError."""
        settings.check_cluster(self.folder)
        self._check_lock()
        if database.is_replaced():
            raise RemovedIndexError(f"{self.own_path('')} was removed while it was written to")

    # --- errors ---

    def run(self, operation: Callable[[], T]) -> T:
        """Run a read, a second time with a new index where it turns out to be damaged. Raises
        FolderError."""
        try:
            with self.errors():
                return operation()
        except DamagedError:
            self.renew()
        with self.errors():
            return operation()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise the errors of SQLite and the system as FolderError, those of a damaged index as
        DamagedError."""
        try:
            with self.index_errors():
                yield
        except OSError as error:
            self._check_lock(error)
            raise FolderError(f"{error.filename or self.folder.root}: {error.strerror}") from error

    @contextmanager
    def index_errors(self) -> Iterator[None]:
        """Raise the errors of SQLite as FolderError, those of a damaged index as DamagedError."""
        try:
            yield
        except sqlite3.Error as error:
            self._check_lock(error)
            if is_damage(error):
                raise DamagedError(str(error)) from error
            raise FolderError(f"{self.own_path(index.INDEX)}: {error}") from error
        except _UNEXPECTED as error:
            if self._database is not None and any(index.find_damage(self._database)):
                raise DamagedError(str(error)) from error
            raise

    # --- room on the disk, for the holder of the lock ---

    def _with_room(self, operation: Callable[[], T]) -> T:
        """Run what comes before a commit, a second time with the reserve where the disk is full.
        Raises FolderError."""
        try:
            with self.errors():
                return operation()
        except FolderError as error:
            if not self.give_up_reserve(error):
                raise
        try:
            with self.errors():
                return operation()
        finally:
            self._reserve.take_back()

    def is_nearly_full(self) -> bool:
        """Return whether the disk is."""
        return self._reserve.is_low()

    def use_reserve(self) -> None:
        """Give a part of the reserve up for what is written next."""
        self._reserve.give_part()

    def is_using_reserve(self) -> bool:
        """Return whether a part of the reserve is given up."""
        return self._reserve.is_in_use

    def give_up_reserve(self, error: FolderError) -> bool:
        """Give the reserve up where an error has come of a full disk; return whether there is room
        now."""
        return is_disk_full(error) and self._reserve.give_up()

    def finish(self) -> None:
        """Settle what is committed."""
        settings.finish(self.opened(), self.folder)
        recovery.Recovery(self.opened(), self.folder, self.boot).run(unclean=False)

    def _shorten_log(self) -> None:
        """Take SQLite's log into the index, and give its room back, as far as nobody reads in it:
        on a disk that is nearly full it would grow to the last page."""
        if self._database is None or self._database.in_memory:
            return
        connection = self._database.connection
        connection.execute(f"PRAGMA busy_timeout = {READERS_PATIENCE * 1000:.0f}")
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")

    def rebuild(self) -> None:
        """Make the index anew from the files. For the holder of the lock. Raises FolderError."""
        with self.errors():
            self._recover(self._create(), was_left=True)

    def renew(self) -> None:
        """Make the damaged index anew from the files; in memory if another process has the lock."""
        self._warn_of_damage()
        if self._lock:
            self.rebuild()
            return
        self.close()
        lock = locks.Lock(self.own_path(locks.LOCK))
        try:
            lock.acquire(0)
        except (LockTimeoutError, FolderError):
            self._database = index.open_in_memory(self.folder.root, empty=True)
            self.record_outside_edits()
            return

        try:
            index.discard(self.folder.root)
        finally:
            lock.release()
