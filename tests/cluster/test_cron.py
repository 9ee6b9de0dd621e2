"""How schedules are read (``robfig/cron``)."""

from __future__ import annotations

import pytest

from kubepy.cluster.values.cron import CronError, is_time_zone, parse


def test_the_fields_of_a_schedule_are_sets_of_numbers() -> None:
    schedule = parse("*/20 8-10,23 1 jan-mar,12 mon")
    assert [sorted(field) for field in schedule[:5]] == [
        [0, 20, 40], [8, 9, 10, 23], [1], [1, 2, 3, 12], [1]]
    assert (schedule.any_day, schedule.any_weekday, schedule.every) == (False, False, "")


def test_a_star_is_any_day() -> None:
    schedule = parse("0 0 * * ?")
    assert (schedule.any_day, schedule.any_weekday) == (True, True)
    assert schedule.days == frozenset(range(1, 32))


@pytest.mark.parametrize(("name", "fields"), [
    ("@yearly", "0 0 1 1 *"), ("@monthly", "0 0 1 * *"), ("@weekly", "0 0 * * 0"), ("@daily", "0 0 * * *"),
    ("@hourly", "0 * * * *")])
def test_a_descriptor_is_short_for_fields(name: str, fields: str) -> None:
    assert parse(name) == parse(fields)


@pytest.mark.parametrize(("text", "why"), [
    ("", "empty spec string"),
    ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
    ("61 * * * *", "end of range (61) above maximum (59): 61"),
    ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
    ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
    ("*/0 * * * *", "step of range should be a positive number: */0"),
    ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
    ("@never", "unrecognized descriptor: @never"),
])
def test_a_schedule_that_cannot_be_read_says_why(text: str, why: str) -> None:
    with pytest.raises(CronError) as caught:
        parse(text)
    assert str(caught.value) == why


def test_time_zones_are_those_of_the_database() -> None:
    assert [is_time_zone(name) for name in ("Europe/Berlin", "UTC", "Nowhere/Land")] == [True, True, False]
