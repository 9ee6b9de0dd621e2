"""The store in etcd, with etcd's own revisions: what the contract of every store does not say."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from kubepy.apiserver.cluster import object_indexes
from kubepy.storage import CompactedError, ConflictError, Key, LockTimeoutError
from kubepy.storage.errors import LostStateError
from kubepy.storage.etcd import commit, compaction, leases
from kubepy.storage.etcd import history as histories
from kubepy.storage.etcd import store as stores
from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.client import Delete, EtcdClient, Put
from kubepy.storage.etcd.errors import EtcdError, ValueFormatError
from kubepy.storage.etcd.history import PastChanges, read_history
from kubepy.storage.etcd.keys import EtcdKeys
from kubepy.storage.etcd.keyspace import Keyspace
from kubepy.storage.etcd.ownkeys import OwnKeys, load_text
from kubepy.storage.etcd.store import EtcdStore
from kubepy.storage.etcd.writeorder import WriteOrder
from kubepy.storage.model import CommittedChanges, in_full
from tests.etcd import EtcdServer

from ..conftest import config_map, create, event, history, key, names, record
from .backward import BackwardClient

EVENTS = {"events": 3600.0}
Open = Callable[..., EtcdStore]


@pytest.fixture
def open_store(etcd_address: str) -> Iterator[Open]:
    """A function that opens stores of one cluster in etcd."""
    opened: list[EtcdStore] = []

    def open_one(**options: Any) -> EtcdStore:
        store = EtcdStore(parse_address(etcd_address, {}), volatile=EVENTS, **options)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Open) -> EtcdStore:
    return open_store()


@pytest.fixture
def client(store: EtcdStore) -> Iterator[EtcdClient]:
    """A connection beside that of the store."""
    client = EtcdClient(store.address)
    yield client
    client.close()


def always(key: Key, obj: object) -> bool:
    return True


def never(key: Key) -> bool:
    return False


def version(store: EtcdStore, name: str) -> int:
    obj = store.get(key(name))
    assert obj is not None
    return int(obj["metadata"]["resourceVersion"])


def follow(store: EtcdStore) -> None:
    """Let a store hold everything in memory."""
    store.connect(time.time, indexes=object_indexes)
    store.state().found("uid", ["none"])


def test_resource_version_is_the_mod_revision_of_the_key(
    store: EtcdStore, client: EtcdClient
) -> None:
    with store.transaction() as transaction:
        first = transaction.create(key("a"), config_map("a"))
        second = transaction.create(key("b"), config_map("b"))
    kv, revision = client.get(EtcdKeys(store.address.prefix).of(key("a")))
    assert kv is not None
    assert first["metadata"]["resourceVersion"] == str(kv.mod_revision)
    assert int(second["metadata"]["resourceVersion"]) == kv.mod_revision + 1 == revision
    assert transaction.revision == store.revision == revision


def test_transaction_writes_one_object_at_each_revision(store: EtcdStore) -> None:
    base = store.revision
    create(store, *(config_map(name) for name in "abc"))
    changes = in_full(store.changes, base).changes
    assert [(change.revision - base, change.key.name) for change in changes] == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
    ]


def test_small_values_share_the_revision_of_the_object_after_them(
    store: EtcdStore, client: EtcdClient
) -> None:
    own = OwnKeys(store.address.prefix)
    record(store)
    with store.transaction() as transaction:
        store.set_values({"count": "1"})
        transaction.create(key("a"), config_map("a"))
        store.set_values({"last": "2"})
    count, last = (client.get(own.meta_key(name))[0] for name in ("count", "last"))
    assert count is not None
    assert last is not None
    assert count.mod_revision == version(store, "a")
    assert last.mod_revision == version(store, "a") + 1
    assert history(store) == [(version(store, "a"), "a", None, ("1",))]


def test_values_of_an_object_that_met_a_conflict_are_not_set(open_store: Open) -> None:
    store, other = open_store(), open_store()
    create(store, config_map("b"))
    with pytest.raises(ConflictError), store.transaction() as transaction:  # noqa: PT012
        store.set_values({"first": "1"})
        transaction.create(key("a"), config_map("a"))
        store.set_values({"second": "1"})
        transaction.update(key("b"), config_map("b", "2"))
        with other.transaction() as beside:
            beside.update(key("b"), config_map("b", "3"))
    assert names(store.list("configmaps").objects) == ["a", "b"]
    assert (store.meta("first"), store.meta("second")) == ("1", None)
    assert store.get(key("b"))["data"] == {"a": "3"}  # type: ignore[index]


@pytest.mark.parametrize("is_followed", [False, True])
def test_object_that_somebody_made_or_removed_meanwhile_is_a_conflict(
    open_store: Open, is_followed: bool
) -> None:
    store, other = open_store(), open_store()
    if is_followed:
        follow(store)
    with pytest.raises(ConflictError), store.transaction() as transaction:  # noqa: PT012
        transaction.create(key("a"), config_map("a"))
        create(other, config_map("a", "other"))
    with pytest.raises(ConflictError), store.transaction() as transaction:  # noqa: PT012
        transaction.update(key("a"), config_map("a"))
        with other.transaction() as beside:
            beside.delete(key("a"))
    assert store.get(key("a")) is None


def test_revision_after_a_transaction_is_that_before_the_writes_of_others(
    open_store: Open,
) -> None:
    store, other = open_store(), open_store()
    base = store.revision
    with store.transaction() as transaction:
        transaction.create(key("a"), config_map("a"))
        create(other, config_map("b"))
    assert transaction.revision == base
    changes = in_full(store.changes, transaction.revision).changes
    assert [change.key.name for change in changes] == ["b", "a"]


@pytest.mark.parametrize("is_followed", [False, True])
def test_watcher_that_is_cut_after_any_event_loses_and_doubles_nothing(
    open_store: Open, is_followed: bool
) -> None:
    store, other = open_store(), open_store()
    base = store.revision
    create(store, *(config_map(name) for name in "abc"))
    store.set_values({"beside": "1"})
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2"))
        transaction.delete(key("b"))
        transaction.create(key("d"), config_map("d"))
    if is_followed:
        follow(other)
    whole = in_full(other.changes, base)
    for revision in range(base, store.revision + 1):
        values: dict[str, str] = {}
        before, after = other.changes(base), other.changes(revision)
        assert whole.revision == before.revision == after.revision
        assert [change.revision for change in after.changes] == sorted(
            {change.revision for change in after.changes if change.revision > revision}
        )
        for change in before.changes:
            if change.type != "DELETED":
                values[change.key.name] = change.object["data"]["a"]
        assert values == {"a": "2", "c": "1", "d": "1"}


def test_changes_from_a_compacted_revision_are_gone(open_store: Open, client: EtcdClient) -> None:
    store, late = open_store(), open_store()
    base = store.revision
    create(store, *(config_map(name) for name in "abc"))
    client.compact(base + 2)
    with pytest.raises(CompactedError):
        store.changes(base)
    assert [change.key.name for change in late.changes(base + 2).changes] == ["c"]


@pytest.mark.parametrize("kept", range(6))
def test_state_reaches_back_to_the_compaction(
    store: EtcdStore, client: EtcdClient, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "HISTORY", 5)
    create(store, *(config_map(name) for name in "abcdef"))
    newest = store.revision
    client.compact(newest - kept)
    state = store.state()
    assert state.compacted == newest - kept
    assert len(state.changes(newest - kept).changes) == kept
    with pytest.raises(CompactedError):
        state.changes(newest - kept - 1)


def test_young_history_that_is_compacted_is_not_promised(
    open_store: Open, client: EtcdClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(open_store(), *(config_map(name) for name in "abc"))
    store = open_store()
    newest = store.revision
    monkeypatch.setattr(stores, "HISTORY", newest)
    client.compact(newest)
    state = store.state()
    assert state.compacted == newest
    assert state.entries(state.compacted) == []


def test_values_that_cannot_be_read_are_left_out_and_named(
    store: EtcdStore, client: EtcdClient
) -> None:
    keys, base = EtcdKeys(store.address.prefix), store.revision
    create(store, config_map("a"), config_map("b"))
    name = keys.of(key("b")).decode()
    client.txn([], [Put(keys.of(key("b")), b"no object")])
    assert names(store.list("configmaps").objects) == ["a"]
    assert list(store.unread_values()) == [name]
    with pytest.raises(ValueFormatError, match=name):
        store.get(key("b"))
    state = store.state()
    assert [found for found, _ in state.objects_at([key("a"), key("b")])] == [key("a")]
    last = state.changes(base).changes[-1]
    assert (last.type, last.key) == ("DELETED", key("b"))

    follow(store)
    client.txn([], [Put(keys.of(key("a")), b"no object either")])
    assert names(store.list("configmaps").objects) == []
    assert len(store.unread_values()) == 2
    client.txn([], [Delete(keys.of(key("a")))])
    assert names(store.list("configmaps").objects) == []
    assert list(store.unread_values()) == [name]


def test_lazy_state_is_lost_when_its_revision_is_compacted(
    store: EtcdStore, client: EtcdClient
) -> None:
    create(store, config_map("a"))
    state = store.state()
    create(store, config_map("b"))
    client.compact(store.revision)
    with pytest.raises(LostStateError):
        state.get(key("a"))
    assert state.is_lost()
    assert store.state().get(key("a")) is not None


def test_followed_state_outlives_a_compaction(store: EtcdStore, client: EtcdClient) -> None:
    follow(store)
    base = store.revision
    state = store.state()
    create(store, config_map("a"))
    assert [change.key.name for change in store.changes(base).changes] == ["a"]
    client.compact(store.revision)
    create(store, config_map("b"))
    assert [change.key.name for change in store.changes(base).changes] == ["a", "b"]
    assert state.objects("configmaps") == []


def test_follower_that_was_left_behind_a_compaction_begins_anew(
    open_store: Open, client: EtcdClient
) -> None:
    store, other = open_store(), open_store()
    follow(store)
    create(other, *(config_map(name) for name in "abc"))
    client.compact(other.revision)
    assert names(store.list("configmaps").objects) == ["a", "b", "c"]


def test_commits_of_this_store_are_heard_one_by_one(open_store: Open) -> None:
    store, other = open_store(), open_store()
    heard: list[CommittedChanges] = []
    store.watch(heard.append)
    base = store.revision
    with store.transaction() as transaction:
        transaction.create(key("a"), config_map("a"))
        transaction.create(key("b"), config_map("b"))
        create(other, config_map("c"))
    assert [(commit.base - base, commit.revision - base) for commit in heard] == [(1, 2), (2, 3)]
    assert [commit.changes[0].key.name for commit in heard] == ["a", "b"]


def test_event_has_a_lease_that_events_of_a_minute_share(
    store: EtcdStore, client: EtcdClient
) -> None:
    for name in "ab":
        create(store, event(name), resource="events")
    keys = EtcdKeys(store.address.prefix)
    kvs = [client.get(keys.of(Key("events", "default", name)))[0] for name in "ab"]
    shared = {kv.lease for kv in kvs if kv is not None}
    assert len(shared) == 1
    state = client.lease_state(shared.pop())
    assert 3600 <= state.granted_ttl <= 3660


def test_event_is_written_again_where_its_lease_was_revoked(
    store: EtcdStore, client: EtcdClient
) -> None:
    create(store, event("a"), resource="events")
    kv, _ = client.get(EtcdKeys(store.address.prefix).of(Key("events", "default", "a")))
    assert kv is not None
    client.revoke_lease(kv.lease)
    assert store.list("events").objects == []
    create(store, event("b"), resource="events")
    assert names(store.list("events").objects) == ["b"]


def test_object_that_is_too_large_is_refused_with_its_name(store: EtcdStore) -> None:
    with pytest.raises(EtcdError, match=r"configmaps/a in default: .* larger than etcd takes"):
        create(store, config_map("a", "x" * 1_500_000))


def test_large_small_values_come_back(store: EtcdStore) -> None:
    text = "checkpoint " * 300_000
    store.set_values({"memories": text, "other": "1"})
    assert store.meta("memories") == text
    assert dict(store.state().all_meta()) == {"memories": text, "other": "1"}


def test_many_values_are_set_in_parts(store: EtcdStore) -> None:
    with store.transaction() as transaction:
        store.set_values({f"name-{number}": str(number) for number in range(300)})
        transaction.create(key("a"), config_map("a"))
    assert len(store.state().all_meta()) == 300


# --- locks


def test_lock_is_held_by_one_of_many_machines(open_store: Open) -> None:
    store, other = open_store(), open_store()
    with store.hold("manager.lock") as is_lost:
        assert not is_lost()
        with pytest.raises(LockTimeoutError, match=r"manager\.lock is held by process \d+ on "):
            other.hold("manager.lock").__enter__()
    with other.hold("manager.lock"):
        pass


def test_holder_that_lost_its_lock_writes_nothing_more(
    open_store: Open, client: EtcdClient
) -> None:
    store, other = open_store(), open_store()
    own = OwnKeys(store.address.prefix)
    with store.hold("manager.lock") as is_lost:
        create(store, config_map("a"))
        kv, _ = client.get(own.lock("manager.lock"))
        assert kv is not None
        client.revoke_lease(kv.lease)  # it was cut off for too long
        with other.hold("manager.lock"):
            with pytest.raises(LockTimeoutError, match="is not held any more"):
                create(store, config_map("b"))
            with pytest.raises(LockTimeoutError, match="is not held any more"):
                store.set_values({"position": "1"})
            assert is_lost()
            create(other, config_map("c"))
        assert other.holder("manager.lock") is None
    assert names(other.list("configmaps").objects) == ["a", "c"]


def test_lock_of_a_process_that_hangs_is_lost_by_its_own_clock(
    store: EtcdStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.address = store.address._replace(lease=1)
    monkeypatch.setattr(leases, "RENEW_SHARE", 60.0)
    with store.hold("manager.lock") as is_lost:
        time.sleep(1.1)
        assert is_lost()
        with pytest.raises(LockTimeoutError):
            create(store, config_map("a"))


def test_lock_is_kept_alive(store: EtcdStore) -> None:
    store.address = store.address._replace(lease=2)
    with store.hold("manager.lock") as is_lost:
        time.sleep(3)
        assert not is_lost()
        create(store, config_map("a"))


@pytest.mark.parametrize(
    "state", ["etcd://me:s3cr@t@h:1,g/p", "etcd://h/p?user=me&password=s3cr%40t&timeout=2"]
)
def test_holder_of_a_lock_is_named_without_its_password(
    open_store: Open, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr("sys.argv", ["/bin/kubepy", "--state", state, "controller", "--watch"])
    store, other = open_store(), open_store()
    with store.hold("manager.lock"):
        holder = other.holder("manager.lock")
    assert holder is not None
    assert holder.endswith(" controller --watch)")
    assert "s3cr" not in holder
    assert "(kubepy --state etcd://" in holder


def test_who_waits_for_a_lock_writes_nothing(open_store: Open, client: EtcdClient) -> None:
    store, other = open_store(), open_store()
    with store.hold("manager.lock"):
        revision = store.revision
        for _ in range(3):
            with pytest.raises(LockTimeoutError, match="process"), other.hold("manager.lock"):
                pass
        assert store.revision == revision


def test_removed_cluster_leaves_others_alone(open_store: Open, client: EtcdClient) -> None:
    store = open_store()
    beside = EtcdStore(store.address._replace(prefix=f"{store.address.prefix}-b"))
    create(store, config_map("a"))
    create(beside, config_map("a"))
    store.remove()
    assert store.get(key("a")) is None
    assert beside.get(key("a")) is not None
    beside.close()


def test_cluster_without_prefix_is_not_removed(store: EtcdStore) -> None:
    whole = EtcdStore(store.address._replace(prefix=""))
    with pytest.raises(EtcdError, match="without a prefix is not removed"):
        whole.remove()
    whole.close()


# --- trouble


def test_store_goes_on_when_etcd_was_restarted(own_etcd: EtcdServer) -> None:
    store = EtcdStore(parse_address(own_etcd.address(), {}))
    follow(store)
    base = store.revision
    create(store, config_map("a"))
    own_etcd.restart()
    create(store, config_map("b"))
    assert [change.key.name for change in store.changes(base).changes] == ["a", "b"]
    store.close()


def test_increments_of_many_threads_are_exact(open_store: Open) -> None:
    store = open_store()
    create(store, {**config_map("a"), "data": {"n": 0}})

    def add() -> None:
        own, done = open_store(), 0
        while done < 20:
            try:
                with own.transaction() as transaction:
                    obj = transaction.get(key("a"))
                    assert obj is not None
                    data = {"n": obj["data"]["n"] + 1}
                    transaction.update(key("a"), {**config_map("a"), "data": data})
            except ConflictError:
                continue
            done += 1

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get(key("a"))["data"] == {"n": 80}  # type: ignore[index]


def test_follower_waits_until_somebody_writes(open_store: Open) -> None:
    store, other = open_store(), open_store()
    create(other, config_map("a"))
    assert store.wait_for_change(0.01)  # follows from now on, and has waited
    assert names(store.list("configmaps").objects) == ["a"]
    writer = threading.Timer(0.1, lambda: create(other, config_map("b")))
    writer.start()
    assert store.wait_for_change(20.0)
    writer.join()
    assert names(store.list("configmaps").objects) == ["a", "b"]


def test_unordered_objects_are_under_way_together_and_all_others_wait(open_store: Open) -> None:
    store = open_store(order=WriteOrder(lambda key, obj: "free" in key.name, never))
    base = store.revision
    free = [f"free-{number:03}" for number in range(150)]
    with store.transaction() as transaction:
        for name in ("a", *free[:100], "b", *free[100:]):
            transaction.create(key(name), config_map(name))
        written = transaction.list("configmaps").objects
    changes = in_full(store.changes, base).changes
    told = [change.key.name for change in changes]
    assert told[0] == "a"
    assert sorted(told[1:101]) == free[:100]
    assert told[101] == "b"
    assert sorted(told[102:]) == free[100:]
    assert [change.revision for change in changes] == list(range(base + 1, base + 153))
    assert written == store.list("configmaps").objects
    assert transaction.revision == store.revision


@pytest.mark.parametrize("window", [3, 64])
def test_unordered_objects_of_different_sides_keep_their_order(
    etcd_address: str, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(commit, "WINDOW", window)
    address = parse_address(etcd_address, {})
    order = WriteOrder(always, never, lambda key, obj: key.name[:1].strip("-"))
    store = EtcdStore(address, client=BackwardClient(address), order=order)
    base = store.revision
    names_written = [
        *["a1", "a2", "a3", "-1", "b1", "b2", "-2", "b3", "b4", "b5", "b6", "a4", "-3", "a5"]
    ]
    with store.transaction() as transaction:
        for name in names_written:
            transaction.create(key(name), config_map(name))
    changes = in_full(store.changes, base).changes
    sides = "".join(change.key.name[:1] for change in changes).replace("-", "")
    assert sides == "aaabbbbbbaa"
    told = [change.key.name for change in changes]
    assert told != names_written
    store.close()


def test_small_value_is_the_last_however_unordered_objects_are_written(etcd_address: str) -> None:
    address = parse_address(etcd_address, {})
    order = WriteOrder(lambda key, obj: key.name != "last", never)
    store = EtcdStore(address, client=BackwardClient(address), order=order)
    base = store.revision
    with store.transaction() as transaction:
        for number in range(5):
            store.set_values({"count": str(number)})
            transaction.create(key(f"a{number}"), config_map(f"a{number}"))
        store.set_values({"count": "5", "end": "1"})
        transaction.create(key("last"), config_map("last"))
    assert (store.meta("count"), store.meta("end")) == ("5", "1")
    own = OwnKeys(address.prefix)
    with closing(EtcdClient(address)) as client:
        watch = client.watch(own.meta_key("count"), start_revision=base + 1)
        batch = watch.next_batch(5)
        assert batch is not None
        counts = [load_text(event.kv.value) for event in batch.events]
    assert counts == ["4"] * 5 + ["5"]
    store.close()


def test_conflict_among_unordered_objects_leaves_the_others(open_store: Open) -> None:
    store, other = open_store(order=WriteOrder(always, never)), open_store()
    with pytest.raises(ConflictError, match="configmaps/c"), store.transaction() as transaction:  # noqa: PT012
        for name in "abcde":
            transaction.create(key(name), config_map(name))
        create(other, config_map("c", "other"))
        transaction.create(key("f"), config_map("f"))
    assert names(store.list("configmaps").objects) == [*"abcdef"]
    assert store.get(key("c"))["data"] == {"a": "other"}  # type: ignore[index]


def test_quiet_time_between_the_writes_of_others_is_read_once(
    open_store: Open, client: EtcdClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "MANY", 10)
    store = open_store()
    create(store, config_map("a"))
    since = store.revision
    for number in range(20):  # as another cluster in the same etcd does
        client.txn([], [Put(b"/others/kubepy/beside", b"%d" % number)])
    read: list[tuple[int, int]] = []

    def read_noted(keyspace: Keyspace, begin: int, end: int) -> PastChanges:
        read.append((begin, end))
        return read_history(keyspace, begin, end)

    monkeypatch.setattr(histories, "read_history", read_noted)
    first = store.changes(since)
    client.txn([], [Put(b"/others/kubepy/beside", b"last")])
    again = open_store().changes(since)
    assert first.changes == again.changes == []
    assert read[0] == (since, first.revision)
    assert first.revision < again.revision
    [(begin, end)] = read[1:]
    assert begin >= first.revision
    assert end == again.revision
    create(store, config_map("b"))
    assert [change.key.name for change in open_store().changes(since).changes] == ["b"]


def test_holders_of_locks_compact_what_was_before_the_last_time(
    own_etcd: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "COMPACT_SECONDS", 0.0)
    store = EtcdStore(parse_address(own_etcd.address(), {}))
    create(store, config_map("a"))
    first, other = compaction.Compactor(store._client), compaction.Compactor(store._client)
    first.tick()
    other.tick()  # learns whose turn it was
    create(store, config_map("b"))
    seen = store.revision
    other.tick()
    first.tick()
    create(store, config_map("c"))
    assert [change.key.name for change in store.changes(seen).changes] == ["c"]
    with pytest.raises(CompactedError):
        store.changes(0)
    store.close()


def test_what_was_written_before_a_record_is_there_before_it(open_store: Open) -> None:
    store = open_store(order=WriteOrder(always, lambda key: key.name == "record"))
    base = store.revision
    with store.transaction() as transaction:
        transaction.create(key("a"), config_map("a"))
        transaction.create(key("record"), config_map("record"))
        transaction.update(key("a"), config_map("a", "2"))
        transaction.update(key("a"), config_map("a", "3"))
        last = transaction.update(key("record"), config_map("record", "2"))
        transaction.create(key("b"), config_map("b"))
        transaction.delete(key("b"))
    entries = read_history(store._keyspace, base, store.revision).entries
    assert [(entry.revision - base, entry.type, entry.name) for entry in entries] == [
        (1, "ADDED", "a"),
        (2, "ADDED", "record"),
        (3, "MODIFIED", "a"),
        (4, "MODIFIED", "record"),
    ]
    assert store.get(key("record")) == last
