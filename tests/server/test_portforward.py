"""Port-forwarding over WebSockets, to containers that are fakes and listen on port 80."""

from __future__ import annotations

import struct
import subprocess
import zlib
from http.client import HTTPConnection

import pytest

from kubepy.kubelet.inside import PodReply, PodRequest
from kubepy.kubelet.portstreams import PortStream
from kubepy.server import spdy
from tests.kubelet.fakemachine import FakeContainers
from tests.server.streams import SECONDS, ServedFolder, WebSocketClient
from tests.server.test_remotecommand import (  # noqa: F401  (fixtures)
    containers,
    needs_kubectl,
    served,
    streams_of,
)

FORWARD = "/api/v1/namespaces/default/pods/web/portforward"
REQUEST = b"GET /a?b=c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


# --- bytes ----------------------------------------------------------------------------------------


def echo(request: PodRequest) -> PodReply:
    return PodReply(200, "OK", {"X-Method": request.method}, request.body or b"none")


def test_stream_answers_requests_one_after_the_other() -> None:
    stream = PortStream()
    sent = stream.receive(
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhiGET / HT", echo
    )
    assert sent.endswith(b"X-Method: POST\r\nContent-Length: 2\r\n\r\nhi")
    sent = stream.receive(b"TP/1.1\r\nHost: x\r\n\r\n", echo)
    assert sent.startswith(b"HTTP/1.1 200 OK\r\n")
    assert sent.endswith(b"none")
    assert not stream.is_closed
    assert stream.receive(b"", echo) == b""
    assert stream.is_closed


def test_stream_refuses_what_is_no_http() -> None:
    stream = PortStream()
    assert stream.receive(b"\x00\x01\r\n\r\n", echo).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert stream.is_closed
    assert stream.receive(b"more", echo) == b""


# --- SPDY -----------------------------------------------------------------------------------------


class SpdyClient:
    """Writes the frames of a client."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=spdy.DICTIONARY)

    def open(self, stream: int, headers: dict[str, str]) -> bytes:
        block = struct.pack("!I", len(headers))
        for name, value in headers.items():
            for text in (name, value):
                block += struct.pack("!I", len(text)) + text.encode()
        data = self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        payload = struct.pack("!IIH", stream, 0, 0) + data
        return struct.pack("!HHI", 0x8003, 1, len(payload)) + payload

    @staticmethod
    def data(stream: int, data: bytes, last: bool = False) -> bytes:
        return struct.pack("!II", stream, int(last) << 24 | len(data)) + data


def test_spdy_dictionary_is_that_of_the_protocol() -> None:
    assert (len(spdy.DICTIONARY), zlib.adler32(spdy.DICTIONARY)) == (1423, 0xE3C6A7C2)


def test_spdy_frames_that_come_in_parts_are_whole_events() -> None:
    client = SpdyClient()
    data = client.open(1, {"streamType": "data"}) + client.open(3, {"port": "80"})
    data += client.data(3, b"hi", last=True) + struct.pack("!HHII", 0x8003, 6, 4, 7)
    connection = spdy.SpdyConnection()
    events: list[spdy.Event] = []
    for place in range(len(data)):
        events += connection.receive(data[place : place + 1])
    assert events == [
        spdy.StreamOpened(1, {"streamtype": "data"}, False),
        spdy.StreamOpened(3, {"port": "80"}, False),
        spdy.StreamData(3, b"hi", True),
        spdy.Pinged(7),
    ]


@pytest.mark.parametrize("data", [b"\x80\x02\0\1\0\0\0\0", b"\x80\x03\0\1\0\0\0\4\0\0\0\1"])
def test_spdy_of_other_bytes_is_error(data: bytes) -> None:
    with pytest.raises(spdy.SpdyError):
        list(spdy.SpdyConnection().receive(data))


# --- over a WebSocket -----------------------------------------------------------------------------


def test_channels_of_library_carry_request(served: ServedFolder) -> None:  # noqa: F811
    client = WebSocketClient(served, f"{FORWARD}?ports=80", ["v4.channel.k8s.io"])
    client.send(b"\0" + REQUEST)
    streams = streams_of(client.messages())
    assert streams[0].startswith(b"\x50\x00HTTP/1.1 200 OK\r\n")
    assert streams[0].endswith(b"GET /a?b=c at web\n")
    assert streams[1] == b"\x50\x00"


def test_channels_of_port_that_is_closed_send_error(served: ServedFolder) -> None:  # noqa: F811
    client = WebSocketClient(served, f"{FORWARD}?ports=81", ["v4.channel.k8s.io"])
    streams = streams_of(client.messages())
    assert streams[1].startswith(b"\x51\x00error forwarding port 81 to pod ")
    assert streams[1].endswith(b"connection refused")


def test_tunnel_carries_connections_beside_each_other(served: ServedFolder) -> None:  # noqa: F811
    client = WebSocketClient(served, FORWARD, ["SPDY/3.1+portforward.k8s.io"])
    frames = SpdyClient()
    for number in (1, 2):
        headers = {"streamtype": "error", "port": "80", "requestid": str(number)}
        client.send(frames.open(4 * number - 3, headers))
        client.send(frames.open(4 * number - 1, headers | {"streamtype": "data"}))
    client.send(frames.data(7, REQUEST) + frames.data(3, REQUEST))
    client.send(struct.pack("!HHIII", 0x8003, 7, 8, 0, 0))
    answers: dict[int, bytes] = {}
    for message in client.messages():
        (stream,) = struct.unpack_from("!I", message)
        if stream < 1 << 31:
            answers[stream] = answers.get(stream, b"") + message[8:]
    assert answers[3].endswith(b"GET /a?b=c at web\n")
    assert answers[7].endswith(b"GET /a?b=c at web\n")


@needs_kubectl
def test_kubectl_port_forward_reaches_pod(
    served: ServedFolder,  # noqa: F811
    containers: FakeContainers,  # noqa: F811
) -> None:
    words = ["kubectl", "--kubeconfig", str(served.kubeconfig), "port-forward", "pod/web", ":80"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        port = int(line.split()[2].rpartition(":")[2])
        for path in ("/one", "/two"):
            connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
            connection.request("POST", path, b"x" * 100_000)
            assert connection.getresponse().read() == f"POST {path} at web\n".encode()
            connection.close()
    finally:
        process.terminate()
        process.communicate()
    assert [len(request.body) for request in containers.requests] == [100_000, 100_000]


def test_python_client_forwards_port(served: ServedFolder) -> None:  # noqa: F811
    kubernetes = pytest.importorskip("kubernetes")
    from kubernetes.stream import portforward  # type: ignore[import-untyped,unused-ignore]

    client = kubernetes.config.new_client_from_config(str(served.kubeconfig))
    core = kubernetes.client.CoreV1Api(client)
    forwarded = portforward(
        core.connect_get_namespaced_pod_portforward, "web", "default", ports="80"
    )
    connection = forwarded.socket(80)
    connection.settimeout(SECONDS)
    connection.sendall(REQUEST)
    answer = b""
    while piece := connection.recv(65536):
        answer += piece
    assert answer.endswith(b"GET /a?b=c at web\n")
    assert forwarded.error(80) is None
