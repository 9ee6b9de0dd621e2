"""The proof of a challenge: it is broken in the beginning, its solution repairs it, and each of its
mistakes is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubepy.clusters import Cluster
from kubepy.demo.grading import NOT_YET, Grade, grade
from kubepy.demo.preparation import do_steps, prepare
from kubepy.demo.scenarios import ChallengeStep, Scenario, ScenarioFile
from kubepy.quoting import quote


def verify(file: ScenarioFile, seeds: Iterable[int]) -> list[str]:
    """Try a challenge with seeds. Returns a line for each thing that is wrong, none if all is well.
    Raises FolderError for a step that fails."""
    problems: list[str] = []
    for seed in seeds:
        cluster, scenario = prepare(file, seed)
        for problem in _problems(cluster, scenario):
            problems.append(f"seed {seed}: {problem}")
    return problems


def _problems(cluster: Cluster, scenario: Scenario) -> list[str]:
    problems = _at_beginning(grade_of(cluster, scenario))
    if scenario.solution:
        solved = _after(cluster, scenario, scenario.solution)
        if not solved:
            problems.append(f"the solution does not repair it: {_unmet(solved)}")
    for index, mistake in enumerate(scenario.mistakes):
        wrong = _after(cluster, scenario, mistake.steps)
        if mistake.breaks not in wrong.broken:
            check = quote(mistake.breaks)
            problems.append(f"mistakes[{index}] is not told: the check {check} still holds")
    return problems


def grade_of(cluster: Cluster, scenario: Scenario) -> Grade:
    """Judge a cluster for Python programs."""
    with cluster._open() as local:
        return grade(local, scenario)


def _at_beginning(begun: Grade) -> list[str]:
    """Return what is wrong with a cluster on which nobody has done anything."""
    problems = [f"the check {quote(name)} is broken from the beginning" for name in begun.broken]
    if not begun.names(NOT_YET):
        problems.append("it is repaired from the beginning")
    return problems


def _after(cluster: Cluster, scenario: Scenario, steps: Sequence[ChallengeStep]) -> Grade:
    """Judge a fork on which some steps were done."""
    fork = cluster.fork()
    do_steps(fork, steps)
    return grade_of(fork, scenario)


def _unmet(judged: Grade) -> str:
    """Return the checks that do not hold, in words."""
    unmet = [
        f"{quote(standing.name)} is {standing.state}: {standing.message}"
        for standing in judged.standings
        if standing.message
    ]
    return "; ".join(unmet)
