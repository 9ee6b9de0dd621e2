"""Play a script of commands in an empty folder and print what they print:
``python player.py SCRIPT [VARIANT]``.

A script has the form of a conformance case: lines ``$ COMMAND``, then files below lines
``-- NAME --``. A command is ``kubepy …`` (with variables before it, pipes, ``< FILE`` and
``> FILE``), run in this process, or for bash.

The variant ``strange`` is a machine that differs in all that a script cannot see: batches of one
write, a slow processor, another order of directories and of rows, a process for each command, reads
between the commands, and time that goes on in several steps.
"""

from __future__ import annotations

import io
import os
import random
import re
import shlex
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from kubepy.cli.main import main
from kubepy.controlplane import manager
from tests.forkserver import import_program

# After these nothing is left to do, so that a read between the commands does nothing.
SETTLED = re.compile(r"kubepy (clock (advance|set)|controller|get|describe|rollout status|wait)\b")
READS = (
    "get all,nodes,pvc,events -A",
    "get pods -A -o yaml",
    "describe pods -A",
    "create configmap dry --dry-run=server --from-literal=a=b",
    "get nothing --ignore-not-found",
)


class Done(NamedTuple):
    """What a command printed, and its exit status."""

    out: str
    err: str
    status: int

    def __str__(self) -> str:
        lines = [self.out, *(f"! {line}\n" for line in self.err.splitlines())]
        return "".join(lines) + (f"[{self.status}]\n" if self.status else "")


def parse(script: Path) -> tuple[list[str], dict[str, str]]:
    """Return the commands and the files of a script."""
    commands: list[str] = []
    files: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in script.read_text().splitlines():
        if named := re.fullmatch(r"-- (\S+) --", line):
            current = files.setdefault(named[1], [])
        elif current is not None:
            current.append(line)
        elif line.startswith("$ "):
            commands.append(line[2:])
    return commands, {name: "\n".join(lines) + "\n" for name, lines in files.items()}


def run(command: str) -> Done:
    """Run one line: in this process where it is for kubepy alone."""
    if not re.match(r"(\w+=\S* +)*kubepy ", command):
        done = subprocess.run(
            ["bash", "-c", command], text=True, capture_output=True, stdin=subprocess.DEVNULL
        )
        return Done(done.stdout, done.stderr, done.returncode)
    stdin, err, done = "", "", Done("", "", 0)
    for part in command.split(" | "):
        words = shlex.split(part, comments=True)
        first = words.index("kubepy")
        variables, words = dict(word.split("=", 1) for word in words[:first]), words[first:]
        target = words.pop() if words[-2] == ">" and words.pop(-2) else None
        stdin = Path(words.pop()).read_text() if words[-2] == "<" and words.pop(-2) else stdin
        done = run_kubepy(words[1:], stdin, variables)
        stdin, err = done.out, err + done.err
        if target:
            Path(target).write_text(done.out)
            done = done._replace(out="")
    return done._replace(err=err)


def run_kubepy(words: list[str], stdin: str, variables: dict[str, str]) -> Done:
    out, err = io.StringIO(), io.StringIO()
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        status = main(words, stdin=io.StringIO(stdin), stdout=out, stderr=err)
    finally:
        os.environ.clear()
        os.environ.update(before)
    return Done(out.getvalue(), err.getvalue(), status)


def in_other_processes(command: str, chance: random.Random) -> None:
    """Run a command in a child process, an advance of time step by step in several; print what it
    prints."""
    steps = [command]
    if advance := re.fullmatch(r"(kubepy clock advance) (\d+)([smh])", command):
        left, steps = int(advance[2]) * {"s": 1, "m": 60, "h": 3600}[advance[3]], []
        while left > 0:
            seconds = min(left, chance.choice((1, 7, 60, 599, 3600)) if left < 7200 else 3599)
            left -= seconds
            steps.append(f"{advance[1]} {seconds}s")
    for number, step in enumerate(steps, 1):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            done = run(step)
            print(done if number == len(steps) or done.status else "", end="", flush=True)
            os._exit(0)
        os.waitpid(child, 0)


def make_strange() -> None:
    """Change what no output may depend on."""
    chance = random.Random(1)
    os.umask(0o027)
    manager.BATCH_SECONDS = manager.MAX_BATCH_SECONDS = 0.0
    listdir, scandir, connect, monotonic = os.listdir, os.scandir, sqlite3.connect, time.monotonic

    def shuffled(items: Any) -> list[Any]:
        return chance.sample(items := list(items), len(items))

    class Entries(list[Any]):
        def __enter__(self) -> Entries:
            return self

        def __exit__(self, *raised: object) -> None:
            pass

        close: Callable[[], None] = list.clear

        def __next__(self) -> Any:
            if not self:
                raise StopIteration
            return self.pop()

    def connect_strangely(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.execute("PRAGMA reverse_unordered_selects = ON")
        return connection

    os.listdir = lambda *args: shuffled(listdir(*args))  # type: ignore[assignment]
    os.scandir = lambda *args: Entries(shuffled(scandir(*args)))  # type: ignore[assignment, misc]
    sqlite3.connect = connect_strangely  # type: ignore[assignment]
    start = monotonic()
    time.monotonic = lambda: start + 100 * (monotonic() - start)


def play(script: Path, variant: str) -> None:
    (commands, files), chance = parse(script), random.Random(script.stem)
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content)
    if variant == "strange":
        import_program()  # once, not in the process of each command
        make_strange()
    for command in commands:
        print(f"$ {command}", flush=True)
        if variant == "strange":
            in_other_processes(command, chance)
            if SETTLED.match(command):
                for read in READS:
                    run(f"kubepy {read}")
        else:
            print(run(command), end="", flush=True)


if __name__ == "__main__":
    play(Path(sys.argv[1]), (*sys.argv[2:], "")[0])
