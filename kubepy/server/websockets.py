"""WebSockets: which requests become one, and the messages on it.

uvicorn with wsproto does the protocol; what goes through it are Kubernetes' channels, many streams
in one connection. Upstream: ``k8s.io/streaming/pkg/httpstream/wsstream``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any, NamedTuple

from kubepy.api import errors

Message = MutableMapping[str, Any]
CLOSE_SIGNAL = 255
V4, V4_BASE64, V5 = "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "v5.channel.k8s.io"
V1, V1_BASE64 = "channel.k8s.io", "base64.channel.k8s.io"
NORMAL, GOING_AWAY = 1000, 1001
WEBSOCKET = "websocket"  # the protocol of an upgrade, and the type of an ASGI scope
PROTOCOLS = "sec-websocket-protocol"
TOKEN_PREFIX = "base64url.bearer.authorization.k8s.io."  # before the token of a browser
PIECE = 32 * 1024


class WebSocket:
    """An open WebSocket, as ASGI passes it on.

    :param touch: is called for each message, as a sign of the client.
    """

    def __init__(
        self,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
        touch: Callable[[], object] = lambda: None,
    ) -> None:
        self._receive = receive
        self._send = send
        self._touch = touch

    async def accept(self, protocol: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        await self._send(
            {
                "type": "websocket.accept",
                "subprotocol": protocol or None,
                "headers": list(headers),
            }
        )

    async def receive(self) -> bytes | None:
        """Return the next message, None at the end."""
        while True:
            message = await self._receive()
            self._touch()
            if message["type"] == "websocket.disconnect":
                return None
            if message["type"] != "websocket.receive":
                continue
            if message.get("bytes") is not None:
                return bytes(message["bytes"])
            return str(message["text"]).encode()

    async def send(self, data: bytes | str) -> None:
        kind = "text" if isinstance(data, str) else "bytes"
        await self._send({"type": "websocket.send", kind: data})
        self._touch()

    async def close(self, code: int = NORMAL) -> None:
        await self._send({"type": "websocket.close", "code": code})


class Upgrade(NamedTuple):
    """The answer to a request that becomes a WebSocket.

    :ivar protocols: those that are spoken; "" for a client that names none.
    :ivar serve: serves the connection that has been opened with one of them.
    :ivar is_complete: tells whether everything that has happened was sent, as in a watch.
    """

    protocols: Sequence[str]
    serve: Callable[[WebSocket, str], Awaitable[None]]
    is_complete: Callable[[], bool] = lambda: True

    def choose(self, requested: Sequence[str]) -> str:
        """Return the first protocol of a client that is spoken. Raises Forbidden."""
        for protocol in requested or ("",):
            if protocol in self.protocols:
                return protocol
        raise errors.Forbidden(
            f"requested protocol(s) are not supported: [{' '.join(requested)}]; supports "
            f"[{' '.join(self.protocols)}]"
        )


def split_protocols(requested: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the protocols that a client speaks, and the encoded tokens that it names among
    them."""
    protocols = [word for word in requested if not word.startswith(TOKEN_PREFIX)]
    tokens = [
        word.removeprefix(TOKEN_PREFIX) for word in requested if word.startswith(TOKEN_PREFIX)
    ]
    return protocols, tokens


class Channels:
    """Streams in one WebSocket, each message with the number of its stream."""

    def __init__(self, socket: WebSocket, protocol: str) -> None:
        self._socket = socket
        self._is_base64 = protocol in (V4_BASE64, V1_BASE64)
        self._closes = protocol == V5

    async def receive(self) -> tuple[int, bytes | None] | None:
        """Return the next message and its stream, without data where the stream is closed; None at
        the end."""
        while (message := await self._socket.receive()) is not None:
            if not message:
                continue
            channel = message[0]
            data = message[1:]
            if self._closes and channel == CLOSE_SIGNAL:
                if len(data) != 1:
                    return None
                return data[0], None
            if not self._is_base64:
                return channel, data
            try:
                return channel - ord("0"), base64.b64decode(data, validate=True)
            except binascii.Error:
                continue
        return None

    async def send(self, channel: int, data: bytes) -> None:
        """Send data on a stream, in pieces."""
        for start in range(0, max(len(data), 1), PIECE):
            piece = data[start : start + PIECE]
            if self._is_base64:
                text = base64.b64encode(piece).decode()
                await self._socket.send(f"{channel}{text}")
            else:
                await self._socket.send(bytes([channel]) + piece)

    async def close(self, code: int = NORMAL) -> None:
        await self._socket.close(code)
