"""Restarts of the machine: the files are the truth, and only effects of a power cut are undone."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from kubepy.api.meta import Object
from kubepy.storage.folder import commit_files, index, renames
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.yaml import dump

from .conftest import config_map, create, file_of, key, names

Boot = Callable[[str], None]


@pytest.fixture
def boot(monkeypatch: pytest.MonkeyPatch) -> Boot:
    return lambda name: monkeypatch.setattr(index, "boot_id", lambda: name)


def write(folder: Path, *values: str, names: tuple[str, ...] = ("a",), sync: bool = True) -> None:
    """Commit values to objects one after the other, as a command that ends normally (or by a power
    cut: ``sync=False``)."""
    store = FolderStore(folder)
    for value in values:
        with store.transaction() as transaction:
            for name in names:
                if transaction.get(key(name)) is None:
                    transaction.create(key(name), config_map(name, value))
                else:
                    transaction.update(key(name), config_map(name, value))
    close(store, sync)


def delete(folder: Path, name: str, *, sync: bool = True) -> None:
    store = FolderStore(folder)
    with store.transaction() as transaction:
        transaction.delete(key(name))
    close(store, sync)


def close(store: FolderStore, sync: bool) -> None:
    if sync:
        store.close()
    else:
        with mock.patch.object(commit_files, "sync_written"):
            store.close()


def values(folder: Path) -> dict[str, str]:
    store = FolderStore(folder)
    listed = {obj["metadata"]["name"]: obj["data"]["a"] for obj in store.list("configmaps").objects}
    store.close()
    return listed


def bring_back(kept: Path, path: Path) -> None:
    """Put an older version of a file back, with its inode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.link(kept, path)


# --- changes of files between two starts stay ---


