"""Budgets: how much the controllers of forks may do for one answer.

They are counted in writes and moments, and depend on no clock: the same cluster gets the same
answer on any machine.
"""

from __future__ import annotations

from kubepy.api.meta import Object
from kubepy.storage import Key

MOST_OF_ANSWER = 12_000  # writes for all runs of an answer together
MOST_OF_RUN = 3_000  # writes for one run of them
MOST_OF_REPEATING = 1_000  # the same of what never comes to rest: a CronJob
MOST_AT_ONCE = 100_000  # writes within one moment: whoever writes more comes to no end
MOST_TRIES = 60  # runs of an answer that try commands
MOMENT = 6  # a moment counts as so many writes, even if nothing is written in it: it costs as much


def most_of_run(asked: Object) -> int:
    """Return the writes for one run that an object is asked about in."""
    if asked["kind"] == "CronJob":
        return MOST_OF_REPEATING
    return MOST_OF_RUN


class BudgetSpent(BaseException):
    """The controllers write more than is worth trying; no controller may take it for an error."""


class Budget:
    """The writes that are left; moments count as some writes each.

    :param most: so many of them.
    :param whole: a budget from which the same is taken.
    :param at_once: how many more writes may be made within a moment before that is left, too; None:
        MOST_AT_ONCE.
    :ivar tries: how many runs may still begin.
    """

    def __init__(
        self, most: float, whole: Budget | None = None, *, at_once: int | None = None
    ) -> None:
        self.left = most
        self.tries = MOST_TRIES
        self._whole = whole
        self._at_once = MOST_AT_ONCE if at_once is None else at_once

    @property
    def is_spent(self) -> bool:
        return self.left < 0 or (self._whole is not None and self._whole.is_spent)

    def count_moment(self) -> None:
        self._take(MOMENT)

    def count_write(self, key: Key, obj: Object | None, user: Object) -> None:
        """Count a write. Raises BudgetSpent where it is one of too many within a moment."""
        self._take(1)
        if self.left < -self._at_once:
            raise BudgetSpent

    def _take(self, number: int) -> None:
        self.left -= number
        if self._whole is not None:
            self._whole._take(number)
