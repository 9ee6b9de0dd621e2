"""Helm: the program where there is one on the PATH, and its own Go library in the package
``helm-sdkpy``.

A chart with a CustomResourceDefinition, a hook and a workload is installed, upgraded, rolled back
and uninstalled; each step waits for what it has changed. Helm keeps its releases in Secrets, which
it writes with protobuf.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.server.conftest import ServerProcess
from tests.waiting import eventually

CHART = {
    "Chart.yaml": "{apiVersion: v2, name: shop, version: 1.0.0}\n",
    "values.yaml": "{replicas: 1, message: hello}\n",
    "crds/carts.yaml": """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: carts.shop.example.org}
spec:
  group: shop.example.org
  scope: Namespaced
  names: {plural: carts, singular: cart, kind: Cart}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
""",
    "templates/all.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: shop}
data: {message: {{ .Values.message | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {selector: {app: shop}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: main, image: nginx, env: [{name: MESSAGE, value: {{ .Values.message | quote }}}]}]}
---
apiVersion: shop.example.org/v1
kind: Cart
metadata: {name: shop}
spec: {size: {{ .Values.replicas }}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: "pre-install,pre-upgrade",
                                        helm.sh/hook-delete-policy: before-hook-creation}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: migrate}]}}}
""",  # noqa: E501
}
TIME_LIMIT = 60


class Helm(Protocol):
    """What a test does with Helm, each step until it has taken effect."""

    def upgrade(self, **values: Any) -> None: ...

    def rollback(self, revision: int) -> None: ...

    def uninstall(self) -> None: ...

    def releases(self) -> list[str]: ...


class Program:
    """``helm``."""

    def __init__(self, kubeconfig: str, namespace: str, chart: Path) -> None:
        self._options = ["--kubeconfig", kubeconfig, "--namespace", namespace]
        self._chart = chart

    def _run(self, *words: str) -> str:
        done = subprocess.run(["helm", *words, *self._options], text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def upgrade(self, **values: Any) -> None:
        settings = [f"--set-json={name}={json.dumps(value)}" for name, value in values.items()]
        self._run(
            "upgrade",
            "--install",
            "shop",
            str(self._chart),
            "--wait",
            f"--timeout={TIME_LIMIT}s",
            *settings,
        )

    def rollback(self, revision: int) -> None:
        self._run("rollback", "shop", str(revision), "--wait", f"--timeout={TIME_LIMIT}s")

    def uninstall(self) -> None:
        self._run("uninstall", "shop", "--wait", f"--timeout={TIME_LIMIT}s")

    def releases(self) -> list[str]:
        return [release["name"] for release in json.loads(self._run("list", "--all", "-o", "json"))]


class Library:
    """``helm-sdkpy``."""

    def __init__(self, kubeconfig: str, namespace: str, chart: Path) -> None:
        self._sdk = pytest.importorskip(
            "helm_sdkpy",
            reason="the client is missing: pip install -e '.[clients]', with Python 3.12 or later",
        )
        self._configuration = self._sdk.Configuration(namespace=namespace, kubeconfig=kubeconfig)
        self._chart = chart

    def upgrade(self, **values: Any) -> None:
        action = self._sdk.Upgrade(self._configuration)
        asyncio.run(
            action.run(
                "shop", str(self._chart), values=values, install=True, wait=True, timeout=TIME_LIMIT
            )
        )

    def rollback(self, revision: int) -> None:
        try:
            asyncio.run(self._sdk.Rollback(self._configuration).run("shop", revision=revision))
        except (
            self._sdk.RollbackError
        ) as error:  # it has rolled back by then, and names no way to wait
            if "wait strategy not set" not in str(error):
                raise

    def uninstall(self) -> None:
        asyncio.run(
            self._sdk.Uninstall(self._configuration).run("shop", wait=True, timeout=TIME_LIMIT)
        )

    def releases(self) -> list[str]:
        return [
            release["name"]
            for release in asyncio.run(self._sdk.List(self._configuration).run()) or ()
        ]


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    for name, text in CHART.items():
        path = tmp_path / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "shop"


@pytest.fixture(params=["program", "library"])
def helm(request: pytest.FixtureRequest, kubeconfig: str, namespace: str, chart: Path) -> Helm:
    if request.param == "program" and shutil.which("helm") is None:
        pytest.skip("there is no helm on the PATH")
    make: Callable[[str, str, Path], Helm] = Program if request.param == "program" else Library
    return make(kubeconfig, namespace, chart)


def test_chart_is_installed_upgraded_rolled_back_and_uninstalled(
    helm: Helm, server: ServerProcess, namespace: str
) -> None:
    def read(path: str) -> Any:
        return server.request("GET", path).json()

    def is_ready(replicas: int) -> bool:
        return bool(read(deployment)["status"].get("readyReplicas") == replicas)

    deployment = f"/apis/apps/v1/namespaces/{namespace}/deployments/shop"
    config_map = f"/api/v1/namespaces/{namespace}/configmaps/shop"
    cart = f"/apis/shop.example.org/v1/namespaces/{namespace}/carts/shop"
    helm.upgrade(replicas=3)
    assert is_ready(3)
    assert read(cart)["spec"] == {"size": 3}
    helm.upgrade(replicas=2, message="bye")
    assert is_ready(2)
    assert read(config_map)["data"] == {"message": "bye"}
    helm.rollback(1)
    eventually(lambda: is_ready(3))
    assert (read(config_map)["data"], read(cart)["spec"]) == ({"message": "hello"}, {"size": 3})
    assert helm.releases() == ["shop"]
    helm.uninstall()
    assert helm.releases() == []
    for path in (deployment, config_map, cart):
        assert server.request("GET", path).status == 404
