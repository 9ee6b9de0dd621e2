"""Revisions that have written no object: noted by whoever writes own keys alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import pytest

from kubepy.cli.main import main
from kubepy.storage import LockTimeoutError
from kubepy.storage.etcd import history as histories
from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.client import Compare, EtcdClient, Operation, Put, TxnResult
from kubepy.storage.etcd.history import PastChanges, read_history
from kubepy.storage.etcd.keys import EtcdKeys
from kubepy.storage.etcd.keyspace import Keyspace
from kubepy.storage.etcd.rest import Rest
from kubepy.storage.etcd.session import EtcdSession
from kubepy.storage.etcd.store import EtcdStore
from kubepy.storage.model import in_full, to_json
from tests.etcd import EtcdServer, fresh_prefix, require_etcd

from ..conftest import config_map, create, key


@pytest.fixture(scope="module")
def lone_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    """An etcd to which nobody else writes, and in which no lease of another test ends."""
    require_etcd()
    with EtcdServer(tmp_path_factory.mktemp("lone")) as server:
        yield server


class InterruptedClient(EtcdClient):
    """A client that lets something happen right before it sends a transaction."""

    def __init__(self, address: str) -> None:
        super().__init__(parse_address(address, {}))
        self.before: Callable[[], object] | None = None

    def txn(
        self,
        compares: Sequence[Compare],
        success: Sequence[Operation],
        failure: Sequence[Operation] = (),
    ) -> TxnResult:
        before, self.before = self.before, None
        if before is not None:
            before()
        return super().txn(compares, success, failure)


class Etcd:
    """A cluster in an etcd, the stores that are open, and what others write there."""

    def __init__(self, server: EtcdServer) -> None:
        self.address = server.address(fresh_prefix())
        self._stores: list[EtcdStore] = []
        self._keys = EtcdKeys(parse_address(self.address, {}).prefix)
        self.client = server.client()
        self.strangers = EtcdStore(parse_address(server.address(fresh_prefix()), {}))

    def open(self) -> EtcdStore:
        store = EtcdStore(parse_address(self.address, {}), client=InterruptedClient(self.address))
        self._stores.append(store)
        return store

    def put_object(self, name: str) -> None:
        """Write an object as a server does that knows nothing of notes."""
        value = to_json(config_map(name)).encode()
        self.client.txn([], [Put(self._keys.of(key(name)), value)])

    def close(self) -> None:
        self.client.close()
        for store in (self.strangers, *self._stores):
            store.close()


@pytest.fixture
def etcd(lone_etcd: EtcdServer) -> Iterator[Etcd]:
    etcd = Etcd(lone_etcd)
    yield etcd
    etcd.close()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The parts of etcd's history that are read."""
    noted: list[tuple[int, int]] = []

    def read_noted(keyspace: Keyspace, begin: int, end: int) -> PastChanges:
        noted.append((begin, end))
        return read_history(keyspace, begin, end)

    monkeypatch.setattr(histories, "read_history", read_noted)
    return noted


def hold_for_a_moment(store: EtcdStore) -> None:
    with store.hold("manager.lock"):
        pass


def change_names(store: EtcdStore, since: int) -> list[str]:
    return [change.key.name for change in in_full(store.changes, since).changes]


def own_writes(first: EtcdStore, second: EtcdStore) -> list[Callable[[], object]]:
    """Return what two commands write after the last object, one after the other."""
    return [
        lambda: first.set_values({"checkpoint": "1"}),
        lambda: hold_for_a_moment(first),
        lambda: second.set_values(settings={"seed": 1}),
        lambda: hold_for_a_moment(second),
        lambda: first.set_values({"checkpoint": "2"}),
    ]


def test_own_writes_alone_need_no_look_at_history(etcd: Etcd, reads: list[tuple[int, int]]) -> None:
    store = etcd.open()
    create(store, config_map("a"))
    since = store.revision
    store.set_values({"checkpoint": "1"})
    hold_for_a_moment(store)
    assert change_names(etcd.open(), since) == []
    hold_for_a_moment(etcd.open())  # goes on from the note that is there
    reader = etcd.open()
    assert reader.changes(since).revision == reader.revision == since + 5
    assert reads == []
    assert change_names(etcd.open(), since - 1) == ["a"]
    assert reads == [(since - 1, since + 5)]


@pytest.mark.parametrize("place", range(6))
def test_object_of_a_stranger_at_any_place_is_seen(etcd: Etcd, place: int) -> None:
    first, second = etcd.open(), etcd.open()
    create(first, config_map("a"))
    since = first.revision
    steps = own_writes(first, second)
    steps.insert(place, lambda: etcd.put_object("strange"))
    for step in steps:
        step()
        before = etcd.client.get(b"x")[1]
        change_names(etcd.open(), before)
    assert change_names(etcd.open(), since) == ["strange"]
    for revision in range(since, first.revision):
        known = read_history(first._keyspace, revision, first.revision).changes()
        assert etcd.open().changes(revision).changes == known


@pytest.mark.parametrize("place", range(5))
def test_object_right_before_an_own_write_is_seen(etcd: Etcd, place: int) -> None:
    first, second = etcd.open(), etcd.open()
    create(first, config_map("a"))
    since = first.revision
    for number, step in enumerate(own_writes(first, second)):
        if number == place:
            for store in (first, second):
                client = store._client
                assert isinstance(client, InterruptedClient)
                client.before = lambda: etcd.put_object("strange")
        step()
    assert change_names(etcd.open(), since) == ["strange"]


