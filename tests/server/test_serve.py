"""``kubepy serve`` as a process, with TLS."""

from __future__ import annotations

import os
import signal
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kubepy.cli.installation import missing_extra
from kubepy.server import listener
from kubepy.storage import yaml
from tests.cli.conftest import run
from tests.server.conftest import SECONDS, ServerProcess
from tests.waiting import eventually

LIVEZ = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
NewServer = Callable[..., ServerProcess]


def talk(server: ServerProcess, sent: bytes) -> bytes:
    """Send bytes over TLS; return what comes until the server closes the connection."""
    with (
        socket.create_connection(server.address, SECONDS) as plain,
        server.tls().wrap_socket(plain, server_hostname=server.address[0]) as connection,
    ):
        connection.sendall(sent)
        received = b""
        while piece := connection.recv(65536):
            received += piece
        return received


def test_ready_line_names_address_and_kubeconfig(server: ServerProcess) -> None:
    assert server.ready_line == (
        f"serving {server.folder} at {server.url}: kubectl --kubeconfig {server.kubeconfig} "
        "get nodes\n"
    )
    assert stat.S_IMODE(server.kubeconfig.stat().st_mode) == 0o600
    answer = server.request("GET", "/api/v1/namespaces")
    assert answer.status == 200
    assert "server" not in answer.headers
    assert "date" in answer.headers


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signal_ends_the_server_beside_an_idle_connection(
    server: ServerProcess, number: int, status: int
) -> None:
    connection = server.connect()
    connection.request("GET", "/livez")
    connection.getresponse().read()
    begin = time.monotonic()
    assert server.stop(number) == (status, "")
    assert time.monotonic() - begin < 10
    connection.close()


def test_signal_ends_watches_in_order(server: ServerProcess) -> None:
    connection = server.connect()
    connection.request(
        "GET", "/api/v1/namespaces?watch=1", headers={"Authorization": f"Bearer {server.token}"}
    )
    response = connection.getresponse()
    assert response.status == 200
    assert b'"ADDED"' in response.readline()
    server.process.send_signal(signal.SIGTERM)
    response.read()  # raises IncompleteRead where the stream is cut off
    connection.close()
    assert server.process.wait(SECONDS) == 0


def test_restart_keeps_certificate_authority_and_token(new_server: NewServer) -> None:
    first = new_server("--controllers=off")
    first.stop()
    second = new_server("--controllers=off", folder=first.folder)
    assert second.token == first.token
    [one], [other] = (server.config["clusters"] for server in (first, second))
    assert (
        one["cluster"]["certificate-authority-data"]
        == other["cluster"]["certificate-authority-data"]
    )


def test_removed_own_folder_is_put_back(server: ServerProcess) -> None:
    body = {"metadata": {"name": "a"}}
    assert server.request("POST", "/api/v1/namespaces", body).status == 201
    (server.folder / ".kubepy").rename(
        server.folder.parent / "gone"
    )  # at once: the server puts back what is missing
    assert server.request("GET", "/api/v1/namespaces/a").status == 200
    assert server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "b"}}).status == 201
    assert eventually((server.folder / ".kubepy" / "token").exists)
    assert (server.folder / ".kubepy" / "token").read_text() == server.token
    assert server.stop()[0] == 0


