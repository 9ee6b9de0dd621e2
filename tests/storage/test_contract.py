"""The contract of every store: objects, resource versions, compare-and-swap, the change log,
settings, locks, forks.

Each test runs over a state folder, a store in memory, forks in memory of both, and the strange
store (:mod:`tests.storage.strange`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from math import inf
from pathlib import Path
from typing import Any

import pytest

from kubepy.storage import (
    Change,
    CompactedError,
    ConflictError,
    ExistsError,
    Key,
    LockTimeoutError,
    MissingError,
    state,
    timeline,
)
from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.store import EtcdStore
from kubepy.storage.folder import commit_files
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.memory import MemoryStore
from kubepy.storage.model import CommittedChanges
from kubepy.storage.store import Store
from kubepy.storage.transaction import EXPIRED_WITH_A_WRITE
from tests.etcd import fresh_prefix
from tests.stores import (
    changes,
    disagreements,
    fork_of,
    namespaces,
    resources,
    timeline_of,
    transaction_of,
)

from .conftest import config_map, create, event, history, key, names, record, told
from .etcd.counting import CountingClient
from .strange import StrangeStore

OpenNew = Callable[..., Store]


@pytest.fixture(
    params=[
        "folder",
        "memory",
        "etcd",
        "strange",
        "fork of a folder",
        "fork of a memory store",
        "fork of etcd",
    ]
)
def open_new(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenNew]:
    """A function that opens a new, empty store; it is checked and closed at the end."""
    opened: list[Store] = []

    def open_one(**options: Any) -> Store:
        options = {"volatile": {"events": 3600.0}, **options}
        store: Store = MemoryStore(**options)
        if request.param == "strange":
            store = StrangeStore(**options)
        if "folder" in request.param:
            state = tmp_path / f"state-{len(opened)}"
            FolderStore.initialize(state, {})
            store = FolderStore(state, **options)
        if "etcd" in request.param:
            server = request.getfixturevalue("etcd_server")
            address = parse_address(server.address(fresh_prefix()), {})
            store = EtcdStore(address, client=CountingClient(address), **options)
        opened.append(store)
        if "fork" in request.param:
            store = fork_of(store)
            opened.append(store)
        return store

    yield open_one
    for store in opened:
        assert disagreements(store) == []
        store.close()


@pytest.fixture
def store(open_new: OpenNew) -> Store:
    return open_new()


def counts_objects(store: Store) -> bool:
    """Tell whether a store gives one revision to each object that a transaction has changed, in
    place of one to each write."""
    return isinstance(store, EtcdStore)


def test_stored_object_is_same_with_resource_version(store: Store) -> None:
    with store.transaction() as transaction:
        created = transaction.create(key("a"), config_map("a", labels={"x": "y"}))
    assert created == config_map("a", labels={"x": "y"}, resourceVersion="1")
    assert store.get(key("a")) == created
    assert store.revision == 1


def test_written_objects_have_their_versions_after_the_commit(store: Store) -> None:
    with store.transaction() as transaction:
        first = transaction.create(key("a"), config_map("a"))
        other = transaction.create(key("b"), config_map("b"), is_plain=True)
        again = transaction.update(key("a"), config_map("a", "2"))
    assert [again, other] == store.list("configmaps").objects
    assert first["data"] != again["data"]
    assert store.revision == transaction.revision


def test_absent_object_is_none(store: Store) -> None:
    assert store.get(key("a")) is None
    assert store.list("configmaps") == (0, [], ())
    assert resources(store) == []


def test_stream_gives_what_list_gives(open_new: OpenNew) -> None:
    now = 1.0
    store = open_new(now=lambda: now)
    create(
        store,
        *(config_map(f"cm-{number:03}") for number in range(150)),
        config_map("other", namespace="lab"),
    )
    create(store, event("e"), resource="events")
    for place in (("configmaps", None), ("configmaps", "lab"), ("events", None), ("secrets", None)):
        listed, stream = store.list(*place), store.stream(*place)
        assert (listed.revision, listed.objects) == (stream.revision, list(stream.objects))
    now = 3602.0
    assert list(store.stream("events").objects) == []


def test_stream_does_not_see_later_writes(store: Store) -> None:
    create(store, config_map("a"), config_map("b"))
    objects = store.stream("configmaps").objects
    assert next(objects)["metadata"]["name"] == "a"
    with store.transaction() as transaction:
        transaction.update(key("b"), config_map("b", "2"))
        transaction.create(key("c"), config_map("c"))
    assert [obj["data"] for obj in objects] == [{"a": "1"}]


def test_create_of_existing_object_fails(store: Store) -> None:
    create(store, config_map("a"))
    with pytest.raises(ExistsError), store.transaction() as transaction:
        transaction.create(key("a"), config_map("a"))


def test_update_and_delete_of_absent_object_fail(store: Store) -> None:
    with store.transaction() as transaction:
        with pytest.raises(MissingError):
            transaction.update(key("a"), config_map("a"))
        with pytest.raises(MissingError):
            transaction.delete(key("a"))


def test_update_that_names_older_version_fails(store: Store) -> None:
    create(store, config_map("a"))
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2"), expected="1")
    with store.transaction() as transaction:
        with pytest.raises(ConflictError):
            transaction.update(key("a"), config_map("a", "3"), expected="1")
        with pytest.raises(ConflictError):
            transaction.delete(key("a"), expected="1")
    assert store.get(key("a")) == config_map("a", "2", resourceVersion="2")


def test_true_and_one_are_not_same(store: Store) -> None:
    create(store, {**config_map("a"), "data": {"a": 1}})
    with store.transaction() as transaction:
        transaction.update(key("a"), {**config_map("a"), "data": {"a": True}})
    found = store.get(key("a"))
    assert found is not None
    assert found["data"] == {"a": True}
    assert store.revision == 2


def test_transaction_sees_its_own_writes(store: Store) -> None:
    create(store, config_map("b"), config_map("d", namespace="other"))
    with store.transaction() as transaction:
        assert names(transaction.list("configmaps").objects) == ["b", "d"]
        transaction.create(key("c"), config_map("c"))
        transaction.create(key("a"), config_map("a"))
        transaction.delete(key("b"))
        assert names(transaction.list("configmaps").objects) == ["a", "c", "d"]
        assert names(transaction.list("configmaps", "default").objects) == ["a", "c"]
        assert transaction.get(key("b")) is None
        assert transaction.revision == 5
    assert names(store.list("configmaps").objects) == ["a", "c", "d"]


@pytest.mark.parametrize("refresh", [False, True])
def test_objects_that_were_read_ahead_are_as_others(store: Store, refresh: bool) -> None:
    create(store, *(config_map(name) for name in "abcd"))
    with store.transaction() as transaction:
        transaction.delete(key("d"))
    with transaction_of(store, refresh=refresh) as transaction:
        transaction.update(key("b"), config_map("b", labels={"x": "own"}))
        transaction.read_ahead([key(name) for name in "abcdx"])
        assert transaction.get(key("a")) == config_map("a", resourceVersion="1")
        assert transaction.get(key("b")) == config_map(
            "b", labels={"x": "own"}, resourceVersion="6"
        )
        assert transaction.get(key("d")) is None
        assert transaction.get(key("x")) is None
        transaction.update(key("c"), config_map("c", labels={"x": "y"}))
        transaction.delete(key("a"))
        transaction.create(key("d"), config_map("d"))
        assert [obj["metadata"]["name"] for obj in transaction.list("configmaps").objects] == [
            "b",
            "c",
            "d",
        ]
    assert told(store, 5) == [
        (6, "MODIFIED", "b"),
        (7, "MODIFIED", "c"),
        (8, "DELETED", "a"),
        (9, "ADDED", "d"),
    ]
    assert disagreements(store) == []


def test_lists_are_in_key_order_and_by_namespace(store: Store) -> None:
    create(
        store,
        *(
            config_map(name, namespace=namespace)
            for namespace in ("z", "b")
            for name in ("n-10", "n-2", "n")
        ),
    )
    listed = [
        (obj["metadata"]["namespace"], obj["metadata"]["name"])
        for obj in store.list("configmaps").objects
    ]
    assert listed == [
        (namespace, name) for namespace in ("b", "z") for name in ("n", "n-10", "n-2")
    ]
    assert len(store.list("configmaps", "b").objects) == 3
    assert store.list("configmaps", "c").objects == []


def test_object_must_carry_name_of_its_key(store: Store) -> None:
    with store.transaction() as transaction:
        with pytest.raises(ValueError, match="name"):
            transaction.create(key("a"), config_map("b"))
        with pytest.raises(ValueError, match="namespace"):
            transaction.create(key("a"), config_map("a", namespace="other"))
        with pytest.raises(ValueError, match="JSON"):
            transaction.create(key("a"), config_map("a", x=float("nan")))


def test_transactions_do_not_nest(store: Store) -> None:
    with store.transaction(), pytest.raises(RuntimeError, match="nest"), store.transaction():
        pass


def test_changes_are_in_order_with_state_after_them(store: Store) -> None:
    create(store, config_map("a"), config_map("b"))
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2"))
        transaction.delete(key("b"))
    assert told(store, 2) == [(3, "MODIFIED", "a"), (4, "DELETED", "b")]
    modified, deleted = changes(store, 2)
    assert modified.object == config_map("a", "2", resourceVersion="3")
    assert deleted.object == config_map("b", resourceVersion="4")
    assert changes(store, 4) == []


def test_changes_of_one_object_are_merged(store: Store) -> None:
    create(store, config_map("a"))
    for value in "23":
        with store.transaction() as transaction:
            transaction.update(key("a"), config_map("a", value))
    if isinstance(store, StrangeStore):  # a store may merge them, and need not
        assert told(store, 1) == [(2, "MODIFIED", "a"), (3, "MODIFIED", "a")]
        return
    assert told(store, 0) == [(3, "ADDED", "a")]
    assert told(store, 1) == [(3, "MODIFIED", "a")]


def test_writes_of_one_object_in_a_transaction_are_one_change(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.create(key("a"), config_map("a"))
        transaction.update(key("a"), config_map("a", "2"))
    assert told(store, 0) == [(1 if counts_objects(store) else 2, "ADDED", "a")]


def test_replacing_object_by_another_of_its_name_is_deletion_and_addition(store: Store) -> None:
    create(store, config_map("a", uid="1"))
    with store.transaction() as transaction:
        transaction.delete(key("a"))
        transaction.create(key("a"), config_map("a", uid="2"))
    assert told(store, 1) == [(2, "DELETED", "a"), (3, "ADDED", "a")]
    assert [change.object["metadata"]["uid"] for change in changes(store, 1)] == ["1", "2"]


def test_change_log_forgets_old_revisions(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(store, EtcdStore):
        pytest.skip("etcd forgets when somebody compacts it: tests/storage/etcd/test_store.py")
    for module in (commit_files, state):
        monkeypatch.setattr(module, "LOG_LENGTH", 3)
        monkeypatch.setattr(module, "LOG_SLACK", 2)
    for number in range(6):
        create(store, config_map(f"n{number}"))
    assert told(store, 3) == [(4, "ADDED", "n3"), (5, "ADDED", "n4"), (6, "ADDED", "n5")]
    with pytest.raises(CompactedError):
        changes(store, 2)


def test_revision_beyond_counter_is_compacted(store: Store) -> None:
    with pytest.raises(CompactedError):
        changes(store, 1)


def test_volatile_object_can_be_updated_and_deleted(store: Store) -> None:
    create(store, event("e"), resource="events")
    with store.transaction() as transaction:
        transaction.update(Key("events", "default", "e"), {**event("e"), "count": 2})
    with store.transaction() as transaction:
        assert transaction.delete(Key("events", "default", "e"))["count"] == 2
    assert store.list("events").objects == []


def test_update_that_changes_nothing_takes_no_revision(store: Store) -> None:
    create(store, config_map("a"))
    with store.transaction() as transaction:
        same = transaction.update(key("a"), config_map("a", resourceVersion="1"))
    assert same["metadata"]["resourceVersion"] == "1"
    assert (store.revision, changes(store, 1)) == (1, [])


def test_deleted_object_is_gone_and_returned(store: Store) -> None:
    create(store, config_map("a"))
    with store.transaction() as transaction:
        assert transaction.delete(key("a")) == config_map("a", resourceVersion="1")
    assert store.get(key("a")) is None
    assert (resources(store), namespaces(store)) == ([], [])


def test_exception_in_transaction_leaves_everything_as_it_was(store: Store) -> None:
    create(store, config_map("a"))
    with pytest.raises(RuntimeError), store.transaction() as transaction:  # noqa: PT012
        transaction.update(key("a"), config_map("a", "2"))
        transaction.create(key("b"), config_map("b"))
        store.set_values({"position": "7"})
        store.set_values(settings={"seed": 7})
        raise RuntimeError
    assert store.list("configmaps") == (1, [config_map("a", resourceVersion="1")], ())
    assert store.meta("position") is None
    assert store.settings() == {"formatVersion": 1}
    assert told(store, 0) == [(1, "ADDED", "a")]


def test_object_given_to_a_transaction_may_be_changed_after_it(store: Store) -> None:
    given = config_map("a")
    create(store, given)
    given["data"]["a"] = "changed"
    assert store.get(key("a"))["data"] == {"a": "1"}  # type: ignore[index]


def test_whole_floats_are_stored_as_integers(store: Store) -> None:
    create(store, {**config_map("a"), "data": {"a": 2.0, "b": [1.5]}})
    assert repr(store.get(key("a"))["data"]) == "{'a': 2, 'b': [1.5]}"  # type: ignore[index]


def test_resources_and_namespaces_are_those_of_live_objects(open_new: OpenNew) -> None:
    now = [0.0]
    store = open_new(now=lambda: now[0])
    create(store, {"kind": "Node", "metadata": {"name": "n"}}, resource="nodes")
    create(store, event("e"), resource="events")
    create(store, config_map("a", namespace="z"), config_map("a", namespace="b"))
    assert (resources(store, now[0]), namespaces(store)) == (
        ["configmaps", "events", "nodes"],
        ["b", "z"],
    )
    now[0] = 4000
    assert (resources(store, now[0]), namespaces(store)) == (["configmaps", "nodes"], ["b", "z"])


def test_revisions_taken_by_writes_that_come_to_nothing_are_not_given_again(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.create(key("a"), config_map("a"))
        transaction.delete(key("a"))
    create(store, config_map("b"))
    assert told(store, 0) == [(1 if counts_objects(store) else 3, "ADDED", "b")]


# --- following a store ---


def write_history(store: Store) -> None:
    """Create, change, delete and make anew, in transactions of one object and of several."""
    create(store, *(config_map(name) for name in "abcd"))
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2"))
        transaction.delete(key("b"))
        transaction.create(key("e"), config_map("e"))
    with store.transaction() as transaction:
        transaction.delete(key("c"))
        transaction.create(key("c"), config_map("c", "2"))
    with store.transaction() as transaction:
        transaction.delete(key("d"))


def apply(values: dict[str, str], changed: Iterable[Change]) -> None:
    """Take changes into the values of ConfigMaps by name, as a cache does."""
    for change in changed:
        if change.type == "DELETED":
            values.pop(change.key.name, None)  # it may be gone before anybody has heard of it
        else:
            assert (change.type == "ADDED") == (change.key.name not in values)
            values[change.key.name] = change.object["data"]["a"]


@pytest.mark.parametrize("seen", range(13))
def test_follower_that_stops_at_any_revision_goes_on_from_there(store: Store, seen: int) -> None:
    values: dict[str, str] = {}
    followed = 0

    def follow() -> None:
        nonlocal followed
        part = store.changes(followed)
        apply(values, part.changes)
        assert part.revision >= followed
        followed = part.revision

    create(store, *(config_map(name) for name in "abcd"))
    for _ in range(min(seen, 5)):
        follow()
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "2"))
        transaction.delete(key("b"))
        transaction.create(key("e"), config_map("e"))
    for _ in range(max(seen - 5, 0)):
        follow()
    with store.transaction() as transaction:
        transaction.delete(key("c"))
        transaction.create(key("c"), config_map("c", "2"))
    while followed < store.revision:
        follow()
    assert values == {"a": "2", "c": "2", "d": "1", "e": "1"}


def test_commits_that_a_listener_hears_of_lead_from_revision_to_revision(store: Store) -> None:
    values: dict[str, str] = {}
    revisions = [0]

    def hear(commit: CommittedChanges) -> None:
        assert commit.base == revisions[-1]
        assert all(commit.base < change.revision <= commit.revision for change in commit.changes)
        apply(values, commit.changes)
        revisions.append(commit.revision)

    store.watch(hear)
    write_history(store)
    assert values == {"a": "2", "c": "2", "e": "1"}
    assert revisions[-1] == store.revision
    assert sorted(set(revisions)) == revisions


def test_commit_without_changes_is_not_told_to_the_listener(store: Store) -> None:
    create(store, config_map("a"))
    heard: list[CommittedChanges] = []
    store.watch(heard.append)
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a"))
    with store.transaction():
        pass
    assert [commit.changes for commit in heard if not commit.changes] == []


def test_state_after_values_alone_were_set_has_them(store: Store) -> None:
    create(store, config_map("a"))
    assert store.state().meta_value("position") is None
    store.set_values({"position": "1"}, settings={"seed": 5})
    state = store.state()
    assert state.meta_value("position") == "1"
    assert state.settings["seed"] == 5


def test_state_is_where_the_change_log_goes_on_from(store: Store) -> None:
    create(store, config_map("a"), config_map("b"))
    known = store.state()
    values = {
        record.key.name: record.object["data"]["a"] for record in known.records("configmaps", None)
    }
    with store.transaction() as transaction:
        transaction.delete(key("a"))
        transaction.create(key("c"), config_map("c"))
    apply(values, changes(store, known.revision))
    assert values == {"b": "1", "c": "1"}
    assert [record.key.name for record in known.records("configmaps", None)] == ["a", "b"]


# --- volatile objects ---


def test_volatile_object_expires_before_the_next_write(open_new: OpenNew) -> None:
    now = [1000.0]
    store = open_new(now=lambda: now[0])
    create(store, event("old"), resource="events")
    now[0] += 3000
    create(store, event("new"), resource="events")
    now[0] += 1000
    assert names(store.list("events").objects) == ["new"]
    assert store.get(Key("events", "default", "old")) is None
    assert store.revision == 2
    create(store, config_map("a"))
    assert told(store, 2) == [(3, "DELETED", "old"), (4, "ADDED", "a")]


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 2, 3), (3,)])
def test_revisions_of_expiry_do_not_depend_on_how_writes_are_grouped(
    open_new: OpenNew, cuts: tuple[int, ...]
) -> None:
    now = [0.0]
    store = open_new(now=lambda: now[0])
    steps = [
        (0.0, "events", event("e1")),
        (10.0, "events", event("e0")),
        (3605.0, "configmaps", config_map("a")),
        (9000.0, "configmaps", config_map("b")),
    ]
    while steps:
        count = next((cut for cut in cuts if cut < len(steps)), len(steps))
        with store.transaction() as transaction:
            for moment, resource, obj in steps[:count]:
                now[0] = moment
                transaction.create(Key(resource, "default", obj["metadata"]["name"]), obj)
        steps = steps[count:]
    versions = [obj["metadata"]["resourceVersion"] for obj in store.list("configmaps").objects]
    if counts_objects(store):  # what was over within its transaction has none
        assert [name for _, change, name in told(store, 0) if change == "ADDED"] == ["a", "b"]
        assert int(versions[0]) < int(versions[1]) == store.revision
        return
    assert (versions, store.revision) == (["4", "6"], 6)


def test_expired_object_can_be_made_again_within_a_transaction(open_new: OpenNew) -> None:
    now = [0.0]
    store = open_new(now=lambda: now[0])
    create(store, event("e"), resource="events")
    with store.transaction() as transaction:
        now[0] = 5000.0
        assert transaction.list("events").objects == []
        with pytest.raises(MissingError):
            transaction.update(Key("events", "default", "e"), event("e"))
        transaction.create(Key("events", "default", "e"), event("e"))
    assert told(store, 1) == [(2, "DELETED", "e"), (3, "ADDED", "e")]
    now[0] = 8000.0
    assert names(store.list("events").objects) == ["e"]


def test_write_removes_a_few_expired_objects_and_the_next_ones_the_others(
    open_new: OpenNew,
) -> None:
    now = [0.0]
    store = open_new(now=lambda: now[0])
    events = [f"e{number:03}" for number in range(EXPIRED_WITH_A_WRITE + 2)]
    with store.transaction() as transaction:
        for name in events:
            transaction.create(Key("events", "default", name), event(name))
    since, now[0] = store.revision, 5000.0
    with store.transaction() as transaction:
        transaction.create(Key("events", "default", events[-1]), event(events[-1]))
    assert names(store.list("events").objects) == events[-1:]
    first = [event for event in told(store, since) if event[1] == "DELETED"]
    assert [name for *_, name in first] == [events[-1], *events[:EXPIRED_WITH_A_WRITE]]
    create(store, config_map("a"))
    assert [name for _, change, name in told(store, since) if change == "DELETED"] == [
        events[-1],
        *events[:-1],
    ]
    assert names(store.list("events").objects) == events[-1:]


# --- settings, small values, locks ---


def test_settings_change_with_the_transaction(store: Store) -> None:
    store.set_values(settings={"seed": 7, "clock": "2026-01-01T00:00:00Z"})
    assert store.settings() == {"formatVersion": 1, "seed": 7, "clock": "2026-01-01T00:00:00Z"}
    with store.transaction() as transaction:
        store.set_values(settings={"clock": "2026-01-02T00:00:00Z"})
        transaction.create(key("a"), config_map("a"))
        assert store.settings()["clock"] == "2026-01-02T00:00:00Z"
    store.set_values(settings={"seed": None})
    assert store.settings() == {"formatVersion": 1, "clock": "2026-01-02T00:00:00Z"}
    assert store.revision == 1


def test_meta_value_set_in_a_transaction_is_read_in_it(store: Store) -> None:
    store.set_values({"position": "1"})
    with store.transaction():
        store.set_values({"position": "2", "beside": "b"})
        assert store.meta("position") == "2"
    assert (store.meta("position"), store.meta("beside")) == ("2", "b")
    store.set_values({"position": None, "beside": None})
    assert (store.meta("position"), store.meta("beside")) == (None, None)


def test_named_lock_has_one_holder(store: Store) -> None:
    assert store.holder("manager.lock") is None
    with store.hold("manager.lock") as is_lost:
        assert not is_lost()
        assert "process" in (store.holder("manager.lock") or "")
        with (
            pytest.raises(LockTimeoutError, match=r"manager\.lock is held by"),
            store.hold("manager.lock"),
        ):
            pass
        create(store, config_map("a"))
        with store.hold("other.lock"):
            pass
    assert store.holder("manager.lock") is None
    with store.hold("manager.lock"):
        pass


def test_named_lock_is_given_back_after_an_exception(store: Store) -> None:
    with pytest.raises(KeyError), store.hold("manager.lock"):
        raise KeyError
    assert store.holder("manager.lock") is None
    with store.hold("manager.lock"):
        pass


# --- forks ---


def test_fork_and_origin_do_not_see_each_others_writes(store: Store) -> None:
    create(store, config_map("a"), config_map("b"))
    store.set_values({"position": "1"})
    fork = fork_of(store)
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", "origin"))
        transaction.delete(key("b"))
        store.set_values({"position": "2"})
        store.set_values(settings={"seed": 1})
    with fork.transaction() as transaction:
        transaction.create(key("c"), config_map("c"))
        fork.set_values({"position": "3"})
    assert [(names(s.list("configmaps").objects), s.meta("position")) for s in (store, fork)] == [
        (["a"], "2"),
        (["a", "b", "c"], "3"),
    ]
    assert fork.get(key("a")) == config_map("a", resourceVersion="1")
    assert (store.settings(), fork.settings()) == (
        {"formatVersion": 1, "seed": 1},
        {"formatVersion": 1},
    )
    assert (told(store, 2), told(fork, 1)) == (
        [(3, "MODIFIED", "a"), (4, "DELETED", "b")],
        [(2, "ADDED", "b"), (3, "ADDED", "c")],
    )


def test_fork_within_a_transaction_is_of_what_is_committed(store: Store) -> None:
    create(store, config_map("a"))
    with store.transaction() as transaction:
        transaction.create(key("b"), config_map("b"))
        fork = fork_of(store)
        create(fork, config_map("c"))
    assert names(store.list("configmaps").objects) == ["a", "b"]
    assert names(fork.list("configmaps").objects) == ["a", "c"]


def test_fork_keeps_events_that_expire_and_the_change_log(open_new: OpenNew) -> None:
    now = [0.0]
    store = open_new(now=lambda: now[0])
    create(store, event("e"), resource="events")
    create(store, config_map("a"))
    fork = fork_of(store)
    assert told(fork, 0) == [(1, "ADDED", "e"), (2, "ADDED", "a")]
    now[0] = 4000.0
    assert fork.list("events").objects == []
    create(fork, config_map("b"))
    assert told(fork, 2) == [(3, "DELETED", "e"), (4, "ADDED", "b")]
    with pytest.raises(CompactedError):
        changes(fork, 5)


def test_fork_has_locks_of_its_own(store: Store) -> None:
    with store.hold("manager.lock"):
        fork = fork_of(store)
        assert fork.holder("manager.lock") is None
        with fork.hold("manager.lock"), fork.transaction():
            pass


def test_chain_of_forks_stays_readable(store: Store) -> None:
    create(store, *(config_map(f"n{number:03}") for number in range(200)))
    fork = store
    for number in range(1000):
        fork = fork_of(fork)
        with fork.transaction() as transaction:
            transaction.update(key("n100"), config_map("n100", str(number)))
    assert fork.get(key("n100"))["data"] == {"a": "999"}  # type: ignore[index]
    assert len(fork.list("configmaps").objects) == 200
    assert told(fork, 200) == [(1200, "MODIFIED", "n100")]
    assert store.revision == 200


# --- the timeline ---


def test_each_write_has_entry_in_order_of_writes(store: Store) -> None:
    record(store, lambda: 1.5)
    with store.transaction() as transaction:
        transaction.create(key("a"), config_map("a"))
        transaction.create(key("b"), config_map("b"))
        transaction.update(key("a"), config_map("a", "2"))
        transaction.update(key("a"), config_map("a", "3"))
    with store.transaction() as transaction:
        transaction.delete(key("a"))
        transaction.create(key("a"), config_map("a", "4"))
    # where an object has one revision in a transaction, the writes of it have that of the object
    revisions = [1, 1, 2, 2, 3, 4] if counts_objects(store) else [1, 2, 3, 4, 5, 6]
    assert [revision for revision, *_ in history(store)] == revisions
    assert [entry[1:] for entry in history(store)] == [
        ("a", None, ("1",)),
        ("b", None, ("1",)),
        ("a", ("1",), ("2",)),
        ("a", ("2",), ("3",)),
        ("a", ("3",), None),
        ("a", None, ("4",)),
    ]
    assert {(entry.at, entry.is_outside, entry.note) for entry in timeline_of(store)} == {
        (1_500_000, False, "")
    }
    assert history(store, after=revisions[3]) == history(store)[4:]


def test_grouping_of_writes_makes_no_difference_to_timeline(open_new: OpenNew) -> None:
    histories = []
    for size in (1, 3, 12):
        now = [0.0]
        store = open_new()
        record(store, lambda now=now: now[0])
        writes = [(number % 3, str(number)) for number in range(12)]
        for start in range(0, 12, size):
            with store.transaction() as transaction:
                for name, value in writes[start : start + size]:
                    now[0] += 1
                    write = transaction.create if int(value) < 3 else transaction.update
                    write(key(f"n{name}"), config_map(f"n{name}", value))
        entries = timeline_of(store)
        if counts_objects(store):
            entries = [entry._replace(revision=number) for number, entry in enumerate(entries)]
        histories.append(entries)
    assert len(histories[0]) == 12
    assert histories[0] == histories[1] == histories[2]


def test_object_of_one_transaction_alone_is_on_timeline(store: Store) -> None:
    record(store)
    with store.transaction() as transaction:
        transaction.create(key("a"), config_map("a"))
        transaction.delete(key("a"))
    last = 1 if counts_objects(store) else 2
    assert history(store) == [(1, "a", None, ("1",)), (last, "a", ("1",), None)]


def test_write_that_shows_nothing_has_no_entry(store: Store) -> None:
    record(store)
    create(store, config_map("a"))
    create(store, event("e"), resource="events")
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", labels={"x": "y"}))
    assert history(store) == [(1, "a", None, ("1",))]


def test_failed_transaction_leaves_nothing_on_timeline(store: Store) -> None:
    record(store)
    with pytest.raises(ZeroDivisionError), store.transaction() as transaction:  # noqa: PT012
        transaction.create(key("a"), config_map("a"))
        raise ZeroDivisionError
    assert history(store) == []


def test_store_without_recorder_has_no_timeline(store: Store) -> None:
    create(store, config_map("a"))
    assert timeline_of(store) == []


def test_entries_beyond_their_time_are_left_out(store: Store) -> None:
    now = [0.0]
    record(store, lambda: now[0], keep=100.0)
    for number in range(200):
        now[0] = float(number)
        create(store, config_map(f"n{number:03}"))
        assert [entry.at for entry in timeline_of(store)] == [
            second * 1_000_000 for second in range(max(0, number - 100), number + 1)
        ]
    assert history(store, since=150_000_000)[0] == (151, "n150", None, ("1",))
    now[0] = 1000.0
    assert history(store) == []


def test_entries_beyond_their_number_are_left_out(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "TIMELINE_LENGTH", 10)
    monkeypatch.setattr(timeline, "TIMELINE_SLACK", 4)
    record(store)
    for number in range(30):
        create(store, config_map(f"n{number:02}"))
        assert [entry.revision for entry in timeline_of(store)] == list(
            range(max(1, number - 8), number + 2)
        )
    record(store, keep=inf)
    assert len(timeline_of(store)) in range(10, 15)


def test_clock_set_back_cuts_timeline_at_last_older_entry(store: Store) -> None:
    now = [0.0]
    record(store, lambda: now[0])
    for name, moment in (("a", 50.0), ("b", 10.0), ("c", 20.0)):
        now[0] = moment
        create(store, config_map(name))
    assert [name for _, name, *_ in history(store, since=15_000_000)] == ["c"]
    assert [name for _, name, *_ in history(store, since=5_000_000)] == ["a", "b", "c"]


def test_fork_and_origin_share_timeline_until_the_fork(store: Store) -> None:
    record(store)
    create(store, config_map("a"))
    fork = fork_of(store)
    record(fork)
    for each, name in ((store, "of origin"), (fork, "of fork")):
        create(each, config_map(name))
    assert [name for _, name, *_ in history(store)] == ["a", "of origin"]
    assert [name for _, name, *_ in history(fork)] == ["a", "of fork"]
    assert history(fork_of(fork)) == history(fork)


def test_fork_forgets_what_it_shares(store: Store) -> None:
    now = [0.0]
    record(store, lambda: now[0], keep=100.0)
    create(store, config_map("a"))
    now[0] = 50.0
    fork = fork_of(store)
    record(fork, lambda: now[0], keep=100.0)
    create(fork, config_map("b"))
    now[0] = 120.0
    create(fork, config_map("c"))
    assert [name for _, name, *_ in history(fork)] == ["b", "c"]
    now[0] = 300.0
    create(fork, config_map("d"))
    assert [name for _, name, *_ in history(fork)] == ["d"]


# --- threads, which a store in memory may have several of ---


@pytest.mark.parametrize("is_fork_of_folder", [False, True])
def test_reader_in_another_thread_sees_whole_commits_only(
    tmp_path: Path, is_fork_of_folder: bool
) -> None:
    store: Store = MemoryStore()
    if is_fork_of_folder:
        FolderStore.initialize(tmp_path / "state", {})
        store = FolderStore(tmp_path / "state")
    create(store, config_map("a", "0"), config_map("b", "0"))
    fork = fork_of(store)
    store.close()
    seen: list[tuple[int, int]] = []
    is_over = threading.Event()

    def read() -> None:
        since = fork.revision
        while not is_over.is_set():
            listed = fork.list("configmaps")
            since = max((change.revision for change in changes(fork, since)), default=since)
            seen.append((listed.revision, len({obj["data"]["a"] for obj in listed.objects})))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(300):
        with fork.transaction() as transaction:
            for name in ("a", "b"):
                transaction.update(key(name), config_map(name, str(number + 1)))
    is_over.set()
    reader.join()
    assert {count for _, count in seen} <= {1}
    assert sorted(seen) == seen


def test_writer_waits_for_the_transaction_of_another_thread() -> None:
    store = MemoryStore(lock_timeout=0.05)
    has_begun, may_end = threading.Event(), threading.Event()

    def write() -> None:
        with store.transaction() as transaction:
            has_begun.set()
            transaction.create(key("a"), config_map("a"))
            may_end.wait()

    writer = threading.Thread(target=write)
    writer.start()
    has_begun.wait()
    with pytest.raises(LockTimeoutError, match="held by another thread"), store.transaction():
        pass
    with pytest.raises(LockTimeoutError):
        store.set_values({"position": "1"})
    assert store.get(key("a")) is None
    may_end.set()
    writer.join()
    create(store, config_map("b"))
    assert names(store.list("configmaps").objects) == ["a", "b"]


def test_many_threads_lose_no_write() -> None:
    store = MemoryStore()
    create(store, {**config_map("a"), "data": {"n": 0}})

    def add() -> None:
        for _ in range(20):
            with store.transaction() as transaction:
                obj = transaction.get(key("a"))
                assert obj is not None
                transaction.update(
                    key("a"), {**config_map("a"), "data": {"n": obj["data"]["n"] + 1}}
                )

    threads = [threading.Thread(target=add) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get(key("a"))["data"] == {"n": 1000}  # type: ignore[index]
    assert store.revision == 1001
