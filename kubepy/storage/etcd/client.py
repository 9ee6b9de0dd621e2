"""etcd's API, version 3, as the store needs it.

A Client has one connection, which all threads share and on which any number of requests are under
way at the same time. It connects with the first request. Where the connection ends, reads go on at
the next endpoint by themselves; a write whose answer is lost is an UncertainError.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from kubepy.storage.etcd.address import Address

PAGE = 500


class KeyValue(NamedTuple):
    """A key and what etcd knows of it. ``lease`` is 0 for none."""

    key: bytes
    value: bytes
    create_revision: int
    mod_revision: int
    version: int
    lease: int


class RangeResult(NamedTuple):
    """What a range has found. ``revision``: of the store when it was read. ``count``: of all keys
    of the range, also of those past the limit; ``more``: there are some."""

    revision: int
    kvs: list[KeyValue]
    count: int
    more: bool


class Compare(NamedTuple):
    """A condition: a key's target is as the value says. ``mod_revision`` 0 is: no such key."""

    key: bytes
    value: int | bytes
    target: str = "mod_revision"  # create_revision, mod_revision, version, lease, value
    result: str = "="  # = != < >


class Put(NamedTuple):
    key: bytes
    value: bytes
    lease: int = 0
    prev_kv: bool = False


class Delete(NamedTuple):
    """Removal of a key, or with ``end`` of all from ``key`` up to it."""

    key: bytes
    end: bytes = b""
    prev_kv: bool = False


class Get(NamedTuple):
    """Reading of a key, or with ``end`` of all from ``key`` up to it."""

    key: bytes
    end: bytes = b""
    revision: int = 0
    limit: int = 0
    keys_only: bool = False
    count_only: bool = False


class PutResult(NamedTuple):
    prev_kv: KeyValue | None


class DeleteResult(NamedTuple):
    deleted: int
    prev_kvs: list[KeyValue]


Operation = Put | Delete | Get
OperationResult = PutResult | DeleteResult | RangeResult


class TxnResult(NamedTuple):
    """``revision``: of the store after the transaction: the mod_revision of all that it has
    written, if it has written anything."""

    revision: int
    succeeded: bool
    responses: list[OperationResult]


class Event(NamedTuple):
    """``kv`` of a deletion has only key and mod_revision."""

    is_delete: bool
    kv: KeyValue
    prev_kv: KeyValue | None


class WatchBatch(NamedTuple):
    """Events in the order of their revisions; all those of one revision are in one batch, unless
    ``is_fragment``: then its last revision goes on in the next batch. A batch without events tells
    that everything up to ``revision`` has been delivered."""

    revision: int
    events: list[Event]
    is_fragment: bool


class LeaseState(NamedTuple):
    """``ttl``: seconds that are left, -1 for a lease that is over."""

    id: int
    ttl: int
    granted_ttl: int


class Status(NamedTuple):
    """``version``: of the server, "3.4.23"; ``size``: of its database in bytes."""

    version: str
    size: int
    leader: int
    revision: int
    member: int


class Pending(Protocol):
    """A transaction that is under way."""

    def result(self, timeout: float | None = None) -> TxnResult:
        """Wait for the answer. Raises as :meth:`Client.txn` does."""


class Watch(Protocol):
    """Events of a range, from a revision on.

    A connection that ends is made anew, and the watch goes on after the last event that it has
    given: nothing is lost or given twice. Raises, for good: EtcdCompactedError; UnreachableError
    when no endpoint answers for as long as the client's timeout.
    """

    def next_batch(self, timeout: float | None = None) -> WatchBatch | None:
        """Wait for the next batch; return None when the time is over or the watch was closed."""

    def __iter__(self) -> Iterator[WatchBatch]:
        """Give the batches until the watch is closed."""

    def close(self) -> None:
        """End the watch, from any thread: who waits for its next batch gets None."""

    @property
    def is_closed(self) -> bool:
        """Tell whether the watch was closed."""


def prefix_end(prefix: bytes) -> bytes:
    """Return the first key after all that begin with a prefix."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,)) if stem else b"\0"


class Client:
    """A connection to etcd.

    Everything may raise EtcdError; what the user reads is one line with the endpoints.

    :param timeout: seconds for each request, in place of the address's.
    """

    def __init__(self, address: Address, timeout: float | None = None) -> None:
        raise NotImplementedError

    def get(self, key: bytes, revision: int = 0) -> tuple[KeyValue | None, int]:
        """Return a key as it is, or was at a revision, and the revision of the store."""
        raise NotImplementedError

    def range(
        self,
        start: bytes,
        end: bytes,
        *,
        revision: int = 0,
        limit: int = 0,
        keys_only: bool = False,
        count_only: bool = False,
    ) -> RangeResult:
        """Return the keys from ``start`` up to ``end``, without it, in their order, in one answer.
        For a prefix ``end`` is :func:`prefix_end`; ``b"\\0"`` is the end of all keys."""
        raise NotImplementedError

    def pages(
        self,
        start: bytes,
        end: bytes,
        *,
        revision: int = 0,
        page: int = PAGE,
        keys_only: bool = False,
    ) -> Iterator[RangeResult]:
        """Give the keys of a range in pages, all as they were at one revision: the given one, or
        the newest at the first page. ``revision`` of each page is that one."""
        raise NotImplementedError

    def txn(
        self,
        compares: Sequence[Compare],
        success: Sequence[Operation],
        failure: Sequence[Operation] = (),
    ) -> TxnResult:
        """Do the operations of ``success`` if all conditions hold, else those of ``failure``.

        Raises UnreachableError: nothing was done; UncertainError: not known.
        """
        raise NotImplementedError

    def submit(
        self,
        compares: Sequence[Compare],
        success: Sequence[Operation],
        failure: Sequence[Operation] = (),
    ) -> Pending:
        """Send a transaction without waiting for its answer. etcd does not promise to do those
        that are under way in the order in which they were sent."""
        raise NotImplementedError

    def watch(
        self,
        start: bytes,
        end: bytes = b"",
        *,
        start_revision: int = 0,
        prev_kv: bool = False,
        progress: bool = False,
    ) -> Watch:
        """Watch a range from a revision on; 0: from now, which is settled when this returns.

        :param progress: let etcd tell now and then how far it is, where nothing happens (every 10
            minutes, unless the server is set otherwise).
        """
        raise NotImplementedError

    def grant_lease(self, ttl: int, lease_id: int = 0) -> int:
        """Make a lease of so many seconds; return its id."""
        raise NotImplementedError

    def revoke_lease(self, lease_id: int) -> None:
        """End a lease: its keys are gone. Raises LeaseLostError."""
        raise NotImplementedError

    def keep_alive(self, lease_id: int) -> int:
        """Begin the time of a lease anew; return its seconds. Raises LeaseLostError."""
        raise NotImplementedError

    def lease_state(self, lease_id: int) -> LeaseState:
        """Return how much time a lease has left."""
        raise NotImplementedError

    def compact(self, revision: int) -> None:
        """Forget what was before a revision."""
        raise NotImplementedError

    def status(self) -> Status:
        """Return what the connected server says of itself."""
        raise NotImplementedError

    def close(self) -> None:
        """End all watches and the connection. Requests that are under way raise."""
        raise NotImplementedError
