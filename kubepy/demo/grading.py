"""The judgement of a challenge: the checks of ``kubepy fuzz``, on a fork on which time goes on.

A check that is ``eventually`` or ``succeeds`` is a goal of the repair: it holds, or not yet. One
that is ``always``, ``never`` or ``fails`` holds from the beginning and must stay so: a repair that
breaks it is wrong.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import later
from kubepy.cli import inner_commands
from kubepy.cli import main as command_line
from kubepy.cli.names import KUBECTL, KUBEPY
from kubepy.controlplane import build_manager
from kubepy.demo.scenarios import SUCCEEDS, Goal, Scenario
from kubepy.fuzz.checks import CheckError, CheckSuite
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.api.meta import Object
    from kubepy.apiserver.cluster import LocalCluster

HOLDS, NOT_YET, BROKEN = "holds", "not yet", "broken"
MOST_WRITES = 20_000  # of a fork on which time goes on


class Standing(NamedTuple):
    """The result of a check.

    :ivar state: ``holds``, ``not yet`` or ``broken``.
    :ivar message: what was expected, and what was there; "" where it holds.
    """

    name: str
    state: str
    message: str = ""


class Grade(NamedTuple):
    """A judgement: how each check stands; true if the cluster is repaired."""

    standings: tuple[Standing, ...]

    def __bool__(self) -> bool:
        return self.repaired

    @property
    def repaired(self) -> bool:
        """True if all checks hold."""
        return all(standing.state == HOLDS for standing in self.standings)

    @property
    def broken(self) -> tuple[str, ...]:
        """The names of the checks that held in the beginning, and were broken by the repair."""
        return self.names(BROKEN)

    def names(self, state: str) -> tuple[str, ...]:
        """Return the names of the checks that stand so."""
        return tuple(standing.name for standing in self.standings if standing.state == state)


class JudgedGoal:
    """A check in CEL on a fork. One that cannot be evaluated on a cluster does not hold there.

    :param fork: of the cluster, before time goes on in it.
    """

    def __init__(self, goal: Goal, fork: LocalCluster) -> None:
        self._goal = goal
        self._error = ""
        self._suite: CheckSuite | None = None
        try:
            self._suite = CheckSuite([goal.check], fork)
        except CheckError as error:
            self._error = str(error)

    def note(self, key: Key, obj: Object | None, user: Object) -> None:
        """Judge it after a write."""
        suite = self._suite
        if suite is None or self._error:
            return
        if suite.resources is not None and key.resource not in suite.resources:
            return
        try:
            suite.note(key, obj, user)
        except CheckError as error:
            self._error = str(error)

    def finish(self) -> Standing:
        """Return how it stands at the end."""
        suite = self._suite
        if suite is None or self._error:
            return _standing(self._goal, self._error)
        try:
            suite.finish(settled=True)
        except CheckError as error:
            return _standing(self._goal, str(error))
        violation = suite.violation
        return _standing(self._goal, violation.message if violation is not None else "")


def grade(cluster: LocalCluster, scenario: Scenario) -> Grade:
    """Judge a cluster as it is now: on a fork of it time goes on as far as the challenge says.
    Nothing is changed in the cluster itself."""
    fork = cluster.fork(is_prediction=True)
    in_cel = [JudgedGoal(goal, fork) for goal in scenario.goals if not goal.is_command]

    def note(key: Key, obj: Object | None, user: Object) -> None:
        if not key.name:
            return
        stored = fork.client.stored(key)
        for judged in in_cel:
            judged.note(key, stored, user)

    manager = build_manager(fork.observed(note))
    end = later(fork.clock.now(), scenario.within)
    manager.advance(end, most_writes=MOST_WRITES)
    finished = iter([judged.finish() for judged in in_cel])
    standings: list[Standing] = []
    for goal in scenario.goals:
        standing = _run_goal(goal, fork) if goal.is_command else next(finished)
        standings.append(standing)
    return Grade(tuple(standings))


def _run_goal(goal: Goal, fork: LocalCluster) -> Standing:
    """Judge a check that is a command line: it runs on the fork."""
    words = without_program(shlex.split(goal.check.expression))
    run = inner_commands.runner(command_line.main)
    result = run(fork, words, "")
    expected = goal.check.kind == SUCCEEDS
    if bool(result) is expected:
        return _standing(goal, "")
    rule = "must succeed, but failed" if expected else "must fail, but succeeded"
    return _standing(goal, f"{goal.check.expression} {rule}")


def _standing(goal: Goal, message: str) -> Standing:
    if not message:
        return Standing(goal.name, HOLDS)
    return Standing(goal.name, BROKEN if goal.must_stay else NOT_YET, message)


def without_program(words: Sequence[str]) -> list[str]:
    """Return the words of a command line without the program's name."""
    if list(words[:1]) in ([KUBEPY], [KUBECTL]):
        return list(words[1:])
    return list(words)
