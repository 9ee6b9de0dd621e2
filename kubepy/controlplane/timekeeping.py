"""The manager's clock: the next moment at which something is to be done, and the way to get there.

The system's time is waited for (:class:`Poller`); the cluster's own is moved (:class:`Timekeeper`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from kubepy.api.clock import Clock
from kubepy.controlplane.queues import Queues

POLL_SECONDS = 0.05  # how often a waiting manager polls the change log …
MOVED_POLL_SECONDS = 0.01  # … or the clock that another process moves from moment to moment …
POLL_COST_RATIO = 20  # … unless polling takes more than a twentieth of that
MAX_POLL_SECONDS = 1.0
QUIET_SECONDS = 1.0  # how often it polls where it is known that nothing has changed
LISTEN_SECONDS = 0.2  # how long it listens for changes before it looks whether it is to stop


class Horizon(NamedTuple):
    """The end up to which time goes on while the controllers work.

    :param until: the moment at which it stands in the end; None: there is no limit.
    :param settled: it stops where nothing falls due within so many seconds but what repeats; None:
        it does not.
    :param patience: without ``until`` it stops where it would let something repeat for more seconds
        than these.
    """

    until: datetime | None = None
    settled: float | None = None
    patience: float = math.inf

    def next_moment(
        self, now: datetime, due: datetime | None, single: datetime | None
    ) -> datetime | None:
        """Return the moment to which time goes next, None where it has gone far enough.

        :param due: when the next key falls due; ``single``: the next one that does not repeat.
        """
        if self.until is not None and now >= self.until:
            return None
        seconds = None if single is None else (single - now).total_seconds()
        if self.settled is not None and (seconds is None or seconds > self.settled):
            return None
        if self.until is not None:
            if due is None:
                return self.until
            return min(due, self.until)
        if single is None or due is None or seconds is None:
            return due
        if due < single and seconds > self.patience:
            return None
        return due


class Timekeeper:
    """Lets time go on to the moments at which keys fall due, as far as a horizon says.

    The cluster's own time may be moved many times in one batch, so that many moments share a
    transaction; once only, after all that is due now, where somebody looks at each moment.
    """

    def __init__(self, clock: Clock, queues: Queues) -> None:
        self.clock = clock
        self._queues = queues
        self._horizon = Horizon()
        self._moves_each_time = math.inf
        self._moves_left = 0.0  # how often it may be moved before somebody allows more

    def begin(self, horizon: Horizon, *, shows_each_moment: bool) -> None:
        self._horizon = horizon
        if shows_each_moment:
            self._moves_each_time = 1
        else:
            self._moves_each_time = math.inf
        if shows_each_moment:
            self._moves_left = 0
        else:
            self._moves_left = math.inf

    def end(self) -> None:
        self._moves_left = 0

    @property
    def is_own(self) -> bool:
        """Return whether the cluster has a time of its own."""
        return self.clock.own is not None

    def next_moment(self) -> datetime | None:
        """Return the moment to which time goes next, None where it has gone far enough."""
        return self._horizon.next_moment(
            self.clock.now(), self._queues.next_due(), self._queues.next_single_due()
        )

    def allow_move(self) -> None:
        """Let the next batch move the cluster's time on."""
        self._moves_left = self._moves_each_time

    def move(self) -> bool:
        """Move the cluster's own time to the next moment, if there is one and it may be; return
        whether it was."""
        if not self._moves_left or not self.is_own:
            return False
        moment = self.next_moment()
        if moment is None:
            return False
        self._moves_left -= 1
        self.clock.move_to(moment)
        return True


class Poller:
    """Waits for changes, and polls the change log for them.

    Polling takes time that grows with the folder; the pause grows with it. Where it can listen, it
    waits out only that pause, and then until a file changes. Without a folder polling takes the
    time of what has changed: one that listens rests for as long, so that it hears of the next
    change at once, however long the last one took on a busy machine.

    :param poll: polls the change log.
    :param is_quiet: tells, at next to no cost, that nothing has changed.
    :ivar listen: waits until a file has changed, at most so many seconds; returns False, at once,
        where that cannot be told.
    :ivar polled: is called when a wait has looked for changes.
    :ivar reads_folder: polling looks at all files.
    """

    def __init__(
        self, clock: Clock, poll: Callable[[], None], is_quiet: Callable[[], bool]
    ) -> None:
        self.listen: Callable[[float], bool] = lambda seconds: False
        self.polled: Callable[[], None] = lambda: None
        self.reads_folder = True
        self._clock = clock
        self._poll = poll
        self._is_quiet = is_quiet
        self._last_poll = 0.0
        self._rest = 0.0  # how long the next wait does not listen

    def wait(self, pause: float) -> float:
        """Wait so many seconds, or until a file changes, then poll; return how long to wait next
        time."""
        if self._rest:
            rest = min(self._rest, pause)
            self._clock.sleep(rest)
            pause -= rest

        listens = self.listen(pause)
        if not listens:
            self._clock.sleep(pause)
        shortest = MOVED_POLL_SECONDS if self._clock.own else POLL_SECONDS
        start = time.perf_counter()
        if start - self._last_poll < QUIET_SECONDS and self._is_quiet():
            self._rest = 0.0
            if listens:
                return LISTEN_SECONDS
            return shortest

        self._poll()
        self.polled()
        self._last_poll = start
        cost = time.perf_counter() - start
        if listens and not self.reads_folder:
            self._rest = cost
            return LISTEN_SECONDS

        if listens:
            self._rest = POLL_COST_RATIO * cost
        else:
            self._rest = 0.0

        return min(max(shortest, POLL_COST_RATIO * cost), MAX_POLL_SECONDS)
