"""A sample of ``make torture``, chosen by a fixed seed; and tests of the fault injection itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.etcd import require_etcd

from . import kill
from .__main__ import SECTIONS
from .history import (
    CREATE,
    DELETE,
    GET,
    MISSING,
    NEVER,
    OK,
    OVERTAKEN,
    UNKNOWN,
    UPDATE,
    Listing,
    Operation,
    State,
    check_listings,
    check_revisions,
    is_linearizable,
)
from .runner import Options, repeat
from .simulated_disk import ORDER, SYNCED, Disk, disk_after
from .simulation import record

PROJECT = Path(__file__).parents[2]


@pytest.mark.parametrize("section", SECTIONS)
def test_sample_of_torture_loses_nothing(section: str) -> None:
    if section == "etcd":
        require_etcd()
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture", section, "--sample", "--jobs", "1"],
        cwd=PROJECT,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


# --- a loss is found ---


def test_store_that_replaces_files_too_early_loses_in_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace files before the commit is recorded: a death in between shows half a commit."""
    from kubepy.storage.folder.commit_files import Journal

    record_commit, settle = Journal._record, Journal._settle

    def settle_first(self: Journal, staged: object, *arguments: object) -> None:
        settle(self, staged)  # type: ignore[arg-type]
        record_commit(self, staged, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Journal, "_record", settle_first)
    monkeypatch.setattr(Journal, "_settle", lambda self, staged: None)
    reports = [repeat(kill.SECTION, "mixed", str(tick), Options(1, 1)) for tick in range(40, 80, 8)]
    assert any(report.losses for report in reports)


# --- the simulated disk ---


def _written(folder: Path) -> None:
    """Record a file written and renamed over another, each with or without a sync."""
    (folder / "a").mkdir()
    for name, synced in (("synced", True), ("lost", False)):
        descriptor = os.open(folder / "a" / f"{name}.new", os.O_WRONLY | os.O_CREAT)
        os.write(descriptor, b"new content")
        if synced:
            os.fsync(descriptor)
        os.close(descriptor)
        os.replace(folder / "a" / f"{name}.new", folder / "a" / name)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _held(disk: Disk) -> dict[str, bytes]:
    return {path: survivor.data for path, survivor in disk.items() if survivor}


def test_disk_in_order_of_names_loses_unsynced_files(tmp_path: Path) -> None:
    recording = record(tmp_path, (_written,))
    end = len(recording.operations)
    assert _held(disk_after(recording, end, ORDER, "empty")) == {
        "a/synced": b"new content",
        "a/lost": b"",
    }
    assert _held(disk_after(recording, end, ORDER, "half")) == {
        "a/synced": b"new content",
        "a/lost": b"new c",
    }
    assert _held(disk_after(recording, end, ORDER, "zeros"))["a/lost"] == bytes(11)


def test_synced_disk_without_synced_folders_loses_files(tmp_path: Path) -> None:
    recording = record(tmp_path, (_written, lambda folder: _sync(folder / "a")))
    assert disk_after(recording, len(recording.operations), SYNCED, "none") == {}
    assert "a/lost" in disk_after(recording, len(recording.operations), SYNCED, "all")


def test_synced_disk_holds_synced_files(tmp_path: Path) -> None:
    recording = record(tmp_path, (_written, lambda folder: _sync(folder / "a"), _sync))
    disk = disk_after(recording, len(recording.operations), SYNCED, "none")
    assert _held(disk) == {"a/synced": b"new content", "a/lost": b""}


def test_folder_removed_for_good_loses_its_files(tmp_path: Path) -> None:
    _written(tmp_path)

    def remove(folder: Path) -> None:
        for name in ("synced", "lost"):
            os.unlink(folder / "a" / name)
        os.rmdir(folder / "a")

    recording = record(tmp_path, (remove, _sync))
    unlinked, removed, end = 2, 3, len(recording.operations)
    assert "a/lost" in disk_after(recording, unlinked, SYNCED, "none")
    assert "a/lost" in disk_after(recording, removed, SYNCED, "none")
    assert disk_after(recording, end, SYNCED, "none") == {}