def test_killed_server_has_lost_nothing_that_it_acknowledged(new_server: NewServer) -> None:
    server = new_server("--controllers=off")
    connection = server.connect()
    for number in range(20):
        connection.request(
            "POST",
            "/api/v1/namespaces/default/configmaps",
            f'{{"metadata":{{"name":"c{number}"}}}}',
            {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"},
        )
        assert connection.getresponse().read()
    server.stop(signal.SIGKILL)
    connection.close()
    again = new_server("--controllers=off", folder=server.folder)
    names = [
        item["metadata"]["name"]
        for item in again.request("GET", "/api/v1/namespaces/default/configmaps").json()["items"]
    ]
    assert {f"c{number}" for number in range(20)} <= set(names)


def test_controllers_run_beside(new_server: NewServer) -> None:
    server = new_server()
    pods = "/api/v1/namespaces/default/pods"
    assert server.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}}).status == 201
    assert (
        server.request(
            "POST",
            pods,
            {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        ).status
        == 201
    )
    assert eventually(
        lambda: server.request("GET", f"{pods}/p").json()["status"]["phase"] == "Running"
    )
    assert server.stop() == (0, "")


def test_definition_can_be_deleted_without_controllers(server: ServerProcess) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    names = {"plural": "books", "singular": "book", "kind": "Book"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    created = server.request(
        "POST",
        definitions,
        {
            "metadata": {"name": "books.example.com"},
            "spec": {
                "group": "example.com",
                "names": names,
                "scope": "Cluster",
                "versions": [version],
            },
        },
    )
    assert created.status == 201
    assert server.request("DELETE", f"{definitions}/books.example.com").status == 200
    assert eventually(
        lambda: server.request("GET", f"{definitions}/books.example.com").status == 404
    )


def test_controllers_end_with_a_killed_server(new_server: NewServer) -> None:
    server = new_server()
    holder = server.folder / ".kubepy" / "manager.lock.holder"
    assert eventually(lambda: holder.exists() and b"serve" in holder.read_bytes())
    server.stop(signal.SIGKILL)
    assert eventually(lambda: not holder.exists())


def test_rubbish_is_answered_with_a_status(server: ServerProcess) -> None:
    assert b'"reason": "BadRequest"' in talk(server, b"\x00rubbish\r\n\r\n")
    assert b"HTTP/1.1 431 " in talk(server, b"GET / HTTP/1.1\r\nX: " + (1024 * 1024 + 100) * b"x")
    assert talk(server, LIVEZ.replace(b"1.1", b"1.0")).endswith(b"\r\n\r\nok")
    assert (
        talk(
            server, 2 * LIVEZ + LIVEZ.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        ).count(b"ok")
        >= 3
    )
    assert server.stop() == (0, "")


def test_half_open_connections_hold_up_nobody(server: ServerProcess) -> None:
    half_open = [socket.create_connection(server.address, SECONDS) for _ in range(200)]
    assert server.request("GET", "/api/v1/namespaces").status == 200
    begin = time.monotonic()
    assert server.stop() == (0, "")
    assert time.monotonic() - begin < 10
    for connection in half_open:
        connection.close()


def test_body_that_is_too_large_is_refused_while_it_is_sent(server: ServerProcess) -> None:
    connection = server.connect()
    connection.request(
        "POST", "/api/v1/namespaces", 8_000_000 * b"x", {"Authorization": f"Bearer {server.token}"}
    )
    assert connection.getresponse().status == 413
    connection.close()


def test_kubeconfig_keeps_the_other_entries_of_its_file(
    new_folder: Callable[[], Path], new_server: NewServer
) -> None:
    folder = new_folder()
    (folder.parent / "kubeconfig").write_text(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: other\n  cluster: {server: "
        "https://example.com}\n"
    )
    server = new_server("--controllers=off", folder=folder)
    [document] = yaml.load_all(server.kubeconfig.read_text())
    assert [cluster["name"] for cluster in document.object["clusters"]] == ["kubepy-state", "other"]
    assert document.object["current-context"] == "kubepy-state"


# --- mistakes -------------------------------------------------------------------------------------


def test_serve_without_a_cluster_is_an_error(tmp_path: Path) -> None:
    done = run("--state", str(tmp_path / "none"), "serve")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(f'error: no cluster in "{tmp_path}/none"')


def test_port_in_use_is_an_error(new_folder: Callable[[], Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run("--state", str(new_folder()), "serve", f"--port={port}")
    assert done == (
        "",
        f"error: cannot listen on 127.0.0.1 port {port}: address already in use; --port=0 chooses "
        f"a "
        "free port\n",
        1,
    )


@pytest.mark.parametrize(
    ("flag", "error"),
    [
        (
            "--controllers=maybe",
            "--controllers: maybe is no group of controllers: must be on, off, all, or names of",
        ),
        ("--authorization=ABAC", "--authorization=ABAC is invalid: must be AlwaysAllow or RBAC"),
        ("--port=70000", "--port=70000 is invalid: must be between 0 and 65535"),
        ("--address=", "--address is empty: it must be an address or a name of this machine"),
        ("--address=nowhere.invalid", "cannot listen on nowhere.invalid port 6443: "),
    ],
)
def test_wrong_flag_is_an_error(new_folder: Callable[[], Path], flag: str, error: str) -> None:
    done = run("--state", str(new_folder()), "serve", flag)
    assert done.err.startswith(f"error: {error}")
    assert (done.status, done.err.count("\n")) == (1, 1)


def test_missing_packages_are_named(
    new_folder: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    done = run("--state", str(new_folder()), "serve")
    assert done.err == f"error: this command needs {missing_extra('serve')}\n"
    assert (done.out, done.status) == ("", 1)


def test_stale_kubeconfig_of_the_folder_is_replaced(new_folder: Callable[[], Path]) -> None:
    import subprocess
    import sys

    folder = new_folder()
    kubeconfig = folder / ".kubepy" / "kubeconfig"
    kubeconfig.write_text("{")
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "kubepy",
            "--state",
            str(folder),
            "serve",
            "--port=0",
            "--controllers=off",
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert process.stdout
    line = process.stdout.readline()
    process.terminate()
    process.communicate()
    assert str(kubeconfig) in line
    assert "certificate-authority-data" in kubeconfig.read_text()


def test_client_that_comes_before_the_server_is_ready_is_not_refused() -> None:
    [listening] = listener.listen("127.0.0.1", 0)
    with listening, socket.create_connection(listening.getsockname(), SECONDS):
        pass
