"""Sums of files: a folder whose sum is that of its rows has no difference that comparing each file
would find."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from kubepy.storage import ConflictError, FolderError
from kubepy.storage.folder import scan as scanning
from kubepy.storage.folder.access import Access
from kubepy.storage.folder.compare import KnownState, compare
from kubepy.storage.folder.database import Place
from kubepy.storage.folder.scan import (
    EVERYTHING,
    find_unchanged,
    leave_out,
    read_summaries,
    scan_extents,
)
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.yaml import dump
from tests.storage.conftest import Object, config_map, create, file_of, key
from tests.storage.test_observed_edits import write
from tests.stores import changes, disagreements, transaction_of

MANAGERS = [
    {
        "manager": "me",
        "operation": "Apply",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
    }
]


def access_of(store: FolderStore) -> Access:
    return store._access


def differing(store: FolderStore, *, with_sums: bool) -> set[str]:
    """Return the paths of the files that differ from their rows."""
    access = access_of(store)
    database = access.database()
    scan = scan_extents(access.folder, EVERYTHING)
    unchanged: frozenset[Place] = find_unchanged(database, scan) if with_sums else frozenset()
    rows = read_summaries(database, access.folder, EVERYTHING, unchanged)
    rows, scan = leave_out(unchanged, rows, scan)
    known = KnownState(database.problems(), same_boot=True)
    return {difference.path for difference in compare(rows, scan, access.folder, known)}


def known_sums(store: FolderStore) -> set[Place]:
    database = access_of(store).database()
    return set(database.sums(database.places()))


def test_commits_keep_sums(store: FolderStore) -> None:
    create(
        store,
        config_map("a"),
        config_map("b", managedFields=MANAGERS),
        config_map("c", namespace="other"),
    )
    places = {("configmaps", "default"), ("configmaps", "other")}
    assert known_sums(store) == places
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2", managedFields=MANAGERS))
        transaction.update(key("b"), config_map("b", "2"))
        transaction.delete(key("c", "other"))
        transaction.create(key("d"), config_map("d"))
    assert known_sums(store) == places
    assert differing(store, with_sums=True) == set()
    assert disagreements(store) == []


def test_nothing_is_read_of_folders_whose_sum_is_right(
    store: FolderStore, open_store: Callable[..., FolderStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    create(store, config_map("a"), config_map("c", namespace="other"))
    other = open_store()
    monkeypatch.setattr(scanning, "read_summaries", None)
    monkeypatch.setattr("kubepy.storage.folder.database.Database.row_summaries", None)
    assert changes(other, 2) == []
    with transaction_of(other, refresh=True):
        pass


def test_recorded_edit_is_in_sum_after_next_look(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    write(folder, "a", "2")
    os.utime(file_of(folder, "a"), (1, 1))
    assert len(changes(store, 1)) == 1
    changes(store, 2)
    assert known_sums(store) == {("configmaps", "default")}
    assert disagreements(store) == []


def test_sums_do_not_count_after_write_by_version_that_keeps_none(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a"))
    with sqlite3.connect(folder / ".kubepy/index.db") as connection:
        connection.execute("UPDATE counters SET value = 2 WHERE name = 'revision'")
    connection.close()
    assert known_sums(store) == set()
    create(store, config_map("b"))
    assert known_sums(store) == set()
    changes(store, 3)
    assert known_sums(store) == {("configmaps", "default")}


def test_copy_has_sums_after_first_look(store: FolderStore, tmp_path: Path) -> None:
    create(store, config_map("a"))
    store.copy_to(str(tmp_path / "copy"))
    copy = FolderStore(tmp_path / "copy")
    assert known_sums(copy) == set()
    assert changes(copy, 1) == []
    assert known_sums(copy) == {("configmaps", "default")}
    assert copy.check() == []
    copy.close()


def test_list_of_folder_with_right_sum_lacks_no_object_that_index_lost(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a"), config_map("b"))
    with sqlite3.connect(folder / ".kubepy/index.db") as connection:
        connection.execute("DELETE FROM objects WHERE name = 'a'")
    connection.close()
    assert [obj["metadata"]["name"] for obj in store.list("configmaps").objects] == ["a", "b"]
    store.repair()


# --- generated ------------------------------------------------------------------------------------


def in_place(path: Path, number: int) -> None:
    """Write another number of the same length into a file, and set its time back."""
    before = path.stat()
    text = path.read_text()
    with path.open("r+") as file:
        file.write(text.replace("'1", "'2") if "'1" in text else text.replace("'2", "'1"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def restore(path: Path, number: int) -> None:
    """Remove a file and bring it back as it was, as ``cp -a`` and a backup do."""
    backup = path.with_name(".backup")
    shutil.copy2(path, backup)
    path.unlink()
    backup.rename(path)


def swap(path: Path, number: int) -> None:
    """Let two files change places."""
    others = [other for other in sorted(path.parent.glob("*.yaml")) if other != path]
    if others:
        path.rename(path.with_name(".swapped"))
        others[0].rename(path)
        path.with_name(".swapped").rename(others[0])


def hard_link(path: Path, number: int) -> None:
    """Edit a file through another name of it."""
    link = path.parent.parent.parent / f"link-{number}"
    os.link(path, link)
    with link.open("a") as file:
        file.write("# edited\n")
    link.unlink()


def managers(path: Path, number: int) -> None:
    (path.parent / ".managed").mkdir(exist_ok=True)
    (path.parent / ".managed" / path.name).write_text(
        dump({"managedFields": MANAGERS * (number % 2 + 1)})
    )


def move_folder(path: Path, number: int) -> None:
    """Replace a folder by a copy of it."""
    shutil.copytree(path.parent, path.parent.parent / ".copy")
    shutil.rmtree(path.parent)
    (path.parent.parent / ".copy").rename(path.parent)


EDITS: list[Callable[[Path, int], object]] = [
    lambda path, number: write(
        path.parents[3], path.stem, str(100 + number), path.parent.parent.name
    ),
    in_place,
    restore,
    swap,
    hard_link,
    managers,
    move_folder,
    lambda path, number: path.unlink(),
    lambda path, number: path.write_text("{"),
    lambda path, number: os.utime(path),
    lambda path, number: path.chmod(0o600),
    lambda path, number: shutil.rmtree(path.parent),
    lambda path, number: shutil.rmtree(path.parent.parent),
    lambda path, number: path.with_name(f"new-{number}.yaml").write_text(
        dump(config_map(f"new-{number}", "1", path.parent.parent.name))
    ),
]


def commit(store: FolderStore, chance: Random, number: int) -> None:
    with (
        suppress(ConflictError, FolderError),
        transaction_of(store, refresh=chance.random() < 0.5) as transaction,
    ):
        for name in chance.sample("abcd", chance.randint(1, 3)):
            place = key(name, chance.choice(("default", "other")))
            fields: Object = {"managedFields": MANAGERS} if chance.random() < 0.3 else {}
            obj = config_map(name, str(100 + number), place.namespace, **fields)
            if transaction.get(place) is None:
                transaction.create(place, obj)
            elif chance.random() < 0.3:
                transaction.delete(place)
            else:
                transaction.update(place, obj)


@pytest.mark.parametrize("seed", range(16))
def test_sums_find_what_comparing_all_files_finds(
    open_store: Callable[..., FolderStore], folder: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("kubepy.storage.folder.compare.EDIT_NS", 0)  # nobody is still writing
    monkeypatch.setattr("kubepy.storage.folder.compare.REMOVAL_NS", 0)
    chance = Random(seed)
    stores = [open_store(), open_store()]
    matched = 0
    for number in range(25):
        store = chance.choice(stores)
        commit(store, chance, number)
        for _ in range(chance.choice((0, 0, 1, 2))):
            files = sorted((folder / "namespaces").glob("*/configmaps/*.yaml"))
            if files:
                chance.choice(EDITS)(chance.choice(files), number)
        assert differing(store, with_sums=True) == differing(store, with_sums=False)
        matched += bool(known_sums(store))
        if chance.random() < 0.6:
            changes(chance.choice(stores), store.revision)
    assert matched > 10
    stores[0].repair()  # files of managers that were edited without their objects
