"""The messages of programs in images whose programs are busybox's."""

from __future__ import annotations

import pytest

from kubepy.shell.files import FileSystem, Tree
from kubepy.shell.machine import ContainerSetting, Machine
from kubepy.shell.utilities.busyboxwords import busybox_message
from tests.shell.containers import BEGIN


def errors_of(script: str, *, has_busybox: bool) -> str:
    files = FileSystem(Tree.of({"/etc/motd": "hello\n"}))
    setting = ContainerSetting(has_busybox=has_busybox)
    machine = Machine(files, {}, setting, now=BEGIN)
    machine = Machine.from_json(machine.to_json(), files)
    pid = machine.start(["sh", "-c", script])
    machine.run(BEGIN)
    parts = [part.data for part in machine.take_output(pid) if part.stream == "stderr"]
    return b"".join(parts).decode()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("cat /no", "cat: can't open '/no': No such file or directory\n"),
        ("cat /etc", "cat: read error: Is a directory\n"),
        ("ls /no", "ls: /no: No such file or directory\n"),
        ("rm /no", "rm: can't remove '/no': No such file or directory\n"),
        ("cp /no /x", "cp: can't stat '/no': No such file or directory\n"),
        ("head /no", "head: /no: No such file or directory\n"),
        ("tail /no", "tail: can't open '/no': No such file or directory\n"),
        ("tail -f /no", "tail: can't open '/no': No such file or directory\n"),
        ("touch /no/x", "touch: /no/x: No such file or directory\n"),
        ("mkdir /etc", "mkdir: can't create directory '/etc': File exists\n"),
        ("find /etc -name motd -exec cat /no ';'", "cat: can't open '/no': No such file"),
        ("grep x /no", "grep: /no: No such file or directory\n"),
    ],
)
def test_program_of_busybox_missing_file_says_it_in_its_own_words(
    script: str, message: str
) -> None:
    assert errors_of(script, has_busybox=True).startswith(message)


def test_program_of_gnu_missing_file_keeps_its_words() -> None:
    assert errors_of("cat /no", has_busybox=False) == "cat: /no: No such file or directory\n"


def test_message_that_busybox_does_not_change_stays() -> None:
    assert busybox_message("awk", "cannot open /no") == "cannot open /no"
