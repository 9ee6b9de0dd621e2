"""The clock, and identifiers made at random."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from kubepy.api.clock import Ids, format_micro_time, format_time, later


@pytest.mark.parametrize("seed", [None, 7, "lab"])
def test_uids_sort_by_when_they_were_made(seed: int | str | None) -> None:
    ids = Ids(seed)
    made = [uuid.UUID(ids.uid()) for _ in range(300)]
    assert made == sorted(made)
    assert {(one.version, one.variant) for one in made} == {(7, uuid.RFC_4122)}


def test_uids_repeat_with_their_seed_and_position() -> None:
    first, again, later, other = Ids(7), Ids(7), Ids(7, position=2), Ids(8)
    uids = [first.uid() for _ in range(3)]
    assert [again.uid() for _ in range(3)] == uids
    assert later.uid() == uids[2]
    assert other.uid() != uids[0]


def test_times_have_four_digits_of_year() -> None:
    moment = datetime(1, 2, 3, 4, 5, 6, 7, UTC)
    assert (format_time(moment), format_micro_time(moment)) == ("0001-02-03T04:05:06Z", "0001-02-03T04:05:06.000007Z")


@pytest.mark.parametrize(("seconds", "moment"), [
    (60, "2026-01-01T00:01:00Z"), (-60, "2025-12-31T23:59:00Z"), (2**63 - 1, "9999-12-31T23:59:59Z"),
    (-2**63, "0001-01-01T00:00:00Z"), (10**12, "9999-12-31T23:59:59Z")])
def test_later_ends_at_last_moment(seconds: int, moment: str) -> None:
    assert format_time(later(datetime(2026, 1, 1, tzinfo=UTC), seconds)) == moment
