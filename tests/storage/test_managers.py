"""An object and its file of managers are committed together; bad managers cost the managers, never
the object."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kubepy.storage.folder.store import FolderStore
from tests.stores import changes, disagreements

from .conftest import config_map, create, file_of, key, names

APPLIED = [{"manager": "kubectl", "operation": "Apply"}]
CHANGED = [{"manager": "other", "operation": "Apply"}]


def managers_file(folder: Path, name: str = "a") -> Path:
    return folder / f"namespaces/default/configmaps/.managed/{name}.yaml"


def managers(store: FolderStore) -> Any:
    obj = store.get(key("a"))
    assert obj is not None
    return obj["metadata"].get("managedFields")


def clone(folder: Path) -> FolderStore:
    copy = folder.parent / "clone"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".kubepy"))
    return FolderStore(copy)


BAD = {
    "cut": b"managedFields:\n- manager: k\n  oper",
    "not-yaml": b"{",
    "empty": b"",
    "no-list": b"managedFields: 5\n",
    "entries-of-other-types": b"managedFields:\n- manager: 5\n",
    "no-entries": b"managedFields:\n- text\n",
    "time-that-is-none": b"managedFields:\n- {manager: a, time: yesterday}\n",
    "time-out-of-range": b"managedFields:\n- {manager: a, time: '2026-13-99T00:00:00Z'}\n",
    "other-object": b"a: b\n",
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_bad_file_of_managers_leaves_object_alone(folder: Path, content: bytes) -> None:
    store = FolderStore(folder)
    create(store, config_map("a", uid="1", managedFields=APPLIED), config_map("b"))
    managers_file(folder).write_bytes(content)
    listed = store.list("configmaps")
    assert (names(listed.objects), listed.problems) == (["a", "b"], ())
    assert managers(store) == APPLIED
    assert [line.partition(":")[0] for line in store.check()] == [
        "namespaces/default/configmaps/.managed/a.yaml"
    ]
    cloned = clone(folder)
    assert (names(cloned.list("configmaps").objects), managers(cloned)) == (["a", "b"], None)
    cloned.close()
    managers_file(folder).unlink()
    assert names(store.list("configmaps").objects) == ["a", "b"]
    assert store.repair() == [
        "namespaces/default/configmaps/.managed/a.yaml: made anew from the index"
    ]
    assert managers(clone(folder)) == APPLIED
    store.close()


def test_changed_file_of_managers_alone_is_edit(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a", uid="1", managedFields=APPLIED))
    path = managers_file(folder)
    path.write_text(path.read_text().replace("kubectl", "other"))
    assert managers(store) == CHANGED
    assert [(change.type, change.key.name) for change in changes(store, 1)] == [("MODIFIED", "a")]


def test_link_in_place_of_managers_loses_only_managers(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a", uid="1", managedFields=APPLIED))
    managers_file(folder).unlink()
    os.symlink("/etc/passwd", managers_file(folder))
    assert names(store.list("configmaps").objects) == ["a"]
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2", uid="1", managedFields=CHANGED))
    assert not managers_file(folder).is_symlink()
    assert managers(clone(folder)) == CHANGED


def test_folder_in_place_of_managers_loses_only_managers(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a", uid="1", managedFields=APPLIED))
    managers_file(folder).unlink()
    managers_file(folder).mkdir()
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2", uid="1", managedFields=CHANGED))
    create(store, config_map("b"))
    assert (names(store.list("configmaps").objects), managers(store)) == (["a", "b"], CHANGED)
    path = "namespaces/default/configmaps/.managed/a.yaml"
    assert disagreements(store) == [
        f"{path}: is missing: the managers of its object are in the index alone"
    ]
    assert store.repair() == [f"{path}: is a folder, left as it is: remove it"]
    managers_file(folder).rmdir()
    assert store.repair() == [f"{path}: made anew from the index"]
    assert managers(clone(folder)) == CHANGED
    managers_file(folder).unlink()
    managers_file(folder).mkdir()
    file_of(folder, "a").unlink()
    assert names(store.list("configmaps").objects) == ["b"]


def test_removed_object_loses_its_file_of_managers(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a", uid="1", managedFields=APPLIED), config_map("b"))
    file_of(folder, "a").unlink()
    assert names(store.list("configmaps").objects) == ["b"]
    assert not managers_file(folder).parent.exists()


def test_managers_without_object_are_reported_and_repaired(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a"))
    managers_file(folder, "gone").parent.mkdir()
    managers_file(folder, "gone").write_text("managedFields: []\n")
    assert disagreements(store) == [
        "namespaces/default/configmaps/.managed/gone.yaml: belongs to no object"
    ]
    assert store.repair() == [
        "namespaces/default/configmaps/.managed/gone.yaml: belongs to no object, removed"
    ]
    assert disagreements(store) == []
