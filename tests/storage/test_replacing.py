"""Edits between the last look at a file and its rename: they count, whatever comes in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kubepy.storage.folder import renames, replacing
from kubepy.storage.folder.store import FolderStore
from kubepy.storage.yaml import dump
from tests.stores import disagreements

from ..torture.deaths import KILLED
from .conftest import config_map, create, file_of, key, names

Act = Callable[[Path], None]


def content(value: str, name: str = "a") -> str:
    return dump(config_map(name, value))


def rename(path: Path) -> None:
    beside = path.with_name(".beside")
    beside.write_text(content("edited"))
    os.replace(beside, path)


def truncate(path: Path) -> None:
    path.write_text(content("edited"))


def keep_size_and_time(path: Path) -> None:
    before = path.stat()
    with path.open("r+") as file:
        file.write(path.read_text().replace("old", "her"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


EDITS = {
    "rename": (rename, "edited"),
    "truncate": (truncate, "edited"),
    "same size": (keep_size_and_time, "her"),
}


@contextmanager
def before_rename(act: Callable[[], None], number: int = 1) -> Iterator[None]:
    """Let something happen right before a rename with flags: after the last look at the file."""
    real, count = renames.renameat2, [0]

    def run(source: str, target: str, flags: int) -> None:
        count[0] += 1
        if count[0] == number:
            act()
        real(source, target, flags)

    with mock.patch.object(renames, "renameat2", run):
        yield
    assert count[0] >= number


def update(store: FolderStore, value: str = "new") -> None:
    with store.transaction() as transaction:
        transaction.update(key("a"), config_map("a", value))


def delete(store: FolderStore) -> None:
    with store.transaction() as transaction:
        transaction.delete(key("a"))


def value(store: FolderStore) -> str | None:
    obj = store.get(key("a"))
    return obj["data"]["a"] if obj else None


@pytest.fixture
def path(store: FolderStore, folder: Path) -> Path:
    create(store, config_map("a", "old"))
    return file_of(folder, "a")


# --- an edit counts ---


@pytest.mark.parametrize(("edit", "expected"), EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("write", [update, delete])
def test_edit_before_exchange_counts(
    store: FolderStore,
    open_store: Callable[..., FolderStore],
    path: Path,
    write: Callable[[FolderStore], None],
    edit: Act,
    expected: str,
) -> None:
    with before_rename(lambda: edit(path)):
        write(store)
    assert value(store) == expected
    assert value(open_store()) == expected
    assert os.listdir(path.parent) == ["a.yaml"]


@pytest.mark.parametrize("write", [update, delete])
def test_removal_before_exchange_counts(
    store: FolderStore, path: Path, write: Callable[[FolderStore], None]
) -> None:
    with before_rename(path.unlink):
        write(store)
    assert value(store) is None


def test_new_file_before_creation_counts(store: FolderStore, folder: Path) -> None:
    path = file_of(folder, "a")
    with before_rename(lambda: truncate(path)):
        create(store, config_map("a", "old"))
    assert value(store) == "edited"


def test_link_before_exchange_stays_and_is_problem(
    store: FolderStore, path: Path, tmp_path: Path
) -> None:
    def link() -> None:
        path.unlink()
        path.symlink_to(tmp_path / "elsewhere")

    with before_rename(link):
        update(store)
    assert [problem.reason for problem in store.problems()] == ["is a symbolic link"]
    path.unlink()


def test_edit_of_replaced_file_before_first_edit_is_back_is_last(
    store: FolderStore, path: Path
) -> None:
    """The file is edited, replaced, and edited again before the first edit has its name again: the
    last edit counts."""

    def edit_again() -> None:
        beside = path.with_name(".beside")
        beside.write_text(content("edited again"))
        os.replace(beside, path)

    with before_rename(lambda: rename(path)), before_rename(edit_again, 2):
        update(store)
    assert value(store) == "edited again"
    assert os.listdir(path.parent) == ["a.yaml"]


def test_removal_of_replaced_file_before_edit_is_back_is_last(
    store: FolderStore, path: Path
) -> None:
    with before_rename(lambda: rename(path)), before_rename(path.unlink, 2):
        update(store)
    assert value(store) is None


def test_edit_by_program_that_has_file_open_is_waited_for(store: FolderStore, path: Path) -> None:
    """It opens the file before the exchange, and writes after it: first when the exchanged file has
    been looked at."""
    script = (
        "import sys; file = open(sys.argv[1], 'r+'); print('open', flush=True); "
        "sys.stdin.readline()\n"
        "file.write(sys.argv[2]); file.truncate(); file.close(); print('closed', flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, path, content("edited")],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as writer:
        assert writer.stdin
        assert writer.stdout
        writer.stdout.readline()
        real = replacing._look

        def look(*arguments: Any) -> tuple[bool, bytes]:
            looked = real(*arguments)
            if looked[0]:
                with suppress(BrokenPipeError):
                    writer.stdin.write("go\n")  # type: ignore[union-attr]
                    writer.stdin.flush()  # type: ignore[union-attr]
                writer.wait()
            return looked

        with mock.patch.object(replacing, "_look", look):
            update(store)
    assert value(store) == "edited"


def test_program_that_keeps_file_open_and_writes_nothing_does_not_hold_up_commit(
    store: FolderStore, path: Path
) -> None:
    with path.open("r+"):
        update(store)
    assert value(store) == "new"


def test_edit_of_settings_before_exchange_counts(store: FolderStore, folder: Path) -> None:
    settings = folder / "kubepy.yaml"

    def append() -> None:
        settings.write_text(settings.read_text() + "# a remark\nseed: 7\n")

    with before_rename(append):
        store.set_values(settings={"clock": "2026-01-01T00:00:00Z"})
    assert store.settings() == {"formatVersion": 1, "seed": 7, "clock": "2026-01-01T00:00:00Z"}
    assert "# a remark\n" in settings.read_text()


# --- death ---


@contextmanager
def after_rename(act: Callable[[], object], number: int = 1) -> Iterator[None]:
    real, count = renames.renameat2, [0]

    def run(source: str, target: str, flags: int) -> None:
        real(source, target, flags)
        count[0] += 1
        if count[0] == number:
            act()

    with mock.patch.object(renames, "renameat2", run):
        yield


def killed(
    folder: Path, write: Callable[[FolderStore], None], edit: Callable[[], object], renamed: int
) -> None:
    """Run a write in a process that is killed after so many renames, the first of which comes right
    after an edit."""
    child = os.fork()
    if child == 0:
        with after_rename(lambda: os._exit(KILLED), renamed), before_rename(edit):  # type: ignore[arg-type]
            write(FolderStore(folder))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == KILLED


@pytest.mark.parametrize("renamed", [1, 2])
@pytest.mark.parametrize("write", [update, delete])
def test_edit_survives_death_between_exchange_and_look(
    path: Path,
    folder: Path,
    renamed: int,
    open_store: Callable[..., FolderStore],
    write: Callable[[FolderStore], None],
) -> None:
    killed(folder, write, lambda: rename(path), renamed)
    store = open_store()
    assert value(store) == "edited"
    assert disagreements(store) == []
    assert os.listdir(path.parent) == ["a.yaml"]


@pytest.mark.parametrize("write", [update, delete])
def test_death_between_exchange_and_look_without_edit_is_finished(
    path: Path,
    folder: Path,
    open_store: Callable[..., FolderStore],
    write: Callable[[FolderStore], None],
) -> None:
    killed(folder, write, lambda: None, 1)
    store = open_store()
    assert value(store) == ("new" if write is update else None)
    assert disagreements(store) == []
    assert [
        name
        for name in (os.listdir(path.parent) if path.parent.exists() else ())
        if name != "a.yaml"
    ] == []


def test_edit_of_settings_survives_death_between_exchange_and_look(
    store: FolderStore, folder: Path
) -> None:
    settings = folder / "kubepy.yaml"
    store.close()
    killed(
        folder,
        lambda store: store.set_values(settings={"clock": "2026-01-01T00:00:00Z"}),
        lambda: settings.write_text(settings.read_text() + "seed: 7\n"),
        1,
    )
    store = FolderStore(folder)
    with store.transaction():
        pass
    assert store.settings() == {"formatVersion": 1, "seed": 7, "clock": "2026-01-01T00:00:00Z"}
    store.close()


@pytest.mark.parametrize("write", [update, delete])
def test_edit_survives_interrupt_between_exchange_and_look(
    store: FolderStore, path: Path, write: Callable[[FolderStore], None]
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        after_rename(interrupt),
        before_rename(lambda: rename(path)),
    ):
        write(store)
    assert value(store) == "edited"
    assert disagreements(store) == []
    assert os.listdir(path.parent) == ["a.yaml"]


def test_staged_file_of_commit_that_was_never_recorded_is_no_edit(
    path: Path, folder: Path, open_store: Callable[..., FolderStore]
) -> None:
    """Only the temporary file of a recorded commit can be an edit; others are left by commits that
    never were."""
    (path.parent / ".kubepy-99.tmp").write_text(content("never committed"))
    killed(folder, update, lambda: None, 1)
    store = open_store()
    assert value(store) == "new"
    assert os.listdir(path.parent) == ["a.yaml"]


# --- where the system has no such renames ---


@pytest.fixture
def plain() -> Iterator[None]:
    with mock.patch.object(renames, "_function", return_value=None):
        yield


@pytest.mark.usefixtures("plain")
def test_files_are_written_and_removed_without_such_renames(
    store: FolderStore, folder: Path
) -> None:
    create(store, config_map("a", "old"), config_map("b", "old"))
    update(store)
    with store.transaction() as transaction:
        transaction.delete(key("b"))
    assert names(store.list("configmaps").objects) == ["a"]
    assert value(store) == "new"
    assert os.listdir(file_of(folder, "a").parent) == ["a.yaml"]
    store.set_values(settings={"seed": 1})
    assert store.settings()["seed"] == 1


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("write", [update, delete])
def test_edit_before_last_look_counts_without_such_renames(
    store: FolderStore, path: Path, write: Callable[[FolderStore], None]
) -> None:
    real = renames.renameat2

    def refuse(*arguments: Any) -> None:
        rename(path)
        real(*arguments)

    with mock.patch.object(renames, "renameat2", refuse):
        write(store)
    assert value(store) == "edited"


def test_signal_of_lease_does_not_end_process() -> None:
    assert signal.getsignal(signal.SIGURG) in (signal.SIG_DFL, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGURG)
