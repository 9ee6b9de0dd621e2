"""Cron schedules: ``*/5 * * * *``, ``@daily``, ``@every 1h30m`` (upstream uses ``robfig/cron``'s standard parser)."""

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
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}
UNIT_SECONDS = {"h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
YEARS_AHEAD = 5  # a schedule that is not due within these is never due
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)")


class CronError(ValueError):
    """A schedule that cannot be read, in upstream's words."""


class _Field(NamedTuple):
    low: int
    high: int
    names: dict[str, int]


_FIELDS = (
    _Field(0, 59, {}), _Field(0, 23, {}), _Field(1, 31, {}),
    _Field(1, 12, {name: number for number, name in enumerate(MONTHS, 1)}),
    _Field(0, 6, {name: number for number, name in enumerate(DAYS)}),
)


class Schedule(NamedTuple):
    """The minutes, hours, days of the month, months and days of the week (Sunday is 0) at which it is due.

    Of a field that is ``*`` all values are there, and ``any_day`` or ``any_weekday`` tells so. ``every`` is the text of
    an ``@every`` schedule, whose fields are empty. ``zone``: the time zone that the schedule itself names.
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
        """The first time after ``moment`` at which it is due, counted on clocks of ``zone`` unless it names its own;
        None if there is none in sight. Hours that clocks skip are skipped, those that they repeat count twice."""
        if self.every:
            return later(moment.replace(microsecond=0), self._interval())
        local = (moment + timedelta(seconds=1)).replace(microsecond=0).astimezone(_zone(self.zone) or zone)
        last_year = local.year + YEARS_AHEAD
        while local.year <= last_year:
            if local.month not in self.months or not self._is_day(local):
                local = _next_day(local)
            elif local.hour not in self.hours:
                local = _later(local.replace(minute=0, second=0), timedelta(hours=1))
            elif local.minute not in self.minutes or local.second:
                local = _later(local.replace(second=0), timedelta(minutes=1))
            else:
                return local.astimezone(UTC)
        return None

    def _is_day(self, local: datetime) -> bool:
        """Where both the day of the month and the weekday are restricted, either is enough."""
        day, weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return day and weekday if self.any_day or self.any_weekday else day or weekday

    def _interval(self) -> int:
        """Whole seconds, at least one."""
        parts = re.findall(r"([\d.]+)([a-zµμ]+)", self.every)
        seconds = sum(float(number) * UNIT_SECONDS[unit] for number, unit in parts)
        return max(int(-seconds if self.every.startswith("-") else seconds), 1)


def _zone(name: str) -> tzinfo | None:
    from zoneinfo import ZoneInfo

    if name in ("", "Local"):
        return None
    return ZoneInfo(name)


def _later(local: datetime, delta: timedelta) -> datetime:
    """A time of the same zone, ``delta`` of real time later."""
    return (local.astimezone(UTC) + delta).astimezone(local.tzinfo)


def _next_day(local: datetime) -> datetime:
    """Midnight, or if clocks skip that, when the day begins."""
    midnight = (local + timedelta(days=1)).replace(hour=0, minute=0, second=0, fold=0)
    return _later(midnight, timedelta(0))


def parse(text: str) -> Schedule:
    """Raises CronError."""
    if not text:
        raise CronError("empty spec string")
    zone, text = _split_time_zone(text)
    if text.startswith("@"):
        return _parse_descriptor(text)._replace(zone=zone)
    words = text.split()
    if len(words) != len(_FIELDS):
        raise CronError(f"expected exactly {len(_FIELDS)} fields, found {len(words)}: [{' '.join(words)}]")
    minutes, hours, days, months, weekdays = (
        frozenset(_parse_field(word, field)) for word, field in zip(words, _FIELDS, strict=True))
    return Schedule(minutes, hours, days, months, weekdays, _is_any(words[2]), _is_any(words[4]), zone=zone)


def _is_any(word: str) -> bool:
    """Whether one of the ranges is all there is; one with steps is not."""
    return any(part.split("/")[0] in ("*", "?") and part.partition("/")[2] in ("", "1") for part in word.split(","))


def _split_time_zone(text: str) -> tuple[str, str]:
    """The name of the zone, "" for none, and the schedule without it."""
    if not text.startswith(("TZ=", "CRON_TZ=")):
        return "", text
    zone, _, rest = text.partition(" ")
    if not rest:
        raise CronError("invalid schedule format: runtime error: slice bounds out of range")
    name = zone.partition("=")[2]
    if not is_time_zone(name):
        raise CronError(printable(f"provided bad location {name}: unknown time zone {name}"))
    return name, rest.strip()


def is_time_zone(name: str) -> bool:
    """A name of the IANA database, or UTC."""
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
        raise CronError(f"failed to parse duration {text}: time: invalid duration {quote(duration)}")
    nothing: frozenset[int] = frozenset()
    return Schedule(nothing, nothing, nothing, nothing, nothing, every=duration)


def _parse_field(text: str, field: _Field) -> list[int]:
    return [value for part in text.split(",") if part for value in _parse_range(part, field)]


def _parse_range(text: str, field: _Field) -> range:
    bounds, *steps = text.split("/")
    low, high = _parse_bounds(bounds, text, field)
    if len(steps) > 1:
        raise CronError(f"too many slashes: {text}")
    step = _parse_int(steps[0]) if steps else 1
    if steps and "-" not in bounds:
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


def _parse_bounds(bounds: str, text: str, field: _Field) -> tuple[int, int]:
    parts = bounds.split("-")
    if parts[0] in ("*", "?"):
        return field.low, field.high
    low = _parse_number(parts[0], field)
    if len(parts) > 2:
        raise CronError(f"too many hyphens: {text}")
    return low, _parse_number(parts[1], field) if len(parts) == 2 else low


def _parse_number(text: str, field: _Field) -> int:
    named = field.names.get(text.lower())
    return _parse_int(text) if named is None else named


def _parse_int(text: str) -> int:
    try:
        number = atoi(text)
    except NumberError as error:
        raise CronError(f"failed to parse int from {text}: {error}") from None
    if number < 0:
        raise CronError(f"negative number ({number}) not allowed: {text}")
    return number
