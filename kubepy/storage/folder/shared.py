"""A state folder that several threads have open together, as those of a server do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kubepy.storage.folder import gitindex, snapshot
from kubepy.storage.folder.access import Access
from kubepy.storage.folder.reader import Reader
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.model import Admit, Removal

if TYPE_CHECKING:
    from kubepy.storage.indexes import NewIndexes
    from kubepy.storage.timeline import NewRecorder


class OfThread:
    """An attribute of a :class:`SharedFolderStore` that each thread has for itself."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, store: SharedFolderStore, owner: type | None = None) -> Any:
        return store.own_state()[self._name]

    def __set__(self, store: SharedFolderStore, value: Any) -> None:
        store.own_state()[self._name] = value


class SharedFolderStore(FolderStore):
    """An open state folder that is one for all threads: they share the objects that are decoded.

    Each thread has a connection to the index of its own, and a transaction: readers wait for
    nobody, and writers for each other by the lock of the folder, as processes do.
    """

    _access: Any = OfThread()
    _reader: Any = OfThread()
    _meta_writes: Any = OfThread()
    _settings_writes: Any = OfThread()
    _is_unsynced: Any = OfThread()
    lock_timeout: Any = OfThread()

    def __init__(self, folder: str, *, volatile: Mapping[str, float], lock_timeout: float) -> None:
        self._threads = threading.local()
        self._states: list[dict[str, Any]] = []  # of all threads
        self._on_open: list[Callable[[Access], None]] = []  # what every thread's access is told
        self._tell: Callable[[str], None] | None = None
        self._patience = lock_timeout
        self._enter({})  # what the next line sets
        super().__init__(folder, volatile=volatile, lock_timeout=lock_timeout)
        self._taken = snapshot.Snapshots(self._decoder)

    def own_state(self) -> dict[str, Any]:
        """Return the attributes that the running thread has for itself."""
        state: dict[str, Any] | None = getattr(self._threads, "state", None)
        if state is None:
            access = Access(self._folder, None, None, time.time)
            for tell in self._on_open:
                tell(access)
            if self._tell is not None:
                access.set_warn(self._tell)
            state = self._enter(
                {
                    "_access": access,
                    "_reader": Reader(access),
                    "_meta_writes": None,
                    "_settings_writes": {},
                    "_is_unsynced": False,
                    "lock_timeout": self._patience,
                }
            )

        return state

    def _enter(self, state: dict[str, Any]) -> dict[str, Any]:
        self._threads.state = state
        self._states.append(state)
        return state

    def connect(
        self,
        now: Callable[[], float],
        new_recorder: NewRecorder | None = None,
        indexes: NewIndexes = tuple,
    ) -> None:
        self._on_open.append(lambda access: access.connect(now, new_recorder, indexes))
        self._on_open[-1](self._access)

    def admit_edits(self, admit: Admit, removal: Removal) -> None:
        self._on_open.append(lambda access: access.admit_edits(admit, removal))
        self._on_open[-1](self._access)

    def set_warn(self, warn: Callable[[str], None]) -> None:
        self._tell = warn
        for state in self._states:
            state["_access"].set_warn(warn)

    def close(self) -> None:
        """Let go of the folder, when all threads are done with it. Raises FolderError."""
        states = [state for state in self._states if "_access" in state]
        try:
            for state in states:
                if state["_is_unsynced"]:
                    state["_access"].sync()
                    gitindex.compare_by_content(self.folder)
        finally:
            self._snapshots().close()
            for state in states:
                state["_access"].close()
                state["_access"].stop_watching()
