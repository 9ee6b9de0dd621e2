"""The time that a Job waits before it replaces pods that failed (``backoff_utils.go``). Pure
functions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import later, parse_time
from kubepy.api.objects.pods import get_condition, is_restartable_init_container

if TYPE_CHECKING:
    from kubepy.api.typed import Pod

FIRST_DELAY = timedelta(seconds=10)
MAX_DELAY = timedelta(minutes=10)


class BackoffRecord(NamedTuple):
    """The number of pods that failed since the last one that succeeded, and the time of the last
    failure."""

    failures: int = 0
    last_failure: datetime | None = None


def new_backoff_record(
    before: BackoffRecord, succeeded: Iterable[Pod], failed: Iterable[Pod]
) -> BackoffRecord:
    """Return the record with pods that have ended since (``newBackoffRecord``)."""
    successes = sorted(map(finish_time, succeeded))
    failures = sorted(map(finish_time, failed))
    if successes:
        before = BackoffRecord()
        failures = [time for time in failures if time > successes[-1]]
    if failures:
        return BackoffRecord(before.failures + len(failures), failures[-1])
    return before


def remaining_delay(record: BackoffRecord, now: datetime) -> float:
    """Return the seconds until the next pod may be made: 10 s after the first failure, doubling up
    to 10 minutes."""
    if not record.failures or record.last_failure is None:
        return 0.0
    delay: timedelta = min(FIRST_DELAY * 2 ** min(record.failures - 1, 10), MAX_DELAY)
    return max((record.last_failure + delay - now).total_seconds(), 0.0)


def finish_time(pod: Pod) -> datetime:
    """Return the time when the pod ended, as far as it tells (``getFinishedTime``)."""
    metadata = pod["metadata"]
    ready = get_condition(pod, "Ready")
    finished = _containers_finish_time(pod)
    if finished is not None:
        return finished
    if ready is not None and ready["status"] == "False" and ready.get("lastTransitionTime"):
        return parse_time(ready["lastTransitionTime"])
    if metadata.get("deletionTimestamp"):
        return later(
            parse_time(metadata["deletionTimestamp"]),
            -(metadata.get("deletionGracePeriodSeconds") or 0),
        )
    return parse_time(metadata["creationTimestamp"])


def _containers_finish_time(pod: Pod) -> datetime | None:
    """Return the time when the last container ended, sidecars among them; None while one runs."""
    status = pod.get("status") or {}
    sidecars = {
        container["name"]
        for container in pod["spec"].get("initContainers") or ()
        if is_restartable_init_container(container)
    }
    statuses = [
        *(status.get("containerStatuses") or []),
        *(
            container
            for container in status.get("initContainerStatuses") or []
            if container["name"] in sidecars
        ),
    ]
    times = [
        ((container.get("state") or {}).get("terminated") or {}).get("finishedAt", "")
        for container in statuses
    ]
    if times and all(times):
        return max(map(parse_time, times))
    return None
