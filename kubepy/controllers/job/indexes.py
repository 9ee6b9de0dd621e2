"""The completion indexes of Indexed Jobs: ``0,2-5,7`` in status, a set of numbers here (``indexed_job_utils.go``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubepy.api.meta import Object, annotations_of
from kubepy.api.values.gonumbers import int_or_none

INDEX = "batch.kubernetes.io/job-completion-index"  # annotation and label of a pod
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"

Indexes = set[int]


def completion_index(pod: Object) -> int | None:
    """The pod's index; None for one without, or with one that is no number."""
    index = int_or_none(annotations_of(pod).get(INDEX, ""))
    return None if index is None or index < 0 else index


def indexes_of(pods: Iterable[Object]) -> Indexes:
    return {index for pod in pods if (index := completion_index(pod)) is not None}


def failures_of_index(pod: Object) -> int:
    """How often pods of this index had failed, and counted, before this one."""
    return _count(pod, FAILURES)


def all_failures_of_index(pod: Object) -> int:
    """The same with failures that the failure policy ignores."""
    return _count(pod, FAILURES) + _count(pod, IGNORED_FAILURES)


def _count(pod: Object, annotation: str) -> int:
    return max(int_or_none(annotations_of(pod).get(annotation, ""), 32) or 0, 0)


def parse_indexes(text: str, completions: int) -> Indexes:
    """The indexes below ``completions``; what cannot be read is left out."""
    found: Indexes = set()
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        first, last = int_or_none(low), int_or_none(high or low)
        if first is not None and last is not None and first >= 0:
            found.update(range(first, min(last, completions - 1) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """``0,2-5,7``: a dash only where at least one index is left out."""
    return ",".join(
        f"{first}" if first == last else f"{first}{',' if last == first + 1 else '-'}{last}"
        for first, last in _runs(sorted(indexes)))


def _runs(indexes: list[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of each unbroken run."""
    start = 0
    for position in range(1, len(indexes) + 1):
        if position == len(indexes) or indexes[position] != indexes[position - 1] + 1:
            yield indexes[start], indexes[position - 1]
            start = position


def first_pending(taken: Indexes, count: int, completions: int) -> list[int]:
    """The lowest ``count`` indexes that are not taken (``firstPendingIndexes``)."""
    found: list[int] = []
    for index in range(completions):
        if len(found) >= count:
            break
        if index not in taken:
            found.append(index)
    return found
