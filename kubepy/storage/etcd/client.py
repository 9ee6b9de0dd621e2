"""etcd's API, version 3, as the store needs it.

An EtcdClient has one connection, which all threads share and on which any number of requests are
under way at the same time. It connects with the first request. Where the connection ends, reads go
on at the next endpoint by themselves; a write whose answer is lost is an UncertainError.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kubepy.lazy import lazy_imports
from kubepy.storage.etcd import messages
from kubepy.storage.etcd.address import Address
from kubepy.storage.etcd.errors import LeaseLostError
from kubepy.storage.etcd.messages import (
    Compare,
    Delete,
    DeleteResult,
    Get,
    KeyValue,
    Operation,
    OperationResult,
    Put,
    PutResult,
    RangeResult,
    TxnResult,
    prefix_end,
)
from kubepy.storage.etcd.session import EtcdSession, UnaryCall
from kubepy.storage.etcd.wire import number_field

with lazy_imports():
    from kubepy.storage.etcd import maintenance, watch

if TYPE_CHECKING:
    from kubepy.storage.etcd.maintenance import LeaseState, ServerStatus
    from kubepy.storage.etcd.notices import KeyEvent, WatchBatch
    from kubepy.storage.etcd.watch import Watch

__all__ = [
    "Compare",
    "Delete",
    "DeleteResult",
    "EtcdClient",
    "Get",
    "KeyEvent",
    "KeyValue",
    "LeaseState",
    "Operation",
    "OperationResult",
    "PendingTxn",
    "Put",
    "PutResult",
    "RangeResult",
    "ServerStatus",
    "TxnResult",
    "Watch",
    "WatchBatch",
    "prefix_end",
]

PAGE = 500
_RANGE = "/etcdserverpb.KV/Range"
_TXN = "/etcdserverpb.KV/Txn"
_COMPACT = "/etcdserverpb.KV/Compact"
_GRANT = "/etcdserverpb.Lease/LeaseGrant"
_REVOKE = "/etcdserverpb.Lease/LeaseRevoke"
_KEEP_ALIVE = "/etcdserverpb.Lease/LeaseKeepAlive"
_TIME_TO_LIVE = "/etcdserverpb.Lease/LeaseTimeToLive"
_STATUS = "/etcdserverpb.Maintenance/Status"


class PendingTxn:
    """A transaction that is under way."""

    def __init__(self, call: UnaryCall) -> None:
        self._call = call
        self._answer: TxnResult | None = None

    def result(self, timeout: float | None = None) -> TxnResult:
        """Wait for the answer. Raises TimeoutError when it has not come in time, which may be
        shorter than the client's: then one can wait again. Else as :meth:`EtcdClient.txn`."""
        if self._answer is None:
            self._answer = messages.read_txn(self._call.result(timeout))
        return self._answer


class EtcdClient:
    """A connection to etcd.

    Everything may raise EtcdError; what the user reads is one line with the endpoints.

    :param timeout: seconds for each request, in place of the address's.
    """

    def __init__(self, address: Address, timeout: float | None = None) -> None:
        self._session = EtcdSession(address, address.timeout if timeout is None else timeout)

    def get(self, key: bytes, revision: int = 0) -> tuple[KeyValue | None, int]:
        """Return a key as it is, or was at a revision, and the revision of the store."""
        result = self._range(Get(key, revision=revision))
        return (result.kvs[0] if result.kvs else None), result.revision

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
        return self._range(Get(start, end, revision, limit, keys_only, count_only))

    def _range(self, get: Get) -> RangeResult:
        request = messages.range_request(get)
        return self._session.ask(_RANGE, request, messages.read_range, is_read=True)

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
        while True:
            result = self._range(Get(start, end, revision, page, keys_only))
            revision = revision or result.revision
            yield result._replace(revision=revision)
            if not result.more:
                return
            start = result.kvs[-1].key + b"\0"

    def txn(
        self,
        compares: Sequence[Compare],
        success: Sequence[Operation],
        failure: Sequence[Operation] = (),
    ) -> TxnResult:
        """Do the operations of ``success`` if all conditions hold, else those of ``failure``.

        Raises UnreachableError: nothing was done; UncertainError: not known.
        """
        request = messages.txn_request(compares, success, failure)
        is_read = all(isinstance(operation, Get) for operation in (*success, *failure))
        return self._session.ask(_TXN, request, messages.read_txn, is_read=is_read)

    def submit(
        self,
        compares: Sequence[Compare],
        success: Sequence[Operation],
        failure: Sequence[Operation] = (),
    ) -> PendingTxn:
        """Send a transaction without waiting for its answer. etcd does not promise to do those
        that are under way in the order in which they were sent."""
        request = messages.txn_request(compares, success, failure)
        call = UnaryCall(self._session, _TXN, request, is_read=False)
        call.send()
        return PendingTxn(call)

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
        watched = watch.WatchedRange(start, end, prev_kv, progress)
        return watch.Watch(self._session, watched, start_revision)

    def grant_lease(self, ttl: int, lease_id: int = 0) -> int:
        """Make a lease of so many seconds; return its id."""
        request = maintenance.lease_request(lease_id, ttl)
        # One that is granted twice expires
        is_read = not lease_id
        return self._session.ask(_GRANT, request, maintenance.read_lease, is_read=is_read).id

    def revoke_lease(self, lease_id: int) -> None:
        """End a lease: its keys are gone. Raises LeaseLostError."""
        self._session.ask(_REVOKE, maintenance.lease_request(lease_id), bytes, is_read=False)

    def keep_alive(self, lease_id: int) -> int:
        """Begin the time of a lease anew; return its seconds. Raises LeaseLostError."""
        request = maintenance.lease_request(lease_id)
        lease = self._session.ask(_KEEP_ALIVE, request, maintenance.read_lease, is_read=True)
        if lease.ttl <= 0:
            raise LeaseLostError(f"the lease {lease_id:x} is over", 5)
        return lease.ttl

    def lease_state(self, lease_id: int) -> LeaseState:
        """Return how much time a lease has left."""
        request = maintenance.lease_request(lease_id)
        return self._session.ask(_TIME_TO_LIVE, request, maintenance.read_lease, is_read=True)

    def compact(self, revision: int) -> None:
        """Forget what was before a revision."""
        self._session.ask(_COMPACT, number_field(1, revision), bytes, is_read=False)

    def status(self) -> ServerStatus:
        """Return what the connected server says of itself."""
        return self._session.ask(_STATUS, b"", maintenance.read_status, is_read=True)

    def close(self) -> None:
        """End all watches and the connection. Requests that are under way raise."""
        self._session.close()
