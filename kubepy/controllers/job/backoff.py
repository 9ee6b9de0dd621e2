"""How long a Job waits before it replaces pods that failed (``backoff_utils.go``). Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from kubepy.api.clock import later, parse_time
from kubepy.api.meta import Object
from kubepy.api.objects.pods import get_condition, is_restartable_init_container

FIRST_DELAY = timedelta(seconds=10)
MAX_DELAY = timedelta(minutes=10)


class Failures(NamedTuple):
    """How many pods failed since the last one that succeeded, and when the last of them did."""

    number: int = 0
    last: datetime | None = None


def with_finished(before: Failures, succeeded: Iterable[Object], failed: Iterable[Object]) -> Failures:
    """The failures with pods that have ended since (``newBackoffRecord``)."""
    successes = sorted(map(finish_time, succeeded))
    failures = sorted(map(finish_time, failed))
    if successes:
        before = Failures()
        failures = [time for time in failures if time > successes[-1]]
    return Failures(before.number + len(failures), failures[-1]) if failures else before


def remaining_delay(failures: Failures, now: datetime) -> float:
    """Seconds until the next pod may be made: 10 s after the first failure, doubling up to 10 minutes."""
    if not failures.number or failures.last is None:
        return 0.0
    delay: timedelta = min(FIRST_DELAY * 2 ** min(failures.number - 1, 10), MAX_DELAY)
    return max((failures.last + delay - now).total_seconds(), 0.0)


def finish_time(pod: Object) -> datetime:
    """When the pod ended, as far as it tells (``getFinishedTime``)."""
    metadata, ready = pod["metadata"], get_condition(pod, "Ready")
    if (from_containers := _containers_finished(pod)) is not None:
        return from_containers
    if ready is not None and ready["status"] == "False" and ready.get("lastTransitionTime"):
        return parse_time(ready["lastTransitionTime"])
    if metadata.get("deletionTimestamp"):
        return later(parse_time(metadata["deletionTimestamp"]), -(metadata.get("deletionGracePeriodSeconds") or 0))
    return parse_time(metadata["creationTimestamp"])


def _containers_finished(pod: Object) -> datetime | None:
    """When the last container ended, sidecars among them; None while one runs."""
    status = pod.get("status") or {}
    sidecars = {one["name"] for one in pod["spec"].get("initContainers") or () if is_restartable_init_container(one)}
    ended = [*(status.get("containerStatuses") or []),
             *(one for one in status.get("initContainerStatuses") or [] if one["name"] in sidecars)]
    times = [(one.get("state", {}).get("terminated") or {}).get("finishedAt", "") for one in ended]
    return max(map(parse_time, times)) if times and all(times) else None
