"""Servers for tests: ``api`` in this process without a network, ``server`` as a process with TLS on
a free port."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from kubepy.controlplane.open import make_cluster, open_cluster
from kubepy.server import certificates
from kubepy.server.application import Application, ServeOptions
from kubepy.server.chain import HandlerChain
from kubepy.storage import yaml
from tests.copies import copy_with_index

TOKEN = "the-administrators-token"
SIGNING_KEY = certificates.pem_of_key(ec.generate_private_key(ec.SECP256R1()))
SECONDS = 20.0


class Answer(NamedTuple):
    """An answer. ``headers``: names in lower case; repeated ones are joined by ``, ``."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Stream:
    """An answer that comes in pieces; read in a loop, or one at a time with :meth:`next`."""

    def __init__(self, api: Api, scope: dict[str, Any]) -> None:
        self._pieces: queue.Queue[bytes | None] = queue.Queue()
        self._buffer = b""
        self._started = threading.Event()
        self.status, self.headers = 0, {}
        self._gone = asyncio.Event()
        self._api = api
        self._is_asked = False
        self.future = asyncio.run_coroutine_threadsafe(
            api.chain(scope, self._receive, self._send), api.loop
        )
        self.future.add_done_callback(lambda future: (self._started.set(), self._pieces.put(None)))
        assert self._started.wait(SECONDS)

    async def _receive(self) -> dict[str, Any]:
        if not self._is_asked:
            self._is_asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], headers_of(message)
            self._started.set()
        elif message.get("body"):
            self._pieces.put(bytes(message["body"]))

    def next(self, seconds: float = SECONDS) -> bytes | None:
        """Return the next piece, None at the end. Raises queue.Empty."""
        return self._pieces.get(timeout=seconds)

    def event(self, seconds: float = SECONDS) -> Any:
        """Return the next line as JSON, None at the end. Raises queue.Empty."""
        while b"\n" not in self._buffer:
            piece = self.next(seconds)
            if piece is None:
                return None
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def __iter__(self) -> Iterator[bytes]:
        while (piece := self.next()) is not None:
            yield piece

    def close(self) -> None:
        """Vanish, as a client does that is not interested any more."""
        self._api.loop.call_soon_threadsafe(self._gone.set)
        self.future.result(SECONDS)


class Api:
    """A server in this process, asked without a network.

    :ivar cluster: the cluster, open for the test itself.
    :ivar log: the lines that the server has logged.
    """

    def __init__(self, folder: Path, options: ServeOptions) -> None:
        self.folder = folder
        self.cluster = open_cluster(folder)
        self.log: list[str] = []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.application = Application(
            str(folder), options, token=TOKEN, signing_key=SIGNING_KEY, log=self.log.append
        )
        self.chain = HandlerChain(self.application)
        self.run(self.application.start())

    def run(self, coroutine: Any) -> Any:
        """Run a coroutine in the server's event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(SECONDS)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        token: str = TOKEN,
    ) -> Answer:
        """Send a request; a body that is not bytes is sent as JSON."""
        data = (
            b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        messages = [{"type": "http.request", "body": data, "more_body": False}]
        return self.send(scope_of(method, path, self._headers(headers, token, body)), messages)

    def send(self, scope: dict[str, Any], messages: list[dict[str, Any]]) -> Answer:
        """Run the application on messages; after them the client is gone."""
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        self.run(self.chain(scope, receive, send))
        if not sent:
            return Answer(0, {}, b"")
        return Answer(
            sent[0]["status"],
            headers_of(sent[0]),
            b"".join(message.get("body", b"") for message in sent),
        )

    def stream(
        self, path: str, headers: Mapping[str, str] | None = None, *, token: str = TOKEN
    ) -> Stream:
        """Send a GET whose answer comes in pieces."""
        return Stream(self, scope_of("GET", path, self._headers(headers, token, None)))

    def _headers(self, headers: Mapping[str, str] | None, token: str, body: Any) -> dict[str, str]:
        own = {"authorization": f"Bearer {token}"} if token else {}
        if body is not None and not isinstance(body, bytes):
            own["content-type"] = "application/json"
        return {**own, **{name.lower(): value for name, value in (headers or {}).items()}}

    def get(
        self, path: str, headers: Mapping[str, str] | None = None, *, token: str = TOKEN
    ) -> Answer:
        return self.request("GET", path, None, headers, token=token)

    def post(
        self, path: str, body: Any, headers: Mapping[str, str] | None = None, *, token: str = TOKEN
    ) -> Answer:
        return self.request("POST", path, body, headers, token=token)

    def put(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
        return self.request("PUT", path, body, headers)

    def patch(
        self, path: str, body: Any, content_type: str = "application/merge-patch+json"
    ) -> Answer:
        return self.request("PATCH", path, body, {"content-type": content_type})

    def delete(
        self, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        return self.request("DELETE", path, body, headers)

    def close(self) -> None:
        self.run(self.application.stop())
        self.application.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
        self.cluster.close()


def scope_of(method: str, path: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the ASGI scope of a request."""
    raw_path, _, query = path.partition("?")
    return {
        "type": "http",
        "method": method,
        "raw_path": raw_path.encode(),
        "path": raw_path,
        "query_string": query.encode(),
        "http_version": "1.1",
        "client": ("127.0.0.1", 1),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }


