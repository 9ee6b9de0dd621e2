"""Shrinking: the smallest run that still violates a check.

Choices, commands and values are taken away as long as the same check is violated: first large parts
of the list, then smaller ones, then single choices (Zeller's delta debugging).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import NamedTuple

from kubepy.fuzz.run import RunRecord
from kubepy.runtime.oracle import Choice, RunName

MOST_SINGLES = 60  # choices of which each is tried alone
MOST_RUNS = 400  # that the shrinking of one violation takes


class Smaller(NamedTuple):
    """The smallest run that was found.

    :ivar left_out: the numbers of the commands that it does not need.
    :ivar runs: how many were made.
    """

    record: RunRecord
    left_out: tuple[int, ...]
    runs: int


Attempt = Callable[[RunName, tuple[int, ...]], RunRecord]


class Shrinker:
    """Makes a run smaller.

    :param attempt: makes a run without some commands.
    :param commands: how many there are.
    """

    def __init__(self, attempt: Attempt, record: RunRecord, commands: int) -> None:
        assert record.violation is not None
        self._attempt = attempt
        self._check = record.violation.check
        self._commands = commands
        self._best = record
        self._left_out: tuple[int, ...] = ()
        self._runs = 0

    def shrink(self) -> Smaller:
        """Return the smallest run."""
        if self._tries(self._best.choices):
            self._seek_single()
            self._drop_choices()
            self._drop_commands()
            self._lower_values()
        return Smaller(self._best, self._left_out, self._runs)

    def _seek_single(self) -> None:
        """Look whether one choice alone is enough."""
        choices = self._best.choices
        if not 1 < len(choices) <= MOST_SINGLES:
            return
        for choice in choices:
            if self._tries([choice]):
                return

    def _drop_choices(self) -> None:
        """Leave out as many choices as possible."""
        if self._tries(()):
            return
        parts = 2
        while len(self._best.choices) > 1:
            choices = self._best.choices
            size = ceil(len(choices) / parts)
            if self._tries_without_part(size):
                parts = max(parts - 1, 2)
            elif size == 1 or self._is_over():
                return
            else:
                parts = min(2 * parts, len(choices))

    def _tries_without_part(self, size: int) -> bool:
        """Try to leave out one part of the choices.

        :param size: of each part; the last one may be smaller.
        """
        choices = self._best.choices
        for begin in range(0, len(choices), size):
            end = begin + size
            remaining = choices[:begin] + choices[end:]
            if self._tries(remaining):
                return True
        return False

    def _drop_commands(self) -> None:
        """Leave out commands, the last ones first, but none without which the check is violated
        even undisturbed: what should be there at the end never is where nobody makes it."""
        for number in reversed(range(self._commands)):
            left_out = (*self._left_out, number)
            if not self._best.choices or not self._violates_undisturbed(left_out):
                self._tries(self._best.choices, left_out)

    def _violates_undisturbed(self, left_out: tuple[int, ...]) -> bool:
        self._runs += 1
        violation = self._attempt(self._name_of(()), left_out).violation
        return violation is not None and violation.check == self._check

    def _lower_values(self) -> None:
        """Let each choice disturb as little as possible."""
        for choice in self._best.choices:
            for value in range(1, choice.value):
                lower = choice._replace(value=value)
                choices = [lower if other == choice else other for other in self._best.choices]
                if lower in choices and self._tries(choices):
                    break

    def _is_over(self) -> bool:
        return self._runs >= MOST_RUNS

    def _tries(self, choices: Sequence[Choice], left_out: tuple[int, ...] | None = None) -> bool:
        """Try a smaller run; keep it, and return True, if it violates the same check.

        Choices of the run before that it does not come to are gone then.
        """
        if self._is_over():
            return False
        self._runs += 1
        if left_out is None:
            left_out = self._left_out
        name = self._name_of(choices)
        record = self._attempt(name, left_out)
        violation = record.violation
        if violation is None or violation.check != self._check:
            return False
        if len(record.choices) < len(choices):
            taken = self._name_of(record.choices)
            record = record._replace(name=taken)
        self._best = record
        self._left_out = left_out
        return True

    def _name_of(self, choices: Sequence[Choice]) -> RunName:
        """Return the name of the run with these choices and no others."""
        values = {choice.key: choice.value for choice in choices}
        return RunName(self._best.name.seed, values)
