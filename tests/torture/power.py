"""Power cut at every step of a commit, and of the recovery from a power cut.

A point ``41/order/zeros`` is a cut after 41 calls, in that model and choice (see
``simulated_disk``); ``end/…`` is a cut right after the commands ended, with ``.kubepy`` removed
afterwards. ``41/order/zeros+7/synced/none`` is a second cut while the next process recovers from
the first.
"""

from __future__ import annotations

import pickle
import random
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from . import simulation
from .checks import Expected, scenario_losses
from .reference import INDEX, run_step, states_of
from .runner import Loss, Outcome, Point, Section, outcome
from .scenarios import ALL, CLUSTER, Scenario
from .scratch import OWN
from .simulated_disk import (
    ALL_LOST,
    CONTENT_LOSSES,
    NOTHING_LOST,
    ORDER,
    SYNCED,
    Recording,
    disk_after,
)
from .views import View, contents_only, in_files, look, names_only, open_store

SEEDS = 3  # seeds of each cut in the model ``synced``
EVERY = 11  # after one of this many cuts the recovery is cut as well
AGAIN = 20  # the most cuts of one recovery
END = "end"


class Traced(NamedTuple):
    """The recorded calls of a scenario, and its states."""

    recording: Recording
    states: list[View | None]


def _first_traced(scenario: Scenario) -> int:
    """Return the first step whose calls are recorded; the effects of earlier steps are on the
    disk."""
    if scenario.traced is not None:
        return scenario.traced
    return 0 if scenario.opener is open_store else min(len(scenario.steps) - 1, len(CLUSTER))


def set_up(name: str, place: Path, seed: int) -> list[Point]:
    simulation.install()
    scenario = ALL[name]
    simulation.boot("boot-0")
    before, traced = (
        scenario.steps[: _first_traced(scenario)],
        scenario.steps[_first_traced(scenario) :],
    )
    folders = place / "recorded", place / "reference"
    for folder in folders:
        for step in before:
            run_step(step, folder)
    states = states_of(scenario, folders[1], traced)
    simulation.boot("boot-1")
    recording = simulation.record(folders[0], traced)
    (place / "traced").write_bytes(pickle.dumps(Traced(recording, states)))
    return _points(name, recording, seed)


def _points(name: str, recording: Recording, seed: int) -> list[Point]:
    points = []
    for cut in range(len(recording.operations) + 1):
        points += [Point(name, f"{cut}/{choice}") for choice in _choices(seed)]
        if cut % EVERY == seed % EVERY:
            points += [Point(name, f"{cut}/{choice}+*", urgent=False) for choice in _choices(seed)]
    points += [Point(name, f"{END}/{choice}") for choice in _choices(seed)]
    return points


def _choices(seed: int) -> list[str]:
    chances = [f"{SYNCED}/{seed + number}" for number in range(SEEDS)]
    return [
        *(f"{ORDER}/{loss}" for loss in CONTENT_LOSSES),
        f"{SYNCED}/{ALL_LOST}",
        f"{SYNCED}/{NOTHING_LOST}",
        *chances,
    ]


@lru_cache(maxsize=4)
def _traced(place: Path) -> Traced:
    traced: Traced = pickle.loads((place / "traced").read_bytes())
    return traced


def run(point: Point, place: Path, folder: Path, seed: int) -> Outcome:
    simulation.install()
    first, _, second = point.name.partition("+")
    if second != "*":
        return outcome(point, _cut(point, place, folder / "state"))
    recovery = _record_recovery(point, place, folder / "recorded")
    cuts = [
        f"{cut}/{choice}"
        for cut in range(1, len(recovery.operations) + 1)
        for choice in _choices(seed)
    ]
    losses: list[Loss] = []
    chosen = random.Random(f"{seed} {point.name}").sample(cuts, min(len(cuts), AGAIN))
    for number, again in enumerate(chosen):
        nested = point._replace(name=f"{first}+{again}")
        losses += outcome(nested, _cut(nested, place, folder / f"state-{number}")).losses
    return Outcome(len(chosen), losses)


def _record_recovery(point: Point, place: Path, folder: Path) -> Recording:
    """Record the first process after a cut."""
    scenario = ALL[point.scenario]
    _lay_out(_traced(place).recording, point.name.partition("+")[0], folder)
    simulation.boot("boot-2")
    return simulation.record(folder, (lambda recorded: look(scenario.opener, recorded) and None,))


def _lay_out(recording: Recording, cut: str, folder: Path) -> None:
    calls, model, choice = cut.split("/")
    disk = disk_after(recording, _calls(recording, calls), model, choice)
    if calls == END:
        disk = {path: survivor for path, survivor in disk.items() if path.partition("/")[0] != OWN}
    simulation.lay_out(disk, folder)


def _calls(recording: Recording, calls: str) -> int:
    return recording.ends[-1] if calls == END else int(calls)


def _cut(point: Point, place: Path, state: Path) -> list[str]:
    scenario, traced = ALL[point.scenario], _traced(place)
    first, _, second = point.name.partition("+")
    calls = _calls(traced.recording, first.partition("/")[0])
    if second:
        recovery = _record_recovery(point, place, state.with_name(f"{state.name}-recorded"))
        _lay_out(recovery, second, state)
    else:
        _lay_out(traced.recording, first, state)
    simulation.boot("boot-3" if second else "boot-2")
    acknowledged = sum(number <= calls for number in traced.recording.transactions)
    if calls >= traced.recording.ends[-1]:
        acknowledged = len(traced.states) - 1
    likeness = scenario.likeness
    if likeness not in (names_only, contents_only) and not (state / INDEX).exists():
        likeness = in_files
    last = traced.recording.operations[calls - 1].call if calls else "nothing"
    losses = scenario_losses(scenario, state, Expected(traced.states, acknowledged, likeness))
    return [f"cut after {last}: {loss}" for loss in losses]


SECTION = Section("power", tuple(ALL), set_up, run, minutes=8)
