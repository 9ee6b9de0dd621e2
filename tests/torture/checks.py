"""Checks of a state folder after a fault."""

from __future__ import annotations

import fcntl
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypeVar

from kubepy.storage import Key

from .scenarios import Scenario
from .scratch import OWN, Image, capture, contents, restore
from .views import (
    Likeness,
    Object,
    Opener,
    View,
    difference,
    exactly,
    in_files,
    look,
    names_only,
    paths_below,
)

T = TypeVar("T")

PROBE = Key("configmaps", "torture-probe", "probe")
PROBE_PATH = "configmaps/torture-probe/probe"
ALLOWED_OWN = {
    "index.db",
    "index.db-wal",
    "index.db-shm",
    "lock",
    "manager.lock",
    "manager.lock.holder",
    "config",
    "origin",
    "marks",
    "reserve",
}


class Lost(Exception):
    """A promise that does not hold."""


class Expected(NamedTuple):
    """The states that a folder may hold.

    :param states: the cluster before the first transaction and after each.
    :param acknowledged: the number of acknowledged transactions: earlier states are a loss.
    :param likeness: the part of the objects that must be equal.
    """

    states: list[View | None]
    acknowledged: int
    likeness: Likeness = exactly


def scenario_losses(scenario: Scenario, folder: Path, expected: Expected) -> list[str]:
    """Return the losses of a folder, as :func:`aftermath` does; work with ``finish`` is first run
    again until it is done."""
    if scenario.finish is None:
        return aftermath(folder, scenario.opener, expected)
    try:
        check_state(
            "a reader", attempt("a reader", lambda: look(scenario.opener, folder)), expected
        )
        if wrong := attempt("work, run again,", lambda: scenario.finish(folder)):
            return [wrong]
        seen = attempt("a reader", lambda: look(scenario.opener, folder))
    except Lost as lost:
        return [str(lost)]
    final = expected.states[-1]
    assert final is not None
    if told := difference(names_only(final.objects), names_only(seen.objects if seen else {})):
        return [f"run again, the work was not finished: {told}"]
    return aftermath(folder, scenario.opener, Expected([seen], 0))


def aftermath(folder: Path, opener: Opener, expected: Expected) -> list[str]:
    """Return everything that is wrong in a folder after a process or its machine stopped; changes
    the folder."""
    losses: list[str] = []
    try:
        _check(folder, opener, expected, losses)
    except Lost as lost:
        losses.append(str(lost))
    return [loss.replace(f"{folder}/", "") for loss in losses]


def _check(folder: Path, opener: Opener, expected: Expected, losses: list[str]) -> None:
    locked_out = None
    if (folder / OWN / "lock").exists():
        with locked_by_another(folder):
            locked_out = attempt("a reader without the lock", lambda: look(opener, folder))
            check_state("a reader without the lock", locked_out, expected)
    seen = attempt("a reader", lambda: look(opener, folder))
    check_state("a reader", seen, expected)
    if locked_out is not None and seen is not None and _differs(locked_out, seen, expected):
        raise Lost(
            f"a reader without the lock sees something else than one with it: "
            f"{_difference(locked_out, seen, expected)}"
        )
    if seen is None:
        return
    if seen.problems:
        losses.append(f"problems: {'; '.join(seen.problems[:3])}")
    check_sound(folder, opener, seen, losses)


def check_sound(folder: Path, opener: Opener, seen: View, losses: list[str]) -> None:
    """Check that a writer works, ``check`` finds nothing, nothing is left over, and the files alone
    hold the same objects."""
    after = attempt("a writer", lambda: _write(folder, opener))
    losses.extend(f"check after a writer: {line}" for line in after[:3])
    again = attempt("a reader after a writer", lambda: look(opener, folder))
    if again is None:
        raise Lost("a reader after a writer sees no cluster")
    rest = {key: obj for key, obj in again.objects.items() if key != PROBE_PATH}
    if told := difference(seen.objects, rest):
        losses.append(f"after a writer: {told}")
    if again.revision <= seen.revision:
        losses.append(
            f"the revision after a write is {again.revision}, before it was {seen.revision}"
        )
    losses.extend(f"left over: {path}" for path in leftovers(folder))
    _check_files(folder, opener, again, losses)


def _write(folder: Path, opener: Opener) -> list[str]:
    store = opener(folder)
    try:
        with store.transaction() as transaction:
            transaction.create(
                PROBE,
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "data": {"a": "b"},
                    "metadata": {
                        "name": PROBE.name,
                        "namespace": PROBE.namespace,
                        "uid": "4e6f0b1a-0000-4000-8000-000000000000",
                        "creationTimestamp": "2026-01-01T00:00:00Z",
                    },
                },
            )
        return store.check()
    finally:
        store.close()


