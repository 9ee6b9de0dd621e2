"""Commits survive the death of their process at any point, and the loss of power after any step."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kubepy.storage.folder import commit_files, index, renames
from kubepy.storage.folder.locks import Lock
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.yaml import dump
from tests.copies import copy_with_index
from tests.stores import changes, disagreements, timeline_of

from ..torture.deaths import KILLED, run_killed
from .conftest import config_map, create, file_of, key, names, record

APPLIED = [{"manager": "kubectl", "operation": "Apply"}]


# --- a process killed between any two operations ---


class Unsynced(sqlite3.Connection):
    """A connection without syncs: a killed process loses nothing the kernel has, and syncs would
    slow down its many deaths."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        return super().execute(
            "PRAGMA synchronous = OFF" if "synchronous" in sql else sql, *parameters
        )


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    real = sqlite3.connect

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = real(*arguments, **{"factory": Unsynced, **options})
        connection.execute("PRAGMA synchronous")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


SETTINGS = 'formatVersion: 1\nclock: "2026-01-01T00:00:00Z"  # ours\n'


def prepare(folder: Path) -> None:
    (folder / "kubepy.yaml").write_text(SETTINGS)
    store = FolderStore(folder)
    create(
        store,
        *(config_map(name) for name in ("kept", "changed", "deleted")),
        config_map("lone", namespace="gone"),
    )
    create(store, config_map("managed", managedFields=APPLIED))
    store.close()


def commit(folder: Path) -> None:
    store = FolderStore(folder)
    record(store)
    with store.transaction() as transaction:
        transaction.update(key("changed"), config_map("changed", "2"))
        transaction.delete(key("deleted"))
        transaction.delete(key("lone", "gone"))
        transaction.update(key("managed"), config_map("managed", "2"))
        transaction.create(key("new"), config_map("new", managedFields=APPLIED))
        transaction.create(key("new", "fresh"), config_map("new", namespace="fresh"))
        store.set_values({"done": "yes"})
        store.set_values(settings={"clock": "2026-01-02T00:00:00Z"})
    store.close()


def state(store: FolderStore) -> list[tuple[str, str, str]]:
    objects = store.list("configmaps").objects
    return [
        (obj["metadata"]["namespace"], obj["metadata"]["name"], obj["data"]["a"]) for obj in objects
    ]


BEFORE = [
    ("default", "changed", "1"),
    ("default", "deleted", "1"),
    ("default", "kept", "1"),
    ("default", "managed", "1"),
    ("gone", "lone", "1"),
]
AFTER = [
    ("default", "changed", "2"),
    ("default", "kept", "1"),
    ("default", "managed", "2"),
    ("default", "new", "1"),
    ("fresh", "new", "1"),
]


def sound_after(folder: Path, acknowledged: bool) -> list[tuple[str, str, str]]:
    """Check that a commit is all or nothing, to a reader without the lock and to everyone else;
    return the objects seen."""
    with locked_by_another(folder):
        reader = FolderStore(folder)
        seen = state(reader)
        clock = reader.settings()["clock"]
        reader.close()
    store = FolderStore(folder)
    assert state(store) == seen
    assert seen in (BEFORE, AFTER)
    assert seen == AFTER or not acknowledged
    assert (store.meta("done") == "yes") == (seen == AFTER)
    assert len(timeline_of(store)) == (6 if seen == AFTER else 0)
    day = "02" if seen == AFTER else "01"
    assert clock == store.settings()["clock"] == f"2026-01-{day}T00:00:00Z"
    assert (folder / "kubepy.yaml").read_text() == SETTINGS.replace("2026-01-01", f"2026-01-{day}")
    assert store.revision == (11 if seen == AFTER else 5)
    assert disagreements(store) == []
    store.close()
    rebuilt_as(folder, seen)
    return seen


