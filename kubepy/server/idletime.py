"""``--time=when-idle``: the cluster's own time goes on while all of its clients wait.

Time stands while a request is open, while a watch has still something to give or its client to
read, while controllers work, and for a moment after each of these, in which a client may find out
what to do next. Then it goes on, slowly at first, to the next moment at which the controllers do
something, and beyond it if there is nothing. It never jumps over such a moment, so what happens and
in which order does not depend on how fast it goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import ClockLimit, later
from kubepy.api.values.goformat import parse_duration
from kubepy.quoting import printable
from kubepy.runtime.checkpoint import settled_checkpoint
from kubepy.server.activity import Activity
from kubepy.storage import StorageError

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.server.backend import Backend
    from kubepy.server.timers import Timers
    from kubepy.server.watchcache import WatchCache

CLUSTER, WHEN_IDLE = "cluster", "when-idle"
TICK_SECONDS = 0.005  # the shortest pause between two moves of time, in real time …
TICK_RATIO = 8  # … which is an eighth of the time that clients have been quiet …
MAX_TICK_SECONDS = 1.0  # … at most
WORK_SECONDS = 0.002  # how often it is asked whether the controllers are done
DESERTED_SECONDS = 60.0  # without any client, after which time stands
RETRY_SECONDS = 1.0  # after an error of the store
MAX_AFTER, MAX_SPEED = 60.0, 1_000_000.0


class IdlePace(NamedTuple):
    """How the cluster's time goes on while nobody is at work.

    :ivar after: for so many real seconds clients must have been quiet before.
    :ivar speed: so many seconds of the cluster pass in a real one.
    """

    after: float = 0.05
    speed: float = 1000.0

    def seconds(self, quiet: float) -> float:
        """Return how many seconds of the cluster pass while clients are quiet for so many real
        ones. The speed is reached in as long as was waited before, so that a client that needs a
        little longer to make its next request finds time little moved."""
        moving = quiet - self.after
        if moving <= 0:
            return 0.0
        if moving < self.after:
            return self.speed * moving * moving / (2 * self.after)
        return self.speed * (moving - self.after / 2)


class TimeFlagError(ValueError):
    """A value of ``--time`` that is none."""


def parse_pace(text: str) -> IdlePace | None:
    """Read the value of ``--time``: ``cluster`` (None), or ``when-idle``, with parts such as
    ``,after=100ms,speed=600``. Raises TimeFlagError."""
    if text == CLUSTER:
        return None
    word, *parts = text.split(",")
    if word != WHEN_IDLE:
        raise TimeFlagError(f"{printable(text)} is invalid: must be {CLUSTER} or {WHEN_IDLE}")
    pace = IdlePace()
    for part in parts:
        name, _, value = part.partition("=")
        if name == "after":
            pace = pace._replace(after=_after(value))
        elif name == "speed":
            pace = pace._replace(speed=_speed(value))
        else:
            raise TimeFlagError(
                f"{printable(part)} is invalid: {WHEN_IDLE} may be followed by after=DURATION and "
                "speed=NUMBER"
            )
    return pace


def _after(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise TimeFlagError(f"after: {printable(str(error))}") from None
    if not 0 <= seconds <= MAX_AFTER:
        raise TimeFlagError(f"after={printable(text)}: must be between 0s and 1m")
    return seconds


def _speed(text: str) -> float:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_SPEED:
        raise TimeFlagError(f"speed={printable(text)}: must be a number from 1 to {MAX_SPEED:.0f}")
    return float(text)


class NoOwnTimeError(StorageError):
    """The time of the cluster is the system's, which nobody moves."""


class ClusterAtRest(NamedTuple):
    """A cluster whose controllers have nothing to do now.

    :ivar due: when they have, or a client waits for the moment; None: never.
    """

    revision: int
    now: datetime
    due: datetime | None