def test_two_commands_that_note_at_once_hide_nothing(
    etcd: Etcd, reads: list[tuple[int, int]]
) -> None:
    first, second = etcd.open(), etcd.open()
    create(first, config_map("a"))
    since = first.revision
    change_names(second, since)  # both know the same revision
    client = first._client
    assert isinstance(client, InterruptedClient)

    def write_beside() -> None:
        second.set_values({"checkpoint": "2"})
        etcd.put_object("strange")

    client.before = write_beside
    first.set_values({"checkpoint": "1"})
    hold_for_a_moment(first)
    assert change_names(etcd.open(), since) == ["strange"]
    assert reads


def test_writes_of_another_prefix_make_the_note_void(
    etcd: Etcd, reads: list[tuple[int, int]]
) -> None:
    store = etcd.open()
    create(store, config_map("a"))
    since = store.revision
    store.set_values({"checkpoint": "1"})
    create(etcd.strangers, config_map("b"))
    assert change_names(etcd.open(), since) == []
    assert reads == [(since + 1, since + 2)]
    assert store.revision == since + 2  # nothing is noted where others write: it would not hold


def test_gap_of_own_writes_without_notes_is_noted_by_who_reads_it(
    etcd: Etcd, reads: list[tuple[int, int]]
) -> None:
    store = etcd.open()
    create(store, config_map("a"))
    since = store.revision
    own = store._own.lock("manager.lock")
    etcd.client.txn([], [Put(own, b"somebody who died")])  # as etcd removes it with its lease
    assert change_names(etcd.open(), since) == []
    assert change_names(etcd.open(), since) == []
    assert reads == [(since, since + 1)]


def test_get_in_a_cluster_at_rest_opens_no_watch(
    lone_etcd: EtcdServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> None:
        assert main(["--state", address, *words]) == 0

    address = lone_etcd.address(fresh_prefix())
    run("init")
    run("run", "x", "--image=nginx")
    run("wait", "--for=condition=Ready", "pod/x")
    run("get", "pods")  # the controllers may have something left to do
    requests: list[str] = []
    ask = EtcdSession.ask

    def note(session: EtcdSession, path: str, *rest: Any, **options: Any) -> Any:
        requests.append(path.rpartition("/")[2])
        return ask(session, path, *rest, **options)

    def refuse(*arguments: object, **options: object) -> NoReturn:
        raise AssertionError("a watch was opened")

    monkeypatch.setattr(EtcdSession, "ask", note)
    monkeypatch.setattr(EtcdClient, "watch", refuse)
    capsys.readouterr()
    run("get", "pod", "x", "-o", "name")
    assert capsys.readouterr().out == "pod/x\n"
    # contexts, settings twice, definitions of kinds, the election, checkpoint, note, the pod
    assert requests == ["Range"] * 8


def is_true(rest: Rest, written: Sequence[int]) -> bool:
    return not any(rest.since < revision <= rest.until for revision in written)


class Play:
    """Several commands, a server and another cluster that write at random, also right before a
    command's transaction is sent."""

    def __init__(self, etcd: Etcd, seed: int) -> None:
        self._etcd = etcd
        self._choice = random.Random(seed)
        self.stores = [etcd.open() for _ in range(3)]
        self.written: list[int] = []  # the revisions of objects
        self._busy: list[EtcdStore] = []

    def act(self) -> None:
        """Let somebody do something."""
        idle = [store for store in self.stores if store not in self._busy]
        store = self._choice.choice(idle)
        client = store._client
        assert isinstance(client, InterruptedClient)
        if len(idle) > 1 and self._choice.random() < 0.4:
            client.before = self.act
        self._busy.append(store)
        kind = self._choice.choice(["own", "own", "lock", "object", "strange", "beside", "look"])
        if kind == "own":
            store.set_values({"checkpoint": str(self._choice.random())})
        elif kind == "lock" and store.holder("manager.lock") is None:
            with suppress(LockTimeoutError):
                hold_for_a_moment(store)
        elif kind == "object":
            create(store, config_map(f"n{self._choice.random()}"))
            self._note_object()
        elif kind == "strange":
            self._etcd.put_object(f"s{self._choice.random()}")
            self._note_object()
        elif kind == "beside":
            self._etcd.strangers.set_values({"a": str(self._choice.random())})
        else:
            store.changes(max(store.revision - 3, 0))
        client.before = None
        self._busy.remove(store)

    def _note_object(self) -> None:
        self.written.append(self._etcd.client.get(b"x")[1])


@pytest.mark.parametrize("seed", range(8))
def test_whatever_comes_in_between_notes_tell_the_truth(etcd: Etcd, seed: int) -> None:
    play = Play(etcd, seed)
    begin = etcd.client.get(b"x")[1]
    reader = etcd.open()
    for _ in range(30):
        play.act()
        _, noted = reader._keyspace.rest.newest()
        known = [noted, *(store._keyspace.rest._known for store in play.stores)]
        assert all(is_true(rest, play.written) for rest in known if rest is not None)
    newest = etcd.client.get(b"x")[1]
    for since in sorted({begin, *play.written, newest - 1}):
        changes = etcd.open().changes(since).changes
        assert [change.revision for change in changes] == [
            revision for revision in play.written if revision > since
        ]
