"""Volumes that show objects: their files, modes, layout and later updates; and empty ones."""

from __future__ import annotations

from base64 import b64encode
from datetime import timedelta
from typing import Any

import pytest

from kubepy.api.meta import Object
from kubepy.apiserver.podtokens import PodToken
from kubepy.kubelet.payloads import MountError, VolumeSources
from kubepy.kubelet.volumes import empty_tree, payload_in, refresh, update_due, volume_tree
from kubepy.shell.files import FileSystem, Mount, Tree
from tests.kubelet.objects import NOW, new_node, new_pod

LATER = NOW + timedelta(minutes=5)


class Objects(dict[tuple[str, str], Object]):
    """ConfigMaps and Secrets that a test changes."""

    def find(self, resource: str, namespace: str, name: str) -> Object | None:
        assert namespace == "shop"
        return self.get((resource, name))


@pytest.fixture
def objects() -> Objects:
    return Objects(
        {
            ("configmaps", "colours"): {
                "data": {"sky": "blue\n", "sea": "green\n"},
                "binaryData": {"raw": b64encode(b"\x00\xff").decode()},
            },
            ("secrets", "login"): {
                "type": "kubernetes.io/basic-auth",
                "data": {"username": b64encode(b"root").decode()},
            },
        }
    )


def pod_with(*volumes: Object, **spec: Any) -> Any:
    pod = new_pod(volumes=list(volumes), serviceAccountName="robot", **spec)
    pod["metadata"]["labels"] = {"zone": "eu", "app": 'a"b'}
    pod["metadata"]["annotations"] = {"note": "two\nlines"}
    return pod


def sources_of(objects: Objects) -> Any:
    node = new_node()
    node["status"] = {"allocatable": {"cpu": "4", "memory": "8Gi"}}
    return VolumeSources(objects.find, node)  # type: ignore[arg-type]


def mounted(objects: Objects, volume: Object, **spec: Any) -> Tree:
    tree = volume_tree(pod_with(volume, **spec), volume, sources_of(objects), NOW)
    assert tree is not None
    return tree


def seen(tree: Tree) -> FileSystem:
    return FileSystem(Tree(), [Mount("/v", tree)])


def contents(tree: Tree) -> dict[str, bytes]:
    return {path: file.data for path, file in payload_in(tree).items()}


def projected(*projections: Object, **fields: Any) -> Object:
    return {"name": "v", "projected": {"sources": list(projections), **fields}}


def config_map(name: str = "colours", **fields: Any) -> Object:
    return {"name": "v", "configMap": {"name": name, **fields}}


# --- contents -------------------------------------------------------------------------------------


def test_config_map_shows_all_its_keys(objects: Objects) -> None:
    assert contents(mounted(objects, config_map())) == {
        "sky": b"blue\n",
        "sea": b"green\n",
        "raw": b"\x00\xff",
    }


def test_items_choose_keys_paths_and_modes(objects: Objects) -> None:
    items = [{"key": "sky", "path": "above/sky.txt", "mode": 0o400}, {"key": "raw", "path": "raw"}]
    files = seen(mounted(objects, config_map(items=items, defaultMode=0o640)))
    assert files.list("/v") == ["..2026_11_20_12_00_00.2182960827", "..data", "above", "raw"]
    assert files.read("/v/above/sky.txt") == b"blue\n"
    assert files.stat("/v/above/sky.txt").mode == 0o400
    assert files.stat("/v/raw").mode == 0o640


def test_secret_shows_decoded_values_in_memory(objects: Objects) -> None:
    tree = mounted(objects, {"name": "v", "secret": {"secretName": "login", "defaultMode": 0o400}})
    assert contents(tree) == {"username": b"root"}
    assert tree.root.mode == 0o1777
    assert seen(tree).stat("/v/username").mode == 0o400


