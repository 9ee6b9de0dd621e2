"""Pods that end as soon as they begin."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from kubepy.api.clock import format_micro_time, parse_time


class Endings:
    """How many pods of each controller have ended lately: the more, the longer the next one takes to.

    A controller replaces a pod that ended, and pods that are to end do so as soon as they begin: it would go on for
    ever. (A real kubelet restarts their containers with a back-off, which is not played here.)
    """

    FREE = 20  # that end without delay
    LONGEST = timedelta(minutes=5)
    FORGOTTEN_AFTER = timedelta(minutes=10)

    def __init__(self) -> None:
        self._ended: dict[str, tuple[int, datetime]] = {}  # by the controller's uid: how many, and the last one

    def delay(self, controller: str, now: datetime) -> float:
        """Seconds until the next pod may end: none for the first ones, then 1, 2, 4 … since the last."""
        number, last = self._ended.get(controller, (0, now))
        if number < self.FREE or now - last > self.FORGOTTEN_AFTER:
            return 0.0
        length = min(timedelta(seconds=2 ** min(number - self.FREE, 10)), self.LONGEST)
        return max((last + length - now).total_seconds(), 0.0)

    def note(self, controller: str, now: datetime) -> None:
        self._ended = {one: ended for one, ended in self._ended.items() if now - ended[1] <= self.FORGOTTEN_AFTER}
        number, _ = self._ended.get(controller, (0, now))
        self._ended[controller] = (number + 1, now)

    def remember(self) -> Any:
        return {one: [number, format_micro_time(last)] for one, (number, last) in sorted(self._ended.items())}

    def recall(self, memory: Any) -> None:
        for one, (number, last) in memory.items():
            self._ended.setdefault(one, (number, parse_time(last)))
