"""A connection of HTTP/2 (RFC 9113) for calls of gRPC, which all threads share.

Each call is a stream: a request of one message, and messages that come until the trailers. A thread
of the connection reads what comes and hands it to the streams. What is sent is sent by the thread
of the caller.

Locks: ``_sending`` is held while frames are written, so that streams open in the order of their
numbers; ``_state`` guards everything else, and is never held while something is sent.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from struct import Struct
from struct import error as StructError
from typing import Protocol

from kubepy.storage.etcd import hpack

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _PRIORITY, _RESET, _SETTINGS, _PUSH, _PING, _GOAWAY, _WINDOW, _CONTINUATION = (
    range(10)
)
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITIZED = 1, 1, 4, 8, 32
_CANCEL, _REFUSED = 8, 7

_HEADER_TABLE_SIZE, _ENABLE_PUSH, _MAX_STREAMS, _INITIAL_WINDOW, _MAX_FRAME = range(1, 6)
_STREAM_WINDOW = 4 << 20
_CONNECTION_WINDOW = 64 << 20
_FIRST_WINDOW = 65_535  # as a connection begins, in both directions
_SENT_FRAME = 16_384
_SEND_TIMEOUT = 10.0  # seconds for what has no time of its own
_READ_FRAME = 1 << 20
# Seconds of silence after which a server is asked whether it is there: etcd takes it amiss more
# often than every 5 seconds, and where nothing is under way at all.
KEEPALIVE = 6.0

_FRAME = Struct(">HBBBL")  # the length in three bytes, type, flags, stream
_SETTING = Struct(">HL")
_NUMBER = Struct(">L")
_PREFIX = Struct(">BL")  # of a message: whether it is compressed, its length


class ByteChannel(Protocol):
    """Bytes in both directions; an OSError ends it."""

    def receive(self, timeout: float) -> bytes:
        """Wait for some bytes; return b"" at the end. Raises TimeoutError."""

    def send(self, data: bytes) -> None:
        """Send all bytes."""

    def stop(self) -> None:
        """End both directions, from any thread: whoever waits for bytes gets the end."""

    def close(self) -> None:
        """Let go of the channel; by the thread that receives."""


class ConnectionLost(Exception):
    """The connection ended before the call did; the message says why.

    :ivar is_unsent: the server has not begun with the call, and never will.
    """

    def __init__(self, reason: str, *, is_unsent: bool) -> None:
        super().__init__(reason)
        self.is_unsent = is_unsent


class CallFailed(Exception):
    """The server answered with a status that is not OK.

    :ivar code: gRPC's.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Stream:
    """A call that is under way."""

    def __init__(self, connection: Connection, number: int, window: int) -> None:
        self.connection = connection
        self.number = number
        self.send_window = window
        self.changed = threading.Condition(connection.state)
        self._messages: deque[bytes] = deque()
        self._part = bytearray()  # of a message that has not come whole
        self._headers: dict[str, str] = {}
        self._unread = 0  # bytes that have come and for which the server has got no window yet
        self.is_over = False
        self._failure: Exception | None = None

    def message(self, timeout: float | None) -> bytes | None:
        """Wait for the next message; return None when the call has ended well, or was cancelled.

        Raises TimeoutError, CallFailed, ConnectionLost.
        """
        end = None if timeout is None else time.monotonic() + timeout
        with self.changed:
            while not self._messages and not self.is_over:
                rest = None if end is None else end - time.monotonic()
                if rest is not None and rest <= 0:
                    raise TimeoutError
                self.changed.wait(rest)
            if self._messages:
                message = self._messages.popleft()
            elif self._failure is not None:
                raise self._failure
            else:
                return None
            window = self._window_to_open()
        if window:
            self.connection.open_window(self.number, window)
        return message

    def cancel(self) -> None:
        """End the call, from any thread: whoever waits for its next message gets None."""
        self.connection.cancel(self)

    # With the state of the connection locked:

    def take_data(self, data: bytes) -> int:
        """Add what has come; return how much more may be sent then. Where messages wait to be
        taken, that is nothing: a slow reader stops its server."""
        self._unread += len(data)
        part = self._part
        part += data
        while len(part) >= _PREFIX.size:
            is_compressed, size = _PREFIX.unpack_from(part)
            end = _PREFIX.size + size
            if is_compressed:
                self.end(CallFailed(13, "the answer is compressed"))
                return 0
            if len(part) < end:
                break
            self._messages.append(bytes(part[_PREFIX.size : end]))
            del part[:end]
        self.changed.notify_all()
        return self._window_to_open()

    def _window_to_open(self) -> int:
        if self._messages or self._unread < _STREAM_WINDOW // 2 or self.is_over:
            return 0
        window = self._unread
        self._unread = 0
        return window

    def take_headers(self, headers: dict[str, str]) -> None:
        self._headers |= headers

    def finish(self) -> None:
        """End the stream as its trailers say."""
        status = self._headers.get("grpc-status")
        if status == "0":
            self.end(None)
        elif status is not None and status.isdigit():
            message = _unquoted(self._headers.get("grpc-message", ""))
            self.end(CallFailed(int(status), message or f"gRPC status {status}"))
        else:
            http_status = self._headers.get(":status", "?")
            self.end(CallFailed(2, f"the server answers HTTP status {http_status}: it is no etcd"))

    def end(self, failure: Exception | None) -> None:
        if not self.is_over:
            self.is_over = True
            self._failure = failure
            self.changed.notify_all()


