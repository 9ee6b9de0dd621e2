"""The machine restarted after commands that ended normally, with files changed in between: the
files are the truth.

A point ``kept/read/1`` is a change to one file (or to all), the command that comes first
afterwards, and how often the machine was started: ``0`` not at all, ``1`` after the change, ``2``
before it and after it.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from kubepy.storage import Key
from kubepy.storage.yaml import dump

from . import simulation
from .checks import Lost, attempt, locked_by_another
from .runner import Outcome, Point, Section, outcome
from .scenarios import APPLIED, begin, config_map, key, key_of, secret
from .scratch import OWN
from .simulated_disk import NOTHING_LOST, SYNCED, Disk, Recording, Survivor, disk_after
from .views import Objects, View, difference, in_files, look, open_store

FIRST = ("read", "read-locked-out", "write", "check")
NOW_NS = 1_795_000_000 * 10**9  # when the files are changed: after the commands
NEW_INODE = 1 << 50
UID = {"uid": "5c0f3c1e-0000-4000-8000-000000000001", "creationTimestamp": "2026-01-01T00:00:00Z"}
MANAGED = [APPLIED[0]]
MANAGED_LATER = [{**APPLIED[0], "manager": "other"}]
MANY = range(100, 140)
TARGETS = ("plain", "managed", "password", "many-7")
DELETED = ("deleted", "deleted-managed")
NEVER_THERE = "never"


# --- the commands before the restart ---


def _object(name: str, version: int) -> dict[str, Any]:
    """Return an object as the first or the second command wrote it."""
    obj = (
        secret(name, f"b2xk{version}A==")
        if name == "password"
        else config_map(name, f"value {version}")
    )
    obj["metadata"].update(UID)
    if "managed" in name:
        obj["metadata"]["managedFields"] = [
            dict(one) for one in (MANAGED if version == 1 else MANAGED_LATER)
        ]
    return obj


def _first(folder: Path) -> None:
    store = open_store(folder)
    with store.transaction() as transaction:
        for name in ("kept", *TARGETS, *DELETED):
            obj = _object(name, 1)
            transaction.create(key_of(obj), obj)
    store.close()


def _many(folder: Path) -> None:
    """Commit so many files that the whole file system is synced at once."""
    store = open_store(folder)
    with store.transaction() as transaction:
        for number in MANY:
            obj = _object(f"many-{number}", 1)
            transaction.create(key_of(obj), obj)
        for name in TARGETS:
            obj = _object(name, 2)
            transaction.update(key_of(obj), obj)
        for name in DELETED:
            transaction.delete(key(name))
    store.close()


def _second(folder: Path) -> None:
    store = open_store(folder)
    for name in TARGETS:
        with store.transaction() as transaction:
            obj = _object(name, 2)
            transaction.update(key_of(obj), obj)
    for name in DELETED:
        with store.transaction() as transaction:
            transaction.delete(key(name))
    store.close()


HISTORIES = {"small": (begin, _first, _second), "large": (begin, _first, _many)}


class History(NamedTuple):
    """The disk after the first and after the last command; all commands ended normally."""

    older: Disk
    newer: Disk


# --- changes of files ---


class Change(NamedTuple):
    """A change of the disk, and the state expected after it.

    :param files: the contents of files (None: removed), which no command may change.
    :param objects: the objects that change, by name (None: no object); all others stay as they
        were.
    :param unreadable: objects that are either left out or keep their last content.
    """

    disk: Disk
    files: dict[str, bytes | None]
    objects: dict[str, dict[str, Any] | None]
    unreadable: tuple[str, ...] = ()
    managers_count: bool = True


Changing = Callable[[History, str], Change]


def path_of(name: str) -> str:
    return f"namespaces/default/{'secrets' if name == 'password' else 'configmaps'}/{name}.yaml"


def sidecar_of(name: str) -> str:
    return path_of(name).replace("/configmaps/", "/configmaps/.managed/")


def _file(
    survivor: Survivor, data: bytes, *, inode: int = NEW_INODE, mtime_ns: int = NOW_NS
) -> Survivor:
    """Return a file as a program leaves it now; its ctime is always now."""
    return survivor._replace(inode=inode, data=data, mtime_ns=mtime_ns, ctime_ns=NOW_NS)


def _present(survivor: Survivor | None) -> Survivor:
    assert survivor is not None
    return survivor


def _put(history: History, name: str, file: Survivor, obj: dict[str, Any] | None) -> Change:
    return Change({**history.newer, path_of(name): file}, {path_of(name): file.data}, {name: obj})


def _spoiled(history: History, name: str, file: Survivor) -> Change:
    return Change(
        {**history.newer, path_of(name): file}, {path_of(name): file.data}, {}, unreadable=(name,)
    )


def _version(name: str, number: int) -> dict[str, Any]:
    return without_managers(_object(name, number))


def without_managers(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}


def _text(name: str, number: int) -> bytes:
    return dump(_version(name, number)).encode()


def _cut_in_place(history: History, name: str) -> Change:
    current = _present(history.newer[path_of(name)])
    return _spoiled(
        history, name, _file(current, current.data + b"status: [un", inode=current.inode)
    )


def _cut_short(history: History, name: str) -> Change:
    current = _present(history.newer[path_of(name)])
    return _spoiled(history, name, _file(current, current.data[:30], inode=current.inode))


def _cut_renamed(history: History, name: str) -> Change:
    current = _present(history.newer[path_of(name)])
    return _spoiled(
        history,
        name,
        _file(current, b"apiVersion: v1\nkind: {", mtime_ns=current.mtime_ns - 10**12),
    )


def _markers(history: History, name: str) -> Change:
    current = _present(history.newer[path_of(name)])
    text = b"<<<<<<< HEAD\n" + current.data + b"=======\n" + _text(name, 1) + b">>>>>>> other\n"
    return _spoiled(history, name, _file(current, text))


def _old_markers(history: History, name: str) -> Change:
    change = _markers(history, name)
    file = _present(change.disk[path_of(name)])
    return _spoiled(history, name, file._replace(mtime_ns=history.older[path_of(name)].mtime_ns))  # type: ignore[union-attr]


def _zeros(history: History, name: str) -> Change:
    """Fill the file with zeros: neither empty nor YAML, so it is never overwritten."""
    current = _present(history.newer[path_of(name)])
    return _spoiled(history, name, _file(current, bytes(len(current.data)), inode=current.inode))


def _rm(history: History, name: str) -> Change:
    gone = {path_of(name), sidecar_of(name)} if "managed" in name else {path_of(name)}
    disk = {path: survivor for path, survivor in history.newer.items() if path not in gone}
    return Change(disk, dict.fromkeys(gone, None), {name: None})


def _rm_leaving_managers(history: History, name: str) -> Change:
    disk = {path: survivor for path, survivor in history.newer.items() if path != path_of(name)}
    return Change(disk, {path_of(name): None}, {name: None})


def _git_checkout(history: History, name: str) -> Change:
    return _put(
        history,
        name,
        _file(_present(history.older[path_of(name)]), _text(name, 1)),
        _version(name, 1),
    )


def _cp_p(history: History, name: str) -> Change:
    older, current = _present(history.older[path_of(name)]), _present(history.newer[path_of(name)])
    file = _file(current, older.data, inode=current.inode, mtime_ns=older.mtime_ns)
    return _put(history, name, file, _version(name, 1))


def _tar(history: History, name: str) -> Change:
    older = _present(history.older[path_of(name)])
    return _put(history, name, _file(older, older.data, mtime_ns=older.mtime_ns), _version(name, 1))


def _mv_link(history: History, name: str) -> Change:
    """Move a hard link of an older version back: it has that version's inode, size and mtime."""
    older = _present(history.older[path_of(name)])
    return _put(
        history,
        name,
        _file(older, older.data, inode=older.inode, mtime_ns=older.mtime_ns),
        _version(name, 1),
    )


