"""The life of a pod on its node, as a table: what is due is what the first row says that holds. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from kubepy.api.clock import later, parse_time
from kubepy.api.meta import Object, annotations_of, is_being_deleted
from kubepy.api.objects.pods import get_condition, is_pod_terminal
from kubepy.kubelet.admission import Rejection
from kubepy.kubelet.annotations import OUTCOME, POD_OUTCOME, TERMINATION
from kubepy.kubelet.outcomes import OUTCOMES, PENDING, RUNNING, Outcome
from kubepy.kubelet.statuses import ready_condition


class Start(NamedTuple):
    """Give the pod the status of this outcome."""

    outcome: Outcome


class Regate(NamedTuple):
    """Set the Ready condition anew: a readiness gate has moved."""


class Acknowledge(NamedTuple):
    """Say that the present spec has been seen."""


class Expire(NamedTuple):
    """The pod has run for longer than it may: it fails."""


class Remove(NamedTuple):
    """The pod has terminated; take it away."""


class Refuse(NamedTuple):
    """The pod, or its node, asks for an outcome that there is not."""

    outcome: str


Step = Start | Regate | Acknowledge | Expire | Remove | Refuse | Rejection
Admit = Callable[[], Rejection | None]


class Situation(NamedTuple):
    """A pod on a node that is there. ``admit`` says why the node does not take it, or None."""

    pod: Mapping[str, Any]
    node: Mapping[str, Any]
    now: datetime
    admit: Admit

    @property
    def wanted(self) -> str:
        """The pod's annotation, else its node's, else ``ready``."""
        return annotations_of(self.pod).get(OUTCOME) or annotations_of(self.node).get(POD_OUTCOME) or "ready"

    @property
    def shown(self) -> str:
        return shown_outcome(self.pod)


class Stage(NamedTuple):
    """``holds``: whether the pod is there in its life; ``step``: what is due then, None for nothing."""

    name: str
    holds: Callable[[Situation], bool]
    step: Callable[[Situation], Step | None]


def next_step(pod: Mapping[str, Any], node: Mapping[str, Any] | None, now: datetime,
              admit: Admit = lambda: None) -> Step | None:
    """What the kubelet of the pod's node has to do for it now. Nobody looks after the pods of an absent node."""
    if node is None:
        return None
    situation = Situation(pod, node, now, admit)
    return next((stage.step(situation) for stage in STAGES if stage.holds(situation)), None)


def _leave(situation: Situation) -> Step | None:
    only_finalizers_hold_it = situation.pod["metadata"].get("deletionGracePeriodSeconds") == 0
    is_stuck = annotations_of(situation.pod).get(TERMINATION) == "stuck"
    return None if only_finalizers_hold_it or is_stuck else Remove()


def _start(situation: Situation) -> Step:
    return Start(OUTCOMES[situation.wanted])


def _arrive(situation: Situation) -> Step:
    return situation.admit() or _start(situation)


def _nothing(situation: Situation) -> Step | None:
    return None


def _is_overdue(situation: Situation) -> bool:
    deadline = deadline_of(situation.pod)
    return deadline is not None and deadline <= situation.now


def _has_moved_gate(situation: Situation) -> bool:
    pod = situation.pod
    return situation.shown == "ready" and bool(pod["spec"].get("readinessGates")) and (
        ready_condition(pod, RUNNING) != _shown_ready(pod))


def _has_new_spec(situation: Situation) -> bool:
    seen = (situation.pod.get("status") or {}).get("observedGeneration")
    return seen is not None and seen < situation.pod["metadata"].get("generation", 0)


STAGES = (
    Stage("is leaving", lambda one: is_being_deleted(one.pod), _leave),
    Stage("has ended", lambda one: is_pod_terminal(one.pod), _nothing),  # a pod that has ended never runs again
    Stage("has run for too long", _is_overdue, lambda one: Expire()),
    Stage("is not to be seen", lambda one: one.wanted == PENDING, _nothing),
    Stage("asks for what there is not", lambda one: one.wanted not in OUTCOMES, lambda one: Refuse(one.wanted)),
    Stage("has arrived", lambda one: one.shown == PENDING, _arrive),
    Stage("is to change", lambda one: one.shown != one.wanted, _start),
    Stage("has a gate that moved", _has_moved_gate, lambda one: Regate()),
    Stage("has a new spec", _has_new_spec, lambda one: Acknowledge()),
)


def shown_outcome(pod: Mapping[str, Any]) -> str:
    """The outcome that the pod's first container shows; ``pending`` when its kubelet has not reported yet."""
    statuses = (pod.get("status") or {}).get("containerStatuses")
    if not statuses:
        return PENDING
    state = statuses[0].get("state") or {}
    if "running" in state:
        return "ready" if statuses[0].get("ready") else "not-ready"
    if "terminated" in state:
        return "failed" if state["terminated"].get("exitCode") else "succeeded"
    return "crash-loop" if (state.get("waiting") or {}).get("reason") == "CrashLoopBackOff" else "image-pull-backoff"


def _shown_ready(pod: Mapping[str, Any]) -> tuple[str, str, str]:
    condition: Object = get_condition(pod, "Ready") or {}
    return condition.get("status", ""), condition.get("reason", ""), condition.get("message", "")


def deadline_of(pod: Mapping[str, Any]) -> datetime | None:
    """When a pod that has started must have ended (``spec.activeDeadlineSeconds``), or None."""
    seconds, started = pod["spec"].get("activeDeadlineSeconds"), (pod.get("status") or {}).get("startTime")
    if seconds is None or started is None or is_pod_terminal(pod):
        return None
    return later(parse_time(started), seconds)
