"""Sockets to etcd, with and without TLS."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from kubepy.storage.etcd.errors import AddressError

if TYPE_CHECKING:
    import ssl

    from kubepy.storage.etcd.address import Address

_SEND_TIMEOUT = 10.0
_CHUNK = 1 << 18


class PlainChannel:
    """A socket."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.settimeout(_SEND_TIMEOUT)
        self._poll = select.poll()
        self._poll.register(connected, select.POLLIN)

    def receive(self, timeout: float) -> bytes:
        if not self._poll.poll(timeout * 1000):
            raise TimeoutError
        return self._socket.recv(_CHUNK)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def stop(self) -> None:
        with suppress(OSError):  # it has ended already
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()


class TlsChannel:
    """TLS over a socket. OpenSSL bears no two threads at once in one connection: the lock is held
    while bytes are turned into others, never while the socket waits."""

    def __init__(self, connected: socket.socket, context: ssl.SSLContext, name: str) -> None:
        import ssl

        self._channel = PlainChannel(connected)
        self._lock = threading.Lock()
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        self._wants_read = ssl.SSLWantReadError
        self._ended = ssl.SSLZeroReturnError

    def handshake(self, timeout: float) -> None:
        """Agree with the server. Raises OSError."""
        while True:
            try:
                self._tls.do_handshake()
            except self._wants_read:
                self._channel.send(self._outgoing.read())
                data = self._channel.receive(timeout)
                if not data:
                    raise OSError("the server closed the connection: does it speak TLS?") from None
                self._incoming.write(data)
            else:
                self._channel.send(self._outgoing.read())
                return

    @property
    def protocol(self) -> str | None:
        """The protocol that the server has chosen for what goes through TLS."""
        return self._tls.selected_alpn_protocol()

    def receive(self, timeout: float) -> bytes:
        while True:
            with self._lock:
                try:
                    return self._tls.read(_CHUNK)
                except self._wants_read:
                    pass
                except self._ended:
                    return b""
                answer = self._outgoing.read()  # to a change of keys
                if answer:
                    self._channel.send(answer)
            data = self._channel.receive(timeout)
            if not data:
                return b""
            with self._lock:
                self._incoming.write(data)

    def send(self, data: bytes) -> None:
        with self._lock:
            self._tls.write(data)
            encrypted = self._outgoing.read()
            self._channel.send(encrypted)

    def stop(self) -> None:
        self._channel.stop()

    def close(self) -> None:
        self._channel.close()


def connect(host: str, port: int, timeout: float) -> socket.socket:
    """Connect to a host, by whichever of its addresses answers. Raises OSError."""
    # As bytes, a name is not encoded by rules whose import takes as long as the rest
    name = host.encode() if host.isascii() else host
    return socket.create_connection((name, port), timeout=timeout)  # type: ignore[arg-type]


def tls_context(address: Address) -> ssl.SSLContext:
    """Read the certificates that an address names. Raises AddressError."""
    import ssl

    option = f"ca={address.ca}"
    try:
        context = ssl.create_default_context(cafile=address.ca or None)
        context.set_alpn_protocols(["h2"])
        if address.cert:
            option = f"cert={address.cert}"
            if address.key:
                option += f", key={address.key}"
            context.load_cert_chain(address.cert, address.key or None)
    except OSError as error:  # ssl.SSLError is one
        from kubepy.storage.etcd.http2 import reason_of

        raise AddressError(f"{address}: {option}: {reason_of(error)}") from None
    return context
