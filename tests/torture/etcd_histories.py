"""Eight processes that write and read a few objects in etcd, and four that watch them, while
processes or etcd itself are killed.

A point is a round on an etcd of its own. The history must be linearizable, as in a folder
(``linear``); besides, etcd remembers all that was written, which tells more: every write that was
answered is there once, at its revision; none is there that nobody has tried, or that was said not
to be done. Of the watchers two hear of every event exactly once, also the one that ends its watch
after each; two ask a store for changes, and must have the objects of the revision that they are
told after each answer.

undisturbed  nothing happens
killed       writers are killed
restarted    the only etcd is killed and started again, or hangs for a while
members      of three members the leader is killed, hangs or hands over, others or all are restarted
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from kubepy.storage.errors import StorageError
from kubepy.storage.etcd.address import parse_address
from kubepy.storage.etcd.client import EtcdClient
from kubepy.storage.etcd.errors import UnreachableError
from kubepy.storage.etcd.keys import EtcdKeys
from kubepy.storage.etcd.notices import KeyEvent
from kubepy.storage.etcd.store import EtcdStore
from kubepy.storage.model import Change, CommittedChanges
from kubepy.storage.store import Store
from tests.etcd import EtcdCluster, EtcdServer

from .history import CONFLICT, CREATE, DELETE, NEVER, OK, OVERTAKEN, UNKNOWN, UPDATE
from .linear import COUNT, COUNTER, KILLS, Words, Worker, check_operations, read_notes, run_workers
from .runner import Loss, Outcome, Point, Section
from .scenarios import config_map, key

SETTINGS = {"clock": "2026-09-21T14:13:20Z", "seed": 7}
PREFIX = "/torture"
END = "the-end"  # the object that is written last
UNREACHED = "unreached"  # nothing was done
FAULTS = 3
PAUSE = 0.05  # the longest between two operations where etcd is disturbed
PATIENCE = 30.0  # seconds in which watchers must have heard of everything
ROUNDS = 200
MEMBERS = "members"
RESTARTED = "restarted"


class Write(NamedTuple):
    """What etcd remembers of a write; ``value`` None: the object was deleted."""

    revision: int
    name: str
    value: str | None


def open_store(address: str) -> EtcdStore:
    return EtcdStore(parse_address(address, {}))


# --- writers


class EtcdWorker(Worker):
    """A process that uses a cluster in etcd.

    :param pause: the longest between two operations.
    """

    operations = 32

    def __init__(self, address: str, pause: float, notes: Path, seed: str) -> None:
        super().__init__(self._open_store, notes, seed)
        self._address = address
        self._pause = pause
        self._written = 0

    def _open_store(self) -> Store:
        if self._store is not None:
            self._store.close()
        store = open_store(self._address)
        store.watch(self._hear)
        if self._chance.random() < 0.3:
            store.wait_for_change(0.0)  # from now on it has everything in memory
        return store

    def _hear(self, commit: CommittedChanges) -> None:
        self._written = commit.revision

    def _revision(self, predicted: int) -> int:
        return self._written

    def _do(self, kind: str, name: str, value: str, expected: int) -> Words:
        time.sleep(self._chance.uniform(0.0, self._pause))
        try:
            result = super()._do(kind, name, value, expected)
        except UnreachableError:
            return {"result": UNREACHED}
        except StorageError:
            return {"result": UNKNOWN, "end": NEVER}
        if result["result"] == CONFLICT:
            return {"result": OVERTAKEN}
        return result


# --- watchers


class Notes:
    """Lines of JSON in a file."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115

    def add(self, words: Any) -> None:
        self._file.write(f"{json.dumps(words)}\n")
        self._file.flush()


def write_of(keys: EtcdKeys, event: KeyEvent) -> Write:
    """Return the write that a watch of etcd has told of."""
    place = keys.parse(event.kv.key)
    assert place is not None
    value = None if event.is_delete else json.loads(event.kv.value)["data"]["a"]
    return Write(event.kv.mod_revision, place.name, value)


def change_of(change: Change) -> Write:
    """Return the write that a store has told of."""
    value = None if change.type == "DELETED" else change.object["data"]["a"]
    return Write(change.revision, change.key.name, value)


def watch_all(address: str, base: int, path: Path) -> None:
    """Note all events of one watch, which is never ended."""
    _watch(address, base, path, is_cut=False)


def watch_one_by_one(address: str, base: int, path: Path) -> None:
    """Note the first event of a watch, and begin another one after it."""
    _watch(address, base, path, is_cut=True)


