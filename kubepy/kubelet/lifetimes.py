"""How a pod lives by its annotations: its outcome while it runs, how long it runs, and the code that it ends with.

The pods of Jobs end by themselves, all others only where an annotation says so. A container that ends and that the
pod's restartPolicy starts again waits longer each time, as at a kubelet (``pkg/kubelet/kuberuntime``, ``doBackOff``).
Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import later, parse_time
from kubepy.api.meta import annotations_of, controller_of
from kubepy.api.objects.usage import AnnotationError, check_usage
from kubepy.api.values.goformat import format_duration, parse_duration
from kubepy.api.values.gonumbers import int_or_none
from kubepy.kubelet.outcomes import (
    COMPLETED,
    CRASHED,
    EXIT_CODE,
    OUTCOME,
    OUTCOMES,
    PENDING,
    POD_OUTCOME,
    RUNS_FOR,
    PodOutcome,
)

if TYPE_CHECKING:
    from kubepy.api.typed import ContainerStatus, Node, Pod

NO_TIME = "it must be a duration such as 5s, or a range such as 2s..8s"
NO_EXIT_CODE = "it must be a number from 0 to 255"
RESTART_DELAY = timedelta(seconds=10)  # before the second restart; twice as long before each later one,
MAX_RESTART_DELAY = timedelta(minutes=5)  # at most this,
RESTARTS_FORGOTTEN = timedelta(minutes=10)  # and none after a run of this length
Draw = Callable[["Pod", str, float, float], float]  # a number in a range that is a function of seed, pod and purpose


class UnknownOutcomeError(ValueError):
    """The annotation names an outcome that there is not."""


class Lifetime(NamedTuple):
    """``outcome``: that of a pod which does not end by itself, or the one that it has while it runs.

    :param runs_for: how long a run takes, in seconds; None: it does not end.
    :param end: the outcome of a run's end.
    :param restarts: the containers start again when they have ended.
    """

    outcome: str
    runs_for: float | None = None
    end: PodOutcome = COMPLETED
    restarts: bool = False

    @property
    def ends_at_once(self) -> bool:
        return self.runs_for == 0 and not self.restarts


def lifetime_of(pod: Pod, node: Node, draw: Draw) -> Lifetime:
    """Read the annotations of a pod and its node. Raises AnnotationError, UnknownOutcomeError."""
    annotations = annotations_of(pod)
    outcome = annotations.get(OUTCOME) or annotations_of(node).get(POD_OUTCOME) or ""
    if outcome not in ("", PENDING, *OUTCOMES):
        known = ", ".join([*OUTCOMES, PENDING])
        raise UnknownOutcomeError(f'Outcome "{outcome}" is not known: it must be one of {known}')
    check_usage(pod)
    ends = OUTCOMES[outcome] if outcome in ("succeeded", "failed") else None
    is_job_pod = (controller_of(pod) or {}).get("kind") == "Job"
    code = parse_exit_code(annotations.get(EXIT_CODE), ends.exit_code if ends else 0)
    text = annotations.get(RUNS_FOR) or (annotations_of(node).get(RUNS_FOR) if is_job_pod else None)
    runs_for = parse_run_length(text, lambda low, high: draw(pod, RUNS_FOR, low, high)) if text else None
    if ends is None and runs_for is None and is_job_pod and not outcome:
        runs_for = 0.0
    if ends is not None:
        return Lifetime("ready", runs_for or 0.0, _end(code))
    if runs_for is None or outcome not in ("", "ready", "not-ready"):
        return Lifetime(outcome or "ready")
    policy = pod["spec"].get("restartPolicy", "Always")
    restarts = policy == "Always" or (policy == "OnFailure" and code != 0)
    return Lifetime(outcome or "ready", runs_for, _end(code), restarts)


def parse_exit_code(text: str | None, default: int) -> int:
    if text is None:
        return default
    code = int_or_none(text)
    if code is None or not 0 <= code <= 255:
        raise AnnotationError(EXIT_CODE, text, NO_EXIT_CODE)
    return code


def parse_run_length(text: str, draw: Callable[[float, float], float]) -> float:
    """Read a duration, or draw one from a range."""
    low_text, dots, high_text = text.partition("..")
    try:
        low = parse_duration(low_text.strip())
        high = parse_duration(high_text.strip()) if dots else low
    except ValueError:
        raise AnnotationError(RUNS_FOR, text, NO_TIME) from None
    if not 0 <= low <= high:
        raise AnnotationError(RUNS_FOR, text, NO_TIME)
    return draw(low, high) if low < high else low


def _end(code: int) -> PodOutcome:
    return OUTCOMES["failed"]._replace(exit_code=code) if code else COMPLETED


# --- the next change ----------------------------------------------------------------------------------------------


class RunChange(NamedTuple):
    """A pod's change to an outcome, and when it is due."""

    due: datetime
    outcome: PodOutcome


def next_change(pod: Pod, lifetime: Lifetime) -> RunChange | None:
    """Return how the present run of a pod, or its wait for the next one, ends; None where it does not."""
    statuses = (pod.get("status") or {}).get("containerStatuses")
    if lifetime.runs_for is None or not statuses:
        return None
    first = statuses[0]
    state, restarts = first.get("state") or {}, first.get("restartCount", 0)
    if started := (state.get("running") or {}).get("startedAt"):
        due = later(parse_time(started), lifetime.runs_for)
        if not lifetime.restarts:
            return RunChange(due, lifetime.end)
        delay = _restart_delay(restarts, lifetime.runs_for)
        if not delay:
            return RunChange(due, OUTCOMES[lifetime.outcome]._replace(restarts=restarts + 1, ended=lifetime.end))
        message = CRASHED.message.replace("40s", format_duration(delay.total_seconds()))
        return RunChange(due, CRASHED._replace(restarts=restarts, message=message, ended=lifetime.end))
    finished = last_end(first)
    if lifetime.restarts and finished and (state.get("waiting") or {}).get("reason") == CRASHED.reason:
        due = parse_time(finished) + _restart_delay(restarts, lifetime.runs_for)
        return RunChange(due, OUTCOMES[lifetime.outcome]._replace(restarts=restarts + 1))
    return None


def last_end(status: ContainerStatus) -> str:
    """Return when the last run of a container ended, empty if it has had but one."""
    return ((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt", "")


def _restart_delay(restarts: int, runs_for: float) -> timedelta:
    if restarts == 0 or timedelta(seconds=min(runs_for, 1e6)) > RESTARTS_FORGOTTEN:
        return timedelta()
    doubled: timedelta = RESTART_DELAY * 2 ** min(restarts - 1, 10)
    return min(doubled, MAX_RESTART_DELAY)