def test_downward_api_shows_fields_as_upstream_formats_them(objects: Objects) -> None:
    def item(path: str, field: str) -> Object:
        return {"path": path, "fieldRef": {"fieldPath": field}}

    cpu = {"containerName": "c", "resource": "limits.cpu", "divisor": "1m"}
    volume = {
        "name": "v",
        "downwardAPI": {
            "items": [
                item("labels", "metadata.labels"),
                item("annotations", "metadata.annotations"),
                item("name", "metadata.name"),
                item("zone", "metadata.labels['zone']"),
                {"path": "cpu", "resourceFieldRef": cpu, "mode": 0o600},
            ]
        },
    }
    tree = mounted(objects, volume)
    assert contents(tree) == {
        "labels": b'app="a\\"b"\nzone="eu"',
        "annotations": b'note="two\\nlines"',
        "name": b"web",
        "zone": b"eu",
        "cpu": b"4000",
    }
    assert payload_in(tree)["cpu"].mode == 0o600


def test_projected_volume_joins_its_sources(objects: Objects) -> None:
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    volume = projected(
        {"secret": {"name": "login", "items": [{"key": "username", "path": "me/user"}]}},
        {"configMap": {"name": "colours", "items": [{"key": "sky", "path": "me/sky"}]}},
        {"configMap": {"name": "kube-root-ca.crt"}},
        {"downwardAPI": {"items": [namespace]}},
        defaultMode=0o440,
    )
    files = contents(mounted(objects, volume))
    assert files.pop("ca.crt").startswith(b"-----BEGIN CERTIFICATE-----\n")
    assert files == {"me/user": b"root", "me/sky": b"blue\n", "namespace": b"shop"}


def test_optional_sources_that_are_missing_leave_the_volume_empty(objects: Objects) -> None:
    volume = projected(
        {"configMap": {"name": "none", "optional": True}},
        {"secret": {"name": "login", "optional": True, "items": [{"key": "no", "path": "no"}]}},
    )
    tree = mounted(objects, volume)
    assert contents(tree) == {}
    assert "..data" in tree.root.children


@pytest.mark.parametrize(("volume", "message"), [
    (config_map("none"), 'configmap "none" not found'),
    ({"name": "v", "secret": {"secretName": "none"}}, 'secret "none" not found'),
    (config_map(items=[{"key": "no", "path": "p"}]),
     "configmap references non-existent config key: no"),
    ({"name": "v", "secret": {"secretName": "login", "items": [{"key": "no", "path": "p"}]}},
     "references non-existent secret key: no"),
    (projected({"configMap": {"name": "a"}}, {"secret": {"name": "b"}}, {"secret": {"name": "b"}}),
     '[configmap "a" not found, secret "b" not found]'),
    ({"name": "v", "downwardAPI": {"items": [
        {"path": "p", "resourceFieldRef": {"containerName": "x", "resource": "limits.cpu"}}]}},
     "container x not found"),
])  # fmt: skip
def test_volume_of_what_is_missing_is_an_error(
    objects: Objects, volume: Object, message: str
) -> None:
    with pytest.raises(MountError) as caught:
        mounted(objects, volume)
    assert str(caught.value) == message


def test_volume_that_shows_no_objects_has_no_tree(objects: Objects) -> None:
    volume: Object = {"name": "v", "emptyDir": {}}
    assert volume_tree(pod_with(volume), volume, sources_of(objects), NOW) is None


# --- layout and updates ---------------------------------------------------------------------------


def test_names_are_links_through_the_data_directory(objects: Objects) -> None:
    tree = mounted(objects, config_map(items=[{"key": "sky", "path": "a/b/sky"}]))
    files = seen(tree)
    assert files.stat("/v/a", follow=False).target == "..data/a"
    assert files.stat("/v/..data", follow=False).target == "..2026_11_20_12_00_00.2182960827"
    assert files.stat("/v/a/b").mode == 0o755
    assert tree.root.mode == 0o777


def test_update_replaces_the_directory_and_the_names_that_changed(objects: Objects) -> None:
    volume = config_map()
    pod = pod_with(volume)
    tree = mounted(objects, volume)
    objects["configmaps", "colours"]["data"] = {"sky": "grey\n", "sand": "yellow\n"}
    del objects["configmaps", "colours"]["binaryData"]
    before = tree.version
    assert refresh(tree, pod, volume, sources_of(objects), LATER)
    assert tree.version > before
    files = seen(tree)
    assert [name for name in files.list("/v") if not name.startswith("..")] == ["sand", "sky"]
    assert files.read("/v/sky") == b"grey\n"
    assert files.stat("/v/sky", follow=False).modified == NOW
    assert files.stat("/v/sand", follow=False).modified == LATER
    assert len([name for name in files.list("/v") if name.startswith("..2026")]) == 1


