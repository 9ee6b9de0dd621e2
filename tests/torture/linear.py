"""Eight processes that write and read a few objects, some of them killed: their histories must be
linearizable.

A point is a round with a history of its own. Every process notes each operation before and after
it, with the time; it is unknown whether the last operation of a killed process happened. A counter
that all of them increment must be exact.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from kubepy.storage import ConflictError, ExistsError, MissingError
from kubepy.storage.store import Store, Transaction

from .history import (
    CONFLICT,
    CREATE,
    DELETE,
    EXISTS,
    GET,
    MISSING,
    NEVER,
    OK,
    UNKNOWN,
    UPDATE,
    Listing,
    Operation,
    State,
    check_keys,
    check_listings,
    check_revisions,
)
from .runner import Loss, Outcome, Point, Section
from .scenarios import begin, commit, config_map, key
from .views import open_store

PROCESSES = 8
OPERATIONS = 24  # of each process
KEYS = ("a", "b", "c", "d")
COUNTER = "counter"
KILLS = 3
ROUNDS = 200
LIST, COUNT = "list", "count"
CHOICES = (CREATE, UPDATE, UPDATE, DELETE, GET, GET, LIST, COUNT)


class Worker:
    """One of the eight processes: runs its operations and notes them in a file of its own."""

    operations = OPERATIONS

    def __init__(self, open_state: Callable[[], Store], notes: Path, seed: str) -> None:
        self._open = open_state
        self._chance = random.Random(seed)
        self._notes = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._name = notes.name
        self._known: dict[str, int] = {}  # the revisions that it has seen last
        self._store: Store | None = None

    def run(self) -> None:
        for number in range(self.operations):
            kind = self._chance.choice(CHOICES)
            name = self._chance.choice(KEYS)
            value = f"{self._name}.{number}"
            expected = self._known.get(name, 0) if self._chance.random() < 0.7 else 0
            self._note(
                {
                    "kind": kind,
                    "key": name,
                    "value": value,
                    "expected": expected,
                    "start": time.monotonic_ns(),
                }
            )
            result = self._do(kind, name, value, expected)
            self._note({"end": time.monotonic_ns(), **result})

    def _note(self, words: dict[str, Any]) -> None:
        os.write(self._notes, json.dumps(words).encode() + b"\n")

    def _do(self, kind: str, name: str, value: str, expected: int) -> dict[str, Any]:
        if (
            self._store is None or self._chance.random() < 0.3
        ):  # a new command, or a long-running one
            self._store = self._open()
        if kind == GET:
            return {"result": OK, "state": self._state(self._store.get(key(name)))}
        if kind == LIST:
            listed = self._store.list("configmaps", "default")
            return {
                "result": OK,
                "revision": listed.revision,
                "states": {obj["metadata"]["name"]: self._state(obj) for obj in listed.objects},
            }
        try:
            return {
                "result": OK,
                "state": self._write(self._store, kind, name, value, str(expected or "") or None),
            }
        except ExistsError:
            return {"result": EXISTS}
        except MissingError:
            return {"result": MISSING}
        except ConflictError:
            return {"result": CONFLICT}

    def _state(self, obj: dict[str, Any] | None) -> tuple[str, int] | None:
        if obj is None:
            return None
        revision = int(obj["metadata"]["resourceVersion"])
        self._known[obj["metadata"]["name"]] = revision
        return obj["data"]["a"], revision

    def _write(
        self, store: Store, kind: str, name: str, value: str, expected: str | None
    ) -> tuple[str, int]:
        with store.transaction() as transaction:
            if kind == COUNT:
                value = _count(transaction)
            elif kind == CREATE:
                transaction.create(key(name), config_map(name, value))
            elif kind == UPDATE:
                transaction.update(key(name), config_map(name, value), expected=expected)
            else:
                transaction.delete(key(name), expected=expected)
            predicted = transaction.revision
        revision = self._revision(predicted)
        self._known[name] = revision
        return value, revision

    def _revision(self, predicted: int) -> int:
        """Return the revision of the last write, which the transaction has predicted."""
        return predicted


NewWorker = Callable[[Path, str], Worker]  # takes the file of its notes, and a seed


def _count(transaction: Transaction) -> str:
    counter = transaction.get(key(COUNTER))
    assert counter is not None
    value = str(int(counter["data"]["a"]) + 1)
    transaction.update(key(COUNTER), config_map(COUNTER, value))
    return value


# --- running a point ---


def set_up(name: str, place: Path, seed: int) -> list[Point]:
    return [Point(name, str(number)) for number in range(ROUNDS)]


def run(point: Point, place: Path, folder: Path, seed: int) -> Outcome:
    state, notes = folder / "state", folder / "notes"
    begin(state)
    commit(create=lambda: [config_map(COUNTER, "0")])(state)
    notes.mkdir()
    chance = random.Random(f"{seed} {point.name}")
    kills = KILLS if point.scenario == "killed" else 0
    failures = run_workers(partial(Worker, partial(open_store, state)), notes, chance, kills)
    words = read_notes(notes)
    losses = [*failures, *check_operations(words), *_check_counter(state, words)]
    return Outcome(len(words), [Loss(point.scenario, point.name, loss) for loss in losses])


def run_workers(
    new_worker: NewWorker,
    notes: Path,
    chance: random.Random,
    kills: int = 0,
    disturb: Callable[[], None] = lambda: None,
) -> list[str]:
    """Run all processes to their end; each killed one is followed by another.

    :param disturb: is called while they run.
    """
    seed = chance.random()
    children = {
        _start(new_worker, notes / f"p{number}", f"{seed} {number}"): number
        for number in range(PROCESSES)
    }
    failures = []
    for number in range(kills):
        time.sleep(chance.uniform(0.01, 0.12))
        victim = chance.choice(sorted(children))
        os.kill(victim, signal.SIGKILL)
        child = _start(new_worker, notes / f"k{number}", f"{seed} again {number}")
        children[child] = PROCESSES + number
    disturb()
    for child, number in children.items():
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code not in (0, -signal.SIGKILL):
            failures.append(
                f"process {number} ended with {code}: "
                f"{(notes.parent / f'failed-{child}').read_text()}"
            )
    return failures


def _start(new_worker: NewWorker, notes: Path, seed: str) -> int:
    child = os.fork()
    if child:
        return child
    try:
        new_worker(notes, seed).run()
        os._exit(0)
    except BaseException as error:
        (notes.parent.parent / f"failed-{os.getpid()}").write_text(
            f"{type(error).__name__}: {error}"
        )
        os._exit(1)


Words = dict[str, Any]


def read_notes(notes: Path) -> list[Words]:
    """Return the operations of all processes."""
    return [word for path in sorted(notes.iterdir()) for word in _operations(path)]


def _operations(path: Path) -> Iterator[Words]:
    """Return the operations that a process noted; the result is unknown if it was killed before it
    could note it."""
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    for begun, ended in zip(lines[::2], [*lines[1::2], None], strict=False):
        yield {**begun, **(ended or {"result": UNKNOWN, "end": NEVER})}


def check_operations(words: list[Words]) -> Iterator[str]:
    """Yield what is wrong with a history."""
    operations = [
        _operation(word) for word in words if word["kind"] in (CREATE, UPDATE, DELETE, GET)
    ]
    operations = [one for one in operations if not (one.kind == GET and one.result == UNKNOWN)]
    counts = [_operation(word) for word in words if word["kind"] == COUNT]
    listings = [_listing(word) for word in words if word["kind"] == LIST and word["result"] == OK]
    yield from check_keys(operations, listings)
    yield from check_revisions([*operations, *counts])
    yield from check_listings(operations, listings)


def _operation(word: Words) -> Operation:
    state = State(*word["state"]) if word.get("state") else None
    return Operation(
        word["start"],
        word["end"],
        word["kind"],
        word["key"],
        word["result"],
        word["value"],
        word["expected"],
        state,
    )


def _listing(word: Words) -> Listing:
    states = {name: State(*state) for name, state in word["states"].items() if name != COUNTER}
    return Listing(word["start"], word["end"], word["revision"], states)


def _check_counter(state: Path, words: list[Words]) -> Iterator[str]:
    counts = [word for word in words if word["kind"] == COUNT]
    done = [int(word["state"][0]) for word in counts if word["result"] == OK]
    if len(set(done)) != len(done):
        yield f"two processes have counted to the same number: {sorted(done)}"
    store = open_store(state)
    counter = store.get(key(COUNTER))
    assert counter is not None
    final, unknown = int(counter["data"]["a"]), sum(word["result"] == UNKNOWN for word in counts)
    if not len(done) <= final <= len(done) + unknown:
        yield (
            f"the counter is at {final} after {len(done)} counts, and {unknown} that are not "
            f"known of"
        )
    yield from store.check()
    store.close()


SECTION = Section("linear", ("undisturbed", "killed"), set_up, run, minutes=1, alone=True)
