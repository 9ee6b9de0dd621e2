"""The threads that handle requests: storage is synchronous, so nothing of it may run in the event
loop.

One thread writes, since a folder has one writer at a time, and a few read, since reads wait for
nobody. A request that calls webhooks is made anew in a thread of a third kind: a webhook may take
its time, and send requests to this very server meanwhile. All threads share one open cluster; each
has clients and a connection to the index of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from kubepy.api import errors
from kubepy.api.meta import name_of
from kubepy.apiserver.answers import WouldWait
from kubepy.apiserver.client import CRDS
from kubepy.storage import StorageError
from kubepy.storage.errors import RemovedIndexError

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster

T = TypeVar("T")
Function = Callable[["LocalCluster"], T]
READERS = 2
CALLERS = 32  # requests that wait for webhooks at the same time


class BackendClosed(errors.ServiceUnavailable):
    """The cluster is closed: its server ends, as that of a fork that was dropped."""

    def __init__(self) -> None:
        super().__init__("the server of this cluster has ended")


class Backend:
    """Runs functions on the cluster in threads of its own.

    :param open_cluster: opens the cluster for all threads; it is called once, when the first one
        needs it.
    :param has_noticed: tells whether somebody else has noticed every change of definitions up to a
        revision.
    :param is_alone: no other process can reach the cluster, so that nobody else moves its time.
    """

    def __init__(
        self,
        open_cluster: Callable[[], LocalCluster],
        readers: int = READERS,
        has_noticed: Callable[[int], bool] = lambda revision: False,
        *,
        is_alone: bool = False,
    ) -> None:
        self._open_cluster = open_cluster
        self._has_noticed = has_noticed
        self._is_alone = is_alone
        self._writer = ThreadPoolExecutor(1, "writer")
        self._readers = ThreadPoolExecutor(readers, "reader")
        self._callers = ThreadPoolExecutor(CALLERS, "caller")
        self._own = threading.local()
        self._opening = threading.Lock()
        self._cluster: LocalCluster | None = None
        # The revision up to which changes of definitions were noticed, and their versions then.
        self._noticed: tuple[int, list[tuple[str, str]] | None] = (-1, None)

    async def read(self, function: Callable[[LocalCluster], T]) -> T:
        """Run a function that only reads. It goes on when the caller is cancelled, unless it has
        not begun. Raises BackendClosed."""
        return await self._run_in(self._readers, function)

    async def write(self, function: Callable[[LocalCluster], T]) -> T:
        """Run a function that may write, after those that were given before it. Raises
        BackendClosed."""
        return await self._run_in(self._writer, function)

    async def _run_in(
        self, executor: ThreadPoolExecutor, function: Callable[[LocalCluster], T]
    ) -> T:
        try:
            return await _result_of(executor, self._run, function)
        except WouldWait:
            return await _result_of(self._callers, partial(self._run, may_wait=True), function)

    def _run(self, function: Callable[[LocalCluster], T], may_wait: bool = False) -> T:
        cluster: LocalCluster | None = getattr(self._own, "cluster", None)
        if cluster is None:
            cluster = self._own.cluster = self.cluster().apart()
            context = cluster.client.context._replace(may_wait=may_wait)
            cluster.client = cluster.client.with_context(context)
        with suppress(StorageError):  # the function itself may have an answer for that
            if not self._is_alone:
                cluster.client.take_over_time()  # another process may have moved it
            self._notice_definitions(cluster)
        try:
            return function(cluster)
        except RemovedIndexError:
            return function(cluster)

    def _notice_definitions(self, cluster: LocalCluster) -> None:
        """Read the custom kinds again after a change of their definitions by another thread or
        process."""
        noticed, known = self._noticed
        if (revision := cluster.client.revision()) == noticed:
            return
        if known is not None and self._has_noticed(revision):
            self._noticed = revision, known
            return
        versions = [
            (name_of(definition), definition["metadata"]["resourceVersion"])
            for definition in cluster.client.list_stored(CRDS)
        ]
        if known is not None and versions != known:
            cluster.client.forget_custom_kinds()
        self._noticed = revision, versions

    def cluster(self) -> LocalCluster:
        """Return the open cluster; a thread works with one :meth:`apart <LocalCluster.apart>`.
        Raises FolderError."""
        with self._opening:
            if self._cluster is None:
                self._cluster = self._open_cluster()
            return self._cluster

    def close(self) -> None:
        """Wait for what has begun, drop what has not, and close the cluster: what was written is
        made durable."""
        for executor in (self._writer, self._readers, self._callers):
            executor.shutdown(cancel_futures=True)
        if self._cluster is not None:
            with suppress(StorageError):  # the folder may be gone
                self._cluster.close()


async def _result_of(
    executor: ThreadPoolExecutor, run: Callable[[Function[T]], T], function: Function[T]
) -> T:
    """Run a function in a thread. Raises BackendClosed where there are no threads any more, or the
    function was dropped before it began."""
    try:
        future = executor.submit(run, function)
    except RuntimeError:
        raise BackendClosed from None
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if future.cancelled() and task is not None and not task.cancelling():
            raise BackendClosed from None
        raise