def _touch_r(history: History, name: str) -> Change:
    """Write text of the same size into the same file, and set its mtime back."""
    current = _present(history.newer[path_of(name)])
    file = _file(current, _text(name, 3), inode=current.inode, mtime_ns=current.mtime_ns)
    assert len(file.data) == len(current.data)
    return _put(history, name, file, _version(name, 3))


def _editor(history: History, name: str) -> Change:
    current = _present(history.newer[path_of(name)])
    return _put(history, name, _file(current, b"# by hand\n" + _text(name, 3)), _version(name, 3))


def _editor_long_ago(history: History, name: str) -> Change:
    current = _present(history.newer[path_of(name)])
    return _put(history, name, _file(current, _text(name, 3), mtime_ns=10**18), _version(name, 3))


def _touch(history: History, name: str) -> Change:
    current = _present(history.newer[path_of(name)])
    return _put(history, name, _file(current, current.data, inode=current.inode), _version(name, 2))


def _new_file(history: History, name: str) -> Change:
    template = _present(history.newer[path_of("kept")])
    return _put(
        history, NEVER_THERE, _file(template, _text(NEVER_THERE, 1)), _version(NEVER_THERE, 1)
    )


def _new_empty(history: History, name: str) -> Change:
    return _spoiled(history, NEVER_THERE, _file(_present(history.newer[path_of("kept")]), b""))


