"""``kubepy proxy`` as a process."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.cli.conftest import Kubepy

SECONDS = 30.0


class ProxyProcess:
    """The command, and the line that it begins with."""

    def __init__(self, folder: Path, *words: str) -> None:
        command = [sys.executable, "-m", "kubepy", "proxy", *words]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()

    def get(self, path: str, method: str = "GET") -> tuple[int, bytes]:
        host, port = self.line.split()[-1].split(":")
        connection = HTTPConnection(host, int(port), timeout=SECONDS)
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, err


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[..., ProxyProcess]]:
    started: list[ProxyProcess] = []

    def begin(*words: str) -> ProxyProcess:
        started.append(ProxyProcess(folder, *words))
        return started[-1]

    yield begin
    for proxy in started:
        if proxy.process.poll() is None:
            proxy.stop()


def test_proxy_serves_api_and_pods_without_token(
    bare: Kubepy, start: Callable[..., ProxyProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEPY_CONTAINERS", "modelled")
    bare("init", "--nodes=1", "--clock=2026-01-01T00:00:00Z")
    bare("run", "web", "--image=nginx", "--port=80", "--expose")
    bare("wait", "--for=condition=Ready", "pod/web")
    bare("controller", "--once", "-q")
    proxy = start("--port=0")
    assert re.fullmatch(r"Starting to serve on 127\.0\.0\.1:\d+\n", proxy.line)
    assert json.loads(proxy.get("/version")[1])["minor"] == "36"
    for path in ("pods/web/proxy/", "services/web/proxy/"):
        status, body = proxy.get(f"/api/v1/namespaces/default/{path}")
        assert (status, b"Welcome to nginx" in body) == (200, True)
    assert proxy.get("/api/v1/nodes/node-1/proxy/healthz") == (200, b"ok")
    assert proxy.get("/api/v1/namespaces/default/pods/web/exec", "POST")[0] == 403
    assert proxy.stop() == (0, "")


def test_proxy_asks_as_current_user(kubepy: Kubepy, start: Callable[..., ProxyProcess]) -> None:
    proxy = start("--port=0", "--as=jane", "--as-group=dev", "--reconcile=never")
    connection = HTTPConnection(proxy.line.split()[-1], timeout=SECONDS)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    connection.request(
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        json.dumps(review),
        {"content-type": "application/json"},
    )
    user = json.loads(connection.getresponse().read())["status"]["userInfo"]
    connection.close()
    assert (user["username"], user["groups"]) == ("jane", ["dev", "system:authenticated"])
    assert proxy.stop(signal.SIGINT) == (130, "")


def test_proxy_serves_on_private_unix_socket(
    kubepy: Kubepy, folder: Path, start: Callable[..., ProxyProcess]
) -> None:
    path = folder / "p.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    proxy = start("--unix-socket=p.sock", "--reconcile=never")
    assert proxy.line == "Starting to serve on p.sock\n"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SECONDS)
        connection.connect(str(path))
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        received = b""
        while piece := connection.recv(65536):
            received += piece
    assert received.startswith(b"HTTP/1.1 200 OK\r\n")
    assert proxy.stop() == (0, "")
    assert not path.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--port=80", "--unix-socket=x"), "cannot set --unix-socket and --port at the same time"),
        (("--port=70000",), "listen tcp: address 70000: invalid port"),
        (
            ("--accept-paths=a(",),
            "Error compiling re: error parsing regexp: missing closing ): `a(`",
        ),
        (
            ("--unix-socket=none/x",),
            "listen unix none/x: bind: no such file or directory",
        ),
    ],
)
def test_wrong_flags_are_named(kubepy: Kubepy, words: tuple[str, ...], message: str) -> None:
    done = kubepy("proxy", *words)
    assert (done.err, done.status) == (f"error: {message}\n", 1)


def test_port_in_use_is_named(kubepy: Kubepy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = kubepy("proxy", f"--port={port}")
    assert done.err == (f"error: listen tcp 127.0.0.1:{port}: bind: address already in use\n")


def test_folder_that_is_none_and_missing_filter_are_warned_of(kubepy: Kubepy, folder: Path) -> None:
    (folder / "file").touch()
    done = kubepy("proxy", "--port=70000", "--www=file", "--disable-filter")
    assert "Request filter disabled, your proxy is vulnerable to XSRF attacks" in done.err
    assert "Static file directory file is not a directory\n" in done.err
    missing = kubepy("proxy", "--port=70000", "--www=none")
    assert (
        "Failed to stat static file directory none: stat none: no such file or directory\n"
        in missing.err
    )


def test_proxy_without_cluster_says_so(bare: Kubepy) -> None:
    assert bare("proxy").err.startswith('error: no cluster in "state"')
