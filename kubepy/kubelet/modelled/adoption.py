"""The record of a pod of which only the status is known: after a ``git checkout``, in a copy, or
because nobody has looked into it so far.

What ran goes on: a program whose run has begun before now is run again from that moment on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kubepy.api.clock import parse_time
from kubepy.api.values.goformat import parse_duration
from kubepy.kubelet.modelled.records import ContainerRecord, PodRecord, RunEnd
from kubepy.kubelet.modelled.statuses import NEVER_STARTED

if TYPE_CHECKING:
    from datetime import datetime

    from kubepy.api.typed import ContainerStateTerminated, ContainerStatus, Pod

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
        record.containers[entry["name"]] = _container_record(entry)
    return record


def _container_record(status: ContainerStatus) -> ContainerRecord:
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
    elif "terminated" in state:
        record.runs = restarts + 1
        record.ending = _ending(state["terminated"], record.runs)
    elif last:
        record.runs = restarts + 1
        _set_backoff(record, status)
    return record


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
