"""The work of clients: the requests that are open, and what is still to be read.

A client between two requests thinks, which nobody sees. So the time that counts is that since the
last sign of any client: a request began or ended, a piece of a stream was sent or read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from kubepy.server.streaming import close_pieces, wait_for

# The paths of those who look at the server itself, or only show what happens.
OBSERVED = ("/healthz", "/livez", "/readyz", "/metrics", "/timeline")


def is_observer(path: str) -> bool:
    """Return whether a request for a path is no sign of a client that works with the cluster."""
    return path == "/" or any(path == root or path.startswith(f"{root}/") for root in OBSERVED)


class OpenStream:
    """A watch, or another answer that goes on.

    :param is_complete: tells whether everything that has happened is in what was sent.
    :param has_unread: tells whether something that was sent has still to be read.
    :ivar is_sending: a piece is on its way.
    """

    def __init__(self, is_complete: Callable[[], bool], has_unread: Callable[[], bool]) -> None:
        self._is_complete = is_complete
        self._has_unread = has_unread
        self.is_sending = False

    def is_read(self) -> bool:
        """Return whether the client has all that there is."""
        return not self.is_sending and self._is_complete() and not self._has_unread()


class Visit:
    """One request, from its beginning to the end of its answer."""

    def __init__(self, activity: Activity) -> None:
        self._activity = activity

    @contextmanager
    def as_stream(self, stream: OpenStream) -> Iterator[None]:
        """Count the request as a stream, not as open, while its answer goes on."""
        activity = self._activity
        activity.streams.add(stream)
        activity.end()
        try:
            yield
        finally:
            activity.streams.discard(stream)
            activity.begin()

    async def counted(
        self, pieces: AsyncIterator[bytes], stream: OpenStream
    ) -> AsyncIterator[bytes]:
        """Yield the pieces of a stream, each of which is a sign of its client until it is sent."""
        try:
            async for piece in pieces:
                stream.is_sending = True
                self.touch()
                yield piece
                stream.is_sending = False
                self.touch()
        finally:
            await close_pieces(pieces)

    def touch(self) -> None:
        """Note a sign of the client."""
        self._activity.touch()


class Activity:
    """The requests and streams of all clients of one server.

    :ivar streams: those that are open.
    :ivar signs: counts the signs of clients.
    """

    def __init__(self) -> None:
        self.streams: set[OpenStream] = set()
        self.signs = 0
        self._open = 0
        self._last_sign = time.monotonic()
        self._news = asyncio.Event()
        self._admits = asyncio.Event()
        self._admits.set()

    @asynccontextmanager
    async def request(self) -> AsyncIterator[Visit]:
        """Count a request as open during a block, which does not begin while clients are held."""
        while not self._admits.is_set():
            await self._admits.wait()
        self.begin()
        try:
            yield Visit(self)
        finally:
            self.end()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no request begin during a block."""
        self._admits.clear()
        try:
            yield
        finally:
            self._admits.set()

    def begin(self) -> None:
        """Note that a request is open."""
        self._open += 1
        self.touch()

    def end(self) -> None:
        """Note that a request is open no more."""
        self._open -= 1
        self.touch()

    def touch(self) -> None:
        """Note a sign of a client."""
        self.signs += 1
        self._last_sign = time.monotonic()
        self._news.set()

    @property
    def has_requests(self) -> bool:
        """Tell whether a request is open that is no stream."""
        return self._open > 0

    def is_idle(self) -> bool:
        """Return whether no request is open and every stream was read. What has still to be read
        is a sign of its client."""
        if self._open:
            return False
        if all(stream.is_read() for stream in self.streams):
            return True
        self.touch()
        return False

    def quiet_seconds(self) -> float:
        """Return how long no client has given a sign, in real time."""
        return time.monotonic() - self._last_sign

    def is_deserted(self, seconds: float) -> bool:
        """Return whether nobody has a stream, nor has given a sign for so long."""
        return not self.streams and not self._open and self.quiet_seconds() > seconds

    async def wait(self, seconds: float | None) -> None:
        """Wait for the next sign of a client, at most so many seconds; None: for ever."""
        self._news.clear()
        await wait_for(self._news, seconds)
