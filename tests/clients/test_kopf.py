"""kopf: an operator with a custom resource, its own status, children and a finalizer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import SECONDS
from tests.server.conftest import ServerProcess
from tests.waiting import eventually

pytest.importorskip("kopf", reason="the client is missing: pip install -e '.[clients]'")

OPERATOR = """
import kopf

@kopf.on.create("example.org", "v1", "crontabs")
def create(spec, name, **_):
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-schedule"},
             "data": {"schedule": spec["schedule"]}}
    kopf.adopt(child)
    return {"child": api("POST", "configmaps", child)["metadata"]["name"]}

@kopf.on.field("example.org", "v1", "crontabs", field="spec.schedule", old=kopf.PRESENT)
def change(new, name, patch, **_):
    api("PATCH", f"configmaps/{name}-schedule", {"data": {"schedule": new}})
    patch.status["replicas"] = 7

@kopf.on.delete("example.org", "v1", "crontabs")
def delete(name, **_):
    api("POST", "configmaps", {"metadata": {"name": f"{name}-was-here"}})

def api(method, path, body):
    import json, os, ssl, urllib.request
    url = f"{os.environ['URL']}/api/v1/namespaces/{os.environ['NAMESPACE']}/{path}"
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    request = urllib.request.Request(url, json.dumps(body).encode(), {
        "Authorization": f"Bearer {os.environ['TOKEN']}", "Content-Type": kind}, method=method)
    return json.load(urllib.request.urlopen(request, context=ssl._create_unverified_context()))
"""


@pytest.fixture
def operator(
    server: ServerProcess, namespace: str, crontabs: str, tmp_path: Path
) -> Iterator[None]:
    """The operator, running for the test's namespace."""
    (tmp_path / "operator.py").write_text(OPERATOR)
    environment = {
        **os.environ,
        "KUBECONFIG": str(server.kubeconfig),
        "URL": server.url,
        "TOKEN": server.token,
        "NAMESPACE": namespace,
    }
    log = (tmp_path / "log").open("w+")
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "kopf",
            "run",
            "--standalone",
            "-n",
            namespace,
            str(tmp_path / "operator.py"),
        ],
        env=environment,
        stdout=log,
        stderr=log,
    )
    yield
    process.terminate()
    status = process.wait(SECONDS)
    log.seek(0)
    text = log.read()
    log.close()
    assert (status, "Traceback" in text) == (0, False), text


@pytest.mark.usefixtures("operator")
def test_operator_creates_updates_and_cleans_up(server: ServerProcess, namespace: str) -> None:
    crons = f"/apis/example.org/v1/namespaces/{namespace}/crontabs"
    maps = f"/api/v1/namespaces/{namespace}/configmaps"

    def get(path: str) -> Any:
        answer = server.request("GET", path)
        return answer.json() if answer.status == 200 else {}

    daily = {
        "apiVersion": "example.org/v1",
        "kind": "CronTab",
        "metadata": {"name": "daily"},
        "spec": {"schedule": "@daily"},
    }
    assert server.request("POST", crons, daily).status == 201
    child = eventually(lambda: get(f"{maps}/daily-schedule"))
    assert (child["data"], child["metadata"]["ownerReferences"][0]["kind"]) == (
        {"schedule": "@daily"},
        "CronTab",
    )
    eventually(lambda: get(f"{crons}/daily")["metadata"].get("annotations"))
    assert get(f"{crons}/daily")["metadata"]["finalizers"] == [
        "kopf.zalando.org/KopfFinalizerMarker"
    ]

    merge = {"Content-Type": "application/merge-patch+json"}
    server.request("PATCH", f"{crons}/daily", {"spec": {"schedule": "@weekly"}}, merge)
    eventually(lambda: get(f"{maps}/daily-schedule")["data"] == {"schedule": "@weekly"})
    eventually(lambda: get(f"{crons}/daily").get("status", {}).get("replicas") == 7)

    server.request("DELETE", f"{crons}/daily")
    eventually(lambda: not get(f"{crons}/daily"))
    assert get(f"{maps}/daily-was-here")
    eventually(lambda: not get(f"{maps}/daily-schedule"))  # the garbage collector
