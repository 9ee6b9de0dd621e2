"""Edits by other programs become ordinary changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kubepy.storage import ConflictError, FolderError, Key
from kubepy.storage.folder import commit_files, reader, replacing
from kubepy.storage.folder.commit_files import Journal
from kubepy.storage.folder.locks import Lock
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.yaml import dump
from tests.stores import changes, disagreements, resources, transaction_of

from .conftest import config_map, create, file_of, key, names


def edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def told(store: FolderStore, since: int) -> list[tuple[str, str]]:
    return [(change.type, change.key.name) for change in changes(store, since)]


@contextmanager
def locked_by_another(folder: Path) -> Any:
    lock = Lock(str(folder / ".kubepy" / "lock"))
    lock.acquire(1)
    try:
        yield
    finally:
        lock.release()


def test_edit_becomes_new_revision_and_change(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a", uid="1"), config_map("b"))
    edit(file_of(folder, "a"), '"1"\nkind', '"2"\nkind')
    text = file_of(folder, "a").read_text()
    assert store.get(key("a")) == config_map("a", "2", uid="1", resourceVersion="3")
    assert changes(store, 2)[0].object == config_map("a", "2", uid="1", resourceVersion="3")
    assert told(store, 2) == [("MODIFIED", "a")]
    assert file_of(folder, "a").read_text() == text


def test_new_and_removed_files_are_additions_and_deletions(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a"), config_map("b"))
    file_of(folder, "c").write_text(dump(config_map("c")))
    file_of(folder, "a").unlink()
    assert names(store.list("configmaps").objects) == ["b", "c"]
    assert told(store, 2) == [("DELETED", "a"), ("ADDED", "c")]
    assert changes(store, 2)[0].object == config_map("a", resourceVersion="3")


def test_file_with_another_uid_is_deletion_and_addition(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a", uid="1"))
    file_of(folder, "a").write_text(dump(config_map("a", uid="2")))
    assert store.get(key("a")) == config_map("a", uid="2", resourceVersion="3")
    assert told(store, 1) == [("DELETED", "a"), ("ADDED", "a")]
    assert changes(store, 1)[0].object == config_map("a", uid="1", resourceVersion="2")
    assert disagreements(store) == []


def test_deleted_folder_deletes_its_objects(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"), config_map("b", namespace="other"))
    shutil.rmtree(folder / "namespaces/default")
    assert names(store.list("configmaps").objects) == ["b"]
    assert told(store, 2) == [("DELETED", "a")]


def test_transaction_with_refresh_records_edits_of_all_resources_first(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a"))
    path = folder / "cluster/nodes/node-1.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("kind: Node\nmetadata: {name: node-1}\n")
    with transaction_of(store, refresh=True) as transaction:
        assert transaction.revision == 2
        assert names(transaction.list("nodes").objects) == ["node-1"]


def test_update_that_names_version_before_edit_conflicts(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    edit(file_of(folder, "a"), '"1"', '"2"')
    with store.transaction() as transaction, pytest.raises(ConflictError):
        transaction.update(key("a"), config_map("a", "3"), expected="1")


def test_touched_file_is_no_change(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    os.utime(file_of(folder, "a"))
    assert store.get(key("a")) == config_map("a", resourceVersion="1")
    file_of(folder, "a").write_text("# a remark\n" + file_of(folder, "a").read_text())
    assert store.list("configmaps").revision == 1


def test_edit_in_same_tick_of_same_size_is_seen(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    for value in ["2", "3", "4", "5"]:
        path = file_of(folder, "a")
        with path.open("r+") as file:  # in place: the inode stays
            text = file.read()
            file.seek(0)
            file.write(text[: text.index('"') + 1] + value + text[text.index('"') + 2 :])
        assert store.get(key("a"))["data"] == {"a": value}  # type: ignore[index]


def test_edit_that_keeps_size_inode_and_mtime_is_seen_while_stamp_is_racy(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a"))
    path = file_of(folder, "a")
    edit(path, '"1"', '"2"')
    soon = time.time_ns() + 10**10  # the stamp stays racy until then
    os.utime(path, ns=(soon, soon))
    stamp = path.stat()
    assert store.get(key("a"))["data"] == {"a": "2"}  # type: ignore[index]
    with path.open("r+") as file:
        text = file.read()
        file.seek(0)
        file.write(text.replace('"2"', '"3"'))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert store.get(key("a"))["data"] == {"a": "3"}  # type: ignore[index]


def test_files_with_whole_second_times_are_compared_by_content(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a"))
    path = file_of(folder, "a")
    edit(path, '"1"', '"2"')
    second = path.stat().st_mtime_ns // 1_000_000_000 * 1_000_000_000
    os.utime(path, ns=(second, second))
    assert store.get(key("a"))["data"] == {"a": "2"}  # type: ignore[index]
    edit(path, '"2"', '"3"')
    os.utime(path, ns=(second, second))
    assert store.get(key("a"))["data"] == {"a": "3"}  # type: ignore[index]


def test_edited_object_keeps_its_managers_while_its_uid_is_same(
    store: FolderStore, folder: Path
) -> None:
    managers = [{"manager": "kubectl", "operation": "Update"}]
    create(
        store,
        config_map("a", uid="1", managedFields=managers),
        config_map("b", uid="1", managedFields=managers),
    )
    edit(file_of(folder, "a"), '"1"\nkind', '"2"\nkind')
    edit(file_of(folder, "b"), 'uid: "1"', 'uid: "2"')
    assert "managedFields" not in file_of(folder, "a").read_text()
    assert store.get(key("a"))["metadata"]["managedFields"] == managers  # type: ignore[index]
    assert "managedFields" not in store.get(key("b"))["metadata"]  # type: ignore[index]


def test_handwritten_manifest_keeps_defaults_of_admission(
    open_store: Callable[..., FolderStore], folder: Path
) -> None:
    def admit(
        key: Key, obj: dict[str, Any], mtime: float, old: dict[str, Any] | None
    ) -> dict[str, Any]:
        obj["metadata"].setdefault("uid", f"uid at {mtime}")
        obj["metadata"].setdefault("creationTimestamp", "now")
        return obj

    path = file_of(folder, "a")
    path.parent.mkdir(parents=True)
    path.write_text("kind: ConfigMap\nmetadata:\n  name: a\n")
    store = open_store(admit=admit)
    first = store.get(key("a"))
    assert first is not None
    assert first["metadata"]["uid"] == f"uid at {path.stat().st_mtime_ns / 1e9}"
    assert first["metadata"]["namespace"] == "default"
    path.write_text("kind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: b\n")
    second = store.get(key("a"))
    assert second is not None
    assert second["metadata"] == {
        **first["metadata"],
        "resourceVersion": second["metadata"]["resourceVersion"],
    }
    assert second["data"] == {"a": "b"}
    assert disagreements(store) == []
    path.unlink()


def test_admission_gets_object_last_recorded(
    open_store: Callable[..., FolderStore], folder: Path
) -> None:
    known: list[Any] = []

    def admit(
        key: Key, obj: dict[str, Any], mtime: float, old: dict[str, Any] | None
    ) -> dict[str, Any]:
        known.append(old and old["data"]["a"])
        return obj

    store = open_store(admit=admit)
    create(store, config_map("a", uid="1"))
    edit(file_of(folder, "a"), 'a: "1"', 'a: "2"')
    store.get(key("a"))
    edit(file_of(folder, "a"), 'a: "2"', 'a: "3"')
    store.get(key("a"))
    edit(file_of(folder, "a"), 'uid: "1"', 'uid: "2"')
    store.get(key("a"))
    file_of(folder, "b").write_text(dump(config_map("b")))
    store.get(key("b"))
    assert known == ["1", "2", "3", None]  # another uid: the admission is given the replaced object


# --- removed, but kept for now ---


def end(key: Key, obj: dict[str, Any], now: float) -> dict[str, Any] | None:
    """Mark an object whose file is removed as ended while it has a "hold"; remove it otherwise."""
    return {**obj, "ended": now} if obj.get("hold") else None


@pytest.fixture
def holding(open_store: Callable[..., FolderStore]) -> FolderStore:
    store = open_store(removal=end, now=lambda: 7.0)
    create(store, {"metadata": {"name": "shop"}, "hold": True}, resource="namespaces")
    create(store, config_map("a", namespace="shop"))
    return store


SHOP = Key("namespaces", "", "shop")


def file_of_shop(folder: Path) -> Path:
    return folder / "cluster/namespaces/shop.yaml"


def test_removed_file_of_retained_object_is_written_again(
    holding: FolderStore, folder: Path
) -> None:
    file_of_shop(folder).unlink()
    assert holding.get(SHOP) == {
        "metadata": {"name": "shop", "resourceVersion": "3"},
        "hold": True,
        "ended": 7.0,
    }
    assert told(holding, 2) == [("MODIFIED", "shop")]
    assert "ended: 7" in file_of_shop(folder).read_text()
    with holding.transaction() as transaction:
        transaction.update(SHOP, {"metadata": {"name": "shop"}})
    file_of_shop(folder).unlink()
    assert holding.get(SHOP) is None


def test_removed_file_is_recorded_and_written_in_one_transaction(
    holding: FolderStore, folder: Path
) -> None:
    file_of_shop(folder).unlink()
    with holding.transaction() as transaction:
        ended = transaction.get(SHOP)
        assert ended is not None
        transaction.update(SHOP, {**ended, "seen": True})
    assert "seen: true" in file_of_shop(folder).read_text()


def test_removed_file_without_files_in_its_namespace_is_deletion(
    holding: FolderStore, folder: Path
) -> None:
    file_of_shop(folder).unlink()
    shutil.rmtree(folder / "namespaces/shop")
    assert holding.get(SHOP) is None
    assert told(holding, 2) == [
        ("DELETED", "shop"),
        ("DELETED", "a"),
    ]  # the object that is read comes first
    assert not file_of_shop(folder).exists()


def test_reader_beside_writer_shows_retained_object(holding: FolderStore, folder: Path) -> None:
    with locked_by_another(folder):
        file_of_shop(folder).unlink()
        assert holding.get(SHOP) == {
            "metadata": {"name": "shop", "resourceVersion": "1"},
            "hold": True,
            "ended": 7.0,
        }
        assert names(holding.list("namespaces").objects) == ["shop"]
        assert not file_of_shop(folder).exists()


def test_git_checkout_restores_older_objects(store: FolderStore, folder: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True)

    git("init", "-q")
    git("config", "user.email", "a@example.com")
    git("config", "user.name", "a")
    create(store, config_map("a"), config_map("b"))
    git("add", "-A")
    git("commit", "-qm", "first")
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2"))
        transaction.delete(key("b"))
        transaction.create(key("c"), config_map("c"))
    git("add", "-A")
    git("commit", "-qm", "second")
    git("checkout", "-q", "HEAD~")
    assert names(store.list("configmaps").objects) == ["a", "b"]
    assert store.get(key("a"))["data"] == {"a": "1"}  # type: ignore[index]
    assert told(store, 5) == [("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "c")]
    assert ".kubepy" not in subprocess.check_output(["git", "-C", folder, "ls-files"], text=True)
    git("checkout", "-q", "-")
    assert names(store.list("configmaps").objects) == ["a", "c"]


# --- beside a writer ---


def test_readers_show_edit_while_another_process_has_lock(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"), config_map("b"), config_map("c"))
    with locked_by_another(folder):
        edit(file_of(folder, "a"), '"1"', '"2"')
        file_of(folder, "b").unlink()
        file_of(folder, "d").write_text(dump(config_map("d")))
        file_of(folder, "c").write_text("{")
        listed = store.list("configmaps")
        assert [(obj["metadata"]["name"], obj["data"]["a"]) for obj in listed.objects] == [
            ("a", "2"),
            ("d", "1"),
        ]
        assert [problem.path for problem in listed.problems] == [
            "namespaces/default/configmaps/c.yaml"
        ]
        assert listed.revision == 3
        assert store.get(key("a")) == config_map("a", "2", resourceVersion="1")
        assert store.get(key("b")) is None
        with pytest.raises(FolderError, match=r"c\.yaml:1: "):
            store.get(key("c"))
        assert resources(store) == ["configmaps"]
        assert changes(store, 3) == []
    assert told(store, 3) == [("MODIFIED", "a"), ("DELETED", "b"), ("ADDED", "d")]


def test_readers_see_state_before_transaction_until_it_is_committed(
    open_store: Callable[..., FolderStore],
) -> None:
    store, other = open_store(), open_store()
    create(store, config_map("a"))
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2"))
        transaction.create(key("b"), config_map("b"))
        assert other.list("configmaps") == (1, [config_map("a", resourceVersion="1")], ())
        assert store.get(key("b")) is None
    assert names(other.list("configmaps").objects) == ["a", "b"]


def test_edit_while_transaction_runs_is_not_overwritten(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    with (  # noqa: PT012
        pytest.raises(ConflictError, match="was edited in the mean"),
        store.transaction() as transaction,
    ):
        transaction.create(key("b"), config_map("b"))
        transaction.update(key("a"), config_map("a", "ours"))
        edit(file_of(folder, "a"), '"1"', '"theirs"')
    assert names(store.list("configmaps").objects) == ["a"]
    assert store.get(key("a"))["data"] == {"a": "theirs"}  # type: ignore[index]


def test_reading_leaves_folder_as_it_was(
    open_store: Callable[..., FolderStore], folder: Path
) -> None:
    def contents() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    os.utime(folder / "kubepy.yaml", (1, 1))  # old enough for the index to remember the settings
    writer = open_store()
    create(writer, config_map("a"))
    writer.close()
    before = contents()
    reader = open_store()
    reader.get(key("a"))
    reader.list("configmaps")
    changes(reader, 0)
    reader.problems()
    reader.close()
    assert contents() == before


def test_edit_with_same_size_inode_and_time_is_seen_by_its_change_time(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a"))
    path = file_of(folder, "a")
    stat = path.stat()
    time.sleep(0.05)  # the kernel's change times have a coarse resolution
    with path.open("r+") as file:
        text = file.read()
        file.seek(0)
        file.write(text.replace('"1"', '"2"'))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (path.stat().st_mtime_ns, path.stat().st_size) == (stat.st_mtime_ns, stat.st_size)
    with store.transaction() as transaction:
        assert transaction.get(key("a"))["data"] == {"a": "2"}  # type: ignore[index]
    assert store.get(key("a"))["data"] == {"a": "2"}  # type: ignore[index]


# --- edits that another process records at the same moment ---


class Meanwhile:
    """A second store that acts once, between a reader's scan of the files and its snapshot of the
    rows, or after the snapshot."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, moment: str, act: Callable[[], object]
    ) -> None:
        self.acts = [act]
        target, name = {
            "after the scan": (reader, "scan_extents"),
            "after the snapshot": (reader, "compare"),
        }[moment]
        real = getattr(target, name)

        def late(*arguments: Any) -> Any:
            done = real(*arguments)
            self.run()
            return done

        def early(*arguments: Any) -> Any:
            self.run()
            return real(*arguments)

        monkeypatch.setattr(target, name, late if name == "scan_extents" else early)

    def run(self) -> None:
        if self.acts:
            self.acts.pop()()