def _watch(address: str, base: int, path: Path, *, is_cut: bool) -> None:
    notes = Notes(path)
    parsed = parse_address(address, {})
    keys = EtcdKeys(parsed.prefix)
    client = EtcdClient(parsed)
    start, end = keys.range_of("configmaps", None)
    revision = base
    while True:
        try:
            watch = client.watch(start, end, start_revision=revision + 1)
            try:
                while (batch := watch.next_batch()) is not None:
                    events = batch.events[:1] if is_cut else batch.events
                    for event in events:
                        write = write_of(keys, event)
                        notes.add(write)
                        revision = write.revision
                        if write.name == END:
                            return
                    if is_cut and events:
                        break
            finally:
                watch.close()
        except UnreachableError:
            continue


def ask_for_changes(address: str, base: int, path: Path) -> None:
    """Note what a store answers that is asked for changes again and again."""
    _follow(address, base, path, is_in_memory=False)


def follow_in_memory(address: str, base: int, path: Path) -> None:
    """Note the changes of a store that follows etcd, and waits for them."""
    _follow(address, base, path, is_in_memory=True)


def _follow(address: str, base: int, path: Path, *, is_in_memory: bool) -> None:
    notes = Notes(path)
    store = open_store(address)
    revision = base
    while True:
        if not (is_in_memory and store.wait_for_change(0.5)):
            time.sleep(0.005)
        try:
            told = store.changes(revision)
        except StorageError:
            continue
        writes = [change_of(change) for change in told.changes]
        notes.add([told.revision, writes])
        revision = told.revision
        if any(write.name == END for write in writes):
            return


WATCHERS = (watch_all, watch_one_by_one, ask_for_changes, follow_in_memory)


def start_watcher(watcher: Callable[[str, int, Path], None], *arguments: Any) -> int:
    child = os.fork()
    if child:
        return child
    try:
        watcher(*arguments)
        os._exit(0)
    except BaseException as error:
        path: Path = arguments[-1]
        path.with_suffix(".failed").write_text(f"{type(error).__name__}: {error}")
        os._exit(1)


def wait_for_watchers(watchers: dict[int, Path]) -> Iterator[str]:
    """Wait until all have ended; yield what went wrong."""
    end = time.monotonic() + PATIENCE
    for child, path in watchers.items():
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                yield f"{path.stem} has not heard of everything within {PATIENCE:g} s"
                break
            time.sleep(0.01)
        else:
            if ended[1]:
                yield f"{path.stem} ended: {path.with_suffix('.failed').read_text()}"


# --- faults


def disturb_server(server: EtcdServer, chance: random.Random) -> None:
    for _ in range(FAULTS):
        time.sleep(chance.uniform(0.05, 0.3))
        if chance.random() < 0.3:
            server.pause()
            time.sleep(chance.uniform(0.1, 1.0))
            server.resume()
        elif chance.random() < 0.3:
            server.stop()
            server.start()
        else:
            server.restart()


def disturb_members(cluster: EtcdCluster, chance: random.Random) -> None:
    faults = (
        lambda: cluster.leader().restart(),
        cluster.move_leader,
        lambda: chance.choice(cluster.members).restart(),
        cluster.restart,
        lambda: pause(cluster.leader(), chance.uniform(0.5, 2.5)),
    )
    for _ in range(FAULTS):
        time.sleep(chance.uniform(0.05, 0.3))
        chance.choice(faults)()


def pause(server: EtcdServer, seconds: float) -> None:
    server.pause()
    time.sleep(seconds)
    server.resume()


# --- checks


def read_truth(address: str, base: int) -> list[Write]:
    """Return all that was written after a revision, as etcd remembers it."""
    parsed = parse_address(address, {})
    keys = EtcdKeys(parsed.prefix)
    truth: list[Write] = []
    with closing(EtcdClient(parsed)) as client:
        watch = client.watch(*keys.range_of("configmaps", None), start_revision=base + 1)
        while not truth or truth[-1].name != END:
            batch = watch.next_batch(parsed.timeout)
            assert batch is not None
            truth += [write_of(keys, event) for event in batch.events]
        watch.close()
    return truth


def check_writes(truth: list[Write], words: list[Words]) -> Iterator[str]:
    """Compare what etcd remembers with what the writers say."""
    by_revision = {write.revision: write for write in truth}
    unexplained = dict(by_revision)
    for word in words:
        if word["result"] != OK or word["kind"] not in (CREATE, UPDATE, DELETE, COUNT):
            continue
        name = COUNTER if word["kind"] == COUNT else word["key"]
        value, revision = word["state"]
        write = Write(revision, name, None if word["kind"] == DELETE else value)
        if by_revision.get(revision) != write:
            yield f"{write} was answered, but {by_revision.get(revision)} was written"
        if unexplained.pop(revision, None) is None:
            yield f"revision {revision} was given to two writers"
    unknown = Counter(_trace(word) for word in words if word["result"] == UNKNOWN)
    for write in unexplained.values():
        trace = (write.name, None if write.name == COUNTER else write.value)
        unknown[trace] -= 1
        if unknown[trace] < 0 and write.name != END:
            yield f"{write} was written, though nobody can have done it"
    counts = [write.value for write in truth if write.name == COUNTER]
    if counts != [str(number + 1) for number in range(len(counts))]:
        yield f"the counter was {counts}"


