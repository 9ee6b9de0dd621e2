"""Cron schedules: ``*/5 * * * *``, ``@daily``, ``@every 1h30m`` (upstream uses ``robfig/cron``'s
standard parser)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from kubepy.api.clock import later
from kubepy.api.values.gonumbers import NumberError, atoi
from kubepy.quoting import printable, quote

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
UNIT_SECONDS = {
    "h": 3600,
    "m": 60,
    "s": 1,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ns": 1e-9,
}
YEARS_AHEAD = 5  # a schedule without a due time in these years is never due
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)")


class CronError(ValueError):
    """A schedule that cannot be read, in upstream's words."""


class _Field(NamedTuple):
    low: int
    high: int
    names: dict[str, int]


_FIELDS = (
    _Field(0, 59, {}),
    _Field(0, 23, {}),
    _Field(1, 31, {}),
    _Field(1, 12, {name: number for number, name in enumerate(MONTHS, 1)}),
    _Field(0, 6, {name: number for number, name in enumerate(DAYS)}),
)


class Schedule(NamedTuple):
    """The minutes, hours, days of the month, months and days of the week (Sunday is 0) at which a
    job is due.

    A field ``*`` has all values, and sets ``any_day`` or ``any_weekday``. ``every`` is the text of
    an ``@every`` schedule, whose fields are empty. ``zone`` is the time zone in the schedule's own
    text, "" without one.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool = False
    any_weekday: bool = False
    every: str = ""
    zone: str = ""

    def next_after(self, moment: datetime, zone: tzinfo = UTC) -> datetime | None:
        """Return the first time after ``moment`` at which a job is due; None if there is none
        within some years.

        Times are those of clocks in ``zone``, unless the schedule names its own. Hours that clocks
        skip are skipped, hours that they repeat count twice.
        """
        if self.every:
            parts = re.findall(r"([\d.]+)([a-zµμ]+)", self.every)
            seconds = sum(float(number) * UNIT_SECONDS[unit] for number, unit in parts)
            seconds = -seconds if self.every.startswith("-") else seconds
            return later(moment.replace(microsecond=0), max(int(seconds), 1))

        if self.zone not in ("", "Local"):
            from zoneinfo import ZoneInfo

            zone = ZoneInfo(self.zone)

        local = (moment + timedelta(seconds=1)).replace(microsecond=0).astimezone(zone)
        last_year = local.year + YEARS_AHEAD
        while local.year <= last_year:
            day = local.day in self.days
            weekday = local.isoweekday() % 7 in self.weekdays
            # If day of the month and weekday are both given, either suffices.
            is_day = day and weekday if self.any_day or self.any_weekday else day or weekday
            if local.month not in self.months or not is_day:
                midnight = (local + timedelta(days=1)).replace(hour=0, minute=0, second=0, fold=0)
                local = _later(midnight, timedelta(0))  # clocks may skip midnight
            elif local.hour not in self.hours or local.minute not in self.minutes or local.second:
                later_minutes = [minute for minute in self.minutes if minute > local.minute]
                minute = min(later_minutes, default=60) if local.hour in self.hours else 60
                found = _later(local.replace(second=0), timedelta(minutes=minute - local.minute))
                is_same_offset = (
                    found.utcoffset() == local.utcoffset()
                )  # else clocks change on the way
                if is_same_offset:
                    local = found
                else:
                    local = _later(local.replace(second=0), timedelta(minutes=1))
            else:
                return local.astimezone(UTC)

        return None


def _later(local: datetime, delta: timedelta) -> datetime:
    """Return the time in the same zone after ``delta`` of real time."""
    return (local.astimezone(UTC) + delta).astimezone(local.tzinfo)


def parse(text: str) -> Schedule:
    """Read a schedule. Raises CronError."""
    if not text:
        raise CronError("empty spec string")
    zone = ""
    if text.startswith(("TZ=", "CRON_TZ=")):
        setting, _, text = text.partition(" ")
        if not text:
            raise CronError("invalid schedule format: runtime error: slice bounds out of range")
        zone = setting.partition("=")[2]
        text = text.strip()
        if not is_time_zone(zone):
            raise CronError(printable(f"provided bad location {zone}: unknown time zone {zone}"))

    if text.startswith("@"):
        return _parse_descriptor(text)._replace(zone=zone)
    words = text.split()
    if len(words) != len(_FIELDS):
        raise CronError(
            f"expected exactly {len(_FIELDS)} fields, found {len(words)}: [{' '.join(words)}]"
        )

    minutes, hours, days, months, weekdays = (
        frozenset(value for part in word.split(",") if part for value in _parse_range(part, field))
        for word, field in zip(words, _FIELDS, strict=True)
    )
    return Schedule(
        minutes, hours, days, months, weekdays, _is_any(words[2]), _is_any(words[4]), zone=zone
    )


def _is_any(word: str) -> bool:
    """Return whether one of the ranges has all values; one with steps has not."""
    return any(
        part.split("/")[0] in ("*", "?") and part.partition("/")[2] in ("", "1")
        for part in word.split(",")
    )


def is_time_zone(name: str) -> bool:
    """Return whether a name is in the IANA database, or UTC."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return name in ("UTC", "Local")
    return True


def _parse_descriptor(text: str) -> Schedule:
    if text in DESCRIPTORS:
        return parse(DESCRIPTORS[text])
    if not text.startswith("@every "):
        raise CronError(f"unrecognized descriptor: {text}")
    duration = text.removeprefix("@every ")
    if not _DURATION.fullmatch(duration):
        raise CronError(
            f"failed to parse duration {text}: time: invalid duration {quote(duration)}"
        )
    nothing: frozenset[int] = frozenset()
    return Schedule(nothing, nothing, nothing, nothing, nothing, every=duration)


def _parse_range(text: str, field: _Field) -> range:
    """Read ``*``, ``5``, ``1-5``, and any of them with steps: ``1-5/2``."""
    bounds, *steps = text.split("/")
    first, *rest = bounds.split("-")
    if first in ("*", "?"):
        low = field.low
        high = field.high
    else:
        low = high = _parse_number(first, field)
        if len(rest) > 1:
            raise CronError(f"too many hyphens: {text}")
        if rest:
            high = _parse_number(rest[0], field)

    if len(steps) > 1:
        raise CronError(f"too many slashes: {text}")
    step = _parse_int(steps[0]) if steps else 1
    if steps and not rest:
        high = field.high  # 5/10 is 5-59/10
    if low < field.low:
        raise CronError(f"beginning of range ({low}) below minimum ({field.low}): {text}")
    if high > field.high:
        raise CronError(f"end of range ({high}) above maximum ({field.high}): {text}")
    if low > high:
        raise CronError(f"beginning of range ({low}) beyond end of range ({high}): {text}")
    if step == 0:
        raise CronError(f"step of range should be a positive number: {text}")
    return range(low, high + 1, step)


def _parse_number(text: str, field: _Field) -> int:
    number = field.names.get(text.lower())
    if number is None:
        return _parse_int(text)
    return number


def _parse_int(text: str) -> int:
    try:
        number = atoi(text)
    except NumberError as error:
        raise CronError(f"failed to parse int from {text}: {error}") from None
    if number < 0:
        raise CronError(f"negative number ({number}) not allowed: {text}")
    return number
