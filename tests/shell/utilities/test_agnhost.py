"""The program of the image agnhost."""

from __future__ import annotations

import pytest

from kubepy.shell.files import FileSystem, Mount, Tree
from kubepy.shell.utilities.agnhost import loop_script
from kubepy.shell.utility import Unknown
from kubepy.shell.words import is_known_command
from tests.shell.utilities.programs import FOLDER, NOW, run_model


@pytest.fixture
def files() -> FileSystem:
    """The files of a container: one on its own layer, one in memory, one on the node's disk."""
    mounts = [
        Mount("/memory", Tree.of({"a": "in memory\n"}), is_in_memory=True),
        Mount("/disk", Tree.of({"b": "on a disk"}, mode=0o640), read_only=True),
    ]
    etc = {
        "etc/hosts": "127.0.0.1\tlocalhost\n",
        "etc/resolv.conf": "search a.test b.test\nnameserver 10.96.0.10\nnameserver 1.1.1.1\n",
    }
    files = FileSystem(Tree.of(etc), mounts)
    files.make_dir(FOLDER, parents=True, now=NOW)
    return files


@pytest.mark.parametrize(("command", "expected"), [
    ("/agnhost entrypoint-tester", "[/agnhost entrypoint-tester]\n"),
    ("/agnhost-2 entrypoint-tester a b", "[/agnhost-2 entrypoint-tester a b]\n"),
    ("/agnhost etc-hosts", "127.0.0.1\tlocalhost\n\n"),
    ("/agnhost dns-suffix", "a.test,b.test\n"),
    ("/agnhost dns-server-list", "10.96.0.10,1.1.1.1\n"),
    ("/agnhost mounttest --fs_type=/", 'mount type of "/": 2035054128\n'),
    ("/agnhost mounttest --fs_type=/memory/a", 'mount type of "/memory/a": tmpfs\n'),
    ("/agnhost mounttest --fs_type=/disk", 'mount type of "/disk": 61267\n'),
    ("/agnhost mounttest --file_content=/memory/a",
     'content of file "/memory/a": in memory\n\n'),
    ("/agnhost mounttest --file_mode=/disk/b", 'mode of file "/disk/b": -rw-r-----\n'),
    ("/agnhost mounttest --file_mode=/disk", 'mode of file "/disk": drwxr-xr-x\n'),
    ("/agnhost mounttest --file_perm=/disk", 'perms of file "/disk": -rwxr-xr-x\n'),
    ("/agnhost mounttest --file_owner=/disk",
     'owner UID of "/disk": 0\nowner GID of "/disk": 0\n'),
])  # fmt: skip
def test_command_prints_what_it_finds(files: FileSystem, command: str, expected: str) -> None:
    outcome = run_model(command.split(), files=files)
    assert (outcome.out.decode(), outcome.status) == (expected, 0)


@pytest.mark.parametrize(("flag", "mode"), [
    ("new_file_0644", "-rw-r--r--"),
    ("new_file_0666", "-rw-rw-rw-"),
    ("new_file_0660", "-rw-rw----"),
    ("new_file_0777", "-rwxrwxrwx"),
])  # fmt: skip
def test_new_file_has_its_mode_and_content(files: FileSystem, flag: str, mode: str) -> None:
    command = ["/agnhost", "mounttest", "--file_perm=/memory/n", f"--{flag}=/memory/n"]
    assert run_model(command, files=files).out.decode() == (
        f'content of file "/memory/n": mount-tester new file\n\nperms of file "/memory/n": {mode}\n'
    )


@pytest.mark.parametrize(("flag", "expected"), [
    ("file_content=/none",
     'error reading file content for "/none": open /none: no such file or directory\n'),
    ("file_mode=/none", 'error from Stat("/none"): stat /none: no such file or directory\n'),
    ("fs_type=/none", 'error from statfs("/none"): no such file or directory\n'),
    ("new_file_0644=/disk/n",
     'error writing new file "/disk/n": open /disk/n: read-only file system\n'),
])  # fmt: skip
def test_what_is_not_there_fails_in_the_words_of_go(
    files: FileSystem, flag: str, expected: str
) -> None:
    outcome = run_model(["/agnhost", "mounttest", f"--{flag}"], files=files)
    assert (outcome.out.decode(), outcome.status) == (expected, 1)


def test_servers_of_the_image_are_no_commands_that_the_model_runs() -> None:
    assert is_known_command(["/agnhost", "mounttest", "--fs_type=/"])
    assert not is_known_command(["/agnhost", "netexec"])
    assert not is_known_command(["/agnhost"])
    assert not is_known_command(["agnhost", "mounttest"])
    with pytest.raises(Unknown):
        run_model(["/agnhost", "netexec"])


def test_loop_is_known_without_other_flags() -> None:
    assert "seq 60" in loop_script(["--file_content_in_loop=/f", "--retry_time=120"])
    assert loop_script(["--file_content_in_loop=/f", "--fs_type=/f"]) == ""
    assert loop_script(["--file_content=/f"]) == ""
    assert loop_script(["--file_content_in_loop=/f", "--retry_time=soon"]) == ""
