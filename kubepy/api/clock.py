"""Time and chance of a cluster. Nothing else in kubepy asks the system for the time, a UUID or a
random number.

``kubepy.yaml`` can fix both, and then the same commands give the same bytes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from kubepy.lazy import blake2b

ZERO_TIME = datetime.min.replace(tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CLOCK_YEARS = range(
    1678, 2262
)  # those of which 64 bits hold all nanoseconds from 1970, as Go counts them
YEARS_RULE = f"the clock must stay between the years {CLOCK_YEARS[0]} and {CLOCK_YEARS[-1]}"
# Upstream's k8s.io/apimachinery/pkg/util/rand: no vowels and no look-alikes, so that no bad word
# comes out.
SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5


class ClockLimit(BaseException):
    """The cluster's own time was to go on beyond the limit of its clock. No ``except Exception``
    stops it."""


class Clock:
    """The time of the cluster, in UTC: the system's, or the cluster's own, which stands until
    something moves it.

    :ivar own: the moment at which the cluster's own time stands; None: time is the system's.
    :ivar limit: the moment beyond which own time does not go; None: it is not limited.
    :ivar pause: waits so many seconds; a program that lets others use the cluster meanwhile puts
        its own here.
    """

    def __init__(self, own: datetime | None = None) -> None:
        self.own = own
        self.limit: datetime | None = None
        self.pause: Callable[[float], object] = time.sleep

    def now(self) -> datetime:
        return self.own or datetime.now(UTC)

    def move_to(self, moment: datetime) -> None:
        """Let the cluster's own time go on to a moment.

        Raises ValueError for one before now, or beyond all clocks, ClockLimit for one beyond the
        limit.
        """
        if self.own is None:
            raise ValueError("the time of this cluster is the system's")
        if moment < self.own:
            raise ValueError(
                f"time cannot go back from {format_exact_time(self.own)} to "
                f"{format_exact_time(moment)}"
            )

        if moment.year not in CLOCK_YEARS:
            raise ValueError(f"{YEARS_RULE}, and that would be the year {moment.year}")

        if self.limit is not None and moment > self.limit:
            raise ClockLimit(f"time goes no further than {format_exact_time(self.limit)}")
        self.own = moment

    def timestamp(self) -> str:
        """Return the time as ``metav1.Time`` writes it: whole seconds, ``2026-11-20T10:13:48Z``."""
        return format_time(self.now())

    def sleep(self, seconds: float) -> None:
        """Wait in real time; the cluster's own time stands still meanwhile."""
        self.pause(seconds)

    def monotonic(self) -> float:
        """Return seconds of the cluster's time, for time limits that users give (``--timeout``)."""
        if self.own:
            return self.own.timestamp()
        return time.monotonic()

    def real_monotonic(self) -> float:
        """Return seconds of real time, for limits of waiting for other processes, and of a burst of
        work."""
        return time.monotonic()


class Ids:
    """UIDs, random suffixes of names, and random numbers.

    With a ``seed`` each draw is a function of the seed and its subject: an object, with a purpose
    where the object has more than one draw. Neither the process nor the draws for other objects
    change it; a request that fails, a read and a dry run move nothing.
    """

    def __init__(self, seed: int | str | None = None, clock: Clock | None = None) -> None:
        self.seed = seed
        self._clock = clock or Clock()

    def uid(self, *subject: str, number: int) -> str:
        """Return a UUID of version 7 (RFC 9562): the milliseconds of the time, then 74 bits.
        Without a seed these are the fraction of the millisecond, and chance.

        With a seed they are the end of the number, so that what is made of one prefix sorts by age,
        and a draw. With a seed and the system's time, which never repeats, the seed takes the place
        of the milliseconds.

        :param number: so many have been given to this subject; without a seed it does not matter.
        """
        if self.seed is None:
            milliseconds, rest = divmod(time.time_ns(), 1_000_000)
            chance = (rest * 4096 // 1_000_000) << 62 | int.from_bytes(os.urandom(8)) >> 2
        else:
            own = self._clock.own
            milliseconds = (own - EPOCH) // timedelta(milliseconds=1) if own else _hash(self.seed)
            chance = (number & 0xFFFFF) << 54 | _hash(self.seed, "uid", *subject, number) >> 10
        value = (
            (milliseconds & 0xFFFF_FFFF_FFFF) << 80
            | 0x7 << 76
            | (chance >> 62 & 0xFFF) << 64
            | 0x2 << 62
            | chance & 0x3FFF_FFFF_FFFF_FFFF
        )
        digits = f"{value:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def suffix(self, *subject: str, number: int, attempt: int = 0) -> str:
        """Draw the end of a generated name.

        :param number: so many names have been given to this subject.
        :param attempt: so many further ones have been found taken.
        """
        chance = self._draw("suffix", *subject, number + attempt)
        suffix = ""
        for _ in range(SUFFIX_LENGTH):
            chance, index = divmod(chance, len(SUFFIX_ALPHABET))
            suffix += SUFFIX_ALPHABET[index]
        return suffix

    def fraction(self, *subject: str | int, unseeded: str) -> float:
        """Draw a number from 0 up to but not including 1 that the seed and its subject alone
        decide.

        :param unseeded: decides in place of the seed where there is none, as the uid of an object.
        """
        return (_hash(unseeded if self.seed is None else self.seed, *subject) >> 11) / 2**53

    def _draw(self, *subject: str | int) -> int:
        if self.seed is None:
            return int.from_bytes(os.urandom(8))
        return _hash(self.seed, *subject)


def _hash(*words: str | int) -> int:
    """Return 64 bits that the words decide, the same with every Python."""
    text = "\0".join(map(str, words))
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), 8))


def draw_seed() -> int:
    """Draw a seed of at most six digits, for what must be repeatable though nobody has chosen a
    seed."""
    return int.from_bytes(os.urandom(8)) % 1_000_000


def format_time(moment: datetime) -> str:
    """Write a ``metav1.Time``: ``2026-11-20T10:13:48Z``. The year has four digits, unlike
    strftime's."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return f"{moment.isoformat(timespec='seconds')[:-6]}Z"


def format_exact_time(moment: datetime) -> str:
    """Write an RFC 3339 time with its fraction of a second, if it has one:
    ``2026-11-20T10:13:48.5Z``."""
    text = moment.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{text.rstrip('0') if '.' in text else text}Z"


def format_micro_time(moment: datetime) -> str:
    """Write a ``metav1.MicroTime``: ``2026-11-20T10:13:48.123456Z``."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return f"{moment.isoformat(timespec='microseconds')[:-6]}Z"


def later(moment: datetime, seconds: float) -> datetime:
    """Return the moment so many seconds after another, or before it for a negative number.

    A number of 64 bits may lead beyond the years that Python knows: then the first or the last
    moment of them.
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
    """Parse the time of a field that may be empty; without one return Go's zero time, which is long
    ago."""
    if text:
        return parse_time(text)
    return ZERO_TIME
