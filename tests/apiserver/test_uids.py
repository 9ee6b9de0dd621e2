"""Uids and names in a cluster with a seed: drawn from the seed, the key and how often it was made
(docs/decisions/uids.md)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubepy.api.errors import AlreadyExists
from kubepy.api.meta import Object
from kubepy.apiserver.client import Client
from kubepy.apiserver.cluster import VOLATILE, LocalCluster
from kubepy.apiserver.request import WriteOptions
from kubepy.controlplane.open import make_cluster, new_memory_store, open_cluster
from tests.storage.strange import StrangeStore

SETTINGS = {"clock": "2026-01-01T00:00:00Z", "seed": 7}
ACCOUNT = {"serviceAccountName": "default", "containers": [{"name": "c", "image": "i"}]}
OpenCluster = Callable[[], LocalCluster]


@pytest.fixture(params=["folder", "memory", "strange"])
def open_new(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenCluster]:
    """A function that makes a cluster with a seed and its own time."""
    clusters: list[LocalCluster] = []

    def open_one() -> LocalCluster:
        if request.param == "strange":
            store = StrangeStore({**SETTINGS}, volatile=VOLATILE)
            cluster = LocalCluster(store, new_memory_store)
            cluster.bootstrap()
        else:
            folder = str(tmp_path / f"state-{len(clusters)}")
            cluster = make_cluster("memory:" if request.param == "memory" else folder, SETTINGS)
        clusters.append(cluster)
        return cluster

    yield open_one
    for cluster in clusters:
        cluster.close()


def make(client: Client, name: str) -> str:
    """Create a ConfigMap and return its uid."""
    made = client.create("configmaps", {"metadata": {"name": name}}, namespace="default")
    return str(made["metadata"]["uid"])


def remove(client: Client, name: str) -> None:
    client.delete("configmaps", name, namespace="default")


def make_pod(client: Client) -> tuple[str, str]:
    """Create a pod with a generated name; return its name and uid."""
    pod: Object = {"metadata": {"generateName": "web-"}, "spec": ACCOUNT}
    metadata = client.create("pods", pod, namespace="default")["metadata"]
    return metadata["name"], metadata["uid"]


def test_uids_of_the_same_commands_are_the_same_on_every_store(open_new: OpenCluster) -> None:
    client = open_new().client
    uids = [make(client, "a"), make(client, "b")]
    remove(client, "a")
    uids.append(make(client, "a"))
    assert [*uids, *make_pod(client)] == [
        "019b76da-a800-7000-800d-5e875736681d",
        "019b76da-a800-7000-8034-877f08a9b329",
        "019b76da-a800-7000-8049-cfb9a63405cf",
        "web-xvk56",
        "019b76da-a800-7000-8072-e7f8a379e790",
    ]


def test_uid_does_not_depend_on_other_objects(open_new: OpenCluster) -> None:
    first, second = open_new().client, open_new().client
    make(first, "a")
    assert make(first, "b") == make(second, "b")


def test_object_that_is_made_again_has_another_uid(open_new: OpenCluster) -> None:
    client = open_new().client
    uids = []
    for _ in range(5):
        uids.append(make(client, "a"))
        remove(client, "a")
    assert len({*uids}) == 5


def test_objects_made_in_one_batch_have_uids_of_their_own(open_new: OpenCluster) -> None:
    client = open_new().client
    with client.batch():
        first = make(client, "a")
        remove(client, "a")
        second, other = make(client, "a"), make(client, "b")
        pods = [make_pod(client) for _ in range(3)]
    assert len({first, second, other}) == 3
    assert len({name for name, _ in pods}) == len({uid for _, uid in pods}) == 3


def test_requests_that_make_nothing_are_not_counted(open_new: OpenCluster) -> None:
    first, second = open_new().client, open_new().client
    for client in (first, second):
        make(client, "a")
    with first.batch(), pytest.raises(AlreadyExists):
        make(first, "a")
    first.create(
        "configmaps",
        {"metadata": {"name": "b"}},
        namespace="default",
        options=WriteOptions(dry_run=True),
    )
    remove(first, "a")
    remove(second, "a")
    assert [make(first, name) for name in "ab"] == [make(second, name) for name in "ab"]


def test_fork_goes_on_as_its_origin_would(open_new: OpenCluster) -> None:
    cluster = open_new()
    first = make(cluster.client, "a")
    remove(cluster.client, "a")
    fork = cluster.fork()
    second = make(fork.client, "a")
    assert second != first
    assert make(cluster.client, "a") == second
    fork.close()


def test_generated_name_that_is_given_by_hand_has_another_uid(open_new: OpenCluster) -> None:
    client = open_new().client
    name, uid = make_pod(client)
    uids = {uid}
    for _ in range(3):
        client.delete("pods", name, namespace="default", options=None)
        pod: Object = {"metadata": {"name": name, "generateName": "web-"}, "spec": ACCOUNT}
        uids.add(client.create("pods", pod, namespace="default")["metadata"]["uid"])
    assert len(uids) == 4


def test_file_that_is_removed_by_hand_leaves_its_count(tmp_path: Path) -> None:
    cluster = make_cluster(str(tmp_path / "state"), SETTINGS)
    first = make(cluster.client, "a")
    next((tmp_path / "state").rglob("a.yaml")).unlink()
    assert make(cluster.client, "a") != first
    cluster.close()


def test_counts_that_are_lost_with_the_index_are_not_used_again(tmp_path: Path) -> None:
    uids, pods = [], []
    cluster = make_cluster(str(tmp_path / "state"), SETTINGS)
    uids.append(make(cluster.client, "a"))
    pods.append(make_pod(cluster.client))
    remove(cluster.client, "a")
    client = cluster.client
    client.delete("pods", pods[0][0], namespace="default")
    cluster.close()
    shutil.rmtree(tmp_path / "state" / ".kubepy")
    cluster = open_cluster(str(tmp_path / "state"))
    uids.append(make(cluster.client, "a"))
    pods.append(make_pod(cluster.client))
    cluster.close()
    assert len({*uids}) == len({uid for _, uid in pods}) == 2


def test_cluster_without_seed_counts_nothing() -> None:
    cluster = make_cluster("memory:", {"clock": "2026-01-01T00:00:00Z"})
    make(cluster.client, "a")
    make_pod(cluster.client)
    names = [*cluster.store.state().all_meta()]
    assert not [name for name in names if name.partition("/")[0] in ("made", "names", "deleted")]
