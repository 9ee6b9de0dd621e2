"""The program of the fork server ends as kubepy itself does: exit statuses, signals, streams,
words."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.forkserver import ForkServer
from tests.waiting import eventually


def bash(
    server: ForkServer, script: str, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    path = f"{server.folder}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "KUBEPY_STATE": str(folder / "state"), **environment}
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=env, text=True, capture_output=True, timeout=60
    )


def test_streams_folder_environment_and_status_are_those_of_the_caller(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    done = bash(
        fork_server,
        """
        kubepy init --nodes=0 > made 2> note; mkdir sub; cd sub; head -1 ../made
        printf 'é' | kubepy create cm x --from-file=k=/dev/stdin --dry-run=client -o jsonpath='{.data.k}'; echo
        kubepy get nodes nothing > ../both 2>&1; echo $?; cat ../both
        KUBEPY_STATE=none kubepy get cm > /dev/null 2>&1; echo $?
        kubepy create --help | head -1; kubepy version nothing
    """,  # noqa: E501
        tmp_path,
    )
    assert done.stdout.splitlines() == [
        f"cluster created in {tmp_path}/state",
        "é",
        "1",
        'Error from server (NotFound): nodes "nothing" not found',
        "1",
        "Create a resource from a file or from stdin.",
    ]
    assert (done.stderr, done.returncode) == ("error: extra arguments: [nothing]\n", 1)


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGTERM, 0),
        (signal.SIGINT, 130),
        (signal.SIGHUP, -signal.SIGHUP),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_signal_to_the_program_ends_what_it_runs(
    fork_server: ForkServer, tmp_path: Path, number: int, status: int
) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("whoever started the tests has this signal ignored, as nohup does")
    bash(fork_server, "kubepy init --nodes=0", tmp_path)
    env = {**os.environ, "KUBEPY_STATE": str(tmp_path / "state")}
    words = [fork_server.program, "controller", "--watch"]
    with subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL) as program:
        eventually(lambda: (tmp_path / "state/.kubepy/manager.lock.holder").exists())
        program.send_signal(number)
    assert program.returncode == status
    eventually(fork_server.is_idle)