def _trace(word: Words) -> tuple[str, str | None]:
    """Return what a write leaves behind if it was done: a name, and a value that nobody else
    writes."""
    if word["kind"] == COUNT:
        return COUNTER, None
    return word["key"], None if word["kind"] == DELETE else word["value"]


def check_watcher(begin: Write, truth: list[Write], path: Path) -> Iterator[str]:
    """Compare what a watcher has heard with what happened after a first write."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    if path.stem in (watch_all.__name__, watch_one_by_one.__name__):
        heard = [Write(*line) for line in lines]
        if heard != truth:
            lost = [write for write in truth if write not in heard]
            yield f"{path.stem} heard of {len(heard)} of {len(truth)} events, and not of {lost}"
        return
    assert begin.value is not None
    known = {begin.name: begin.value}
    since = begin.revision
    for revision, told in lines:
        for write in (Write(*words) for words in told):
            if not since < write.revision <= revision or write not in truth:
                yield f"{path.stem}: between {since} and {revision} it is told {write}"
            if write.value is None:
                known.pop(write.name, None)
            else:
                known[write.name] = write.value
        since = revision
        expected = objects_at([begin, *truth], revision)
        if known != expected:
            yield f"{path.stem}: at {revision} it knows {known}, there is {expected}"


def objects_at(truth: Iterable[Write], revision: int) -> dict[str, str]:
    """Return the values of all objects at a revision."""
    objects: dict[str, str] = {}
    for write in truth:
        if write.revision > revision:
            break
        objects.pop(write.name, None)
        if write.value is not None:
            objects[write.name] = write.value
    return objects


# --- running a point


def set_up(name: str, place: Path, seed: int) -> list[Point]:
    return [Point(name, str(number)) for number in range(ROUNDS)]


def run(point: Point, place: Path, folder: Path, seed: int) -> Outcome:
    chance = random.Random(f"{seed} {point.scenario} {point.name}")
    with ExitStack() as stack:
        # etcd reserves space for its log, which would be memory in the folder of the point
        data = Path(stack.enter_context(TemporaryDirectory(prefix="kubepy-torture-etcd-")))
        disturb: Callable[[], None] = lambda: None  # noqa: E731
        server: EtcdServer | EtcdCluster
        if point.scenario == MEMBERS:
            server = stack.enter_context(EtcdCluster(data))
            disturb = partial(disturb_members, server, chance)
        else:
            server = stack.enter_context(EtcdServer(data))
            if point.scenario == RESTARTED:
                disturb = partial(disturb_server, server, chance)
        is_disturbed = point.scenario in (MEMBERS, RESTARTED)
        tries, losses = _run_round(
            point.scenario,
            server.address(PREFIX),
            folder,
            chance,
            disturb,
            PAUSE if is_disturbed else 0.0,
        )
    return Outcome(tries, [Loss(point.scenario, point.name, loss) for loss in losses])


def _run_round(
    scenario: str,
    address: str,
    folder: Path,
    chance: random.Random,
    disturb: Callable[[], None],
    pause: float,
) -> tuple[int, list[str]]:
    with closing(open_store(address)) as store:
        store.initialize(SETTINGS)
        base = store.revision
        _write(store, COUNTER, "0")
    notes = folder / "notes"
    notes.mkdir()
    watchers: dict[int, Path] = {}
    for watcher in WATCHERS:
        path = folder / watcher.__name__
        watchers[start_watcher(watcher, address, base + 1, path)] = path
    try:
        kills = KILLS if scenario == "killed" else 0
        worker = partial(EtcdWorker, address, pause)
        losses = run_workers(worker, notes, chance, kills, disturb)
        with closing(open_store(address)) as store:
            _write(store, END, "")
        losses += wait_for_watchers(watchers)
    finally:
        for child in watchers:
            _kill(child)
    words = [word for word in read_notes(notes) if word["result"] != UNREACHED]
    first, *truth = read_truth(address, base)
    losses += check_operations(words)
    losses += check_writes(truth, words)
    for path in watchers.values():
        losses += check_watcher(first, truth, path)
    return len(words) + len(truth), losses


def _write(store: EtcdStore, name: str, value: str) -> None:
    with store.transaction() as transaction:
        transaction.create(key(name), config_map(name, value))


def _kill(child: int) -> None:
    """Kill a process that may have ended already."""
    try:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        return


SCENARIOS = ("undisturbed", "killed", RESTARTED, MEMBERS)
SECTION = Section("etcd", SCENARIOS, set_up, run, minutes=4, alone=True)
