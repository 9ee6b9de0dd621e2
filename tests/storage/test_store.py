"""The files of a folder after writes; the contract of every store is in test_contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kubepy.storage import Key
from kubepy.storage.folder.store import FolderStore
from tests.stores import changes, resources

from .conftest import config_map, create, event, file_of, key, names, told


def test_update_that_changes_nothing_writes_nothing(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    before = file_of(folder, "a").stat()
    with store.transaction() as transaction:
        same = transaction.update(key("a"), config_map("a", resourceVersion="1"))
    assert same["metadata"]["resourceVersion"] == "1"
    assert store.revision == 1
    assert file_of(folder, "a").stat() == before
    assert changes(store, 1) == []


def test_deleting_returns_last_state_and_removes_file_and_empty_folders(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a"))
    with store.transaction() as transaction:
        assert transaction.delete(key("a")) == config_map("a", resourceVersion="1")
    assert store.get(key("a")) is None
    assert sorted(path.name for path in folder.iterdir()) == [
        ".gitignore",
        ".kubepy",
        "kubepy.yaml",
    ]


def test_exception_in_transaction_changes_nothing(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    with pytest.raises(RuntimeError), store.transaction() as transaction:  # noqa: PT012
        transaction.update(key("a"), config_map("a", "2"))
        transaction.create(key("b"), config_map("b"))
        store.set_values({"position": "7"})
        raise RuntimeError
    assert store.list("configmaps") == (1, [config_map("a", resourceVersion="1")], ())
    assert store.meta("position") is None
    assert [path.name for path in file_of(folder, "a").parent.iterdir()] == ["a.yaml"]


def test_cluster_scoped_objects_lie_apart(store: FolderStore, folder: Path) -> None:
    create(store, {"kind": "Node", "metadata": {"name": "n"}}, resource="nodes")
    assert names(store.list("nodes").objects) == ["n"]
    assert names(store.list("nodes", "").objects) == ["n"]
    assert store.list("nodes", "default").objects == []
    assert (folder / "cluster/nodes/n.yaml").is_file()
    assert resources(store) == ["nodes"]


def test_object_created_and_deleted_in_one_transaction_is_no_change(
    store: FolderStore, folder: Path
) -> None:
    with store.transaction() as transaction:
        transaction.create(key("a"), config_map("a"))
        transaction.delete(key("a"))
    assert told(store, 0) == []
    assert not (folder / "namespaces").exists()


# --- events and other data only in .kubepy ---


def test_volatile_objects_have_no_file_and_go_after_their_time(
    open_store: Callable[..., FolderStore], folder: Path
) -> None:
    now = [1000.0]
    store = open_store(now=lambda: now[0])
    create(store, event("old"), resource="events")
    now[0] += 3000
    create(store, event("new"), resource="events")
    assert names(store.list("events").objects) == ["new", "old"]
    assert not (folder / "namespaces").exists()
    now[0] += 1000
    assert names(store.list("events").objects) == ["new"]
    assert store.get(Key("events", "default", "old")) is None
    create(store, config_map("a"))
    assert told(store, 2) == [(3, "DELETED", "old"), (4, "ADDED", "a")]
    assert names(open_store(now=lambda: 0.0).list("events").objects) == ["new"]


def test_meta_values_are_kept_and_belong_to_transaction(
    open_store: Callable[..., FolderStore],
) -> None:
    store = open_store()
    store.set_values({"position": "1"})
    with store.transaction() as transaction:
        transaction.create(key("a"), config_map("a"))
        store.set_values({"position": "2"})
        assert store.meta("position") == "2"
        assert open_store().meta("position") == "1"
    assert open_store().meta("position") == "2"
    store.set_values({"position": None})
    assert store.meta("position") is None
