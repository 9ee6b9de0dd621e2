"""A client that lets etcd do transactions that are under way together in the reverse order."""

from __future__ import annotations

from collections.abc import Sequence

from kubepy.storage.etcd.client import Compare, EtcdClient, Operation, PendingTxn, TxnResult
from kubepy.storage.etcd.errors import EtcdError


class HeldTxn(PendingTxn):
    """A transaction that is not sent before somebody asks for the answer to one that is held."""

    def __init__(self, client: BackwardClient, request: tuple[Sequence[Operation], ...]) -> None:
        self._client = client
        self.request = request
        self.answer: TxnResult | None = None
        self.error: EtcdError | None = None

    def result(self, timeout: float | None = None) -> TxnResult:
        self._client.send_held()
        if self.error is not None:
            raise self.error
        assert self.answer is not None
        return self.answer


class BackwardClient(EtcdClient):
    """A client that sends what is under way together from its end to its beginning."""

    _held: tuple[HeldTxn, ...] = ()

    def submit(
        self,
        compares: Sequence[Compare],
        success: Sequence[Operation],
        failure: Sequence[Operation] = (),
    ) -> PendingTxn:
        pending = HeldTxn(self, (compares, success, failure))  # type: ignore[arg-type]
        self._held = (*self._held, pending)
        return pending

    def send_held(self) -> None:
        """Send all that is held, the last one first."""
        held, self._held = self._held, ()
        for pending in reversed(held):
            try:
                pending.answer = self.txn(*pending.request)  # type: ignore[arg-type]
            except EtcdError as error:
                pending.error = error
