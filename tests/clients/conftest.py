"""A server with controllers for all tests of clients, and a namespace for each test."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.conftest import ServerProcess
from tests.waiting import eventually

SECONDS = 20.0
_NUMBERS = itertools.count()

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "crontabs.example.org"},
    "spec": {
        "group": "example.org", "scope": "Namespaced",
        "names": {"plural": "crontabs", "singular": "crontab", "kind": "CronTab"},
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                                                     "statusReplicasPath": ".status.replicas"}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"schedule": {"type": "string"},
                                                          "replicas": {"type": "integer"}}},
                "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}}},
        }],
    },
}  # fmt: skip
CONTAINER = {"name": "main", "image": "nginx"}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}},
    },
}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of a cluster with two nodes, as a process with its controllers."""
    folder = tmp_path_factory.mktemp("clients") / "state"
    subprocess.run(
        [sys.executable, "-m", "kubepy", "--state", str(folder), "init", "--nodes=2"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    process = ServerProcess(folder)
    yield process
    status, errors = process.stop()
    assert (status, errors) == (0, "")


@pytest.fixture
def kubeconfig(server: ServerProcess) -> str:
    return str(server.kubeconfig)


@pytest.fixture
def namespace(server: ServerProcess) -> Iterator[str]:
    """A namespace of its own for a test, with its ServiceAccount."""
    name = f"test-{next(_NUMBERS)}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert server.request("POST", "/api/v1/namespaces", body).status == 201
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    eventually(lambda: server.request("GET", account).status == 200)
    yield name
    server.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def crontabs(server: ServerProcess) -> str:
    """The custom resource ``crontabs.example.org``, ready for use."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert server.request("POST", path, CRD).status == 201
    eventually(lambda: server.request("GET", "/apis/example.org/v1/crontabs").status == 200)
    return "example.org"
