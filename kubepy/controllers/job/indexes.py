"""The completion indexes of Indexed Jobs: ``0,2-5,7`` in status, a set of numbers here
(``indexed_job_utils.go``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kubepy.api.meta import annotations_of
from kubepy.api.values.gonumbers import int_or_none

if TYPE_CHECKING:
    from kubepy.api.typed import Pod

INDEX = "batch.kubernetes.io/job-completion-index"  # annotation and label of a pod
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"

Indexes = set[int]


def completion_index(pod: Pod) -> int | None:
    """Return the pod's index; None for one without, or with one that is no number."""
    index = int_or_none(annotations_of(pod).get(INDEX, ""))
    if index is None or index < 0:
        return None
    return index


def indexes_of(pods: Iterable[Pod]) -> Indexes:
    return {index for pod in pods if (index := completion_index(pod)) is not None}


def index_failure_count(pod: Pod) -> int:
    """Return how often pods of this index had failed, and counted, before this one."""
    return _count(pod, FAILURES)


def index_absolute_failure_count(pod: Pod) -> int:
    """Return the same with failures that the failure policy ignores."""
    return _count(pod, FAILURES) + _count(pod, IGNORED_FAILURES)


def _count(pod: Pod, annotation: str) -> int:
    return max(int_or_none(annotations_of(pod).get(annotation, ""), 32) or 0, 0)


def parse_indexes(text: str, completions: int) -> Indexes:
    """Return the indexes below ``completions``; parts that cannot be read are left out."""
    indexes: Indexes = set()
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        first = int_or_none(low)
        last = int_or_none(high or low)
        if first is not None and last is not None and first >= 0:
            indexes.update(range(first, min(last, completions - 1) + 1))
    return indexes


def format_indexes(indexes: Iterable[int]) -> str:
    """Return ``0,2-5,7``: a dash only where at least one index is left out."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][-1] + 1:
            runs[-1][1:] = [index]
        else:
            runs.append([index])
    return ",".join(
        f"{run[0]}" if len(run) == 1 else f"{run[0]}{',' if run[1] == run[0] + 1 else '-'}{run[1]}"
        for run in runs
    )


def first_pending_indexes(taken: Indexes, count: int, completions: int) -> list[int]:
    """Return the lowest ``count`` indexes that are not taken (``firstPendingIndexes``)."""
    pending: list[int] = []
    for index in range(completions):
        if len(pending) >= count:
            break
        if index not in taken:
            pending.append(index)
    return pending
