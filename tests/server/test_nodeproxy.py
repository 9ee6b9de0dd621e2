"""``nodes/proxy`` where containers are modelled: what a kubelet answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kubepy.controlplane import build_manager
from tests.server.conftest import Api

NODE = "/api/v1/nodes/n/proxy"
MANIFEST = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "annotations": {"kubepy.dev/cpu": "250m", "kubepy.dev/memory": "8Mi"},
    },
    "spec": {
        "restartPolicy": "Never",
        "containers": [
            {"name": "c", "image": "busybox", "command": ["sh", "-c", "echo hi; sleep 9"]}
        ],
    },
}


@pytest.fixture
def node(new_api: Callable[..., Api], new_folder: Callable[[], Path]) -> Api:
    """A server of a cluster with a node and a pod."""
    folder = new_folder()
    (folder / "kubepy.yaml").write_text(
        "formatVersion: 1\nclock: 2026-01-01T00:00:00Z\nkubelet: {containers: modelled}\n"
    )
    api = new_api(folder)
    api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    assert api.post("/api/v1/namespaces/default/pods", MANIFEST).status == 201
    assert build_manager(api.cluster).run_until_settled().failures == []
    return api


@pytest.mark.parametrize("path", ["healthz", "healthz/", "healthz/ping", "healthz/syncloop"])
def test_node_is_healthy(node: Api, path: str) -> None:
    answer = node.get(f"{NODE}/{path}")
    assert (answer.status, answer.body) == (200, b"ok")
    assert node.get(f"/api/v1/nodes/n:10250/proxy/{path}").body == b"ok"


def test_node_lists_its_pods(node: Api) -> None:
    pods = node.get(f"{NODE}/pods").json()
    assert pods["kind"] == "PodList"
    [pod] = pods["items"]
    assert (pod["metadata"]["name"], pod["status"]["phase"]) == ("p", "Running")
    assert "kind" not in pod


def test_node_summary_has_usage_of_pods(node: Api) -> None:
    summary = node.get(f"{NODE}/stats/summary").json()
    assert summary["node"]["nodeName"] == "n"
    [pod] = summary["pods"]
    assert pod["podRef"]["name"] == "p"
    assert pod["containers"][0]["cpu"]["usageNanoCores"] == 250_000_000
    assert pod["containers"][0]["memory"]["workingSetBytes"] == 8 * 1024**2
    assert summary["node"]["memory"]["usageBytes"] == 8 * 1024**2


def test_node_has_logs_of_containers(node: Api) -> None:
    assert node.get(f"{NODE}/containerLogs/default/p/c").body == b"hi\n"
    timed = node.get(f"{NODE}/containerLogs/default/p/c?timestamps=true&tailLines=1").body
    assert timed == b"2026-01-01T00:00:00.000000000Z hi\n"
    assert node.get(f"{NODE}/containerLogs/default/q/c").status == 404


@pytest.mark.parametrize("path", ["", "metrics", "run/default/p/c", "logs/", "containerLogs/x"])
def test_node_does_not_have_the_rest(node: Api, path: str) -> None:
    answer = node.get(f"{NODE}/{path}")
    assert (answer.status, answer.body) == (404, b"404 page not found\n")


def test_node_is_read_only(node: Api) -> None:
    assert node.request("POST", f"{NODE}/pods").status == 405


def test_missing_node_is_not_found(node: Api) -> None:
    assert node.get("/api/v1/nodes/none/proxy/healthz").status == 404


def test_node_that_is_down_cannot_be_reached(node: Api) -> None:
    patch = {"metadata": {"annotations": {"kubepy.dev/down-until": "2026-01-01T01:00:00Z"}}}
    assert node.patch("/api/v1/nodes/n", patch).status == 200
    answer = node.get(f"{NODE}/healthz")
    assert answer.status == 503
    assert answer.json()["message"].endswith(":10250: connect: no route to host")
