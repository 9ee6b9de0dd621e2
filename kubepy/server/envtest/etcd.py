"""The program ``etcd`` of envtest's assets: it answers ``/health``, and keeps nothing.

The cluster is in the memory of the program ``kube-apiserver``. Nothing of kubepy is imported: the
file is run by its path, which takes as long as Python takes to start.
"""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Sequence

CLIENT_URLS = "--listen-client-urls"
DEFAULT = "http://localhost:2379"
HEALTHY = b'{"health":"true","reason":""}'
SECONDS = 10.0  # that a client may take for its request
HELP = """The etcd of kubepy for envtest: it answers /health on its client URL, and
keeps nothing, since the cluster is in the memory of kube-apiserver. All other
flags of etcd are accepted and mean nothing.

Usage:
  etcd [flags]

Flags:
  --listen-client-urls 'http://localhost:2379'
        The URL to listen on; of several the first.
  --listen-peer-urls, --advertise-client-urls, --data-dir, --unsafe-no-fsync
        Accepted; they mean nothing.
"""


def main(words: Sequence[str]) -> int:
    """Answer until SIGTERM or SIGINT; return the exit status."""
    if any(word in ("--help", "-help", "-h") for word in words):
        sys.stdout.write(HELP)
        return 0
    try:
        host, port = address_of(client_url(words))
        listener = socket.create_server((host, port), family=family_of(host))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"etcd: {client_url(words)!a}: {error}\n")
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: sys.exit(0))
    with listener:
        while True:
            connection, _ = listener.accept()
            answer(connection)


def client_url(words: Sequence[str]) -> str:
    """Return the first client URL of a command line."""
    url = DEFAULT
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if f"--{name.lstrip('-')}" != CLIENT_URLS:
            continue
        if equals:
            url = value
        elif index + 1 < len(words):
            url = words[index + 1]
    return url.split(",")[0]


def address_of(url: str) -> tuple[str, int]:
    """Return the host and port of a URL. Raises ValueError."""
    scheme, separator, rest = url.partition("://")
    if scheme != "http" or not separator:
        raise ValueError("must be a URL such as http://127.0.0.1:2379")
    host, colon, port = rest.rstrip("/").rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError("has no port")
    return host.strip("[]"), int(port)


def family_of(host: str) -> socket.AddressFamily:
    if ":" in host:
        return socket.AF_INET6
    return socket.AF_INET


def answer(connection: socket.socket) -> None:
    """Answer one request, and close the connection. A client that sends none is left."""
    with connection:
        connection.settimeout(SECONDS)
        received = b""
        try:
            while b"\r\n\r\n" not in received and len(received) < 65536:
                piece = connection.recv(65536)
                if not piece:
                    return
                received += piece
            path = received.split(b" ", 2)[1:2]
            if path == [b"/health"]:
                status, body = b"200 OK", HEALTHY
            else:
                status, body = b"404 Not Found", b"404 page not found\n"
            head = b"Content-Type: application/json\r\nConnection: close\r\nContent-Length: "
            connection.sendall(b"HTTP/1.1 %b\r\n%b%d\r\n\r\n%b" % (status, head, len(body), body))
        except OSError:  # the client has gone
            return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
