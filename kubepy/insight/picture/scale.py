"""Places on the time axis of a picture.

Time runs in proportion, but for two things. A moment with steps has a width, which they share in
their order: otherwise a rollout of pods that are ready at once would be a line. And a gap that
would leave no room for the rest is cut short, and marked: the hours between two rollouts of a
minute. Steps without much meaning beside others, as the runs of CronJobs beside a rollout, stand
in such a gap in proportion.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from itertools import accumulate, pairwise
from math import floor, log10, sqrt
from typing import NamedTuple

from kubepy.api.values.goformat import format_duration
from kubepy.insight import Timeline

# Parts of the width: what all moments together get at least, and what gaps get at most, on average.
MOMENTS_SHARE, GAP_SHARE = 0.3, 0.15
# Which gaps are cut short (see shortest_break): those that last BREAK_RATIO times longer than all
# shorter ones together; or else at most MOST_BREAKS that last LONG_RATIO times longer than the
# median gap.
BREAK_RATIO = 3.0
LONG_RATIO, MOST_BREAKS = 10.0, 12
# Parts of the room of the other gaps: what the shortest gap that is cut short gets at most, and
# what all of those get.
BREAK_SHARE, BREAKS_SHARE = 0.15, 0.6
# Steps are of one moment where they are nearer than this part of the whole time, and these seconds.
RESOLUTION, NEAR_SECONDS = 300, 0.2
MINOR_WEIGHT = 0.02  # of the width of a moment, for one in which nothing of note happened
DAY_SECONDS = 24 * 3600.0
PADDING = 0.04  # of the width, before the first step and after the last one


class Moment(NamedTuple):
    """The place of the steps of one moment.

    :ivar is_major: something of note happened in it.
    :ivar after: the time since the beginning of the timeline, as exact as the axis can show:
        ``1m30s``; that of the clock where there are dates: ``14:30``.
    """

    x: float
    width: float
    steps: int
    after: str
    is_major: bool = True


class Gap(NamedTuple):
    """The place of a gap that is cut short, and how long it lasted."""

    x: float
    width: float
    text: str


class TimeStretch(NamedTuple):
    """A part of the axis between two moments of note: its gaps, and how long they last together."""

    gaps: list[int]
    seconds: float


class Scale:
    """The places of a timeline's steps between 0 and ``width``.

    :param minor: the numbers of steps that need no room of their own where there are others: the
        runs of Jobs beside a rollout, the turns of a crash loop. They stand where their time is.
    :ivar has_dates: the timeline lasts longer than a day, so that times are those of the clock.
    """

    def __init__(self, timeline: Timeline, width: float, minor: Collection[int] = ()) -> None:
        self.width = width
        groups = moments_of(timeline)
        is_major = major_moments(groups, minor)
        span = (timeline.until - timeline.since).total_seconds()
        self.since = timeline.since
        self.has_dates = span > DAY_SECONDS
        self.resolution = 10.0 ** min(floor(log10(span / RESOLUTION)), 0) if span > 0 else 1.0
        times = [timeline.since, *(at for at, _ in groups)]
        self._times = [*times, max([timeline.until, *times])]
        seconds = [
            max((after - before).total_seconds(), 0.0) for before, after in pairwise(self._times)
        ]
        stretches = list(stretches_of(seconds, is_major))
        shares, is_short = gap_shares([stretch.seconds for stretch in stretches])
        weights = [
            sqrt(count) * (1 if major else MINOR_WEIGHT)
            for (_, count), major in zip(groups, is_major, strict=True)
        ]
        room = width * (1 - 2 * PADDING)
        moment_room = room * max(MOMENTS_SHARE, 1 - GAP_SHARE * sum(map(bool, shares)))
        unit = moment_room / (sum(weights) or 1)
        gap_room = room - unit * sum(weights)
        rooms = [0.0] * len(seconds)
        for stretch, share in zip(stretches, shares, strict=True):
            for gap in stretch.gaps:
                rooms[gap] = share * gap_room * seconds[gap] / (stretch.seconds or 1)

        self._place_moments(
            groups,
            rooms,
            [unit * weight for weight in weights],
            is_major,
        )
        self.gaps = [
            self._gap_of(stretch)
            for stretch, short in zip(stretches, is_short, strict=True)
            if short
        ]
        self._places = [
            moment.x + moment.width * (place + 0.5) / moment.steps
            for moment in self.moments
            for place in range(moment.steps)
        ]

    def _place_moments(
        self,
        groups: list[tuple[datetime, int]],
        rooms: list[float],
        widths: list[float],
        is_major: list[bool],
    ) -> None:
        """Place the moments one after the other, each behind its gap."""
        self.moments = list[Moment]()
        self._gap_places = list[tuple[float, float]]()
        x = self.width * PADDING
        for (at, count), room, width, major in zip(
            groups,
            rooms,
            widths,
            is_major,
            strict=False,
        ):
            self._gap_places.append((x, x + room))
            x += room
            after = self._text((at - self.since).total_seconds())
            if self.has_dates:
                after = f"{at:%H:%M}"
            self.moments.append(
                Moment(
                    x,
                    width,
                    count,
                    after,
                    major,
                )
            )
            x += width
        self._gap_places.append((x, x + rooms[-1]))

    def _gap_of(self, stretch: TimeStretch) -> Gap:
        """Return the place of a stretch that is cut short."""
        begin = self._gap_places[stretch.gaps[0]][0]
        end = self._gap_places[stretch.gaps[-1]][1]
        return Gap(begin, end - begin, rough_duration(stretch.seconds))

    def days(self) -> list[tuple[float, str]]:
        """Return the places at which days begin, with their dates: ``Jan 2``; none for a timeline
        of one day. The first is that of the beginning."""
        if not self.has_dates:
            return []
        days = [(0.0, date_text(self.since))]
        midnight = self.since.replace(
            hour=0,
            minute=0,
            second=0,
            microsecond=0,
        )
        while (midnight := midnight + timedelta(days=1)) <= self._times[-1]:
            days.append((self.x_at(midnight), date_text(midnight)))
        return days

    def x_at(self, at: datetime) -> float:
        """Return the place of a time: in a moment with steps, where that begins."""
        gap = min(max(bisect_left(self._times, at) - 1, 0), len(self._gap_places) - 1)
        before, after = self._times[gap : gap + 2]
        begin, end = self._gap_places[gap]
        if after == before:
            return begin
        return begin + (end - begin) * ((at - before) / (after - before))

    def _text(self, seconds: float) -> str:
        """Write a duration as exactly as the axis shows it."""
        return short_duration(round(round(seconds / self.resolution) * self.resolution, 6))

    def x(self, number: int) -> float:
        """Return the place of a step; -1 is the beginning, the number of all steps the end."""
        if number < 0:
            return 0.0
        if number >= len(self._places):
            return self.width
        return self._places[number]


def date_text(at: datetime) -> str:
    """Write a date as the axis shows it."""
    return f"{at:%b} {at.day}"


def short_duration(seconds: float) -> str:
    """Return a duration, rounded, without units that are 0 behind others: ``6h``, ``1m30s``,
    ``1.55s``, ``4ms``."""
    digits = 0
    if seconds < 1:
        digits = 3
    elif seconds < 60:
        digits = 2
    text = format_duration(round(seconds, digits))
    if text.endswith("h0m0s"):
        return text.removesuffix("0m0s")
    if text.endswith("m0s"):
        return text.removesuffix("0s")
    return text


def rough_duration(seconds: float) -> str:
    """Return a duration that is only to give an idea: ``3d23h``, ``2h45m``, ``12s``."""
    hours = round(seconds / 3600)
    if hours >= 48:
        return f"{hours // 24}d{hours % 24}h" if hours % 24 else f"{hours // 24}d"
    return short_duration(round(seconds / 60) * 60 if seconds >= 3600 else seconds)


def major_moments(groups: list[tuple[datetime, int]], minor: Collection[int]) -> list[bool]:
    """Return which moments have a step of note; all do where no step is."""
    firsts = [0, *accumulate(count for _, count in groups)]
    is_major = [
        any(number not in minor for number in range(first, end)) for first, end in pairwise(firsts)
    ]
    return is_major if any(is_major) else [True] * len(groups)


def stretches_of(seconds: list[float], is_major: list[bool]) -> Iterator[TimeStretch]:
    """Yield the parts of the axis. Gap 0 is before the first moment, the last one behind the last
    moment."""
    gaps = list[int]()
    for gap in range(len(seconds)):
        gaps.append(gap)
        if gap == len(is_major) or is_major[gap]:
            yield TimeStretch(gaps, sum(seconds[own] for own in gaps))
            gaps = []


def moments_of(timeline: Timeline) -> list[tuple[datetime, int]]:
    """Return the moments of a timeline, each with the number of its steps.

    Steps that follow each other so fast that the axis could not tell them apart are of one moment:
    in the system's time each write has a time of its own.
    """
    near = min(timedelta(seconds=NEAR_SECONDS), (timeline.until - timeline.since) / RESOLUTION)
    groups = list[tuple[datetime, int]]()
    for step in timeline.steps:
        if groups and step.at - groups[-1][0] <= near:
            groups[-1] = (groups[-1][0], groups[-1][1] + 1)
        else:
            groups.append((step.at, 1))
    return groups


def gap_shares(seconds: list[float]) -> tuple[list[float], list[bool]]:
    """Return the share of the room that each gap gets, and which are cut short; all are 0 where no
    time passes."""
    shortest = shortest_break(seconds)
    if shortest is None:
        total = sum(seconds)
        return [gap / total if total else 0.0 for gap in seconds], [False] * len(seconds)
    shortened = [gap >= shortest for gap in seconds]
    rest = sum(gap for gap, short in zip(seconds, shortened, strict=True) if not short)
    # Of those that are cut short, a longer gap gets a little more room.
    sizes = [
        1 + log10(gap / shortest) / 2 if short else 0.0
        for gap, short in zip(seconds, shortened, strict=True)
    ]
    unit = min(rest * BREAK_SHARE, rest * BREAKS_SHARE / sum(sizes))
    lengths = [size * unit if size else gap for gap, size in zip(seconds, sizes, strict=True)]
    return [length / sum(lengths) for length in lengths], shortened


def shortest_break(seconds: list[float]) -> float | None:
    """Return from which length on gaps are cut short; None where none is.

    A gap is cut short that is far longer than all shorter ones together, if those are not few. Or
    else there are a few that are far longer than the gap in the middle, and take most of the time.
    """
    gaps = sorted(gap for gap in seconds if gap)
    total = 0.0
    for index, gap in enumerate(gaps):
        if index and gap > BREAK_RATIO * total and 2 * index >= len(gaps) - index:
            return gap
        total += gap

    middle = gaps[(len(gaps) - 1) // 2] if gaps else 0.0
    long = [gap for gap in gaps if gap >= LONG_RATIO * middle]
    if 0 < len(long) <= MOST_BREAKS and sum(long) > total / 2:
        return long[0]
    return None