def test_update_that_changes_nothing_writes_nothing(objects: Objects) -> None:
    volume = config_map()
    tree = mounted(objects, volume)
    before = tree.to_json()
    assert not refresh(tree, pod_with(volume), volume, sources_of(objects), LATER)
    assert tree.to_json() == before


def test_update_to_a_missing_object_keeps_the_files(objects: Objects) -> None:
    volume = config_map()
    tree = mounted(objects, volume)
    objects.clear()
    with pytest.raises(MountError, match="not found"):
        refresh(tree, pod_with(volume), volume, sources_of(objects), LATER)
    assert contents(tree)["sky"] == b"blue\n"


@pytest.mark.parametrize(("seconds", "due"), [(-5, 0), (0, 60), (1, 60), (59, 60), (60, 120)])
def test_change_shows_at_the_next_look_of_the_kubelet(seconds: float, due: float) -> None:
    assert update_due(NOW, NOW + timedelta(seconds=seconds)) == NOW + timedelta(seconds=due)


# --- owners ---------------------------------------------------------------------------------------


def test_group_of_the_pod_may_read_files_that_show_objects(objects: Objects) -> None:
    tree = mounted(objects, config_map(defaultMode=0o400), securityContext={"fsGroup": 2000})
    status = seen(tree).stat("/v/sky")
    assert (status.mode, status.group) == (0o440, 2000)
    directory = seen(tree).stat("/v/..data")
    assert (directory.mode, directory.group) == (0o2755, 2000)


def test_group_of_the_pod_may_write_to_its_own_volumes() -> None:
    tree = empty_tree(pod_with(securityContext={"fsGroup": 2000}), {"emptyDir": {}}, NOW)
    assert (tree.root.mode, tree.root.group) == (0o2777, 2000)


def test_volume_in_memory_has_the_limit_of_its_file_system() -> None:
    in_memory = {"emptyDir": {"medium": "Memory", "sizeLimit": "1Ki"}}
    tree = empty_tree(pod_with(), in_memory, NOW)
    assert (tree.limit, tree.root.mode) == (1024, 0o1777)
    on_disk = empty_tree(pod_with(), {"emptyDir": {"sizeLimit": "1Ki"}}, NOW)
    assert (on_disk.limit, on_disk.root.mode) == (None, 0o777)


# --- tokens ---------------------------------------------------------------------------------------

TOKEN = projected(
    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607, "audience": "vault"}}
)


def test_token_is_kept_as_what_was_asked_for(objects: Objects) -> None:
    token = PodToken.from_bytes(contents(mounted(objects, TOKEN))["token"])
    assert token == PodToken(
        namespace="shop",
        account="robot",
        audience="vault",
        seconds=3607,
        pod={"name": "web", "uid": "0f1e"},
        node=token.node,
        issued=int(NOW.timestamp()),
    )


def test_token_of_a_volume_stays_when_other_files_change(objects: Objects) -> None:
    volume = projected(*TOKEN["projected"]["sources"], {"configMap": {"name": "colours"}})
    pod, sources = pod_with(volume), sources_of(objects)
    tree = volume_tree(pod, volume, sources, NOW)
    assert tree is not None
    before = contents(tree)
    objects["configmaps", "colours"] = {"data": {"sky": "grey"}}
    assert refresh(tree, pod, volume, sources, NOW + timedelta(days=1))
    after = contents(tree)
    assert (after["token"], after["sky"]) == (before["token"], b"grey")


def test_token_is_read_as_what_is_made_of_it(objects: Objects) -> None:
    files = seen(mounted(objects, TOKEN))
    files.complete = lambda content: PodToken.from_bytes(content).audience.encode()
    assert (files.read("/v/token"), files.stat("/v/token").size) == (b"vault", 5)


@pytest.mark.parametrize(("context", "mode", "user"), [
    ({}, 0o644, 0),
    ({"runAsUser": 1000}, 0o600, 1000),
    ({"fsGroup": 2000}, 0o640, 0),
])  # fmt: skip
def test_token_is_private_to_the_user_of_the_pod(
    objects: Objects, context: Object, mode: int, user: int
) -> None:
    status = seen(mounted(objects, TOKEN, securityContext=context)).stat("/v/token")
    assert (status.mode, status.user) == (mode, user)
