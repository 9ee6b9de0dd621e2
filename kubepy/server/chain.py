"""The one ASGI callable of ``kubepy serve``: reads a request within the limits, has it answered,
sends the answer.

Upstream: the chain of filters in ``apiserver/pkg/server/config.go`` (``DefaultBuildHandlerChain``):
request info, audit id, cache control, panic recovery, deadline, authentication, warnings,
authorization.
"""

from __future__ import annotations

import asyncio
import gzip
import hmac
import random
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qs, urlencode
from uuid import UUID

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.api.values import goformat
from kubepy.apiserver.authorization import PRIVILEGED_GROUP
from kubepy.apiserver.cluster import LocalCluster
from kubepy.lazy import lazy_imports
from kubepy.results import AnsweredRequest
from kubepy.server import (
    authentication,
    clockwait,
    health,
    livepage,
    negotiation,
    requestinfo,
    routes,
    watch,
)
from kubepy.server.activity import OpenStream, Visit, is_observer
from kubepy.server.application import Application
from kubepy.server.backend import BackendClosed
from kubepy.server.clientcertificates import CERTIFICATE_USER
from kubepy.server.harness import forks
from kubepy.server.harness.endpoints import Harness, is_for_harness
from kubepy.server.messages import (
    GZIP_HEADERS,
    Answer,
    HandlerContext,
    Headers,
    HttpRequest,
    RequestInfo,
    Response,
    StreamResponse,
)
from kubepy.server.streaming import first_ended, wait_for_disconnect
from kubepy.server.websockets import (
    GOING_AWAY,
    PROTOCOLS,
    WEBSOCKET,
    Upgrade,
    WebSocket,
    split_protocols,
)
from kubepy.storage import LockTimeoutError, RemovedError, StorageError

with lazy_imports():
    from kubepy.server import watchsockets

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_BODY = 3 * 1024 * 1024  # ``MaxRequestBodyBytes``
MAX_DISCARDED = (
    64 * 1024 * 1024
)  # of a body that is too large: a client that is still sending would miss the answer
REQUEST_SECONDS = 60.0  # ``RequestTimeout``
SEND_SECONDS = 30.0  # how long a client may take to read one piece of an answer
PIECE_BYTES = 256 * 1024
END_SECONDS = 2.0  # … and the end of one
GZIP_BYTES = 128 * 1024  # ``defaultGzipThresholdBytes``
WARNING_RUNES, ALL_WARNINGS_RUNES = 256, 4 * 1024  # ``truncateItemRunes``, ``truncateAtTotalRunes``
SWITCHED = 101
LOG = "log"  # the subresource
INTERNAL_ERROR = 1011  # the code with which a WebSocket is closed
CLOSING = (408, 413, 504)
READING = ("get", "list", "watch", "head", "options")
LONG_RUNNING_SUBRESOURCES = ("attach", "exec", "proxy", "log", "portforward")


class Disconnected(Exception):
    """The client has gone before its request was whole."""


