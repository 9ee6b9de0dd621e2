"""HTTP/2 and HPACK against a server that is played frame by frame."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import pytest

from kubepy.storage.etcd import hpack, http2
from kubepy.storage.etcd.channel import PlainChannel
from kubepy.storage.etcd.http2 import CallFailed, Connection, ConnectionLost, Stream

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
OK = hpack.encode([("grpc-status", "0")])
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Frame(NamedTuple):
    kind: int
    flags: int
    number: int
    data: bytes


def message(content: bytes) -> bytes:
    return b"\0" + struct.pack(">L", len(content)) + content


class PlayedServer:
    """The server's end of a connection."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._socket.settimeout(5)
        self._file = end.makefile("rb")

    def send(self, kind: int, flags: int = 0, number: int = 0, data: bytes = b"") -> None:
        head = struct.pack(">HBBBL", len(data) >> 8, len(data) & 255, kind, flags, number)
        self._socket.sendall(head + data)

    def send_raw(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> Frame:
        high, low, kind, flags, number = struct.unpack(">HBBBL", self._file.read(9))
        return Frame(kind, flags, number, self._file.read(high << 8 | low))

    def expect(self, kind: int) -> Frame:
        """Return the next frame of a kind, past others."""
        while (frame := self.receive()).kind != kind:
            pass
        return frame

    def greet(self, *settings: tuple[int, int]) -> None:
        assert self._file.read(len(PREFACE)) == PREFACE
        self.send(SETTINGS, data=b"".join(struct.pack(">HL", *setting) for setting in settings))

    def answer(self, number: int, content: bytes) -> None:
        self.send(HEADERS, END_HEADERS, number, hpack.encode([(":status", "200")]))
        self.send(DATA, 0, number, message(content))
        self.send(HEADERS, END_HEADERS | END_STREAM, number, OK)

    def close(self) -> None:
        with suppress(OSError):  # it has ended already
            self._socket.shutdown(socket.SHUT_RDWR)
        self._file.close()
        self._socket.close()


class Pair(NamedTuple):
    connection: Connection
    server: PlayedServer


@pytest.fixture
def pair() -> Iterator[Pair]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    pair = Pair(Connection(PlainChannel(ours), "etcd:2379", "http"), PlayedServer(theirs))
    yield pair
    pair.connection.close()
    pair.server.close()


def begin(pair: Pair, content: bytes = b"ask") -> Stream:
    return pair.connection.call("/a.B/C", content)


def test_call_is_sent_and_its_answer_read(pair: Pair) -> None:
    pair.server.greet()
    pair.connection.await_settings(5)
    stream = pair.connection.call("/a.B/C", b"ask", [("token", "t")], timeout=1.5)
    headers = pair.server.expect(HEADERS)
    assert headers.flags == END_HEADERS
    assert hpack.decode(headers.data) == {
        ":path": "/a.B/C",
        ":method": "POST",
        ":scheme": "http",
        ":authority": "etcd:2379",
        "te": "trailers",
        "content-type": "application/grpc",
        "user-agent": "kubepy",
        "token": "t",
        "grpc-timeout": "1500m",
    }
    assert pair.server.expect(DATA) == (DATA, END_STREAM, 1, message(b"ask"))
    pair.server.answer(1, b"answer")
    assert stream.message(5) == b"answer"
    assert stream.message(5) is None
    assert begin(pair).number == 3


def test_messages_are_put_together_from_any_pieces(pair: Pair) -> None:
    pair.server.greet()
    stream = begin(pair)
    data = message(b"first") + message(b"") + message(b"x" * 70_000)
    pair.server.send(HEADERS, 0, 1, b"")
    pair.server.send(CONTINUATION, END_HEADERS, 1, hpack.encode([(":status", "200")]))
    pair.server.send(DATA, PADDED, 1, b"\3" + data[:7] + b"\0\0\0")
    for at in range(7, len(data), 9_999):
        pair.server.send(DATA, 0, 1, data[at : at + 9_999])
    assert [stream.message(5) for _ in range(3)] == [b"first", b"", b"x" * 70_000]


def test_error_is_told_with_its_message(pair: Pair) -> None:
    pair.server.greet()
    stream = begin(pair)
    trailers = hpack.encode([("grpc-status", "11"), ("grpc-message", "gone %C3%A4")])
    pair.server.send(HEADERS, END_HEADERS | END_STREAM, 1, trailers)
    with pytest.raises(CallFailed, match=r"^gone ä$") as raised:
        stream.message(5)
    assert raised.value.code == 11


def test_answer_that_is_no_grpc_is_told(pair: Pair) -> None:
    pair.server.greet()
    stream = begin(pair)
    block = hpack.encode([(":status", "404")])
    pair.server.send(HEADERS, END_HEADERS | END_STREAM, 1, block)
    with pytest.raises(CallFailed, match="HTTP status 404: it is no etcd"):
        stream.message(5)


def test_large_message_waits_for_the_servers_windows(pair: Pair) -> None:
    pair.server.greet()
    pair.connection.await_settings(5)
    content = bytes(100_000)
    sender = threading.Thread(target=begin, args=(pair, content))
    sender.start()
    received = b""
    while len(received) < 65_535:
        received += pair.server.expect(DATA).data
    assert len(received) == 65_535
    pair.server.send(WINDOW, 0, 0, struct.pack(">L", 50_000))
    pair.server.send(SETTINGS, data=struct.pack(">HL", 4, 110_000))  # the windows of streams
    frames = []
    while len(received) < len(content) + 5:
        frames.append(pair.server.expect(DATA))
        received += frames[-1].data
    assert received == message(content)
    assert frames[-1].flags == END_STREAM
    sender.join()


def test_server_that_opens_no_window_ends_the_call(pair: Pair) -> None:
    pair.server.greet()
    with pytest.raises(ConnectionLost, match="takes nothing more") as raised:
        pair.connection.call("/a.B/C", bytes(100_000), timeout=0.2)
    assert raised.value.is_unsent


def test_slow_reader_stops_the_server(pair: Pair) -> None:
    pair.server.greet()
    stream = begin(pair)
    pair.server.expect(DATA)
    half = http2._STREAM_WINDOW // 2
    for _ in range(half // 10_000 + 1):
        pair.server.send(DATA, 0, 1, message(bytes(9_995)))
    pair.server.send(PING, data=b"12345678")
    while (frame := pair.server.receive()).kind != PING:
        assert (frame.kind, frame.number) != (WINDOW, 1)
    for _ in range(half // 10_000 + 1):
        assert stream.message(5) is not None
    window = pair.server.expect(WINDOW)
    assert window.number == 1
    assert struct.unpack(">L", window.data)[0] >= half


def test_streams_beyond_the_servers_limit_wait(pair: Pair) -> None:
    pair.server.greet((3, 1))
    pair.connection.await_settings(5)
    first = begin(pair)
    second: list[Stream] = []
    thread = threading.Thread(target=lambda: second.append(begin(pair)))
    thread.start()
    time.sleep(0.05)
    assert not second
    pair.server.answer(1, b"")
    thread.join(5)
    assert first.message(5) == b""
    assert second[0].number == 3


def test_ping_is_answered(pair: Pair) -> None:
    pair.server.greet()
    pair.server.send(PING, data=b"12345678")
    assert pair.server.expect(PING) == (PING, ACK, 0, b"12345678")


def test_silent_server_is_asked_and_given_up(monkeypatch: pytest.MonkeyPatch, pair: Pair) -> None:
    monkeypatch.setattr(http2, "KEEPALIVE", 0.1)
    pair.server.greet()
    stream = begin(pair)
    pair.server.send(SETTINGS, ACK)  # from here on the time is short
    pair.server.expect(PING)
    with pytest.raises(ConnectionLost, match="does not answer any more") as raised:
        stream.message(5)
    assert not raised.value.is_unsent
    assert not pair.connection.is_usable


def test_cancelled_call_is_told_to_the_server(pair: Pair) -> None:
    pair.server.greet()
    stream = begin(pair)
    threading.Timer(0.05, stream.cancel).start()
    assert stream.message(5) is None
    assert pair.server.expect(RESET).data == struct.pack(">L", 8)


def test_server_that_goes_away_ends_what_it_has_not_begun(pair: Pair) -> None:
    pair.server.greet()
    first, second = begin(pair), begin(pair)
    pair.server.send(GOAWAY, data=struct.pack(">LL", 1, 0))
    with pytest.raises(ConnectionLost) as raised:
        second.message(5)
    assert raised.value.is_unsent
    assert not pair.connection.is_usable
    with pytest.raises(ConnectionLost):
        begin(pair)
    pair.server.answer(1, b"late")
    assert first.message(5) == b"late"


def test_retired_connection_ends_with_its_last_call(pair: Pair) -> None:
    pair.server.greet()
    stream = begin(pair)
    pair.connection.retire()
    assert not pair.connection.is_usable
    with pytest.raises(ConnectionLost) as raised:
        begin(pair)
    assert raised.value.is_unsent
    pair.server.answer(1, b"answer")
    assert stream.message(5) == b"answer"
    assert stream.message(5) is None
    while not pair.connection.is_over:
        time.sleep(0.01)


@pytest.mark.parametrize(("code", "is_unsent"), [(7, True), (2, False)])
def test_broken_off_call_tells_whether_it_was_begun(pair: Pair, code: int, is_unsent: bool) -> None:
    pair.server.greet()
    stream = begin(pair)
    pair.server.send(RESET, 0, 1, struct.pack(">L", code))
    with pytest.raises(ConnectionLost) as raised:
        stream.message(5)
    assert raised.value.is_unsent is is_unsent


def test_closed_connection_ends_every_call(pair: Pair) -> None:
    pair.server.greet()
    pair.connection.await_settings(5)
    streams = [begin(pair) for _ in range(3)]
    for _ in streams:
        pair.server.expect(DATA)
    pair.server.close()
    for stream in streams:
        with pytest.raises(ConnectionLost, match="closed the connection"):
            stream.message(5)


@pytest.mark.parametrize(
    "frames",
    [
        b"\0\0\2\4\0\0\0\0\0ab",  # settings that are cut
        b"\0\0\0\4\0\0\0\0\0" + b"\0\0\2\x07\0\0\0\0\0ab",  # a goaway that is cut
        b"\0\0\0\4\0\0\0\0\0" + b"\0\0\1\1\4\0\0\0\1\xff",  # a header of no table
        b"\0\0\0\4\0\0\0\0\0" + b"\0\0\1\1\0\0\0\0\1\x88" + b"\0\0\0\4\0\0\0\0\0",  # no end
    ],
)
def test_nonsense_ends_the_connection(pair: Pair, frames: bytes) -> None:
    stream = begin(pair)
    pair.server.send_raw(frames)
    with pytest.raises(ConnectionLost, match="the server breaks HTTP/2"):
        stream.message(5)


# --- headers --------------------------------------------------------------------------------------


def test_headers_of_the_standards_examples_are_read() -> None:
    # RFC 7541, C.6.1: Huffman's code; the literals name the static table
    block = bytes.fromhex(
        "4882640258 85aec3771a4b 6196d07abe941054d444a8200595040b8166e082a62d1bff"
        "6e919d29ad171863c78f0b97c8e9ae82ae43d3"
    )
    assert hpack.decode(block) == {
        ":status": "302",
        "cache-control": "private",
        "date": "Mon, 21 Oct 2013 20:13:21 GMT",
        "location": "https://www.example.com",
    }


def test_indexed_headers_are_read() -> None:
    assert hpack.decode(b"\x88\x20\x90") == {":status": "200", "accept-encoding": "gzip, deflate"}


def test_long_values_survive() -> None:
    headers = [("grpc-message", "x" * 500), ("token", "a%b"), ("empty", "")]
    assert hpack.decode(hpack.encode(headers)) == dict(headers)


@pytest.mark.parametrize(
    "block", [b"\xbe", b"\x80", b"\x00\x05ab", b"\x48\x82\x64", b"\x48\x81\xc0"]
)
def test_headers_that_cannot_be_read_are_refused(block: bytes) -> None:
    with pytest.raises(hpack.HeaderError):
        hpack.decode(block)
