"""Opening a state folder and bringing its index up to date, with the lock or without."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from kubepy.storage.errors import FolderError, LockTimeoutError
from kubepy.storage.folder import index, settings
from kubepy.storage.folder.database import DamagedError, Database, Stamp, is_damage
from kubepy.storage.folder.files import Folder
from kubepy.storage.model import Admit, Key, Object, Removal

T = TypeVar("T")

# What reading garbage raises. Any of them may be a defect as well, so the index is looked at before it is blamed.
_UNEXPECTED = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError, RecursionError)


class Access:
    """One process's way to a folder: the open index, found again or made anew whenever it is not what it was."""

    def __init__(self, folder: Folder, admit: Admit | None, removal: Removal | None, now: Callable[[], float]) -> None:
        self.folder = folder
        self.admit = admit
        self._removal = removal
        self.now = now
        self.boot = index.boot_id()
        self._database: Database | None = None
        self._settings: tuple[Stamp, Object] | None = None
        self._unwritable: FolderError | None = None
        self._warn: Callable[[str], None] | None = None
        self._is_locked = False
        self._damage = ""  # the warning of a damaged index
        self._damaged: tuple[int, int] | None = None  # the file of an index that is not to be opened again

    def own_path(self, name: str) -> str:
        return os.path.join(self.folder.root, index.OWN, name)

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def sync(self) -> None:
        """Make what was committed durable; all of the file system where the index is gone. Raises FolderError."""
        from kubepy.storage.folder.commit_files import DONE_NEVERTHELESS, sync_written

        try:
            with self.errors():
                if self._database is not None and not self._database.is_replaced():
                    sync_written(self._database, self.folder)
                elif os.path.isdir(self.folder.root):
                    self.folder.sync_all()
        except FolderError as error:
            raise FolderError(f"{error} ({DONE_NEVERTHELESS})") from error

    # --- opening ---

    def database(self) -> Database:
        """The index. Raises NoClusterError, FolderError."""
        self._check_settings()
        return self._current() or self._open()

    def opened(self) -> Database:
        """The index that the holder of the lock works with."""
        assert self._database is not None
        return self._database

    def settings(self) -> Object:
        self._check_settings()
        assert self._settings is not None
        return self._settings[1]

    def _check_settings(self) -> None:
        """Look at ``kubepy.yaml`` before anything else is touched: the folder may be of a newer version."""
        stamp = settings.check_cluster(self.folder)
        if self._settings is None or self._settings[0] != stamp:
            if self._database is None:
                self._database = self._open_existing()
            self._settings = stamp, self._read_settings(stamp)

    def _read_settings(self, stamp: Stamp) -> Object:
        found = self._cached_settings(stamp)
        if found is None:
            read_ns = time.time_ns()
            found = settings.read(self.folder)
            if self._database:
                settings.remember(self._database, stamp, found, read_ns)
        return found

    def _cached_settings(self, stamp: Stamp) -> Object | None:
        if self._database is None:
            return None
        try:
            with self.index_errors():
                return settings.cached(self._database, stamp)
        except DamagedError:
            self._tell_of_damage()
            self._damaged = self._database.identity
            self.close()
            return None

    def _current(self) -> Database | None:
        """The index that is open, if it still is the folder's."""
        if self._database is None:
            return None
        was_only_locked_out = self._database.in_memory and self._unwritable is None
        if was_only_locked_out or self._database.is_replaced():
            self.close()
        return self._database

    def _open(self) -> Database:
        self._database = self._open_existing()
        if self._database is None:
            self.try_catch_up()
        if self._database is None:
            self._database = index.open_in_memory(self.folder.root)
            self.take_in()
        return self._database

    def _open_existing(self) -> Database | None:
        """The index if there is a usable one; damage is told, and the next who may write makes it anew."""
        try:
            database = index.open_existing(self.folder.root)
        except DamagedError:
            self._tell_of_damage()
            return None
        if database is not None and database.identity == self._damaged:
            database.close()
            return None
        return database

    def _tell_of_damage(self) -> None:
        if not self._damage:
            self._damage = f"{self.own_path(index.INDEX)} was damaged and is rebuilt from the files"
            if self._warn:
                self._warn(self._damage)

    def set_warn(self, warn: Callable[[str], None]) -> None:
        """Take what tells the user; damage that has shown already is told now."""
        self._warn = warn
        if self._damage:
            warn(self._damage)

    # --- catching up ---

    @contextmanager
    def locked(self, timeout: float) -> Iterator[None]:
        """Hold the folder's lock, with all that was left finished and all edits from outside taken in. ``timeout``: how
        long one other process may hold it, 0 for not at all.

        Raises LockTimeoutError, FolderError.
        """
        from kubepy.storage.folder.locks import LOCK, Lock

        lock = Lock(self.own_path(LOCK))
        with self.errors():
            self._check_settings()
            index.make_own_folder(self.folder.root)
            was_left = lock.acquire_in_turn(timeout) if timeout else lock.acquire(0)
        self._is_locked = True
        try:
            with self.errors():
                self._caught_up(was_left)
            yield
        finally:
            self._is_locked = False
            lock.release()

    def _caught_up(self, was_left: bool) -> None:
        database = self._open_for_writing()
        try:
            with self.index_errors():
                database.check_log()
                self._recover(database, was_left)
        except DamagedError:
            self._tell_of_damage()
            self._recover(self._create(), was_left)

    def _recover(self, database: Database, was_left: bool) -> None:
        from kubepy.storage.folder.recovery import Recovery

        Recovery(database, self.folder, self.boot).run(unclean=was_left)
        if self.take_in():
            Recovery(database, self.folder, self.boot).run(unclean=False)

    def _open_for_writing(self) -> Database:
        if self._database is not None and (self._database.in_memory or self._database.is_replaced()):
            self.close()
        if self._database is None:
            self._database = self._open_existing()
        return self._database or self._create()

    def _create(self) -> Database:
        self.close()
        self._database = index.create(self.folder.root)
        return self._database

    def take_in(self) -> bool:
        """Take in edits from outside; for the holder of the lock, or for an index in memory. Returns whether there are
        PENDING rows now."""
        from kubepy.storage.folder.outside_edits import Intake

        assert self._database is not None
        same_boot = self.is_same_boot(self._database)
        intake = Intake(self._database, self.folder, self.admit, self.retain, self.now())
        return intake.run(same_boot=same_boot)

    def retain(self, key: Key, obj: Object) -> Object | None:
        """The rest of an object whose file was removed while there are files in the namespace of its name."""
        return self._removal(key, obj, self.now()) if self._removal else None

    def try_catch_up(self) -> bool:
        """Catch up unless somebody else has the lock, or this process cannot write here."""
        if self._database is not None and self._database.in_memory:
            self.take_in()
            return True
        try:
            with self.locked(0):
                return True
        except LockTimeoutError:
            return False
        except FolderError as error:
            self._unwritable = error
            return False

    def is_same_boot(self, database: Database) -> bool:
        return database.value("internal", "boot") == (self.boot or "")

    def check_in_place(self, database: Database) -> None:
        """Refuse to commit to an index that was removed meanwhile. Raises FolderError."""
        settings.check_cluster(self.folder)
        if database.is_replaced():
            raise FolderError(f"{self.own_path('')} was removed while it was written to")

    # --- errors ---

    def run(self, operation: Callable[[], T]) -> T:
        """Run a read, a second time with a new index where it turns out to be damaged. Raises FolderError."""
        try:
            with self.errors():
                return operation()
        except DamagedError:
            self.renew()
        with self.errors():
            return operation()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """What SQLite and the system say, as FolderError; damage to the index as DamagedError."""
        try:
            with self.index_errors():
                yield
        except OSError as error:
            raise FolderError(f"{error.filename or self.folder.root}: {error.strerror}") from error

    @contextmanager
    def index_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if is_damage(error):
                raise DamagedError(str(error)) from error
            raise FolderError(f"{self.own_path(index.INDEX)}: {error}") from error
        except _UNEXPECTED as error:
            if self._is_index_damaged():
                raise DamagedError(str(error)) from error
            raise

    def _is_index_damaged(self) -> bool:
        from kubepy.storage.folder.check import damages

        return self._database is not None and any(damages(self._database))

    def rebuild(self) -> None:
        """Make the index anew from the files. For the holder of the lock. Raises FolderError."""
        with self.errors():
            self._recover(self._create(), was_left=True)

    def renew(self) -> None:
        """Make the damaged index anew from the files; in memory if another process has the lock."""
        from kubepy.storage.folder.locks import LOCK, Lock

        self._tell_of_damage()
        if self._is_locked:
            self.rebuild()
            return
        self.close()
        lock = Lock(self.own_path(LOCK))
        try:
            lock.acquire(0)
        except (LockTimeoutError, FolderError):
            self._database = index.open_in_memory(self.folder.root, empty=True)
            self.take_in()
            return
        try:
            index.discard(self.folder.root)
        finally:
            lock.release()
