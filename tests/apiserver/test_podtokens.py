"""The token of a pod: what its file keeps, and when the kubelet renews it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kubepy.apiserver.podtokens import PodToken

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


def token(seconds: int, *, is_renewed: bool = True) -> PodToken:
    return PodToken(
        namespace="shop",
        account="robot",
        audience="vault",
        seconds=seconds,
        pod={"name": "web", "uid": "1"},
        node={"name": "node-1", "uid": "2"},
        issued=int(START.timestamp()),
        is_renewed=is_renewed,
    )


def age(issued: int) -> float:
    return issued - START.timestamp()


def test_token_can_be_read_again() -> None:
    original = token(3607, is_renewed=False)
    assert PodToken.from_bytes(original.to_bytes()) == original


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"colour": "red"}', b"a.b.c"])
def test_what_is_no_token_cannot_be_read(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of json, or of its own
        PodToken.from_bytes(content)


# 80 % of the life, and then until the kubelet's next look, which comes every minute
@pytest.mark.parametrize(("seconds", "renewed"), [(600, 540), (3600, 2940), (3607, 2940)])
def test_token_is_renewed_after_most_of_its_life(seconds: int, renewed: int) -> None:
    last = START + timedelta(seconds=renewed) - SECOND
    assert age(token(seconds).last_issued(last)) == 0
    assert age(token(seconds).last_issued(last + SECOND)) == renewed
    assert age(token(seconds).last_issued(START + DAY)) > DAY.total_seconds() - renewed


def test_token_of_a_long_life_is_renewed_after_a_day() -> None:
    year = 365 * 24 * 3600
    assert age(token(year).last_issued(START + DAY)) == 0
    assert age(token(year).last_issued(START + DAY + 60 * SECOND)) == 24 * 3600 + 60


def test_token_that_nobody_renews_stays() -> None:
    assert age(token(600, is_renewed=False).last_issued(START + 365 * DAY)) == 0


def test_token_was_issued_at_its_beginning_where_time_went_back() -> None:
    assert age(token(600).last_issued(START - DAY)) == 0
