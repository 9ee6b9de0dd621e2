"""Edits from outside that a transaction meets as it reads: they count before its own writes, and
are committed with them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kubepy.storage import ConflictError, FolderError, Key
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.model import DELETED, Change, CommittedChanges
from kubepy.storage.yaml import dump
from tests.storage.conftest import config_map, create, file_of, history, key, names, record, told
from tests.stores import changes, transaction_of


def write(folder: Path, name: str, value: str, namespace: str = "default") -> None:
    """Write the file of a ConfigMap as an editor does that renames a new file into place."""
    path = file_of(folder, name, namespace)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{name}.edited")
    temporary.write_text(dump(config_map(name, value, namespace)))
    temporary.rename(path)


def revisions(store: FolderStore, since: int) -> list[tuple[int, str, str]]:
    return [
        (change.revision, change.type, change.key.name)
        for change in changes(store, since, reads=())
    ]


def test_edit_of_object_that_is_read_comes_before_own_write(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a"), config_map("b"))
    write(folder, "a", "theirs")
    with store.transaction() as transaction:
        assert transaction.revision == 2
        obj = transaction.get(key("a"))
        assert obj is not None
        assert (obj["data"], obj["metadata"]["resourceVersion"]) == ({"a": "theirs"}, "3")
        transaction.update(key("a"), {**config_map("a", "ours")})
    assert told(store, 2) == [(4, "MODIFIED", "a")]
    assert store.get(key("a")) == config_map("a", "ours", resourceVersion="4")


def test_edit_met_after_own_write_has_revision_after_it(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"), config_map("b"), config_map("c"))
    write(folder, "a", "theirs")
    file_of(folder, "c").unlink()
    with store.transaction() as transaction:
        assert (
            transaction.update(key("b"), config_map("b", "ours"))["metadata"]["resourceVersion"]
            == "4"
        )
        assert names(transaction.list("configmaps").objects) == ["a", "b"]
        assert transaction.create(key("d"), config_map("d"))["metadata"]["resourceVersion"] == "7"
    assert told(store, 3) == [
        (4, "MODIFIED", "b"),
        (5, "MODIFIED", "a"),
        (6, DELETED, "c"),
        (7, "ADDED", "d"),
    ]


def test_edit_of_object_that_is_not_read_is_left_for_later(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a"), config_map("b"))
    write(folder, "a", "theirs")
    with store.transaction() as transaction:
        transaction.update(key("b"), config_map("b", "ours"))
    assert store.revision == 3
    assert told(store, 2) == [(3, "MODIFIED", "b"), (4, "MODIFIED", "a")]


def test_edit_of_failed_transaction_is_recorded_by_next(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    write(folder, "a", "theirs")
    with suppress(KeyError), store.transaction() as transaction:
        assert transaction.get(key("a"))["data"] == {"a": "theirs"}  # type: ignore[index]
        raise KeyError
    assert store.revision == 1
    with store.transaction() as transaction:
        transaction.get(key("a"))
    assert store.revision == 2
    assert revisions(store, 1) == [(2, "MODIFIED", "a")]


def test_removed_file_whose_object_is_made_again_is_deletion_and_addition(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a"))
    file_of(folder, "a").unlink()
    with store.transaction() as transaction:
        transaction.create(key("a"), config_map("a", "2"))
    assert told(store, 1) == [(2, DELETED, "a"), (3, "ADDED", "a")]
    assert '"2"' in file_of(folder, "a").read_text()


def test_broken_file_cannot_be_written_and_is_found_without_refresh(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a"), config_map("b"))
    file_of(folder, "a").write_text("{")
    with pytest.raises(FolderError, match=r"a\.yaml:1"), store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2"))
    with store.transaction() as transaction:
        assert names(transaction.list("configmaps").objects) == ["b"]
    write(folder, "a", "3")
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "4"))
    assert [problem.path for problem in store.problems()] == []


def test_link_in_place_of_folder_is_found_when_it_is_read(
    store: FolderStore, folder: Path, tmp_path: Path
) -> None:
    create(store, config_map("a"))
    directory = folder / "namespaces/default/configmaps"
    shutil.move(directory, tmp_path / "elsewhere")
    directory.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FolderError, match="is a symbolic link"), store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2"))
    directory.unlink()
    shutil.move(tmp_path / "elsewhere", directory)
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2"))


def test_namespace_whose_file_was_removed_is_written_again_by_transaction_that_reads_it(
    open_store: Callable[..., FolderStore], folder: Path
) -> None:
    def end(key: Key, obj: dict[str, Any], now: float) -> dict[str, Any] | None:
        return {**obj, "ended": now}

    store = open_store(removal=end, now=lambda: 7.0)
    create(store, {"metadata": {"name": "shop"}}, resource="namespaces")
    create(store, config_map("a", namespace="shop"))
    store.sync()
    path = folder / "cluster/namespaces/shop.yaml"
    for attempt in ("read", "read and write"):
        path.unlink()
        with store.transaction() as transaction:
            transaction.create(
                key(attempt.replace(" ", "-")), config_map(attempt.replace(" ", "-"))
            )
            ended = transaction.get(Key("namespaces", "", "shop"))
            assert ended is not None
            assert ended["ended"] == 7
            if attempt != "read":
                transaction.update(Key("namespaces", "", "shop"), {**ended, "seen": True})
        assert "ended: 7" in path.read_text()
    assert "seen: true" in path.read_text()
    assert told(store, 2) == [
        (3, "ADDED", "read"),
        (5, "ADDED", "read-and-write"),
        (7, "MODIFIED", "shop"),
    ]


def test_timeline_has_edit_before_own_write(store: FolderStore, folder: Path) -> None:
    record(store)
    create(store, config_map("a"))
    write(folder, "a", "2")
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "3"))
    assert history(store) == [
        (1, "a", None, ("1",)),
        (2, "a", ("1",), ("2",)),
        (3, "a", ("2",), ("3",)),
    ]


# --- generated ------------------------------------------------------------------------------------


class Follower:
    """Keeps the values of all ConfigMaps by what it is told alone, as caches do."""

    def __init__(self) -> None:
        self.values: dict[Key, str] = {}
        self.revision = 0

    def apply(self, changes: list[Change], revision: int) -> None:
        for change in changes:
            assert change.revision > self.revision
            if change.type == DELETED:
                self.values.pop(change.key, None)
            else:
                self.values[change.key] = change.json
        self.revision = revision


def random_edit(folder: Path, chance: Random, number: int) -> None:
    name, namespace = chance.choice("abc"), chance.choice(("default", "other"))
    path = file_of(folder, name, namespace)
    match chance.choice(["write", "write", "in place", "remove", "break", "remove all"]):
        case "write":
            write(folder, name, str(number), namespace)
        case "in place" if path.exists():
            path.write_text(dump(config_map(name, str(number), namespace)))
        case "remove":
            path.unlink(missing_ok=True)
        case "break" if path.exists():
            path.write_text("{")
        case "remove all" if chance.random() < 0.3:
            shutil.rmtree(path.parent, ignore_errors=True)


def random_work(store: FolderStore, chance: Random, number: int) -> None:
    refresh = chance.random() < 0.1
    with (
        suppress(FolderError, ConflictError, KeyError),
        transaction_of(store, refresh=refresh) as transaction,
    ):
        for step in range(chance.randint(1, 4)):
            name, namespace = chance.choice("abc"), chance.choice(("default", "other"))
            place = key(name, namespace)
            with suppress(FolderError):
                match chance.choice(["get", "list", "list all", "put", "put", "delete", "fail"]):
                    case "get":
                        transaction.get(place)
                    case "list":
                        transaction.list("configmaps", namespace)
                    case "list all":
                        transaction.list("configmaps")
                    case "put":
                        obj = config_map(name, f"ours {number} {step}", namespace)
                        (
                            transaction.create
                            if transaction.get(place) is None
                            else transaction.update
                        )(place, obj)
                    case "delete" if transaction.get(place) is not None:
                        transaction.delete(place)
                    case "fail" if chance.random() < 0.2:
                        raise KeyError


@pytest.mark.parametrize("seed", range(12))
def test_followers_of_log_and_commits_end_with_what_files_say(
    open_store: Callable[..., FolderStore], folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("kubepy.storage.folder.compare.EDIT_NS", 0)  # nobody is still writing
    monkeypatch.setattr("kubepy.storage.folder.compare.REMOVAL_NS", 0)
    chance = Random(seed)
    store, log, commits = open_store(), Follower(), Follower()

    def hear(committed: CommittedChanges) -> None:
        if committed.base > commits.revision:
            _, changes, _ = store.changes(commits.revision)
            commits.apply(
                [change for change in changes if change.revision <= committed.base], committed.base
            )
        commits.apply(
            [change for change in committed.changes if change.revision > commits.revision],
            committed.revision,
        )

    store.watch(hear)
    for number in range(15):
        for _ in range(chance.randint(0, 2)):
            random_edit(folder, chance, number)
        random_work(store, chance, number)
        if chance.random() < 0.5:
            if chance.random() < 0.3:
                store.look()
            revision, changes, _ = store.changes(log.revision)
            log.apply(changes, revision)
    fresh = open_store()
    listed = fresh.list("configmaps")
    fresh.look()
    revision, changes, _ = fresh.changes(log.revision)
    log.apply(changes, revision)
    hear(CommittedChanges(revision, revision, []))
    broken = {problem.path for problem in listed.problems}
    shown = {
        (obj["metadata"]["namespace"], obj["metadata"]["name"]): obj["data"]["a"]
        for obj in listed.objects
    }
    for follower in (log, commits):
        values = {
            (each.namespace, each.name): text
            for each, text in follower.values.items()
            if f"namespaces/{each.namespace}/configmaps/{each.name}.yaml" not in broken
        }
        assert values.keys() == shown.keys()
        assert all(f'"a":"{shown[place]}"' in text for place, text in values.items())
    assert fresh.check() == []