def check_state(who: str, seen: View | None, expected: Expected) -> None:
    matching = [
        index for index, state in enumerate(expected.states) if not _differs(state, seen, expected)
    ]
    if not matching:
        raise Lost(f"{who} sees what never was: {_nearest(seen, expected)}")
    if matching[-1] < expected.acknowledged:
        last = expected.states[-1] if expected.acknowledged == len(expected.states) - 1 else None
        told = (
            f": {_difference(last, seen, expected)}"
            if last is not None and seen is not None
            else ""
        )
        raise Lost(
            f"{who} sees the state after {matching[-1]} transactions, {expected.acknowledged} were "
            f"acknowledged{told}"
        )


def _differs(one: View | None, other: View | None, expected: Expected) -> bool:
    if one is None or other is None:
        return one is not other
    return expected.likeness(one.objects) != expected.likeness(other.objects)


def _difference(one: View, other: View, expected: Expected) -> str:
    return difference(expected.likeness(one.objects), expected.likeness(other.objects))


def _nearest(seen: View | None, expected: Expected) -> str:
    """Return the difference to the most similar state."""
    if seen is None:
        return "no cluster"
    told = [
        _difference(state, seen, expected)
        for state in expected.states[expected.acknowledged :]
        if state
    ]
    return min(told, key=len, default="there is a cluster")


def leftovers(folder: Path) -> Iterator[str]:
    """Yield temporary files, empty folders, and managers without an object."""
    paths = paths_below(folder)
    files = set(paths)
    for path in paths:
        name = path.rstrip("/").rpartition("/")[2]
        if path.startswith(f"{OWN}/"):
            if path != f"{OWN}/" and name not in ALLOWED_OWN:
                yield path
        elif path.endswith("/"):
            if not any(other != path and other.startswith(path) for other in paths):
                yield path
        elif "/.managed/" in path:
            if path.replace("/.managed/", "/") not in files:
                yield path
        elif not path.endswith(".yaml") and path != ".gitignore":
            yield path


def _check_files(folder: Path, opener: Opener, seen: View, losses: list[str]) -> None:
    """Check that a copy of the files without the index has the same objects, with their
    managers."""
    held = objects_of_files(capture(folder, own=False), folder.with_name("clone"), opener)
    if isinstance(held, str):
        losses.append(f"the files alone: {held}")
    elif told := difference(in_files(seen.objects), held):
        losses.append(f"the files alone: {told}")


_held: dict[object, dict[str, Object] | str] = {}


def objects_of_files(image: Image, clone: Path, opener: Opener) -> dict[str, Object] | str:
    """Return the objects of files without an index, or a message if they cannot be read; results
    are cached."""
    known = sha256(repr(contents(image)).encode()).digest(), opener
    if known not in _held:
        if len(_held) > 1000:
            _held.clear()
        _held[known] = _read_clone(image, clone, opener)
    return _held[known]


def _read_clone(image: Image, clone: Path, opener: Opener) -> dict[str, Object] | str:
    restore(image, clone)
    try:
        view = attempt("a clone's reader", lambda: look(opener, clone))
        assert view is not None
        store = opener(clone)
        wrong = attempt("a clone's check", store.check)
        store.close()
        told = [*view.problems, *wrong]
        return "; ".join(told[:3]) if told else in_files(view.objects)
    except Lost as lost:
        return str(lost)
    finally:
        remove(clone)


def attempt(who: str, action: Callable[[], T]) -> T:
    """Do something that must work. Raises Lost with the exception if it fails."""
    try:
        return action()
    except TimeoutError:
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise Lost(
            f"{who} fails: {type(error).__name__}: {error} ({os.path.basename(place.filename)}:"
            f"{place.lineno})"
        ) from error


@contextmanager
def locked_by_another(folder: Path) -> Iterator[None]:
    """Hold the lock without naming a holder, so that the name left by a dead holder stays."""
    descriptor = os.open(folder / OWN / "lock", os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def remove(folder: Path) -> None:
    """Remove the folder of a trial with all it contains."""
    for directory, folders, files in os.walk(folder, topdown=False):
        for name in files:
            os.unlink(os.path.join(directory, name))
        for name in folders:
            path = os.path.join(directory, name)
            (os.unlink if os.path.islink(path) else os.rmdir)(path)
    if folder.exists():
        os.rmdir(folder)
