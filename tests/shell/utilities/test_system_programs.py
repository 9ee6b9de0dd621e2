"""Programs that tell of the machine, the time and the user, which a cluster decides."""

from __future__ import annotations

import shlex
from datetime import timedelta
from pathlib import Path

import pytest

from kubepy.shell.files import FileSystem, Mount, Tree
from kubepy.shell.utilities import UTILITIES, find_utility
from kubepy.shell.utility import Unknown
from tests.shell.utilities.programs import FOLDER, NOW, invocation, run_model, run_real


@pytest.mark.parametrize(
    ("command", "out"),
    [
        ("date", "Thu Mar  5 09:07:03 UTC 2026\n"),
        ("date +%s", "1772701623\n"),
        ("date -u +%Y-%m-%dT%H:%M:%SZ", "2026-03-05T09:07:03Z\n"),
        ("date +%H:%M:%S.%N", "09:07:03.000042000\n"),
        ("date +%s%3N", "1772701623000\n"),
        ("date -I", "2026-03-05\n"),
        ("date -Iseconds", "2026-03-05T09:07:03+00:00\n"),
        ("date -R", "Thu, 05 Mar 2026 09:07:03 +0000\n"),
        ("date --rfc-3339=seconds", "2026-03-05 09:07:03+00:00\n"),
        ("date -d 'yesterday' +%F", "2026-03-04\n"),
        ("date -d '1 hour ago' +%T", "08:07:03\n"),
        ("date -d '+2 days' +%F", "2026-03-07\n"),
        ("hostname", "web-0\n"),
        ("id", "uid=0(root) gid=0(root) groups=0(root)\n"),
        ("id -u", "0\n"),
        ("id -un", "root\n"),
        ("id -g", "0\n"),
        ("whoami", "root\n"),
        ("uname", "Linux\n"),
        ("uname -n", "web-0\n"),
        ("uname -m", "x86_64\n"),
        ("arch", "x86_64\n"),
        ("nproc", "4\n"),
        ("sync", ""),
        ("mount", "overlay on / type overlay (rw,relatime)\n"),
    ],
)
def test_system_program_says_what_cluster_decides(command: str, out: str) -> None:
    outcome = run_model(shlex.split(command))
    assert (outcome.status, outcome.out.decode(), outcome.err) == (0, out, b"")


DATES = [
    *("@0", "@1700000000", "2026-01-02", "2026-01-02 03:04", "2026-01-02T03:04:05Z"),
    *("2026-01-02 03:04:05 +0200", "2026-01-02 + 1 day", "2026-01-31 10:00 2 weeks ago"),
    *("2026-03-01 -1 day", "2026-12-31 23:59:59 1 second", "2026-01-02T03:04:05-05:30"),
]
FORMATS = [
    *("%F %T", "%a %A %b %B %c", "%d %e %-d %_d %j %U %V %W %u %w", "%H %I %k %l %M %p %P %S"),
    *("%s %Y %y %C %G %g %D %R %r %x %X %h", "%Z %z %:z %n%t%%", "%5Y|%10d|%^a|%_5m|%03d|%q"),
]


@pytest.mark.parametrize("text", DATES)
@pytest.mark.parametrize("pattern", FORMATS)
def test_date_formats_as_real_one(text: str, pattern: str, tmp_path: Path) -> None:
    argv = ["date", "-d", text, f"+{pattern}"]
    assert run_model(argv) == run_real(argv, tmp_path)


@pytest.mark.parametrize(
    "command", ["date -d @x", "date -d 'next friday'", "date +%E", "date 0101"]
)
def test_unknown_date_is_unknown(command: str) -> None:
    with pytest.raises(Unknown):
        run_model(shlex.split(command))


def test_user_that_is_not_root_has_no_name() -> None:
    call = invocation(["whoami"])
    call.user = 1000
    utility = find_utility("whoami")
    assert utility is not None
    assert utility(call) == 1
    assert call.stderr == b"whoami: cannot find name for user ID 1000\n"


def test_processes_are_listed_as_busybox_does() -> None:
    call = invocation(["ps"])
    call.processes = [(1, 0, 0, "sleep 3600"), (7, 1, 1000, "sh")]
    utility = find_utility("ps")
    assert utility is not None
    assert utility(call) == 0
    assert call.stdout.decode() == (
        "PID   USER     TIME  COMMAND\n    1 root      0:00 sleep 3600\n    7 1000      0:00 sh\n"
    )


def test_uptime_counts_from_start_of_container() -> None:
    call = invocation(["uptime"])
    call.started = NOW - timedelta(hours=3, minutes=5)
    utility = find_utility("uptime")
    assert utility is not None
    utility(call)
    expected = " 09:07:03 up  3:05,  0 users,  load average: 0.00, 0.00, 0.00\n"
    assert call.stdout.decode() == expected
    assert not call.is_steady


def test_mounts_are_shown_by_df_and_mount() -> None:
    volume = Tree.of({"a": "x" * 2048})
    volume.limit = 1024**2
    box = FileSystem(Tree(), [Mount("/data", volume, read_only=True)])
    box.make_dir(FOLDER, parents=True, now=NOW)
    listed = run_model(["mount"], files=box).out.decode()
    assert "/dev/vda1 on /data type ext4 (ro,relatime)\n" in listed
    assert run_model(["df", "/data"], files=box).out.decode() == (
        "Filesystem     1K-blocks Used Available Use% Mounted on\n"
        "/dev/vda1           1024    2      1022   1% /data\n"
    )


@pytest.mark.parametrize("name", sorted(UTILITIES))
def test_option_that_is_not_known_makes_program_unknown(name: str) -> None:
    """An option that no program has is never passed over."""
    if name == "expr":
        pytest.skip("every argument of expr is an operand")
    if name == "dd":
        pytest.skip("dd has no options")
    with pytest.raises(Unknown):
        run_model([name, "--kubepy-has-no-such-option"])


@pytest.mark.parametrize(
    "command",
    [
        "dd if=a of=b bs=4 count=2",
        "dd if=a bs=3 skip=1",
        "dd if=a of=b bs=1 seek=2 conv=notrunc status=none",
        "dd if=nope",
        "dd if=/dev/zero of=new bs=1K count=3",
        "dd bs=2 count=1",
    ],
)
def test_dd_copies_what_real_one_copies(command: str, tmp_path: Path) -> None:
    argv = shlex.split(command)
    files: dict[str, bytes | str] = {"a": "0123456789", "b": "abcdefgh"}
    expected = run_real(argv, tmp_path, stdin=b"input", files=files)
    outcome = run_model(argv, stdin=b"input", files=files)
    assert outcome._replace(err=b"") == expected._replace(err=b"")
    records = [line for line in expected.err.splitlines() if b"records" in line or b"dd:" in line]
    assert outcome.err.splitlines()[: len(records)] == records