def test_older_version_comes_back_with_its_inode_and_time(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    os.utime(file, ns=(1, 1))
    inode = file.stat().st_ino

    def replace(folder: Path) -> None:
        (folder / "new").write_text("new content")
        os.replace(folder / "new", folder / "file")

    recording = record(tmp_path, (replace,))
    survivor = disk_after(recording, len(recording.operations), SYNCED, "none")["file"]
    assert survivor is not None
    assert (survivor.inode, survivor.data, survivor.mtime_ns) == (inode, b"old", 1)


# --- histories ---


def _write(
    start: int, end: int, kind: str, revision: int, value: str = "x", expected: int = 0
) -> Operation:
    return Operation(start, end, kind, "k", OK, value, expected, State(value, revision))


def _read(start: int, end: int, state: State | None) -> Operation:
    return Operation(start, end, GET, "k", OK, state=state)


HISTORIES = {
    "a read after a write": ([_write(0, 1, CREATE, 1), _read(2, 3, State("x", 1))], True),
    "a read that is behind": ([_write(0, 1, CREATE, 1), _read(2, 3, None)], False),
    "a read beside a write": (
        [_write(0, 5, CREATE, 1), _read(1, 2, None), _read(3, 4, State("x", 1))],
        True,
    ),
    "two reads that go back": (
        [_write(0, 9, CREATE, 1), _read(1, 2, State("x", 1)), _read(3, 4, None)],
        False,
    ),
    "a deletion": ([_write(0, 1, CREATE, 1), _write(2, 3, DELETE, 2), _read(4, 5, None)], True),
    "two creations": ([_write(0, 1, CREATE, 1), _write(2, 3, CREATE, 2)], False),
    "a lost update": (
        [_write(0, 1, CREATE, 1), _write(2, 3, UPDATE, 2, "y", 1), _write(2, 3, UPDATE, 3, "z", 1)],
        False,
    ),
    "missing, though it is there": (
        [_write(0, 1, CREATE, 1), Operation(2, 3, UPDATE, "k", MISSING)],
        False,
    ),
    "overtaken by a deletion": (
        [
            _write(0, 1, CREATE, 1),
            _write(2, 3, DELETE, 2),
            Operation(2, 4, UPDATE, "k", OVERTAKEN, expected=1),
        ],
        True,
    ),
    "overtaken by nobody": (
        [_write(0, 1, CREATE, 1), Operation(2, 3, UPDATE, "k", OVERTAKEN, expected=1)],
        False,
    ),
    "killed, and done": (
        [Operation(0, NEVER, CREATE, "k", UNKNOWN, "x"), _read(2, 3, State("x", 1))],
        True,
    ),
    "killed, and not done": (
        [Operation(0, NEVER, CREATE, "k", UNKNOWN, "x"), _read(2, 3, None)],
        True,
    ),
    "killed, done and undone": (
        [
            Operation(0, NEVER, CREATE, "k", UNKNOWN, "x"),
            _read(2, 3, State("x", 1)),
            _read(4, 5, None),
        ],
        False,
    ),
}


@pytest.mark.parametrize(("operations", "expected"), HISTORIES.values(), ids=HISTORIES.keys())
def test_history_is_linearizable_or_not(operations: list[Operation], expected: bool) -> None:
    assert is_linearizable(operations) == expected


def test_list_without_earlier_write_is_reported() -> None:
    writes = [_write(0, 1, CREATE, 1)]
    assert list(check_listings(writes, [Listing(0, 3, 0, {})])) == []
    assert list(check_listings(writes, [Listing(2, 3, 1, {"k": State("x", 1)})])) == []
    assert list(check_listings(writes, [Listing(2, 3, 1, {})]))
    assert list(check_listings(writes, [Listing(2, 3, 0, {})]))
    assert list(check_listings(writes, [Listing(0, 3, 0, {"k": State("x", 1)})]))


def test_revision_that_goes_back_is_reported() -> None:
    assert list(check_revisions([_write(0, 1, CREATE, 2), _write(2, 3, UPDATE, 3)])) == []
    assert list(check_revisions([_write(0, 1, CREATE, 2), _write(2, 3, UPDATE, 1)]))
    assert list(check_revisions([_write(0, 1, CREATE, 2), _write(0, 3, UPDATE, 2)]))
