"""The life of a pod on its node, as a table of stages: the first stage that applies says which step
is due.

Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import later, parse_time
from kubepy.api.meta import Object, annotations_of, is_being_deleted
from kubepy.api.objects.outcomes import PENDING, TERMINATION, UnknownOutcomeError
from kubepy.api.objects.pods import TERMINAL_PHASES, get_condition, is_pod_terminal
from kubepy.api.objects.references import Find
from kubepy.api.objects.usage import AnnotationError
from kubepy.kubelet.admission import Rejection
from kubepy.kubelet.lifetimes import NO_RULES, PLAIN, PLAIN_NEVER, Lifetime, Rules, lifetime_of
from kubepy.kubelet.obstacles import (
    NO_OBSTACLES,
    PULL_REASONS,
    are_reported,
    obstacles_of,
    shows_failed_pull,
)
from kubepy.kubelet.outcomes import RUNNING, PodOutcome, StartObstacles
from kubepy.kubelet.restarts import (
    ContainerRun,
    RunChange,
    container_run,
    has_initialized,
    next_change,
    start,
    stop_time,
)
from kubepy.kubelet.statuses import ConditionValues, ready_condition

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod


class Start(NamedTuple):
    """Give the pod the status of this outcome, but for containers that something keeps from
    starting."""

    outcome: PodOutcome
    obstacles: StartObstacles = NO_OBSTACLES


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
    """A pod and its node, at a time. ``admit`` returns why the node does not take the pod, or None.
    ``run`` is the present run of the containers, None when the kubelet has not reported yet."""

    pod: Pod
    node: Node
    now: datetime
    admit: Admit
    rules: Rules
    lifetime: Lifetime
    refusal: Refuse | None
    run: ContainerRun | None

    @classmethod
    def at(cls, pod: Pod, node: Node, now: datetime, admit: Admit, rules: Rules) -> PodOnNode:
        """Read the annotations of a pod and its node."""
        refusal = None
        try:
            lifetime = lifetime_of(pod, node, rules)
        except UnknownOutcomeError as error:
            lifetime = PLAIN
            refusal = Refuse("UnknownOutcome", str(error))
        except AnnotationError as error:
            lifetime = PLAIN
            refusal = Refuse("InvalidAnnotation", str(error))
        return cls(
            pod, node, now, admit, rules, lifetime, refusal, container_run(pod, lifetime, rules)
        )

    @property
    def change(self) -> RunChange | None:
        """The next change of the containers by itself. A pod does not end while something keeps one
        from starting."""
        change = next_change(self.run, self.now) if self.run else None
        if (
            change is not None
            and change.outcome.phase in TERMINAL_PHASES
            and self.obstacles.containers
        ):
            return None
        return change

    @property
    def start(self) -> Start:
        return self.give(start(self.pod, self.lifetime, self.rules))

    @property
    def other_outcome(self) -> Start | None:
        """The step that gives the containers another outcome than they live by. Those that would
        end run on as long as something keeps others from starting."""
        if self.run is None or self.run.fits:
            return None
        step = self.start
        if step.outcome is RUNNING and step.obstacles.containers and self.run.is_running:
            return None
        return step

    @property
    def obstacles(self) -> StartObstacles:
        """The things that keep containers from starting now."""
        if self.run:
            is_init = self.run.next is not None
        else:
            is_init = bool(self.lifetime.init) and not has_initialized(self.pod)
        return obstacles_of(
            self.pod, self._find, init_fails=is_init, pull_fails=shows_failed_pull(self.pod)
        )

    @property
    def _find(self) -> Find | None:
        if self.lifetime.needs_references:
            return self.rules.find
        return None

    def give(self, outcome: PodOutcome) -> Start:
        """Return the step that gives the pod an outcome, with what keeps containers from starting
        then."""
        init_fails = outcome.init is not None and outcome.init.phase != "Succeeded"
        obstacles = obstacles_of(
            self.pod, self._find, init_fails=init_fails, pull_fails=outcome.reason in PULL_REASONS
        )
        is_held = bool(obstacles.mounts or obstacles.containers)
        return Start(
            RUNNING if is_held and outcome.phase in TERMINAL_PHASES else outcome, obstacles
        )

    @property
    def stops(self) -> datetime | None:
        """The end of the containers of a pod that is being deleted; None: only a hand
        removes it."""
        only_finalizers_hold_it = self.pod["metadata"].get("deletionGracePeriodSeconds") == 0
        if only_finalizers_hold_it or annotations_of(self.pod).get(TERMINATION) == "stuck":
            return None
        if self.run is None or is_pod_terminal(self.pod):
            return self.now
        return stop_time(self.run) or self.now

    @property
    def is_expired(self) -> bool:
        deadline = deadline_of(self.pod)
        return deadline is not None and deadline <= self.now

    @property
    def has_changed_gate(self) -> bool:
        """Tell whether the readiness gates of a ready pod call for another Ready condition."""
        run = self.run
        if not (
            run
            and run.is_running
            and run.status.get("ready")
            and self.pod["spec"].get("readinessGates")
        ):
            return False

        if not all(status.get("ready") for status in self.pod["status"]["containerStatuses"]):
            return False
        condition: Object = get_condition(self.pod, "Ready") or {}
        reported = (
            condition.get("status", ""),
            condition.get("reason", ""),
            condition.get("message", ""),
        )
        return ready_condition(self.pod, ConditionValues("True")) != reported

    @property
    def has_new_generation(self) -> bool:
        """Tell whether the spec has changed since the kubelet last reported."""
        observed = (self.pod.get("status") or {}).get("observedGeneration")
        if observed is None:
            return False
        return observed < self.pod["metadata"].get("generation", 0)


class Stage(NamedTuple):
    """One row of the table: whether a pod is in this stage of its life, and the step that is due
    then, if any."""

    name: str
    applies: Callable[[PodOnNode], bool]
    step: Callable[[PodOnNode], Step | None]


def next_step(
    pod: Pod, node: Node | None, now: datetime, admit: Admit = lambda: None, rules: Rules = NO_RULES
) -> Step | None:
    """Return the step that the kubelet of the pod's node has to take now; None for pods of a
    missing node."""
    if node is None:
        return None
    life = PodOnNode.at(pod, node, now, admit, rules)
    return next((stage.step(life) for stage in STAGES if stage.applies(life)), None)


STAGES = (
    Stage(
        "terminating",
        lambda life: is_being_deleted(life.pod),
        lambda life: Remove() if life.stops and life.stops <= life.now else None,
    ),
    Stage(
        "ended", lambda life: is_pod_terminal(life.pod), lambda life: None
    ),  # such a pod never runs again
    Stage("expired", lambda life: life.is_expired, lambda life: Expire()),
    Stage("annotated wrongly", lambda life: life.refusal is not None, lambda life: life.refusal),
    Stage("kept pending", lambda life: life.lifetime.outcome == PENDING, lambda life: None),
    Stage(
        "arrived",
        lambda life: not (life.pod.get("status") or {}).get("containerStatuses"),
        lambda life: life.admit() or life.start,
    ),
    Stage(
        "held by something else",
        lambda life: not are_reported(life.obstacles, life.pod),
        lambda life: life.start,
    ),
    Stage(
        "outcome changed",
        lambda life: life.other_outcome is not None,
        lambda life: life.other_outcome,
    ),
    Stage(
        "change due",
        lambda life: life.change is not None and life.change.due <= life.now,
        lambda life: life.change and life.give(life.change.outcome),
    ),
    Stage(
        "readiness gate changed", lambda life: life.has_changed_gate, lambda life: UpdateReadiness()
    ),
    Stage("spec changed", lambda life: life.has_new_generation, lambda life: Acknowledge()),
)


class StepDue(NamedTuple):
    """The moment at which the next step of a pod is due.

    :param repeats: the like of it happens again and again, for ever.
    """

    at: datetime
    repeats: bool = False


def next_due(pod: Pod, node: Node | None, now: datetime, rules: Rules = NO_RULES) -> StepDue | None:
    """Return when the pod's next step is due, for one that has none now."""
    if node is None or is_pod_terminal(pod):
        return None
    life = PodOnNode.at(pod, node, now, lambda: None, rules)
    if is_being_deleted(pod):
        stops = life.stops
        return StepDue(stops) if stops else None
    deadline = deadline_of(pod)
    change = None if life.refusal else life.change
    if change is None:
        if deadline is not None:
            return StepDue(deadline)
        return None

    if deadline is None:
        return StepDue(change.due, change.repeats)
    return StepDue(min(deadline, change.due))


