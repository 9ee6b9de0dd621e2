"""Pacing: a workload that asks for more pods than anybody waits for gets only the first of them.

A count may be any number of 32 bits. A controller that makes its pods as fast as it can keeps every
command busy for as long as that lets it, and leaves thousands of pods more to the next one. So the
controllers ask a :class:`Pace` how many pods they may make now. It goes by the number of pods that
there are alone: nothing waits for a moment, and the status stays true. Runs whose very purpose is
that controllers work to the end (``controller``, ``clock``, ``serve``) are not paced.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from kubepy.storage import Key

MANY_PODS = 10_000  # a workload that asks for more gets …
FIRST_PODS = 500  # … so many


class Excess(NamedTuple):
    """A workload that asks for far more pods than it gets.

    :ivar reconciler: the name of its controller.
    :ivar wanted: how many pods it asks for.
    """

    reconciler: str
    key: Key
    wanted: int

    @property
    def sentence(self) -> str:
        """Say for a reader what it asks for, and what it gets."""
        return f"{self.key.place} asks for {self.wanted:,} pods and gets {FIRST_PODS} of them"


class Pacing:
    """Tells the controllers of a manager how many pods they may make, and remembers whom it has
    told to stop.

    :ivar is_bounded: the present run of the manager is not one that works to the end.
    :ivar noticed: the workloads that were looked at in this run and get no more.
    """

    def __init__(self) -> None:
        self.is_bounded = False
        self.noticed: dict[Key, Excess] = {}
        self._stopped: dict[Key, Excess] = {}

    def begin_run(self, *, is_bounded: bool) -> list[Excess]:
        """Begin a run of the manager; return the workloads whose controllers go on in it."""
        self.is_bounded = is_bounded
        self.noticed.clear()
        if is_bounded:
            return []
        return list(self._stopped.values())

    def pace_of(self, reconciler: str) -> Pace:
        return Pace(self, reconciler)

    def stop(self, excess: Excess) -> None:
        self._stopped[excess.key] = self.noticed[excess.key] = excess

    def forget(self, key: Key) -> None:
        """Forget a workload that has gone, or asks for fewer pods."""
        self._stopped.pop(key, None)
        self.noticed.pop(key, None)

    def remember(self) -> Any:
        """Return the workloads that were told to stop, as JSON."""
        return [
            [excess.reconciler, *excess.key, excess.wanted] for excess in self._stopped.values()
        ]

    def recall(self, memory: Iterable[Any]) -> None:
        """Go on from what ``remember`` returned in another process."""
        self._stopped = {excess.key: excess for excess in excesses_of(memory)}


class Pace:
    """How many pods one controller may make."""

    def __init__(self, pacing: Pacing, reconciler: str) -> None:
        self._pacing = pacing
        self._reconciler = reconciler

    def room(self, key: Key, *, wanted: int, existing: int) -> int:
        """Return how many pods the controller may add to those of a workload.

        :param wanted: how many pods the workload asks for.
        :param existing: how many it has, or had where it counts those that have ended.
        """
        if not self._pacing.is_bounded or wanted <= MANY_PODS:
            self._pacing.forget(key)
            return sys.maxsize
        room = max(FIRST_PODS - existing, 0)
        if not room:
            self._pacing.stop(Excess(self._reconciler, key, wanted))
        return room

    def forget(self, key: Key) -> None:
        """Forget a workload that has gone."""
        self._pacing.forget(key)


def excesses_of(memory: Iterable[Any]) -> list[Excess]:
    """Read the workloads that get no more pods from the memory of a :class:`Pacing`."""
    return [Excess(reconciler, Key(*key), wanted) for reconciler, *key, wanted in memory]
