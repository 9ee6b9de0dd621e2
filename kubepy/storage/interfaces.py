"""The interfaces of a store and of its transactions, which every store implements.

Nothing imports this module at run time: it is for type checkers, and for whoever writes the next
store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from kubepy.storage.links import NewLinks, RecordedView
from kubepy.storage.memory import MemoryStore, StoreState
from kubepy.storage.model import (
    Admit,
    Change,
    CommittedChanges,
    Key,
    LoggedChanges,
    Object,
    Objects,
    ObjectStream,
    Problem,
    Removal,
    Snapshot,
)
from kubepy.storage.timeline import NewRecorder, TimelineEntry

Names = list[str]
Changes = list[Change]
Problems = list[Problem]
TimelineEntries = list[TimelineEntry]


class Store(Protocol):
    """Objects by key, with one counter of revisions for all of them and a log of their changes.

    Reading never waits for a writer. Objects that come out are shared: never change one. Everything
    here may raise FolderError where the store cannot be used.

    ``lock_timeout``: seconds that a transaction waits for one other process to let go of the lock;
    0 for not at all.
    """

    lock_timeout: float

    @property
    def folder(self) -> str:
        """The state folder that keeps the objects, "" where none does."""

    def connect(
        self,
        admit: Admit,
        removal: Removal,
        now: Callable[[], float],
        new_recorder: NewRecorder | None = None,
        links: NewLinks = tuple,
    ) -> None:
        """Take what the API server knows of objects that something else than it has written, the
        cluster's time in seconds since the epoch, a function for its timeline, and what objects are
        looked up by. Without a cluster, a store has the system's time and no timeline."""

    def set_warn(self, warn: Callable[[str], None]) -> None:
        """Take a function for lines to the user, such as that something damaged was made anew."""

    def fork(self) -> MemoryStore:
        """Return an independent store in memory with everything that is committed here, its
        revisions and change log included. It costs little: objects are shared, and read when they
        are asked for. Named locks are not held."""

    # --- settings ---

    def settings(self) -> Object:
        """Return the settings of the cluster, as they are now."""

    def set_settings(self, changes: Mapping[str, Any]) -> None:
        """Change settings (None removes one), as part of the transaction that is under way, else in
        one of its own."""

    # --- reading ---

    def get(self, key: Key) -> Object | None:
        """Return an object with its resourceVersion, None where there is none."""

    def find(self, key: Key) -> tuple[Object | None, Problem | None]:
        """Return an object, and the problem because of which it counts as it last was."""

    def list(self, resource: str, namespace: str | None = None) -> Snapshot:
        """Return the objects of a resource (in one namespace, or None: everywhere) as they were at
        one revision."""

    def stream(self, resource: str, namespace: str | None = None) -> ObjectStream:
        """Return the same objects one by one, for whoever does not need them all at once: in a
        tenth of the memory."""

    def revision(self) -> int:
        """Return the newest revision."""

    def resources(self) -> Names:
        """Return the resources of which there are objects, sorted."""

    def namespaces(self) -> Names:
        """Return the namespaces in which there are objects, sorted; events do not count."""

    def changes(
        self, since: int, *, reads: Iterable[Key] | None = None, looked_within: float = 0.0
    ) -> Changes:
        """Return what changed after a revision, oldest first; several changes of one object may
        have become one.

        :param reads: the objects that are to be read, where edits from outside of others may be
            left for later.
        :param looked_within: edits may be left for later where all were seen within so many
            seconds.

        Raises CompactedError if the log no longer reaches back that far: list again.
        """

    def recorded_state(self) -> StoreState:
        """Return everything at the newest revision, from which :meth:`logged_changes` goes on."""

    def view(self) -> RecordedView:
        """Return a view of what is recorded. It sees nothing before its ``refresh``."""

    def logged_changes(self, since: int, *, scan: bool) -> tuple[int, LoggedChanges]:
        """Return the newest revision, and what :meth:`changes` does with objects as text.

        :param scan: look for edits from outside as well; else only what is recorded counts, which
            costs next to nothing.
        """

    def timeline(self, *, since: int | None = None, after: int = 0) -> TimelineEntries:
        """Return the entries of the timeline that are kept, in the order of the writes.

        :param since: a time in microseconds; what comes before the last older entry, and that
            entry, is left out.
        :param after: leave out the writes up to this revision.
        """

    def refresh(
        self, resource: str, namespace: str | None = None
    ) -> tuple[int, tuple[Problem, ...]]:
        """Record edits from outside to objects of a resource (in one namespace, or None:
        everywhere).

        :return: the newest revision after that, and the files among them that cannot be objects.
        """

    def listen(self, listener: Callable[[CommittedChanges], None]) -> None:
        """Take a function that is called with what each transaction of this store has changed,
        before the next one of any process can begin."""

    def problems(self, *, look: bool = True) -> Problems:
        """Return everything that should be an object and cannot be one, by path.

        :param look: as it is now; else as this store has last seen it.
        """

    def watch_files(self) -> None:
        """Let something tell what is changed from outside, as long as the store is open, so that
        looks for that cost next to nothing. Only the cost differs."""

    def wait_for_change(self, seconds: float) -> bool:
        """Wait until something may have changed, at most so long; return False, at once, where
        nothing tells."""

    def is_quiet(self) -> bool:
        """Return whether it is known, at next to no cost, that nothing has changed here for a
        moment."""

    def describe(self, problem: Problem) -> str:
        """Return a problem and what follows from it, for a warning."""

    def check(self) -> Names:
        """Return everything in which the parts of the store disagree, a line each."""

    def repair(self) -> Names:
        """Repair what can be repaired safely, and return each repair as a line."""

    # --- writing ---

    def transaction(
        self, *, refresh: bool = False, looked_within: float = 0.0
    ) -> AbstractContextManager[Transaction]:
        """Run a block whose writes become visible together at its end; an exception in the block
        changes nothing.

        :param refresh: all edits from outside count from the beginning; else each from when its
            object is first read.
        :param looked_within: with ``refresh``, as for :meth:`changes`.

        Raises LockTimeoutError, and ConflictError when an object was changed past the lock while
        the block ran.
        """

    def sync(self) -> None:
        """Make durable what was committed."""

    def close(self) -> None:
        """Make durable what was committed, and let go of the store."""

    # --- this machine's own ---

    def meta(self, name: str) -> str | None:
        """Return a small value that is no object (the last id that was given)."""

    def set_meta(self, name: str, value: str | None, others: Mapping[str, str | None] = {}) -> None:
        """Set such a value, and ``others``, as part of the transaction that is under way, else in
        one of its own."""

    def hold(self, name: str) -> AbstractContextManager[Callable[[], bool]]:
        """Hold a named lock that dies with this process for the length of a block, which gets a
        function that returns whether the lock was lost. Raises LockTimeoutError at once."""

    def holder(self, name: str) -> str | None:
        """Return the process that holds a named lock, None when there is none."""


