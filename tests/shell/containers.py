"""Containers of the model for tests."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from kubepy.shell.files import FileSystem, Tree
from kubepy.shell.machine import ContainerSetting, Machine

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Result(NamedTuple):
    """What a script has done. The status is None while it runs."""

    stdout: str
    status: int | None
    stderr: str
    seconds: float | None


def new_machine(script: str, *args: str, shell: str = "sh") -> Machine:
    """Return a machine whose main process is a script, in ``/task``."""
    files = FileSystem(Tree())
    files.make_dir("/task", parents=True, now=BEGIN)
    machine = Machine(files, {"PATH": "/bin"}, ContainerSetting(cwd="/task"), now=BEGIN)
    machine.start([shell, "-c", script, *args], is_main=True)
    return machine


def result_of(machine: Machine) -> Result:
    """Return what the main process has done so far."""
    outputs = machine.take_output(1)
    stdout = b"".join(part.data for part in outputs if part.stream == "stdout")
    stderr = b"".join(part.data for part in outputs if part.stream == "stderr")
    end = machine.exit_of(1)
    seconds = (end.time - BEGIN).total_seconds() if end else None
    return Result(stdout.decode(), end.code if end else None, stderr.decode(), seconds)


def run(script: str, *args: str, shell: str = "sh", seconds: float = 60) -> Result:
    """Run a script for some time."""
    machine = new_machine(script, *args, shell=shell)
    machine.run(BEGIN + timedelta(seconds=seconds))
    return result_of(machine)


def run_in_steps(script: str, seconds: float = 60) -> Result:
    """Run a script; at each moment at which something happens it goes through JSON."""
    machine = new_machine(script)
    end = BEGIN + timedelta(seconds=seconds)
    moment = machine.next_time()
    while moment is not None and moment <= end:
        machine.run(moment)
        value = json.loads(json.dumps(machine.to_json()))
        machine = Machine.from_json(value, machine.files)
        moment = machine.next_time()
    return result_of(machine)
