"""Watches and logs over WebSockets, as browsers use them.

A watch has a message for each event: events in JSON are texts, in protobuf they are binary and
without the length that stands before them in a stream. A log begins with an empty message, and goes
on with pieces as they come. What a client sends is ignored. Upstream: ``WatchServer.HandleWS`` in
``apiserver/pkg/endpoints/handlers/watch.go``, ``golang.org/x/net/websocket``;
``k8s.io/streaming/pkg/httpstream/wsstream/stream.go``.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

from kubepy.api import errors
from kubepy.server.messages import PROTOBUF, HttpRequest, StreamResponse
from kubepy.server.streaming import first_ended
from kubepy.server.websockets import Upgrade, WebSocket

LENGTH_BYTES = 4
BINARY, BASE64 = "binary.k8s.io", "base64.binary.k8s.io"
LOG_PIECE = 2048

Serve = Callable[[WebSocket, str], Awaitable[None]]
# Makes the messages of a piece of an answer, for a protocol.
Messages = Callable[[bytes, str], Iterable[str | bytes]]


class WatchUpgrade(Upgrade):
    """A watch over a WebSocket: it speaks the one protocol that a client names, whatever it is."""

    def choose(self, requested: Sequence[str]) -> str:
        """Return the only protocol of a client, "" without one. Raises BadRequest."""
        if len(requested) > 1:
            raise errors.BadRequest(
                "a watch over a WebSocket takes one protocol: websocket: bad protocol"
            )
        return requested[0] if requested else ""


def upgrade_of(
    request: HttpRequest, answer: StreamResponse, patience: float, abort: Callable[[], object]
) -> WatchUpgrade:
    """Return the answer to a watch as a WebSocket. Raises Forbidden for a client that does not say
    from where its program is, as browsers do.

    :param patience: so many seconds a client may take to read an event …
    :param abort: … before its connection is closed by this.
    """
    if not request.header("origin"):
        raise errors.Forbidden("a watch over a WebSocket needs the header Origin: null origin")
    is_binary = answer.content_type.startswith(PROTOBUF)

    def messages(piece: bytes, protocol: str) -> Iterable[str | bytes]:
        return binary_messages(piece) if is_binary else text_messages(piece)

    serve = _forwarding(answer, messages, patience, abort)
    return WatchUpgrade((), serve, answer.is_complete)


def log_upgrade_of(answer: StreamResponse, patience: float, abort: Callable[[], object]) -> Upgrade:
    """Return the answer to a request for a log as a WebSocket. The parameters are those of
    :func:`upgrade_of`."""
    forward = _forwarding(answer, log_messages, patience, abort)

    async def serve(socket: WebSocket, protocol: str) -> None:
        await socket.send("" if protocol == BASE64 else b"")
        await forward(socket, protocol)

    return Upgrade(("", BINARY, BASE64), serve)


def _forwarding(
    answer: StreamResponse, messages: Messages, patience: float, abort: Callable[[], object]
) -> Serve:
    """Return the function that serves a WebSocket with the pieces of an answer."""

    async def forward(socket: WebSocket, protocol: str) -> None:
        async for piece in answer.pieces:
            for message in messages(piece, protocol):
                async with asyncio.timeout(patience):
                    await socket.send(message)

    async def wait_for_end(socket: WebSocket) -> None:
        while await socket.receive() is not None:
            pass

    async def serve(socket: WebSocket, protocol: str) -> None:
        error = await first_ended(
            answer.pieces, forward(socket, protocol), wait_for_end(socket), answer.stopping.wait()
        )
        if isinstance(error, TimeoutError):
            abort()
        elif error is not None:
            raise error
        else:
            await socket.close()

    return serve


def log_messages(piece: bytes, protocol: str) -> Iterator[str | bytes]:
    """Yield a part of a log in messages: bytes, or base64 where the client has asked for that."""
    for start in range(0, len(piece), LOG_PIECE):
        data = piece[start : start + LOG_PIECE]
        yield base64.b64encode(data).decode() if protocol == BASE64 else data


def text_messages(piece: bytes) -> Iterator[str]:
    """Yield the events of a piece of a stream in JSON, each with the end of its line."""
    for line in piece.decode().split("\n")[:-1]:
        yield f"{line}\n"


def binary_messages(piece: bytes) -> Iterator[bytes]:
    """Yield the events of a piece of a stream in protobuf, without their lengths."""
    start = 0
    while start < len(piece):
        begin = start + LENGTH_BYTES
        end = begin + int.from_bytes(piece[start:begin], "big")
        yield piece[begin:end]
        start = end
