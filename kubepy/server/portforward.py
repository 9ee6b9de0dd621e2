"""``pods/portforward`` over a WebSocket: channels for libraries, tunnelled SPDY for kubectl.

Upstream: ``k8s.io/cri-streaming/pkg/streaming/portforward``,
``apiserver/pkg/util/proxy/streamtunnel.go``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api import errors
from kubepy.api.meta import uid_of
from kubepy.kubelet import inside
from kubepy.kubelet.inside import CannotConnect, NoContainers, PodReply, PodRequest
from kubepy.kubelet.portstreams import PortStream
from kubepy.server import spdy
from kubepy.server.websockets import V4, V4_BASE64, Channels, Upgrade, WebSocket

if TYPE_CHECKING:
    from kubepy.api.typed import Pod
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.server.application import Application

TUNNEL = "SPDY/3.1+portforward.k8s.io"
PROTOCOLS = (TUNNEL, V4, V4_BASE64, "")
STREAM_TYPE, PORT, REQUEST_ID = "streamtype", "port", "requestid"
DATA, ERROR = "data", "error"


class PodPorts:
    """The ports of one pod, to connections of a client."""

    def __init__(self, application: Application, pod: Pod) -> None:
        self._application = application
        self._namespace = pod["metadata"]["namespace"]
        self._name = pod["metadata"]["name"]
        self._uid = uid_of(pod)

    async def send(self, stream: PortStream, port: int, data: bytes) -> bytes:
        """Let the far end of a connection take bytes; return its answer. Raises CannotConnect."""

        def receive(cluster: LocalCluster) -> bytes:
            def exchange(request: PodRequest) -> PodReply:
                return inside.http_to_pod(cluster.client, self._pod(cluster), port, request)

            return stream.receive(data, exchange)

        return await self._application.read(receive)

    async def connect(self, port: int) -> None:
        """Check that somebody listens on a port. Raises CannotConnect."""
        await self._application.read(
            lambda cluster: inside.connect_to_pod(cluster.client, self._pod(cluster), port)
        )

    def _pod(self, cluster: LocalCluster) -> Pod:
        """Return the pod as it is. Raises CannotConnect for one that is gone."""
        try:
            pod = cast("Pod", cluster.client.get("pods", self._name, namespace=self._namespace))
        except errors.NotFound:
            raise CannotConnect("the pod is gone") from None
        if uid_of(pod) != self._uid:
            raise CannotConnect("the pod is gone")
        return pod

    def failure(self, port: int, error: Exception) -> bytes:
        """Return the message of a connection that failed."""
        return f"error forwarding port {port} to pod {self._uid}, uid : {error}".encode()


def upgrade(application: Application, pod: Pod, ports: Sequence[int]) -> Upgrade:
    """Return the answer to a request for port-forwarding.

    :param ports: those of the query, which only libraries name there.
    """
    far_ends = PodPorts(application, pod)

    async def serve(socket: WebSocket, protocol: str) -> None:
        if protocol == TUNNEL:
            await Tunnel(far_ends, socket).serve()
        else:
            await serve_channels(far_ends, Channels(socket, protocol), ports)

    return Upgrade(PROTOCOLS, serve)


async def serve_channels(far_ends: PodPorts, channels: Channels, ports: Sequence[int]) -> None:
    """Serve a pair of channels for each port, until the client has gone or a port fails."""
    for number, port in enumerate(ports):
        head = struct.pack("<H", port)
        await channels.send(2 * number, head)
        await channels.send(2 * number + 1, head)
    streams = [PortStream() for _ in ports]
    for number, port in enumerate(ports):
        try:
            await far_ends.connect(port)
        except (CannotConnect, NoContainers) as error:
            await channels.send(2 * number + 1, far_ends.failure(port, error))
            await channels.close()
            return
    while (message := await channels.receive()) is not None:
        channel, data = message
        number = channel // 2
        if channel % 2 or number >= len(ports):
            continue
        try:
            answer = await far_ends.send(streams[number], ports[number], data or b"")
        except (CannotConnect, NoContainers) as error:
            await channels.send(channel + 1, far_ends.failure(ports[number], error))
            break
        if answer:
            await channels.send(channel, answer)
        if all(stream.is_closed for stream in streams):
            break
    await channels.close()


class _Pair(NamedTuple):
    """The two streams of one connection."""

    data: int
    error: int
    port: int
    stream: PortStream


class Tunnel:
    """SPDY in a WebSocket: a pair of streams for each connection of the client."""

    def __init__(self, far_ends: PodPorts, socket: WebSocket) -> None:
        self._far_ends = far_ends
        self._socket = socket
        self._spdy = spdy.SpdyConnection()
        self._errors: dict[str, int] = {}  # streams for errors, by the number of their request
        self._pairs: dict[int, _Pair] = {}  # by the stream of the data

    async def serve(self) -> None:
        """Serve the tunnel until the client closes it."""
        while (message := await self._socket.receive()) is not None:
            try:
                for event in self._spdy.receive(message):
                    if isinstance(event, spdy.GoneAway):
                        return
                    await self._take(event)
            except spdy.SpdyError:
                break
        await self._socket.close()

    async def _take(self, event: spdy.Event) -> None:
        if isinstance(event, spdy.StreamOpened):
            await self._open(event.stream, event.headers)
        elif isinstance(event, spdy.StreamData):
            await self._pass_on(event)
        elif isinstance(event, spdy.StreamReset):
            self._pairs.pop(event.stream, None)
        elif isinstance(event, spdy.Pinged):
            await self._socket.send(self._spdy.ping(event.number))

    async def _open(self, stream: int, headers: Mapping[str, str]) -> None:
        """Accept a stream; that of the data makes a pair."""
        request = headers.get(REQUEST_ID, "")
        text = headers.get(PORT, "")
        kind = headers.get(STREAM_TYPE)
        if kind not in (DATA, ERROR) or not (text.isascii() and text.isdigit()):
            await self._socket.send(self._spdy.reset(stream))
            return
        await self._socket.send(self._spdy.reply(stream))
        if kind == ERROR:
            self._errors[request] = stream
            return
        port = int(text)
        error_stream = self._errors.pop(request, 0)
        pair = _Pair(stream, error_stream, port, PortStream())
        self._pairs[stream] = pair
        try:
            await self._far_ends.connect(port)
        except (CannotConnect, NoContainers) as error:
            await self._fail(pair, error)

    async def _pass_on(self, event: spdy.StreamData) -> None:
        """Let the far end of a connection take data, and send back what it answers."""
        pair = self._pairs.get(event.stream)
        if pair is None:  # that of errors, which a client closes at once
            return
        try:
            answer = b""
            if event.data:
                answer = await self._far_ends.send(pair.stream, pair.port, event.data)
            if event.is_last:
                answer += await self._far_ends.send(pair.stream, pair.port, b"")
        except (CannotConnect, NoContainers) as error:
            await self._fail(pair, error)
            return
        is_last = event.is_last or pair.stream.is_closed
        if answer or is_last:
            await self._socket.send(self._spdy.data(pair.data, answer, is_last=is_last))
        if is_last:
            await self._end(pair)

    async def _fail(self, pair: _Pair, error: Exception) -> None:
        message = self._far_ends.failure(pair.port, error)
        await self._send_last(pair.error, message)
        await self._send_last(pair.data)
        self._pairs.pop(pair.data, None)

    async def _end(self, pair: _Pair) -> None:
        await self._send_last(pair.error)
        self._pairs.pop(pair.data, None)

    async def _send_last(self, stream: int, data: bytes = b"") -> None:
        frames = self._spdy.data(stream, data, is_last=True)
        await self._socket.send(frames)
