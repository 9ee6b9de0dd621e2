"""The life of a pod on its node, as a table of stages: the first stage that applies says which step is due.

Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import later, parse_time
from kubepy.api.meta import Object, annotations_of, is_being_deleted
from kubepy.api.objects.pods import get_condition, is_pod_terminal
from kubepy.api.objects.usage import AnnotationError
from kubepy.kubelet.admission import Rejection
from kubepy.kubelet.lifetimes import (
    Draw,
    Lifetime,
    RunChange,
    UnknownOutcomeError,
    lifetime_of,
    next_change,
)
from kubepy.kubelet.outcomes import OUTCOMES, PENDING, RUNNING, TERMINATION, PodOutcome
from kubepy.kubelet.statuses import ready_condition

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod


class Start(NamedTuple):
    """Give the pod the status of this outcome."""

    outcome: PodOutcome


class UpdateReadiness(NamedTuple):
    """Set the Ready condition again: a readiness gate has changed."""


class Acknowledge(NamedTuple):
    """Report the present generation as observed."""


class Expire(NamedTuple):
    """Let the pod fail: it has run for longer than ``activeDeadlineSeconds``."""


class Remove(NamedTuple):
    """Delete the pod for good: it has terminated."""


class Refuse(NamedTuple):
    """Report an annotation that cannot be followed."""

    reason: str
    message: str


Step = Start | UpdateReadiness | Acknowledge | Expire | Remove | Refuse | Rejection
Admit = Callable[[], Rejection | None]


class PodOnNode(NamedTuple):
    """A pod and its node, at a time. ``admit`` returns why the node does not take the pod, or None."""

    pod: Pod
    node: Node
    now: datetime
    admit: Admit
    lifetime: Lifetime
    refusal: Refuse | None = None

    @property
    def outcome(self) -> str:
        """The outcome that the pod is to have at its start, or as long as it runs."""
        return self.lifetime.outcome

    @property
    def change(self) -> RunChange | None:
        return next_change(self.pod, self.lifetime)

    @property
    def start(self) -> Start:
        return Start(self.lifetime.end if self.lifetime.ends_at_once else OUTCOMES[self.outcome])

    @property
    def current_outcome(self) -> str:
        return current_outcome(self.pod)

    @property
    def may_be_removed(self) -> bool:
        """Tell whether nothing but the kubelet holds a pod that is being deleted."""
        only_finalizers_hold_it = self.pod["metadata"].get("deletionGracePeriodSeconds") == 0
        return not only_finalizers_hold_it and annotations_of(self.pod).get(TERMINATION) != "stuck"

    @property
    def is_expired(self) -> bool:
        deadline = deadline_of(self.pod)
        return deadline is not None and deadline <= self.now

    @property
    def has_changed_gate(self) -> bool:
        """Tell whether the readiness gates of a ready pod call for another Ready condition."""
        if self.current_outcome != "ready" or not self.pod["spec"].get("readinessGates"):
            return False
        condition: Object = get_condition(self.pod, "Ready") or {}
        reported = condition.get("status", ""), condition.get("reason", ""), condition.get("message", "")
        return ready_condition(self.pod, RUNNING) != reported

    @property
    def has_new_generation(self) -> bool:
        """Tell whether the spec has changed since the kubelet last reported."""
        observed = (self.pod.get("status") or {}).get("observedGeneration")
        return observed is not None and observed < self.pod["metadata"].get("generation", 0)


def current_outcome(pod: Pod) -> str:
    """Return the outcome that the first container shows; ``pending`` when its kubelet has not reported yet."""
    statuses = (pod.get("status") or {}).get("containerStatuses")
    if not statuses:
        return PENDING
    state = statuses[0].get("state") or {}
    if "running" in state:
        return "ready" if statuses[0].get("ready") else "not-ready"
    if "terminated" in state:
        return "failed" if state["terminated"].get("exitCode") else "succeeded"
    is_crashing = (state.get("waiting") or {}).get("reason") == "CrashLoopBackOff"
    return "crash-loop" if is_crashing else "image-pull-backoff"


class Stage(NamedTuple):
    """One row of the table: whether a pod is in this stage of its life, and the step that is due then, if any."""

    name: str
    applies: Callable[[PodOnNode], bool]
    step: Callable[[PodOnNode], Step | None]


def next_step(pod: Pod, node: Node | None, now: datetime, admit: Admit = lambda: None,
              draw: Draw = lambda pod, purpose, low, high: low) -> Step | None:
    """Return the step that the kubelet of the pod's node has to take now; None for pods of a missing node."""
    if node is None:
        return None
    life = PodOnNode(pod, node, now, admit, *_lifetime_or_refusal(pod, node, draw))
    return next((stage.step(life) for stage in STAGES if stage.applies(life)), None)


def _lifetime_or_refusal(pod: Pod, node: Node, draw: Draw) -> tuple[Lifetime, Refuse | None]:
    try:
        return lifetime_of(pod, node, draw), None
    except UnknownOutcomeError as error:
        return Lifetime("ready"), Refuse("UnknownOutcome", str(error))
    except AnnotationError as error:
        return Lifetime("ready"), Refuse("InvalidAnnotation", str(error))


STAGES = (
    Stage("terminating", lambda life: is_being_deleted(life.pod),
          lambda life: Remove() if life.may_be_removed else None),
    Stage("ended", lambda life: is_pod_terminal(life.pod), lambda life: None),  # such a pod never runs again
    Stage("expired", lambda life: life.is_expired, lambda life: Expire()),
    Stage("annotated wrongly", lambda life: life.refusal is not None, lambda life: life.refusal),
    Stage("kept pending", lambda life: life.outcome == PENDING, lambda life: None),
    Stage("arrived", lambda life: life.current_outcome == PENDING, lambda life: life.admit() or life.start),
    Stage("run over", lambda life: life.change is not None and life.change.due <= life.now,
          lambda life: life.change and Start(life.change.outcome)),
    Stage("in back-off", lambda life: life.change is not None and life.current_outcome == "crash-loop",
          lambda life: None),
    Stage("outcome changed", lambda life: life.current_outcome != life.outcome, lambda life: life.start),
    Stage("readiness gate changed", lambda life: life.has_changed_gate, lambda life: UpdateReadiness()),
    Stage("spec changed", lambda life: life.has_new_generation, lambda life: Acknowledge()),
)


def next_due(pod: Pod, node: Node | None, draw: Draw) -> datetime | None:
    """Return when the pod's next step is due, for one that has none now: its deadline, or the end of its run."""
    deadline = deadline_of(pod)
    if node is None or is_pod_terminal(pod):
        return deadline
    lifetime, refusal = _lifetime_or_refusal(pod, node, draw)
    change = next_change(pod, lifetime) if refusal is None else None
    return min((due for due in (deadline, change and change.due) if due is not None), default=None)


def deadline_of(pod: Pod) -> datetime | None:
    """Return when a pod that has started must have ended (``spec.activeDeadlineSeconds``), or None."""
    seconds, started = pod["spec"].get("activeDeadlineSeconds"), (pod.get("status") or {}).get("startTime")
    if seconds is None or started is None or is_pod_terminal(pod):
        return None
    return later(parse_time(started), seconds)
