"""The clock, and identifiers made at random."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from kubepy.api.clock import Clock, Ids, format_micro_time, format_time, later


@pytest.mark.parametrize("seed", [None, 7, "lab"])
def test_uids_are_of_version_7_and_all_different(seed: int | str | None) -> None:
    ids = Ids(seed)
    uids = [uuid.UUID(ids.uid("pods", "default", "web", number=number)) for number in range(300)]
    assert len({*uids}) == len(uids)
    assert {(uid.version, uid.variant) for uid in uids} == {(7, uuid.RFC_4122)}


def test_uids_without_seed_sort_by_when_they_were_made() -> None:
    uids = [Ids().uid("pods", "default", "web", number=0) for _ in range(300)]
    assert uids == sorted(uids)


def test_seeded_draw_depends_on_seed_subject_and_number_alone() -> None:
    def draw(seed: int, *subject: str, number: int) -> tuple[str, str]:
        ids = Ids(seed)
        return ids.uid(*subject, number=number), ids.suffix(*subject, number=number)

    draws = [
        draw(7, "pods", "a", number=1),
        draw(8, "pods", "a", number=1),
        draw(7, "pods", "b", number=1),
        draw(7, "pods", "a", number=2),
    ]
    assert draws[0] == draw(7, "pods", "a", number=1)
    assert len({uid for uid, _ in draws}) == len({suffix for _, suffix in draws}) == 4


def test_seeded_suffix_differs_with_each_attempt() -> None:
    assert (
        len({Ids(7).suffix("pods", "a", "web-", number=1, attempt=attempt) for attempt in range(8)})
        == 8
    )


def test_seeded_uid_holds_milliseconds_of_own_time_and_end_of_number() -> None:
    moment = datetime(2026, 1, 1, 0, 0, 0, 4_000, UTC)
    for number in (5, 2**19 + 5, 2**31 + 5):
        uid = uuid.UUID(Ids(7, Clock(moment)).uid("pods", "a", number=number)).int
        assert uid >> 80 == int(moment.timestamp() * 1000)
        assert (uid >> 64 & 0xFFF) << 8 | uid >> 54 & 0xFF == number % 2**20


def test_draws_are_the_same_with_every_python() -> None:
    ids = Ids("lab", Clock(datetime(2026, 1, 1, tzinfo=UTC)))
    assert ids.uid("pods", "default", "web", number=42) == "019b76da-a800-7000-8abc-26f601ebe3de"
    assert ids.suffix("pods", "default", "web-", number=42) == "7tvrh"
    assert ids.fraction("Pod", "web", unseeded="") == 0.7689712014226263


def test_times_have_four_digits_of_year() -> None:
    moment = datetime(1, 2, 3, 4, 5, 6, 7, UTC)
    assert (format_time(moment), format_micro_time(moment)) == (
        "0001-02-03T04:05:06Z",
        "0001-02-03T04:05:06.000007Z",
    )


@pytest.mark.parametrize(
    ("seconds", "moment"),
    [
        (60, "2026-01-01T00:01:00Z"),
        (-60, "2025-12-31T23:59:00Z"),
        (2**63 - 1, "9999-12-31T23:59:59Z"),
        (-(2**63), "0001-01-01T00:00:00Z"),
        (10**12, "9999-12-31T23:59:59Z"),
    ],
)
def test_later_ends_at_last_moment(seconds: int, moment: str) -> None:
    assert format_time(later(datetime(2026, 1, 1, tzinfo=UTC), seconds)) == moment