class HandlerChain:
    """The way of every request of an application."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._timelines = livepage.LiveTimelines()
        self._date = ClusterDate(application)
        self._harness = Harness(application, HandlerChain)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        activity = self._application.activity
        if activity is None or is_observer(scope["path"]):
            await self._serve(scope, receive, send, None)
            return
        async with activity.request() as visit:
            await self._serve(scope, receive, send, visit)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, visit: Visit | None) -> None:
        """Answer one request.

        :param visit: counts it, where it counts.
        """
        if scope["type"] == WEBSOCKET:
            send = as_rejection(send)
        request = request_of(scope)
        info = RequestInfo(False, request.method.lower(), request.path)
        warnings: dict[str, None] = {}
        protocol = ""
        try:
            info = requestinfo.parse_request_info(request)
            answer = await self.answer(request, info, receive, warnings)
            if isinstance(answer, StreamResponse) and scope["type"] == WEBSOCKET:
                abort = scope.get("state", {}).get("abort", nothing)
                if info.subresource == LOG:
                    answer = watchsockets.log_upgrade_of(answer, SEND_SECONDS, abort)
                else:
                    answer = watchsockets.upgrade_of(request, answer, SEND_SECONDS, abort)
            if isinstance(answer, Upgrade):
                protocol = chosen_protocol(scope, answer)
        except Disconnected:
            return
        except Exception as error:
            answer = self._failure(request, info, error)

        if isinstance(answer, Upgrade):
            self._count(request, info, SWITCHED)
            touch = visit.touch if visit is not None else nothing
            socket = WebSocket(receive, send, touch)
            with as_stream(visit, scope, answer.is_complete):
                await self._serve_upgrade(answer, protocol, socket)
            return
        answer = answer._replace(headers=(*answer.headers, *warning_headers(warnings)))
        self._count(request, info, answer.status)
        headers = {
            "audit-id": request.header("audit-id") or new_id(),
            "cache-control": "no-cache, private",
            "date": self._date.header(),
        }
        sender = Sender(scope, send)
        if isinstance(answer, Response):
            await sender.send_response(answer, headers)
        else:
            with as_stream(visit, scope, answer.is_complete) as stream:
                if visit is not None and stream is not None:
                    answer = answer._replace(pieces=visit.counted(answer.pieces, stream))
                await self._stream(answer, headers, receive, sender)

    def _count(self, request: HttpRequest, info: RequestInfo, status: int) -> None:
        health.count_request(self._application.requests, request, info, status)
        hear_request = self._application.hear_request
        if hear_request is None:
            return
        query = urlencode(request.query, doseq=True)
        agent = request.header("user-agent")
        hear_request(AnsweredRequest(request.method, request.path, query, agent, status))

    async def _serve_upgrade(self, upgrade: Upgrade, protocol: str, socket: WebSocket) -> None:
        """Serve a WebSocket until it is closed; a defect closes it."""
        await socket.accept(protocol)
        try:
            await upgrade.serve(socket, protocol)
        except BackendClosed:
            await socket.close(GOING_AWAY)
        except (StorageError, errors.Status) as error:
            self._application.log(f"error: a WebSocket: {error}")
            await socket.close(INTERNAL_ERROR)
        except OSError:
            return  # the client has gone
        except Exception as error:
            self._application.log_defect("a WebSocket", error)
            await socket.close(INTERNAL_ERROR)

    async def answer(
        self, request: HttpRequest, info: RequestInfo, receive: Receive, warnings: dict[str, None]
    ) -> Answer:
        """Answer a request in time. Raises Status, StorageError, Disconnected."""
        if is_long_running(info) or is_for_harness(info):
            return await self._handle(request, info, receive, warnings)
        try:
            async with asyncio.timeout(request_seconds(request)):
                return await self._handle(request, info, receive, warnings)
        except TimeoutError:
            raise errors.Timeout(
                "Timeout: request did not complete within the allotted timeout"
            ) from None

    async def _handle(
        self, request: HttpRequest, info: RequestInfo, receive: Receive, warnings: dict[str, None]
    ) -> Answer:
        application = self._application
        user: Object | None = None

        def admit(cluster: LocalCluster) -> Object:
            return authentication.admit(request, info, application, cluster)

        def run(cluster: LocalCluster) -> Answer:
            """Handle the request in a thread of the backend."""
            served = cluster.for_requests_of(
                user or admit(cluster), lambda text: warnings.update({text: None})
            )
            response = routes.find_handler(info)(HandlerContext(whole, info, served, application))
            return compressed(request, response) if isinstance(response, Response) else response

        if info.path == clockwait.PATH:
            await application.read(admit)
            return clockwait.wait(application, request)
        if is_for_harness(info):
            return await self._handle_for_harness(request, info, receive, warnings)
        if livepage.is_page(request):
            return livepage.page()
        if info.path == livepage.TIMELINE:
            answer = await livepage.timeline(self._timelines, application, request, info)
            return compressed(request, answer) if isinstance(answer, Response) else answer
        if info.is_resource_request and info.verb == "watch":
            return await watch.watch(application, request, info, await application.read(admit))
        whole = request
        if request.method not in ("GET", "HEAD"):  # of others a body means nothing
            if not self._is_administrator(
                request
            ):  # nobody else may make the server read a large body
                user = await application.read(admit)
            whole = await with_body(request, receive)

        return await (application.read if info.verb in READING else application.write)(run)

    async def _handle_for_harness(
        self, request: HttpRequest, info: RequestInfo, receive: Receive, warnings: dict[str, None]
    ) -> Answer:
        """Answer a request of a harness, or one for a fork as the server of the fork does."""
        harness = self._harness
        below = forks.request_below(request)
        if below is not None:
            fork_id, inner = below
            chain = await harness.forks.get(fork_id).chain()
            inner_info = requestinfo.parse_request_info(inner)
            return await chain.answer(inner, inner_info, receive, warnings)

        def check_user(cluster: LocalCluster) -> None:
            harness.check_user(request, info, cluster)

        await self._application.read(check_user)
        whole = await with_body(request, receive)
        async with listening(receive) as has_gone:
            answer = await harness.answer(whole, info, has_gone)
        return compressed(request, answer)

    def _is_administrator(self, request: HttpRequest) -> bool:
        """Tell whether a request has the administrator's token, or a certificate of one."""
        user = request.certificate_user
        if user is not None:
            return PRIVILEGED_GROUP in user["groups"]
        expected, given = f"Bearer {self._application.token}", request.header("authorization")
        return hmac.compare_digest(expected.encode(), given.encode(errors="surrogateescape"))

    # --- answers

    def _failure(self, request: HttpRequest, info: RequestInfo, error: Exception) -> Response:
        """Return the answer to a request that failed; a defect is logged."""
        if isinstance(error, errors.Status):
            return negotiation.error_response(request, error)
        if isinstance(error, RecursionError):
            return negotiation.error_response(
                request, errors.BadRequest("the object is nested too deeply")
            )

        if isinstance(error, (LockTimeoutError, RemovedError)):
            unavailable = errors.ServiceUnavailable(str(error))
            unavailable.retry_after_seconds = 1
            return negotiation.error_response(request, unavailable)

        if isinstance(error, (StorageError, OSError)) and health.is_check(info):
            return health.check(request, info)
        if isinstance(error, (StorageError, OSError)):
            self._application.log(f"error: {request.method} {request.path}: {error}")
            return negotiation.error_response(request, errors.internal_error(str(error)))
        self._application.log_defect(f"{request.method} {request.path}", error)
        return negotiation.error_response(
            request, errors.internal_error(f"{type(error).__name__}: {error}")
        )

    async def _stream(
        self, answer: StreamResponse, headers: Mapping[str, str], receive: Receive, sender: Sender
    ) -> None:
        """Send a stream until it ends, the client has gone or does not read, or the server
        stops."""

        async def forward() -> None:
            await sender.send(start_message(answer, headers))
            async for piece in answer.pieces:
                await sender.send({"type": "http.response.body", "body": piece, "more_body": True})

        error = await first_ended(
            answer.pieces, forward(), wait_for_disconnect(receive), answer.stopping.wait()
        )
        if error is not None and not isinstance(error, BackendClosed):
            if not isinstance(error, TimeoutError):
                self._application.log_defect("a stream", error)
            sender.abort()  # the client must not take what it has for the whole
        else:
            with suppress(TimeoutError):
                await sender.send(
                    {"type": "http.response.body", "body": b"", "more_body": False},
                    patience=END_SECONDS,
                )


