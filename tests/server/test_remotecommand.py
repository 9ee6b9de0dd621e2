"""``exec`` and ``attach`` over WebSockets, in containers that are fakes."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubepy.cli.main import main
from tests.kubelet import fakemachine
from tests.kubelet.fakemachine import FakeContainers
from tests.server.streams import SECONDS, ServedFolder, WebSocketClient

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {kubepy.dev/log: hello}}
spec: {containers: [{name: c, image: nginx, stdin: true}]}
"""
EXEC = "/api/v1/namespaces/default/pods/web/exec"
ALL = "stdin=true&stdout=true&stderr=true"
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl")


@pytest.fixture
def containers(monkeypatch: pytest.MonkeyPatch) -> FakeContainers:
    return fakemachine.install(monkeypatch)


def make_folder(path: Path) -> Path:
    folder = path / "state"
    manifest = path / "pods.yaml"
    manifest.write_text(PODS)
    words = ("--state", str(folder))
    assert main((*words, "init", "--nodes=1")) == 0
    assert main((*words, "apply", "-f", str(manifest))) == 0
    assert main((*words, "controller", "--once", "-q")) == 0
    return folder


@pytest.fixture
def served(tmp_path: Path, containers: FakeContainers) -> Iterator[ServedFolder]:
    served = ServedFolder(make_folder(tmp_path))
    yield served
    served.close()


def streams_of(messages: list[bytes]) -> dict[int, bytes]:
    streams: dict[int, bytes] = {}
    for message in messages:
        streams[message[0]] = streams.get(message[0], b"") + message[1:]
    return streams


def test_exec_sends_output_and_status(served: ServedFolder) -> None:
    client = WebSocketClient(served, f"{EXEC}?command=echo&command=hi&{ALL}", ["v4.channel.k8s.io"])
    assert client.opening.subprotocol == "v4.channel.k8s.io"
    streams = streams_of(client.messages())
    assert streams == {1: b"hi\n", 3: b'{"metadata":{},"status":"Success"}'}


def test_exec_that_fails_sends_exit_code(served: ServedFolder) -> None:
    client = WebSocketClient(served, f"{EXEC}?command=fail&command=3&{ALL}", ["v4.channel.k8s.io"])
    streams = streams_of(client.messages())
    assert streams[2] == b"failed\n"
    status = json.loads(streams[3])
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"] == {"causes": [{"reason": "ExitCode", "message": "3"}]}


def test_exec_with_v5_closes_stdin_by_signal(served: ServedFolder) -> None:
    protocols = ["v5.channel.k8s.io", "v4.channel.k8s.io"]
    client = WebSocketClient(served, f"{EXEC}?command=cat&{ALL}", protocols)
    assert client.opening.subprotocol == "v5.channel.k8s.io"
    client.send(b"\0one\n")
    client.send(b"\0two\n")
    client.send(b"\xff\0")
    assert streams_of(client.messages())[1] == b"one\ntwo\n"


def test_exec_with_base64_encodes_streams(served: ServedFolder) -> None:
    target = f"{EXEC}?command=echo&command=hi&{ALL}"
    client = WebSocketClient(served, target, ["v4.base64.channel.k8s.io"])
    streams = streams_of(client.messages())
    assert base64.b64decode(streams[ord("1")]) == b"hi\n"
    assert json.loads(base64.b64decode(streams[ord("3")]))["status"] == "Success"


def test_exec_without_protocol_sends_message_of_failure(served: ServedFolder) -> None:
    client = WebSocketClient(served, f"{EXEC}?command=fail&command=3&{ALL}", [])
    assert streams_of(client.messages())[3].startswith(b"command terminated with non-zero exit")


