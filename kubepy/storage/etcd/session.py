"""Calls to etcd by whichever endpoint answers.

There is one connection at a time. Where it ends, the next call connects again: to the endpoint
after the one that failed, round and round for as long as a call may take.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from kubepy.lazy import lazy_imports
from kubepy.storage.etcd.address import Address, shown_endpoint
from kubepy.storage.etcd.channel import PlainChannel, TlsChannel, connect, tls_context
from kubepy.storage.etcd.errors import (
    EtcdCompactedError,
    EtcdError,
    LeaseLostError,
    UncertainError,
    UnreachableError,
)
from kubepy.storage.etcd.http2 import (
    ByteChannel,
    CallFailed,
    Connection,
    ConnectionLost,
    Stream,
    reason_of,
)

with lazy_imports():
    from kubepy.storage.etcd import maintenance

Answer = TypeVar("Answer")

_INVALID, _NOT_FOUND, _OUT_OF_RANGE, _UNAVAILABLE, _UNAUTHENTICATED = 3, 5, 11, 14, 16
# The statuses with which a server says that it cannot, not that the call is wrong: cancelled,
# unknown (a server that stops), the time is up, aborted, internal (a broken stream), unavailable.
TRANSIENT = frozenset((1, 4, 10, 13, _UNAVAILABLE))
_PAUSE = 0.05  # between tries to connect
_LONGEST_PAUSE = 0.5
_STALE_TOKENS = (
    "invalid auth token",
    "revision in header is old",  # of users and roles
    "revision of the authorization",
    "auth revision",
)
_AUTHENTICATE = "/etcdserverpb.Auth/Authenticate"


class EtcdSession:
    """The connection to etcd, and how to get another one.

    :ivar timeout: seconds for each call.
    :ivar was_connected: etcd has answered: it may come back.
    """

    def __init__(self, address: Address, timeout: float) -> None:
        self.address = address
        self.timeout = timeout
        self._tls = tls_context(address) if address.tls else None
        self._connecting = threading.Lock()
        self._connection: Connection | None = None
        self._left: list[Connection] = []
        self._next_endpoint = 0
        self.was_connected = False
        self.is_closed = False
        self._token = ""

    def connection(self, end: float, *, is_patient: bool = True) -> Connection:
        """Return a connection that can be used.

        :param end: until when etcd may come back, if it was there already. One that was never there
            is an error once each endpoint was tried.
        :param is_patient: do not only try each endpoint once.

        Raises UnreachableError.
        """
        connection = self._connection
        if connection is not None and connection.is_usable:
            return connection
        with self._connecting:
            if self.is_closed:
                raise UnreachableError("the connection to etcd was closed")
            if self._connection is None or not self._connection.is_usable:
                self._connection = self._connect(end, is_patient and self.was_connected)
                self.was_connected = True
            if self.is_closed:  # meanwhile
                self._connection.close()
            return self._connection

    def _connect(self, end: float, is_patient: bool) -> Connection:
        pause = _PAUSE
        while True:
            reasons = []
            for _ in self.address.endpoints:
                host, port = self.address.endpoints[self._next_endpoint]
                self._next_endpoint = (self._next_endpoint + 1) % len(self.address.endpoints)
                try:
                    return self._connect_to(host, port, max(0.1, end - time.monotonic()))
                except OSError as error:
                    reasons.append(f"{shown_endpoint(host, port)}: {reason_of(error)}")
            if not is_patient or time.monotonic() + pause >= end or self.is_closed:
                raise self.unreachable(", ".join(reasons))
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _connect_to(self, host: str, port: int, timeout: float) -> Connection:
        # An endpoint that swallows everything leaves time for the others
        timeout /= len(self.address.endpoints)
        connected = connect(host, port, timeout)
        channel: ByteChannel = PlainChannel(connected)
        if self._tls is not None:
            secured = TlsChannel(connected, self._tls, self.address.server_name or host)
            try:
                secured.handshake(timeout)
                if secured.protocol != "h2":
                    raise OSError("the server speaks TLS, but not HTTP/2 in it")
            except OSError:
                connected.close()
                raise
            channel = secured
        scheme = "https" if self._tls is not None else "http"
        connection = Connection(channel, shown_endpoint(host, port), scheme)
        connection.await_settings(timeout)
        return connection

    def unreachable(self, reason: str) -> UnreachableError:
        """Return the error for an etcd that does not answer."""
        shown = self.address.shown_endpoints
        reason = reason.removeprefix(f"{shown}: ")  # of the only endpoint
        return UnreachableError(f"etcd at {shown} cannot be reached: {reason}", _UNAVAILABLE)

    def metadata(self) -> list[tuple[str, str]]:
        """Return the headers that say who asks."""
        if not self.address.user:
            return []
        if not self._token:
            request = maintenance.names(self.address.user, self.address.password)
            call = UnaryCall(self, _AUTHENTICATE, request, is_read=True, has_user=False)
            self._token = maintenance.first_text(call.result(), 2)
        return [("token", self._token)]

    def forget_stale_token(self, failed: CallFailed) -> bool:
        """Tell whether the server only wants another token; then authenticate anew before the next
        call."""
        is_stale = (
            bool(self.address.user)
            and failed.code in (_INVALID, _UNAUTHENTICATED)
            and any(words in str(failed) for words in _STALE_TOKENS)
        )
        if is_stale:
            self._token = ""
        return is_stale

    def leave(self, connection: Connection) -> None:
        """Use another connection from now on: this server cannot. What is under way there ends as
        it may."""
        connection.retire()
        self._left = [left for left in self._left if not left.is_over]
        self._left.append(connection)

    def ask(
        self, path: str, request: bytes, read: Callable[[bytes], Answer], *, is_read: bool
    ) -> Answer:
        """Make a call, wait for its answer and read it."""
        return read(UnaryCall(self, path, request, is_read=is_read).result())

    def close(self) -> None:
        """End the connection, and all calls."""
        self.is_closed = True
        for connection in (self._connection, *self._left):
            if connection is not None:
                connection.close()


class UnaryCall:
    """A call with one answer, that is under way.

    It is sent again when it has not been done for sure, a read also when that is not known.
    """

    def __init__(
        self,
        session: EtcdSession,
        path: str,
        request: bytes,
        *,
        is_read: bool,
        has_user: bool = True,
    ) -> None:
        self._session = session
        self._path = path
        self._request = request
        self._is_read = is_read
        self._has_user = has_user
        self._end = time.monotonic() + session.timeout
        self._connection: Connection | None = None
        self._stream: Stream | None = None

    def send(self) -> None:
        """Send the call without waiting for its answer. Raises UnreachableError."""
        while True:
            connection = self._session.connection(self._end)
            metadata = self._session.metadata() if self._has_user else []
            try:
                self._stream = connection.call(
                    self._path,
                    self._request,
                    metadata,
                    timeout=max(0.001, self._end - time.monotonic()),
                )
            except ConnectionLost as lost:
                self._check_time(str(lost))
            else:
                self._connection = connection
                return

    def result(self, timeout: float | None = None) -> bytes:
        """Wait for the answer.

        Raises TimeoutError when it has not come within ``timeout``, which may be shorter than that
        of the call; then one can wait again.
        """
        until = self._end if timeout is None else min(self._end, time.monotonic() + timeout)
        while True:
            try:
                return self._answer(until)
            except ConnectionLost as lost:
                self._recover(str(lost), is_unsent=lost.is_unsent)
            except CallFailed as failed:
                if self._session.forget_stale_token(failed) or "too many requests" in str(failed):
                    self._recover(str(failed), is_unsent=True)
                elif failed.code in TRANSIENT or "server stopped" in str(failed):
                    if self._connection is not None:
                        self._session.leave(self._connection)
                    self._recover(str(failed), is_unsent=False)
                else:
                    raise error_of(failed, self._session.address) from None

    def _answer(self, until: float) -> bytes:
        if self._stream is None:
            self.send()
        stream, connection = self._stream, self._connection
        assert stream is not None
        assert connection is not None
        try:
            answer = stream.message(max(0.0, until - time.monotonic()))
        except TimeoutError:
            if until < self._end:
                raise
            stream.cancel()
            if time.monotonic() - connection.heard >= self._session.timeout / 2:
                connection.fail("the server does not answer")
            raise ConnectionLost("no answer in time", is_unsent=False) from None
        if answer is None:
            raise ConnectionLost("the connection was closed", is_unsent=False)
        return answer

    def _recover(self, reason: str, *, is_unsent: bool) -> None:
        """Let the call be sent again, or raise what there is to tell."""
        if not is_unsent and not self._is_read:
            shown = self._session.address.shown_endpoints
            raise UncertainError(
                f"etcd at {shown}: it is not known whether a write was done: {reason}",
                _UNAVAILABLE,
            )
        self._check_time(reason)
        self._stream = None

    def _check_time(self, reason: str) -> None:
        if time.monotonic() + _PAUSE >= self._end:
            raise self._session.unreachable(reason)
        time.sleep(_PAUSE)


def error_of(failed: CallFailed, address: Address) -> Exception:
    """Return the error for what etcd has answered."""
    message = str(failed).removeprefix("etcdserver: ")
    shown = f"etcd at {address.shown_endpoints}: {message}"
    if failed.code == _OUT_OF_RANGE and "compacted" in message:
        return EtcdCompactedError(shown)
    if failed.code == _NOT_FOUND and "lease" in message:
        return LeaseLostError(shown, failed.code)
    if "user name is empty" in message:
        shown = f"etcd at {address.shown_endpoints} wants a user: user=NAME"
    return EtcdError(shown, failed.code)
