"""The logs of pods in a source, as the cluster keeps them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object, nested_map, uid_of
from kubepy.importing.layouts import PodLog
from kubepy.kubelet.modelled.logs import PrintedText, dump_log, log_name
from kubepy.storage import Key

_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
# A line of a kubelet with its time, as must-gather has it.
_TIMED = re.compile(
    r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})) (.*)", re.DOTALL
)


def log_values(
    logs: Iterable[PodLog], objects: Mapping[Key, Object], now: datetime
) -> dict[str, str]:
    """Return the small values of the cluster that hold the logs. Those of pods that the source does
    not hold are left out.

    :param now: the time of lines that say none, of a container that runs.
    """
    values: dict[str, str] = {}
    for log in sorted(logs, key=lambda log: log.is_previous):
        pod = objects.get(Key("pods", log.namespace, log.pod))
        if pod is None or not log.text:
            continue
        status = _status_of(pod, log.container)
        run = int(status.get("restartCount") or 0) + 1
        if log.is_previous and "waiting" not in (status.get("state") or {}):
            run -= 1
        name = log_name(uid_of(pod), log.container, run)
        if name not in values:
            values[name] = dump_log(_entries(log, _end_of_run(status, log, now)))
    return values


def _status_of(pod: Object, container: str) -> Object:
    """Return the status of a container, an empty one where there is none."""
    statuses = nested_map(pod, "status")
    for field in _STATUSES:
        for status in statuses.get(field) or ():
            if status["name"] == container:
                return dict(status)
    return {}


def _end_of_run(status: Object, log: PodLog, now: datetime) -> datetime:
    """Return when a run has ended, or the present for one that goes on."""
    state = {} if log.is_previous else status.get("state") or {}
    if "running" in state:
        return now
    ending = state.get("terminated") or (status.get("lastState") or {}).get("terminated") or {}
    return _moment(ending.get("finishedAt") or "") or now


def _entries(log: PodLog, moment: datetime) -> list[PrintedText]:
    """Return the lines of a log with their times; lines of one time are one entry."""
    entries: list[PrintedText] = []
    for line in log.text.splitlines(keepends=True):
        time, text = _timed(line) or (moment, line)
        if entries and entries[-1].time == time:
            entries[-1] = entries[-1]._replace(text=entries[-1].text + text)
        else:
            entries.append(PrintedText(time, "stdout", text))
    return entries


def _timed(line: str) -> tuple[datetime, str] | None:
    match = _TIMED.fullmatch(line)
    time = _moment(match[1]) if match is not None else None
    if match is None or time is None:
        return None
    return time, match[2]


def _moment(text: str) -> datetime | None:
    try:
        return parse_time(text)
    except (ValueError, OverflowError):
        return None
