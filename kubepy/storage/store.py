"""The protocol of a store and of its transactions.

Nothing imports this module at run time: it is for type checkers, and for whoever writes the next
store. The contract is tested over every store in ``tests/storage/test_contract.py``. What only a
store of files has is in ``kubepy.storage.worktree``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from kubepy.storage.indexes import NewIndexes
from kubepy.storage.model import (
    ChangesSince,
    CommittedChanges,
    Key,
    Object,
    ObjectStream,
    Snapshot,
)
from kubepy.storage.state import State
from kubepy.storage.timeline import NewRecorder


class Reads(Protocol):
    """Reading, as a store and a transaction do it. Objects that come out are shared: never change
    one."""

    @property
    def revision(self) -> int:
        """The newest revision."""

    def get(self, key: Key) -> Object | None:
        """Return an object with its resourceVersion, None where there is none."""

    def list(self, resource: str, namespace: str | None = None) -> Snapshot:
        """Return the objects of a resource (in one namespace, or None: everywhere) in key order, as
        they were at one revision."""


class Store(Reads, Protocol):
    """Objects by key, with one counter of revisions for all of them and a log of their changes.

    Reading never waits for a writer of another process. Threads share a store only where it says
    that they may. Everything here may raise StorageError where the store cannot be used.

    :ivar lock_timeout: seconds that a transaction waits for one other writer; 0 for not at all.
    """

    lock_timeout: float

    def connect(
        self,
        now: Callable[[], float],
        new_recorder: NewRecorder | None = None,
        indexes: NewIndexes = tuple,
    ) -> None:
        """Take the cluster's time in seconds since the epoch, a function for its timeline, and what
        objects are found by: the indexes of the states of this store. Without a cluster, a store
        has the system's time and no timeline."""

    def stream(self, resource: str, namespace: str | None = None) -> ObjectStream:
        """Return what :meth:`list` does one by one, for whoever does not need all objects at once:
        in a tenth of the memory."""

    def changes(self, since: int) -> ChangesSince:
        """Return the changes that lead from a revision to a later one: the newest, or one before
        it where the log is given in parts (:func:`in_full` puts them together). The next call goes
        on from there.

        Raises CompactedError if the log no longer reaches back that far: list again.
        """

    def watch(self, listener: Callable[[CommittedChanges], None]) -> None:
        """Call a function, in place of the one before, with what each commit of this store has
        changed, before the next one can begin. The function hears of no other process, nor of a
        commit that changed no object. It may miss commits: each tells the revision
        before it, and :meth:`changes` has those between."""

    def wait_for_change(self, seconds: float) -> bool:
        """Wait until somebody else may have changed something, at most so long; return False, at
        once, where nothing tells."""

    def state(self) -> State:
        """Return everything at the newest revision, from which :meth:`changes` goes on. It costs
        little: objects are shared, or read when they are asked for. Whoever gets a state closes it;
        it may be lost as soon as the store is closed."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Run a block whose writes are committed at its end; an exception in the block changes
        nothing.

        Raises LockTimeoutError; ConflictError when an object was changed by somebody else while the
        block ran; RuntimeError for a transaction within another one: they do not nest.
        """

    def settings(self) -> Object:
        """Return the settings of the cluster, as they are now; ``formatVersion`` is always there.
        Within a transaction these and :meth:`meta` are those that it has set."""

    def meta(self, name: str) -> str | None:
        """Return a small value that is no object: the position of the controllers, the last id that
        was given."""

    def set_values(
        self, meta: Mapping[str, str | None] = {}, *, settings: Mapping[str, Any] = {}
    ) -> None:
        """Set small values and settings (None removes one), as part of the transaction that is
        under way, else in one of its own. A store that commits one object after the other commits
        values with an object that is written after them, and the last ones at the end."""

    def hold(self, name: str) -> AbstractContextManager[Callable[[], bool]]:
        """Hold a named lease that dies with this process for the length of a block, which gets a
        function that returns whether the lease was lost. It is given back however the block ends.
        Raises LockTimeoutError at once, which names the lease and the process that holds it."""

    def holder(self, name: str) -> str | None:
        """Return the process that holds a named lease, None when there is none."""

    def sync(self) -> None:
        """Make durable what was committed."""

    def close(self) -> None:
        """Make durable what was committed, and let go of the store."""


class Transaction(Reads, Protocol):
    """Changes that become visible together, where a store can do that, else in their order. Reads
    see the transaction's own writes.

    Objects that go in belong to the transaction from then on. Objects that were written have their
    resourceVersions after the block: it is the commit that makes them known. Within the block they
    have versions that tell one write from another, and that ``expected`` compares. The ``revision``
    is the newest when the block began, and after its end the one that the commit has led to.

    :ivar foresees_revision: the commit leads to no earlier revision than the block expects, so that
        no write of somebody else, which the block has not seen, may have that one.
    """

    foresees_revision: bool

    def read_ahead(self, keys: Collection[Key]) -> None:
        """Read objects together that will be asked for one by one."""

    def create(self, key: Key, obj: Object, *, is_plain: bool = False) -> Object:
        """Store a new object; return it. Raises ExistsError, ValueError.

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

    def delete(self, key: Key, *, expected: str | None = None) -> Object:
        """Remove an object; return its last state. Raises MissingError, ConflictError."""

    def remove_expired(self) -> None:
        """Remove all volatile objects that are over by now; a write removes a few of them."""