class IdleTime:
    """Moves the time of one cluster.

    :param moved: is called when time was moved, for those who do what is due then.
    :param log: takes a line for the operator of the server.
    :param timers: the moments for which clients wait.
    :ivar activity: what clients do.
    """

    def __init__(
        self,
        pace: IdlePace,
        backend: Backend,
        watch_cache: WatchCache,
        moved: Callable[[], None],
        log: Callable[[str], None],
        timers: Timers,
    ) -> None:
        self.activity = Activity()
        self._pace = pace
        self._backend = backend
        self._cache = watch_cache
        self._moved = moved
        self._log = log
        self._timers = timers
        self._signs = -1  # those of clients when time began to move …
        self._passed = 0.0  # … and the seconds of the cluster since
        self._trouble = ""

    @staticmethod
    def check(cluster: LocalCluster) -> None:
        """Raise NoOwnTimeError where time cannot be moved."""
        if cluster.clock.own is None:
            setting = f'clock: "{cluster.clock.timestamp()}"'
            raise NoOwnTimeError(
                f"--time={WHEN_IDLE} moves the cluster's own time, and that of this cluster is the "
                f"system's: to give it a time of its own, add the line '{setting}' to its "
                "kubepy.yaml"
            )

    async def run(self) -> None:
        """Move time until the task is cancelled, or there is no later time."""
        activity = self.activity
        while True:
            if not activity.is_idle():
                # A request that ends is heard of; whether a client has read, must be asked.
                await activity.wait(None if activity.has_requests else TICK_SECONDS)
                continue
            quiet = activity.quiet_seconds()
            if quiet < self._pace.after:
                await asyncio.sleep(self._pace.after - quiet)
                continue
            if activity.is_deserted(DESERTED_SECONDS):
                await activity.wait(None)
                continue
            try:
                pause = await self._go_on(quiet)
                self._trouble = ""
            except StorageError as error:
                self._tell(str(error))
                pause = RETRY_SECONDS
            except (ClockLimit, ValueError) as error:
                self._log(f"error: time stands: {error}")
                return
            await asyncio.sleep(pause)

    def _tell(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            self._log(f"error: moving the time of the cluster: {trouble}")

    async def _go_on(self, quiet: float) -> float:
        """Let time go on as far as it may after so many quiet seconds, at most to the next moment
        that is due; return how long to wait before the next time. Raises StorageError, ValueError,
        ClockLimit."""
        if self._signs != self.activity.signs:
            self._signs = self.activity.signs
            self._passed = 0.0
        rest = await self._backend.read(self._rest)
        if rest is None:
            return WORK_SECONDS
        allowed = self._pace.seconds(quiet) - self._passed
        moment = target_of(rest, allowed)
        if moment is None:
            return self._pause(quiet, rest, allowed)
        if self._signs != self.activity.signs or not self.activity.is_idle():
            return 0.0
        with self.activity.held():
            has_moved = await self._backend.write(lambda cluster: move(cluster, rest, moment))
        if not has_moved:
            return WORK_SECONDS
        self._passed += (moment - rest.now).total_seconds()
        self._moved()
        self._timers.announce()
        return 0.0

    def _rest(self, cluster: LocalCluster) -> ClusterAtRest | None:
        """Return where the cluster stands; None while controllers are at work, or watches have not
        heard of it."""
        revision = cluster.store.revision
        if self._cache.revision < revision or cluster.clock.own is None:
            return None
        checkpoint = settled_checkpoint(cluster, of_this_version=False)
        if checkpoint is None or cluster.store.revision != revision:
            return None
        moments = (checkpoint.next_due(), self._timers.next_due())
        due = min((moment for moment in moments if moment is not None), default=None)
        return ClusterAtRest(revision, cluster.clock.now(), due)

    def _pause(self, quiet: float, rest: ClusterAtRest, allowed: float) -> float:
        """Return how long to wait: the longer, the longer clients have been quiet, but not beyond
        the moment that is due."""
        pause = min(quiet / TICK_RATIO, MAX_TICK_SECONDS)
        if rest.due is not None:
            until_due = (rest.due - rest.now).total_seconds() - allowed
            pause = min(pause, until_due / self._pace.speed)
        return max(pause, TICK_SECONDS)


def target_of(rest: ClusterAtRest, seconds: float) -> datetime | None:
    """Return the moment to which time goes next if it may go on by so many seconds, None where it
    stays: the next moment that is due, or a whole second before it."""
    target = later(rest.now, seconds)
    if rest.due is not None and rest.due <= target:
        return rest.due
    target = target.replace(microsecond=0)
    return target if target > rest.now else None


def move(cluster: LocalCluster, rest: ClusterAtRest, moment: datetime) -> bool:
    """Move time; return whether it was, as the cluster was still as it was. Raises StorageError,
    ValueError, ClockLimit."""
    if cluster.store.revision != rest.revision or cluster.clock.own != rest.now:
        return False
    cluster.client.move_time_to(moment)
    return True
