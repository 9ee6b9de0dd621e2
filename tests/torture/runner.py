"""Run the points of a section on all cores, within its time, and report losses."""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from .checks import remove
from .scratch import scratch_folder

POINT_SECONDS = 60  # a point that takes longer counts as hanging
SHOWN = 60  # kinds of losses printed for a section
CHUNK = 4


class Options(NamedTuple):
    """Options of the command line. ``points`` 0: as many as there is time for; no ``scenarios``:
    all of them."""

    seed: int
    jobs: int
    points: int = 0
    scenarios: tuple[str, ...] = ()


class Point(NamedTuple):
    """A point of a scenario; ``urgent`` ones are tried first, for when time is short."""

    scenario: str
    name: str
    urgent: bool = True


class Loss(NamedTuple):
    """A promise that did not hold at a point; several points may have been tried together."""

    scenario: str
    point: str
    text: str


class Outcome(NamedTuple):
    """The end of one point: the number of tries, and the losses."""

    tries: int
    losses: list[Loss]


def outcome(point: Point, losses: list[str]) -> Outcome:
    """Return the outcome of a point that was one try."""
    return Outcome(1, [Loss(point.scenario, point.name, text) for text in losses])


class Section(NamedTuple):
    """A kind of fault.

    :param set_up: prepares a folder for the points of a scenario, and returns the points.
    :param run: tries one point in a folder of its own; takes the scenario's folder and the seed as
        well.
    :param minutes: its share of half an hour.
    :param share: prepares, once, the folder above those of the scenarios.
    :param alone: each point starts several processes, so points run one after the other.
    """

    name: str
    scenarios: tuple[str, ...]
    set_up: Callable[[str, Path, int], list[Point]]
    run: Callable[[Point, Path, Path, int], Outcome]
    minutes: float
    alone: bool = False
    share: Callable[[Path], None] | None = None


class Report(NamedTuple):
    section: str
    points: int
    losses: list[Loss]
    seconds: float


class HangError(Exception):
    """A point did not end in time."""


def run_section(section: Section, options: Options, seconds: float) -> Report:
    """Try as many of the section's points as there is time for; a set-up that fails is a loss,
    too."""
    start = time.monotonic()
    with scratch_folder(section.name) as scratch:
        jobs = 1 if section.alone else options.jobs
        with multiprocessing.get_context("fork").Pool(
            jobs, initializer=signal.signal, initargs=(signal.SIGALRM, _hang)
        ) as pool:
            if section.share:
                pool.apply(section.share, (scratch,))
            tasks = [
                (section, scenario, scratch, options.seed)
                for scenario in options.scenarios or section.scenarios
            ]
            points: list[Point] = []
            losses: list[Loss] = []
            for made, failures in pool.imap_unordered(_set_up, tasks):
                points += made
                losses += failures
            chosen = choose(points, options)
            runs = ((section, point, scratch, options.seed, start + seconds) for point in chosen)
            ended = list(pool.imap_unordered(_run, runs, CHUNK))
    losses += [loss for outcome in ended for loss in outcome.losses]
    if not any(outcome.tries for outcome in ended):
        losses.append(Loss("", "", "nothing was tried: there was no time left"))
    return Report(
        section.name, sum(outcome.tries for outcome in ended), losses, time.monotonic() - start
    )


def choose(points: list[Point], options: Options) -> list[Point]:
    """Return the points in a random order given by the seed, the urgent ones first."""
    ordered = sorted(points)
    random.Random(options.seed).shuffle(ordered)
    ordered.sort(key=lambda point: not point.urgent)
    return ordered[: options.points] if options.points else ordered


def _set_up(task: tuple[Section, str, Path, int]) -> tuple[list[Point], list[Loss]]:
    section, scenario, scratch, seed = task
    place = scratch / f"scenario-{scenario}"
    place.mkdir()
    try:
        with _time_limit():
            return section.set_up(scenario, place, seed), []
    except Exception as error:
        return [], [Loss(scenario, "", f"cannot be tried: {type(error).__name__}: {error}")]


def _run(task: tuple[Section, Point, Path, int, float]) -> Outcome:
    section, point, scratch, seed, deadline = task
    if time.monotonic() > deadline:
        return Outcome(0, [])
    return run_point(section, point, scratch, seed)


def run_point(section: Section, point: Point, scratch: Path, seed: int) -> Outcome:
    folder = scratch / f"work-{os.getpid()}"
    folder.mkdir()
    try:
        with _time_limit():
            return section.run(point, scratch / f"scenario-{point.scenario}", folder, seed)
    except HangError:
        return outcome(point, [f"did not end within {POINT_SECONDS} s"])
    except Exception as error:  # the run could not go on: that is no success
        return outcome(point, [f"{type(error).__name__}: {error}"])
    finally:
        remove(folder)


@contextmanager
def _time_limit() -> Iterator[None]:
    signal.alarm(POINT_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def _hang(*_: object) -> None:
    raise HangError


def repeat(section: Section, scenario: str, name: str, options: Options) -> Report:
    """Try a single point, in this process."""
    start = time.monotonic()
    signal.signal(signal.SIGALRM, _hang)
    point = Point(scenario, name)
    with scratch_folder(section.name) as scratch:
        if section.share:
            section.share(scratch)
        _, failures = _set_up((section, scenario, scratch, options.seed))
        ended = (
            Outcome(0, failures) if failures else run_point(section, point, scratch, options.seed)
        )
    return Report(section.name, ended.tries, ended.losses, time.monotonic() - start)


def tell(report: Report, seed: int) -> None:
    """Print the figures of a section and its losses, each with the command that repeats it."""
    print(
        f"{report.section:8} {report.points:7} points {len(report.losses):6} losses "
        f"{report.seconds:7.0f} s",
        flush=True,
    )
    kinds = kinds_of(report.losses)
    for alike in kinds[:SHOWN]:
        more = f" (and {len(alike) - 1} more like it)" if len(alike) > 1 else ""
        print(f"  {alike[0].scenario}: {alike[0].text}{more}")
        print(f"    {repeating(report.section, alike[0], seed)}")
    if len(kinds) > SHOWN:
        print(f"  … and {len(kinds) - SHOWN} more kinds of losses")
    sys.stdout.flush()


def kinds_of(losses: list[Loss]) -> list[list[Loss]]:
    """Group losses by their text without numbers and calls; the most frequent kind first."""
    kinds: dict[str, list[Loss]] = {}
    for loss in sorted(losses):
        words = loss.text.partition(": ")[2] or loss.text
        kinds.setdefault(re.sub(r"[0-9]+", "N", words), []).append(loss)
    return sorted(kinds.values(), key=len, reverse=True)


def repeating(section: str, loss: Loss, seed: int) -> str:
    """Return the command that tries a point again."""
    scenario = f" --scenario {loss.scenario}" if loss.scenario else ""
    place = f" --point {loss.point}" if loss.point else ""
    return f"python -m tests.torture {section}{scenario}{place} --seed {seed}"
