"""A real kubectl, and the Python client, in containers that are modelled: attach, run -i, debug."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kubepy.controlplane.open import make_cluster
from tests.server.conftest import SECONDS, ServerProcess

LOOP = "while read x; do echo got $x; done; echo end"
needs_kubectl = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="there is no kubectl on the PATH"
)


def pod(name: str, command: list[str], **fields: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "command": command, **fields}
    spec = {"restartPolicy": "Never", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


PODS = [
    pod("once", ["sh", "-c", LOOP], stdin=True, stdinOnce=True),
    pod("open", ["sh", "-c", LOOP], stdin=True),
    pod("web", ["sh", "-c", "echo up; sleep 1000"]),
]


class Done(NamedTuple):
    """The end of a command."""

    out: str
    err: str
    status: int


class Kubectl:
    """A kubectl with the kubeconfig of a server."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server

    def __call__(self, *words: str, stdin: str = "") -> Done:
        done = subprocess.run(
            ["kubectl", "--kubeconfig", str(self.server.kubeconfig), *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "HOME": str(self.server.folder.parent)},
        )
        return Done(done.stdout, done.stderr, done.returncode)


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder: Path = tmp_path_factory.mktemp("sessions") / "state"
    make_cluster(folder, {"kubelet": {"containers": "modelled"}}).close()
    server = ServerProcess(folder)
    kubectl = Kubectl(server)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    items = {"apiVersion": "v1", "kind": "List", "items": [node, *PODS]}
    assert kubectl("create", "-f", "-", stdin=json.dumps(items)).status == 0
    assert kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=30s").status == 0
    yield kubectl
    server.stop()


def phase(kubectl: Kubectl, name: str) -> str:
    return kubectl("get", "pod", name, "-o", "jsonpath={.status.phase}").out


@needs_kubectl
def test_kubectl_attach_ends_stdin_that_is_open_once(kubectl: Kubectl) -> None:
    done = kubectl("attach", "-i", "-q", "once", stdin="one\ntwo\n")
    assert done == Done("got one\ngot two\nend\n", "", 0)
    assert phase(kubectl, "once") == "Succeeded"


@needs_kubectl
def test_kubectl_attach_leaves_stdin_open(kubectl: Kubectl) -> None:
    words = ["kubectl", "--kubeconfig", str(kubectl.server.kubeconfig), "attach", "-i", "open"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("one\n")
        process.stdin.close()
        assert process.stdout.readline() == "got one\n"
        process.kill()
    assert phase(kubectl, "open") == "Running"


@needs_kubectl
def test_kubectl_run_attached_passes_input_and_removes_pod(kubectl: Kubectl) -> None:
    words = ("run", "r", "-i", "-q", "--rm", "--restart=Never", "--image=busybox", "--")
    done = kubectl(*words, "sh", "-c", "cat; exit 3", stdin="line\n")
    assert (done.out, done.status) == ("line\n", 3)
    assert phase(kubectl, "r") == ""


@needs_kubectl
def test_kubectl_debug_adds_container_copies_pod_and_enters_node(kubectl: Kubectl) -> None:
    general = ("--profile=general", "--image=busybox")
    done = kubectl("debug", "web", *general, "-c", "probe", "--", "echo", "inside")
    assert done == Done("", "", 0)
    waited = "--for=jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}=0"
    assert kubectl("wait", waited, "pod/web", "--timeout=30s").status == 0
    assert kubectl("logs", "web", "-c", "probe").out == "inside\n"
    done = kubectl("debug", "web", *general, "-c", "d", "--copy-to=copy", "--", "sleep", "100")
    assert done.status == 0
    images = "jsonpath={.spec.containers[*].name}"
    assert kubectl("get", "pod", "copy", "-o", images).out == "c d"
    done = kubectl("debug", "node/n", *general, "-q", "--", "true")
    assert done.status == 0
    created = kubectl("get", "pods", "-o", "name").out
    assert "pod/node-debugger-n-" in created


def test_python_client_attaches_and_executes(kubectl: Kubectl) -> None:
    kubernetes = pytest.importorskip("kubernetes")
    from kubernetes.stream import stream  # type: ignore[import-untyped,unused-ignore]

    config = kubernetes.config.new_client_from_config(str(kubectl.server.kubeconfig))
    core = kubernetes.client.CoreV1Api(config)
    core.create_namespaced_pod("default", pod("echo", ["sh", "-c", LOOP], stdin=True))
    assert kubectl("wait", "--for=condition=Ready", "pod/echo", "--timeout=30s").status == 0
    words = {"stderr": True, "stdin": True, "stdout": True, "tty": False}
    attached = stream(
        core.connect_get_namespaced_pod_attach,
        "echo",
        "default",
        _preload_content=False,
        **words,
    )
    attached.write_stdin("python\n")
    assert attached.readline_stdout(timeout=SECONDS) == "got python"
    attached.close()
    script = ["sh", "-c", "read x; echo $x; exit 4"]
    executed = stream(
        core.connect_get_namespaced_pod_exec,
        "echo",
        "default",
        command=script,
        _preload_content=False,
        **words,
    )
    executed.write_stdin("typed\n")
    executed.run_forever(timeout=SECONDS)
    assert (executed.read_stdout(), executed.returncode) == ("typed\n", 4)
