"""Compaction, as kube-apiservers do it: what is older than about five minutes is forgotten.

An etcd that nobody compacts grows until it is full. Who holds a lock for long does it; several, and
kube-apiservers among them, agree by a key whose version says whose turn it was.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kubepy.storage.etcd.client import Compare, Get, Put, RangeResult

if TYPE_CHECKING:
    from kubepy.storage.etcd.client import EtcdClient

COMPACT_SECONDS = 300.0
AGREEMENT = b"compact_rev_key"  # kube-apiserver's name of it


class Compactor:
    """Compacts etcd now and then.

    Upstream: ``apiserver/pkg/storage/etcd3/compact.go``.
    """

    def __init__(self, client: EtcdClient) -> None:
        self._client = client
        self._due = time.monotonic() + COMPACT_SECONDS
        self._turn = 0
        self._revision = 0  # the newest when it was the last time; 0: there was none yet

    def tick(self) -> None:
        """Compact etcd if it is time, and nobody else has done so meanwhile. Raises EtcdError."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + COMPACT_SECONDS
        old, turn = self._revision, self._turn
        taken = self._client.txn(
            [Compare(AGREEMENT, turn, "version")],
            [Put(AGREEMENT, str(old).encode())],
            [Get(AGREEMENT)],
        )
        self._revision = taken.revision
        if taken.succeeded:
            self._turn = turn + 1
            if old:
                self._client.compact(old)
            return
        [present] = taken.responses
        assert isinstance(present, RangeResult)
        self._turn = present.kvs[0].version if present.kvs else 0
