"""Objects, resource versions, compare-and-swap, the change log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kubepy.storage import CompactedError, ConflictError, ExistsError, Key, MissingError
from kubepy.storage.folder import commit_files
from kubepy.storage.folder.store import FolderStore

from .conftest import config_map, create, file_of, key, names


def test_stored_object_is_same_with_resource_version(store: FolderStore) -> None:
    with store.transaction() as transaction:
        created = transaction.create(key("a"), config_map("a", labels={"x": "y"}))
    assert created == config_map("a", labels={"x": "y"}, resourceVersion="1")
    assert store.get(key("a")) == created
    assert store.revision() == 1


def test_absent_object_is_none(store: FolderStore) -> None:
    assert store.get(key("a")) is None
    assert store.list("configmaps") == (0, [], ())
    assert store.resources() == []


def test_create_of_existing_object_fails(store: FolderStore) -> None:
    create(store, config_map("a"))
    with pytest.raises(ExistsError), store.transaction() as transaction:
        transaction.create(key("a"), config_map("a"))


def test_update_and_delete_of_absent_object_fail(store: FolderStore) -> None:
    with store.transaction() as transaction:
        with pytest.raises(MissingError):
            transaction.update(key("a"), config_map("a"))
        with pytest.raises(MissingError):
            transaction.delete(key("a"))


def test_update_that_names_older_version_fails(store: FolderStore) -> None:
    create(store, config_map("a"))
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2"), expected="1")
    with store.transaction() as transaction:
        with pytest.raises(ConflictError):
            transaction.update(key("a"), config_map("a", "3"), expected="1")
        with pytest.raises(ConflictError):
            transaction.delete(key("a"), expected="1")
    assert store.get(key("a")) == config_map("a", "2", resourceVersion="2")


def test_update_that_changes_nothing_writes_nothing(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    before = file_of(folder, "a").stat()
    with store.transaction() as transaction:
        same = transaction.update(key("a"), config_map("a", resourceVersion="1"))
    assert same["metadata"]["resourceVersion"] == "1"
    assert store.revision() == 1
    assert file_of(folder, "a").stat() == before
    assert store.changes(1) == []


def test_true_and_one_are_not_same(store: FolderStore) -> None:
    create(store, {**config_map("a"), "data": {"a": 1}})
    with store.transaction() as transaction:
        transaction.update(key("a"), {**config_map("a"), "data": {"a": True}})
    found = store.get(key("a"))
    assert found is not None
    assert found["data"] == {"a": True}
    assert store.revision() == 2


def test_deleting_returns_last_state_and_removes_file_and_empty_folders(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    with store.transaction() as transaction:
        assert transaction.delete(key("a")) == config_map("a", resourceVersion="1")
    assert store.get(key("a")) is None
    assert sorted(path.name for path in folder.iterdir()) == [".gitignore", ".kubepy", "kubepy.yaml"]


def test_exception_in_transaction_changes_nothing(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    with pytest.raises(RuntimeError), store.transaction() as transaction:  # noqa: PT012
        transaction.update(key("a"), config_map("a", "2"))
        transaction.create(key("b"), config_map("b"))
        store.set_meta("position", "7")
        raise RuntimeError
    assert store.list("configmaps") == (1, [config_map("a", resourceVersion="1")], ())
    assert store.meta("position") is None
    assert [path.name for path in file_of(folder, "a").parent.iterdir()] == ["a.yaml"]


def test_transaction_sees_its_own_writes(store: FolderStore) -> None:
    create(store, config_map("b"), config_map("d", namespace="other"))
    with store.transaction() as transaction:
        assert names(transaction.list("configmaps")) == ["b", "d"]
        transaction.create(key("c"), config_map("c"))
        transaction.create(key("a"), config_map("a"))
        transaction.delete(key("b"))
        assert names(transaction.list("configmaps")) == ["a", "c", "d"]
        assert names(transaction.list("configmaps", "default")) == ["a", "c"]
        assert transaction.get(key("b")) is None
        assert transaction.revision == 5
    assert names(store.list("configmaps").objects) == ["a", "c", "d"]


def test_lists_are_in_key_order_and_by_namespace(store: FolderStore) -> None:
    create(
        store,
        *(config_map(name, namespace=namespace) for namespace in ("z", "b") for name in ("n-10", "n-2", "n")),
    )
    listed = [(obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in store.list("configmaps").objects]
    assert listed == [(namespace, name) for namespace in ("b", "z") for name in ("n", "n-10", "n-2")]
    assert len(store.list("configmaps", "b").objects) == 3
    assert store.list("configmaps", "c").objects == []


def test_cluster_scoped_objects_lie_apart(store: FolderStore, folder: Path) -> None:
    create(store, {"kind": "Node", "metadata": {"name": "n"}}, resource="nodes")
    assert names(store.list("nodes").objects) == ["n"]
    assert names(store.list("nodes", "").objects) == ["n"]
    assert store.list("nodes", "default").objects == []
    assert (folder / "cluster/nodes/n.yaml").is_file()
    assert store.resources() == ["nodes"]


def test_object_must_carry_name_of_its_key(store: FolderStore) -> None:
    with store.transaction() as transaction:
        with pytest.raises(ValueError, match="name"):
            transaction.create(key("a"), config_map("b"))
        with pytest.raises(ValueError, match="namespace"):
            transaction.create(key("a"), config_map("a", namespace="other"))
        with pytest.raises(ValueError, match="JSON"):
            transaction.create(key("a"), config_map("a", x=float("nan")))


def test_transactions_do_not_nest(store: FolderStore) -> None:
    with store.transaction(), pytest.raises(RuntimeError, match="nest"), store.transaction():
        pass


# --- the change log ---


def told(store: FolderStore, since: int) -> list[tuple[int, str, str]]:
    return [(change.revision, change.type, change.key.name) for change in store.changes(since)]


def test_changes_are_in_order_with_state_after_them(store: FolderStore) -> None:
    create(store, config_map("a"), config_map("b"))
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2"))
        transaction.delete(key("b"))
    assert told(store, 2) == [(3, "MODIFIED", "a"), (4, "DELETED", "b")]
    modified, deleted = store.changes(2)
    assert modified.object == config_map("a", "2", resourceVersion="3")
    assert deleted.object == config_map("b", resourceVersion="4")
    assert store.changes(4) == []


def test_changes_of_one_object_are_merged(store: FolderStore) -> None:
    create(store, config_map("a"))
    for value in "23":
        with store.transaction() as transaction:
            transaction.update(key("a"), config_map("a", value))
    assert told(store, 0) == [(3, "ADDED", "a")]
    assert told(store, 1) == [(3, "MODIFIED", "a")]


def test_writes_of_one_object_in_a_transaction_are_one_change(store: FolderStore) -> None:
    with store.transaction() as transaction:
        transaction.create(key("a"), config_map("a"))
        transaction.update(key("a"), config_map("a", "2"))
    assert told(store, 0) == [(2, "ADDED", "a")]


def test_object_created_and_deleted_in_one_transaction_is_no_change(store: FolderStore, folder: Path) -> None:
    with store.transaction() as transaction:
        transaction.create(key("a"), config_map("a"))
        transaction.delete(key("a"))
    assert told(store, 0) == []
    assert not (folder / "namespaces").exists()


def test_replacing_object_by_another_of_its_name_is_deletion_and_addition(store: FolderStore) -> None:
    create(store, config_map("a", uid="1"))
    with store.transaction() as transaction:
        transaction.delete(key("a"))
        transaction.create(key("a"), config_map("a", uid="2"))
    assert told(store, 1) == [(2, "DELETED", "a"), (3, "ADDED", "a")]
    assert [change.object["metadata"]["uid"] for change in store.changes(1)] == ["1", "2"]


def test_change_log_forgets_old_revisions(store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_files, "LOG_LENGTH", 3)
    monkeypatch.setattr(commit_files, "LOG_SLACK", 2)
    for number in range(6):
        create(store, config_map(f"n{number}"))
    assert told(store, 3) == [(4, "ADDED", "n3"), (5, "ADDED", "n4"), (6, "ADDED", "n5")]
    with pytest.raises(CompactedError):
        store.changes(2)


def test_revision_beyond_counter_is_compacted(store: FolderStore) -> None:
    with pytest.raises(CompactedError):
        store.changes(1)


# --- events and other data only in .kubepy ---


def event(name: str) -> dict[str, object]:
    return {"kind": "Event", "metadata": {"name": name, "namespace": "default"}}


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


def test_volatile_object_can_be_updated_and_deleted(store: FolderStore) -> None:
    create(store, event("e"), resource="events")
    with store.transaction() as transaction:
        transaction.update(Key("events", "default", "e"), {**event("e"), "count": 2})
    with store.transaction() as transaction:
        assert transaction.delete(Key("events", "default", "e"))["count"] == 2
    assert store.list("events").objects == []


def test_meta_values_are_kept_and_belong_to_transaction(open_store: Callable[..., FolderStore]) -> None:
    store = open_store()
    store.set_meta("position", "1")
    with store.transaction() as transaction:
        transaction.create(key("a"), config_map("a"))
        store.set_meta("position", "2")
        assert store.meta("position") == "2"
        assert open_store().meta("position") == "1"
    assert open_store().meta("position") == "2"
    store.set_meta("position", None)
    assert store.meta("position") is None
