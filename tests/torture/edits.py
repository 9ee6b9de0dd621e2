"""Files edited while commands of several processes run: a command sees every edit that was finished
before it started.

A point is a round: one process edits objects' files, each time in one way, and looks with a new
store right after; the others record edits, and commit. An edit is a number that only the editor
writes; commits change another field and keep it. Numbers only rise: a lower number after a finished
edit means that the edit was missed or lost.
"""

from __future__ import annotations

import os
import random
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubepy.storage import ConflictError, FolderError
from kubepy.storage.yaml import dump, load_all

from .checks import Lost
from .runner import Loss, Outcome, Point, Section
from .scenarios import begin, commit, config_map, file_of, key
from .views import open_store

NAMES = ("one", "two", "three")
PAIR = ("left", "right")  # always committed together
ROUNDS = 20
EDITS = 50  # of each round
WHOLE_WAYS = ("rename", "rename-old")  # the path always has a whole file
UID = {"uid": "5c0f3c1e-0000-4000-8000-000000000002", "creationTimestamp": "2026-01-01T00:00:00Z"}


# --- ways to edit ---


def _object(name: str, number: int, count: str) -> dict[str, Any]:
    obj = config_map(name, f"{number:06}", **UID)
    obj["data"]["count"] = count
    return obj


def _count_of(path: Path) -> str:
    """Return the counter in the file, "0" if it cannot be read."""
    try:
        return str(load_all(path.read_text())[0].object["data"]["count"])
    except (FileNotFoundError, IndexError, KeyError, TypeError):
        return "0"


def _rename(path: Path, text: bytes) -> bool:
    temporary = path.with_name(".edited")
    temporary.write_bytes(text)
    os.replace(temporary, path)
    return True


def _rename_old(path: Path, text: bytes) -> bool:
    """Replace the file by one with an old mtime, as ``cp -p`` and ``mv`` of an older file do."""
    temporary = path.with_name(".edited")
    temporary.write_bytes(text)
    os.utime(temporary, ns=(10**18, 10**18))
    os.replace(temporary, path)
    return True


def _truncate(path: Path, text: bytes) -> bool:
    """Overwrite the file, as some editors do. Return whether it is still the file at the path."""
    with open(path, "r+b") as file:
        file.truncate(0)
        file.write(text)
        file.flush()
        return _is_at(file.fileno(), path)


def _in_place(path: Path, text: bytes) -> bool:
    """Write text of the same size into the same file, and set its mtime back (``touch -r``)."""
    with open(path, "r+b") as file:
        before = os.fstat(file.fileno())
        if before.st_size != len(text):
            return _rename(path, text)
        file.write(text)
        file.flush()
        os.utime(file.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))
        return _is_at(file.fileno(), path)


def _remove_and_add(path: Path, text: bytes) -> bool:
    path.unlink(missing_ok=True)
    return _rename(path, text)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.fstat(descriptor).st_ino == os.stat(path).st_ino
    except FileNotFoundError:
        return False


WAYS: dict[str, Callable[[Path, bytes], bool]] = {
    "rename": _rename,
    "rename-old": _rename_old,
    "truncate": _truncate,
    "in-place": _in_place,
    "remove-and-add": _remove_and_add,
}


# --- the other processes ---


def _take_in(folder: Path, way: str, chance: random.Random) -> None:
    """Read all objects; a reader that finds the lock free records edits. No list may show half a
    commit."""
    store = open_store(folder)
    data = {obj["metadata"]["name"]: obj["data"] for obj in store.list("configmaps").objects}
    store.close()
    left, right = (data[name]["count"] for name in PAIR)
    if left != right:
        raise Lost(f"a list shows half a commit: {PAIR[0]} has {left}, {PAIR[1]} has {right}")
    if way in WHOLE_WAYS and not data.keys() >= set(NAMES):
        raise Lost(
            f"a list lacks {', '.join(sorted(set(NAMES) - data.keys()))}, which nobody removed"
        )
    time.sleep(chance.random() * 0.002)


def _count(folder: Path, way: str, chance: random.Random) -> None:
    """Change an object, and keep the edited fields."""
    store = open_store(folder)
    name = chance.choice(NAMES)
    try:
        with store.transaction() as transaction:
            for each in (name, *PAIR):
                obj = transaction.get(key(each))
                if obj is not None:
                    data = {**obj["data"], "count": str(int(obj["data"]["count"]) + 1)}
                    transaction.update(
                        key(each), {**obj, "metadata": dict(obj["metadata"]), "data": data}
                    )
    except ConflictError:
        pass  # edited in the meantime
    except FolderError as error:
        if f"/{name}.yaml" not in str(error):  # half written at this moment, so it cannot be read
            raise
    finally:
        store.close()
    time.sleep(chance.random() * 0.005)


