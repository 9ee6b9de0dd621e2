"""A store in memory that becomes what another one is: objects, values and changes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kubepy.storage.memory import MemoryStore
from kubepy.storage.model import ADDED, DELETED, Key
from kubepy.storage.store import Store

NAMES = "abcdefgh"


def stored(name: str, uid: int, value: int) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "n", "uid": str(uid)},
        "data": {"value": str(value)},
    }


def scramble(store: Store, chance: random.Random, writes: int) -> None:
    """Write at random: new objects, changes, deletions, settings and small values."""
    for number in range(writes):
        name = chance.choice(NAMES)
        key = Key("configmaps", "n", name)
        with store.transaction() as transaction:
            present = transaction.get(key)
            if present is None:
                transaction.create(key, stored(name, chance.randrange(10**9), number))
            elif chance.random() < 0.4:
                transaction.delete(key)
            else:
                uid = int(present["metadata"]["uid"])
                transaction.update(key, stored(name, uid, chance.randrange(3)))
    store.set_values(
        {chance.choice("xyz"): str(chance.random())},
        settings={chance.choice("pq"): chance.random()},
    )


def contents(store: Store) -> Any:
    """Return all that a store holds, without resourceVersions."""
    objects = {}
    for obj in store.list("configmaps").objects:
        metadata = {**obj["metadata"]}
        del metadata["resourceVersion"]
        objects[metadata["name"]] = {**obj, "metadata": metadata}
    return objects, store.settings(), [store.meta(name) for name in "xyz"]


def replayed(store: Store, since: int, objects: dict[str, Any]) -> dict[str, Any]:
    """Return the objects at a revision with all changes since then."""
    objects = {**objects}
    for change in store.changes(since).changes:
        if change.type == DELETED:
            objects.pop(change.key.name, None)
        else:
            objects[change.key.name] = change.object
    return objects


def listed(store: Store) -> dict[str, Any]:
    return {obj["metadata"]["name"]: obj for obj in store.list("configmaps").objects}


@pytest.mark.parametrize("seed", range(30))
def test_restored_store_is_as_the_other_and_its_changes_lead_there(seed: int) -> None:
    chance = random.Random(seed)
    store = MemoryStore()
    scramble(store, chance, 8)
    other = MemoryStore(store.state())
    scramble(other, chance, chance.choice((0, 6)))
    scramble(store, chance, 8)
    before, revision = listed(store), store.revision
    heard: list[Any] = []
    store.watch(heard.append)

    store.restore(other.state())
    assert contents(store) == contents(other)
    assert replayed(store, revision, before) == listed(store)
    assert [commit.base for commit in heard] == [revision] * len(heard)
    for name, obj in listed(store).items():
        if before.get(name) != obj:
            assert int(obj["metadata"]["resourceVersion"]) > revision

    scramble(store, chance, 4)  # neither sees what is written to the other from then on
    scramble(other, chance, 4)
    store.restore(other.state())
    assert contents(store) == contents(other)


def test_restore_of_the_same_state_changes_nothing() -> None:
    store = MemoryStore()
    scramble(store, random.Random(1), 8)
    other = MemoryStore(store.state())
    before, revision = listed(store), store.revision
    store.restore(other.state())
    assert (listed(store), store.revision) == (before, revision)


def test_object_with_another_uid_is_removed_and_added() -> None:
    store = MemoryStore()
    key = Key("configmaps", "n", "a")
    with store.transaction() as transaction:
        transaction.create(key, stored("a", 1, 1))
    other = MemoryStore(store.state())
    with store.transaction() as transaction:
        transaction.delete(key)
    with store.transaction() as transaction:
        transaction.create(key, stored("a", 2, 1))
    revision = store.revision
    store.restore(other.state())
    changes = store.changes(revision).changes
    assert [change.type for change in changes] == [DELETED, ADDED]


def test_volatile_object_keeps_the_moment_at_which_it_is_over() -> None:
    now = [0.0]
    store = MemoryStore(volatile={"events": 10.0}, now=lambda: now[0])
    key = Key("events", "n", "e")
    with store.transaction() as transaction:
        transaction.create(key, stored("e", 1, 1))
    other = MemoryStore(store.state(), volatile={"events": 10.0}, now=lambda: now[0])
    with store.transaction() as transaction:
        transaction.delete(key)
    now[0] = 5.0
    store.restore(other.state())
    assert store.get(key) is not None
    now[0] = 11.0
    assert store.get(key) is None


def test_restore_and_reading_in_full_do_not_nest_in_a_transaction() -> None:
    store = MemoryStore(lock_timeout=0.0)
    with store.transaction():
        with pytest.raises(RuntimeError, match="transactions do not nest"):
            store.restore(MemoryStore().state())
        with pytest.raises(RuntimeError, match="transactions do not nest"):
            store.read_in_full()
