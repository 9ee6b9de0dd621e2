"""Parsing of cron schedules, and their next times (``robfig/cron``)."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from kubepy.api.values.cron import CronError, is_time_zone, parse


def test_schedule_fields_are_sets_of_numbers() -> None:
    schedule = parse("*/20 8-10,23 1 jan-mar,12 mon")
    assert [sorted(field) for field in schedule[:5]] == [
        [0, 20, 40],
        [8, 9, 10, 23],
        [1],
        [1, 2, 3, 12],
        [1],
    ]
    assert (schedule.any_day, schedule.any_weekday, schedule.every) == (False, False, "")


def test_schedule_with_star_is_due_any_day() -> None:
    schedule = parse("0 0 * * ?")
    assert (schedule.any_day, schedule.any_weekday) == (True, True)
    assert schedule.days == frozenset(range(1, 32))


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)
def test_descriptor_expands_to_fields(name: str, fields: str) -> None:
    assert parse(name) == parse(fields)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty spec string"),
        ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
        ("61 * * * *", "end of range (61) above maximum (59): 61"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("@never", "unrecognized descriptor: @never"),
    ],
)
def test_unreadable_schedule_raises_upstreams_error(text: str, why: str) -> None:
    with pytest.raises(CronError) as caught:
        parse(text)
    assert str(caught.value) == why


def test_time_zone_is_valid_if_in_iana_database() -> None:
    assert [is_time_zone(name) for name in ("Europe/Berlin", "UTC", "Nowhere/Land")] == [
        True,
        True,
        False,
    ]


def after(text: str, moment: str, zone: str = "UTC") -> str:
    """Return the next three times at which a schedule is due, in the local time of the zone."""
    found, now = [], datetime.fromisoformat(moment).replace(tzinfo=ZoneInfo(zone))
    for _ in range(3):
        upcoming = parse(text).next_after(now, ZoneInfo(zone))
        if upcoming is None:
            break
        now = upcoming
        found.append(upcoming.astimezone(ZoneInfo(zone)).strftime("%m-%d %H:%M:%S"))
    return ", ".join(found)


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("*/20 * * * *", "11-20 10:20:00, 11-20 10:40:00, 11-20 11:00:00"),
        ("0 9-10 * * *", "11-21 09:00:00, 11-21 10:00:00, 11-22 09:00:00"),
        ("0 0 13 * 5", "11-27 00:00:00, 12-04 00:00:00, 12-11 00:00:00"),  # the 13th or a Friday
        ("0 0 13 * *", "12-13 00:00:00, 01-13 00:00:00, 02-13 00:00:00"),
        ("0 0 */2 * 5", "11-21 00:00:00, 11-23 00:00:00, 11-25 00:00:00"),  # steps restrict
        ("0 0 29 2 *", "02-29 00:00:00, 02-29 00:00:00, 02-29 00:00:00"),
        ("0 0 31 2 *", ""),
        ("@weekly", "11-22 00:00:00, 11-29 00:00:00, 12-06 00:00:00"),
        ("@every 90m", "11-20 11:31:30, 11-20 13:01:30, 11-20 14:31:30"),
        ("@every 10ms", "11-20 10:01:31, 11-20 10:01:32, 11-20 10:01:33"),
    ],
)
def test_next_after_returns_next_due_time(text: str, times: str) -> None:
    """Return the next due times after a Friday."""
    assert after(text, "2026-11-20T10:01:30") == times


def test_next_after_skips_skipped_hours_and_repeats_repeated_ones() -> None:
    assert after("30 2 * * *", "2026-03-28T12:00:00", "Europe/Berlin") == (
        "03-30 02:30:00, 03-31 02:30:00, 04-01 02:30:00"
    )
    assert after("30 2 * * *", "2026-10-24T12:00:00", "Europe/Berlin") == (
        "10-25 02:30:00, 10-25 02:30:00, 10-26 02:30:00"
    )


def test_schedule_time_zone_overrides_argument() -> None:
    assert after("CRON_TZ=Asia/Tokyo 0 9 * * *", "2026-11-20T10:00:00") == (
        "11-21 00:00:00, 11-22 00:00:00, 11-23 00:00:00"
    )


@pytest.mark.parametrize(
    ("moment", "due"),
    [
        ("2026-04-04T14:00:00+00:00", "2026-04-04T15:30:00+00:00"),  # 01:30 comes twice, 02:00 once
        ("2026-10-03T15:00:00+00:00", "2026-10-04T15:00:00+00:00"),  # 02:00 to 02:29 are skipped
    ],
)
def test_schedule_is_found_where_clocks_change_by_half_an_hour(moment: str, due: str) -> None:
    found = parse("0 2 * * *").next_after(
        datetime.fromisoformat(moment), ZoneInfo("Australia/Lord_Howe")
    )
    assert found == datetime.fromisoformat(due)
