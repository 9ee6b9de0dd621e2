"""A scenario run without faults: the folder before its work, and its states."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import NamedTuple

from .deaths import NEVER, acknowledge_transactions, in_child, run_killed
from .scenarios import Scenario, Step
from .scratch import Image, capture, restore
from .views import View, look

INDEX = ".kubepy/index.db"


class Reference(NamedTuple):
    """A scenario without faults. ``before``: the folder before its last step. ``states``: before
    the recorded steps and after each of their transactions. ``ticks``: the number of changing calls
    in the last step."""

    before: Image
    states: list[View | None]
    ticks: int


class ScenarioFails(Exception):
    """A scenario that fails without a fault."""


def reference_of(scenario: Scenario, scratch: Path) -> Reference:
    """Run a scenario without faults. Raises ScenarioFails."""
    prepared = scratch / "prepared"
    for step in scenario.prepare:
        run_step(step, prepared)
    before = capture(prepared)
    states = states_of(scenario, prepared, (scenario.work,))
    counted = scratch / "counted"
    settle_in(before, counted, scenario)
    death = run_killed(NEVER, lambda: scenario.work(counted))
    if not death.done:
        raise ScenarioFails(death.error)
    return Reference(before, states, death.ticks)


def run_step(step: Step, folder: Path) -> None:
    status, said = in_child(lambda _: step(folder))
    if status:
        raise ScenarioFails(last_line(said))


def states_of(scenario: Scenario, folder: Path, steps: tuple[Step, ...]) -> list[View | None]:
    """Return the states of the cluster while steps run, each in a process of its own: before, after
    each transaction, and at the end (work without a transaction, such as recording edits, has only
    that)."""

    def run(report: int) -> None:
        states = [look(scenario.opener, folder)]

        def note() -> None:
            states.append(look(scenario.opener, folder))

        acknowledge_transactions(note)
        for step in steps:
            step(folder)
        note()
        with os.fdopen(report, "wb") as pipe:
            pickle.dump(states, pipe)

    status, said = in_child(run)
    if status:
        raise ScenarioFails(last_line(said))
    states: list[View | None] = pickle.loads(said)
    if states[-1] == states[-2]:  # all changes were transactions
        states.pop()
    return states


def last_line(said: bytes) -> str:
    return said.decode(errors="replace").strip("f\0 \n").rpartition("\n")[2]


def settle_in(image: Image, folder: Path, scenario: Scenario) -> None:
    """Make a folder of an image and let its index learn the new inodes, as after a copy."""
    restore(image, folder)
    if INDEX in image:
        look(scenario.opener, folder)