def rebuilt_as(folder: Path, seen: list[tuple[str, str, str]]) -> None:
    """Check that an index rebuilt from the files holds the same objects."""
    copy = folder.parent / "copy"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".kubepy"))
    store = FolderStore(copy)
    assert state(store) == seen
    assert disagreements(store) == []
    new = store.get(key("new"))
    assert new is None or new["metadata"]["managedFields"] == APPLIED
    store.close()
    shutil.rmtree(copy)


@contextmanager
def locked_by_another(folder: Path) -> Iterator[None]:
    """Hold the lock without naming a holder, so that the name left by a dead holder stays."""
    lock = Lock(str(folder / ".kubepy" / "lock"))
    assert lock.try_acquire(1)
    try:
        yield
    finally:
        lock.drop()


def each_death(
    tmp_path: Path, start: Callable[[Path], None], work: Callable[[Path], None]
) -> Iterator[tuple[Path, bool]]:
    """Yield the folder after a death at every point of the work, and whether the work was
    acknowledged before."""
    origin = tmp_path / "origin"
    FolderStore.initialize(origin, {})
    start(origin)
    for point in range(1000):
        folder = tmp_path / f"state{point}"
        copy_with_index(origin, folder)
        os.utime(folder)
        warm(folder)
        death = run_killed(point, lambda folder=folder: work(folder))
        assert not death.error
        yield folder, death.done
        shutil.rmtree(folder)
        if not death.killed:
            return
    raise AssertionError("the work has no end")


def warm(folder: Path) -> None:
    """Let the index learn the inodes of a copied folder."""
    store = FolderStore(folder)
    store.list("configmaps")
    store.close()


@pytest.mark.usefixtures("unsynced")
def test_commit_whose_process_dies_is_all_or_nothing(tmp_path: Path) -> None:
    seen = [
        sound_after(folder, acknowledged)
        for folder, acknowledged in each_death(tmp_path, prepare, commit)
    ]
    assert seen[0] == BEFORE
    assert seen[-1] == AFTER
    assert seen == sorted(seen, key=lambda one: one == AFTER)
    assert len(seen) > 60


def die_after_recording(folder: Path) -> None:
    """Leave a commit that is recorded but has not reached a single file."""
    prepare(folder)

    def replaced(*_: object, **__: object) -> None:
        os._exit(KILLED)

    child = os.fork()
    if child == 0:
        with mock.patch.object(renames, "renameat2", replaced):
            commit(folder)
        os._exit(0)
    os.waitpid(child, 0)


def finish(folder: Path) -> None:
    store = FolderStore(folder)
    store.list("configmaps")
    store.close()


@pytest.mark.usefixtures("unsynced")
def test_recovery_that_dies_is_finished_by_next(tmp_path: Path) -> None:
    for point in range(1000):
        folder = tmp_path / f"state{point}"
        FolderStore.initialize(folder, {})
        die_after_recording(folder)
        death = run_killed(point, lambda folder=folder: finish(folder))
        assert not death.error
        assert sound_after(folder, True) == AFTER
        shutil.rmtree(folder)
        if not death.killed:
            assert point > 30
            return
    raise AssertionError("the work has no end")


def test_edit_of_pending_file_wins_over_dead_commit(folder: Path) -> None:
    die_after_recording(folder)
    file_of(folder, "changed").write_text(dump(config_map("changed", "theirs")))
    file_of(folder, "deleted").write_text(dump(config_map("deleted", "theirs")))
    store = FolderStore(folder)
    finished = {(namespace, name): value for namespace, name, value in state(store)}
    assert finished["default", "changed"] == "theirs"
    assert finished["default", "deleted"] == "theirs"
    assert finished["default", "new"] == "1"
    assert [(change.type, change.key.name) for change in changes(store, 11)] == [
        ("MODIFIED", "changed"),
        ("ADDED", "deleted"),
    ]
    store.close()