def rests_once_started(pod: Pod, node: Node, outcome: PodOutcome, rules: Rules) -> bool:
    """Tell whether neither a step nor time follows when a pod that nothing keeps from starting gets
    an outcome.

    True only for plain pods; for all others :func:`next_step` and :func:`next_due` say it.
    """
    spec = pod["spec"]
    metadata = pod["metadata"]
    if outcome is not RUNNING or "deletionTimestamp" in metadata or spec.get("initContainers"):
        return False
    if spec.get("activeDeadlineSeconds") is not None or spec.get("readinessGates"):
        return False
    try:
        return lifetime_of(pod, node, rules) in (PLAIN, PLAIN_NEVER)
    except (UnknownOutcomeError, AnnotationError):
        return False


def starts_plainly(pod: Pod, node: Node, rules: Rules) -> bool:
    """Tell whether :func:`next_step` lets a pod on its node just run, now or later, and rest from
    then on.

    True only for plain pods that have not been reported on, as most are that come to a node. What
    keeps the node from admitting them is another question.
    """
    status = pod.get("status") or {}
    if (
        status.get("containerStatuses")
        or status.get("initContainerStatuses")
        or is_pod_terminal(pod)
    ):
        return False
    if not rests_once_started(pod, node, RUNNING, rules):
        return False
    return obstacles_of(pod, None, init_fails=False, pull_fails=False) == NO_OBSTACLES


def deadline_of(pod: Pod) -> datetime | None:
    """Return when a pod that has started must have ended (``spec.activeDeadlineSeconds``), or
    None."""
    seconds = pod["spec"].get("activeDeadlineSeconds")
    started = (pod.get("status") or {}).get("startTime")
    if seconds is None or started is None or is_pod_terminal(pod):
        return None
    return later(parse_time(started), seconds)
