"""The forks of a served cluster, each served below a path of its own.

A fork costs nothing until a request comes for it: only then it gets threads, a watch cache and
controllers.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from kubepy.api import errors
from kubepy.apiserver.cluster import LocalCluster
from kubepy.server.application import Application
from kubepy.server.memory import find_trim
from kubepy.server.messages import Answer, HttpRequest, RequestInfo

FORKS = "/kubepy/forks/"
Receive = Callable[[], Awaitable[Any]]  # of ASGI


class RequestChain(Protocol):
    """The way of every request of an application (``kubepy.server.chain``)."""

    async def answer(
        self, request: HttpRequest, info: RequestInfo, receive: Receive, warnings: dict[str, None]
    ) -> Answer: ...


NewChain = Callable[[Application], RequestChain]


class Fork:
    """A fork, and the server for it once there is one.

    :ivar server: the path below which its API is.
    """

    def __init__(
        self, fork_id: str, cluster: LocalCluster, origin: Application, new_chain: NewChain
    ) -> None:
        self.id = fork_id
        self.server = f"{FORKS}{fork_id}/"
        self.cluster = cluster
        self._origin = origin
        self._new_chain = new_chain
        self._starting = asyncio.Lock()
        self._application: Application | None = None
        self._chain: RequestChain | None = None
        self._is_dropped = False

    async def chain(self) -> RequestChain:
        """Return the way of requests for this fork, which begins with the first one. Raises
        NotFound where it has been dropped meanwhile."""
        async with self._starting:
            if self._is_dropped:
                raise errors.not_found("forks", self.id)
            if self._chain is None:
                application = self._new_application()
                try:
                    await application.start()
                except BaseException:
                    await application.stop()
                    await asyncio.to_thread(application.close)
                    raise
                self._application = application
                self._chain = self._new_chain(application)
            return self._chain

    def _new_application(self) -> Application:
        origin = self._origin
        application = Application(
            self.cluster,
            origin.options._replace(pace=None),  # nobody counts who waits for a fork
            token=origin.token,
            signing_key=origin.signing_key,
            credentials=origin.credentials,
            log=lambda line: origin.log(f"{self.id}: {line}"),
        )
        application.prefix = f"{origin.prefix}{self.server.removesuffix('/')}"
        return application

    async def stop(self) -> None:
        """Take no request any more, and end all streams in order."""
        async with self._starting:
            self._is_dropped = True
            if self._application is not None:
                await self._application.stop()

    def close(self) -> None:
        """Let go of its threads, after :meth:`stop`."""
        if self._application is not None:
            self._application.close()


class Forks:
    """All forks of one application.

    :param new_chain: makes the way of the requests of another application.
    """

    def __init__(self, application: Application, new_chain: NewChain) -> None:
        self._application = application
        self._new_chain = new_chain
        self._numbers = itertools.count(1)
        self._forks: dict[str, Fork] = {}

    async def add(self) -> Fork:
        """Fork the cluster as it is now. Raises StorageError."""
        cluster = await self._application.read(lambda cluster: cluster.fork(in_full=True))
        fork = Fork(f"fork-{next(self._numbers)}", cluster, self._application, self._new_chain)
        self._forks[fork.id] = fork
        return fork

    def all(self) -> list[Fork]:
        return list(self._forks.values())

    def get(self, fork_id: str) -> Fork:
        """Return a fork. Raises NotFound."""
        fork = self._forks.get(fork_id)
        if fork is None:
            raise errors.not_found("forks", fork_id)
        return fork

    async def drop(self, fork_id: str) -> None:
        """Let go of a fork, and give its memory back. Raises NotFound."""
        fork = self.get(fork_id)
        del self._forks[fork_id]
        await fork.stop()

        def release() -> None:
            fork.close()
            gc.collect()  # an open cluster refers to itself
            find_trim()()

        await asyncio.to_thread(release)

    async def stop(self) -> None:
        """End the streams of all forks."""
        for fork in self.all():
            await fork.stop()

    def close(self) -> None:
        """Let go of all forks."""
        for fork in self.all():
            fork.close()
        self._forks.clear()


def split_path(path: str) -> tuple[str, str] | None:
    """Return the id of the fork that a path is below, and the path that it is there; None for a
    path that is below none."""
    if not path.startswith(FORKS):
        return None
    fork_id, slash, rest = path.removeprefix(FORKS).partition("/")
    if not slash:
        return None
    return fork_id, f"/{rest}"


def inner_path(path: str) -> str:
    """Return the path that a path below forks, at any depth, is in the innermost of them."""
    while (split := split_path(path)) is not None:
        _, path = split
    return path


def request_below(request: HttpRequest) -> tuple[str, HttpRequest] | None:
    """Return the id of the fork that a request is for, and the request as it is there; None for
    one that is for none."""
    split = split_path(request.path)
    if split is None:
        return None
    fork_id, path = split
    return fork_id, request._replace(path=path)
