"""What of a CronJob's schedule is due, and when to look again (``cronjob/utils.go``). Pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from kubepy.api.clock import later, parse_time
from kubepy.api.meta import Object
from kubepy.api.values import cron

MANY_MISSED = 100
CLOCK_SKEW = timedelta(milliseconds=100)


class ScheduleError(ValueError):
    """A schedule that can be read but makes no sense."""


class Times(NamedTuple):
    """A schedule with the clocks that it goes by."""

    schedule: cron.Schedule
    zone: tzinfo

    def after(self, moment: datetime) -> datetime | None:
        return self.schedule.next_after(moment, self.zone)


class Latest(NamedTuple):
    """``since``: from when on starts count. ``due``: the latest of them that is not in the future. ``missed``: about
    how many there were, 0 if there was at most one."""

    since: datetime
    due: datetime | None = None
    missed: int = 0


def read_times(cron_job: Object) -> Times:
    """Raises CronError."""
    return Times(cron.parse(cron_job["spec"]["schedule"]), zone_of(cron_job))


def zone_of(cron_job: Object) -> tzinfo:
    """The zone of ``spec.timeZone``, else UTC."""
    from zoneinfo import ZoneInfo

    name = cron_job["spec"].get("timeZone")
    return ZoneInfo(name) if name and name != "Local" and cron.is_time_zone(name) else UTC


def latest_start(cron_job: Object, times: Times, now: datetime, *, heed_deadline: bool) -> Latest:
    """The latest start that is due (``mostRecentScheduleTime``). Raises ScheduleError."""
    since = _counted_from(cron_job, now, heed_deadline)
    first = times.after(since)
    second = times.after(first) if first is not None else None
    if first is None or second is None:
        raise ScheduleError("time difference between two schedules is less than 1 second")
    if now < first:
        return Latest(since)
    if now < second:
        return Latest(since, first)
    interval = round((second - first).total_seconds())
    missed = int((now - first).total_seconds()) // interval + 1
    return Latest(since, _last_before(times, later(first, (missed - 2) * interval), now), missed)


def _counted_from(cron_job: Object, now: datetime, heed_deadline: bool) -> datetime:
    last = (cron_job.get("status") or {}).get("lastScheduleTime")
    since = parse_time(last or cron_job["metadata"]["creationTimestamp"])
    deadline = cron_job["spec"].get("startingDeadlineSeconds")
    return max(since, later(now, -deadline)) if heed_deadline and deadline is not None else since


def _last_before(times: Times, moment: datetime, now: datetime) -> datetime | None:
    """The last start after ``moment`` that is not in the future."""
    found = None
    upcoming = times.after(moment)
    while upcoming is not None and upcoming <= now:
        found, upcoming = upcoming, times.after(upcoming)
    return found


def seconds_until_next(cron_job: Object, times: Times, now: datetime) -> float:
    """Until it is worth looking again (``nextScheduleTimeDuration``): just after the next start."""
    try:
        latest = latest_start(cron_job, times, now, heed_deadline=False)
    except ScheduleError:
        latest = Latest(now, now)
    upcoming = times.after(latest.due or (now if latest.missed else latest.since))
    return ((upcoming or now + timedelta(days=366)) + CLOCK_SKEW - now).total_seconds()


def is_too_late(cron_job: Object, due: datetime, now: datetime) -> bool:
    deadline = cron_job["spec"].get("startingDeadlineSeconds")
    return deadline is not None and later(due, deadline) < now
