"""A disk that fills up at any point of a commit: it happens as a whole or not at all, and the error
names the cause."""

from __future__ import annotations

import builtins
import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kubepy.apiserver.cluster import LocalCluster
from kubepy.apiserver.request import CollectionOptions, ListOptions, Patch
from kubepy.controlplane.open import make_cluster, open_cluster
from kubepy.storage import FolderError
from kubepy.storage.folder import locks, renames, reserve
from kubepy.storage.folder.commit_files import DONE_NEVERTHELESS
from kubepy.storage.folder.store import FolderStore
from tests.copies import copy_with_index
from tests.stores import disagreements, timeline_of

from .conftest import config_map, key
from .test_faults import AFTER, BEFORE, commit, prepare, state, warm

NEED_SPACE = ("write", "mkdir", "fsync", "open")
FULL = "No space left on device"


class Disk:
    """A disk with room for a number of writes; ``left`` below zero means that one was refused."""

    def __init__(self, room: int) -> None:
        self.left = room

    def is_full(self) -> bool:
        self.left -= 1
        return self.left < 0

    def guarded(self, module: Any, name: str) -> Callable[..., Any]:
        real = getattr(module, name)

        def run(*arguments: Any, **options: Any) -> Any:
            writes = name != "open" or (len(arguments) > 1 and arguments[1] & os.O_CREAT)
            if writes and self.is_full():
                raise OSError(
                    errno.ENOSPC, FULL, arguments[0] if isinstance(arguments[0], str) else None
                )
            return real(*arguments, **options)

        return run

    def open(self, path: Any, mode: str = "r", **options: Any) -> Any:
        if "w" in mode and self.is_full():
            raise OSError(errno.ENOSPC, FULL, path)
        return builtins.open(path, mode, **options)

    def connection(self) -> type[sqlite3.Connection]:
        disk = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                if (
                    sql == "COMMIT"
                    and self.total_changes != getattr(self, "seen", 0)
                    and disk.is_full()
                ):
                    raise sqlite3.OperationalError("database or disk is full")
                done = super().execute(
                    "PRAGMA synchronous = OFF" if "synchronous" in sql else sql, *parameters
                )
                if sql in (
                    "COMMIT",
                    "ROLLBACK",
                ):  # the next COMMIT does not write rolled back changes
                    self.seen = self.total_changes
                return done

        return Connection

    @contextmanager
    def in_use(self) -> Iterator[None]:
        connect = sqlite3.connect
        patches = [mock.patch.object(os, name, self.guarded(os, name)) for name in NEED_SPACE]
        patches.append(mock.patch.object(renames, "renameat2", self.guarded(renames, "renameat2")))
        patches.append(mock.patch.object(locks, "open", self.open, create=True))
        patches.append(
            mock.patch.object(
                sqlite3,
                "connect",
                lambda *a, **o: connect(*a, **{"factory": self.connection(), **o}),
            )
        )
        for patch in patches:
            patch.start()
        try:
            yield
        finally:
            for patch in reversed(patches):
                patch.stop()


def copy_of(origin: Path, folder: Path) -> Path:
    copy_with_index(origin, folder)
    os.utime(folder)
    warm(folder)
    return folder


def test_commit_on_full_disk_is_all_or_nothing(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    FolderStore.initialize(origin, {})
    prepare(origin)
    outcomes: list[str] = []
    for room in range(200):
        folder = copy_of(origin, tmp_path / f"state{room}")
        disk = Disk(room)
        outcomes.append(outcome_of(folder, disk))
        shutil.rmtree(folder)
        if disk.left >= 0:
            break
    assert outcomes == sorted(outcomes, key=["nothing", "all, with an error", "all"].index)
    assert outcomes[-1] == "all"
    assert outcomes.count("nothing") > 10
    assert outcomes.count("all, with an error") > 5


def outcome_of(folder: Path, disk: Disk) -> str:
    error = None
    with disk.in_use():
        try:
            commit(folder)
        except FolderError as raised:
            error = str(raised)
        reader = FolderStore(folder)  # the disk is still full
        seen = state(reader)
        reader.close()
    assert error is None or FULL in error or "disk is full" in error
    happened = seen == AFTER
    assert seen in (BEFORE, AFTER)
    assert happened == (error is None or DONE_NEVERTHELESS in error), error
    store = FolderStore(folder)
    assert state(store) == seen
    assert (store.meta("done") == "yes") == happened
    assert len(timeline_of(store)) == (6 if happened else 0)
    with store.transaction() as transaction:
        transaction.create(key("later"), config_map("later"))
    assert disagreements(store) == []
    store.close()
    return "nothing" if not happened else "all" if error is None else "all, with an error"


def test_recovery_on_full_disk_leaves_nothing_half_done(tmp_path: Path) -> None:
    """Fill the disk at every point of a recovery, again and again, until there is room."""
    folder = tmp_path / "state"
    FolderStore.initialize(folder, {})
    prepare(folder)
    with pytest.raises(FolderError, match=DONE_NEVERTHELESS), full_at_replace():
        commit(folder)
    for room in range(200):
        disk = Disk(room)
        with disk.in_use():
            store = FolderStore(folder)
            assert state(store) == AFTER
            store.close()
        if disk.left >= 0:
            break
    store = FolderStore(folder)
    assert state(store) == AFTER
    assert disagreements(store) == []
    store.close()


@contextmanager
def full_at_replace() -> Iterator[None]:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, FULL, arguments[0])

    with mock.patch.object(renames, "renameat2", full):
        yield