class ClusterDate:
    """Makes the header ``Date``: the time of the cluster, by which it stamps its objects."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._second = 0
        self._header = ""

    def header(self) -> str:
        second = int(self._application.clock.now().timestamp())
        if second != self._second or not self._header:
            self._second = second
            self._header = formatdate(second, usegmt=True)
        return self._header


class Sender:
    """Sends to one client, with patience."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send = send
        self._abort: Callable[[], object] = scope.get("state", {}).get("abort", lambda: None)

    async def send(self, *messages: Message, patience: float | None = None) -> None:
        """Send messages; a client that does not read loses its connection. Raises TimeoutError."""
        try:
            async with asyncio.timeout(SEND_SECONDS if patience is None else patience):
                for message in messages:
                    await self._send(message)
        except TimeoutError:
            self.abort()
            raise

    async def send_response(self, answer: Response, headers: Mapping[str, str]) -> None:
        """Send a whole answer, each piece of it after the one before has gone."""
        body, size = memoryview(answer.body), len(answer.body)
        first = start_message(answer, {**headers, "content-length": str(size)})
        with suppress(TimeoutError):
            if size <= PIECE_BYTES:
                await self.send(first, {"type": "http.response.body", "body": answer.body})
                return
            await self.send(first)
            for start in range(0, size, PIECE_BYTES):
                await self.send(
                    {
                        "type": "http.response.body",
                        "body": bytes(body[start : start + PIECE_BYTES]),
                        "more_body": True,
                    }
                )
                await asyncio.sleep(0)  # others, and the news that the client has gone
            await self.send({"type": "http.response.body", "body": b""})

    def abort(self) -> None:
        """Close the connection at once."""
        self._abort()


