"""Deletes Jobs that ended ``ttlSecondsAfterFinished`` ago (``pkg/controller/ttlafterfinished``)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from kubepy.api.clock import later, parse_time
from kubepy.api.errors import NotFound
from kubepy.api.meta import Object, is_being_deleted, uid_of
from kubepy.apiserver.request import DeleteOptions
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

JOBS = "jobs.batch"
SEEN_FOR = 1.0  # seconds that an ended Job stays at least, so that those who watch it see its end


class TTLAfterFinishedController:
    """Reconciles Jobs that have ended."""

    name = "ttl-after-finished-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._clock = context.clock
        self.queue = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {JOBS: self._job_changed}

    def _job_changed(self, event: WatchEvent) -> None:
        self.queue.cancel(
            event.key
        )  # the time of its deletion may be another now, or there is none any more
        expires = expires_at(event.new) if event.new is not None else None
        if expires is not None:
            now = self._clock.now()
            self.queue.add_at(
                event.key,
                expires if expires > now else later(now, SEEN_FOR),
                skippable=expires <= now,
            )

    def sync(self, key: Key) -> None:
        job = self._informers.get(*key)
        expires = expires_at(job) if job is not None else None
        if job is None or expires is None:
            return
        if expires > self._clock.now():
            self.queue.add_at(key, expires)
            return
        with suppress(NotFound):
            self._client.delete(
                JOBS,
                key.name,
                namespace=key.namespace,
                options=DeleteOptions(propagation_policy="Foreground", uid=uid_of(job)),
            )


def expires_at(job: Object) -> datetime | None:
    """Return when the Job is to be deleted; None without a TTL or an end time, or when it is being
    deleted already."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    if seconds is None or is_being_deleted(job):
        return None
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            ended = condition.get("lastTransitionTime")
            if ended:
                return later(parse_time(ended), seconds)
            return None
    return None