def _emptied(history: History, name: str) -> Change:
    """Empty the file of an existing object: it is written again after a restart."""
    current = _present(history.newer[path_of(name)])
    disk: Disk = {**history.newer, path_of(name): _file(current, b"", inode=current.inode)}
    return Change(disk, {path_of(name): current.data}, {name: _version(name, 2)})


def _emptied_older(history: History, name: str) -> Change:
    current, older = _present(history.newer[path_of(name)]), _present(history.older[path_of(name)])
    disk: Disk = {
        **history.newer,
        path_of(name): _file(older, b"", inode=older.inode, mtime_ns=older.mtime_ns),
    }
    return Change(disk, {path_of(name): current.data}, {name: _version(name, 2)})


def _same_file_other_text(history: History, name: str) -> Change:
    older = _present(history.older[path_of(name)])
    file = _file(older, _text(name, 3), inode=older.inode, mtime_ns=older.mtime_ns)
    return _put(history, name, file, _version(name, 3))


def _deleted_file_back(history: History, name: str) -> Change:
    """Bring a deleted file back with its inode, size, mtime and content: it is removed again after
    a restart."""
    older = _present(history.older[path_of(name)])
    disk: Disk = {**history.newer, path_of(name): older}
    return Change(disk, {path_of(name): None}, {name: None})


def _managers(data: Callable[[Survivor], bytes | None]) -> Changing:
    def change(history: History, name: str) -> Change:
        current = _present(history.newer[sidecar_of(name)])
        text = data(current)
        disk = {
            path: survivor for path, survivor in history.newer.items() if path != sidecar_of(name)
        }
        if text is not None:
            disk[sidecar_of(name)] = _file(current, text)
        return Change(
            disk,
            {path_of(name): _present(history.newer[path_of(name)]).data},
            {name: _version(name, 2)},
            managers_count=False,
        )

    return change


def _all_by_rsync(history: History, name: str) -> Change:
    """Take the whole folder back to its older content, with the times."""
    disk: Disk = {
        path: survivor for path, survivor in history.newer.items() if path.partition("/")[0] == OWN
    }
    files: dict[str, bytes | None] = {
        path: None
        for path, survivor in history.newer.items()
        if survivor and path not in history.older
    }
    for number, (path, survivor) in enumerate(sorted(history.older.items())):
        if path.partition("/")[0] != OWN:
            disk[path] = survivor and survivor._replace(inode=NEW_INODE + number, ctime_ns=NOW_NS)
            if survivor:
                files[path] = survivor.data
    return Change(
        disk,
        files,
        {
            **{name: _version(name, 1) for name in (*TARGETS, *DELETED)},
            **{f"many-{number}": None for number in MANY},
        },
    )


