"""The work queue of a controller (upstream: client-go ``util/workqueue``). Single-threaded: one
manager drives it."""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Generic, TypeVar

from kubepy.api.clock import later

K = TypeVar("K", bound=Hashable)

BASE_DELAY = 0.005  # seconds; the default controller rate limiter's exponential part
MAX_DELAY = 1000.0
LAST_YEAR = 2261  # of a clock: Go counts nanoseconds in 64 bits
# more than a rollout of 25,000 pods takes, one pod after the other and each in no time
BURST = 100_000.0
MOST_STALE = (
    64  # entries of the heap that do not count any more, beside as many as there are others
)


class WorkQueue(Generic[K]):
    """First in, first out; one entry a key, however often it is added; not handed out again before
    ``done``.

    A key that is handed out is not put off any more: its sync decides anew when it falls due next.
    ``now`` is the cluster's time: delays are counted in it. ``delays``: the first back-off and the
    longest, in seconds. ``burst``: a key that is handed out so many times more often than once a
    second waits for a second: the last resort against work without end, which would never let a
    time go on that moves only when nothing is left to do.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        delays: tuple[float, float] = (BASE_DELAY, MAX_DELAY),
        burst: float = math.inf,
    ) -> None:
        self._now = now
        self._burst = burst
        self._handed_out: dict[
            K, tuple[datetime, float]
        ] = {}  # how often beyond once a second, up to when
        self._most_handed_out = MOST_STALE  # from which on those that count no more are forgotten
        self._base_delay, self._max_delay = delays
        self._ready: OrderedDict[K, None] = (
            OrderedDict()
        )  # a dict looks for its first key behind all removed ones
        self._processing: set[K] = set()
        self._again: dict[K, None] = {}
        self._delayed: list[
            tuple[datetime, int, K]
        ] = []  # a heap; those that _due does not name count no more
        self._single: list[tuple[datetime, int, K]] = []  # a heap of those that are not repeating
        self._due: dict[K, tuple[datetime, int]] = {}  # when, and which entry of the heap says so
        self._skippable: set[K] = set()  # delayed keys that need not wait
        self._repeating: set[K] = set()  # delayed keys that come again and again
        self._held: dict[
            K, tuple[datetime, bool]
        ] = {}  # not handed out before then; whether that repeats
        self._resting: dict[K, tuple[datetime, float]] = {}  # since when, and the period in seconds
        self._failures: dict[K, int] = {}
        self._order = 0

    def add(self, key: K) -> None:
        if key in self._processing:
            self._again[key] = None
        else:
            self._ready[key] = None

    def add_after(
        self, key: K, seconds: float, *, skippable: bool = False, repeating: bool = False
    ) -> None:
        """Add the key when ``seconds`` have passed: see :meth:`add_at`."""
        self.add_at(key, later(self._now(), seconds), skippable=skippable, repeating=repeating)

    def add_at(
        self, key: K, due: datetime, *, skippable: bool = False, repeating: bool = False
    ) -> None:
        """Add the key at a moment, now if that has come; of several moments for one key the
        earliest counts.

        ``skippable``: upstream puts the key off only so that others can catch up. Nobody who does
        not watch time pass needs to wait for it (:meth:`skip_waits`). ``repeating``: the key comes
        again after every such time, whether anything has changed or not. Who waits until there is
        nothing to do does not wait for it. A key that is put off for another reason as well does
        not count as repeating. A moment that no clock reaches is none.
        """
        self._end_rest(key)
        if due <= self._now():
            self.add(key)
            return
        if due.year > LAST_YEAR:
            return
        if skippable:
            self._skippable.add(key)
        if not repeating:
            self._repeating.discard(key)
        elif key not in self._due:
            self._repeating.add(key)

        if key not in self._due or due < self._due[key][0]:
            self._order += 1
            self._due[key] = due, self._order
            heapq.heappush(self._delayed, (due, self._order, key))

        if key not in self._repeating:
            heapq.heappush(self._single, (*self._due[key], key))
        for heap in (self._delayed, self._single):
            if len(heap) > 2 * len(self._due) + MOST_STALE:
                heap[:] = sorted(set(filter(self._counts, heap)))

    def rest(self, key: K, period: float, periods: float = math.inf) -> None:
        """Put off a key that would come again after every period of so many seconds, and find
        nothing to do.

        It is not handed out before somebody adds it again, and then no later than at the end of the
        period in which that happens. It counts as repeating, and as pending at the end of the
        present period.

        :param periods: after so many it is handed out in any case.
        """
        if periods < math.inf:
            self.add_after(key, period * periods, repeating=True)
        self._resting[key] = self._now(), period

    def _end_rest(self, key: K) -> None:
        """Let a key that rests come again at the end of the present period."""
        due = self._end_of_period(key)
        if due is not None:
            del self._resting[key]
            self.add_at(key, due, repeating=True)

    def _end_of_period(self, key: K) -> datetime | None:
        """Return when the present period of a resting key ends, now if it does so now; None for any
        other key."""
        if key not in self._resting:
            return None
        since, period = self._resting[key]
        periods = math.ceil((self._now() - since).total_seconds() / period)
        return later(since, period * max(periods, 1))

    def cancel(self, key: K) -> None:
        """Drop a key that ``add_after`` has put off; one that is ready stays."""
        self._resting.pop(key, None)
        self._due.pop(key, None)
        self._skippable.discard(key)
        self._repeating.discard(key)

    def hold(self, key: K, until: datetime, *, repeating: bool = False) -> None:
        """Hand a key out no earlier than at a moment, whoever adds it. ``repeating``: as
        for :meth:`add_at`."""
        self._held[key] = until, repeating

    def release(self, key: K) -> None:
        """Let a key that is held be handed out; now, if it was ready and has been put off."""
        until, _ = self._held.pop(key, (None, False))
        if key not in self._due:
            return
        due, _ = self._due[key]
        if due == until:
            self.cancel(key)
            self.add(key)

    def skip_waits(self) -> bool:
        """Add the keys now whose delay is skippable; return whether there were any."""
        skipped = sorted(self._skippable & self._due.keys(), key=lambda key: self._due[key])
        for key in skipped:
            self.cancel(key)
            self.add(key)
        return bool(skipped)

    def can_skip(self, key: K) -> bool:
        return key in self._skippable

    def is_repeating(self, key: K) -> bool:
        return key in self._repeating or key in self._resting

    def add_rate_limited(self, key: K, patience: float = 0.0) -> None:
        """Add the key after its back-off, which doubles with every failure since ``forget``: 5 ms
        to 1000 s.

        A back-off of at most ``patience`` seconds is left out.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = min(self._base_delay * 2.0 ** min(failures, 30), self._max_delay)
        self.add_after(
            key,
            delay if delay > patience else 0.0,
            repeating=delay == self._max_delay,
        )

    def has_failures(self) -> bool:
        """Return whether a key has failed and not been forgotten since."""
        return bool(self._failures)

    def forget(self, key: K) -> None:
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def set_failures(self, key: K, failures: int) -> None:
        """Go on with the back-off of a key where another process left it."""
        if failures:
            self._failures[key] = failures

    def get(self) -> K | None:
        """Return the next key that is ready, or None. Give it back with ``done``."""
        self._promote()
        while self._ready:
            key = next(iter(self._ready))
            if key in self._held and self._put_off(key):
                continue
            if self._is_in_time(key):
                return self._take(key)
            del self._ready[key]
            self.add_after(key, 1.0)
        return None

    def clear(self) -> None:
        """Forget all keys, those that are handed out included: whoever works on one has ended."""
        for keys in (
            self._ready,
            self._again,
            self._due,
            self._held,
            self._resting,
            self._failures,
        ):
            keys.clear()
        for names in (self._processing, self._skippable, self._repeating):
            names.clear()
        self._delayed.clear()
        self._single.clear()

    def ready(self) -> list[K]:
        """Return the keys that :meth:`get` could hand out now, in their order."""
        self._promote()
        now = self._now()
        return [key for key in self._ready if key not in self._held or self._held[key][0] <= now]

    def take_back(self, taken: K) -> None:
        """Take a key back that was handed out and not worked on; it is the next one again."""
        self._processing.discard(taken)
        self._again.pop(taken, None)
        self._ready[taken] = None
        self._ready.move_to_end(taken, last=False)

    def take(self, key: K) -> K:
        """Hand out a key of :meth:`ready` out of its turn."""
        return self._take(key)

    def _put_off(self, key: K) -> bool:
        """Put off a ready key that is held; return whether it still is."""
        until, is_repeating = self._held[key]
        if until <= self._now():
            del self._held[key]
            return False
        del self._ready[key]
        self.add_at(key, until, repeating=is_repeating)
        return True

    def _take(self, key: K) -> K:
        del self._ready[key]
        self._processing.add(key)
        self.cancel(key)
        return key

    def _is_in_time(self, key: K) -> bool:
        """Count a key that is to be handed out; return False, and don't, where that would be too
        often."""
        if self._burst == math.inf:
            return True
        now = self._now()
        since, count = self._handed_out.get(key, (now, 0.0))
        count = max(count - (now - since).total_seconds(), 0.0)
        if count >= self._burst:
            return False
        self._handed_out[key] = now, count + 1
        if len(self._handed_out) > self._most_handed_out:
            self._handed_out = {
                key: (since, count)
                for key, (since, count) in self._handed_out.items()
                if count > (now - since).total_seconds()
            }
            self._most_handed_out = 2 * len(self._handed_out) + MOST_STALE

        return True

    def done(self, key: K) -> None:
        self._processing.discard(key)
        if key in self._again:
            del self._again[key]
            self._ready[key] = None

    def next_due(self) -> datetime | None:
        """Return the time when the earliest delayed key falls due, or None."""
        return self._first(self._delayed)

    def next_single_due(self) -> datetime | None:
        """Return the time when the earliest delayed key falls due that is not a repeating one, or
        None."""
        due = self._first(self._single)
        while due is not None and self._single[0][2] in self._repeating:
            heapq.heappop(self._single)
            due = self._first(self._single)
        return due

    def pending(self) -> list[tuple[K, datetime | None]]:
        """Return every key that is waiting and when it falls due, None for now; keys in progress
        count as waiting."""
        now = dict.fromkeys([*self._ready, *self._again, *self._processing])
        delayed = [
            (due, order, key)
            for due, order, key in self._delayed
            if self._counts((due, order, key)) and key not in self._resting
        ]
        resting = [
            (due, 0, key) for key in self._resting if (due := self._end_of_period(key)) is not None
        ]
        return [
            *((key, None) for key in now),
            *((key, due) for due, _, key in sorted([*delayed, *resting])),
        ]

    def _first(self, heap: list[tuple[datetime, int, K]]) -> datetime | None:
        while heap and not self._counts(heap[0]):
            heapq.heappop(heap)
        if heap:
            return heap[0][0]
        return None

    def _counts(self, entry: tuple[datetime, int, K]) -> bool:
        due, order, key = entry
        return self._due.get(key) == (due, order)

    def __len__(self) -> int:
        self._promote()
        return len(self._ready)

    def _promote(self) -> None:
        due = self.next_due()
        while due is not None and due <= self._now():
            _, _, key = heapq.heappop(self._delayed)
            self.cancel(key)
            self.add(key)
            due = self.next_due()
