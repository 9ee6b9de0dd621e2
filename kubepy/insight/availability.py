"""How workloads stood against their bounds: the judgement that all formats of a timeline, and
plans, show.

The bounds of a moment are those of the spec, the size and the budgets of that moment. A workload
that is made, or made larger, is not asked for pods that it never had: as many are required as its
bounds say for the size that it has come up to. Nothing is required of a workload that is being
deleted, nor until it is up of one that is deleted and made again; but the pods that the latter has
meanwhile count as its lowest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kubepy.insight import ENOUGH, Bounds, Course, Numbers

JOBS = ("cronjobs.batch", "jobs.batch")  # their pods come and go, and nothing is required of them


class Availability(NamedTuple):
    """How a workload stood after a step.

    :ivar step: the number of steps so far.
    :ivar required: how many pods had to be available; None where nothing says so.
    :ivar counts: whether the lowest availability is to be sought here; not while the workload only
        comes up.
    :ivar is_shrinking: there are more pods than desired only because it was made smaller, or is
        being deleted.
    """

    step: int
    numbers: Numbers
    bounds: Bounds
    required: int | None
    counts: bool = True
    is_shrinking: bool = False

    @property
    def lacking(self) -> int:
        """How many pods fewer than required are available."""
        return max((self.required or 0) - self.numbers.available, 0)

    @property
    def most(self) -> int:
        """How many pods there may be."""
        return self.numbers.desired + (self.bounds.max_surge or 0 if self.numbers.desired else 0)


class Extremes(NamedTuple):
    """The worst of a workload's moments.

    :ivar lowest: that at which it lacked the most pods; where it never lacked any, that with the
        fewest available ones. Of a workload that never came up, the last one.
    :ivar allowed_surge: what the strategy allowed at the moment of the largest surge.
    :ivar is_up: whether it has come up at any time.
    """

    lowest: Availability
    most_unavailable: int
    most_surge: int
    allowed_surge: int | None
    is_up: bool


def judge(course: Course) -> list[Availability]:
    """Return how a workload stood at the beginning, and each time its numbers or its bounds
    changed."""
    moments = list(_with_bounds(course))
    if course.key.resource in JOBS:
        return [Availability(*moment, None) for moment in moments]
    moments_judge = AvailabilityJudge(course.reached)
    return [moments_judge.next(*moment) for moment in moments]


def reached_at_end(course: Course) -> int | None:
    """Return how many pods were required of a workload in the end; None if it was not up."""
    moments_judge = AvailabilityJudge(course.reached)
    for moment in _with_bounds(course):
        moments_judge.next(*moment)
    return moments_judge.reached


def lacks_at_first(course: Course) -> bool:
    """Return whether a workload has fewer pods at the beginning than its bounds say."""
    numbers = course.numbers[0][1]
    least = course.bounds[0][1].min_available
    return least is not None and numbers.available < min(least, numbers.desired)


def extremes(judged: Sequence[Availability]) -> Extremes:
    """Return the worst moments of a workload."""
    there = [
        moment for moment in judged if moment.numbers.desired and not moment.bounds.is_leaving
    ] or judged[-1:]
    counting = [moment for moment in there if moment.counts]
    lowest = min(counting or there[-1:], key=badness)
    surging = max(
        (moment for moment in there if not moment.is_shrinking),
        default=lowest,
        key=lambda moment: (
            moment.numbers.surge > (moment.bounds.max_surge or 0),
            moment.numbers.surge,
        ),
    )
    return Extremes(
        lowest,
        max(moment.numbers.unavailable for moment in counting or there[-1:]),
        surging.numbers.surge if not surging.is_shrinking else 0,
        surging.bounds.max_surge,
        bool(counting) or lowest.required is not None,
    )


def badness(moment: Availability) -> tuple[int, int]:
    """Sort moments, the worst first."""
    return -moment.lacking, moment.numbers.available


def at_step(judged: Sequence[Availability], count: int) -> Availability:
    """Return how a workload stood after so many steps."""
    return next((moment for moment in reversed(judged) if moment.step <= count), judged[0])


def _with_bounds(course: Course) -> Iterator[tuple[int, Numbers, Bounds]]:
    """Yield (number of steps, numbers, bounds) whenever one of the two changes."""
    numbers = dict(course.numbers)
    bounds = dict(course.bounds)
    last_numbers = course.numbers[0][1]
    last_bounds = course.bounds[0][1]
    for step in sorted(numbers.keys() | bounds.keys()):
        last_numbers = numbers.get(step, last_numbers)
        last_bounds = bounds.get(step, last_bounds)
        yield step, last_numbers, last_bounds


class AvailabilityJudge:
    """Goes through the moments of one workload.

    :ivar reached: the requirement that it has come up to; None as long as it has not come up.
    """

    def __init__(self, reached: int | None) -> None:
        self.reached = reached
        self._before: Numbers | None = None
        self._is_rising = reached != ENOUGH
        self._is_shrinking = False
        self._is_made_anew = False  # it was up, was deleted, and is not up again

    def next(self, step: int, numbers: Numbers, bounds: Bounds) -> Availability:
        """Judge the next moment."""
        if bounds.min_available is None:
            least = None
        else:
            least = max(min(bounds.min_available, numbers.desired), 0)

        if bounds.is_leaving or not numbers.desired:
            self._is_made_anew |= bounds.is_leaving and self.reached is not None
            self.reached = None
            self._is_rising = False
            self._is_shrinking = True
        else:
            self._follow(numbers, numbers.desired if least is None else least)

        self._before = numbers
        required = None if least is None else self.reached
        is_lacking = required is not None and numbers.available < required
        counts = (
            is_lacking or self._is_made_anew or (self.reached is not None and not self._is_rising)
        )
        if numbers.desired and numbers.available >= numbers.desired:
            self._is_made_anew = False
        return Availability(step, numbers, bounds, required, counts, self._is_shrinking)

    def _follow(self, numbers: Numbers, least: int) -> None:
        """Take in the numbers of a workload that is there to stay."""
        before = self._before or numbers
        if self.reached == ENOUGH:
            self.reached = least
        has_come_up = numbers.available >= least
        self._is_rising |= numbers.desired > before.desired or (
            self.reached is None and has_come_up
        )
        self._is_rising &= before.available <= numbers.available < numbers.desired
        if has_come_up or (self.reached is not None and least <= self.reached):
            self.reached = least
        self._is_shrinking |= numbers.desired < before.desired
        self._is_shrinking &= numbers.desired < numbers.staying <= before.staying
