"""The threads that handle requests: storage is synchronous, so nothing of it may run in the event
loop.

One thread writes, since a folder has one writer at a time, and a few read, since reads wait for
nobody. A request that calls webhooks is made anew in a thread of a third kind: a webhook may take
its time, and send requests to this very server meanwhile. Each thread has the cluster open for
itself, with its own connection to the index.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from kubepy.api.meta import name_of
from kubepy.apiserver.client import CRDS
from kubepy.apiserver.rehearsal import WouldWait
from kubepy.storage import StorageError
from kubepy.storage.errors import RemovedIndexError

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster

T = TypeVar("T")
READERS = 2
CALLERS = 32  # requests that wait for webhooks at the same time


class Backend:
    """Runs functions on the cluster in threads of its own.

    :param open_cluster: opens the cluster; it is called in each thread when that is first needed.
    """

    def __init__(self, open_cluster: Callable[[], LocalCluster], readers: int = READERS) -> None:
        self._open_cluster = open_cluster
        self._writer = ThreadPoolExecutor(1, "writer")
        self._readers = ThreadPoolExecutor(readers, "reader")
        self._callers = ThreadPoolExecutor(CALLERS, "caller")
        self._own = threading.local()
        self._clusters: list[LocalCluster] = []

    async def read(self, function: Callable[[LocalCluster], T]) -> T:
        """Run a function that only reads. It goes on when the caller is cancelled, unless it has
        not begun."""
        return await self._run_in(self._readers, function)

    async def write(self, function: Callable[[LocalCluster], T]) -> T:
        """Run a function that may write, after those that were given before it."""
        return await self._run_in(self._writer, function)

    async def _run_in(
        self, executor: ThreadPoolExecutor, function: Callable[[LocalCluster], T]
    ) -> T:
        try:
            return await asyncio.wrap_future(executor.submit(self._run, function))
        except WouldWait:
            return await asyncio.wrap_future(
                self._callers.submit(self._run, function, may_wait=True)
            )

    def _run(self, function: Callable[[LocalCluster], T], may_wait: bool = False) -> T:
        cluster: LocalCluster | None = getattr(self._own, "cluster", None)
        if cluster is None:
            cluster = self._own.cluster = self._open_cluster()
            context = cluster.client.context._replace(may_wait=may_wait)
            cluster.client = cluster.client.with_context(context)
            self._clusters.append(cluster)
        with suppress(StorageError):  # the function itself may have an answer for that
            cluster.client.take_over_time()  # another process may have moved it
            self._notice_definitions(cluster)
        try:
            return function(cluster)
        except RemovedIndexError:
            return function(cluster)

    def _notice_definitions(self, cluster: LocalCluster) -> None:
        """Read the custom kinds again after a change of their definitions by another thread or
        process."""
        if (revision := cluster.client.revision()) == getattr(self._own, "revision", None):
            return
        versions = [
            (name_of(definition), definition["metadata"]["resourceVersion"])
            for definition in cluster.client.list_stored(CRDS)
        ]
        if versions != getattr(self._own, "definitions", versions):
            cluster.client.forget_custom_kinds()
        self._own.revision, self._own.definitions = revision, versions

    def close(self) -> None:
        """Wait for what has begun, drop what has not, and close the clusters: what was written is
        made durable."""
        for executor in (self._writer, self._readers, self._callers):
            executor.shutdown(cancel_futures=True)
        for cluster in self._clusters:
            with suppress(StorageError):  # the folder may be gone
                cluster.close()
