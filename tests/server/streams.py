"""A server with TLS in this process, whose containers are fakes, for real clients."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wsproto import ConnectionType, WSConnection, events

from kubepy.cli.serve import url_of, write_kubeconfig
from kubepy.controlplane import build_manager, manager_lock
from kubepy.controlplane.open import open_cluster
from kubepy.server import certificates, listener
from kubepy.server.application import Application, ServeOptions

SECONDS = 20.0


class ServedFolder:
    """A folder that is served in a thread.

    :ivar kubeconfig: the file with which clients find it.
    """

    def __init__(self, folder: Path, authorization: str = "AlwaysAllow") -> None:
        self.folder = folder
        self.kubeconfig = folder.parent / "kubeconfig"
        self.log: list[str] = []
        sockets = listener.listen("127.0.0.1", 0)
        self.port = sockets[0].getsockname()[1]
        self.url = url_of("127.0.0.1", self.port)
        self.keys = certificates.load_keys(
            str(folder), certificates.hosts_of("127.0.0.1"), self.log.append
        )
        options = ServeOptions(controllers=frozenset(), authorization=authorization)
        self.application = Application(
            str(folder),
            options,
            token=self.keys.token,
            signing_key=self.keys.signing_key,
            log=self.log.append,
        )
        write_kubeconfig(str(self.kubeconfig), str(folder), self.url, self.keys.ca, self.keys.token)
        started = threading.Event()
        files = listener.TlsFiles(
            self.keys.certificate, self.keys.certificate_key, self.keys.ca.decode()
        )
        self._server = listener.ThreadServer(self.application, files, sockets, started.set)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._server.serve()))
        self._thread.start()
        assert started.wait(SECONDS)

    def kubectl(self, *words: str, stdin: bytes = b"") -> tuple[str, str, int]:
        """Run the real kubectl; return its output and exit status."""
        done = subprocess.run(
            ["kubectl", *words],
            input=stdin,
            capture_output=True,
            timeout=SECONDS,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
        )
        return done.stdout.decode(), done.stderr.decode(), done.returncode

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(SECONDS)
        self.application.close()


def settle(folder: Path) -> None:
    """Let controllers, scheduler and kubelets do what is due."""
    cluster = open_cluster(folder)
    with manager_lock(cluster):
        build_manager(cluster).run_until_settled()
    cluster.close()


class WebSocketClient:
    """A client of a WebSocket.

    :ivar opening: the answer to the request that asks for it.
    """

    def __init__(
        self,
        served: ServedFolder,
        target: str,
        protocols: Sequence[str] = (),
        token: str | None = None,
        **headers: str,
    ) -> None:
        """Ask for a WebSocket.

        :param token: in place of the administrator's; "": none.
        """
        context = ssl.create_default_context(cadata=served.keys.ca.decode())
        plain = socket.create_connection(("127.0.0.1", served.port), SECONDS)
        self._socket = context.wrap_socket(plain, server_hostname="127.0.0.1")
        self._connection = WSConnection(ConnectionType.CLIENT)
        self._events: list[Any] = []
        token = served.keys.token if token is None else token
        if token:
            headers["authorization"] = f"Bearer {token}"
        self._write(
            events.Request(
                host="127.0.0.1",
                target=target,
                subprotocols=list(protocols),
                extra_headers=[(name.encode(), value.encode()) for name, value in headers.items()],
            )
        )
        self.opening = self.event()

    def _write(self, event: events.Event) -> None:
        self._socket.sendall(self._connection.send(event))

    def event(self) -> Any:
        while not self._events:
            self._connection.receive_data(self._socket.recv(65536) or None)
            self._events += self._connection.events()
        return self._events.pop(0)

    def send(self, data: bytes | str) -> None:
        self._write(events.Message(data=data))

    def messages(self) -> list[bytes]:
        """Return all messages up to the end."""
        messages: list[bytes] = []
        while True:
            event = self.event()
            if isinstance(event, events.CloseConnection):
                self.close()
                return messages
            if isinstance(event, (events.BytesMessage, events.TextMessage)):
                data = event.data
                messages.append(data.encode() if isinstance(data, str) else bytes(data))

    def rejection(self) -> tuple[int, bytes]:
        """Return the answer to a request that has not become a WebSocket."""
        body = b""
        assert isinstance(self.opening, events.RejectConnection)
        while not isinstance(event := self.event(), events.RejectData) or not event.body_finished:
            body += event.data
        body += event.data
        self.close()
        return self.opening.status_code, body

    def close(self) -> None:
        self._socket.close()