Work = Callable[[Path, str, random.Random], None]
OTHERS: dict[str, tuple[Work, ...]] = {
    "readers": (_take_in,) * 3,
    "writers": (_count, _count, _take_in),
}


@contextmanager
def _at_work(folder: Path, scratch: Path, point: Point, seed: int) -> Iterator[list[str]]:
    """Run other processes until the end of the block; then the list has their failures."""
    way, _, others = point.scenario.rpartition("-and-")
    stop = scratch / "stop"
    children = [
        _start(
            work,
            (folder, way, random.Random(f"{seed} {point.name} {number}")),
            stop,
            scratch / f"failed-{number}",
        )
        for number, work in enumerate(OTHERS[others])
    ]
    failures: list[str] = []
    try:
        yield failures
    finally:
        stop.touch()
        for child in children:
            os.waitpid(child, 0)
        failures += [path.read_text() for path in sorted(scratch.glob("failed-*"))]


def _start(work: Work, arguments: tuple[Path, str, random.Random], stop: Path, failed: Path) -> int:
    child = os.fork()
    if child:
        return child
    try:
        while not stop.exists():
            work(*arguments)
        os._exit(0)
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        failed.write_text(
            str(error)
            if isinstance(error, Lost)
            else f"{type(error).__name__}: {error} "
            f"({os.path.basename(place.filename)}:{place.lineno})"
        )
        os._exit(1)


# --- running a point ---


def set_up(name: str, place: Path, seed: int) -> list[Point]:
    return [Point(name, str(number)) for number in range(ROUNDS)]


def run(point: Point, place: Path, folder: Path, seed: int) -> Outcome:
    state = folder / "state"
    begin(state)
    commit(create=lambda: [_object(name, 0, "0") for name in (*NAMES, *PAIR)])(state)
    editor = _Editor(
        state, WAYS[point.scenario.rpartition("-and-")[0]], random.Random(f"{seed} {point.name}")
    )
    with _at_work(state, folder, point, seed) as failures:
        for number in range(1, EDITS + 1):
            editor.edit(number)
    losses = [*editor.losses, *failures, *_final(state, editor)]
    return Outcome(
        editor.tries,
        [Loss(point.scenario, point.name, loss.replace(f"{state}/", "")) for loss in losses],
    )


class _Editor:
    """A process that edits a file, and then runs a command."""

    def __init__(
        self, folder: Path, way: Callable[[Path, bytes], bool], chance: random.Random
    ) -> None:
        self._folder, self._way, self._chance = folder, way, chance
        self.tries = 0
        self.last = dict.fromkeys(NAMES, 0)
        self.losses: list[str] = []

    def edit(self, number: int) -> None:
        name = self._chance.choice(NAMES)
        path = file_of(self._folder, name)
        if not self._way(path, dump(_object(name, number, _count_of(path))).encode()):
            return  # a commit had replaced the file meanwhile: the edit was never finished
        self.tries += 1
        self.last[name] = number
        self._look(name, number)
        time.sleep(self._chance.random() * 0.003)

    def _look(self, name: str, number: int) -> None:
        store = open_store(self._folder)
        objects = {obj["metadata"]["name"]: obj for obj in store.list("configmaps").objects}
        store.close()
        seen = objects[name]["data"]["a"] if name in objects else None
        if seen != f"{number:06}":
            held = file_of(self._folder, name).read_text()
            what = (
                "was not seen by the next command"
                if f"{number:06}" in held
                else "was overwritten in silence"
            )
            self.losses.append(f"edit {number} of {name} {what}, which shows {seen}")
            self.last[name] = -1


def _final(state: Path, editor: _Editor) -> Iterator[str]:
    store = open_store(state)
    objects = {obj["metadata"]["name"]: obj for obj in store.list("configmaps").objects}
    for name, number in editor.last.items():
        if number >= 0 and objects[name]["data"]["a"] != f"{number:06}":
            yield f"edit {number} of {name} was overwritten later: {objects[name]['data']['a']}"
    yield from store.check()
    store.close()


SECTION = Section(
    "edits",
    tuple(f"{way}-and-{others}" for way in WAYS for others in OTHERS),
    set_up,
    run,
    minutes=1.5,
    alone=True,
)
