"""The record of a pod of which only the status is known: after a ``git checkout``, in a copy, or
because nobody has looked into it so far.

What ran goes on: a program whose run has begun before now is run again from that moment on.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from kubepy.api.clock import parse_time
from kubepy.api.values.goformat import parse_duration
from kubepy.kubelet.modelled.records import ContainerRecord, PodRecord, RunEnd
from kubepy.kubelet.modelled.statuses import NEVER_STARTED
from kubepy.kubelet.restarts import LONGEST_BACKOFF

if TYPE_CHECKING:
    from datetime import datetime

    from kubepy.api.typed import ContainerStateTerminated, ContainerStatus, Pod

ERR_IMAGE_PULL, IMAGE_PULL_BACKOFF = "ErrImagePull", "ImagePullBackOff"
CRASH_LOOP = "CrashLoopBackOff"
# Reasons to wait that a kubelet reports with an event when they begin.
SAID_ONCE = (
    ERR_IMAGE_PULL,
    IMAGE_PULL_BACKOFF,
    CRASH_LOOP,
    "CreateContainerConfigError",
    "InvalidImageName",
)
PULLS_AT_LONGEST = 6  # failed pulls in a row, after which the back-off is the longest
BACKOFF = re.compile(r"back-off (\S+) restarting")


def record_of_status(pod: Pod, now: datetime) -> PodRecord:
    """Return what a pod's status tells of its containers; a pod without one has not begun."""
    record = PodRecord(at=now)
    status = pod.get("status") or {}
    entries: list[ContainerStatus] = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
        *(status.get("ephemeralContainerStatuses") or ()),
    ]
    for entry in entries:
        record.containers[entry["name"]] = _container_record(entry, now)
    return record


def _container_record(status: ContainerStatus, now: datetime) -> ContainerRecord:
    state = status.get("state") or {}
    waiting = state.get("waiting") or {}
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
    elif "terminated" in state:
        record.runs = restarts + 1
        record.ending = _ending(state["terminated"], record.runs)
    elif last:
        record.runs = restarts + 1
        _set_backoff(record, status)
    if waiting.get("reason") in SAID_ONCE:
        _set_waiting(record, status, now)
    return record


def _set_waiting(record: ContainerRecord, status: ContainerStatus, now: datetime) -> None:
    """Take over why a container waits, so that its kubelet does not say it again."""
    waiting = status["state"].get("waiting") or {}
    if record.ending is not None:
        record.last = record.ending
        record.ending = None
    record.reason = waiting.get("reason", "")
    record.message = waiting.get("message", "")
    if record.reason in (ERR_IMAGE_PULL, IMAGE_PULL_BACKOFF):
        record.failed_pulls = PULLS_AT_LONGEST
        record.pulled_first = now
        record.due = now + timedelta(seconds=LONGEST_BACKOFF)
    elif record.reason == CRASH_LOOP and record.last is not None and record.backoff:
        record.due = record.last.finished + timedelta(seconds=record.backoff)


def _set_backoff(record: ContainerRecord, status: ContainerStatus) -> None:
    """Take the back-off from the message of a container that waits for its restart."""
    waiting = (status.get("state") or {}).get("waiting") or {}
    record.ending, record.last = record.last, None
    named = BACKOFF.match(waiting.get("message", ""))
    if named is None or record.ending is None:
        return
    try:
        record.backoff = round(parse_duration(named[1]))
    except ValueError:
        return
    record.backoff_set = record.ending.finished


def _ending(terminated: ContainerStateTerminated, run: int) -> RunEnd:
    started = terminated.get("startedAt")
    finished = parse_time(terminated.get("finishedAt") or NEVER_STARTED)
    return RunEnd(
        exit_code=terminated.get("exitCode", 0),
        reason=terminated.get("reason", ""),
        finished=finished,
        started=parse_time(started) if started else None,
        message=terminated.get("message", ""),
        run=run,
    )