class Connection:
    """A connection over a channel that is open.

    :ivar state: the lock of everything that is not sent.
    """

    def __init__(self, channel: ByteChannel, authority: str, scheme: str) -> None:
        self.state = threading.Lock()
        self._sending = threading.Lock()
        self._changed = threading.Condition(self.state)  # windows and the number of streams
        self._channel = channel
        self._headers = hpack.encode(
            (
                (":method", "POST"),
                (":scheme", scheme),
                (":authority", authority),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
                ("user-agent", "kubepy"),
            )
        )
        self._streams: dict[int, Stream] = {}
        self._next_number = 1
        self._send_window = _FIRST_WINDOW
        self._unread = 0
        self._first_send_window = _FIRST_WINDOW
        self._max_streams = 1 << 31
        self._block: tuple[int, int, bytes] | None = None  # headers that go on: stream, flags
        self._has_settings = False
        self._is_pinged = False
        self._failure = ""
        self._is_draining = False
        self.heard = time.monotonic()
        settings = (
            (_HEADER_TABLE_SIZE, 0),
            (_ENABLE_PUSH, 0),
            (_INITIAL_WINDOW, _STREAM_WINDOW),
            (_MAX_FRAME, _READ_FRAME),
        )
        self._send(
            _PREFACE
            + _frame(_SETTINGS, 0, 0, b"".join(_SETTING.pack(*setting) for setting in settings))
            + _frame(_WINDOW, 0, 0, _NUMBER.pack(_CONNECTION_WINDOW - _FIRST_WINDOW))
        )
        threading.Thread(target=self._read, name="etcd", daemon=True).start()

    def await_settings(self, timeout: float) -> None:
        """Wait until the server has shown that it speaks HTTP/2. Raises OSError."""
        end = time.monotonic() + timeout
        with self.state:
            while not self._has_settings and not self._failure and time.monotonic() < end:
                self._changed.wait(end - time.monotonic())
            if self._has_settings:
                return
            reason = self._failure or "the server does not answer"
        self.fail(reason)
        raise OSError(reason)

    @property
    def is_usable(self) -> bool:
        """Tell whether calls can be begun."""
        return not self._failure and not self._is_draining

    def call(
        self,
        path: str,
        message: bytes,
        metadata: Iterable[tuple[str, str]] = (),
        *,
        is_open: bool = False,
        timeout: float | None = None,
    ) -> Stream:
        """Begin a call, with its first message.

        :param is_open: the request does not end with the message.
        :param timeout: seconds that the server may take.

        Raises ConnectionLost.
        """
        headers = [(":path", path), *metadata]
        if timeout is not None:
            headers.append(("grpc-timeout", f"{max(1, int(timeout * 1000))}m"))
        # Names with a colon come first, in whichever order they are
        block = hpack.encode(headers[:1]) + self._headers + hpack.encode(headers[1:])
        body = _PREFIX.pack(0, len(message)) + message
        self._await_place()
        with self._sending:
            stream = self._new_stream()
            size = self._take_window(stream, len(body))
            is_whole = size == len(body)
            self._send(
                _frame(_HEADERS, _END_HEADERS, stream.number, block)
                + _data_frames(stream.number, body[:size], is_last=is_whole and not is_open)
            )
        if not is_whole:
            end = time.monotonic() + (_SEND_TIMEOUT if timeout is None else timeout)
            self._send_rest(stream, body[size:], end, is_open=is_open)
        return stream

    def _send_rest(self, stream: Stream, body: bytes, end: float, *, is_open: bool) -> None:
        """Send what did not fit into the windows, as they open."""
        while body:
            with self.state:
                while not (stream.is_over or (stream.send_window > 0 and self._send_window > 0)):
                    if not self._changed.wait(max(0.0, end - time.monotonic())):
                        break
                if stream.is_over:
                    return
                is_stuck = not (stream.send_window > 0 and self._send_window > 0)
            if is_stuck:
                stream.cancel()
                raise ConnectionLost("the server takes nothing more", is_unsent=True)
            with self._sending:
                size = self._take_window(stream, len(body))
                is_whole = size == len(body)
                if size:
                    last = is_whole and not is_open
                    self._send(_data_frames(stream.number, body[:size], is_last=last))
            body = body[size:]

    def _await_place(self) -> None:
        """Wait until the server bears another stream. Not while frames are sent: the thread that
        reads must be able to answer."""
        with self.state:
            while len(self._streams) >= self._max_streams and self.is_usable:
                self._changed.wait()

    def _new_stream(self) -> Stream:
        with self.state:
            if not self.is_usable:
                raise ConnectionLost(self._failure or "the server goes away", is_unsent=True)
            stream = Stream(self, self._next_number, self._first_send_window)
            self._streams[stream.number] = stream
            self._next_number += 2
            return stream

    def _take_window(self, stream: Stream, size: int) -> int:
        """Return how much may be sent now of so many bytes."""
        with self.state:
            size = max(0, min(size, stream.send_window, self._send_window))
            stream.send_window -= size
            self._send_window -= size
            return size

    def _send(self, data: bytes) -> None:
        try:
            self._channel.send(data)
        except OSError as error:
            self.fail(reason_of(error))

    def _send_frames(self, data: bytes) -> None:
        with self._sending:
            self._send(data)

    def open_window(self, number: int, size: int) -> None:
        """Let the server send so much more."""
        self._send_frames(_frame(_WINDOW, 0, number, _NUMBER.pack(size)))

    def cancel(self, stream: Stream) -> None:
        """End a stream that has not ended."""
        with self.state:
            was_open = self._streams.pop(stream.number, None) is not None
            stream.end(None)
            self._changed.notify_all()
        if was_open and not self._failure:
            self._send_frames(_frame(_RESET, 0, stream.number, _NUMBER.pack(_CANCEL)))

    @property
    def is_over(self) -> bool:
        """Tell whether the connection has ended."""
        return bool(self._failure)

    def retire(self) -> None:
        """Begin nothing more here; the connection ends with the last of its calls."""
        with self.state:
            self._is_draining = True
            is_idle = not self._streams
            self._changed.notify_all()
        if is_idle:
            self.fail("the connection is not used any more")

    def close(self) -> None:
        """End the connection and all that is under way."""
        self.fail("the connection was closed")

    def fail(self, reason: str) -> None:
        """Give the connection up: nothing that is under way will end well."""
        with self.state:
            if self._failure:
                return
            self._failure = reason
            streams = list(self._streams.values())
            self._streams.clear()
            for stream in streams:
                stream.end(ConnectionLost(reason, is_unsent=False))
            self._changed.notify_all()
        self._channel.stop()

    # --- the reading thread -----------------------------------------------------------------------

    def _read(self) -> None:
        try:
            self._read_frames()
        except OSError as error:
            self.fail(reason_of(error) + ("" if self._has_settings else _FOREIGN_HINT))
        except (ValueError, IndexError, StructError) as error:
            self.fail(f"the server breaks HTTP/2: {error}")
        except Exception as error:
            self.fail(f"{type(error).__name__}: {error}")
            raise
        finally:
            self._channel.close()

    def _read_frames(self) -> None:
        buffer = bytearray()
        while not self._failure:
            data = self._receive()
            if not data:
                reason = "the server closed the connection"
                self.fail(reason if self._has_settings else f"{reason}{_FOREIGN_HINT}")
                return
            buffer += data
            if not self._has_settings and (hint := _foreign_protocol(buffer)):
                self.fail(hint)
                return
            at = 0
            while len(buffer) - at >= 9:
                high, low, kind, flags, number = _FRAME.unpack_from(buffer, at)
                end = at + 9 + (high << 8 | low)
                if len(buffer) < end:
                    break
                self._take(kind, flags, number & 0x7FFFFFFF, bytes(buffer[at + 9 : end]))
                at = end
            del buffer[:at]
            if self._is_draining and not self._streams:
                self.close()

    def _receive(self) -> bytes:
        while True:
            try:
                data = self._channel.receive(KEEPALIVE)
            except TimeoutError:
                if self._is_draining and not self._streams:
                    return b""
                if self._is_pinged:
                    raise OSError("the server does not answer any more") from None
                if self._streams:
                    self._is_pinged = True
                    self._send_frames(_frame(_PING, 0, 0, bytes(8)))
            else:
                self.heard = time.monotonic()
                self._is_pinged = False
                return data

    def _take(self, kind: int, flags: int, number: int, data: bytes) -> None:
        if self._block is not None and kind != _CONTINUATION:
            raise ValueError("headers do not go on")
        if kind == _DATA:
            self._take_data(flags, number, data)
        elif kind == _HEADERS:
            self._take_headers(flags, number, _without_padding(data, flags))
        elif kind == _CONTINUATION and self._block is not None:
            number, first_flags, block = self._block
            self._take_headers(flags | first_flags, number, block + data)
        elif kind == _WINDOW:
            self._take_window_update(number, _NUMBER.unpack(data)[0] & 0x7FFFFFFF)
        elif kind == _SETTINGS and not flags & _ACK:
            self._take_settings(data)
        elif kind == _PING and not flags & _ACK:
            self._send_frames(_frame(_PING, _ACK, 0, data))
        elif kind == _RESET:
            self._take_reset(number, _NUMBER.unpack(data)[0])
        elif kind == _GOAWAY:
            self._take_goaway(data)

    def _take_data(self, flags: int, number: int, data: bytes) -> None:
        size = len(data)  # with padding: it counts
        data = _without_padding(data, flags)
        stream_window = connection_window = 0
        with self.state:
            self._unread += size
            if self._unread >= _CONNECTION_WINDOW // 4:
                connection_window = self._unread
                self._unread = 0
            stream = self._streams.get(number)
            if stream is not None:
                stream_window = stream.take_data(data)
                if flags & _END_STREAM:
                    self._finish(stream)
                    stream_window = 0
        if connection_window:
            self.open_window(0, connection_window)
        if stream_window:
            self.open_window(number, stream_window)

    def _take_headers(self, flags: int, number: int, block: bytes) -> None:
        if not flags & _END_HEADERS:
            self._block = number, flags & _END_STREAM, block
            return
        self._block = None
        headers = hpack.decode(block)
        with self.state:
            stream = self._streams.get(number)
            if stream is not None:
                stream.take_headers(headers)
                if flags & _END_STREAM:
                    self._finish(stream)

    def _finish(self, stream: Stream) -> None:
        del self._streams[stream.number]
        stream.finish()
        self._changed.notify_all()

    def _take_window_update(self, number: int, size: int) -> None:
        with self.state:
            if not number:
                self._send_window += size
            elif stream := self._streams.get(number):
                stream.send_window += size
            self._changed.notify_all()

    def _take_settings(self, data: bytes) -> None:
        with self.state:
            self._has_settings = True
            for name, value in _SETTING.iter_unpack(data):
                if name == _MAX_STREAMS:
                    self._max_streams = value
                elif name == _INITIAL_WINDOW:
                    for stream in self._streams.values():
                        stream.send_window += value - self._first_send_window
                    self._first_send_window = value
            self._changed.notify_all()
        self._send_frames(_frame(_SETTINGS, _ACK, 0, b""))

    def _take_reset(self, number: int, code: int) -> None:
        with self.state:
            stream = self._streams.pop(number, None)
            if stream is not None:
                reason = f"the server broke the call off (code {code})"
                stream.end(ConnectionLost(reason, is_unsent=code == _REFUSED))
                self._changed.notify_all()

    def _take_goaway(self, data: bytes) -> None:
        """Begin no other call here, and end those that the server will not look at."""
        last = _NUMBER.unpack_from(data)[0] & 0x7FFFFFFF
        reason = "the server goes away"
        with self.state:
            self._is_draining = True
            for number in [number for number in self._streams if number > last]:
                self._streams.pop(number).end(ConnectionLost(reason, is_unsent=True))
            self._changed.notify_all()


