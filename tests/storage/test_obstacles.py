"""A link, a file or a folder without permission in place of a folder of objects: nothing is known
of its objects, so they count as neither removed nor changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kubepy.storage import FolderError, Key, Problem
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.yaml import dump
from tests.stores import changes, disagreements, resources

from .conftest import config_map, create, file_of, key, names
from .test_faults import AFTER, die_after_recording, state

NODE = Key("nodes", "", "n")


def linked(path: Path) -> None:
    """Move the folder elsewhere and leave a link to it."""
    (state_folder,) = (one for one in path.parents if one.name == "state")
    elsewhere = state_folder.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def linked_to_nothing(path: Path) -> None:
    path.rename(path.parent / ".kept")
    path.symlink_to("/nowhere/at/all")


def replaced_by_a_file(path: Path) -> None:
    path.rename(path.parent / ".kept")
    path.write_text("not a folder\n")


OBSTACLES = {
    "a link": (linked, "is a symbolic link"),
    "a link to nothing": (linked_to_nothing, "is a symbolic link"),
    "a file": (replaced_by_a_file, "is not a folder"),
}
PLACES = ["namespaces/default/configmaps", "namespaces/default", "namespaces"]


def put_back(path: Path) -> None:
    target = path.resolve() if path.is_symlink() and path.exists() else path.parent / ".kept"
    path.unlink()
    target.rename(path)


@contextmanager
def denied(path: Path, *operations: str) -> Iterator[None]:
    """Deny access below a path (mode 000), or list names only (mode 444), or all but that (mode
    111)."""

    def guard(name: str) -> Any:
        real = getattr(os, name)

        def run(target: Any, *arguments: Any, **options: Any) -> Any:
            descriptor = options.get("dir_fd")
            place = (
                target
                if descriptor is None
                else f"{os.readlink(f'/proc/self/fd/{descriptor}')}/{target}"
            )
            is_below = str(place).startswith(f"{path}/") and (name != "open" or not operations)
            is_hidden = is_below or (name in ("scandir", "open") and str(place) == str(path))
            if is_hidden:
                raise PermissionError(13, "Permission denied", str(target))
            return real(target, *arguments, **options)

        return mock.patch.object(os, name, run)

    patches = [
        guard(name)
        for name in operations or ("scandir", "lstat", "stat", "open", "unlink", "mkdir", "listdir")
    ]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


@pytest.fixture
def store(open_store: Callable[..., FolderStore]) -> FolderStore:
    store = open_store()
    create(store, config_map("a"), config_map("b"), config_map("c", namespace="other"))
    with store.transaction() as transaction:
        transaction.create(NODE, {"kind": "Node", "metadata": {"name": "n"}})
    return store


def all_objects(store: FolderStore) -> list[str]:
    return names(store.list("configmaps").objects)


def is_held_back(store: FolderStore, problem: Problem) -> None:
    """Check that the objects in default/configmaps count as neither removed nor changed, and cannot
    be written."""
    revision = store.revision
    assert store.list("configmaps", "default") == (
        revision,
        [config_map("a", resourceVersion="1"), config_map("b", resourceVersion="2")],
        (problem,),
    )
    assert changes(store, 4) == []
    assert "configmaps" in resources(store)
    assert problem in store.problems()
    with pytest.raises(FolderError, match=problem.reason):
        store.get(key("a"))
    writes: list[Callable[[Any], object]] = [
        lambda one: one.get(key("a")),
        lambda one: one.update(key("a"), config_map("a", "2")),
        lambda one: one.delete(key("b")),
        lambda one: one.create(key("new"), config_map("new")),
    ]
    for write in writes:
        with store.transaction() as transaction, pytest.raises(FolderError, match=problem.reason):
            write(transaction)
    with store.transaction() as transaction:
        assert names(transaction.list("configmaps", "default").objects) == ["a", "b"]
        transaction.update(
            NODE, {"kind": "Node", "metadata": {"name": "n", "labels": {"r": str(revision)}}}
        )
    assert disagreements(store) == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("put", "why"), OBSTACLES.values(), ids=OBSTACLES.keys())
def test_objects_behind_obstacle_count_as_they_last_were(
    store: FolderStore, folder: Path, place: str, put: Callable[[Path], None], why: str
) -> None:
    put(folder / place)
    is_held_back(store, Problem(place, 0, why))
    put_back(folder / place)
    assert all_objects(store) == ["a", "b", "c"]
    assert [change.key for change in changes(store, 4)] == [NODE]
    assert store.problems() == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "operations", [(), ("lstat", "stat"), ("scandir", "open")], ids=["000", "444", "111"]
)
def test_unreadable_folder_hides_its_own_objects_only(
    store: FolderStore, folder: Path, place: str, operations: tuple[str, ...]
) -> None:
    with denied(folder / place, *operations):
        snapshot = store.list("configmaps", "default")
        assert names(snapshot.objects) == ["a", "b"]
        assert [one.reason for one in snapshot.problems] == [
            "cannot be read: Permission denied"
        ] or operations
        assert changes(store, 4) == []
        assert store.get(NODE) is not None
        with store.transaction() as transaction:
            transaction.update(
                NODE, {"kind": "Node", "metadata": {"name": "n", "labels": {"a": "b"}}}
            )
        assert disagreements(store) == []
    assert all_objects(store) == ["a", "b", "c"]
    assert [change.key for change in changes(store, 4)] == [NODE]
    assert store.problems() == []


def test_folder_without_permission_is_problem(store: FolderStore, folder: Path) -> None:
    with denied(folder / PLACES[0]):
        is_held_back(store, Problem(PLACES[0], 0, "cannot be read: Permission denied"))


def test_cluster_scoped_objects_behind_obstacle_count_as_they_last_were(
    store: FolderStore, folder: Path
) -> None:
    linked(folder / "cluster")
    snapshot = store.list("nodes")
    assert (names(snapshot.objects), snapshot.problems) == (
        ["n"],
        (Problem("cluster", 0, "is a symbolic link"),),
    )
    assert store.list("configmaps", "default").problems == ()
    assert store.describe(snapshot.problems[0]) == (
        f"{folder}/cluster: is a symbolic link: its objects count as they last were"
    )


def test_edit_behind_obstacle_shows_once_it_is_removed(store: FolderStore, folder: Path) -> None:
    linked_to_nothing(folder / PLACES[0])
    assert all_objects(store) == ["a", "b", "c"]
    kept = folder / "namespaces/default/.kept"
    (kept / "a.yaml").write_text(dump(config_map("a", "edited")))
    (kept / "b.yaml").unlink()
    assert changes(store, 4) == []
    put_back(folder / PLACES[0])
    assert [(change.type, change.key.name) for change in changes(store, 4)] == [
        ("MODIFIED", "a"),
        ("DELETED", "b"),
    ]


def test_file_that_hides_no_object_is_no_problem(store: FolderStore, folder: Path) -> None:
    (folder / "namespaces/default/notes").write_text("what this namespace is for\n")
    assert store.list("configmaps").problems == ()
    assert store.problems() == []


def test_new_index_reports_obstacle_without_objects_behind_it(
    store: FolderStore, folder: Path
) -> None:
    linked(folder / PLACES[0])
    store.close()
    shutil.rmtree(folder / ".kubepy")
    again = FolderStore(folder)
    problem = Problem(PLACES[0], 0, "is a symbolic link")
    assert (all_objects(again), again.list("configmaps").problems) == (["c"], (problem,))
    with pytest.raises(FolderError, match="is a symbolic link"):
        again.get(key("a"))
    put_back(folder / PLACES[0])
    assert all_objects(again) == ["a", "b", "c"]
    assert again.check() == []
    again.close()


def test_reader_that_cannot_take_lock_sees_same(store: FolderStore, folder: Path) -> None:
    linked(folder / PLACES[0])
    with store.transaction():
        reader = FolderStore(folder)
        assert all_objects(reader) == ["a", "b", "c"]
        reader.close()


def test_link_in_place_of_folder_is_never_followed(store: FolderStore, folder: Path) -> None:
    linked(folder / PLACES[0])
    elsewhere = folder.parent / "elsewhere"
    (elsewhere / ".managed").mkdir()
    (elsewhere / ".kubepy-0.tmp").write_text("")
    before = sorted((path.name, path.stat().st_mtime_ns) for path in elsewhere.iterdir())
    (folder / ".kubepy/lock.holder").write_text("1\nleft by one that died\n")
    with store.transaction() as transaction:
        transaction.delete(key("c", "other"))
    assert disagreements(store) == []
    assert sorted((path.name, path.stat().st_mtime_ns) for path in elsewhere.iterdir()) == before


def test_pending_commit_behind_obstacle_waits(folder: Path) -> None:
    die_after_recording(folder)
    linked(folder / PLACES[0])
    store = FolderStore(folder)
    assert state(store) == AFTER
    with store.transaction() as transaction:
        transaction.create(key("more", "fresh"), config_map("more", namespace="fresh"))
    put_back(folder / PLACES[0])
    assert state(store) == [*AFTER[:4], ("fresh", "more", "1"), AFTER[4]]
    assert file_of(folder, "new").exists()
    with store.transaction():
        pass
    store.close()


@pytest.mark.parametrize(
    "put",
    [lambda path: path.symlink_to("/nowhere"), lambda path: path.write_text("")],
    ids=["a link", "a file"],
)
def test_obstacle_before_managers_stops_only_writes_beside_it(
    store: FolderStore, folder: Path, put: Callable[[Path], None]
) -> None:
    managed = folder / "namespaces/default/configmaps/.managed"
    put(managed)
    assert [str(problem) for problem in store.problems()] == [
        "namespaces/default/configmaps/.managed: is not a folder"
    ]
    applied = [{"manager": "kubectl", "operation": "Apply"}]
    with pytest.raises(FolderError, match="managed: is "), store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2", managedFields=applied))
    with store.transaction() as transaction:
        transaction.update(
            key("c", "other"), config_map("c", "2", namespace="other", managedFields=applied)
        )
    assert [obj["data"]["a"] for obj in store.list("configmaps").objects] == ["1", "1", "2"]
    managed.unlink()


def test_pending_commit_with_managers_waits_for_their_folder(folder: Path) -> None:
    die_after_recording(folder)
    managed = folder / "namespaces/default/configmaps/.managed"
    shutil.rmtree(managed)
    managed.symlink_to("/nowhere")
    store = FolderStore(folder)
    assert state(store) == AFTER
    with store.transaction() as transaction:
        transaction.create(key("more", "fresh"), config_map("more", namespace="fresh"))
    managed.unlink()
    with store.transaction():
        pass
    assert (managed / "new.yaml").exists()
    store.close()


def test_folder_named_like_temporary_file_stops_only_writes_beside_it(
    store: FolderStore, folder: Path
) -> None:
    temporary = folder / f"namespaces/default/configmaps/.kubepy-{store.revision + 1}.tmp"
    temporary.mkdir()
    with (
        pytest.raises(FolderError, match=r"\.kubepy-\d+\.tmp|cannot be written"),
        store.transaction() as transaction,
    ):
        transaction.update(key("a"), config_map("a", "2"))
    with store.transaction() as transaction:
        transaction.update(key("c", "other"), config_map("c", "2", namespace="other"))
    assert (store.check(), store.repair()) == ([], [])
    temporary.rmdir()
