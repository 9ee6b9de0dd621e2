"""Scripts, run by the model and by the machine's shells."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from kubepy.shell.files import FileSystem, Tree
from kubepy.shell.machine import ContainerSetting, Exit, Machine, Output

NOW = datetime(2026, 3, 5, 9, 7, 3, tzinfo=UTC)
FOLDER = "/task"
FILES = {
    "f1": "alpha\nbeta\ngamma delta\n",
    "f2": "10\n9\n 8\n",
    "data.txt": "k:v\nfoo:bar\nno colon",
    "d/inner": "inside\n",
}
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "HOME": "/root"}
LONGEST = timedelta(hours=1)


class Outcome(NamedTuple):
    """The output and the exit status of a script; a status of -1: it has not ended."""

    out: bytes
    status: int
    err: bytes = b""


def new_machine(
    files: dict[str, str] | None = None, *, env: dict[str, str] | None = None
) -> Machine:
    """Return a machine with these files in its working folder."""
    given = FILES if files is None else files
    tree = Tree.of({f"{FOLDER}/{path}": content for path, content in given.items()})
    box = FileSystem(tree)
    box.make_dir(FOLDER, parents=True, now=NOW)
    box.make_dir("/tmp", parents=True, now=NOW)
    return Machine(box, env or ENVIRONMENT, ContainerSetting(cwd=FOLDER, hostname="web-0"), now=NOW)


def run_model(script: str, shell: str = "sh") -> Outcome:
    """Run a script by the model."""
    machine = new_machine()
    pid = machine.start([shell, "-c", script], is_main=True)
    machine.run(NOW + LONGEST)
    return outcome_of(machine.take_output(pid), machine.exit_of(pid))


def outcome_of(parts: Sequence[Output], end: Exit | None) -> Outcome:
    """Return what a process has printed, and how it has ended."""
    return Outcome(
        b"".join(part.data for part in parts if part.stream == "stdout"),
        -1 if end is None else end.code,
        b"".join(part.data for part in parts if part.stream == "stderr"),
    )


def _take_interrupts() -> None:
    """Take SIGINT again, which a job in the background ignores: a shell that begins so can set no
    trap for it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_real(scripts: Sequence[str], folder: Path, shell: str = "sh") -> list[Outcome]:
    """Run scripts by a shell of the machine, each in a folder of its own."""
    lines = []
    for index, script in enumerate(scripts):
        place = folder / str(index)
        for path, content in FILES.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(content)
        quoted = shlex.quote(script)
        lines.append(
            f"cd {place}; {shell} -c {quoted} < /dev/null > ../{index}.out 2> ../{index}.err\n"
            f"echo $? > ../{index}.status; cd ..\n"
        )
    (folder / "all.sh").write_text("".join(lines))
    subprocess.run(
        ["sh", "all.sh"],
        preexec_fn=_take_interrupts,
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        timeout=300,
        check=True,
    )
    return [
        Outcome(
            (folder / f"{index}.out").read_bytes(),
            int((folder / f"{index}.status").read_text()),
            (folder / f"{index}.err").read_bytes(),
        )
        for index in range(len(scripts))
    ]


def read_back(machine: Machine) -> Machine:
    """Return a machine and its files from their JSON text, as another program would have them."""
    text = json.dumps([machine.files.root.to_json(), machine.to_json()])
    tree, value = json.loads(text)
    return Machine.from_json(value, FileSystem(Tree.from_json(tree)))


def run_in_pieces(script: str, shell: str = "sh") -> Outcome:
    """Run a script by the model; after every turn of its processes it goes on from its JSON."""
    machine = new_machine()
    pid = machine.start([shell, "-c", script], is_main=True)
    parts = []
    while machine.exit_of(pid) is None:
        machine.take_turns()
        parts += machine.take_output(pid)
        machine = read_back(machine)
        moment = machine.next_time()
        if moment is None or moment > NOW + LONGEST:
            break
        if moment > machine.now:
            machine.run(moment)
    parts += machine.take_output(pid)
    return outcome_of(parts, machine.exit_of(pid))
