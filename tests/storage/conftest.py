"""Fixtures of storage: every test of a folder ends with ``check()``, so files, index, journal and
change log agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubepy.storage import Key
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.store import Store
from kubepy.storage.timeline import TimelineRecorder, View
from tests.stores import changes, disagreements, keep_timeline, timeline_of

Object = dict[str, Any]


def config_map(name: str, value: str = "1", namespace: str = "default", **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "data": {"a": value},
    }


def key(name: str, namespace: str = "default", resource: str = "configmaps") -> Key:
    return Key(resource, namespace, name)


def names(objects: list[Object]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


def event(name: str) -> Object:
    return {"kind": "Event", "metadata": {"name": name, "namespace": "default"}}


def told(store: Store, since: int) -> list[tuple[int, str, str]]:
    return [(change.revision, change.type, change.key.name) for change in changes(store, since)]


def create(store: Store, *objects: Object, resource: str = "configmaps") -> None:
    with store.transaction() as transaction:
        for obj in objects:
            metadata = obj["metadata"]
            transaction.create(Key(resource, metadata.get("namespace", ""), metadata["name"]), obj)


def look(
    key: Key, old: Object | None, new: Object | None
) -> tuple[View | None, View | None, str] | None:
    """Look at the value of a ConfigMap."""
    before, after = ((obj["data"]["a"],) if obj is not None else None for obj in (old, new))
    return None if before == after else (before, after, "")


def record(store: Store, now: Callable[[], float] = lambda: 0.0, keep: float = 3600.0) -> None:
    """Let a store keep a timeline of its ConfigMaps."""
    keep_timeline(store, now, keep)
    store.connect(
        now,
        lambda: TimelineRecorder(frozenset(("configmaps",)), look, keep, now),
    )


def history(store: Store, **options: Any) -> list[tuple[int, str, View | None, View | None]]:
    """Return the timeline: revision, name, value before and after."""
    return [
        (entry.revision, entry.key.name, entry.before, entry.after)
        for entry in timeline_of(store, **options)
    ]


def file_of(
    folder: Path, name: str, namespace: str = "default", resource: str = "configmaps"
) -> Path:
    return folder / "namespaces" / namespace / resource / f"{name}.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A cluster's folder, checked for damage at the end."""
    state = tmp_path / "state"
    FolderStore.initialize(state, {})
    yield state
    if state.exists():
        store = FolderStore(state, volatile={"events": 3600.0})
        assert disagreements(store) == []
        store.close()


@pytest.fixture
def open_store(folder: Path) -> Iterator[Callable[..., FolderStore]]:
    """A function that opens stores on the folder; they are closed at the end."""
    opened: list[FolderStore] = []

    def open_one(**options: Any) -> FolderStore:
        store = FolderStore(folder, **{"volatile": {"events": 3600.0}, **options})
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Callable[..., FolderStore]) -> FolderStore:
    return open_store()