@pytest.mark.parametrize("moment", ["after the scan", "after the snapshot"])
@pytest.mark.parametrize("way", ["changed", "new", "removed", "changed and overwritten"])
def test_edit_recorded_by_another_process_meanwhile_is_seen(
    open_store: Callable[..., FolderStore],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    way: str,
) -> None:
    mine, other = open_store(), open_store()
    create(mine, config_map("a"), config_map("b"))

    def take_in() -> None:
        with other.transaction() as transaction:
            if way == "changed and overwritten":
                assert transaction.get(key("a"))["data"] == {"a": "2"}  # type: ignore[index]
                transaction.update(key("a"), config_map("a", "3"))

    if way.startswith("changed"):
        edit(file_of(folder, "a"), '"1"', '"2"')
    elif way == "new":
        file_of(folder, "c").write_text(dump(config_map("c")))
    else:
        file_of(folder, "a").unlink()
    Meanwhile(monkeypatch, moment, take_in)
    listed = {obj["metadata"]["name"]: obj["data"]["a"] for obj in mine.list("configmaps").objects}
    assert (
        listed
        == {
            "changed": {"a": "2", "b": "1"},
            "new": {"a": "1", "b": "1", "c": "1"},
            "removed": {"b": "1"},
            "changed and overwritten": {"a": "3", "b": "1"},
        }[way]
    )


