"""Clients that behave badly on their connection: they cost nobody else anything, and change nothing
by halves.

``BAD_CLIENTS=1000 pytest tests/server/test_connections.py`` has a thousand at a time.
"""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import SECONDS, ServerProcess
from tests.waiting import eventually

NewServer = Callable[..., ServerProcess]
BAD_CLIENTS = int(os.environ.get("BAD_CLIENTS", "200"))
MAPS = "/api/v1/namespaces/default/configmaps"
SHORT = {
    "listener.HEADER_SECONDS": 1.0,
    "listener.HANDSHAKE_SECONDS": 1.0,
    "listener.FLUSH_SECONDS": 1.0,
    "chain.SEND_SECONDS": 1.0,
    "chain.REQUEST_SECONDS": 2.0,
}
LATENCY_SECONDS = 1.0  # of a well-behaved client beside them
MEGABYTE = 1 << 20


class Raw:
    """A connection on which a test sends what it likes."""

    def __init__(self, server: ServerProcess, tls: bool = True) -> None:
        self.socket: socket.socket = socket.create_connection(server.address, SECONDS)
        if tls:
            self.socket = server.tls().wrap_socket(self.socket, server_hostname=server.address[0])
        self.token = server.token

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def head(self, method: str, path: str, **headers: str | int) -> None:
        """Send the line and the headers of a request."""
        lines = [
            f"{method} {path} HTTP/1.1",
            "Host: x",
            f"Authorization: Bearer {self.token}",
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
        ]
        self.send("".join(f"{line}\r\n" for line in lines).encode() + b"\r\n")

    def read(self) -> bytes:
        """Return what comes until the server closes the connection."""
        received = b""
        with suppress(ConnectionError, ssl.SSLError):
            while piece := self.socket.recv(65536):
                received += piece
        return received

    def read_until(self, end: bytes) -> bytes:
        received = b""
        while end not in received and (piece := self.socket.recv(65536)):
            received += piece
        return received

    def answer(self) -> tuple[int, bytes]:
        """Read one answer: its status and its body."""
        head, _, body = self.read_until(b"\r\n\r\n").partition(b"\r\n\r\n")
        found = re.search(rb"content-length: (\d+)", head)
        size = int(found[1]) if found else 0
        while len(body) < size:
            body += self.socket.recv(65536)
        return int(head.split()[1]) if head else 0, body

    def reset(self) -> None:
        """Vanish without a word."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def status_of(answer: bytes) -> dict[str, Any]:
    """Return the Status in the last answer of a connection; its code is that of the answer."""
    head, _, body = answer.rpartition(b"HTTP/1.1 ")[2].partition(b"\r\n\r\n")
    status: dict[str, Any] = json.loads(body)
    assert status["kind"] == "Status"
    assert status["code"] == int(head.split()[0])
    return status


def sockets_of(server: ServerProcess) -> int:
    """Return how many sockets a server has open."""
    found, folder = 0, f"/proc/{server.process.pid}/fd"
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):
            found += os.readlink(f"{folder}/{name}").startswith("socket:")
    return found


def memory_of(server: ServerProcess) -> int:
    [line] = [
        line
        for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    ]
    return int(line.split()[1]) * 1024


class Neighbour:
    """A well-behaved client that works all the time, and notes how long its requests take."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._stop = threading.Event()
        self.slowest, self.requests, self.failures = 0.0, 0, []
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        connection = self._server.connect()
        headers = {
            "Authorization": f"Bearer {self._server.token}",
            "Content-Type": "application/json",
        }
        while not self._stop.is_set():
            begin = time.monotonic()
            try:
                name = f"n{self.requests}"
                for method, path, body in (
                    ("POST", MAPS, json.dumps({"metadata": {"name": name}})),
                    ("GET", f"{MAPS}/{name}", None),
                    ("DELETE", f"{MAPS}/{name}", None),
                ):
                    connection.request(method, path, body, headers)
                    response = connection.getresponse()
                    response.read()
                    if response.status not in (200, 201):
                        self.failures.append(f"{method} {path}: {response.status}")
            except OSError as error:
                self.failures.append(repr(error))
                connection = self._server.connect()
            self.slowest = max(self.slowest, time.monotonic() - begin)
            self.requests += 1
        connection.close()

    def __enter__(self) -> Neighbour:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def check(self) -> None:
        assert self.requests
        assert self.failures == []
        assert self.slowest < 3 * LATENCY_SECONDS  # of three requests


