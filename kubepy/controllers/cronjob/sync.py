"""One look at one CronJob (``syncCronJob`` of ``pkg/controller/cronjob/cronjob_controllerv2.go``)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubepy.api.clock import format_time, parse_time
from kubepy.api.errors import AlreadyExists, NotFound, Status
from kubepy.api.meta import Object, is_being_deleted, is_controlled_by, name_of, namespace_of, object_reference, uid_of
from kubepy.api.values.cron import CronError, is_time_zone
from kubepy.apiserver.client import Client, DeleteOptions
from kubepy.controllers.cronjob.jobs import COMPLETE, beyond_limits, job_name, new_job, outcome
from kubepy.controllers.cronjob.schedule import (
    MANY_MISSED,
    ScheduleError,
    Times,
    is_too_late,
    latest_start,
    read_times,
    seconds_until_next,
)
from kubepy.controllers.pod_control import is_namespace_terminating
from kubepy.runtime.events import Recorder

CRON_JOBS, JOBS = "cronjobs.batch", "jobs.batch"
DOCUMENTED_AT = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"


class CouldNotReplaceError(Exception):
    """A Job that still runs could not be deleted for its successor."""


class CronJobSync:
    """``jobs``: those that the CronJob controls. ``status`` is what is known by now, written once at the end."""

    def __init__(self, client: Client, recorder: Recorder, cron_job: Object, jobs: list[Object], now: datetime) -> None:
        self.client = client
        self.recorder = recorder
        self.cron_job = cron_job
        self.jobs = jobs
        self.now = now
        self.status: Object = dict(cron_job.get("status") or {})

    def run(self) -> float | None:
        """The seconds after which to look again, None if only a change makes that worthwhile. Raises Status."""
        for job in beyond_limits(self.cron_job, self.jobs):
            self.delete(job)
        try:
            return self.look()
        finally:
            self.write()

    def look(self) -> float | None:
        for job in self.jobs:
            self.look_at(job)
        self.drop_missing()
        if is_being_deleted(self.cron_job) or not self.has_known_zone() or self.cron_job["spec"].get("suspend"):
            return None
        times = self.read_times()
        if times is None:
            return None
        try:
            due = self.find_due(times)
        except ScheduleError as error:
            schedule = self.cron_job["spec"]["schedule"]
            self.say("Warning", "InvalidSchedule", f"invalid schedule: {schedule} : {error}")
            return None
        if due is not None and self.may_start(due):
            self.make_way()
            self.start(due)
        return seconds_until_next(self.known(), times, self.now)

    def known(self) -> Object:
        """The CronJob with the status as it is known by now."""
        return {**self.cron_job, "status": self.status}

    def say(self, kind: str, reason: str, message: str) -> None:
        self.recorder.event(self.cron_job, kind, reason, message)

    # --- the Jobs there are

    @property
    def active(self) -> list[Object]:
        return self.status.get("active") or []

    def is_active(self, job: Object) -> bool:
        return any(one.get("uid") == uid_of(job) for one in self.active)

    def look_at(self, job: Object) -> None:
        ended = outcome(job)
        if not ended and not self.is_active(job):
            message = f"Saw a job that the controller did not create or forgot: {name_of(job)}"
            self.say("Warning", "UnexpectedJob", message)
        elif ended and self.is_active(job):
            self.forget(uid_of(job))
            self.say("Normal", "SawCompletedJob", f"Saw completed job: {name_of(job)}, condition: {ended}")
        elif ended == COMPLETE:
            self.note_success(job)

    def note_success(self, job: Object) -> None:
        completed, last = job["status"].get("completionTime"), self.status.get("lastSuccessfulTime")
        if completed and (last is None or parse_time(completed) > parse_time(last)):
            self.status["lastSuccessfulTime"] = completed

    def drop_missing(self) -> None:
        there = {uid_of(job) for job in self.jobs}
        for one in self.active:
            if one.get("uid") not in there and self.find(one["name"]) is None:
                self.say("Normal", "MissingJob", f"Active job went missing: {one['name']}")
                self.forget(one.get("uid", ""))

    def forget(self, uid: str) -> None:
        left = [one for one in self.active if one.get("uid") != uid]
        self.status.pop("active", None)
        if left:
            self.status["active"] = left

    def find(self, name: str) -> Object | None:
        try:
            return self.client.get(JOBS, name, namespace=namespace_of(self.cron_job))
        except NotFound:
            return None

    def delete(self, job: Object) -> bool:
        """Delete a Job with its pods; whether that went well."""
        try:
            self.client.delete(JOBS, name_of(job), namespace=namespace_of(job),
                               options=DeleteOptions(propagation_policy="Background"))
        except Status as error:
            self.say("Warning", "FailedDelete", f"Deleted job: {error}")
            return False
        self.forget(uid_of(job))
        self.say("Normal", "SuccessfulDelete", f"Deleted job {name_of(job)}")
        return True

    # --- the schedule

    def has_known_zone(self) -> bool:
        name = self.cron_job["spec"].get("timeZone")
        if name is None or is_time_zone(name):
            return True
        self.say("Warning", "UnknownTimeZone", f'invalid timeZone: "{name}": unknown time zone {name}')
        return False

    def read_times(self) -> Times | None:
        schedule = self.cron_job["spec"]["schedule"]
        if "TZ" in schedule:
            self.say("Warning", "UnsupportedSchedule", f'CRON_TZ or TZ used in schedule "{schedule}" is not officially '
                                                       f"supported, see {DOCUMENTED_AT} for more details")
        try:
            return read_times(self.cron_job)
        except CronError as error:
            self.say("Warning", "UnparseableSchedule", f'unparseable schedule: "{schedule}" : {error}')
            return None

    def find_due(self, times: Times) -> datetime | None:
        latest = latest_start(self.known(), times, self.now, heed_deadline=True)
        if latest.due is not None and latest.missed > MANY_MISSED:
            self.say("Warning", "TooManyMissedTimes", "too many missed start times. Set or decrease "
                                                      ".spec.startingDeadlineSeconds or check clock skew")
        return latest.due

    def may_start(self, due: datetime) -> bool:
        if is_too_late(self.cron_job, due, self.now):
            time = due.strftime("%a, %d %b %Y %H:%M:%S +0000")
            self.say("Warning", "MissSchedule", f"Missed scheduled time to start a job: {time}")
            return False
        name = job_name(self.cron_job, due)
        if any(one["name"] == name for one in self.active):
            return False
        if self.policy() == "Forbid" and self.active:
            self.say("Normal", "JobAlreadyActive", "Not starting job because prior execution is running and "
                                                   "concurrency policy is Forbid")
            return False
        return True

    def policy(self) -> Any:
        return self.cron_job["spec"].get("concurrencyPolicy")

    # --- starting

    def make_way(self) -> None:
        """Replace what still runs, if the policy is that. Raises Status, CouldNotReplaceError."""
        for one in self.active if self.policy() == "Replace" else ():
            try:
                job = self.client.get(JOBS, one["name"], namespace=namespace_of(self.cron_job))
            except Status as error:
                self.say("Warning", "FailedGet", f"Get job: {error}")
                raise
            if not self.delete(job):
                raise CouldNotReplaceError(f"could not replace job {namespace_of(job)}/{name_of(job)}")

    def start(self, due: datetime) -> None:
        """Make the Job and note it. Raises Status."""
        wanted = new_job(self.cron_job, due)
        try:
            job = self.client.create(JOBS, wanted, namespace=namespace_of(self.cron_job))
        except Status as error:
            found = self.find(name_of(wanted)) if isinstance(error, AlreadyExists) else None
            if found is None:
                if not is_namespace_terminating(error):
                    self.say("Warning", "FailedCreate", f"Error creating job: {error}")
                raise
            if not is_controlled_by(found, self.cron_job) or self.is_active(found):
                return
            job = found
        else:
            self.say("Normal", "SuccessfulCreate", f"Created job {name_of(job)}")
        self.status["active"] = [*self.active, object_reference(job)]
        self.status["lastScheduleTime"] = format_time(due)

    # --- writing

    def write(self) -> None:
        """Raises Status."""
        if self.status != (self.cron_job.get("status") or {}):
            self.client.update(CRON_JOBS, self.known(), subresource="status", namespace=namespace_of(self.cron_job))