def _older_index(history: History, name: str) -> Change:
    """Restore an older ``.kubepy`` beside the current files."""
    disk = {
        path: survivor for path, survivor in history.newer.items() if path.partition("/")[0] != OWN
    }
    disk.update(
        {
            path: survivor
            for path, survivor in history.older.items()
            if path.partition("/")[0] == OWN
        }
    )
    files = {
        path: survivor.data
        for path, survivor in history.newer.items()
        if survivor and path.endswith(".yaml")
    }
    return Change(disk, {**files, **{path_of(one): None for one in DELETED}}, {})


# Each change, its targets, and whether it has an effect only after a restart.
CHANGES: dict[str, tuple[Changing, tuple[str, ...], bool]] = {
    "cut-in-place": (_cut_in_place, TARGETS, False),
    "cut-short": (_cut_short, TARGETS, False),
    "cut-renamed": (_cut_renamed, TARGETS, False),
    "merge-markers": (_markers, TARGETS, False),
    "merge-markers-old": (_old_markers, TARGETS, False),
    "zeros": (_zeros, TARGETS, False),
    "rm": (_rm, TARGETS, False),
    "rm-leaving-managers": (_rm_leaving_managers, ("managed",), False),
    "git-checkout": (_git_checkout, TARGETS, False),
    "cp-p": (_cp_p, TARGETS, False),
    "tar": (_tar, TARGETS, False),
    "mv-link": (_mv_link, TARGETS, False),
    "touch-r": (_touch_r, TARGETS, False),
    "touch": (_touch, TARGETS, False),
    "editor": (_editor, TARGETS, False),
    "editor-long-ago": (_editor_long_ago, TARGETS, False),
    "new-file": (_new_file, ("kept",), False),
    "new-empty-file": (_new_empty, ("kept",), False),
    "emptied": (_emptied, TARGETS, True),
    "emptied-older": (_emptied_older, TARGETS, True),
    "deleted-by-tar": (_tar, DELETED, False),
    "deleted-by-git": (_git_checkout, DELETED, False),
    "deleted-other-text": (_same_file_other_text, DELETED, False),
    "deleted-back": (_deleted_file_back, DELETED, True),
    "managers-cut": (_managers(lambda file: file.data[:20]), ("managed",), False),
    "managers-empty": (_managers(lambda file: b""), ("managed",), False),
    "managers-zeros": (_managers(lambda file: bytes(len(file.data))), ("managed",), False),
    "managers-markers": (
        _managers(lambda file: b"<<<<<<< HEAD\n" + file.data),
        ("managed",),
        False,
    ),
    "managers-gone": (_managers(lambda file: None), ("managed",), False),
    "all-by-rsync": (_all_by_rsync, ("kept",), False),
    "older-index": (_older_index, ("kept",), False),
}


# --- running a point ---


def share(scratch: Path) -> None:
    """Run the commands whose files are changed afterwards."""
    simulation.install()
    simulation.boot("boot-1")
    for size, steps in HISTORIES.items():
        recording = simulation.record(scratch / size, steps)
        (scratch / f"{size}.history").write_bytes(pickle.dumps(_history(recording)))


def set_up(name: str, place: Path, seed: int) -> list[Point]:
    _, targets, needs_boot = CHANGES[name]
    return [
        Point(name, f"{size}/{target}/{first}/{boots}")
        for size in HISTORIES
        for target in targets
        for first in FIRST
        for boots in range(1 if needs_boot else 0, 3)
    ]


def _history(recording: Recording) -> History:
    older, newer = (
        disk_after(recording, recording.ends[step], SYNCED, NOTHING_LOST) for step in (1, 2)
    )
    return History(older, newer)


@lru_cache(maxsize=8)
def _read_history(path: Path) -> History:
    history: History = pickle.loads(path.read_bytes())
    return history