def test_exec_with_tty_echoes_keys_and_interrupts(
    served: ServedFolder, containers: FakeContainers
) -> None:
    client = WebSocketClient(served, f"{EXEC}?command=cat&tty=true&{ALL}", ["v5.channel.k8s.io"])
    client.send(b"\0hex\x7fy\r")
    client.send(b"\0\x03")
    streams = streams_of(client.messages())
    assert streams[1].startswith(b"hex\b \by\r\n")
    assert b"hey\r\n" in streams[1]
    assert containers.machine("web", "c").signals == [(2, 2)]
    assert json.loads(streams[3])["details"]["causes"][0]["message"] == "130"


def test_exec_of_missing_program_sends_internal_error(served: ServedFolder) -> None:
    client = WebSocketClient(served, f"{EXEC}?command=missing&{ALL}", ["v4.channel.k8s.io"])
    status = json.loads(streams_of(client.messages())[3])
    assert status["reason"] == "InternalError"
    assert "executable file not found in $PATH" in status["message"]


@pytest.mark.parametrize(
    ("target", "protocol", "code", "message"),
    [
        (f"{EXEC}?{ALL}", "v4.channel.k8s.io", 400, "at least one command for the container"),
        (f"{EXEC}?command=ls", "v4.channel.k8s.io", 400, "at least 1 of stdin, stdout, stderr"),
        (f"{EXEC}?command=ls&container=x&{ALL}", "v4.channel.k8s.io", 400, "container x is not"),
        (f"{EXEC}?command=ls&{ALL}", "v9.channel.k8s.io", 403, "are not supported: [v9.channel"),
        (EXEC.replace("web", "none"), "v4.channel.k8s.io", 404, 'pods \\"none\\" not found'),
    ],
)
def test_exec_that_cannot_be_is_refused_before_upgrade(
    served: ServedFolder, target: str, protocol: str, code: int, message: str
) -> None:
    status, body = WebSocketClient(served, target, [protocol]).rejection()
    assert status == code
    assert message in body.decode()


@needs_kubectl
def test_kubectl_exec_passes_streams_and_exit_status(served: ServedFolder) -> None:
    assert served.kubectl("exec", "web", "--", "echo", "hi") == ("hi\n", "", 0)
    assert served.kubectl("exec", "web", "--", "fail", "3") == (
        "",
        "failed\ncommand terminated with exit code 3\n",
        3,
    )
    many = b"line\n" * 50_000
    out, err, status = served.kubectl("exec", "-i", "web", "--", "cat", stdin=many)
    assert (out.encode() == many, err, status) == (True, "", 0)


@needs_kubectl
def test_kubectl_exec_of_sleep_waits(served: ServedFolder) -> None:
    assert served.kubectl("exec", "web", "--", "sleep", "0.3") == ("", "", 0)


@needs_kubectl
def test_kubectl_cp_copies_both_ways(
    served: ServedFolder, containers: FakeContainers, tmp_path: Path
) -> None:
    (tmp_path / "here").write_text("content\n")
    assert served.kubectl("cp", str(tmp_path / "here"), "web:/tmp/there") == ("", "", 0)
    assert containers.machine("web", "c").files == {"/tmp/there": b"content\n"}
    _, _, status = served.kubectl("cp", "web:/tmp/there", str(tmp_path / "back"))
    assert status == 0
    assert (tmp_path / "back").read_text() == "content\n"


def test_python_client_streams(served: ServedFolder) -> None:
    kubernetes = pytest.importorskip("kubernetes")
    from kubernetes.stream import stream  # type: ignore[import-untyped,unused-ignore]

    client = kubernetes.config.new_client_from_config(str(served.kubeconfig))
    core = kubernetes.client.CoreV1Api(client)
    words = {"stderr": True, "stdin": False, "stdout": True, "tty": False}
    assert (
        stream(
            core.connect_get_namespaced_pod_exec,
            "web",
            "default",
            command=["echo", "hi"],
            **words,
        )
        == "hi\n"
    )
    answer = stream(
        core.connect_get_namespaced_pod_exec,
        "web",
        "default",
        command=["fail", "3"],
        _preload_content=False,
        **words,
    )
    answer.run_forever(timeout=SECONDS)
    assert answer.read_stderr() == "failed\n"
    assert answer.returncode == 3
