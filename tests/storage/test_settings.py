"""Settings in ``kubepy.yaml``, and files that keep a diff small."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from kubepy.storage import FolderError, NoClusterError
from kubepy.storage.folder.store import FolderStore
from tests.stores import disagreements

from .conftest import config_map, create, file_of, key


def test_initialize_makes_empty_cluster(tmp_path: Path) -> None:
    state = tmp_path / "deep/state"
    FolderStore.initialize(state, {"seed": 7})
    assert {path.name: path.read_text() for path in state.iterdir() if path.is_file()} == {
        "kubepy.yaml": "formatVersion: 1\nseed: 7\n",
        ".gitignore": "/.kubepy/\n",
    }
    store = FolderStore(state)
    assert store.settings() == {"formatVersion": 1, "seed": 7}
    assert disagreements(store) == []
    store.close()


def test_initialize_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine\n")
    FolderStore.initialize(tmp_path, {})
    with pytest.raises(FolderError, match="is a cluster already"):
        FolderStore.initialize(tmp_path, {"seed": 1})
    assert (tmp_path / ".gitignore").read_text() == "mine\n"
    assert (tmp_path / "kubepy.yaml").read_text() == "formatVersion: 1\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".gitignore",
        ".kubepy",
        "kubepy.yaml",
    ]


def test_initialize_of_unusable_folder_gives_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match=r"file/state: cannot be made a cluster: Not a directory"):
        FolderStore.initialize(tmp_path / "file/state", {})


def test_folder_without_cluster_has_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(NoClusterError, match="absent is not there"):
        FolderStore(tmp_path / "absent").settings()
    with (
        pytest.raises(NoClusterError, match=r"has no kubepy\.yaml"),
        FolderStore(tmp_path).transaction(),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "formatVersion: 2\n",
            r"kubepy\.yaml: the folder has format version 2; this kubepy knows 1",
        ),
        ("formatVersion: x\n", "formatVersion must be a positive number, not 'x'"),
        ("{}\n", 'formatVersion is missing: add "formatVersion: 1"'),
        ("a: b\n<<<<<<< x\n", r"kubepy\.yaml:2: has merge conflict markers"),
        ("", r"kubepy\.yaml: is empty"),
    ],
)
def test_settings_that_cannot_be_used_stop_everything(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "kubepy.yaml").write_text(text)
    store = FolderStore(tmp_path)
    for attempt in (
        store.settings,
        lambda: store.list("pods"),
        lambda: create(store, config_map("a")),
    ):
        with pytest.raises(FolderError, match=why):
            attempt()
    assert [path.name for path in tmp_path.iterdir()] == ["kubepy.yaml"]


def test_edited_settings_are_read_again(
    store: FolderStore, folder: Path, open_store: Callable[..., FolderStore]
) -> None:
    create(store, config_map("a"))
    assert open_store().settings() == {"formatVersion": 1}
    (folder / "kubepy.yaml").write_text("formatVersion: 1\nseed: 5\n")
    assert store.settings() == open_store().settings() == {"formatVersion": 1, "seed": 5}
    (folder / "kubepy.yaml").write_text("formatVersion: 1\nseed: 6\n")
    assert store.settings() == open_store().settings() == {"formatVersion": 1, "seed": 6}


# --- the files ---


def test_file_holds_object_without_resource_version_and_managers(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a", uid="1", managedFields=[{"manager": "x"}]))
    assert file_of(folder, "a").read_text() == (
        'apiVersion: v1\ndata:\n  a: "1"\nkind: ConfigMap\n'
        'metadata:\n  name: a\n  namespace: default\n  uid: "1"\n'
    )
    assert store.get(key("a"))["metadata"]["managedFields"] == [{"manager": "x"}]  # type: ignore[index]


def test_change_shows_as_line_that_changed(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a", labels={"x": "y"}))
    before = file_of(folder, "a").read_text().splitlines()
    with store.transaction() as transaction:
        transaction.update(key("a"), {**config_map("a", "2", labels={"x": "y"})})
    after = file_of(folder, "a").read_text().splitlines()
    assert [(old, new) for old, new in zip(before, after, strict=True) if old != new] == [
        ('  a: "1"', '  a: "2"')
    ]


def test_secrets_are_for_their_owner_alone(store: FolderStore, folder: Path) -> None:
    create(store, config_map("a"))
    create(
        store,
        {"kind": "Secret", "metadata": {"name": "a", "namespace": "default"}},
        resource="secrets",
    )
    assert stat.S_IMODE(file_of(folder, "a", resource="secrets").stat().st_mode) == 0o600
    assert stat.S_IMODE(file_of(folder, "a").stat().st_mode) == 0o644
