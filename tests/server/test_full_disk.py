"""A server on a disk without a free page: it deletes and evicts until there is room again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubepy.cli.main import main
from tests.disks import SmallDisk, small_disk
from tests.server.conftest import Answer, ServerProcess
from tests.waiting import eventually

CORE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
REPLICAS = 8
CONFIG_MAPS = 20
SECONDS = 60.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A small disk with a cluster that has pods."""
    with small_disk(tmp_path / "disk") as made:
        state = ("--state", str(made.path / "state"))
        assert main([*state, "init", "--nodes=2"]) == 0
        for name in ("a", "b", "c"):
            words = ("create", "deployment", name, "--image=a", f"--replicas={REPLICAS}")
            assert main([*state, *words]) == 0
        for number in range(CONFIG_MAPS):
            assert main([*state, "create", "cm", f"c{number}"]) == 0
        assert main([*state, "controller", "--until-settled"]) == 0
        yield made


@pytest.fixture
def server(disk: SmallDisk, new_server: Callable[..., ServerProcess]) -> ServerProcess:
    """A server of it with controllers, after which the disk was filled."""
    started = new_server(folder=disk.path / "state")
    disk.fill()
    return started


def names(server: ServerProcess, path: str) -> list[str]:
    return [obj["metadata"]["name"] for obj in server.request("GET", path).json()["items"]]


def create(server: ServerProcess, name: str) -> Answer:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return server.request("POST", f"{CORE}/configmaps", body)


def test_server_deletes_and_evicts_on_full_disk(server: ServerProcess, disk: SmallDisk) -> None:
    assert create(server, "new").status == 500
    assert server.request("GET", "/readyz").status == 500
    for number in range(CONFIG_MAPS // 2):
        answer = server.request("DELETE", f"{CORE}/configmaps/c{number}")
        assert answer.status == 200, answer.body
    deleted, evicted = (names(server, f"{CORE}/pods?labelSelector=app%3D{app}") for app in "ab")
    assert len(deleted) == len(evicted) == REPLICAS
    for name in deleted:
        assert server.request("DELETE", f"{CORE}/pods/{name}").status == 200
    for name in evicted:
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        assert server.request("POST", f"{CORE}/pods/{name}/eviction", eviction).status == 201
    eventually(lambda: not set(names(server, f"{CORE}/pods")) & {*deleted, *evicted})
    assert server.request("DELETE", f"{CORE}/configmaps").status == 200
    assert server.request("DELETE", f"{APPS}/deployments/c").status == 200
    eventually(lambda: not names(server, f"{CORE}/pods?labelSelector=app%3Dc"))
    disk.clear()
    assert create(server, "new").status == 201
    for app in "ab":
        path = f"{CORE}/pods?labelSelector=app%3D{app}"
        eventually(lambda path=path: len(names(server, path)) == REPLICAS)
    status, errors = server.stop()
    assert status == 0, errors
    assert main(["--state", str(server.folder), "fsck"]) == 0
