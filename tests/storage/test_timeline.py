"""The timeline of a state folder: edits from outside, older indexes, copies, damage."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kubepy.storage.folder.copying import write_state
from kubepy.storage.folder.locks import Lock
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.memory import MemoryStore
from kubepy.storage.yaml import dump
from tests.stores import changes, fork_of, timeline_of

from .conftest import config_map, create, file_of, history, key, record

OpenStore = Callable[..., FolderStore]


@contextmanager
def index_of(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / ".kubepy" / "index.db")) as connection:
        yield connection
        connection.commit()


@pytest.fixture
def recorded(store: FolderStore) -> FolderStore:
    record(store)
    return store


def test_edits_from_outside_are_marked(recorded: FolderStore, folder: Path) -> None:
    create(recorded, config_map("a"), config_map("b"), config_map("c", uid="1"))
    file_of(folder, "a").write_text(dump(config_map("a", "2")))
    file_of(folder, "b").unlink()
    file_of(folder, "c").write_text(dump(config_map("c", "3", uid="2")))
    file_of(folder, "d").write_text(dump(config_map("d")))
    (file_of(folder, "e").parent / "note.txt").write_text("no object")
    assert history(recorded, after=3) == [
        (4, "a", ("1",), ("2",)),
        (5, "b", ("1",), None),
        (6, "c", ("1",), None),
        (7, "c", None, ("3",)),
        (8, "d", None, ("1",)),
    ]
    assert {entry.is_outside for entry in timeline_of(recorded, after=3)} == {True}
    create(recorded, config_map("f"))
    assert not timeline_of(recorded)[-1].is_outside


def test_edit_that_cannot_be_recorded_is_on_timeline_of_fork(
    recorded: FolderStore, folder: Path
) -> None:
    create(recorded, config_map("a"))
    lock = Lock(str(folder / ".kubepy" / "lock"))
    lock.acquire(1)
    file_of(folder, "a").write_text(dump(config_map("a", "2")))
    file_of(folder, "b").write_text(dump(config_map("b")))
    fork = fork_of(recorded)
    lock.release()
    assert history(fork) == [
        (1, "a", None, ("1",)),
        (2, "a", ("1",), ("2",)),
        (3, "b", None, ("1",)),
    ]
    assert [entry.is_outside for entry in timeline_of(fork)] == [False, True, True]


def test_removed_index_begins_a_new_timeline(
    recorded: FolderStore, folder: Path, open_store: OpenStore
) -> None:
    create(recorded, config_map("a"), config_map("b"))
    recorded.close()
    shutil.rmtree(folder / ".kubepy")
    again = open_store()
    record(again)
    assert timeline_of(again) == []
    create(again, config_map("c"))
    assert [name for _, name, *_ in history(again)] == ["c"]


def test_index_without_timeline_keeps_its_change_log(
    recorded: FolderStore, folder: Path, open_store: OpenStore
) -> None:
    create(recorded, config_map("a"))
    recorded.close()
    with index_of(folder) as connection:  # as an earlier version has made it
        connection.execute("DROP TABLE timeline")
    again = open_store()
    record(again)
    assert timeline_of(again) == []
    create(again, config_map("b"))
    assert [change.key.name for change in changes(again, 0)] == ["a", "b"]
    assert history(again) == [(2, "b", None, ("1",))]


def test_copies_have_the_timeline(recorded: FolderStore, tmp_path: Path) -> None:
    create(recorded, config_map("a"), config_map("b"))
    recorded.copy_to(str(tmp_path / "copy"))
    memory = MemoryStore()
    record(memory)
    create(memory, config_map("a"), config_map("b"))
    write_state(memory.state(), str(tmp_path / "written"))
    for name in ("copy", "written"):
        copy = FolderStore(tmp_path / name)
        record(copy)
        assert timeline_of(copy) == timeline_of(recorded) == timeline_of(memory)
        create(copy, config_map("c"))
        assert len(timeline_of(copy)) == 3
        assert copy.check() == []
        copy.close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE timeline SET views = '[1'",
        "UPDATE timeline SET views = '[1]'",
        "UPDATE timeline SET views = x'ff'",
        "UPDATE timeline SET at = 'x'",
    ],
)
def test_damaged_timeline_is_found_and_repaired(
    folder: Path, open_store: OpenStore, damage: str
) -> None:
    store = open_store()
    record(store)
    create(store, config_map("a"))
    store.close()
    with index_of(folder) as connection:
        connection.execute(damage)
    damaged = open_store()
    record(damaged)
    assert len(damaged.check()) == 1
    assert damaged.repair() == [".kubepy/index.db: rebuilt from the files"]
    assert timeline_of(damaged) == []
    assert damaged.get(key("a")) is not None


def test_another_process_reads_the_timeline(recorded: FolderStore, open_store: OpenStore) -> None:
    create(recorded, config_map("a"))
    other = open_store()
    record(other)
    create(other, config_map("b"))
    assert history(recorded) == history(other) == [(1, "a", None, ("1",)), (2, "b", None, ("1",))]


def test_index_rebuilt_within_a_transaction_keeps_its_writes(
    recorded: FolderStore, folder: Path
) -> None:
    create(recorded, config_map("a"))
    with recorded.transaction() as transaction:
        transaction.create(key("b"), config_map("b"))
        transaction.update(key("b"), config_map("b", "2"))
        recorded._access.rebuild()
    entries = timeline_of(recorded)
    assert [(entry.key.name, entry.before, entry.after) for entry in entries] == [
        ("b", None, ("1",)),
        ("b", ("1",), ("2",)),
    ]
    assert {entry.revision for entry in entries} == {recorded.revision}
