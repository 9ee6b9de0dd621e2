"""The contents of volumes: small values in every store, files in a state folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubepy.storage import FolderError
from kubepy.storage.folder import copying
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.memory import MemoryStore
from kubepy.storage.store import Store

NAME = "volume/pv-1"
ROOT: dict[str, Any] = {
    "k": "d",
    "m": 0o2777,
    "c": {
        "index.html": {"s": "hello\n", "t": "2026-01-01T00:00:05.000000Z"},
        "sub": {"k": "d", "c": {"run.sh": {"m": 0o755, "s": "#!/bin/sh\n", "u": [1000, 2000]}}},
        "empty": {"k": "d"},
        "nothing": {},
        "raw": {"b": "AP8="},
        "out": {"k": "l", "l": "/etc/passwd"},
    },
}


def tree_of(children: dict[str, Any] | None = None, version: int = 7) -> dict[str, Any]:
    root = ROOT if children is None else {"k": "d", "m": 0o777, "c": children}
    return {"root": root, "version": version, "limit": 1000}


def text_of(tree: Any) -> str:
    return json.dumps(tree)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    FolderStore.initialize(tmp_path / "state", {})
    return tmp_path / "state"


@pytest.fixture
def store(folder: Path) -> Iterator[FolderStore]:
    store = FolderStore(folder)
    yield store
    store.close()


def saved(store: Store, tree: Any, name: str = NAME) -> None:
    store.set_values({name: text_of(tree)})


def loaded(store: Store, name: str = NAME) -> Any:
    text = store.meta(name)
    return None if text is None else json.loads(text)


def files_of(folder: Path) -> list[str]:
    base = folder / "volumes"
    return sorted(str(path.relative_to(base)) for path in base.rglob("*") if path.is_file())


# --- every store ----------------------------------------------------------------------------------


@pytest.fixture(params=["folder", "memory"])
def any_store(request: pytest.FixtureRequest, folder: Path) -> Iterator[Store]:
    store: Store = FolderStore(folder) if request.param == "folder" else MemoryStore({})
    yield store
    store.close()


def test_content_of_volume_comes_back_as_it_was(any_store: Store) -> None:
    assert loaded(any_store) is None
    saved(any_store, tree_of())
    assert loaded(any_store) == tree_of()
    any_store.set_values({NAME: None})
    assert loaded(any_store) is None


def test_content_of_volume_is_part_of_a_transaction(any_store: Store) -> None:
    with any_store.transaction():
        saved(any_store, tree_of())
        assert loaded(any_store) == tree_of()
    assert loaded(any_store) == tree_of()

    def fail() -> None:
        with any_store.transaction():
            any_store.set_values({NAME: None})
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert loaded(any_store) == tree_of()


def test_state_of_a_store_has_the_contents_of_volumes(any_store: Store) -> None:
    saved(any_store, tree_of())
    state = any_store.state()
    assert json.loads(state.all_meta()[NAME] or "") == tree_of()
    fork = MemoryStore(state)
    saved(fork, tree_of({}))
    assert loaded(fork) == tree_of({})
    assert loaded(any_store) == tree_of()
    state.close()


def test_copy_in_a_folder_has_the_contents_of_volumes(any_store: Store, tmp_path: Path) -> None:
    saved(any_store, tree_of())
    copying.write_state(any_store.state(), str(tmp_path / "copy"))
    copy = FolderStore(tmp_path / "copy")
    assert loaded(copy) == tree_of()
    assert (tmp_path / "copy/volumes/pv-1/files/index.html").read_text() == "hello\n"
    copy.close()


def test_copied_folder_has_the_contents_of_volumes(store: FolderStore, tmp_path: Path) -> None:
    saved(store, tree_of())
    store.copy_to(str(tmp_path / "copy"))
    copy = FolderStore(tmp_path / "copy")
    assert loaded(copy) == tree_of()
    copy.close()


# --- files ----------------------------------------------------------------------------------------


def test_files_of_volume_are_files_that_can_be_read(store: FolderStore, folder: Path) -> None:
    saved(store, tree_of())
    assert files_of(folder) == [
        "pv-1/files/index.html",
        "pv-1/files/nothing",
        "pv-1/files/raw",
        "pv-1/files/sub/run.sh",
        "pv-1/volume.json",
    ]
    files = folder / "volumes/pv-1/files"
    assert (files / "raw").read_bytes() == b"\x00\xff"
    assert not os.path.lexists(files / "out")


def test_unchanged_files_are_not_written_again(store: FolderStore, folder: Path) -> None:
    saved(store, tree_of())
    file = folder / "volumes/pv-1/files/index.html"
    inode = file.stat().st_ino
    saved(store, tree_of(version=8))
    assert file.stat().st_ino == inode
    assert loaded(store)["version"] == 8


def test_removed_entries_leave_no_file_behind(store: FolderStore, folder: Path) -> None:
    saved(store, tree_of())
    saved(store, tree_of({"sub": {"s": "a file now"}, "raw": {"k": "d", "c": {"x": {"s": "x"}}}}))
    assert files_of(folder) == ["pv-1/files/raw/x", "pv-1/files/sub", "pv-1/volume.json"]
    store.set_values({NAME: None})
    assert not (folder / "volumes").exists()


def test_edited_files_count_and_change_the_version(store: FolderStore, folder: Path) -> None:
    saved(store, tree_of())
    files = folder / "volumes/pv-1/files"
    (files / "index.html").write_text("edited\n")
    (files / "sub/new").write_text("new\n")
    (files / "raw").unlink()
    tree = loaded(store)
    children = tree["root"]["c"]
    assert children["index.html"]["s"] == "edited\n"
    assert children["sub"]["c"]["new"] == {"s": "new\n"}
    assert "raw" not in children
    assert tree["version"] > 7


def test_files_without_description_are_a_volume(store: FolderStore, folder: Path) -> None:
    files = folder / "volumes/pv-1/files"
    files.mkdir(parents=True)
    (files / "index.html").write_text("by hand\n")
    assert loaded(store)["root"] == {
        "k": "d",
        "m": 0o777,
        "c": {"index.html": {"s": "by hand\n"}},
    }


def test_older_files_that_come_back_are_the_content(store: FolderStore, folder: Path) -> None:
    saved(store, tree_of())
    (folder / "volumes").rename(folder / "aside")
    assert loaded(store) is None
    saved(store, tree_of({"other": {"s": "other"}}))
    for path in (folder / "volumes").rglob("*"):
        if path.is_file():
            path.unlink()
    for path in (folder / "aside").rglob("*"):
        if path.is_file():
            target = folder / "volumes" / path.relative_to(folder / "aside")
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
    assert loaded(store) == tree_of()


@pytest.mark.parametrize("name", [
    "..", ".", ".git", ".GITIGNORE", ".kubepy", ".kubepy-1.tmp", "con", "Aux.txt", "dot.", " space",
    "new\nline", "tab\t", "back\\slash", "colon:", "é", "\udcff", "a" * 250, "star*", "",
    ".managed",
])  # fmt: skip
def test_name_that_no_disk_takes_is_kept_in_the_description(
    store: FolderStore, folder: Path, name: str
) -> None:
    children = {name or "-": {"s": "kept"}, "dir": {"k": "d", "c": {name or "-": {"s": "kept"}}}}
    saved(store, tree_of(children))
    assert loaded(store) == tree_of(children)
    expected = ["pv-1/volume.json"]
    if not name:
        expected = ["pv-1/files/-", "pv-1/files/dir/-", *expected]
    assert files_of(folder) == expected


def test_names_that_differ_by_case_alone_are_not_both_files(
    store: FolderStore, folder: Path
) -> None:
    children = {"README": {"s": "A"}, "readme": {"s": "b"}}
    saved(store, tree_of(children))
    assert loaded(store) == tree_of(children)
    assert files_of(folder) == ["pv-1/files/README", "pv-1/volume.json"]


def test_volume_with_a_long_name_is_found_by_it(store: FolderStore, folder: Path) -> None:
    name = "volume/" + "a" * 250
    saved(store, tree_of(), name)
    assert loaded(store, name) == tree_of()
    state = store.state()
    assert name in state.all_meta()
    state.close()


# --- what must not happen -------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["volumes", "volumes/pv-1", "volumes/pv-1/files"])
def test_link_in_place_of_a_folder_is_never_followed(
    store: FolderStore, folder: Path, tmp_path: Path, link: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    place = folder / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside)
    assert "secret" not in (store.meta(NAME) or "")
    with pytest.raises(FolderError, match="is a symbolic link"):
        saved(store, tree_of())
    assert [path.name for path in outside.iterdir()] == ["secret"]
    store.set_values({NAME: None})
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_link_in_place_of_a_file_is_neither_read_nor_written(
    store: FolderStore, folder: Path, tmp_path: Path
) -> None:
    saved(store, tree_of())
    outside = tmp_path / "outside"
    outside.write_text("secret")
    file = folder / "volumes/pv-1/files/index.html"
    file.unlink()
    file.symlink_to(outside)
    assert "index.html" not in loaded(store)["root"]["c"]
    saved(store, tree_of())
    assert outside.read_text() == "secret"
    assert file.read_text() == "hello\n"
    assert not file.is_symlink()


def test_description_with_paths_of_elsewhere_leads_nowhere(
    store: FolderStore, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text("secret")
    saved(store, tree_of({}))
    path = folder / "volumes/pv-1/volume.json"
    description = json.loads(path.read_text())
    for name in ("../../../../outside", "/etc/hostname"):
        description["entries"][name] = {"sum": 1}
    path.write_text(json.dumps(description))
    assert "secret" not in (store.meta(NAME) or "")
    saved(store, loaded(store))
    assert (tmp_path / "outside").read_text() == "secret"


@pytest.mark.parametrize("text", ["{", "[]", '{"entries": 1}', "\xff"])
def test_description_that_cannot_be_read_is_an_error_that_names_it(
    store: FolderStore, folder: Path, text: str
) -> None:
    saved(store, tree_of())
    (folder / "volumes/pv-1/volume.json").write_text(text, encoding="latin-1")
    with pytest.raises(FolderError, match=r"volumes/pv-1/volume\.json: "):
        store.meta(NAME)
    assert [line for line in store.check() if line.startswith("volumes/pv-1/volume.json: ")]


def test_folder_of_volumes_is_no_object_and_no_problem(store: FolderStore, folder: Path) -> None:
    children = {"pod.yaml": {"s": "kind: Pod\n"}, "cluster": {"k": "d", "c": {"a.yaml": {}}}}
    saved(store, tree_of(children))
    store.look()
    assert store.problems() == []
    assert store.other_files() == ([], [])
    assert store.check() == []