@pytest.fixture
def short(new_server: NewServer) -> Iterator[ServerProcess]:
    """A server with little patience. It ends without a line in its log."""
    server = new_server("--controllers=off", limits=SHORT)
    yield server
    assert server.stop() == (0, "")


@pytest.fixture
def large(short: ServerProcess) -> ServerProcess:
    """A server with little patience and 10 MB of ConfigMaps."""
    connection = short.connect()
    headers = {"Authorization": f"Bearer {short.token}", "Content-Type": "application/json"}
    for number in range(12):
        connection.request(
            "POST",
            MAPS,
            json.dumps(
                {"metadata": {"name": f"large-{number}"}, "data": {"a": "x" * (900 * 1024)}}
            ),
            headers,
        )
        response = connection.getresponse()
        assert (response.status, len(response.read()) > MEGABYTE // 2) == (201, True)
    connection.close()
    return short


# --- clients that vanish ---


@pytest.mark.parametrize("headers", [{"Content_Length": 200}, {"Transfer_Encoding": "chunked"}])
def test_client_that_vanishes_in_mid_body_changes_nothing(
    short: ServerProcess, headers: Mapping[str, Any]
) -> None:
    body = b'{"metadata":{"name":"half"}}'
    for way in (Raw.reset, lambda raw: raw.socket.close()):
        raw = Raw(short)
        raw.head("POST", MAPS, Content_Type="application/json", **headers)
        raw.send(body if "Content_Length" in headers else b"%x\r\n%s\r\n" % (len(body), body))
        way(raw)
    assert short.request("GET", f"{MAPS}/half").status == 404


def test_clients_that_vanish_in_mid_response_cost_nothing(large: ServerProcess) -> None:
    before, memory = sockets_of(large), 0
    for number in range(20):
        raw = Raw(large)
        raw.head("GET", MAPS)
        assert raw.socket.recv(1000)
        raw.reset()
        if number == 4:
            memory = memory_of(large)
    assert eventually(lambda: sockets_of(large) <= before)
    assert large.request("GET", f"{MAPS}/large-0").status == 200
    assert memory_of(large) - memory < 40 * MEGABYTE


def test_clients_that_vanish_in_mid_watch_free_their_sockets(short: ServerProcess) -> None:
    before = sockets_of(short)
    watchers = [Raw(short) for _ in range(30)]
    for raw in watchers:
        raw.head("GET", f"{MAPS}?watch=1")
        assert b" 200 " in raw.read_until(b"\r\n")
    for raw in watchers:
        raw.reset()
    assert eventually(lambda: sockets_of(short) <= before + 5)
    assert short.request("POST", MAPS, {"metadata": {"name": "a"}}).status == 201


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what other C libraries do is theirs")
def test_memory_of_cut_watchers_is_given_back(new_server: NewServer) -> None:
    server = new_server("--controllers=off", limits={"memory.TRIM_SECONDS": 1.0})
    maps = [
        {"metadata": {"name": f"m{number}"}, "data": {"a": "x" * 30_000}} for number in range(100)
    ]
    assert {server.request("POST", MAPS, body).status for body in maps} == {201}
    before = memory_of(server)
    for _ in range(2):
        watchers = [Raw(server) for _ in range(200)]
        for raw in watchers:
            raw.head("GET", f"{MAPS}?watch=1")
            assert b" 200 " in raw.read_until(b"\r\n")
        assert eventually(lambda: memory_of(server) > before + 50 * MEGABYTE)
        for raw in watchers:
            raw.reset()
        assert eventually(lambda: memory_of(server) < before + 25 * MEGABYTE)
    assert server.stop() == (0, "")


# --- half-open and slow connections ---


def _half_open(server: ServerProcess, kind: int) -> Raw:
    """Open a connection on which nothing more comes: at four places of a request."""
    raw = Raw(server, tls=kind > 1)
    if kind == 1:
        raw.send(b"\x16\x03\x01\x02\x00\x01\x00")  # the beginning of a ClientHello
    if kind == 2:
        raw.send(b"GET /api HTTP/1.1\r\nHost: x\r\nAuthor")
    if kind == 3:
        raw.head("POST", MAPS, Content_Length=100)
        raw.send(b'{"metadata"')
    return raw


def test_half_open_connections_disturb_nobody_and_are_closed(short: ServerProcess) -> None:
    assert short.request("GET", MAPS).status == 200
    before, memory = sockets_of(short), memory_of(short)
    with Neighbour(short) as neighbour:
        connections = [_half_open(short, number % 4) for number in range(BAD_CLIENTS)]
        assert eventually(lambda: sockets_of(short) <= before + 4)
        grown = memory_of(short) - memory
    neighbour.check()
    assert grown < 30 * MEGABYTE + BAD_CLIENTS * 100 * 1024
    for connection in connections:
        connection.socket.close()


def test_headers_that_trickle_in_are_cut_off(short: ServerProcess) -> None:
    raw, begin = Raw(short), time.monotonic()
    with suppress(OSError):
        for byte in b"GET /api HTTP/1.1\r\n" + b"X-A: b\r\n" * 100:
            raw.send(bytes([byte]))
            time.sleep(0.05)
    assert time.monotonic() - begin < 6
    raw.reset()


def test_body_that_trickles_in_times_out(short: ServerProcess) -> None:
    raw, begin = Raw(short), time.monotonic()
    raw.head("POST", MAPS, Content_Length=10_000)
    with suppress(OSError):
        while time.monotonic() - begin < SHORT["chain.REQUEST_SECONDS"] + 1:
            raw.send(b" ")
            time.sleep(0.05)
    assert status_of(raw.read())["reason"] == "Timeout"
    raw.reset()


def test_clients_that_never_read_lose_their_connection(large: ServerProcess) -> None:
    before = sockets_of(large)
    with Neighbour(large) as neighbour:
        connections = []
        for _ in range(6):
            raw = Raw(large)
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.head("GET", MAPS)
            connections.append(raw)
        assert eventually(lambda: sockets_of(large) >= before + 6)
        assert eventually(lambda: sockets_of(large) <= before + 1)
    neighbour.check()
    for raw in connections:
        raw.reset()


# --- what is no proper request ---


def test_plain_text_and_rubbish_instead_of_tls_end_quietly(short: ServerProcess) -> None:
    for data in (
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0" * 1000,
        bytes(range(256)) * 4,
        b"\x16\x03\x01\xff\xff" + b"a" * 70_000,
    ):
        raw = Raw(short, tls=False)
        with suppress(ConnectionError):
            raw.send(data)
            raw.read()
        raw.socket.close()
    assert short.request("GET", MAPS).status == 200


AUTHORIZED = "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
BROKEN = {
    "no HTTP": b"\x00rubbish\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "a header without a colon": b"GET / HTTP/1.1\r\nHost: x\r\nrubbish\r\n\r\n",
    "a header with a line break": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\0d\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "a space in the path": b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
    "a length that is no number": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: a\r\n\r\n",
    "a negative length": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "another encoding": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_broken_request_is_answered_with_a_status(short: ServerProcess, data: bytes) -> None:
    raw = Raw(short)
    raw.send(data)
    assert status_of(raw.read())["code"] in (400, 501)


@pytest.mark.parametrize(
    "chunk", [b"zz\r\nab\r\n0\r\n\r\n", b"5\r\nabc\r\n0\r\n\r\n", b"-1\r\n\r\n", b"1" * 70_000]
)
def test_broken_chunk_changes_nothing_and_closes_the_connection(
    short: ServerProcess, chunk: bytes
) -> None:
    raw = Raw(short)
    raw.head("POST", MAPS, Transfer_Encoding="chunked", Content_Type="application/json")
    raw.send(b'1c\r\n{"metadata":{"name":"half"}}\r\n')
    with suppress(OSError):
        raw.send(chunk)
    received = raw.read()
    assert not received or status_of(received)["code"] in (400, 504)
    assert short.request("GET", f"{MAPS}/half").status == 404


def test_body_longer_than_its_length_is_another_request(short: ServerProcess) -> None:
    body = b'{"metadata":{"name":"a"}}'
    raw = Raw(short)
    raw.head("POST", MAPS, Content_Length=len(body), Content_Type="application/json")
    raw.send(body + b"rubbish\r\n\r\n")
    received = raw.read()
    assert received.startswith(b"HTTP/1.1 201 ")
    assert b"HTTP/1.1 400 " in received


def test_large_headers_and_bodies_are_refused(short: ServerProcess) -> None:
    for header in (b"X: " + b"x" * 2_000_000, b"X: y\r\n" * 400_000):
        raw = Raw(short)
        with suppress(OSError):  # it is refused before it is sent whole
            raw.send(b"GET /api HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n\r\n")
        received = raw.read()
        assert not received or status_of(received)["code"] == 431
    for headers in ({"Content_Length": 4_000_000}, {"Transfer_Encoding": "chunked"}):
        raw = Raw(short)
        raw.head("POST", MAPS, **headers)
        with suppress(OSError):
            for _ in range(4):
                raw.send(
                    (b"f4240\r\n" if "Transfer_Encoding" in headers else b"")
                    + b"x" * 1_000_000
                    + (b"\r\n" if "Transfer_Encoding" in headers else b"")
                )
            if "Transfer_Encoding" in headers:
                raw.send(b"0\r\n\r\n")
        code, body = raw.answer()
        assert (code, json.loads(body)["reason"]) == (413, "RequestEntityTooLarge")
        raw.reset()
    assert short.request("GET", MAPS).status == 200


def test_client_that_expects_100_continue_is_told_to(short: ServerProcess) -> None:
    raw, body = Raw(short), b'{"metadata":{"name":"expected"}}'
    raw.head(
        "POST",
        MAPS,
        Content_Length=len(body),
        Content_Type="application/json",
        Expect="100-continue",
    )
    assert raw.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
    raw.send(body)
    assert raw.answer()[0] == 201
    raw.socket.close()


def test_client_without_a_token_is_not_told_to_continue(short: ServerProcess) -> None:
    raw = Raw(short)
    raw.token = "rubbish"
    raw.head("POST", MAPS, Content_Length=3_000_000, Expect="100-continue")
    assert raw.answer()[0] == 401
    raw.socket.close()


def test_pipelined_requests_are_answered_in_order(short: ServerProcess) -> None:
    raw = Raw(short)
    for number in range(20):
        body = b'{"metadata":{"name":"p%d"}}' % number
        raw.head("POST", MAPS, Content_Length=len(body), Content_Type="application/json")
        raw.send(body)
    raw.head("GET", "/version", Connection="close")
    received = raw.read()
    names = re.findall(rb'"name":"(p\d+)"', received)
    assert list(dict.fromkeys(names)) == [b"p%d" % number for number in range(20)]
    assert received.count(b"HTTP/1.1 201 ") == 20


def test_http_1_0_closes_after_its_answer(short: ServerProcess) -> None:
    raw = Raw(short)
    raw.send(
        f"GET {MAPS}?watch=1&timeoutSeconds=1 HTTP/1.0\r\nAuthorization: Bearer "
        f"{raw.token}\r\n\r\n".encode()
    )
    received = raw.read()
    assert received.split()[1] == b"200"
    assert b"chunked" not in received
