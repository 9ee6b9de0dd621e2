"""Places on the time axis of a picture.

Time runs in proportion, but for two things. A moment with steps has a width, which they share in
their order: otherwise a rollout of pods that are ready at once would be a line. And a gap that
would leave no room for the rest is cut short, and marked: the hours between two rollouts of a
minute.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime, timedelta
from itertools import pairwise
from math import floor, log10, sqrt
from typing import NamedTuple

from kubepy.api.values.goformat import format_duration
from kubepy.insight import Timeline

MOMENTS_SHARE, GAP_SHARE = (
    0.3,
    0.15,
)  # of the width: for moments at least, and for a gap where there are few
BREAK_RATIO = (
    3.0  # gaps are cut short that last this many times longer than all shorter ones together
)
BREAKS_SHARE = 0.6  # of the room of other gaps, for those that are cut short: at most
RESOLUTION, NEAR_SECONDS = (
    300,
    0.2,
)  # times of the span that can be told apart; what is nearer is one moment
PADDING = 0.04  # of the width, before the first step and after the last one


class Moment(NamedTuple):
    """The place of the steps of one moment.

    :ivar first: the number of its first step.
    :ivar after: the time since the beginning of the timeline, as exact as the axis can show:
        ``1m30s``.
    """

    at: datetime
    x: float
    width: float
    first: int
    steps: int
    after: str


class Gap(NamedTuple):
    """The place of a gap that is cut short, and how long it lasted."""

    x: float
    width: float
    text: str


class Scale:
    """The places of a timeline's steps between 0 and ``width``."""

    def __init__(self, timeline: Timeline, width: float) -> None:
        self.width, self._steps = width, len(timeline.steps)
        groups = moments_of(timeline)
        span = (timeline.until - timeline.since).total_seconds()
        self.resolution = 10.0 ** min(floor(log10(span / RESOLUTION)), 0) if span > 0 else 1.0
        moments = [
            timeline.since,
            *(at for at, _ in groups),
            max([timeline.until, *(at for at, _ in groups)]),
        ]
        seconds = [
            max((after - before).total_seconds(), 0.0) for before, after in pairwise(moments)
        ]
        room = width * (1 - 2 * PADDING)
        shares, shortened = gap_shares(seconds)
        weights = [sqrt(count) for _, count in groups]
        moment_room = room * max(MOMENTS_SHARE, 1 - GAP_SHARE * sum(map(bool, shares)))
        unit = moment_room / (sum(weights) or 1)
        gap_room = room - unit * sum(weights)
        self.moments, self.gaps = list[Moment](), list[Gap]()
        x = width * PADDING
        first = 0
        for index, share in enumerate(shares):
            if shortened[index]:
                self.gaps.append(Gap(x, share * gap_room, self._text(seconds[index])))
            x += share * gap_room
            if index < len(groups):
                at, count = groups[index]
                after = self._text((at - timeline.since).total_seconds())
                self.moments.append(Moment(at, x, unit * weights[index], first, count, after))
                x = x + unit * weights[index]
                first = first + count

        self._firsts = [moment.first for moment in self.moments]

    def _text(self, seconds: float) -> str:
        """Write a duration as exactly as the axis shows it."""
        return format_duration(round(round(seconds / self.resolution) * self.resolution, 6))

    def x(self, number: int) -> float:
        """Return the place of a step; -1 is the beginning, the number of all steps the end."""
        if number < 0 or not self.moments:
            if number < 0:
                return 0.0
            return self.width
        if number >= self._steps:
            return self.width
        moment = self.moments[bisect_right(self._firsts, number) - 1]
        return moment.x + moment.width * (number - moment.first + 0.5) / moment.steps


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
    sizes = [1 + log10(gap / shortest) / 2 for gap in seconds if gap >= shortest]
    unit = min(rest * 0.15, rest * BREAKS_SHARE / sum(sizes))
    lengths = [
        (1 + log10(gap / shortest) / 2) * unit if short else gap
        for gap, short in zip(seconds, shortened, strict=True)
    ]
    return [length / sum(lengths) for length in lengths], shortened


def shortest_break(seconds: list[float]) -> float | None:
    """Return from which length on gaps are cut short: far more than all shorter ones together, if
    those are not few."""
    gaps = sorted(gap for gap in seconds if gap)
    total = 0.0
    shortest = None
    for index, gap in enumerate(gaps):
        if index and gap > BREAK_RATIO * total and 2 * index >= len(gaps) - index:
            shortest = gap
            break
        total += gap
    return shortest
