"""A real kubectl against a server: logs, drains, evictions, debugging, scaling, and the refusals of
connections."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kubepy.controlplane.open import open_cluster
from tests.server.conftest import ServerProcess, make_simple

pytestmark = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="there is no kubectl on the PATH"
)
SECONDS = 60
REFUSED = "error dialing backend: no containers run here: pods are simulated"
PODS: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "annotations": {"kubepy.dev/log": "one\ntwo"}},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pull", "annotations": {"kubepy.dev/outcome": "image-pull-backoff"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    },
]


class Done(NamedTuple):
    """The end of a command."""

    out: str
    err: str
    status: int


class Kubectl:
    """A kubectl with the kubeconfig of a server."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def __call__(self, *words: str, stdin: str = "") -> Done:
        done = subprocess.run(
            ["kubectl", "--kubeconfig", str(self._kubeconfig), *words],
            input=stdin,
            text=True,
            capture_output=True,
            timeout=SECONDS,
        )
        return Done(done.stdout, done.stderr, done.returncode)


@pytest.fixture(scope="module")
def kubectl(new_folder: Callable[[], Path]) -> Iterator[Kubectl]:
    """A server with two nodes and its controllers, and the pods web and pull; containers are not
    modelled."""
    folder = make_simple(new_folder())
    cluster = open_cluster(folder)
    for name in ("node-1", "node-2"):
        cluster.client.create("nodes", {"metadata": {"name": name}})
    cluster.close()
    server = ServerProcess(folder)
    try:
        kubectl = Kubectl(server.kubeconfig)
        done = kubectl(
            "apply",
            "-f",
            "-",
            stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": PODS}),
        )
        assert done.status == 0, done.err
        assert (
            kubectl("wait", "--for=condition=Ready", "pod/web", f"--timeout={SECONDS}s").status == 0
        )
        yield kubectl
    finally:
        server.process.terminate()
        server.process.wait(SECONDS)


def test_logs_are_those_of_the_annotation(kubectl: Kubectl) -> None:
    assert kubectl("logs", "web") == Done("one\ntwo\n", "", 0)
    assert kubectl("logs", "web", "--tail=1").out == "two\n"
    done = kubectl("logs", "pull")
    assert (done.err, done.status) == (
        'Error from server (BadRequest): container "c" in pod "pull" is waiting to start: trying '
        "and failing to pull "
        "image\n",
        1,
    )


@pytest.mark.parametrize("words", ["exec web -- ls", "attach web", "port-forward pod/web :80"])
def test_connection_is_refused_in_one_line(kubectl: Kubectl, words: str) -> None:
    done = kubectl(*words.split())
    assert done.status == 1
    assert done.err.splitlines()[-1].endswith(REFUSED)


def test_debug_container_is_started(kubectl: Kubectl) -> None:
    done = kubectl(
        "debug",
        "web",
        "--image=busybox",
        "--profile=general",
        "-c",
        "debugger",
        "-i",
        stdin="exit\n",
    )
    assert done.status == 0, done.err
    path = "-o=jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.reason}"
    assert kubectl("get", "pod", "web", path).out == "Completed"


def test_pod_is_resized(kubectl: Kubectl) -> None:
    patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "200m"}}}]}}
    done = kubectl("patch", "pod", "web", "--subresource=resize", "-p", json.dumps(patch))
    assert done.status == 0, done.err
    path = "{.status.containerStatuses[0].allocatedResources.cpu}"
    assert (
        kubectl("wait", f"--for=jsonpath={path}=200m", "pod/web", f"--timeout={SECONDS}s").status
        == 0
    )


def test_attached_pod_ends(kubectl: Kubectl) -> None:
    done = kubectl("run", "shell", "-i", "--rm", "--restart=Never", "--image=busybox", "--", "sh")
    assert done.status == 0, done.err
    assert 'pod "shell" deleted' in done.out


def test_node_is_drained_through_evictions(kubectl: Kubectl) -> None:
    assert kubectl("create", "deployment", "d", "--image=i", "--replicas=4").status == 0
    assert kubectl("rollout", "status", "deployment/d", f"--timeout={SECONDS}s").status == 0
    assert (
        kubectl(
            "create", "poddisruptionbudget", "b", "--selector=app=d", "--min-available=2"
        ).status
        == 0
    )
    assert kubectl("scale", "deployment/d", "--replicas=5").status == 0
    assert kubectl("get", "deployment", "d", "--subresource=scale", "--no-headers").out.split()[
        :2
    ] == ["d", "5"]
    done = kubectl("drain", "node-1", "--force", "--ignore-daemonsets", f"--timeout={SECONDS}s")
    assert done.status == 0, done.err
    assert "node/node-1 drained" in done.out
    assert kubectl("uncordon", "node-1").status == 0


def test_nodes_have_leases(kubectl: Kubectl) -> None:
    names = kubectl("get", "leases", "-n", "kube-node-lease", "-o", "name").out.split()
    assert names == [f"lease.coordination.k8s.io/node-{number}" for number in (1, 2)]
