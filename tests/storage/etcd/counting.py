"""A client of etcd whose revisions are numbers of writes of objects.

The tests of every store count writes: the first object has resourceVersion 1. etcd's revisions
begin elsewhere, and what kubepy keeps beside the objects has some too. This client shows the
revisions of one cluster, of which it hears of all writes, as the number of those up to them.

Notes of what rests (``rest.py``) count the revisions of own writes too, which have no number: they
are hidden here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from kubepy.storage.etcd.address import Address
from kubepy.storage.etcd.client import (
    Compare,
    Delete,
    EtcdClient,
    Get,
    KeyValue,
    Operation,
    Put,
    RangeResult,
    TxnResult,
)
from kubepy.storage.etcd.keys import EtcdKeys
from kubepy.storage.etcd.notices import KeyEvent, WatchBatch
from kubepy.storage.etcd.watch import Watch


class CountingClient(EtcdClient):
    """A client that shows revisions as numbers of writes."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._registry = EtcdKeys(address.prefix).registry
        own = EtcdKeys(address.prefix).own
        self._locks = own + b"locks/"
        self._timeline = own + b"timeline/"
        self._rest = own + b"rest"
        self._writes: list[int] = []  # the revisions of the writes of objects

    def _number(self, revision: int) -> int:
        return bisect_right(self._writes, revision)

    def _revision(self, number: int) -> int:
        """Return the last revision that has a number: 0, which is the newest, for the last."""
        if number >= len(self._writes):
            return 0
        return self._writes[number] - 1

    def _shown(self, kv: KeyValue) -> KeyValue:
        if kv.key.startswith(self._locks):  # what is compared in an election
            return kv
        return kv._replace(
            mod_revision=self._number(kv.mod_revision),
            create_revision=self._number(kv.create_revision),
        )

    def _shown_range(self, result: RangeResult) -> RangeResult:
        return result._replace(
            revision=self._number(result.revision), kvs=[self._shown(kv) for kv in result.kvs]
        )

    def get(self, key: bytes, revision: int | None = None) -> tuple[KeyValue | None, int]:
        result = self._range(Get(key, revision=0 if revision is None else self._revision(revision)))
        shown = self._shown_range(result)
        number = shown.revision if revision is None else revision
        if not shown.kvs or key == self._rest:
            return None, number
        return shown.kvs[0], number

    def range(
        self, start: bytes, end: bytes, *, revision: int | None = None, **options: Any
    ) -> RangeResult:
        real = 0 if revision is None else self._revision(revision)
        return self._shown_range(super().range(start, end, revision=real, **options))

    def pages(
        self, start: bytes, end: bytes, *, revision: int | None = None, **options: Any
    ) -> Iterator[RangeResult]:
        real = 0 if revision is None else self._revision(revision)
        for page in super().pages(start, end, revision=real, **options):
            yield self._shown_range(page)

    def txn(
        self,
        compares: Sequence[Compare],
        success: Sequence[Operation],
        failure: Sequence[Operation] = (),
    ) -> TxnResult:
        result = super().txn(
            [self._real_compare(compare) for compare in compares],
            [self._real_operation(operation) for operation in success],
            [self._real_operation(operation) for operation in failure],
        )
        writes = [each for each in success if isinstance(each, Put | Delete)]
        if result.succeeded and any(map(self._is_counted, writes)):
            self._writes.append(result.revision)
        revision = result.revision
        if not any(each.key.startswith(self._locks) for each in writes):
            revision = self._number(revision)
        responses = [
            self._shown_range(each) if isinstance(each, RangeResult) else each
            for each in result.responses
        ]
        return TxnResult(revision, result.succeeded, responses)

    def _is_counted(self, operation: Put | Delete) -> bool:
        if operation.key.startswith(self._registry):
            return True
        return isinstance(operation, Put) and operation.key.startswith(self._timeline)

    def _real_compare(self, compare: Compare) -> Compare:
        if not compare.key.startswith(self._registry) or not compare.value:
            return compare
        assert isinstance(compare.value, int)
        return compare._replace(value=self._writes[compare.value - 1])

    def _real_operation(self, operation: Operation) -> Operation:
        if isinstance(operation, Get) and operation.revision:
            return operation._replace(revision=self._revision(operation.revision))
        return operation

    def watch(
        self,
        start: bytes,
        end: bytes = b"",
        *,
        start_revision: int = 0,
        prev_kv: bool = False,
        progress: bool = False,
    ) -> Watch:
        real = self._writes[start_revision - 1] if start_revision else 0
        watch = super().watch(start, end, start_revision=real, prev_kv=prev_kv, progress=progress)
        return CountingWatch(self, watch)  # type: ignore[return-value]


class CountingWatch:
    """A watch of a CountingClient."""

    def __init__(self, client: CountingClient, watch: Watch) -> None:
        self._client = client
        self._watch = watch
        self.close = watch.close

    def next_batch(self, timeout: float | None = None) -> WatchBatch | None:
        batch = self._watch.next_batch(timeout)
        if batch is None:
            return None
        client = self._client
        events = [
            KeyEvent(
                event.is_delete,
                client._shown(event.kv),
                client._shown(event.prev_kv) if event.prev_kv is not None else None,
            )
            for event in batch.events
        ]
        return WatchBatch(client._number(batch.revision), events)
