"""Looking for edits of a few objects: what shows in the times of folders is seen everywhere, and no
folder is listed again in which nothing has happened."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from kubepy.storage import Key
from kubepy.storage.folder import reader
from kubepy.storage.folder.files import TICK_NS
from kubepy.storage.folder.scan import Extents
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.yaml import dump
from tests.storage.conftest import config_map, create, file_of, key
from tests.storage.test_observed_edits import write
from tests.stores import changes, transaction_of

A = key("a")


def grow_old() -> None:
    """Wait until the times of folders are old enough to be told from those of another change."""
    time.sleep(2.5 * TICK_NS / 1e9)


@pytest.fixture
def looks(store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> list[Extents]:
    """The extents that are listed, in a folder that was looked through."""
    create(store, config_map("a"), config_map("b"), config_map("c", namespace="other"))
    create(store, {"metadata": {"name": "node-1"}}, resource="nodes")
    grow_old()
    changes(store, 4, reads=[A])
    listed: list[Extents] = []
    real = reader.scan_extents

    def scan(folder: object, extents: Extents) -> object:
        listed.append(extents)
        return real(folder, extents)  # type: ignore[arg-type]

    monkeypatch.setattr(reader, "scan_extents", scan)
    return listed


def test_nothing_is_listed_where_nothing_has_happened(
    store: FolderStore, looks: list[Extents]
) -> None:
    assert changes(store, 4, reads=[A]) == []
    assert looks == [(A,)]


def test_own_write_lets_its_folder_be_listed_once(
    open_store: Callable[..., FolderStore], looks: list[Extents]
) -> None:
    store = open_store()
    create(store, config_map("d"))
    grow_old()
    for _ in range(2):
        changes(store, 5, reads=[])
    assert looks == [[("configmaps", "default", None)]]


def test_young_folder_is_listed_until_it_is_old(store: FolderStore, looks: list[Extents]) -> None:
    create(store, config_map("d"))
    assert changes(store, 5, reads=[]) == changes(store, 5, reads=[]) == []
    assert len(looks) == 2


def link_elsewhere(folder: Path) -> None:
    directory = folder / "namespaces/other/configmaps"
    shutil.move(directory, folder.parent / "elsewhere")
    directory.symlink_to(folder.parent / "elsewhere")


EDITS: dict[str, Callable[[Path], object]] = {
    "renamed into place": lambda folder: write(folder, "b", "2"),
    "times of another file": lambda folder: (
        write(folder, "b", "2"),
        shutil.copystat(file_of(folder, "a"), file_of(folder, "b")),
    ),
    "removed": lambda folder: file_of(folder, "b").unlink(),
    "added": lambda folder: write(folder, "d", "2"),
    "new namespace": lambda folder: write(folder, "d", "2", "new"),
    "new resource": lambda folder: (
        (folder / "cluster/things").mkdir(),
        (folder / "cluster/things/d.yaml").write_text(dump({"metadata": {"name": "d"}})),
    ),
    "namespace gone": lambda folder: shutil.rmtree(folder / "namespaces/other"),
    "folder gone": lambda folder: shutil.rmtree(folder / "namespaces/other/configmaps"),
    "folder replaced": lambda folder: (
        shutil.copytree(folder / "namespaces/other", folder / "namespaces/copy"),
        shutil.rmtree(folder / "namespaces/other"),
        (folder / "namespaces/copy/configmaps/e.yaml").write_text(
            dump(config_map("e", namespace="other"))
        ),
        os.rename(folder / "namespaces/copy", folder / "namespaces/other"),
    ),
    "time of folder set back": lambda folder: (
        stat := file_of(folder, "b").parent.stat(),
        write(folder, "b", "2"),
        os.utime(file_of(folder, "b").parent, ns=(stat.st_atime_ns, stat.st_mtime_ns)),
    ),
    "managers added": lambda folder: (
        (file_of(folder, "b").parent / ".managed").mkdir(),
        (file_of(folder, "b").parent / ".managed/b.yaml").write_text(
            "managedFields: [{manager: me}]\n"
        ),
    ),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.usefixtures("looks")
def test_edit_that_changes_time_of_folder_is_seen_without_reading_its_object(
    open_store: Callable[..., FolderStore], folder: Path, edit: str
) -> None:
    mine = open_store()
    EDITS[edit](folder)
    changed = [change.key.name for change in changes(mine, 4, reads=[A])]
    assert changed == {
        "added": ["d"],
        "new namespace": ["d"],
        "new resource": ["d"],
        "namespace gone": ["c"],
        "folder gone": ["c"],
        "folder replaced": ["e"],
    }.get(edit, ["b"])


@pytest.mark.usefixtures("looks")
def test_link_in_place_of_folder_is_reported_by_next_read(
    open_store: Callable[..., FolderStore], folder: Path
) -> None:
    mine = open_store()
    link_elsewhere(folder)
    changes(mine, 4, reads=[A])
    with transaction_of(mine, refresh=True):
        pass
    assert [problem.reason for problem in mine.list("configmaps").problems] == [
        "is a symbolic link"
    ]
    (folder / "namespaces/other/configmaps").unlink()
    shutil.move(folder.parent / "elsewhere", folder / "namespaces/other/configmaps")
    changes(mine, 4, reads=[A])
    assert mine.list("configmaps").problems == ()


def test_edit_in_place_is_seen_where_its_object_is_read(
    store: FolderStore, folder: Path, looks: list[Extents]
) -> None:
    path = file_of(folder, "b")
    path.write_text(path.read_text().replace('"1"', '"2"'))
    assert changes(store, 4, reads=[A]) == []
    assert [change.key for change in changes(store, 4, reads=[key("b")])] == [key("b")]
    path.write_text(path.read_text().replace('"2"', '"3"'))
    assert changes(store, 5, reads=[A]) == []
    assert [change.key for change in changes(store, 5)] == [key("b")]


def test_folders_are_looked_through_again_in_rebuilt_index(
    open_store: Callable[..., FolderStore], folder: Path, looks: list[Extents]
) -> None:
    shutil.rmtree(folder / ".kubepy")
    store = open_store()
    changes(store, store.revision, reads=[])
    assert looks[0] == ((None, None, None),)


@pytest.mark.parametrize("seed", range(10))
def test_follower_that_looks_for_few_objects_sees_all_but_edits_in_place(
    open_store: Callable[..., FolderStore], folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("kubepy.storage.folder.compare.EDIT_NS", 0)  # nobody is still writing
    monkeypatch.setattr("kubepy.storage.folder.compare.REMOVAL_NS", 0)
    chance = Random(seed)
    mine, other = open_store(), open_store()
    files: dict[Key, str] = {}
    revision = 0
    seen: dict[Key, str] = {}
    for number in range(40):
        place = key(chance.choice("ab"), chance.choice(("default", "other")))
        match chance.choice(["write", "remove", "commit", "wait", "move"]):
            case "write":
                write(folder, place.name, str(number), place.namespace)
                files[place] = str(number)
            case "remove" if place in files:
                file_of(folder, place.name, place.namespace).unlink()
                del files[place]
            case "commit":
                with other.transaction() as transaction:
                    obj = config_map(place.name, str(number), place.namespace)
                    (transaction.update if place in files else transaction.create)(place, obj)
                files[place] = str(number)
            case "wait":
                time.sleep(chance.random() * 0.05)
            case "move" if (
                any(each.namespace == "other" for each in files)
                and (folder / "namespaces/other").exists()
            ):
                shutil.rmtree(folder / "namespaces/third", ignore_errors=True)
                os.rename(folder / "namespaces/other", folder / "namespaces/third")
                files = {
                    each: value for each, value in files.items() if each.namespace == "default"
                }
        for change in changes(mine, revision, reads=()):
            revision = change.revision
            if change.type == "DELETED":
                seen.pop(change.key, None)
            elif change.key.namespace != "third":
                seen[change.key] = change.object["data"]["a"]
        assert seen == files
    shutil.rmtree(folder / "namespaces/third", ignore_errors=True)
    (folder / "namespaces").mkdir(exist_ok=True)