# --- requests -------------------------------------------------------------------------------------


def request_of(scope: Scope) -> HttpRequest:
    """Return the request of an ASGI scope, still without its body."""
    lines = tuple(
        (name.decode("latin-1"), value.decode("utf-8", "surrogateescape"))
        for name, value in scope["headers"]
    )
    headers: dict[str, str] = {}
    for name, value in lines:
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if scope["type"] == WEBSOCKET:  # ASGI leaves out what makes it one
        headers |= {
            "connection": "upgrade",
            "upgrade": WEBSOCKET,
            PROTOCOLS: ",".join(scope["subprotocols"]),
        }
    query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    path = (
        re.sub("^https?://[^/?]*", "", scope["raw_path"].decode("latin-1")) or "/"
    )  # as a client of a proxy sends it
    user = scope.get("state", {}).get(CERTIFICATE_USER)
    return HttpRequest(
        scope.get("method", "GET"),
        path,
        query,
        headers,
        header_lines=lines,
        certificate_user=user,
    )


@contextmanager
def as_stream(
    visit: Visit | None, scope: Scope, is_complete: Callable[[], bool]
) -> Iterator[OpenStream | None]:
    """Let a request count as a stream during a block, where it counts."""
    if visit is None:
        yield None
        return
    stream = OpenStream(is_complete, scope.get("state", {}).get("has_unread", nothing))
    with visit.as_stream(stream):
        yield stream


def nothing() -> bool:
    """Return that there is nothing."""
    return False


def is_watch(scope: Scope) -> bool:
    """Tell whether a request is for a watch, perhaps one of a fork."""
    request = request_of(scope)
    inner = request._replace(path=forks.inner_path(request.path))
    try:
        info = requestinfo.parse_request_info(inner)
    except errors.Status:  # the handler says what is wrong with it
        return False
    return info.is_resource_request and info.verb == "watch"


def as_rejection(send: Send) -> Send:
    """Return a function that sends the answer to a request for a WebSocket as ASGI wants it."""

    async def send_rejection(message: Message) -> None:
        kind = message["type"]
        if kind.startswith("http.response."):
            message = {**message, "type": f"websocket.{kind}"}
        await send(message)

    return send_rejection


def chosen_protocol(scope: Scope, upgrade: Upgrade) -> str:
    """Return the protocol in which a WebSocket is to be spoken. Raises BadRequest for a request
    that is for none, Forbidden if the client has no such protocol."""
    if scope["type"] != WEBSOCKET:
        raise errors.BadRequest("Upgrade request required")
    protocols, _ = split_protocols(scope["subprotocols"])
    return upgrade.choose(protocols)