_FOREIGN_HINT = " at once: does it want TLS (etcds://), or a client certificate?"


def _foreign_protocol(data: bytearray) -> str:
    """Return what to say of a server whose first bytes are not HTTP/2."""
    if data.startswith(b"HTTP/"):
        return "the server speaks HTTP/1.1, not gRPC: is it etcd's port for clients?"
    if data.startswith(b"\x15\x03"):
        return "the server speaks TLS: etcds://"
    if len(data) >= 4 and data[3] != _SETTINGS:
        return "the server does not speak HTTP/2: is it etcd's port for clients?"
    return ""


def _frame(kind: int, flags: int, number: int, data: bytes) -> bytes:
    size = len(data)
    return _FRAME.pack(size >> 8, size & 255, kind, flags, number) + data


def _data_frames(number: int, data: bytes, *, is_last: bool) -> bytes:
    if not data:
        return b""
    frames = []
    for at in range(0, len(data), _SENT_FRAME):
        part = data[at : at + _SENT_FRAME]
        flags = _END_STREAM if is_last and at + _SENT_FRAME >= len(data) else 0
        frames.append(_frame(_DATA, flags, number, part))
    return b"".join(frames)


def _without_padding(data: bytes, flags: int) -> bytes:
    start = 0
    end = len(data)
    if flags & _PADDED:
        start = 1
        end -= data[0]
    if flags & _PRIORITIZED:
        start += 5
    return data[start:end]


def _unquoted(text: str) -> str:
    if "%" not in text:
        return text
    from urllib.parse import unquote  # takes long to import

    return unquote(text)


def reason_of(error: OSError) -> str:
    """Return the words for an error of the network, or of TLS."""
    tls_words = getattr(error, "verify_message", None)
    if tls_words is None and getattr(error, "reason", None):
        tls_words = str(error.reason).lower().replace("_", " ")  # type: ignore[attr-defined]
    words = str(tls_words or error.strerror or error or type(error).__name__)
    return words[0].lower() + words[1:].removesuffix(".")
