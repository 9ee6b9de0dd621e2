"""Progress of long work: shown on a terminal, and nowhere else."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest

from kubepy.cli.runtime.progress import INTERVAL, PATIENCE, Progress

PROGRAM = "import sys; from kubepy.cli.program import run; sys.exit(run())"
AGENT = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: nginx}]}}
"""


class Terminal(io.StringIO):
    """A terminal without a size, whose ``screen`` is the text visible on its line."""

    def isatty(self) -> bool:
        return True

    def screen(self) -> str:
        return look(self.getvalue())


def look(written: str) -> str:
    """Return the text left on the line after text and ``\\r``."""
    cells: list[str] = []
    position = 0
    for character in written:
        if character == "\r":
            position = 0
            continue
        cells[position : position + 1] = [character]
        position += 1
    return "".join(cells).rstrip()


class Watch:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_short_work_shows_nothing(watch: Watch) -> None:
    terminal = Terminal()
    progress = Progress(terminal, watch)
    for number in range(100):
        watch.now += PATIENCE / 101
        progress.show("applying", number, 100)
    progress.clear()
    assert terminal.getvalue() == ""


def test_line_is_written_over_and_taken_away(watch: Watch) -> None:
    terminal = Terminal()
    progress = Progress(terminal, watch)
    watch.now += PATIENCE
    progress.show("applying", 120, 1500)
    assert terminal.screen() == "applying 120/1500"
    watch.now += INTERVAL
    progress.show("reading", 7)
    assert terminal.screen() == "reading 7"
    progress.clear()
    assert terminal.screen() == ""


def test_line_that_says_same_is_left_as_it_is(watch: Watch) -> None:
    terminal = Terminal()
    progress = Progress(terminal, watch)
    for _ in range(3):
        watch.now += PATIENCE
        progress.show("applying", 1, 2)
    assert terminal.getvalue() == "\rapplying 1/2"


def test_progress_line_is_not_drawn_for_every_object(watch: Watch) -> None:
    terminal = Terminal()
    progress = Progress(terminal, watch)
    watch.now += PATIENCE
    for number in range(1000):
        watch.now += INTERVAL / 100
        progress.show("applying", number, 1000)
    assert terminal.getvalue().count("\r") <= 11


def test_progress_line_in_a_pipe_is_not_drawn(watch: Watch) -> None:
    stream = io.StringIO()
    progress = Progress(stream, watch)
    watch.now += 60
    progress.show("applying", 1, 2)
    progress.clear()
    assert stream.getvalue() == ""


def test_progress_line_shows_waiting_time(watch: Watch) -> None:
    terminal = Terminal()
    progress = Progress(terminal, watch)
    watch.now += 12.7
    progress.show(f"waiting {progress.seconds()}s", 3, 10, "pods/web")
    assert terminal.screen() == "waiting 12s 3/10 pods/web"


# --- as a process ---


class Output:
    """Output of a command: standard output is a pipe, standard error a terminal of 40 columns."""

    def __init__(self, out: str, terminal: str, status: int) -> None:
        self.out, self.terminal, self.status = out, terminal, status

    def drawn(self) -> list[str]:
        return [
            part.rstrip() for part in self.terminal.split("\r") if part.strip() and "\n" not in part
        ]


def on_a_terminal(
    words: Sequence[str], state: Path, *, stdin: str = "", **environment: str
) -> Output:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    env = {**os.environ, "KUBEPY_STATE": str(state), **environment}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=env,
        text=True,
    )
    os.close(theirs)
    out, _ = process.communicate(stdin, timeout=120)
    written = b""
    try:
        while part := os.read(ours, 65536):
            written += part
    except OSError:  # the other side of the terminal is closed
        pass
    os.close(ours)
    return Output(out, written.decode().replace("\r\n", "\n"), process.returncode)


