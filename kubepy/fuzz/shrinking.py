"""Shrinking: the smallest run that still violates a check.

Choices, commands and values are taken away as long as the same check is violated: first large parts
of the list, then smaller ones, then single choices (Zeller's delta debugging).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        if 1 < len(choices) <= MOST_SINGLES:
            any(self._tries([choice]) for choice in choices)

    def _drop_choices(self) -> None:
        """Leave out as many choices as possible."""
        if self._tries(()):
            return
        parts = 2
        while len(self._best.choices) > 1:
            choices = self._best.choices
            size = -(-len(choices) // parts)
            remaining = (
                choices[:begin] + choices[begin + size :] for begin in range(0, len(choices), size)
            )
            if any(self._tries(smaller) for smaller in remaining):
                parts = max(parts - 1, 2)
            elif size == 1 or self._is_over():
                return
            else:
                parts = min(2 * parts, len(choices))

    def _drop_commands(self) -> None:
        """Leave out commands, the last ones first."""
        for number in reversed(range(self._commands)):
            self._tries(self._best.choices, (*self._left_out, number))

    def _lower_values(self) -> None:
        """Let each choice disturb as little as possible."""
        for index in range(len(self._best.choices)):
            for value in range(1, self._best.choices[index].value):
                choices = list(self._best.choices)
                choices[index] = choices[index]._replace(value=value)
                if self._tries(choices):
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
        left_out = self._left_out if left_out is None else left_out
        given = {choice.key: choice.value for choice in choices}
        record = self._attempt(RunName(self._best.name.seed, given), left_out)
        if record.violation is None or record.violation.check != self._check:
            return False
        if len(record.choices) < len(given):
            taken = {choice.key: choice.value for choice in record.choices}
            record = record._replace(name=RunName(self._best.name.seed, taken))
        self._best = record
        self._left_out = left_out
        return True
