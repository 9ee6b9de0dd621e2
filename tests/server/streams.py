"""A server with TLS in this process, whose containers are fakes, for real clients."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from kubepy.cli.serve import url_of, write_kubeconfig
from kubepy.controlplane import build_manager, manager_lock
from kubepy.controlplane.open import open_cluster
from kubepy.server import certificates, listener
from kubepy.server.application import Application, ServeOptions

SECONDS = 20.0


class StreamServer(listener.HttpServer):
    """A server that no signal ends."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


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
        self._server = StreamServer(self.application, files, sockets, started.set, lambda: None)
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
