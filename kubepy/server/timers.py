"""The moments of the cluster's time for which clients wait (:mod:`kubepy.server.clockwait`)."""

from __future__ import annotations

import asyncio
from datetime import datetime

from kubepy.api.clock import Clock
from kubepy.server.streaming import wait_for

LOOK_SECONDS = 0.05  # of real time, between two looks at a clock that others move


class Timers:
    """The moments for which clients wait."""

    def __init__(self) -> None:
        self._moments: list[datetime] = []
        self._moved = asyncio.Event()

    def next_due(self) -> datetime | None:
        """Return the earliest moment; any thread may ask."""
        return min(tuple(self._moments), default=None)

    def announce(self) -> None:
        """Note that time has moved."""
        self._moved.set()
        self._moved = asyncio.Event()

    async def wait(self, clock: Clock, moment: datetime) -> None:
        """Wait until the cluster's time has reached a moment."""
        self._moments.append(moment)
        try:
            while (now := clock.now()) < moment:
                seconds = LOOK_SECONDS
                if clock.own is None:
                    seconds = (moment - now).total_seconds()
                await wait_for(self._moved, seconds)
        finally:
            self._moments.remove(moment)