def headers_of(message: Mapping[str, Any]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in message["headers"]:
        key = name.decode()
        headers[key] = f"{headers[key]}, {value.decode()}" if key in headers else value.decode()
    return headers


@pytest.fixture(scope="session")
def new_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Make state folders: copies of a cluster with the objects that every cluster has."""
    template = tmp_path_factory.mktemp("template") / "state"
    make_cluster(template, {}).close()

    def new() -> Path:
        return copy_with_index(template, tmp_path_factory.mktemp("cluster") / "state")

    return new


def make_simple(folder: Path) -> Path:
    """Let a cluster not model containers, and return its folder."""
    settings = folder / "kubepy.yaml"
    text = settings.read_text()
    assert "containers: modelled" in text
    settings.write_text(text.replace("containers: modelled", "containers: simple"))
    return folder


@pytest.fixture
def new_api(new_folder: Callable[[], Path]) -> Iterator[Callable[..., Api]]:
    """Start servers in this process, without controllers: ``new_api(authorization="RBAC")``."""
    started: list[Api] = []

    def start(folder: Path | None = None, **options: Any) -> Api:
        started.append(
            Api(
                folder or new_folder(),
                ServeOptions(**{"controllers": frozenset(), **options}),
            )
        )
        return started[-1]

    yield start
    for api in started:
        api.close()


@pytest.fixture
def api(new_api: Callable[..., Api]) -> Api:
    """A server of a new cluster in this process, without controllers."""
    return new_api()


class ServerProcess:
    """``kubepy serve`` as a process.

    :param limits: constants of modules of ``kubepy.server`` that are others in this process:
        "listener.HEADER_SECONDS".
    :param state: the place of the cluster, if it is not in the folder.
    :ivar kubeconfig: the path of its kubeconfig.
    """

    def __init__(
        self,
        folder: Path,
        *flags: str,
        limits: Mapping[str, float] | None = None,
        state: str = "",
    ) -> None:
        self.folder = folder
        self.kubeconfig = folder.parent / "kubeconfig"
        program = (
            [
                "-c",
                "; ".join(
                    (
                        "from kubepy.server import chain, listener, memory, watch, watchcache",
                        *(f"{name} = {value}" for name, value in limits.items()),
                        "from kubepy.cli.program import run",
                        "raise SystemExit(run())",
                    )
                ),
            ]
            if limits
            else ["-m", "kubepy"]
        )
        self.process = subprocess.Popen(
            [
                sys.executable,
                *program,
                "--state",
                state or str(folder),
                "serve",
                "--port=0",
                f"--write-kubeconfig={self.kubeconfig}",
                *flags,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "HOME": str(folder.parent)},
        )
        assert self.process.stdout is not None
        self.ready_line = self.process.stdout.readline()
        if not self.ready_line:
            raise AssertionError(self.process.communicate()[1])
        [document] = yaml.load_all(self.kubeconfig.read_text())
        self.config: Any = document.object
        self.url: str = self.config["clusters"][0]["cluster"]["server"]
        self.token: str = self.config["users"][0]["user"]["token"]

    @property
    def address(self) -> tuple[str, int]:
        url = urlsplit(self.url)
        assert url.hostname
        assert url.port
        return url.hostname, url.port

    def tls(self) -> ssl.SSLContext:
        """Return a context that trusts the CA of the kubeconfig."""
        import base64

        ca = base64.b64decode(self.config["clusters"][0]["cluster"]["certificate-authority-data"])
        return ssl.create_default_context(cadata=ca.decode())

    def connect(self) -> HTTPSConnection:
        return HTTPSConnection(*self.address, context=self.tls(), timeout=SECONDS)

    def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request on a connection of its own."""
        connection = self.connect()
        own = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            **(headers or {}),
        }
        connection.request(method, path, None if body is None else json.dumps(body), own)
        response = connection.getresponse()
        answer = Answer(
            response.status,
            {name.lower(): value for name, value in response.getheaders()},
            response.read(),
        )
        connection.close()
        return answer

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; return the exit status, and what the server wrote to stderr."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, errors


@pytest.fixture
def new_server(new_folder: Callable[[], Path]) -> Iterator[Callable[..., ServerProcess]]:
    """Start servers as processes: ``new_server("--controllers=off")``."""
    started: list[ServerProcess] = []

    def start(
        *flags: str, folder: Path | None = None, limits: Mapping[str, float] | None = None
    ) -> ServerProcess:
        started.append(ServerProcess(folder or new_folder(), *flags, limits=limits))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
        server.process.communicate()


@pytest.fixture
def server(new_server: Callable[..., ServerProcess]) -> ServerProcess:
    """A server of a new cluster as a process with TLS, without controllers."""
    return new_server("--controllers=off")