@pytest.mark.parametrize(
    ("edit", "kept"),
    [
        pytest.param(
            lambda path: os.truncate(path, path.stat().st_size // 2),
            [config_map("a", "2")],  # what is left has no metadata, and counts as it last was
            id="cut",
        ),
        pytest.param(
            lambda path: path.write_text("<<<<<<< ours\n" + path.read_text()),
            [],
            id="merge-markers",
        ),
        pytest.param(lambda path: path.write_bytes(bytes(100)), [], id="zeroes"),
        pytest.param(lambda path: path.write_text("data: {"), [], id="unfinished"),
    ],
)
def test_file_that_cannot_be_read_is_not_overwritten_after_restart(
    folder: Path, boot: Boot, edit: Callable[[Path], object], kept: list[Object]
) -> None:
    boot("first")
    write(folder, "1", "2")
    path = file_of(folder, "a")
    stat = path.stat()
    edit(path)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    content = path.read_bytes()
    boot("second")
    store = FolderStore(folder)
    listed = store.list("configmaps")
    assert [obj["data"] for obj in listed.objects] == [obj["data"] for obj in kept]
    assert len(listed.problems) == 1
    create(store, config_map("b"))
    assert path.read_bytes() == content
    path.unlink()
    store.close()


@pytest.mark.parametrize("sync", [True, False])
def test_cut_file_of_unsynced_commit_is_not_overwritten(
    folder: Path, boot: Boot, sync: bool
) -> None:
    boot("first")
    write(folder, "1", sync=sync)
    path = file_of(folder, "a")
    os.truncate(path, 30)
    boot("second")
    assert values(folder) == {"a": "1"}
    assert path.stat().st_size == 30
    path.unlink()


def test_removed_file_stays_removed_after_restart(folder: Path, boot: Boot) -> None:
    boot("first")
    write(folder, "1", names=("a", "b"))
    file_of(folder, "a").unlink()
    boot("second")
    assert values(folder) == {"b": "1"}
    shutil.rmtree(folder / "namespaces")
    boot("third")
    assert values(folder) == {}


@pytest.mark.parametrize("in_place", [True, False])
def test_older_version_copied_back_with_its_time_wins_after_restart(
    folder: Path, boot: Boot, in_place: bool
) -> None:
    boot("first")
    write(folder, "1")
    backup = folder.parent / "backup"
    shutil.copy2(file_of(folder, "a"), backup)
    write(folder, "2")
    if not in_place:  # tar and rsync set times like this
        file_of(folder, "a").unlink()
    shutil.copy2(backup, file_of(folder, "a"))
    boot("second")
    assert values(folder) == {"a": "1"}


# --- effects of a power cut are undone ---


@pytest.mark.parametrize("sync", [True, False])
def test_empty_file_is_restored_after_restart(folder: Path, boot: Boot, sync: bool) -> None:
    boot("first")
    write(folder, "1", sync=sync)
    file_of(folder, "a").write_bytes(b"")
    boot("second")
    assert values(folder) == {"a": "1"}
    assert file_of(folder, "a").read_text() == dump(config_map("a", "1"))


def test_empty_file_is_problem_as_long_as_machine_runs(folder: Path, boot: Boot) -> None:
    boot("first")
    write(folder, "1")
    file_of(folder, "a").write_bytes(b"")
    store = FolderStore(folder)
    assert [problem.reason for problem in store.list("configmaps").problems] == ["is empty"]
    store.close()
    file_of(folder, "a").unlink()


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_any_version_since_last_sync_that_comes_back_is_replaced(
    folder: Path, boot: Boot, version: str
) -> None:
    boot("first")
    kept = folder.parent / "kept"
    kept.mkdir()
    for value in ("1", "2", "3", "4"):
        write(folder, value, sync=value == "1")
        os.link(file_of(folder, "a"), kept / value)
    bring_back(kept / version, file_of(folder, "a"))
    boot("second")
    assert values(folder) == {"a": "4"}


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_any_version_of_deleted_object_that_comes_back_is_removed(
    folder: Path, boot: Boot, version: str
) -> None:
    boot("first")
    kept = folder.parent / "kept"
    kept.mkdir()
    for value in ("1", "2", "3"):
        write(folder, value, sync=value == "1")
        os.link(file_of(folder, "a"), kept / value)
    delete(folder, "a", sync=False)
    bring_back(kept / version, file_of(folder, "a"))
    boot("second")
    assert values(folder) == {}
    assert not file_of(folder, "a").exists()


def test_synced_deletion_whose_file_comes_back_is_done_again(folder: Path, boot: Boot) -> None:
    boot("first")
    write(folder, "1")
    kept = folder.parent / "kept"
    os.link(file_of(folder, "a"), kept)
    delete(folder, "a")
    boot("second")
    values(folder)
    bring_back(kept, file_of(folder, "a"))
    boot("third")
    assert values(folder) == {}
    assert not file_of(folder, "a").exists()


def test_new_file_in_place_of_deleted_one_is_object_after_restart(folder: Path, boot: Boot) -> None:
    boot("first")
    write(folder, "1")
    copy = folder.parent / "copy"
    shutil.copy2(file_of(folder, "a"), copy)
    os.link(
        file_of(folder, "a"), folder.parent / "kept"
    )  # keeps its inode from being given to the next file
    delete(folder, "a", sync=False)
    file_of(folder, "a").parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(copy, file_of(folder, "a"))  # another inode
    boot("second")
    assert values(folder) == {"a": "1"}


def test_empty_file_of_deleted_object_does_not_block_its_name(folder: Path, boot: Boot) -> None:
    boot("first")
    write(folder, "1")
    delete(folder, "a", sync=False)
    file_of(folder, "a").parent.mkdir(parents=True, exist_ok=True)
    file_of(folder, "a").write_bytes(b"")
    boot("second")
    write(folder, "2")
    assert values(folder) == {"a": "2"}


def test_object_created_again_survives_return_of_deleted_file(folder: Path, boot: Boot) -> None:
    boot("first")
    write(folder, "1")
    kept = folder.parent / "kept"
    os.link(file_of(folder, "a"), kept)
    delete(folder, "a", sync=False)
    write(folder, "2", sync=False)
    bring_back(kept, file_of(folder, "a"))
    boot("second")
    assert values(folder) == {"a": "2"}


def test_reader_that_cannot_take_lock_sees_same_after_restart(folder: Path, boot: Boot) -> None:
    from .test_outside_edits import locked_by_another

    boot("first")
    write(folder, "1", names=("a", "b", "c", "d"))
    kept = folder.parent / "kept"
    os.link(file_of(folder, "c"), kept)
    delete(folder, "c")
    write(folder, "2", names=("d",), sync=False)
    bring_back(kept, file_of(folder, "c"))
    file_of(folder, "b").write_bytes(b"")
    file_of(folder, "d").unlink()
    boot("second")
    with locked_by_another(folder):
        assert values(folder) == {"a": "1", "b": "1", "d": "2"}
    assert values(folder) == {"a": "1", "b": "1", "d": "2"}


# --- syncs: by whom, and when ---


def test_command_syncs_and_marks_its_files_before_it_ends(folder: Path) -> None:
    write(folder, "1", "2", names=("a", "b"))
    store = FolderStore(folder)
    database = store._access.database()
    assert (database.unsynced(), [row.replaces for row in database.rows()]) == ([], ["", ""])
    store.close()


def test_large_commit_is_synced_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubepy.storage.folder.files import StateFolder

    synced: list[str] = []
    fsync = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: (synced.append("file"), fsync(descriptor))[1]
    )
    sync_all = StateFolder.sync_all
    monkeypatch.setattr(
        StateFolder, "sync_all", lambda self: (synced.append("all"), sync_all(self))[1]
    )
    write(folder, "1", names=tuple(f"n{number}" for number in range(40)))
    assert synced[0] == "all"
    assert synced.count("file") < 10