def test_unwritable_file_undoes_whole_transaction(folder: Path) -> None:
    prepare(folder)
    real, calls = os.write, []

    def full(descriptor: int, data: bytes) -> int:
        calls.append(descriptor)
        if len(calls) == 4:
            raise OSError(28, "No space left on device")
        return real(descriptor, data)

    from kubepy.storage import FolderError

    with (
        mock.patch.object(os, "write", full),
        pytest.raises(FolderError, match="No space left on device"),
    ):
        commit(folder)
    store = FolderStore(folder)
    assert state(store) == BEFORE
    assert disagreements(store) == []
    assert not (folder / "namespaces/fresh").exists()
    store.close()


# --- power loss: a rename may not be on disk ---


class PowerCut:
    """A folder after a power cut right after a commit, before its directory entries were synced;
    LOSSES take unsynced changes away. The contents of files were synced before they got their
    names, so no file is half written."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.kept = folder.parent / "kept"
        self.kept.mkdir()
        self.monkeypatch = monkeypatch
        self.boot("first")
        prepare(folder)
        for name in ("changed", "deleted"):
            os.link(file_of(folder, name), self.kept / name)
        with mock.patch.object(commit_files, "sync_written"):
            commit(folder)

    def boot(self, name: str) -> None:
        self.monkeypatch.setattr(index, "boot_id", lambda: name)

    def lose_rename(self, name: str) -> None:
        """Bring the old file back, with its inode."""
        file_of(self.folder, name).unlink(missing_ok=True)
        os.link(self.kept / name, file_of(self.folder, name))


@pytest.fixture
def power(folder: Path, monkeypatch: pytest.MonkeyPatch) -> PowerCut:
    return PowerCut(folder, monkeypatch)


LOSSES: dict[str, Callable[[PowerCut], object]] = {
    "nothing": lambda power: None,
    "a replaced file": lambda power: power.lose_rename("changed"),
    "a removal": lambda power: power.lose_rename("deleted"),
    "a new file": lambda power: file_of(power.folder, "new").unlink(),
    "a new folder": lambda power: shutil.rmtree(power.folder / "namespaces/fresh"),
    "the content of a new file": lambda power: file_of(power.folder, "new").write_bytes(b""),
    "the managers": lambda power: shutil.rmtree(
        power.folder / "namespaces/default/configmaps/.managed"
    ),
    "all": lambda power: [
        loss(power) for name, loss in LOSSES.items() if name not in ("all", "a new file")
    ],
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
def test_acknowledged_commit_survives_power_cut(
    power: PowerCut, loss: Callable[[PowerCut], object]
) -> None:
    loss(power)
    power.boot("second")
    assert sound_after(power.folder, True) == AFTER
    store = FolderStore(power.folder)
    assert changes(store, 11) == []
    store.close()


def test_file_missing_after_second_start_is_deletion(power: PowerCut) -> None:
    power.boot("second")
    finish(power.folder)
    file_of(power.folder, "new").unlink()
    power.boot("third")
    store = FolderStore(power.folder)
    assert ("default", "new", "1") not in state(store)
    store.close()


def test_edit_before_next_start_stays(power: PowerCut) -> None:
    file_of(power.folder, "changed").write_text(dump(config_map("changed", "theirs")))
    file_of(power.folder, "deleted").write_text(dump(config_map("deleted", "theirs")))
    power.boot("second")
    store = FolderStore(power.folder)
    assert {("default", "changed", "theirs"), ("default", "deleted", "theirs")} < set(state(store))
    store.close()


def test_system_without_boot_ids_syncs_every_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "boot_id", lambda: None)
    prepare(folder)
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: (synced.append(descriptor), real(descriptor))[1]
    )
    commit(folder)
    assert len(synced) >= 5
    store = FolderStore(folder)
    assert state(store) == AFTER
    store.close()


def test_tombstones_beyond_limit_are_dropped(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(commit_files, "MAX_TOMBSTONES", 2)
    create(store, *(config_map(f"n{number}") for number in range(6)))
    for number in range(6):
        with store.transaction() as transaction:
            transaction.delete(key(f"n{number}"))
        assert store._access.database().tombstones() <= 2
    assert names(store.list("configmaps").objects) == []
