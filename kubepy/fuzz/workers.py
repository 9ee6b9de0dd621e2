"""The runs that a process makes for a fuzz, whoever has asked for them."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import nullcontext
from threading import Lock

from kubepy.cli.parallel.runmaker import PartAnswer, Task, other_version
from kubepy.fuzz.cases import FuzzCase, World
from kubepy.fuzz.run import RunRecord, run_once
from kubepy.runtime.oracle import parse_run
from kubepy.storage import FolderError

KEPT_WORLDS = 2

_worlds: dict[bytes, World] = {}  # those that this process has opened, by their cases
_one_at_a_time = Lock()  # runs of one process, whose executor may have several threads


def run_part(version: str, case: bytes, names: Sequence[str]) -> PartAnswer[RunRecord]:
    """Make some runs in this process.

    :param version: of the kubepy that asks.
    :param case: that of :func:`task_of`.
    """
    if error := other_version(version):
        return PartAnswer([], error)
    with _one_at_a_time:
        try:
            world = world_of(case)
            files = world.case.files
            with files.unpacked() if files is not None else nullcontext():
                return PartAnswer([run_once(world, parse_run(name)) for name in names])
        except FolderError as error:
            return PartAnswer([], str(error))


def task_of(case: FuzzCase) -> Task[RunRecord]:
    """Return the runs of a case as work for others, who unpack it from memory, never from a
    file."""
    return Task(run_part, pickle.dumps(case))


def world_of(case: bytes) -> World:
    """Return a case as it is open in this process. Raises FolderError."""
    world = _worlds.get(case)
    if world is None:
        while len(_worlds) >= KEPT_WORLDS:
            del _worlds[next(iter(_worlds))]
        world = _worlds[case] = World(pickle.loads(case))
    return world