def run(point: Point, place: Path, folder: Path, seed: int) -> Outcome:
    simulation.install()
    size, target, first, boots = point.name.split("/")
    history = _read_history(place.parent / f"{size}.history")
    simulation.boot("boot-1")
    if boots == "2":
        history = _started_once(history, folder / "started")
    change = CHANGES[point.scenario][0](history, target)
    state = folder / "state"
    simulation.lay_out(change.disk, state)
    before = _expected(size, change)
    if boots != "0":
        simulation.boot("boot-3")
    losses: list[str] = []
    try:
        _do_first(state, first)
        _check(state, change, before, losses, "after the first command")
        _write(state)
        _check(state, change, before, losses, "after a write")
        simulation.boot("boot-4")
        _check(state, change, before, losses, "after one more start")
    except Lost as lost:
        losses.append(str(lost))
    return outcome(point, [f"{first}: {loss.replace(f'{state}/', '')}" for loss in losses])


def _started_once(history: History, folder: Path) -> History:
    """Return the disk after a restart and a command, before any file is changed."""
    simulation.lay_out(history.newer, folder)
    simulation.boot("boot-2")
    recording = simulation.record(folder, (lambda started: look(open_store, started) and None,))
    return history._replace(newer=disk_after(recording, recording.ends[-1], SYNCED, NOTHING_LOST))


def _expected(size: str, change: Change) -> Objects:
    """Return the objects expected, as files hold them."""
    names = ["kept", *TARGETS, *(f"many-{number}" for number in MANY if size == "large")]
    objects: dict[str, dict[str, Any] | None] = {
        name: _object(name, 2 if name in TARGETS else 1) for name in names
    }
    objects.update(change.objects)
    return {_view_key(name): obj for name, obj in objects.items() if obj is not None}


def _view_key(name: str) -> str:
    return f"{'secrets' if name == 'password' else 'configmaps'}/default/{name}"


def _do_first(state: Path, first: str) -> None:
    if first == "read-locked-out":
        with locked_by_another(state):
            attempt("a reader without the lock", lambda: look(open_store, state))
    elif first == "write":
        _write(state)
    elif first == "check":
        store = open_store(state)
        attempt("check", store.check)
        store.close()


def _write(state: Path) -> None:
    def write() -> None:
        store = open_store(state)
        with store.transaction() as transaction:
            name = Key("configmaps", "elsewhere", "written")
            old = transaction.get(name)
            obj = config_map(
                "written", "1" if old is None else old["data"]["a"] + "1", "elsewhere", **UID
            )
            (transaction.create if old is None else transaction.update)(name, obj)
        store.close()

    attempt("a writer", write)


def _check(state: Path, change: Change, expected: Objects, losses: list[str], when: str) -> None:
    seen = attempt(f"a reader {when}", lambda: look(open_store, state))
    if seen is None:
        raise Lost(f"{when} there is no cluster")
    if told := _differences(change, expected, seen):
        losses.append(f"{when}: {told}")
    for path, data in change.files.items():
        file = state / path
        held = file.read_bytes() if file.exists() else None
        if held != data:
            losses.append(f"{when} {path} holds {_short(held)}, not {_short(data)}")
    for name in change.unreadable:
        if not any(path_of(name) in problem for problem in seen.problems):
            losses.append(f"{when}: nobody is told of {path_of(name)}")
    store = open_store(state)
    wrong = attempt(f"check {when}", store.check)
    store.close()
    if not change.managers_count:  # a bad file of managers stays, and is reported
        wrong = [line for line in wrong if not line.startswith(sidecar_of("managed"))]
    losses.extend(f"check {when}: {line}" for line in wrong[:2])


def _differences(change: Change, expected: Objects, seen: View) -> str:
    aside = {_view_key(name) for name in change.unreadable}
    held = {
        key: obj
        for key, obj in in_files(seen.objects).items()
        if key not in aside and not key.startswith("configmaps/elsewhere/")
    }
    wanted = {key: obj for key, obj in expected.items() if key not in aside}
    changed = {_view_key(name) for name in change.objects}
    if (
        not change.managers_count or changed
    ):  # a file from outside has the managers beside it, if any
        held, wanted = (
            {key: without_managers(obj) if key in changed else obj for key, obj in each.items()}
            for each in (held, wanted)
        )
    return difference(json.loads(json.dumps(wanted)), held)


def _short(data: bytes | None) -> str:
    return "nothing" if data is None else repr(data[:60])


SECTION = Section("restart", tuple(CHANGES), set_up, run, minutes=2, share=share)
