"""The record of a pod of which only the status is known: after a ``git checkout``, in a copy, after
an import, or because nobody has looked into it so far.

What ran goes on, what waited goes on to wait: the record is such that the next look at the pod, at
the same moment, finds nothing to do. What rules say of the runs under way is for
``kubepy.kubelet.modelled.resuming``.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from kubepy.api.clock import parse_time
from kubepy.api.meta import is_being_deleted
from kubepy.api.objects.pods import get_condition
from kubepy.api.values.goformat import parse_duration
from kubepy.kubelet.modelled.records import ContainerRecord, PodRecord, RunEnd
from kubepy.kubelet.modelled.statuses import NEVER_STARTED
from kubepy.kubelet.obstacles import (
    CRASH_LOOP,
    CREATING,
    ERR_IMAGE_PULL,
    INITIALIZING,
    PULL_REASONS,
)
from kubepy.kubelet.reporting import READY_TO_START
from kubepy.kubelet.restarts import (
    LONGEST_BACKOFF,
    PULL_ERROR_SECONDS,
    next_backoff,
    pull_time,
)

if TYPE_CHECKING:
    from kubepy.api.typed import ContainerStateTerminated, ContainerStatus, Pod

BEGINNING = (CREATING, INITIALIZING, "")  # reasons to wait that follow from the pod as a whole
BACKOFF = re.compile(r"back-off (\S+) restarting")
SOON = timedelta(seconds=1)  # what is overdue happens then: a kubelet does not look all the time


def record_of_status(pod: Pod, now: datetime) -> PodRecord:
    """Return what a pod's status tells of its containers; a pod without one has not begun."""
    record = PodRecord(
        at=now,
        is_adopted=True,
        was_being_deleted=is_being_deleted(pod),
    )
    status = pod.get("status") or {}
    entries: list[ContainerStatus] = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
        *(status.get("ephemeralContainerStatuses") or ()),
    ]
    begin = _begin(
        pod,
        entries,
        now,
    )
    for entry in entries:
        record.containers[entry["name"]] = _container_record(
            entry,
            begin,
            now,
        )
    record.mounts_fail = bool(entries) and _lacks_sandbox(pod, record)
    return record


def _begin(pod: Pod, entries: list[ContainerStatus], now: datetime) -> datetime:
    """Return since when the container waits that is to start next: the last init container has
    ended, or else the kubelet has seen the pod."""
    started = (pod.get("status") or {}).get("startTime")
    begin = parse_time(started) if started else now
    for entry in entries:
        ended = (entry.get("state") or {}).get("terminated") or {}
        finished = ended.get("finishedAt")
        if finished:
            begin = max(begin, parse_time(finished))
    return min(begin, now)


def _lacks_sandbox(pod: Pod, record: PodRecord) -> bool:
    """Tell whether a kubelet has not got so far as to create containers: it waits for volumes."""
    condition = get_condition(pod, READY_TO_START)
    if condition is None or condition["status"] == "True":
        return False
    containers = record.containers.values()
    return not any(each.runs or each.reason not in BEGINNING for each in containers)


def _container_record(status: ContainerStatus, begin: datetime, now: datetime) -> ContainerRecord:
    state = status.get("state") or {}
    last = (status.get("lastState") or {}).get("terminated")
    record = ContainerRecord(status["name"], image=status.get("image", ""))
    restarts = status.get("restartCount", 0)
    if last:
        record.last = _ending(last, restarts)
    if "running" in state:
        record.started = parse_time(state["running"]["startedAt"])
        record.runs = restarts + 1
        record.has_started = bool(status.get("started"))
        record.is_ready = bool(status.get("ready"))
        _set_backoff_of_run(record, record.started)
    elif "terminated" in state:
        record.runs = restarts + 1
        record.ending = _ending(state["terminated"], record.runs)
        _set_backoff_of_run(record, record.ending.started or record.ending.finished)
    else:
        if last or restarts:
            record.runs = restarts + 1
        _set_waiting(
            record,
            status,
            begin,
            now,
        )
    return record


def _set_waiting(
    record: ContainerRecord, status: ContainerStatus, begin: datetime, now: datetime
) -> None:
    """Take over why a container waits and until when, so that its kubelet says it no second
    time."""
    waiting = (status.get("state") or {}).get("waiting") or {}
    reason = waiting.get("reason", "")
    if reason in BEGINNING:
        if record.last is not None:  # it starts again
            record.ending = record.last
            record.last = None
        return
    record.reason = reason
    record.message = waiting.get("message", "")
    if reason in PULL_REASONS:
        _set_pulls(
            record,
            begin,
            now,
        )
    elif reason == CRASH_LOOP:
        _set_crash_loop(record, now)
    else:
        record.is_pulled = True


def _set_pulls(record: ContainerRecord, begin: datetime, now: datetime) -> None:
    """Count the pulls that must have failed since a kubelet has begun to pull."""
    if record.last is not None:
        begin = max(begin, min(record.last.finished, now))
    pulls = 1
    while begin + timedelta(seconds=pull_time(pulls)) <= now:
        pulls += 1
    record.failed_pulls = pulls
    record.pulled_first = begin
    record.due = begin + timedelta(seconds=pull_time(pulls))
    if record.reason == ERR_IMAGE_PULL:
        record.due = min(record.due, now + timedelta(seconds=PULL_ERROR_SECONDS))


def _set_crash_loop(record: ContainerRecord, now: datetime) -> None:
    """Take the back-off from the message of a container that waits for its restart."""
    record.backoff = _named_backoff(record.message) or _longest_backoff(record.restarts)
    if record.last is None:
        record.due = now + timedelta(seconds=record.backoff)
        return
    record.backoff_set = record.last.started or record.last.finished
    due = record.last.finished + timedelta(seconds=record.backoff)
    record.due = max(due, now + SOON)


def _named_backoff(message: str) -> int:
    named = BACKOFF.match(message)
    if named is None:
        return 0
    try:
        return round(parse_duration(named[1]))
    except ValueError:
        return 0


def _longest_backoff(restarts: int) -> int:
    """Return the back-off after so many restarts without a long run between them, in seconds."""
    return next_backoff(
        max(restarts, 1),
        LONGEST_BACKOFF,
        0.0,
    )


def _set_backoff_of_run(record: ContainerRecord, started: datetime) -> None:
    """Work out how long the container will wait after this run: twice what it waited before it."""
    if record.restarts < 1:
        return
    waited = LONGEST_BACKOFF
    if record.last is not None:
        waited = round((started - record.last.finished).total_seconds())
    record.backoff_set = started
    record.backoff = next_backoff(
        record.restarts,
        waited,
        0.0,
    )


def _ending(terminated: ContainerStateTerminated, run: int) -> RunEnd:
    started = terminated.get("startedAt")
    finished = parse_time(terminated.get("finishedAt") or NEVER_STARTED)
    return RunEnd(
        exit_code=terminated.get("exitCode", 0),
        reason=terminated.get("reason", ""),
        finished=finished,
        started=parse_time(started) if started and started != NEVER_STARTED else None,
        message=terminated.get("message", ""),
        run=run,
    )