# --- deletions ------------------------------------------------------------------------------------


class ReservedDisk(Disk):
    """A disk that is full as long as the room for deletions is taken."""

    def __init__(self, folder: Path) -> None:
        super().__init__(0)
        self._reserve = folder / ".kubepy" / reserve.NAME

    def is_full(self) -> bool:
        return reserve.size_of(str(self._reserve)) > 0


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """Make a cluster on a disk that has no room any more for a second reserve."""
    made = make_cluster(tmp_path / "state", {"clock": "2026-11-20T10:00:00Z"})
    for name in ("a", "b"):
        made.client.create("configmaps", {"metadata": {"name": name}}, namespace="default")
    made.close()
    opened = open_cluster(tmp_path / "state")
    monkeypatch.setattr(reserve, "SHARE", 1 << 62)
    yield opened
    opened.close()


def names_of(cluster: LocalCluster) -> list[str]:
    return [obj["metadata"]["name"] for obj in cluster.client.list_stored("configmaps", "default")]


def test_deletion_works_on_full_disk(cluster: LocalCluster, tmp_path: Path) -> None:
    with ReservedDisk(tmp_path / "state").in_use():
        with pytest.raises(FolderError, match=FULL):
            cluster.client.create("configmaps", {"metadata": {"name": "c"}}, namespace="default")
        with pytest.raises(FolderError, match=FULL):
            cluster.client.patch(
                "configmaps",
                "a",
                Patch("application/merge-patch+json", {"data": {"x": "y"}}),
                namespace="default",
            )
        assert "a" in names_of(cluster)
        cluster.client.delete("configmaps", "a", namespace="default")
        assert "a" not in names_of(cluster)
    assert disagreements(cluster.store) == []


def test_deletion_of_collection_works_on_full_disk(cluster: LocalCluster, tmp_path: Path) -> None:
    before = names_of(cluster)
    with ReservedDisk(tmp_path / "state").in_use():
        options = CollectionOptions(ListOptions(field_selector="metadata.name!=b"))
        cluster.client.delete_collection("configmaps", namespace="default", options=options)
    assert names_of(cluster) == ["b"] != before


def test_room_for_deletions_is_made_again_when_there_is_much_more(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "state" / ".kubepy" / reserve.NAME
    assert file.stat().st_size == reserve.BYTES
    file.unlink()
    cluster.client.create("configmaps", {"metadata": {"name": "c"}}, namespace="default")
    assert not file.exists()
    monkeypatch.setattr(reserve.Reserve, "_free_bytes", lambda self: 6 * reserve.PART)
    monkeypatch.setattr(reserve, "SHARE", 3)
    cluster.client.create("configmaps", {"metadata": {"name": "d"}}, namespace="default")
    assert file.stat().st_size == 2 * reserve.PART
    monkeypatch.undo()
    cluster.client.create("configmaps", {"metadata": {"name": "e"}}, namespace="default")
    assert file.stat().st_size == reserve.BYTES


# --- what comes before a commit -------------------------------------------------------------------


def test_index_that_finds_no_room_to_be_opened_is_not_made_anew(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    cluster.client.get("configmaps", "a", namespace="default")
    revision = cluster.store.revision
    cluster.close()
    index = tmp_path / "state" / ".kubepy" / "index.db"
    identity = index.stat().st_ino

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise sqlite3.OperationalError("database or disk is full")

    with mock.patch("kubepy.storage.folder.index.Database.is_current", refuse):
        store = FolderStore(tmp_path / "state")
        with pytest.raises(FolderError, match="no space left"), store.transaction() as transaction:
            transaction.delete(key("a"))
    assert index.stat().st_ino == identity
    reader = FolderStore(tmp_path / "state")
    assert reader.revision == revision
    reader.close()
