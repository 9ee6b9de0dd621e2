"""Pods that end as soon as they start: each takes longer to do so."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kubepy.kubelet.outcomes import TerminationBackoff
from tests.kubelet.objects import NOW


def after(number: int) -> TerminationBackoff:
    """Return the backoff after this many pods of one controller have ended."""
    endings = TerminationBackoff()
    for _ in range(number):
        endings.record("owner", NOW)
    return endings


@pytest.mark.parametrize(
    ("number", "seconds"), [(0, 0), (19, 0), (20, 1), (21, 2), (23, 8), (40, 300)]
)
def test_first_end_at_once_and_each_later_one_takes_twice_as_long(
    number: int, seconds: float
) -> None:
    assert after(number).delay("owner", NOW) == seconds


@pytest.mark.parametrize(
    ("number", "is_longest"), [(20, False), (28, False), (29, True), (99, True)]
)
def test_delay_grows_up_to_five_minutes(number: int, is_longest: bool) -> None:
    assert after(number).is_longest("owner") is is_longest


def test_delay_counts_from_last_one() -> None:
    endings = after(23)
    assert endings.delay("owner", NOW + timedelta(seconds=5)) == 3
    assert endings.delay("owner", NOW + timedelta(seconds=9)) == 0
    assert endings.delay("another", NOW) == 0


def test_old_terminations_are_forgotten() -> None:
    endings = after(40)
    assert endings.delay("owner", NOW + timedelta(minutes=11)) == 0
    endings.record("another", NOW + timedelta(minutes=11))
    assert list(endings.remember()) == ["another"]


def test_second_process_goes_on_with_the_first_ones_work() -> None:
    endings = TerminationBackoff()
    endings.recall(after(22).remember())
    assert endings.delay("owner", NOW) == 4
