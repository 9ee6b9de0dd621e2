"""The part of SPDY/3.1 that port-forwarding needs, in the role of a server.

Headers are compressed over the whole connection, with a dictionary of the protocol's own. There is
no maintained library for it: https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1/
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

VERSION = 3
CONTROL = 0x8000
SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY = 1, 2, 3, 4, 6, 7
FIN = 1
PROTOCOL_ERROR, INVALID_STREAM = 1, 2
HEADER = 8  # bytes of the head of a frame
PIECE = 32 * 1024

_NAMES = [
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
]
_MORE = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
_TAIL = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 "
    "Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
    "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _text(word: str) -> bytes:
    length = struct.pack("!I", len(word))
    return length + word.encode()


DICTIONARY = b"".join(_text(word) for word in (*_NAMES, *_MORE)) + _TAIL.encode()


class SpdyError(Exception):
    """Bytes that are no SPDY, after which a connection cannot go on."""


class StreamOpened(NamedTuple):
    """A client has opened a stream."""

    stream: int
    headers: Mapping[str, str]
    is_last: bool


class StreamData(NamedTuple):
    """A client has sent data on a stream."""

    stream: int
    data: bytes
    is_last: bool


class StreamReset(NamedTuple):
    """A client has given a stream up."""

    stream: int


class Pinged(NamedTuple):
    """A client wants an answer."""

    number: int


class GoneAway(NamedTuple):
    """A client opens no more streams."""


Event = StreamOpened | StreamData | StreamReset | Pinged | GoneAway


class SpdyConnection:
    """Makes events of bytes, and bytes of answers; it does no input or output."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    # --- what comes in

    def receive(self, data: bytes) -> Iterator[Event]:
        """Take bytes; yield the events of all frames that are whole. Raises SpdyError."""
        self._buffer += data
        while len(self._buffer) >= HEADER:
            first, second = struct.unpack_from("!II", self._buffer)
            end = HEADER + (second & 0xFFFFFF)
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[HEADER:end])
            del self._buffer[:end]
            flags = second >> 24
            if first >> 16 & CONTROL:
                if first >> 16 & ~CONTROL != VERSION:
                    raise SpdyError("unsupported version")
                event = self._control(first & 0xFFFF, flags, payload)
            else:
                event = StreamData(first, payload, bool(flags & FIN))
            if event is not None:
                yield event

    def _control(self, kind: int, flags: int, payload: bytes) -> Event | None:
        """Return the event of a control frame, None for one that means nothing here."""
        try:
            if kind == SYN_STREAM:
                (stream,) = struct.unpack_from("!I", payload)
                headers = self._headers(payload[10:])
                return StreamOpened(stream & 0x7FFFFFFF, headers, bool(flags & FIN))
            if kind == RST_STREAM:
                (stream,) = struct.unpack_from("!I", payload)
                return StreamReset(stream)
            if kind == PING:
                (number,) = struct.unpack("!I", payload)
                return Pinged(number)
        except (struct.error, zlib.error, UnicodeDecodeError) as error:
            raise SpdyError(f"invalid control frame: {error}") from None
        return GoneAway() if kind == GOAWAY else None

    def _headers(self, block: bytes) -> dict[str, str]:
        data = self._inflate.decompress(block)
        (count,) = struct.unpack_from("!I", data)
        texts = _texts(data[4:])
        headers: dict[str, str] = {}
        for _ in range(count):
            name = next(texts, None)
            value = next(texts, None)
            if name is None or value is None:
                raise SpdyError("invalid control frame: headers are cut off")
            headers[name.lower()] = value.partition("\0")[0]
        return headers

    # --- what goes out

    def reply(self, stream: int) -> bytes:
        """Accept a stream."""
        no_headers = struct.pack("!I", 0)
        payload = struct.pack("!I", stream)
        payload += self._deflate.compress(no_headers)
        payload += self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control_frame(SYN_REPLY, payload)

    def data(self, stream: int, data: bytes, *, is_last: bool = False) -> bytes:
        """Send data on a stream, in frames; ``is_last`` ends it."""
        frames = bytearray()
        for start in range(0, max(len(data), 1), PIECE):
            end = start + PIECE
            piece = data[start:end]
            flags = 0
            if is_last and end >= len(data):
                flags = FIN
            frames += struct.pack("!II", stream, flags << 24 | len(piece))
            frames += piece
        return bytes(frames)

    def reset(self, stream: int, status: int = PROTOCOL_ERROR) -> bytes:
        """Refuse a stream."""
        payload = struct.pack("!II", stream, status)
        return _control_frame(RST_STREAM, payload)

    def ping(self, number: int) -> bytes:
        """Answer a ping."""
        payload = struct.pack("!I", number)
        return _control_frame(PING, payload)


def _control_frame(kind: int, payload: bytes) -> bytes:
    head = struct.pack("!HHI", CONTROL | VERSION, kind, len(payload))
    return head + payload


def _texts(data: bytes) -> Iterator[str]:
    """Yield texts that stand behind each other, each after its length."""
    place = 0
    while place + 4 <= len(data):
        (length,) = struct.unpack_from("!I", data, place)
        place += 4
        yield data[place : place + length].decode()
        place += length
