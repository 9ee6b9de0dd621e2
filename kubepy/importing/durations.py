"""The lengths of time in a source: until a pod is ready, until a container that is to end has
ended, until a deleted one has stopped. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime

from kubepy.api.meta import Object, nested_list
from kubepy.api.values.goformat import format_duration
from kubepy.importing.evidence import (
    ContainerEvidence,
    condition_time,
    run_length,
    seconds_between,
    time_of,
)

LONGEST_START = 900.0  # seconds: what is longer than this is no start, but a later outage
OUTLIER = 10.0  # times the middle value, beyond which a time is left out
OUTLIER_SECONDS = 60.0


def ready_seconds(pod: Object) -> float | None:
    """Return how long a pod took from its kubelet's begin, its init containers left out, until it
    was ready. None where its status does not tell it.

    A pod whose containers have been restarted counts from its last start. A pod that was not ready
    for a while later on shows too long a time: see :func:`length_text`.
    """
    ready = condition_time(
        pod,
        "Ready",
        "True",
    )
    if ready is None:
        return None
    statuses = nested_list(
        pod,
        "status",
        "containerStatuses",
    )
    starts = [
        time_of((status.get("state") or {}).get("running") or {}, "startedAt")
        for status in statuses
    ]
    known = [start for start in starts if start is not None]
    if len(known) < len(statuses) or not known:
        return None
    if any(status.get("restartCount") for status in statuses):
        seconds = seconds_between(max(known), ready)
    else:
        seconds = seconds_between(_begin(pod), ready)
        if seconds is None:
            seconds = seconds_between(max(known), ready)
    if seconds is None or seconds > LONGEST_START:
        return None
    return seconds


def _begin(pod: Object) -> datetime | None:
    """Return when the containers of a pod could be started first."""
    initialized = condition_time(
        pod,
        "Initialized",
        "True",
    )
    scheduled = condition_time(
        pod,
        "PodScheduled",
        "True",
    )
    if initialized is not None and scheduled is not None:
        return max(initialized, scheduled)
    return initialized or scheduled


def stop_seconds(evidence: ContainerEvidence) -> float | None:
    """Return how long a container took to stop whose pod is being deleted and still there."""
    metadata = evidence.pod["metadata"]
    deadline = time_of(metadata, "deletionTimestamp")
    ended = (evidence.status.get("state") or {}).get("terminated")
    if deadline is None or not ended:
        return None
    grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
    finished = time_of(ended, "finishedAt")
    if finished is None:
        return None
    seconds = grace - (deadline - finished).total_seconds()
    if seconds < 0 or seconds > grace + 2:
        return None
    return seconds


def run_seconds(evidences: Iterable[ContainerEvidence]) -> list[float]:
    """Return how long runs took that have ended well."""
    lengths = []
    for evidence in evidences:
        ended = (evidence.status.get("state") or {}).get("terminated")
        length = run_length(ended) if ended and not ended.get("exitCode") else None
        if length is not None:
            lengths.append(length)
    return lengths


def usual(seconds: Sequence[float]) -> list[float]:
    """Return times without those that are far longer than the middle one."""
    if not seconds:
        return []
    ordered = sorted(seconds)
    middle = ordered[(len(ordered) - 1) // 2]
    longest = max(OUTLIER * middle, middle + OUTLIER_SECONDS)
    return [length for length in ordered if length <= longest]


def length_text(seconds: Sequence[float]) -> str:
    """Return the range of some times as rules have it: ``5s`` or ``2s..8s``."""
    low = format_duration(math.floor(min(seconds)))
    high = format_duration(math.ceil(max(seconds)))
    if low == high:
        return low
    return f"{low}..{high}"