def test_content_is_synced_before_commit_is_recorded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, rename = os.fsync, renames.renameat2
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: (events.append("sync"), fsync(descriptor))[1]
    )
    monkeypatch.setattr(
        renames, "renameat2", lambda *call: (events.append("rename"), rename(*call))[1]
    )
    record = commit_files.Journal._record
    monkeypatch.setattr(
        commit_files.Journal, "_record", lambda *args: (events.append("record"), record(*args))[1]
    )
    write(folder, "1")
    assert events[:3] == ["sync", "record", "rename"]
    assert set(events[3:]) == {"sync"}


def test_rebuilt_index_syncs_files_that_it_trusts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kubepy.storage.folder.files import StateFolder

    write(folder, "1", sync=False)
    shutil.rmtree(folder / ".kubepy")
    synced: list[str] = []
    monkeypatch.setattr(StateFolder, "sync_all", lambda self: synced.append("all"))
    assert values(folder) == {"a": "1"}
    assert synced


def test_many_writes_of_one_object_keep_few_versions(store: FolderStore) -> None:
    for number in range(100):
        with store.transaction() as transaction:
            if number:
                transaction.update(key("a"), config_map("a", str(number)))
            else:
                transaction.create(key("a"), config_map("a"))
    row = store._access.database().row(key("a"))
    assert row is not None
    assert len(row.replaces) <= 2 * commit_files.MAX_REPLACES
    assert names(store.list("configmaps").objects) == ["a"]


def test_store_of_folder_that_was_removed_closes(folder: Path) -> None:
    store = FolderStore(folder)
    create(store, config_map("a"))
    shutil.rmtree(folder)
    store.close()


def test_edit_with_time_before_restart_is_seen(folder: Path, boot: Boot) -> None:
    """Edit with a time before the commit (a clock that was wrong): it counts as an edit too."""
    boot("first")
    write(folder, "1")
    file_of(folder, "a").write_text(dump(config_map("a", "theirs")))
    os.utime(file_of(folder, "a"), (time.time() - 1e6,) * 2)
    boot("second")
    assert values(folder) == {"a": "theirs"}
