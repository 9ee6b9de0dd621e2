"""States that go on from one another, and those that lie over nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubepy.storage import Key
from kubepy.storage.errors import LostStateError
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.memory import MemoryStore
from kubepy.storage.model import decode
from kubepy.storage.state import ObjectRecord, State

from .conftest import config_map, create, key


def record(name: str, revision: int, expires: float | None = None) -> ObjectRecord:
    text = f'{{"metadata":{{"name":"{name}","namespace":"default"}}}}'
    return ObjectRecord(key(name), revision, text, expires)


def names(state: State) -> list[str]:
    return [record.key.name for record in state.records("configmaps", None)]


def test_state_goes_on_from_records_and_stays_itself() -> None:
    first = State({}).with_records([(record("a", 1), None), (record("b", 2), None)], 2)
    changed, gone = record("a", 3), ObjectRecord(key("b"), 4, None)
    second = first.with_records([(changed, first.get(key("a"))), (gone, first.get(key("b")))], 4)
    assert (names(first), first.revision) == (["a", "b"], 2)
    assert (names(second), second.revision) == (["a"], 4)
    assert second.get(key("a")) is changed
    assert second.get(key("a")).object == decode(changed.json or "", 3)  # type: ignore[union-attr]


def test_state_knows_what_expires_next() -> None:
    short, long = record("a", 1, 10.0), record("b", 2, 20.0)
    first = State({}).with_records([(short, None), (long, None)], 2)
    longer = record("a", 3, 30.0)
    second = first.with_records([(longer, short)], 3)
    third = second.with_records([(ObjectRecord(key("b"), 4, None), long)], 4)

    def expiring(state: State) -> list[tuple[float, Key]]:
        return [expiry for expiry, _ in state.all_expiring().items()]

    assert expiring(first) == [(10.0, key("a")), (20.0, key("b"))]
    assert expiring(second) == [(20.0, key("b")), (30.0, key("a"))]
    assert expiring(third) == [(30.0, key("a"))]


def test_objects_of_folder_stay_when_its_state_is_closed(tmp_path: Path) -> None:
    FolderStore.initialize(tmp_path, {})
    store = FolderStore(tmp_path)
    create(store, config_map("a"))
    recorded = store.state()
    objects = recorded.of_objects()
    recorded.close()
    with pytest.raises(LostStateError):
        recorded.objects("configmaps")
    assert names(objects) == ["a"]
    assert objects.revision == store.revision
    store.close()


def test_objects_of_memory_store_are_shared() -> None:
    store = MemoryStore()
    create(store, config_map("a"))
    recorded = store.state()
    assert recorded.of_objects().get(key("a")) is recorded.get(key("a"))
