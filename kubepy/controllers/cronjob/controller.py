"""The CronJob controller's handlers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubepy.api.meta import Object, controller_of, is_controlled_by, uid_of
from kubepy.api.values.cron import CronError
from kubepy.controllers.cronjob.schedule import read_times, seconds_until_next
from kubepy.controllers.cronjob.sync import CRON_JOBS, JOBS, CronJobSync
from kubepy.controllers.ownership import Ownership
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent


class CronJobController:
    name = "cronjob-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._clock = context.clock
        self._recorder = Recorder(context.client, self.name)
        self.queue = context.new_queue()
        self._owners = Ownership(context.informers, CRON_JOBS, "CronJob", self.queue)
        self._clocks: dict[str, list[str | None]] = {}  # uid → schedule and time zone as they were seen last

    def remember(self) -> Any:
        return dict(sorted(self._clocks.items()))

    def recall(self, memory: Any) -> None:
        self._clocks = {**memory, **self._clocks}

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {CRON_JOBS: self._cron_job_changed, JOBS: self._job_changed}

    def _cron_job_changed(self, event: WatchEvent) -> None:
        """A schedule that changed brings no start before its next one; all else is looked at now."""
        if event.new is None:
            self._clocks.pop(uid_of(event.old or {"metadata": {}}), None)
            self.queue.cancel(event.key)
            return
        before = self._clocks.get(uid_of(event.new))
        clocks = self._clocks[uid_of(event.new)] = _clocks(event.new)
        if before is not None and before != clocks:
            self._put_off(event.key, event.new)
        else:
            self.queue.add(event.key)

    def _put_off(self, key: Key, cron_job: Object) -> None:
        try:
            times = read_times(cron_job)
        except CronError:
            schedule = cron_job["spec"]["schedule"]
            self._recorder.event(cron_job, "Warning", "UnParseableCronJobSchedule",
                                 f"unparseable schedule for cronjob: {schedule}")
        else:
            self.queue.add_after(key, seconds_until_next(cron_job, times, self._clock.now()))

    def _job_changed(self, event: WatchEvent) -> None:
        """A Job wakes the CronJob that controls it; one without a controller is nobody's."""
        old, new = event.old, event.new
        if old is not None and (new is None or controller_of(old) != controller_of(new)):
            self._owners.wake(self._owners.owner_of(old))
        self._owners.wake(self._owners.owner_of(new))

    # --- sync

    def sync(self, key: Key) -> None:
        cron_job = self._informers.get(*key)
        if cron_job is None:
            return
        self.queue.cancel(key)  # a start, which this sync sets anew unless there is none
        sync = CronJobSync(self._client, self._recorder, cron_job, self._jobs_of(cron_job), self._clock.now())
        seconds = sync.run()
        if seconds is not None:
            self.queue.add_after(key, seconds)

    def _jobs_of(self, cron_job: Object) -> list[Object]:
        keys = self._informers.dependents(uid_of(cron_job), JOBS)
        found = (self._informers.get(*key) for key in keys)
        return [job for job in found if job is not None and is_controlled_by(job, cron_job)]


def _clocks(cron_job: Object) -> list[str | None]:
    return [cron_job["spec"]["schedule"], cron_job["spec"].get("timeZone")]