@asynccontextmanager
async def listening(receive: Receive) -> AsyncIterator[Callable[[], bool]]:
    """Give a block a function that tells whether the client has gone."""
    waiting = asyncio.create_task(wait_for_disconnect(receive))
    try:
        yield waiting.done
    finally:
        waiting.cancel()
        await asyncio.wait([waiting])


async def with_body(request: HttpRequest, receive: Receive) -> HttpRequest:
    """Return a request with its whole body. Raises RequestEntityTooLarge, Disconnected."""
    body, size, more = bytearray(), 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        size += len(message.get("body", b""))
        if size <= MAX_BODY:
            body += message.get("body", b"")
        elif size > MAX_DISCARDED:
            break
        more = message.get("more_body", False)
    if size > MAX_BODY:
        raise errors.RequestEntityTooLarge(f"Request entity too large: limit is {MAX_BODY}")
    return request._replace(body=bytes(body))


def is_long_running(info: RequestInfo) -> bool:
    """Tell whether a request may take as long as it likes (``BasicLongRunningRequestCheck``)."""
    return info.is_resource_request and (
        info.verb in ("watch", "proxy") or info.subresource in LONG_RUNNING_SUBRESOURCES
    )


def request_seconds(request: HttpRequest) -> float:
    """Return the time that a request may take (``WithRequestDeadline``). Raises BadRequest."""
    if not (text := request.parameter("timeout")):
        return REQUEST_SECONDS
    try:
        seconds = goformat.parse_duration(text)
    except ValueError as error:
        raise errors.BadRequest(f"invalid timeout specified in the request URL - {error}") from None
    return seconds if 0 < seconds < REQUEST_SECONDS else REQUEST_SECONDS


# --- answers --------------------------------------------------------------------------------------


def compressed(request: HttpRequest, response: Response) -> Response:
    """Return a large answer in gzip, if the client accepts that (``deferredResponseWriter``)."""
    if (
        len(response.body) <= GZIP_BYTES
        or not request.accepts_gzip
        or any(name.lower() == "content-encoding" for name, _ in response.headers)
    ):
        return response
    return response._replace(
        body=gzip.compress(response.body, 1, mtime=0), headers=(*response.headers, *GZIP_HEADERS)
    )


def warning_headers(warnings: Iterable[str]) -> Headers:
    """Return the headers of warnings, cut short where they are long together (``warning.go``)."""
    texts = [text for text in warnings if text]
    if sum(map(len, texts)) > ALL_WARNINGS_RUNES:
        texts = [text[:WARNING_RUNES] for text in texts][: ALL_WARNINGS_RUNES // WARNING_RUNES]
    quoted = (
        "".join(
            " " if ord(character) < 32 or ord(character) == 127 else character for character in text
        )
        .replace("\\", "\\\\")
        .replace('"', '\\"')
        for text in texts
    )
    return tuple(("warning", f'299 - "{text}"') for text in quoted)


def start_message(answer: Response | StreamResponse, headers: Mapping[str, str]) -> Message:
    """Return the first message of an answer. A connection on which a body may still come is closed
    after it."""
    if answer.status in CLOSING:
        headers = {**headers, "connection": "close"}
    own = {name.lower() for name, _ in answer.headers}
    pairs = [
        *((name, value) for name, value in headers.items() if name not in own),
        *([("content-type", answer.content_type)] if answer.content_type else []),
        *answer.headers,
    ]
    return {
        "type": "http.response.start",
        "status": answer.status,
        "headers": [
            (name.lower().encode(), value.encode("utf-8", "replace")) for name, value in pairs
        ],
    }


def new_id() -> str:
    """Return a random UUID, for the header ``Audit-Id``."""
    return str(UUID(int=random.getrandbits(128), version=4))
