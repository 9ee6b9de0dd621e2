"""Copies of clusters from and to etcd: ``kubepy fork [SOURCE] TARGET``."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ruamel.yaml import YAML

from kubepy.apiserver.cluster import LocalCluster
from kubepy.cli.main import main
from kubepy.controlplane import build_manager, manager_lock
from kubepy.controlplane.furnishing import add_first_node
from kubepy.controlplane.open import copy_cluster, make_cluster, open_cluster
from kubepy.kubelet.lastingvolumes import MOST_BYTES
from kubepy.storage import Key, StorageError
from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.client import EtcdClient, Put
from kubepy.storage.etcd.ownkeys import OwnKeys, dump_entries
from kubepy.storage.folder import copying
from kubepy.storage.state import State
from kubepy.storage.timeline import TimelineEntry, microseconds
from tests.etcd import EtcdServer, fresh_prefix

Object = dict[str, Any]
CLOCK = "2026-01-01T00:00:00Z"
# What all clusters of these tests have, whether it is stored or implied.
RESOURCES = (
    "clusterroles.rbac.authorization.k8s.io",
    "configmaps",
    "daemonsets.apps",
    "events",
    "namespaces",
    "nodes",
    "pods",
    "serviceaccounts",
    "services",
)


def daemon_set(image: str) -> Object:
    return {
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "agent", "image": image}]},
            },
        },
    }


def settle(cluster: LocalCluster) -> None:
    with manager_lock(cluster) as is_lost:
        assert is_lost is not None
        build_manager(cluster).run_until_settled()


def content(cluster: LocalCluster) -> dict[str, list[Object]]:
    """Return the objects of a cluster with all their managers, without their versions."""
    objects: dict[str, list[Object]] = {}
    for resource in RESOURCES:
        items = [
            dict(cluster.client.with_managed_fields(item))
            for item in cluster.client.list(resource).items
        ]
        for item in items:
            metadata = {**item["metadata"]}
            del metadata["resourceVersion"]
            item["metadata"] = metadata
        objects[resource] = items
    return objects


@pytest.fixture
def origin(tmp_path: Path) -> Iterator[LocalCluster]:
    """A folder with a DaemonSet that has been rolled out, in time of its own."""
    cluster = make_cluster(tmp_path / "origin", {"clock": CLOCK, "seed": 1})
    add_first_node(cluster.client)
    cluster.client.create("daemonsets.apps", daemon_set("agent:1"), namespace="default")
    settle(cluster)
    yield cluster
    cluster.close()


def second_address(address: str) -> str:
    """Return the address of another cluster in the same etcd."""
    return address.rpartition("/")[0] + fresh_prefix()


def test_folder_goes_to_etcd_and_comes_back_as_it_was(
    origin: LocalCluster, etcd_address: str, tmp_path: Path
) -> None:
    before = content(origin)
    copy_cluster(origin, etcd_address)
    in_etcd = open_cluster(etcd_address)
    assert content(in_etcd) == before
    assert in_etcd.store.get(Key("services", "default", "kubernetes")) is not None

    copy_cluster(in_etcd, tmp_path / "back")
    in_etcd.close()
    back = open_cluster(tmp_path / "back")
    assert content(back) == before
    assert back.problems() == []
    back.close()


def test_etcd_goes_to_etcd_with_settings_and_timeline(
    origin: LocalCluster, etcd_address: str
) -> None:
    copy_cluster(origin, etcd_address)
    first = open_cluster(etcd_address)
    address = second_address(etcd_address)
    copy_cluster(first, address)
    second = open_cluster(address)
    assert content(second) == content(first)
    assert second.store.settings() == first.store.settings()
    assert "reconcile" not in second.store.settings()

    def steps(cluster: LocalCluster) -> list[tuple[int, Key, str]]:
        return [(entry.at, entry.key, entry.note) for entry in cluster.timeline()]

    assert steps(second) == steps(first) == steps(origin) != []
    first.close()
    second.close()


def test_memory_goes_to_etcd(etcd_address: str) -> None:
    cluster = make_cluster("memory:", {"clock": CLOCK})
    add_first_node(cluster.client)
    copy_cluster(cluster, etcd_address)
    copy = open_cluster(etcd_address)
    assert content(copy) == content(cluster)
    copy.close()


def test_rollout_under_way_goes_on_in_etcd(origin: LocalCluster, etcd_address: str) -> None:
    obj = origin.client.get("daemonsets.apps", "agent", namespace="default")
    changed = {
        **obj,
        "spec": {**obj["spec"], "template": daemon_set("agent:2")["spec"]["template"]},
    }
    origin.client.update("daemonsets.apps", changed, namespace="default")
    copy_cluster(origin, etcd_address)
    copy = open_cluster(etcd_address)
    settle(copy)
    [pod] = copy.client.list("pods").items
    assert pod["spec"]["containers"][0]["image"] == "agent:2"
    [pod] = origin.client.list("pods").items
    assert pod["spec"]["containers"][0]["image"] == "agent:1"
    copy.close()


def test_controllers_of_a_copy_at_rest_have_nothing_to_do(
    origin: LocalCluster, etcd_address: str
) -> None:
    copy_cluster(origin, etcd_address)
    first = open_cluster(etcd_address)
    settle(first)
    address = second_address(etcd_address)
    copy_cluster(first, address)
    first.close()
    second = open_cluster(address)
    before = content(second)
    settle(second)
    assert content(second) == before
    second.close()


def test_place_with_a_cluster_is_left_alone(origin: LocalCluster, etcd_address: str) -> None:
    copy_cluster(origin, etcd_address)
    with pytest.raises(StorageError, match="is a cluster already"):
        copy_cluster(origin, etcd_address)


def test_events_of_real_time_are_no_files(etcd_address: str, tmp_path: Path) -> None:
    cluster = make_cluster(etcd_address)
    add_first_node(cluster.client)
    settle(cluster)
    assert cluster.client.list("events").items
    copy_cluster(cluster, tmp_path / "folder")
    cluster.close()
    folder = open_cluster(tmp_path / "folder")
    assert folder.problems() == []
    assert folder.client.list("events").items
    assert not list((tmp_path / "folder").rglob("events"))
    folder.close()


def test_source_and_target_are_places(
    origin: LocalCluster, etcd_address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fork", str(tmp_path / "origin"), etcd_address]) == 0
    assert capsys.readouterr().out == f"cluster forked to {etcd_address}\n"
    assert main(["fork", etcd_address, str(tmp_path / "back")]) == 0
    settings = YAML(typ="safe").load(tmp_path / "back" / "kubepy.yaml")
    assert settings["bootstrap"] == "full"
    assert settings["seed"] == 1


def test_timeline_has_the_order_of_the_writes_whatever_order_etcd_did_them_in(
    etcd_address: str,
) -> None:
    cluster = make_cluster(etcd_address)
    address = parse_address(etcd_address)
    own = OwnKeys(address.prefix)
    client = EtcdClient(address)
    keys = [own.new_timeline_key() for _ in range(12)]
    now = microseconds(cluster.clock.now().timestamp())
    for number, key in reversed(list(enumerate(keys))):
        entry = TimelineEntry(0, now, Key("pods", "default", f"p{number}"), None, None)
        client.txn([], [Put(key, dump_entries([entry]))])
    client.close()
    names = [entry.key.name for entry in cluster.timeline() if entry.key.resource == "pods"]
    assert names == [f"p{number}" for number in range(12)]
    cluster.close()


def test_contents_of_volumes_go_along_in_both_directions(etcd_address: str, tmp_path: Path) -> None:
    random_bytes = b64encode(Random(1).randbytes(MOST_BYTES)).decode()
    children = {"row": {"s": "1"}, "raw": {"b": random_bytes}}
    content = {"root": {"k": "d", "m": 0o777, "c": children}, "version": 3, "limit": MOST_BYTES}
    origin = make_cluster(tmp_path / "origin", {"clock": CLOCK})
    origin.store.set_values({"volume/pv": json.dumps(content)})
    copy_cluster(origin, etcd_address)
    origin.close()

    in_etcd = open_cluster(etcd_address)
    assert json.loads(in_etcd.store.meta("volume/pv") or "") == content
    copy_cluster(in_etcd, tmp_path / "back")
    in_etcd.store.set_values({"volume/pv": None})
    assert in_etcd.store.meta("volume/pv") is None
    in_etcd.close()

    back = open_cluster(tmp_path / "back")
    assert json.loads(back.store.meta("volume/pv") or "") == content
    assert (tmp_path / "back/volumes/pv/files/row").read_text() == "1"
    back.close()


def test_history_that_is_compacted_meanwhile_is_left_out(
    own_etcd: EtcdServer, tmp_path: Path
) -> None:
    cluster = make_cluster(own_etcd.address())
    state = cluster.store.state()
    client = EtcdClient(parse_address(own_etcd.address()))
    client.compact(state.revision)
    client.close()
    copying.write_state(state, str(tmp_path / "copy"))
    cluster.close()
    copy = open_cluster(tmp_path / "copy")
    assert copy.store.state().compacted == state.revision
    assert copy.client.list("namespaces").items
    copy.close()


def test_copy_begins_again_where_its_state_is_compacted(
    own_etcd: EtcdServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = make_cluster(own_etcd.address())
    client = EtcdClient(parse_address(own_etcd.address()))
    write_state = copying.write_state
    states: list[State] = []

    def write_late(state: State, *arguments: Any) -> None:
        states.append(state)
        if len(states) == 1:
            name = {"metadata": {"name": "meanwhile"}}
            cluster.client.create("configmaps", name, namespace="default")
            client.compact(cluster.store.revision)
        write_state(state, *arguments)

    monkeypatch.setattr(copying, "write_state", write_late)
    copy_cluster(cluster, tmp_path / "copy")
    client.close()
    cluster.close()
    copy = open_cluster(tmp_path / "copy")
    assert len(states) == 2
    assert copy.client.get("configmaps", "meanwhile", namespace="default")
    copy.close()
