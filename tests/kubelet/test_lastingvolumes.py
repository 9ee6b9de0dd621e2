"""Volumes that outlive pods: claims, and paths of nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kubepy.api.meta import Object
from kubepy.kubelet.lastingvolumes import MOST_BYTES, LastingVolumes, unprocessed_claims
from kubepy.kubelet.payloads import MountError
from kubepy.shell.files import FileError, FileSystem
from tests.kubelet.objects import NOW, new_pod

CLAIM: Object = {"name": "data", "persistentVolumeClaim": {"claimName": "db"}}


class World:
    """A cluster of claims, volumes and small values."""

    def __init__(self, **spec: Any) -> None:
        self.values: dict[str, str] = {}
        self.pv: Object = {
            "metadata": {"name": "pv-1"},
            "spec": {"capacity": {"storage": "1Ki"}, **spec},
        }
        self.objects: dict[tuple[str, str, str], Object] = {
            ("persistentvolumeclaims", "shop", "db"): {
                "spec": {"volumeName": "pv-1"},
                "status": {"phase": "Bound"},
            },
            ("persistentvolumes", "", "pv-1"): self.pv,
        }
        self.volumes = LastingVolumes(self.values.get, self._set_values, self.find)

    def _set_values(self, values: Mapping[str, str | None]) -> None:
        for name, value in values.items():
            assert value is not None
            self.values[name] = value

    def find(self, resource: str, namespace: str, name: str) -> Object | None:
        return self.objects.get((resource, namespace, name))

    def written(self, volume: Object, path: str, text: str, **spec: Any) -> None:
        """Let a pod write a file into a volume."""
        pod = pod_with(volume, **spec)
        tree = self.volumes.load(pod, volume, NOW)
        FileSystem(tree).write(path, text.encode(), now=NOW)
        self.volumes.save(pod, volume, tree)

    def files(self, volume: Object, **spec: Any) -> FileSystem:
        return FileSystem(self.volumes.load(pod_with(volume, **spec), volume, NOW))


def pod_with(*volumes: Object, **spec: Any) -> Any:
    return new_pod(volumes=list(volumes), **spec)


def host_path(path: str, type: str = "") -> Object:
    return {"name": "host", "hostPath": {"path": path, "type": type}}


# --- claims ---------------------------------------------------------------------------------------


def test_claim_holds_what_an_earlier_pod_has_written() -> None:
    world = World()
    world.written(CLAIM, "/row", "1")
    assert world.files(CLAIM).read("/row") == b"1"
    assert list(world.values) == ["volume/pv-1"]


def test_claim_of_an_ephemeral_volume_has_the_name_of_pod_and_volume() -> None:
    world = World()
    claims = world.objects
    claims["persistentvolumeclaims", "shop", "web-scratch"] = claims.pop(
        ("persistentvolumeclaims", "shop", "db")
    )
    volume: Object = {"name": "scratch", "ephemeral": {}}
    world.written(volume, "/row", "1")
    assert list(world.values) == ["volume/pv-1"]


def test_claim_takes_no_more_than_its_capacity() -> None:
    world = World()
    files = world.files(CLAIM)
    files.write("/a", b"x" * 1000, now=NOW)
    with pytest.raises(FileError) as caught:
        files.write("/b", b"x" * 25, now=NOW)
    assert caught.value.problem == "No space left on device"


def test_claim_takes_no_more_than_a_store_does() -> None:
    world = World()
    world.pv["spec"]["capacity"]["storage"] = "10Gi"
    assert world.volumes.load(pod_with(CLAIM), CLAIM, NOW).limit == MOST_BYTES


def test_claim_belongs_to_the_group_of_the_pod() -> None:
    tree = World().volumes.load(pod_with(CLAIM, securityContext={"fsGroup": 2000}), CLAIM, NOW)
    assert (tree.root.mode, tree.root.group) == (0o2777, 2000)


@pytest.mark.parametrize(("gone", "problem"), [
    (("persistentvolumeclaims", "shop", "db"),
     'failed to fetch PVC from API server: persistentvolumeclaims "db" not found'),
    (("persistentvolumes", "", "pv-1"),
     'failed to fetch PV pv-1 from API server: persistentvolumes "pv-1" not found'),
])  # fmt: skip
def test_missing_claim_holds_the_pod_up_in_the_words_of_a_kubelet(
    gone: tuple[str, str, str], problem: str
) -> None:
    world = World()
    del world.objects[gone]
    assert unprocessed_claims(pod_with(CLAIM), world.find) == (
        "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], "
        f"failed to process volumes=[data]: error processing PVC shop/db: {problem}"
    )
    with pytest.raises(MountError):
        world.files(CLAIM)


def test_unbound_claim_holds_the_pod_up() -> None:
    world = World()
    world.objects["persistentvolumeclaims", "shop", "db"]["status"]["phase"] = "Pending"
    message = unprocessed_claims(pod_with(CLAIM), world.find)
    assert message.endswith("error processing PVC shop/db: PVC is not bound")


def test_bound_claims_hold_nothing_up() -> None:
    assert unprocessed_claims(pod_with(CLAIM, host_path("/x")), World().find) == ""


# --- paths of nodes -------------------------------------------------------------------------------


def test_path_of_a_node_is_shared_by_its_pods_and_by_no_other_node() -> None:
    world = World()
    world.written(host_path("/data/web"), "/index.html", "hello")
    assert world.files(host_path("/data")).read("/web/index.html") == b"hello"
    other = world.files(host_path("/data/web"), nodeName="node-2")
    assert other.list("/") == []


def test_other_paths_of_the_node_stay_when_one_is_saved() -> None:
    world = World()
    pods = [pod_with(host_path(path)) for path in ("/a", "/b")]
    trees = [world.volumes.load(pod, pod["spec"]["volumes"][0], NOW) for pod in pods]
    for pod, tree in zip(pods, trees, strict=True):
        FileSystem(tree).write("/x", b"x", now=NOW)
        world.volumes.save(pod, pod["spec"]["volumes"][0], tree)
    assert world.files(host_path("/a")).read("/x") == b"x"
    assert world.files(host_path("/b")).read("/x") == b"x"


def test_whole_file_system_of_a_node_is_a_volume() -> None:
    world = World()
    world.written(host_path("/"), "/etc/motd", "hi")
    assert world.files(host_path("/etc")).read("/motd") == b"hi"
    assert "log" in world.files(host_path("/")).list("/var")


@pytest.mark.parametrize("field", ["hostPath", "local"])
def test_volume_on_a_path_of_a_node_is_that_path(field: str) -> None:
    world = World(**{field: {"path": "/mnt/data"}})
    world.written(CLAIM, "/row", "1")
    assert world.files(host_path("/mnt/data")).read("/row") == b"1"


@pytest.mark.parametrize(("path", "type", "message"), [
    ("/data", "Directory", "hostPath type check failed: /data is not a directory"),
    ("/data", "File", "hostPath type check failed: /data is not a file"),
    ("/var/log", "File", "hostPath type check failed: /var/log is not a file"),
    ("/var/log", "FileOrCreate", "hostPath type check failed: /var/log is not a file"),
    ("/file", "DirectoryOrCreate", "hostPath type check failed: /file is not a directory"),
])  # fmt: skip
def test_path_of_another_type_is_not_mounted(path: str, type: str, message: str) -> None:
    world = World()
    world.files(host_path("/file", "FileOrCreate"))
    with pytest.raises(MountError) as caught:
        world.files(host_path(path, type))
    assert str(caught.value) == message


@pytest.mark.parametrize(("path", "type", "kind"), [
    ("/var/log", "Directory", "d"),
    ("/new", "", "d"),
    ("/new", "DirectoryOrCreate", "d"),
    ("/new", "FileOrCreate", "f"),
    ("/run/containerd/containerd.sock", "Socket", "f"),
])  # fmt: skip
def test_path_is_made_where_its_type_allows_it(path: str, type: str, kind: str) -> None:
    world = World()
    tree = world.volumes.load(pod_with(host_path(path, type)), host_path(path, type), NOW)
    assert tree.root.kind == kind
    again = world.volumes.load(pod_with(host_path(path, type)), host_path(path, type), NOW)
    assert again.root.kind == kind


def test_volume_that_ends_with_its_pod_is_not_held() -> None:
    volumes = World().volumes
    assert volumes.holds(CLAIM)
    assert volumes.holds(host_path("/x"))
    assert not volumes.holds({"name": "v", "emptyDir": {}})


def test_saved_value_is_the_json_of_the_tree() -> None:
    world = World()
    world.written(CLAIM, "/row", "1")
    assert json.loads(world.values["volume/pv-1"])["limit"] == 1024


def test_node_has_a_file_of_hosts_with_its_name() -> None:
    world = World()
    node: Object = {"metadata": {"name": "node-1"}, "status": {}}
    node["status"]["addresses"] = [{"type": "InternalIP", "address": "192.168.0.7"}]
    world.objects["nodes", "", "node-1"] = node
    volume = host_path("/etc/hosts", "File")
    tree = world.volumes.load(pod_with(volume), volume, NOW)
    lines = tree.root.data.decode().splitlines()
    assert lines[0] == "127.0.0.1\tlocalhost"
    assert lines[-1] == "192.168.0.7\tnode-1"
