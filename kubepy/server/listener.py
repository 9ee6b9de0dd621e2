"""The HTTP server: uvicorn with h11, TLS, limits of time and size, and an end that finishes what
was begun.

uvicorn parses and sends; this module says which sockets it serves, and closes connections that only
cost something: those that send no request, or do not read their answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import ssl
import time
from asyncio import sslproto
from collections.abc import Callable, Iterator, MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol
from uvicorn.server import Server

from kubepy import system
from kubepy.server import clientcertificates, unread
from kubepy.server.chain import HandlerChain, is_watch
from kubepy.server.gateway import Gateway, GatewayOptions
from kubepy.server.harness import forks
from kubepy.server.memory import MemoryKeeper
from kubepy.storage import StorageError

if TYPE_CHECKING:
    from kubepy.api.meta import Object
    from kubepy.server.application import Application

HEADER_BYTES = 1024 * 1024  # ``http.DefaultMaxHeaderBytes`` of Go
HEADER_SECONDS = 32.0  # ``ReadHeaderTimeout`` of the API server
IDLE_SECONDS = 90  # ``IdleTimeout``
HANDSHAKE_SECONDS = 10.0
FLUSH_SECONDS = 30.0  # how long a closed connection may take to read the rest of its answer
BACKLOG = 1024
FINISH_SECONDS = (
    65.0  # how long requests that have begun may take when the server ends: all that they ever may
)
CLOSE_SECONDS = 2.0  # … and how long clients may then take to close their connections
MAX_CONNECTIONS = 10_000
BUFFER_BYTES = (
    16 * 1024
)  # of a connection, for what TLS decrypts: asyncio's 256 KiB would make idle ones dear
OPEN_FILES = 4 * MAX_CONNECTIONS
CONNECTED = re.compile(r"/api/v1/namespaces/[^/]+/pods/[^/]+/(attach|exec|log|portforward)")
FORCED = 128  # the exit status of a server that a signal ends at once, less the signal's number


class HttpConnection(H11Protocol):
    """A connection. It is closed when the headers of a request take too long, or are too large."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.app_state = {
            "abort": transport.abort,
            "has_unread": partial(unread.has_unread, transport),
        }
        if user := _certificate_user(transport):
            self.app_state[clientcertificates.CERTIFICATE_USER] = user
        super().connection_made(transport)
        self._expect_headers()
        if len(self.connections) > MAX_CONNECTIONS:  # room for this one, if another is idle
            idle = next(
                (
                    connection
                    for connection in self.connections
                    if isinstance(connection, HttpConnection) and connection.is_idle()
                ),
                self,
            )
            idle.transport.abort()

    def is_idle(self) -> bool:
        """Tell whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._deadline is None:  # the beginning of another request
            self._expect_headers()

    def _should_upgrade_to_ws(self) -> bool:
        """Tell whether a request for a WebSocket becomes one: what is neither a watch, nor a stream
        or the log of a pod, is answered as if the header was not there."""
        scope = cast(MutableMapping[str, Any], self.scope)
        if isinstance(self.app, Gateway):
            scope = self.app.inner_scope(scope)
        if CONNECTED.fullmatch(forks.inner_path(scope["path"])) is not None:
            return True
        return is_watch(scope)

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing of requests that do not become a WebSocket."""

    def _expect_headers(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(HEADER_SECONDS, self.close_soon)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def timeout_keep_alive_handler(self) -> None:
        self.close_soon()

    def close_soon(self) -> None:
        """Close the connection; a client that does not read what is left to be sent loses it."""
        if not self.transport.is_closing():
            self.transport.close()
        self.loop.call_later(FLUSH_SECONDS, self.transport.abort)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, or has headers that are too large, with a Status."""
        too_large = self.conn.trailing_data[0] and len(self.conn.trailing_data[0]) > HEADER_BYTES
        code = 431 if too_large else 400
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            phrase = STATUS_PHRASES[code]
            status = {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": phrase.decode(),
                "reason": "" if too_large else "BadRequest",
                "code": code,
            }
            body = json.dumps(
                {name: value for name, value in status.items() if value != ""}
            ).encode()
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
            ]
            for event in (
                h11.Response(status_code=code, headers=headers, reason=phrase),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")

        self.close_soon()


def _certificate_user(transport: asyncio.Transport) -> Object | None:
    """Return the user whose certificate a connection has; None without one."""
    secured: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    der = secured.getpeercert(binary_form=True) if secured is not None else None
    if secured is None or not der:
        return None
    return clientcertificates.user_of(secured.getpeercert() or {}, der)


class TlsFiles(NamedTuple):
    """What a server speaks TLS with.

    :ivar certificate, certificate_key: the paths of its certificate, with those of the CAs that
        follow it, and of its key.
    :ivar client_ca: the certificates that vouch for those of clients, in PEM; "": there are none.
    """

    certificate: str
    certificate_key: str
    client_ca: str = ""


class HttpServer(Server):
    """uvicorn's server on sockets of ours, which a signal ends.

    :param way: what TLS is spoken with, or the options of a gateway, without TLS.
    :param ready: is called when it listens.
    :param keep: is called every second, to put back what others have removed.
    """

    def __init__(
        self,
        application: Application,
        way: TlsFiles | GatewayOptions,
        sockets: list[socket.socket],
        ready: Callable[[], None],
        keep: Callable[[], None] = lambda: None,
    ) -> None:
        chain = HandlerChain(application)
        front: HandlerChain | Gateway = chain
        context: ssl.SSLContext | None = None
        if isinstance(way, GatewayOptions):
            front = Gateway(chain, way)
        else:
            context = tls_context(way)
        config = Config(
            front,
            interface="asgi3",
            http=HttpConnection,
            ws=WSProtocol,
            ws_ping_interval=None,  # some clients read only when they are asked to, and miss a ping
            ws_per_message_deflate=False,
            lifespan="off",
            loop="asyncio",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,  # the chain has the cluster's
            timeout_keep_alive=IDLE_SECONDS,
            h11_max_incomplete_event_size=HEADER_BYTES,
        )
        super().__init__(config)
        self.application, self.sockets = application, sockets
        self.ready, self.keep = ready, keep
        self.context = context
        self.received: list[int] = []
        self.memory = MemoryKeeper()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self.hear_of_failure)
        self.prepare_process()

        def new_protocol() -> HttpConnection:
            return HttpConnection(self.config, self.server_state, {}, loop)

        await self.application.start()
        self.servers = [
            await loop.create_server(
                new_protocol,
                sock=listener,
                ssl=self.context,
                backlog=BACKLOG,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if self.context else None,
                ssl_shutdown_timeout=FLUSH_SECONDS if self.context else None,
            )
            for listener in self.sockets
        ]
        self.started = True
        self.ready()

    def prepare_process(self) -> None:
        """Let this process have many connections that cost little."""
        system.allow_open_files(OPEN_FILES)
        sslproto.SSLProtocol.max_size = BUFFER_BYTES

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            self.application.check()
            self.memory.check(len(self.server_state.connections), time.monotonic())
            try:
                self.keep()
            except (StorageError, OSError) as error:
                self.application.log(f"error: {error}")
        return await super().on_tick(counter)

    def hear_of_failure(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log a failure that nobody else hears of; clients that fail, as in the handshake, are no
        news."""
        error = context.get("exception")
        if isinstance(error, Exception) and not isinstance(error, OSError):
            self.application.log_defect(context.get("message", "event loop"), error)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more, answer the requests that have begun, end streams, close all
        connections."""
        for server in self.servers:
            server.close()
        await self.application.stop()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if tasks := list(self.server_state.tasks):
            await asyncio.wait(tasks, timeout=FINISH_SECONDS)
        end = time.monotonic() + CLOSE_SECONDS
        while self.server_state.connections and time.monotonic() < end:
            await asyncio.sleep(0.01)
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM)
        with system.signals_in(asyncio.get_running_loop(), numbers, self.receive_signal):
            yield

    def receive_signal(self, number: int) -> None:
        """End in order at the first signal, at once at the second."""
        if self.received:
            os._exit(FORCED + number)
        self.received.append(number)
        self.should_exit = True


class ThreadServer(HttpServer):
    """A server in a thread of somebody else's process, whose signals and limits are not its own:
    ``should_exit`` ends it."""

    def prepare_process(self) -> None:
        """Leave the process as it is."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def tls_context(files: TlsFiles) -> ssl.SSLContext:
    """Make the context of a server. Raises OSError, ssl.SSLError for files that are not what they
    should be."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.certificate, files.certificate_key)
    context.set_alpn_protocols(["http/1.1"])
    if files.client_ca:  # a client may have a certificate, or a token
        context.load_verify_locations(cadata=files.client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
        strict = int(ssl.VerifyFlags.VERIFY_X509_STRICT)  # Go is not, and trusts each of them
        partial_chain = int(ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN)
        context.verify_flags = ssl.VerifyFlags(int(context.verify_flags) & ~strict | partial_chain)
    return context


def listen(address: str, port: int) -> list[socket.socket]:
    """Return the sockets of an address. Raises OSError."""
    sockets: list[socket.socket] = []
    for family, kind, protocol, _, place in socket.getaddrinfo(
        address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    ):
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            where: Any = (
                (place[0], sockets[0].getsockname()[1], *place[2:])
                if sockets and not port
                else place
            )
            listener.bind(where)
            listener.listen(
                BACKLOG
            )  # who comes before the server is ready waits, and is not refused
        except OSError:
            listener.close()
            for other in sockets:
                other.close()
            raise
        listener.setblocking(False)
        sockets.append(listener)

    return sockets


def serve(
    application: Application,
    files: TlsFiles,
    sockets: list[socket.socket],
    ready: Callable[[], None],
    keep: Callable[[], None] = lambda: None,
) -> list[int]:
    """Serve until a signal; return the signals that came. Raises what :meth:`Application.start`
    and :func:`tls_context` raise."""
    server = HttpServer(application, files, sockets, ready, keep)
    return run(server)


def serve_gateway(
    application: Application,
    options: GatewayOptions,
    sockets: list[socket.socket],
    ready: Callable[[], None],
) -> list[int]:
    """Serve a gateway, without TLS, until a signal; return the signals that came. Raises what
    :meth:`Application.start` raises."""
    server = HttpServer(application, options, sockets, ready)
    return run(server)


def run(server: HttpServer) -> list[int]:
    """Serve until the server is to end; return the signals that came. Raises what
    :meth:`Application.start` raises."""
    try:
        asyncio.run(server.serve())
    finally:
        server.application.close()
    return server.received
