"""``port-forward`` to containers that are fakes and listen on port 80."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from kubepy.cli.main import main
from tests.cli.conftest import Done, Kubepy
from tests.kubelet import fakemachine
from tests.kubelet.fakemachine import FakeContainers

SECONDS = 20.0
OBJECTS = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: c, image: nginx, ports: [{name: http, containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{name: web, port: 8000, targetPort: http}, {name: other, port: 8001, targetPort: 81}]
---
apiVersion: v1
kind: Pod
metadata: {name: pending}
spec: {nodeSelector: {no: node}, containers: [{name: c, image: nginx}]}
"""


@pytest.fixture
def containers(monkeypatch: pytest.MonkeyPatch) -> FakeContainers:
    return fakemachine.install(monkeypatch)


@pytest.fixture
def kubepy(bare: Kubepy, containers: FakeContainers) -> Kubepy:
    bare("init", "--nodes=1")
    assert bare("apply", "-f", "-", stdin=OBJECTS).status == 0
    assert bare("controller", "--once", "-q").status == 0
    return bare


class Forwarding:
    """The command in a thread."""

    def __init__(self, *words: str) -> None:
        self.out, self.err, self.status = io.StringIO(), io.StringIO(), -1
        self._words = ("port-forward", *words)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.status = main(self._words, stdin=io.StringIO(), stdout=self.out, stderr=self.err)

    def port(self) -> int:
        """Return the first port that it listens on."""
        end = time.monotonic() + SECONDS
        while " -> " not in self.out.getvalue():
            assert time.monotonic() < end
            time.sleep(0.01)
        return int(self.out.getvalue().split()[2].rpartition(":")[2])

    def join(self) -> None:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


def get(port: int, path: str) -> bytes:
    connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    connection.request("GET", path)
    body = connection.getresponse().read()
    connection.close()
    return body


@pytest.fixture
def ending(kubepy: Kubepy) -> Iterator[None]:
    """End the command with its pod."""
    yield
    kubepy("delete", "pod", "web", "--ignore-not-found", "--force")


@pytest.mark.parametrize("words", [("web", ":80"), ("pod/web", ":http"), ("svc/web", ":web")])
def test_port_forward_answers_from_pod_until_it_is_gone(
    kubepy: Kubepy, ending: None, words: tuple[str, ...]
) -> None:
    forwarding = Forwarding(*words)
    port = forwarding.port()
    assert get(port, "/one") == b"GET /one at web\n"
    assert get(port, "/two") == b"GET /two at web\n"
    kubepy("delete", "pod", "web", "--force")
    forwarding.join()
    lines = forwarding.out.getvalue().splitlines()
    assert lines[0] == f"Forwarding from 127.0.0.1:{port} -> 80"
    assert lines[-2:] == [f"Handling connection for {port}"] * 2
    assert forwarding.err.getvalue() == "error: lost connection to pod\n"
    assert forwarding.status == 1


def test_port_forward_to_port_that_is_closed_loses_pod(kubepy: Kubepy, ending: None) -> None:
    forwarding = Forwarding("web", ":81")
    with socket.create_connection(("127.0.0.1", forwarding.port()), SECONDS) as client:
        assert client.recv(1) == b""
    forwarding.join()
    error = forwarding.err.getvalue()
    assert "an error occurred forwarding" in error
    assert error.endswith('connection refused"\nerror: lost connection to pod\n')


def test_port_forward_of_port_in_use_says_so(kubepy: Kubepy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = kubepy("port-forward", "--address=127.0.0.1", "web", f"{port}:80")
    assert done == Done(
        "",
        f"Unable to listen on port {port}: Listeners failed to create with the following errors: "
        f"[unable to create listener: Error listen tcp4 127.0.0.1:{port}: bind: address already "
        f"in use]\nerror: unable to listen on any of the requested ports: [{{{port} 80}}]\n",
        1,
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("web", "TYPE/NAME and list of ports are required for port-forward"),
        ("web 80:", "remote port cannot be empty"),
        ("web :nope", "Pod 'web' does not have a named port 'nope'"),
        ("svc/web 7", "Service web does not have a service port 7"),
        ("svc/web :nope", "Service 'web' does not have a named port 'nope'"),
        (
            "pending 80",
            "unable to forward port because pod is not running. Current status=Pending",
        ),
    ],
)
def test_port_forward_of_wrong_port_is_error(kubepy: Kubepy, words: str, error: str) -> None:
    done = kubepy("port-forward", *words.split())
    assert done.err.splitlines()[0] == f"error: {error}"
    assert done.status == 1
