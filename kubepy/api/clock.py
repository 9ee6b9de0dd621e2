"""Time and chance of a cluster. Nothing else in kubepy asks the system for the time, a UUID or a random number.

``kubepy.yaml`` can fix both, and then the same commands give the same bytes.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

# Upstream's k8s.io/apimachinery/pkg/util/rand: no vowels and no look-alikes, so that no bad word comes out.
ZERO_TIME = datetime.min.replace(tzinfo=UTC)
SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class Clock:
    """The time of the cluster, in UTC: the system's, or the cluster's own, which stands until something moves it.

    :ivar own: the moment at which the cluster's own time stands; None: time is the system's.
    """

    def __init__(self, own: datetime | None = None) -> None:
        self.own = own

    def now(self) -> datetime:
        return self.own or datetime.now(UTC)

    def move_to(self, moment: datetime) -> None:
        """Let the cluster's own time go on to a moment. Raises ValueError for one before now."""
        if self.own is None:
            raise ValueError("the time of this cluster is the system's")
        if moment < self.own:
            raise ValueError(f"time cannot go back from {format_exact_time(self.own)} to {format_exact_time(moment)}")
        self.own = moment

    def timestamp(self) -> str:
        """Return the time as ``metav1.Time`` writes it: whole seconds, ``2026-11-20T10:13:48Z``."""
        return format_time(self.now())

    def sleep(self, seconds: float) -> None:
        """Wait in real time; the cluster's own time stands still meanwhile."""
        time.sleep(seconds)

    def monotonic(self) -> float:
        """Return seconds of the cluster's time, for time limits that users give (``--timeout``)."""
        return self.own.timestamp() if self.own else time.monotonic()

    def real_monotonic(self) -> float:
        """Return seconds of real time, for limits of waiting for other processes, and of a burst of work."""
        return time.monotonic()


class Ids:
    """UIDs and random name suffixes. With a ``seed`` they repeat: same seed, same position, same ids.

    ``position`` is where the sequence stands; it lives in the state folder between processes.
    """

    def __init__(self, seed: int | str | None = None, position: int = 0) -> None:
        self.seed = seed
        self.position = position
        self._system: Random | None = None

    def _random(self) -> Random:
        from random import Random, SystemRandom  # takes a millisecond that commands which only read do not pay

        if self.seed is not None:
            self.position += 1
            return Random(f"{self.seed}/{self.position}")
        self._system = self._system or SystemRandom()
        return self._system

    def uid(self) -> str:
        """Return a UUID that sorts by the time it was made (RFC 9562, version 7).

        So objects made within one second, which have the same creationTimestamp, have an order nevertheless.
        """
        chance = self._random().getrandbits(62)
        moment, fraction = self._order()
        digits = f"{moment << 80 | 0x7 << 76 | fraction << 64 | 0x2 << 62 | chance:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def _order(self) -> tuple[int, int]:
        """Return 48 and 12 bits that grow: milliseconds and their fraction, or with a seed the position."""
        if self.seed is not None:
            from random import Random

            return Random(self.seed).getrandbits(24) << 24 | self.position & 0xFFFFFF, 0
        milliseconds, rest = divmod(time.time_ns(), 1_000_000)
        return milliseconds, rest * 4096 // 1_000_000

    def fraction(self, *subject: str, unseeded: str) -> float:
        """Draw a number from 0 to 1 that the seed and its subject alone decide.

        :param unseeded: decides in place of the seed where there is none, as the uid of an object.
        """
        from random import Random

        return Random("/".join([str(unseeded if self.seed is None else self.seed), *subject])).random()

    def suffix(self, length: int = 5) -> str:
        chance = self._random()
        return "".join(chance.choice(SUFFIX_ALPHABET) for _ in range(length))


def format_time(moment: datetime) -> str:
    """Write a ``metav1.Time``: ``2026-11-20T10:13:48Z``. The year has four digits, unlike strftime's."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def format_exact_time(moment: datetime) -> str:
    """Write an RFC 3339 time with its fraction of a second, if it has one: ``2026-11-20T10:13:48.5Z``."""
    text = moment.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{text.rstrip('0') if '.' in text else text}Z"


def format_micro_time(moment: datetime) -> str:
    """Write a ``metav1.MicroTime``: ``2026-11-20T10:13:48.123456Z``."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def later(moment: datetime, seconds: float) -> datetime:
    """Return the moment so many seconds after another, or before it for a negative number.

    A number of 64 bits may lead beyond the years that Python knows: then the first or the last moment of them.
    """
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return (datetime.max if seconds > 0 else datetime.min).replace(tzinfo=UTC)


def parse_time(text: str) -> datetime:
    """Parse an RFC 3339 time as the API writes it. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment


def parse_optional_time(text: str | None) -> datetime:
    """Parse the time of a field that may be empty; without one return Go's zero time, which is long ago."""
    return parse_time(text) if text else ZERO_TIME