class Transaction(Protocol):
    """Changes that become visible together. Reads see the transaction's own writes.

    Objects that come out are shared: never change one. Objects that go in belong to the transaction
    from then on.
    """

    @property
    def revision(self) -> int:
        """The newest revision: the store's at the start, then that of each write."""

    def changes(self, since: int) -> Changes:
        """Return changes as :meth:`Store.changes` does, without the transaction's own writes."""

    def get(self, key: Key) -> Object | None:
        """Return an object, None where there is none."""

    def read_ahead(self, keys: Collection[Key]) -> None:
        """Read objects together that will be asked for one by one."""

    def list(self, resource: str, namespace: str | None = None) -> Objects:
        """Return all objects of a resource (in one namespace, or None: everywhere), in key
        order."""

    def create(self, key: Key, obj: Object, *, is_plain: bool = False) -> Object:
        """Store a new object; return it with its resourceVersion. Raises ExistsError, ValueError.

        :param is_plain: the object holds texts, integers, booleans, null, lists and dicts of them,
            and nothing else, so that its JSON can be made later.
        """

    def update(
        self, key: Key, obj: Object, *, expected: str | None = None, is_plain: bool = False
    ) -> Object:
        """Replace an object; with ``expected``, only if it has that resourceVersion.

        One that changes nothing writes nothing and returns what is there. Raises MissingError,
        ConflictError, ValueError. ``is_plain``: as :meth:`create`.
        """

    def remove_expired(self) -> None:
        """Remove all volatile objects that are over by now; a write removes a few of them."""

    def delete(self, key: Key, *, expected: str | None = None) -> Object:
        """Remove an object; return its last state. Raises MissingError, ConflictError."""
