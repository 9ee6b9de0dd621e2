from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.api.meta import Object
from kubepy.api.watch import WatchEvent
from kubepy.apiserver.client import Client
from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.request import MERGE_PATCH, Patch
from kubepy.controlplane.open import make_cluster, open_cluster
from kubepy.storage import Key

CM = "configmaps"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def key(name: str) -> Key:
    return Key(CM, "default", name)


def shown(events: list[WatchEvent]) -> list[tuple[str, Any, Any]]:
    """Return (name, data before, data after) of each event; None where the object does not
    exist."""
    return [
        (event.key.name, event.old and event.old.get("data"), event.new and event.new.get("data"))
        for event in events
    ]


def test_requests_of_batch_become_visible_together(cluster: LocalCluster, tmp_path: Path) -> None:
    other = open_cluster(tmp_path / "state").client
    with cluster.client.batch():
        cluster.client.create(CM, config_map("a"), namespace="default")
        cluster.client.create(CM, config_map("b"), namespace="default")
        assert len(cluster.client.list(CM).items) == 2
        assert other.list(CM).items == []
    assert len(other.list(CM).items) == 2


def test_exception_undoes_whole_batch(client: Client) -> None:
    def fail_in_a_batch() -> None:
        with client.batch():
            client.create(CM, config_map("a"), namespace="default")
            client.get(CM, "absent", namespace="default")

    with pytest.raises(Status, match="not found"):
        fail_in_a_batch()
    assert client.list(CM).items == []
    client.create(CM, config_map("b"), namespace="default")


def test_request_that_fails_leaves_rest_of_its_batch(client: Client) -> None:
    with client.batch():
        client.create(CM, config_map("a"), namespace="default")
        with pytest.raises(Status, match="already exists"):
            client.create(CM, config_map("a"), namespace="default")
        client.create(CM, config_map("b"), namespace="default")
    assert [one["metadata"]["name"] for one in client.list(CM).items] == ["a", "b"]


def test_drain_tells_batchs_own_writes_in_order(client: Client) -> None:
    with client.batch() as batch:
        client.create(CM, config_map("a", k="1"), namespace="default")
        client.patch(CM, "a", Patch(MERGE_PATCH, {"data": {"k": "2"}}), namespace="default")
        assert shown(batch.drain()) == [("a", None, {"k": "1"}), ("a", {"k": "1"}, {"k": "2"})]
        client.patch(CM, "a", Patch(MERGE_PATCH, {"data": {"k": "2"}}), namespace="default")
        assert batch.drain() == []
        client.delete(CM, "a", namespace="default")
        assert shown(batch.drain()) == [("a", {"k": "2"}, None)]


def test_drain_tells_what_others_did_since_last_batch(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    client, other = cluster.client, open_cluster(tmp_path / "state").client
    client.observe_from(client.revision())
    other.create(CM, config_map("theirs", k="1"), namespace="default")
    client.create(CM, config_map("own", k="1"), namespace="default")
    (tmp_path / "state/namespaces/default/configmaps/edited.yaml").write_text(
        "metadata: {name: edited}\ndata: {k: edited}\n"
    )
    known: dict[Key, Object] = {}
    with client.batch(known.get) as batch:
        events = batch.drain()
        assert shown(events) == [
            ("theirs", None, {"k": "1"}),
            ("own", None, {"k": "1"}),
            ("edited", None, {"k": "edited"}),
        ]
        known.update({event.key: event.new for event in events if event.new})
    with client.batch(known.get) as batch:
        assert batch.drain() == []
    other.patch(CM, "theirs", Patch(MERGE_PATCH, {"data": {"k": "2"}}), namespace="default")
    other.delete(CM, "own", namespace="default")
    with client.batch(known.get) as batch:
        assert shown(batch.drain()) == [
            ("theirs", {"k": "1"}, {"k": "2"}),
            ("own", {"k": "1"}, None),
        ]


def test_object_replaced_by_another_is_deletion_and_addition(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    client, other = cluster.client, open_cluster(tmp_path / "state").client
    old = client.create(CM, config_map("a", k="old"), namespace="default")
    client.observe_from(client.revision())
    other.delete(CM, "a", namespace="default")
    other.create(CM, config_map("a", k="new"), namespace="default")
    with client.batch({key("a"): old}.get) as batch:
        assert shown(batch.drain()) in (
            [("a", {"k": "old"}, None), ("a", None, {"k": "new"})],
            [("a", {"k": "old"}, None), ("a", {"k": "old"}, None), ("a", None, {"k": "new"})],
        )


def test_change_seen_by_caller_is_not_delivered_again(cluster: LocalCluster) -> None:
    client, before = cluster.client, cluster.client.revision()
    seen = client.create(CM, config_map("a"), namespace="default")
    client.observe_from(before)
    with client.batch({key("a"): seen}.get) as batch:
        assert batch.drain() == []


def test_changes_after_revision_are_told_with_revision_reached(client: Client) -> None:
    before = client.revision()
    client.create(CM, config_map("a", k="1"), namespace="default")
    reached, events = client.changes(before)
    assert (reached, shown(events)) == (client.revision(), [("a", None, {"k": "1"})])
    assert client.changes(reached) == (reached, [])
    with pytest.raises(Status) as caught:
        client.changes(reached + 1)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


def test_ids_repeat_with_seed_and_go_on_in_next_process(tmp_path: Path) -> None:
    def uids(folder: str, processes: int) -> list[str]:
        make_cluster(tmp_path / folder, {"seed": "s"}).close()
        found = []
        for _ in range(processes):
            cluster = open_cluster(tmp_path / folder)
            for _ in range(4 // processes):
                made = cluster.client.create(
                    CM, {"metadata": {"generateName": "a-"}}, namespace="default"
                )
                found.append(made["metadata"]["uid"] + made["metadata"]["name"])
            cluster.close()
        return found

    together, apart = uids("a", 1), uids("b", 4)
    assert together == apart
    assert len(set(together)) == 4


def test_batch_that_ended_leaves_nothing_to_garbage_collection(client: Client) -> None:
    gc.collect()
    gc.disable()
    try:
        with client.batch() as batch:
            client.create(CM, config_map("a"), namespace="default")
            transaction = weakref.ref(batch.transaction)
        del batch
        assert transaction() is None
    finally:
        gc.enable()
