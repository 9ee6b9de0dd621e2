"""The annotations by which pods take time, fail and recover, and the form of their values
(docs/kubelet.md).

``kubelet:`` in ``kubepy.yaml`` has the same values as defaults, so they are read here, below the
settings.
"""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.objects.usage import AnnotationError
from kubepy.api.values.goformat import parse_duration
from kubepy.api.values.gonumbers import int_or_none

OUTCOME = "kubepy.dev/outcome"  # of a pod: a sequence of outcomes; of a node: not-ready
POD_OUTCOME = "kubepy.dev/pod-outcome"  # of a node: the outcome of its pods that name none
READY_AFTER = (
    "kubepy.dev/ready-after"  # of a pod or node: the time from a container's start to Ready
)
STOPS_AFTER = "kubepy.dev/stops-after"  # of a pod or node: how long a deleted pod terminates
RUNS_FOR = "kubepy.dev/runs-for"  # of a pod: how long it runs; of a node: for the pods of Jobs
# the code that the containers of a pod end with; of a node: for the pods of Jobs
EXIT_CODE = "kubepy.dev/exit-code"
TERMINATION = "kubepy.dev/termination"  # of a pod: stuck
REFERENCES = (
    "kubepy.dev/references"  # of a pod or node: whether ConfigMaps and Secrets must be there
)

PENDING = "pending"  # the kubelet never starts such a pod
CRASH_LOOP = "crash-loop"
IMAGE_PULL_BACKOFF = "image-pull-backoff"
OOM_KILLED = "oom-killed"
INIT_CRASH_LOOP, INIT_FAILED = (
    "init-crash-loop",
    "init-failed",
)  # of the first init container, sidecars left out
OUTCOME_NAMES = (
    "ready",
    "not-ready",
    CRASH_LOOP,
    OOM_KILLED,
    IMAGE_PULL_BACKOFF,
    INIT_CRASH_LOOP,
    INIT_FAILED,
    "failed",
    "succeeded",
    PENDING,
)
CRASHES = (CRASH_LOOP, OOM_KILLED)
RECOVERABLE = (
    *CRASHES,
    IMAGE_PULL_BACKOFF,
    INIT_CRASH_LOOP,
)  # a kubelet tries again after these only
REQUIRED, IGNORED = "required", "ignored"  # values of REFERENCES

NO_TIME = "it must be a duration such as 5s, or a range such as 2s..8s"
NO_EXIT_CODE = "it must be a number from 0 to 255"
NO_COUNT = "the number after * must be at least 1"
COUNT_OF_LAST = (
    "the last outcome lasts, so it takes no number: name what follows, as in crash-loop*3, ready"
)
NOT_RECOVERABLE = (
    f"only {', '.join(RECOVERABLE[:-1])} and {RECOVERABLE[-1]} can be followed by another outcome"
)
INIT_FIRST = "outcomes of init containers come before all others"
NO_INIT_CONTAINER = "the pod has no init container, except sidecars"
NO_REFERENCES = f"it must be {REQUIRED} or {IGNORED}"


class UnknownOutcomeError(ValueError):
    """A text names an outcome that there is not."""


class OutcomeSequence(NamedTuple):
    """``crash-loop*3, ready``: how often each outcome comes before the last one, which lasts."""

    before: tuple[tuple[str, int], ...]
    last: str

    @property
    def names_init_container(self) -> bool:
        return self.last == INIT_FAILED or INIT_CRASH_LOOP in (
            self.last,
            *(name for name, _ in self.before),
        )

    @property
    def of_containers(self) -> OutcomeSequence:
        """The part of the sequence that is about the containers: they are ready where none is."""
        before = tuple((name, count) for name, count in self.before if name != INIT_CRASH_LOOP)
        return OutcomeSequence(
            before, "ready" if self.last in (INIT_CRASH_LOOP, INIT_FAILED) else self.last
        )

    @property
    def of_init_container(self) -> OutcomeSequence:
        """The part that is about the init container, in the outcomes of containers."""
        crashes = sum(count for name, count in self.before if name == INIT_CRASH_LOOP)
        last = {INIT_CRASH_LOOP: CRASH_LOOP, INIT_FAILED: "failed"}.get(self.last, "succeeded")
        return OutcomeSequence(((CRASH_LOOP, crashes),) if crashes else (), last)


def parse_outcomes(annotation: str, text: str) -> OutcomeSequence:
    """Read an outcome or a sequence of them. Raises AnnotationError, UnknownOutcomeError."""
    before: list[tuple[str, int]] = []
    *parts, last = (part.strip() for part in text.split(","))
    for part in parts:
        name, times, count_text = (word.strip() for word in part.partition("*"))
        _check_known(name)
        count = int_or_none(count_text) if times else 1
        if count is None or count < 1:
            raise AnnotationError(annotation, text, NO_COUNT)
        if name not in RECOVERABLE:
            raise AnnotationError(annotation, text, NOT_RECOVERABLE)
        before.append((name, count))

    name, times, _ = last.partition("*")
    _check_known(name.strip())
    if times:
        raise AnnotationError(annotation, text, COUNT_OF_LAST)
    name = name.strip()
    if before and name == PENDING:
        raise AnnotationError(
            annotation, text, "a pod that has been started is not pending any more"
        )

    of_init = [
        name in (INIT_CRASH_LOOP, INIT_FAILED) for name in (*(name for name, _ in before), name)
    ]
    if sorted(of_init, reverse=True) != of_init:
        raise AnnotationError(annotation, text, INIT_FIRST)
    return OutcomeSequence(tuple(before), name)


def _check_known(name: str) -> None:
    if name not in OUTCOME_NAMES:
        raise UnknownOutcomeError(
            f'Outcome "{name}" is not known: it must be one of {", ".join(OUTCOME_NAMES)}'
        )


def parse_references(annotation: str, text: str) -> bool:
    """Read whether ConfigMaps and Secrets must be there before a pod starts. Raises
    AnnotationError."""
    if text not in (REQUIRED, IGNORED):
        raise AnnotationError(annotation, text, NO_REFERENCES)
    return text == REQUIRED


def parse_length(annotation: str, text: str) -> tuple[float, float]:
    """Read a duration, or the two ends of a range, in seconds. Raises AnnotationError."""
    low_text, dots, high_text = text.partition("..")
    try:
        low = parse_duration(low_text.strip())
        high = parse_duration(high_text.strip()) if dots else low
    except ValueError:
        raise AnnotationError(annotation, text, NO_TIME) from None
    if not 0 <= low <= high:
        raise AnnotationError(annotation, text, NO_TIME)
    return low, high


def parse_exit_code(annotation: str, text: str) -> int:
    """Read the exit code of a container. Raises AnnotationError."""
    code = int_or_none(text)
    if code is None or not 0 <= code <= 255:
        raise AnnotationError(annotation, text, NO_EXIT_CODE)
    return code
