"""The files that the processes of a container see."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from kubepy.shell.files import FileError, FileSystem, Mount, Tree

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)


def new_files(*mounts: Mount) -> FileSystem:
    return FileSystem(Tree.of({"etc/conf": "a=1\n", "task/x": "x", "task/d/y": "y"}), mounts)


def test_file_is_written_appended_and_read() -> None:
    files = new_files()
    files.write("/task/new", b"one\n", now=NOW)
    files.write("/task/new", b"two\n", now=LATER, append=True)
    assert files.read("/task/new") == b"one\ntwo\n"
    stat = files.stat("/task/new")
    assert (stat.kind, stat.mode, stat.size, stat.modified) == ("f", 0o644, 8, LATER)


def test_every_change_gives_a_new_version_and_reading_gives_none() -> None:
    files = new_files(Mount("/data", Tree()))
    changes: list[Callable[[], object]] = [
        lambda: files.write("/task/x", b"2", now=NOW),
        lambda: files.write("/data/x", b"2", now=NOW),
        lambda: files.touch("/task/x", now=LATER),
        lambda: files.make_dir("/data/d", now=NOW),
        lambda: files.symlink("x", "/data/l", now=NOW),
        lambda: files.set_mode("/task/x", 0o700),
        lambda: files.rename("/task/x", "/task/z", now=NOW),
        lambda: files.remove("/task/z", now=NOW),
        lambda: files.remove_dir("/data/d", now=NOW),
    ]
    for change in changes:
        before = files.version
        change()
        assert files.version > before
    before = files.version
    files.read("/etc/conf")
    files.list("/task")
    assert files.exists("/none") is False
    assert files.version == before


@pytest.mark.parametrize(
    ("act", "problem"),
    [
        (lambda files: files.read("/none"), "No such file or directory"),
        (lambda files: files.read("/task"), "Is a directory"),
        (lambda files: files.read("/task/x/y"), "Not a directory"),
        (lambda files: files.write("/task", b"", now=NOW), "Is a directory"),
        (lambda files: files.write("/no/x", b"", now=NOW), "No such file or directory"),
        (lambda files: files.list("/task/x"), "Not a directory"),
        (lambda files: files.make_dir("/task", now=NOW), "File exists"),
        (lambda files: files.make_dir("/a/b", now=NOW), "No such file or directory"),
        (lambda files: files.remove("/task", now=NOW), "Is a directory"),
        (lambda files: files.remove_dir("/task", now=NOW), "Directory not empty"),
        (lambda files: files.remove_dir("/task/x", now=NOW), "Not a directory"),
        (lambda files: files.rename("/task", "/task/d/in", now=NOW), "Invalid argument"),
        (lambda files: files.rename("/task/x", "/task/d", now=NOW), "Is a directory"),
        (lambda files: files.rename("/task/d", "/task/x", now=NOW), "Not a directory"),
        (lambda files: files.symlink("x", "/task/x", now=NOW), "File exists"),
        (lambda files: files.write("/fixed/f", b"", now=NOW), "Read-only file system"),
        (lambda files: files.write("/fixed/g", b"", now=NOW), "Read-only file system"),
        (lambda files: files.remove("/fixed/f", now=NOW), "Read-only file system"),
        (lambda files: files.remove_dir("/fixed", now=NOW), "Directory not empty"),
        (lambda files: files.rename("/task/x", "/data/x", now=NOW), "Invalid cross-device link"),
        (lambda files: files.remove_dir("/data", now=NOW), "Device or resource busy"),
        (lambda files: files.read("/loop"), "Too many levels of symbolic links"),
        (lambda files: files.write("/small/f", b"x" * 11, now=NOW), "No space left on device"),
    ],
)
def test_operation_that_fails_says_what_strerror_says(
    act: Callable[[FileSystem], object], problem: str
) -> None:
    files = new_files(
        Mount("/fixed", Tree.of({"f": "x"}), read_only=True),
        Mount("/data", Tree()),
        Mount("/small", Tree(limit=10)),
    )
    files.symlink("/loop", "/loop", now=NOW)
    with pytest.raises(FileError) as caught:
        act(files)
    assert caught.value.problem == problem


def test_links_are_followed_across_mounts() -> None:
    files = new_files(Mount("/data", Tree.of({"real/f": "deep"})))
    files.symlink("/data/real", "/task/link", now=NOW)
    files.symlink("../task/link/f", "/etc/f", now=NOW)
    assert files.read("/etc/f") == b"deep"
    assert files.real_path("/task/link/f") == "/data/real/f"
    assert files.is_link("/task/link")
    assert not files.is_link("/task/link/f")
    files.write("/etc/f", b"new", now=NOW)
    assert files.read("/data/real/f") == b"new"


def test_link_that_dangles_exists_only_as_a_link() -> None:
    files = new_files()
    files.symlink("nothing", "/task/link", now=NOW)
    assert not files.exists("/task/link")
    assert files.is_link("/task/link")
    files.remove("/task/link", now=NOW)
    assert files.list("/task") == ["d", "x"]


def test_mount_hides_what_lies_under_it() -> None:
    shared = Tree.of({"from": "volume"})
    files = new_files(Mount("/task", shared), Mount("/task/inner", Tree.of({"i": "1"})))
    assert files.list("/task") == ["from", "inner"]
    assert files.read("/task/inner/i") == b"1"


def test_sub_path_mounts_one_file_of_a_tree() -> None:
    tree = Tree.of({"a.conf": "A", "b.conf": "B"})
    files = new_files(Mount("/etc/app/a.conf", tree, sub_path="a.conf"))
    assert files.read("/etc/app/a.conf") == b"A"
    assert files.list("/etc/app") == ["a.conf"]


def test_two_containers_share_the_tree_of_a_volume() -> None:
    shared = Tree()
    first = new_files(Mount("/a", shared))
    second = FileSystem(Tree(), [Mount("/b", shared)])
    before = second.version
    first.write("/a/f", b"hello", now=NOW)
    assert second.read("/b/f") == b"hello"
    assert second.version > before


def test_dots_lead_up_and_stay() -> None:
    files = new_files()
    assert files.read("/task/d/../x") == b"x"
    assert files.read("/task/./d/.././../etc/conf") == b"a=1\n"
    assert files.read("/../../etc/conf") == b"a=1\n"


def test_parents_are_made_once() -> None:
    files = new_files()
    files.make_dir("/a/b/c", parents=True, now=NOW)
    files.make_dir("/a/b/c", parents=True, now=NOW)
    assert files.is_dir("/a/b/c")
    with pytest.raises(FileError, match="File exists"):
        files.make_dir("/task/x", parents=True, now=NOW)


def test_rename_replaces_a_file() -> None:
    files = new_files()
    files.write("/task/z", b"z", now=NOW)
    files.rename("/task/z", "/task/x", now=NOW)
    assert files.read("/task/x") == b"z"
    assert files.list("/task") == ["d", "x"]


def test_tree_survives_json_with_bytes_modes_times_and_links() -> None:
    tree = Tree.of({"text": "täxt", "bytes": b"\xff\x00"})
    files = FileSystem(tree)
    files.make_dir("/d", now=NOW, mode=0o700)
    files.symlink("text", "/d/link", now=LATER)
    files.set_mode("/text", 0o600)
    files.set_owner("/text", 1000, 2000)
    text = json.dumps(tree.to_json())
    copy = Tree.from_json(json.loads(text))
    again = FileSystem(copy)
    assert json.dumps(copy.to_json()) == text
    assert (copy.version, copy.size) == (tree.version, tree.size)
    for path in ("/text", "/bytes", "/d"):
        assert again.stat(path) == files.stat(path)
    assert again.stat("/d/link", follow=False) == files.stat("/d/link", follow=False)
    assert again.read("/bytes") == b"\xff\x00"
