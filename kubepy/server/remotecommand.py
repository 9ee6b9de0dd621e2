"""``pods/exec`` and ``pods/attach`` over a WebSocket: five streams, the last of the server's is the
Status of the command.

Upstream: ``k8s.io/cri-streaming/pkg/streaming/remotecommand``,
``apiserver/pkg/util/proxy/streamtranslator.go``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api import errors
from kubepy.kubelet.inside import NoContainers
from kubepy.kubelet.sessions import STDERR, ContainerSession, StepResult
from kubepy.kubelet.terminals import LineDiscipline
from kubepy.server.websockets import (
    GOING_AWAY,
    V1,
    V1_BASE64,
    V4,
    V4_BASE64,
    V5,
    Channels,
    Upgrade,
    WebSocket,
)

if TYPE_CHECKING:
    from kubepy.api.meta import Object
    from kubepy.apiserver.client import Client
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.server.application import Application

PROTOCOLS = (V5, V4, V4_BASE64, V1, V1_BASE64, "")
STDIN_CHANNEL, STDOUT_CHANNEL, STDERR_CHANNEL, ERROR_CHANNEL = range(4)
LOOK_AGAIN = 0.5  # seconds between two looks at a process that waits
SHORTEST = 0.01


class CommandStreams(NamedTuple):
    """``PodExecOptions``: which streams a client wants.

    :ivar command: the words; empty for attach.
    """

    command: tuple[str, ...] = ()
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


def success() -> Object:
    return {"metadata": {}, "status": "Success"}


def exit_status(command: tuple[str, ...], code: int) -> Object:
    """Return the Status of a command that has ended with an exit code."""
    if code == 0:
        return success()
    words = " ".join(command)
    return {
        "metadata": {},
        "status": "Failure",
        "message": "command terminated with non-zero exit code: error executing command "
        f"[{words}], exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def upgrade(
    application: Application, streams: CommandStreams, start: Callable[[Client], ContainerSession]
) -> Upgrade:
    """Return the answer to a request for a session.

    :param start: starts it; raises Status, NoContainers.
    """

    async def serve(socket: WebSocket, protocol: str) -> None:
        await RemoteSession(application, streams, start, socket, protocol).serve()

    return Upgrade(PROTOCOLS, serve)


class RemoteSession:
    """A session at the other end of a WebSocket."""

    def __init__(
        self,
        application: Application,
        streams: CommandStreams,
        start: Callable[[Client], ContainerSession],
        socket: WebSocket,
        protocol: str,
    ) -> None:
        self._application = application
        self._streams = streams
        self._start = start
        self._channels = Channels(socket, protocol)
        self._has_json_status = protocol in (V4, V4_BASE64, V5)
        self._input: asyncio.Queue[tuple[int, bytes | None] | None] = asyncio.Queue()
        self._terminal = LineDiscipline() if streams.tty else None
        self._is_gone = False

    async def serve(self) -> None:
        """Serve the session until it ends, or its client or the server does."""
        first = STDERR_CHANNEL if self._streams.stderr else ERROR_CHANNEL
        if self._streams.stdout:
            first = STDOUT_CHANNEL
        await self._channels.send(first, b"")
        try:
            session = await self._application.write(lambda cluster: self._start(cluster.client))
        except errors.Status as error:
            await self._end(error.as_object())
            return
        except NoContainers as error:
            await self._end(errors.internal_error(str(error)).as_object())
            return
        reader = asyncio.create_task(self._read())
        try:
            await self._talk(session)
        finally:
            reader.cancel()

    async def _read(self) -> None:
        while True:
            message = await self._channels.receive()
            await self._input.put(message)
            if message is None:
                return

    async def _talk(self, session: ContainerSession) -> None:
        def step(cluster: LocalCluster) -> tuple[StepResult, float]:
            result = session.step(cluster.client)
            pause = LOOK_AGAIN
            if result.next_time is not None and cluster.clock.own is None:
                seconds = (result.next_time - cluster.clock.now()).total_seconds()
                pause = max(min(seconds, LOOK_AGAIN), SHORTEST)
            return result, pause

        while not self._is_gone:
            result, pause = await self._application.backend.write(step)
            await self._send_output(result)
            if result.exit_code is not None:
                await self._end(exit_status(self._streams.command, result.exit_code))
                return
            if self._application.stopping.is_set():
                await self._channels.close(GOING_AWAY)
                return
            await self._pass_on_input(session, pause)
        await self._application.write(lambda cluster: session.leave(cluster.client))

    async def _send_output(self, result: StepResult) -> None:
        for stream, data in result.output:
            if self._terminal is not None:
                await self._channels.send(STDOUT_CHANNEL, self._terminal.show(data))
            elif stream == STDERR and self._streams.stderr:
                await self._channels.send(STDERR_CHANNEL, data)
            elif stream != STDERR and self._streams.stdout:
                await self._channels.send(STDOUT_CHANNEL, data)

    async def _pass_on_input(self, session: ContainerSession, pause: float) -> None:
        """Wait for input, and pass on all that is there."""
        try:
            async with asyncio.timeout(pause):
                message = await self._input.get()
        except TimeoutError:
            return
        pieces: list[bytes | None] = []
        while message is not None:
            channel, data = message
            if channel == STDIN_CHANNEL and self._streams.stdin:
                pieces.append(data)
            if self._input.empty():
                break
            message = self._input.get_nowait()
        self._is_gone = message is None
        for piece in pieces:
            await self._write(session, piece)

    async def _write(self, session: ContainerSession, piece: bytes | None) -> None:
        lines: tuple[bytes | None, ...] = (piece,)
        signals: tuple[int, ...] = ()
        if self._terminal is not None and piece is not None:
            typed = self._terminal.type(piece)
            lines, signals = typed.input, typed.signals
            if typed.echo:
                await self._channels.send(STDOUT_CHANNEL, typed.echo)

        def pass_on(cluster: LocalCluster) -> None:
            for number in signals:
                session.signal(cluster.client, number)
            for line in lines:
                session.write(cluster.client, line)

        if lines or signals:
            await self._application.write(pass_on)

    async def _end(self, status: Object) -> None:
        """Send the Status of the command, and close the connection."""
        if self._has_json_status:
            data = json.dumps(status, separators=(",", ":")).encode()
            await self._channels.send(ERROR_CHANNEL, data)
        elif status["status"] != "Success":
            await self._channels.send(ERROR_CHANNEL, status["message"].encode())
        await self._channels.close()
