"""This process on a simulated disk, with the simulated stamps of its files and boot id of its
machine."""

from __future__ import annotations

import pickle
from functools import lru_cache
from pathlib import Path

from kubepy.storage.folder import index

from . import simulated_disk
from .deaths import acknowledge_transactions, in_child
from .reference import ScenarioFails, last_line
from .scenarios import Step
from .simulated_disk import Disk, Recorder, Recording, VirtualStamps

_stamps = VirtualStamps()
_boot = ["boot-0"]


@lru_cache(maxsize=1)
def install() -> None:
    """Make this process, and its later children, see simulated stamps and boot ids."""
    _stamps.install()
    index.boot_id = lambda: _boot[0]


def boot(name: str) -> None:
    """Simulate a restart of the machine."""
    _boot[0] = name


def lay_out(disk: Disk, folder: Path) -> None:
    """Make a folder of a disk; stamps of an earlier folder are forgotten."""
    _stamps.clear()
    simulated_disk.lay_out(disk, folder, _stamps)


def record(folder: Path, steps: tuple[Step, ...]) -> Recording:
    """Record steps in a process of their own. Raises ScenarioFails."""

    def run(report: int) -> None:
        recorder = Recorder(folder)
        acknowledge_transactions(recorder.acknowledge_transaction)
        recorder.arm()
        for step in steps:
            step(folder)
            recorder.acknowledge_end()
        simulated_disk.write_recording(recorder.recording(), report)

    status, said = in_child(run)
    if status:
        raise ScenarioFails(last_line(said))
    recording: Recording = pickle.loads(said)
    return recording
