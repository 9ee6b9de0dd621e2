"""The work queue of a controller (upstream: client-go ``util/workqueue``). Single-threaded: one manager drives it."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Generic, TypeVar

from kubepy.api.clock import later

K = TypeVar("K", bound=Hashable)

BASE_DELAY = 0.005  # seconds; the default controller rate limiter's exponential part
MAX_DELAY = 1000.0


class WorkQueue(Generic[K]):
    """First in, first out; one entry a key, however often it is added; not handed out again before ``done``.

    ``now`` is the cluster's time: delays are counted in it. ``delays``: the first back-off and the longest, in seconds.
    """

    def __init__(self, now: Callable[[], datetime], delays: tuple[float, float] = (BASE_DELAY, MAX_DELAY)) -> None:
        self._now = now
        self._base_delay, self._max_delay = delays
        self._ready: dict[K, None] = {}
        self._processing: set[K] = set()
        self._again: dict[K, None] = {}
        self._delayed: list[tuple[datetime, int, K]] = []  # a heap; those that _due does not name count no more
        self._due: dict[K, tuple[datetime, int]] = {}  # when, and which entry of the heap says so
        self._skippable: set[K] = set()  # delayed keys that need not wait
        self._repeating: set[K] = set()  # delayed keys that come again and again
        self._failures: dict[K, int] = {}
        self._order = 0

    def add(self, key: K) -> None:
        if key in self._processing:
            self._again[key] = None
        else:
            self._ready[key] = None

    def add_after(self, key: K, seconds: float, *, skippable: bool = False, repeating: bool = False) -> None:
        """Add the key when ``seconds`` have passed; of several times for one key the earliest counts.

        ``skippable``: upstream puts the key off only so that others can catch up. Nobody who does not watch time pass
        needs to wait for it (:meth:`skip_waits`). ``repeating``: the key comes again after every such time, whether
        anything has changed or not. Who waits until there is nothing to do does not wait for it.
        """
        if seconds <= 0:
            self.add(key)
            return
        if skippable:
            self._skippable.add(key)
        if repeating:
            self._repeating.add(key)
        due = later(self._now(), seconds)
        if key in self._due and self._due[key][0] <= due:
            return
        self._order += 1
        self._due[key] = due, self._order
        heapq.heappush(self._delayed, (due, self._order, key))

    def cancel(self, key: K) -> None:
        """Drop a key that ``add_after`` has put off; one that is ready stays."""
        self._due.pop(key, None)
        self._skippable.discard(key)
        self._repeating.discard(key)

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
        return key in self._repeating

    def add_rate_limited(self, key: K, patience: float = 0.0) -> None:
        """Add the key after its back-off, which doubles with every failure since ``forget``: 5 ms to 1000 s.

        :param patience: back-offs of at most so many seconds are not waited for.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = min(self._base_delay * 2.0 ** min(failures, 30), self._max_delay)
        self.add_after(key, delay if delay > patience else 0.0)

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
        if not self._ready:
            return None
        key = next(iter(self._ready))
        del self._ready[key]
        self._processing.add(key)
        return key

    def done(self, key: K) -> None:
        self._processing.discard(key)
        if key in self._again:
            del self._again[key]
            self._ready[key] = None

    def next_due(self) -> datetime | None:
        """Return the time when the earliest delayed key falls due, or None."""
        while self._delayed and not self._counts(self._delayed[0]):
            heapq.heappop(self._delayed)
        return self._delayed[0][0] if self._delayed else None

    def next_single_due(self) -> datetime | None:
        """Return the time when the earliest delayed key falls due that is not a repeating one, or None."""
        return min((due for key, (due, _) in self._due.items() if key not in self._repeating), default=None)

    def pending(self) -> list[tuple[K, datetime | None]]:
        """Return every key that is waiting and when it falls due, None for now; keys in progress count as waiting."""
        now = dict.fromkeys([*self._ready, *self._again, *self._processing])
        later = sorted(entry for entry in self._delayed if self._counts(entry))
        return [*((key, None) for key in now), *((key, due) for due, _, key in later)]

    def _counts(self, entry: tuple[datetime, int, K]) -> bool:
        due, order, key = entry
        return self._due.get(key) == (due, order)

    def __len__(self) -> int:
        self._promote()
        return len(self._ready)

    def _promote(self) -> None:
        while (due := self.next_due()) is not None and due <= self._now():
            _, _, key = heapq.heappop(self._delayed)
            self.cancel(key)
            self.add(key)
