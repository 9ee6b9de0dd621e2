"""A process killed at every call that changes something, and the next one killed while it recovers.

A point ``37`` is a death before the 38th changing call of the work; ``37.4`` is the same, followed
by the death of the next process before its fifth changing call.
"""

from __future__ import annotations

import pickle
import random
from functools import lru_cache
from pathlib import Path

from .checks import Expected, scenario_losses
from .deaths import NEVER, Death, run_killed
from .reference import Reference, reference_of, settle_in
from .runner import Loss, Outcome, Point, Section, outcome
from .scenarios import ALL, Scenario
from .views import look

EVERY = 3  # after one of this many deaths the recovery is killed as well
AGAIN = 25  # the most deaths of one recovery


def set_up(name: str, place: Path, seed: int) -> list[Point]:
    reference = reference_of(ALL[name], place)
    (place / "reference").write_bytes(pickle.dumps(reference))
    points = [Point(name, str(tick)) for tick in range(reference.ticks + 1)]
    return points + [
        Point(name, f"{tick}.*", urgent=False)
        for tick in range(seed % EVERY, reference.ticks, EVERY)
    ]


def _recover(scenario: Scenario, folder: Path) -> None:
    if scenario.finish:
        scenario.finish(folder)
    else:
        look(scenario.opener, folder)


@lru_cache(maxsize=4)
def _reference(place: Path) -> Reference:
    reference: Reference = pickle.loads((place / "reference").read_bytes())
    return reference


def run(point: Point, place: Path, folder: Path, seed: int) -> Outcome:
    first, _, second = point.name.partition(".")
    if second != "*":
        return outcome(point, _killed(point, place, folder / "state"))
    losses: list[Loss] = []
    ticks = _ticks_after(int(first), place, ALL[point.scenario], folder / "counted")
    chosen = random.Random(f"{seed} {point.name}").sample(range(ticks), min(ticks, AGAIN))
    for number, again in enumerate(chosen):
        nested = point._replace(name=f"{first}.{again}")
        losses += outcome(nested, _killed(nested, place, folder / f"state-{number}")).losses
    return Outcome(len(chosen), losses)


def _ticks_after(tick: int, place: Path, scenario: Scenario, folder: Path) -> int:
    """Return the number of changing calls in the recovery after a death."""
    settle_in(_reference(place).before, folder, scenario)
    run_killed(tick, lambda: scenario.work(folder))
    return run_killed(NEVER, lambda: _recover(scenario, folder)).ticks


def _killed(point: Point, place: Path, state: Path) -> list[str]:
    """Return the losses when the process of the work, and the one after it, are killed."""
    scenario, reference = ALL[point.scenario], _reference(place)
    first, _, second = point.name.partition(".")
    settle_in(reference.before, state, scenario)
    death = run_killed(int(first), lambda: scenario.work(state))
    deaths = [death]
    if second and not death.error:
        deaths.append(run_killed(int(second), lambda: _recover(scenario, state)))
    losses = [f"fails: {one.error.strip()}" for one in deaths if one.error]
    if not losses:
        acknowledged = len(reference.states) - 1 if death.done else death.acknowledged
        losses = scenario_losses(
            scenario, state, Expected(reference.states, acknowledged, scenario.likeness)
        )
    return [
        f"killed at {' then '.join(_shown(one, state) for one in deaths)}: {loss}"
        for loss in losses
    ]


def _shown(death: Death, state: Path) -> str:
    return death.at.replace(f"{state}/", "") if death.killed else "its end"


SECTION = Section("kill", tuple(ALL), set_up, run, minutes=13)