@pytest.fixture
def patience(tmp_path: Path) -> dict[str, str]:
    """An environment in which all work counts as long, so that tests need not wait."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "from kubepy.cli.runtime import progress\nprogress.PATIENCE = progress.INTERVAL = 0.0\n"
    )
    return {"PYTHONPATH": f"{tmp_path / 'site'}:{os.environ.get('PYTHONPATH', '')}"}


def config_maps(count: int) -> str:
    return "---\n".join(
        f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m{number}}}}}\n"
        for number in range(count)
    )


def test_progress_line_is_shown_by_every_long_command(
    tmp_path: Path, patience: dict[str, str]
) -> None:
    state, name = tmp_path / "state", "a-name-that-is-longer-than-a-terminal-is-wide"

    def play(*words: str, stdin: str = "", status: int = 0) -> Output:
        played = on_a_terminal(words, state, stdin=stdin, **patience)
        assert played.status == status, played.terminal
        assert all(len(line) < 40 for line in played.drawn()), played.drawn()
        return played

    made = play("init", "--nodes=3")
    assert made.out.startswith(f"cluster created in {state}\n")
    assert {"making nodes 1/3", "making nodes 3/3"} <= set(made.drawn())

    applied = play("apply", "-f", "-", stdin=config_maps(5) + "---\n" + AGENT)
    assert (
        applied.out
        == "".join(f"configmap/m{n} created\n" for n in range(5)) + "daemonset.apps/agent created\n"
    )
    assert {"reading 6", "applying 1/6", "applying 6/6"} <= set(applied.drawn())
    assert look(applied.terminal) == ""

    run = play("controller", "--once", "-q")
    assert run.out == ""
    assert any(
        re.fullmatch(r"[1-9][0-9]* objects changed, \d+ to do", line) for line in run.drawn()
    )

    rolled = play("rollout", "status", "ds/agent", "--timeout=20s")
    assert rolled.out == 'daemon set "agent" successfully rolled out\n'
    play("set", "image", "ds/agent", "c=other")
    rolled = play("rollout", "status", "ds/agent", "--timeout=20s")
    assert rolled.out.endswith('daemon set "agent" successfully rolled out\n')
    assert any(
        "objects changed" in line or line == "waiting 0s daemonset.apps/agent"
        for line in rolled.drawn()
    )

    play("create", "configmap", name)
    waited = play("wait", f"cm/{name}", "--for=condition=Ready", "--timeout=1s", status=1)
    assert f"waiting 0s configmaps/{name}"[:36] + "..." in waited.drawn()
    assert waited.terminal.endswith(
        f"error: timed out waiting for the condition on configmaps/{name}\n"
    )

    deleted = play("delete", "cm", "--all")
    assert deleted.out.count(" deleted from default namespace\n") == 6
    assert {"deleting 1", "deleting 6", "waiting until gone 6/6"} <= set(deleted.drawn())
    assert look(deleted.terminal) == ""


def test_waiting_command_without_nodes_says_so(tmp_path: Path) -> None:
    state = tmp_path / "state"
    on_a_terminal(["init", "--nodes=0"], state)
    on_a_terminal(["apply", "-f", "-"], state, stdin=AGENT.replace("DaemonSet", "StatefulSet"))
    waited = on_a_terminal(["rollout", "status", "sts/agent", "--timeout=3s"], state)
    assert waited.out.endswith("Waiting for 1 pods to be ready...\n")
    assert waited.terminal.count("is Pending: there are no nodes: ") == 1


def test_pipe_gets_what_kubectl_would_write(tmp_path: Path, patience: dict[str, str]) -> None:
    env = {**os.environ, "KUBEPY_STATE": str(tmp_path / "state"), **patience}
    subprocess.run(
        [sys.executable, "-c", PROGRAM, "init"], env=env, check=True, capture_output=True
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "apply", "-f", "-"],
        input=config_maps(3),
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (
        "".join(f"configmap/m{n} created\n" for n in range(3)),
        "",
    )