@pytest.mark.parametrize("moment", ["after the scan", "after the snapshot"])
def test_commit_by_another_process_meanwhile_is_all_or_nothing(
    open_store: Callable[..., FolderStore], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    mine, other = open_store(), open_store()
    create(mine, config_map("a"), config_map("b"), config_map("c"))

    def commit() -> None:
        with other.transaction() as transaction:
            transaction.update(key("a"), config_map("a", "2"))
            transaction.delete(key("b"))
            transaction.create(key("d"), config_map("d", "2"))

    Meanwhile(monkeypatch, moment, commit)
    listed = [
        (obj["metadata"]["name"], obj["data"]["a"]) for obj in mine.list("configmaps").objects
    ]
    before, after = [("a", "1"), ("b", "1"), ("c", "1")], [("a", "2"), ("c", "1"), ("d", "2")]
    assert listed in (
        [after] if moment == "after the scan" else [before, after]
    )  # racy files are read


def edit_in_place(folder: Path, name: str, old: str, new: str) -> None:
    """Edit a file in place, keep its size, and set its time of modification back."""
    with file_of(folder, name).open("r+b") as file:
        before = os.fstat(file.fileno())
        text = file.read().replace(old.encode(), new.encode())
        file.seek(0)
        file.write(text)
        file.flush()
        os.utime(file.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("way", ["get", "list", "changes", "look", "update"])
def test_edit_between_rename_and_stamp_is_seen(
    store: FolderStore,
    open_store: Callable[..., FolderStore],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    """An edit in place may come before the change time of a renamed file is taken, or leave the
    same one."""
    create(store, config_map("a"), config_map("b"))
    replace = replacing.replace

    def replace_and_edit(*arguments: Any) -> bool:
        is_replaced = replace(*arguments)
        edit_in_place(folder, "a", '"2"', '"3"')
        return is_replaced

    with monkeypatch.context() as patch:
        patch.setattr(replacing, "replace", replace_and_edit)
        with store.transaction() as transaction:
            transaction.update(key("a"), config_map("a", "2"))
    other = open_store()
    if way == "list":
        seen = next(
            obj for obj in other.list("configmaps").objects if obj["metadata"]["name"] == "a"
        )
    elif way == "update":
        with other.transaction() as transaction:
            loaded = transaction.get(key("a"))
            assert loaded is not None
            seen = loaded
            transaction.update(
                key("a"), {**config_map("a", "4"), "data": {**seen["data"], "b": "1"}}
            )
        assert '"3"' in file_of(folder, "a").read_text()
    else:
        if way == "changes":
            assert [change.key for change in changes(other, other.revision)] in ([], [key("a")])
        elif way == "look":
            with transaction_of(other, refresh=True):
                pass
        found = other.get(key("a"))
        assert found is not None
        seen = found
    assert seen["data"]["a"] == "3"


@pytest.mark.parametrize("moment", ["before the rename", "after the rename"])
def test_edit_in_place_while_commit_is_under_way_is_seen(
    store: FolderStore,
    open_store: Callable[..., FolderStore],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    """Its size, inode and time are those of a version that the commit replaces or has made."""
    create(store, config_map("a"))
    settle, tidy = Journal._settle, commit_files.tidy
    seen: list[str] = []

    def look(old: str) -> None:
        edit_in_place(folder, "a", old, '"3"')
        seen.extend(obj["data"]["a"] for obj in open_store().list("configmaps").objects)

    def look_before(self: Journal, *arguments: Any) -> None:
        look('"1"')
        settle(self, *arguments)

    def look_after(*arguments: Any) -> None:
        look('"2"')
        tidy(*arguments)

    if moment == "before the rename":
        monkeypatch.setattr(Journal, "_settle", look_before)
    else:
        monkeypatch.setattr(commit_files, "tidy", look_after)
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2"))
    assert seen == ["3"]
    found = open_store().get(key("a"))
    assert found is not None
    assert found["data"]["a"] == "3"
