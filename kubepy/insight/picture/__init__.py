"""The pictures of a :class:`~kubepy.insight.Timeline`: svg, one html file, Chrome's trace format.

==========  ==========================================================================================
this        the bars: each pod from its creation to its end, in states, and the pod that replaces it
``scale``   places on the time axis: room for moments without length, breaks for long gaps
``words``   what revisions brought, and what changes were
``drawing`` the drawing under way: its sizes, colours, paths and texts
``charts``  its part about workloads; ``rows``: that about pods on their nodes
``svg``     ``render_svg``: puts the parts together
``html``    ``render_html``: the same drawing with its steps, a style and a script, in one file
``trace``   ``render_trace``: for chrome://tracing and Perfetto
==========  ==========================================================================================

A picture is derived from the timeline alone, so the same history makes the same bytes.
"""  # noqa: E501

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from kubepy.insight import Course, Step, Timeline
from kubepy.insight.availability import JOBS
from kubepy.storage import Key

PODS = "pods"
NODES = "nodes"
PENDING, STARTING, READY, AVAILABLE, TERMINATING, FAILED, SUCCEEDED = STATES = (
    "pending",
    "starting",
    "ready",
    "available",
    "terminating",
    "failed",
    "succeeded",
)

STATE_AFTER = {  # "waiting" and "unavailable" are in state_after
    "created": PENDING,
    "scheduled": STARTING,
    "started": STARTING,
    "restarted": STARTING,
    "ready": READY,
    "available": AVAILABLE,
    "not-ready": STARTING,
    "terminating": TERMINATING,
    "failed": FAILED,
    "succeeded": SUCCEEDED,
}
STATE_BEFORE = {  # of a pod that was there before its first step
    "scheduled": PENDING,
    "started": STARTING,
    "restarted": STARTING,
    "waiting": STARTING,
    "ready": STARTING,
    "available": READY,
}
_WAITING = {
    "ContainerCreating": STARTING,
    "PodInitializing": STARTING,
}  # reasons to wait that are no failure
_OWN_OWNER = {"replicasets.apps": "deployments.apps", "jobs.batch": "cronjobs.batch"}


@dataclass(eq=False)
class Bar:
    """The life of one pod between the ends of a timeline.

    :ivar workload: the key of its top controller, or its own.
    :ivar start: the number of the step that created it; -1 if it was there before.
    :ivar end: the number of the step that deleted it; the number of all steps if it stays.
    :ivar removed: the number of the step since which its workload has lost it: ``end``, or one
        before.
    :ivar last: the number of its last step, -1 for a pod without one.
    :ivar owner: its controller, as steps name it.
    :ivar states: (number of the step, state), the first from ``start`` on.
    :ivar successor: the pod that stands in for it.
    :ivar reason: why it failed, in the API's words.
    """

    key: Key
    workload: Key
    start: int
    end: int
    removed: int
    last: int = 0
    node: str = ""
    revision: str = ""
    owner: str = ""
    states: list[tuple[int, str]] = field(default_factory=list)
    successor: Bar | None = None
    reason: str = ""

    def take(self, number: int, step: Step) -> None:
        """Let the pod make a step."""
        self.last = number
        self.owner = step.owner or self.owner
        self.node = step.node or self.node
        self.revision = step.revision or self.revision
        state = state_after(step, self.states[-1][1])
        if step.action == "deleted":
            self.end = number
        elif state and state != self.states[-1][1] != TERMINATING and not self._fails_again(step):
            self.states.append((number, state))
        if state == FAILED:
            self.reason = step.reason or self.reason
        if step.action in ("failed", "succeeded", "terminating", "deleted"):
            self.removed = min(self.removed, number)

    def _fails_again(self, step: Step) -> bool:
        """Tell whether a step is only the next turn of a crash loop."""
        return step.action == "restarted" and self.states[-1][1] == FAILED

    @property
    def replacement(self) -> Bar | None:
        """The pod that the same controller made in its place; None for a pod of an older
        ReplicaSet, which no single pod replaces."""
        if self.successor is not None and self.successor.owner == self.owner:
            return self.successor
        return None

    @property
    def has_failed(self) -> bool:
        """Tell whether the pod failed at any time."""
        return any(state == FAILED for _, state in self.states)

    @property
    def has_finished(self) -> bool:
        """Tell whether the pod did its work: nothing replaces it."""
        return any(state == SUCCEEDED for _, state in self.states)

    def spans(self) -> Iterable[tuple[int, int, str]]:
        """Yield each state with the numbers of the steps at which it begins and ends."""
        ends = [number for number, _ in self.states[1:]] + [self.end]
        return (
            (number, end, state) for (number, state), end in zip(self.states, ends, strict=True)
        )


def state_after(step: Step, before: str) -> str | None:
    """Return the state of a pod after a step, None if the step does not change it."""
    if step.action == "waiting":
        if not step.node:
            return PENDING
        return _WAITING.get(step.reason, FAILED)
    if step.action == "unavailable":  # "not-ready" is a step of its own
        if before == AVAILABLE:
            return READY
        return None
    if step.action == "restarted" and before in (READY, AVAILABLE):
        return None  # it was ready again at once, or "not-ready" follows
    return STATE_AFTER.get(step.action)


def all_bars(timeline: Timeline, owners: TopControllers) -> list[Bar]:
    """Return the bars of a timeline's pods, and of those without a step."""
    bars = bars_of(timeline, owners)
    return bars + idle_bars(timeline, bars, owners)


def bars_of(timeline: Timeline, owners: TopControllers | None = None) -> list[Bar]:
    """Return the bars of a timeline's pods, those that were there first before the others, linked
    to successors. A pod without a step has none.

    :param owners: those of the timeline, where they are known already.
    """
    owners = owners or TopControllers(timeline)
    open_bars = dict[Key, Bar]()
    present = {step.key: state_after(step, "") for step in timeline.present}
    reasons = {step.key: step.reason for step in timeline.present}
    bars: list[Bar] = []
    for number, step in enumerate(timeline.steps):
        if step.key.resource != PODS:
            continue
        bar = open_bars.get(step.key)
        if bar is None or step.action == "created":
            new = step.action == "created"
            bar = open_bars[step.key] = Bar(
                step.key,
                owners.top(step),
                number if new else -1,
                len(timeline.steps),
                len(timeline.steps),
            )
            finished = step.action == "deleted" and bar.workload.resource in JOBS
            guess = SUCCEEDED if finished else STATE_BEFORE.get(step.action, AVAILABLE)
            bar.states.append((bar.start, PENDING if new else present.get(step.key) or guess))
            if bar.states[0][1] == FAILED:
                bar.reason = reasons.get(step.key, "")
            bars.append(bar)
        bar.take(number, step)
        if step.action == "deleted":
            del open_bars[step.key]

    courses = {course.key: course for course in timeline.courses}
    by_workload = defaultdict[Key, list[Bar]](list)
    for bar in bars:
        by_workload[bar.workload].append(bar)
    for workload, own in by_workload.items():
        link_successors(own, courses.get(workload), len(timeline.steps))
    return sorted(bars, key=lambda bar: bar.start >= 0)


def idle_bars(timeline: Timeline, bars: Iterable[Bar], owners: TopControllers) -> list[Bar]:
    """Return the bars of the pods without a step, of workloads that something happened to."""
    steps = len(timeline.steps)
    known = {bar.key for bar in bars if bar.start < 0}
    workloads = {course.key for course in timeline.courses}
    idle = []
    for pod in timeline.present:
        workload = owners.top(pod)
        if pod.key not in known and workload in workloads:
            idle.append(
                Bar(
                    pod.key,
                    workload,
                    -1,
                    steps,
                    steps,
                    -1,
                    pod.node,
                    pod.revision,
                    pod.owner,
                    [(-1, state_after(pod, "") or AVAILABLE)],
                    reason=pod.reason,
                )
            )

    return idle


class TopControllers:
    """The top controllers of a timeline's objects."""

    def __init__(self, timeline: Timeline) -> None:
        self._owners = {
            step.key: _owner_key(step.owner, step.key.namespace)
            for step in (*timeline.present, *timeline.steps)
            if step.owner
        }
        self._workloads = {course.key for course in timeline.courses}
        self._tops = dict[tuple[Key, str, str], Key]()

    def top(self, step: Step) -> Key:
        """Return the workload at the top of an object's owners, or one below that was asked for:
        the object itself if it has none."""
        about = step.key, step.owner, step.revision
        if about not in self._tops:
            self._tops[about] = self._find_top(step)
        return self._tops[about]

    def _find_top(self, step: Step) -> Key:
        key = step.key
        seen = set[Key]()
        if step.owner and key not in self._workloads:
            seen.add(key)
            key = _owner_key(step.owner, key.namespace)
        while key not in seen and key not in self._workloads:
            seen.add(key)
            key = self._owners.get(key) or self._by_name(key, step.revision) or key
        return key

    def _by_name(self, key: Key, revision: str) -> Key | None:
        """Return the workload that an owner without steps belongs to: its name begins with the
        workload's.

        :param revision: that of a pod: the name of a Deployment's ReplicaSet ends in it.
        """
        name, _, end = key.name.rpartition("-")
        above = Key(_OWN_OWNER.get(key.resource, ""), key.namespace, name)
        is_certain = key.resource == "replicasets.apps" and name and end == revision
        if is_certain or above in self._workloads:
            return above
        return None


@lru_cache(10_000)
def _owner_key(owner: str, namespace: str) -> Key:
    resource, _, name = owner.partition("/")
    return Key(resource, namespace, name)


def link_successors(bars: Iterable[Bar], course: Course | None, steps: int) -> None:
    """Link each pod of a workload that another one replaces to that one.

    A pod that goes while its workload has too few is replaced by the next that comes; one that goes
    while there are too many, as with a surge, by one that has come. A pod of a DaemonSet is
    replaced on its node, one of a StatefulSet by that of its name. Of several pods, one of the
    same controller is taken: that of another ReplicaSet only where there is no such.

    :param steps: the number of the timeline's steps.
    """
    numbers = list(course.numbers if course else ())
    if numbers:
        staying = numbers[0][1].pods - numbers[0][1].terminating
    else:
        staying = sum(bar.start < 0 for bar in bars)

    gone = list[Bar]()
    spare = list[Bar]()
    desired = -1
    events = [
        (number, bar) for bar in bars for number in (bar.start, bar.removed) if 0 <= number < steps
    ]
    for number, bar in sorted(events, key=lambda event: event[0]):
        while numbers and numbers[0][0] <= number + 1:
            desired = numbers.pop(0)[1].desired
        new = number == bar.start
        if bar.has_finished and not new:
            staying -= bar.states[0][1] != SUCCEEDED
            continue
        staying += 1 if new else -1
        waiting = gone if new else spare
        same = spare if new else gone
        partner = _partner(bar, waiting)
        if partner is None:
            same.append(bar)
        else:
            waiting.remove(partner)
            old, successor = (partner, bar) if new else (bar, partner)
            old.successor = successor
        if desired < 0:  # unknown
            spare.clear()
        else:
            for pods, wanted in ((gone, desired - staying), (spare, staying - desired)):
                del pods[: max(len(pods) - max(wanted, 0), 0)]


def _partner(bar: Bar, waiting: Iterable[Bar]) -> Bar | None:
    """Return the first of some pods that may stand in for a pod, or for which it may."""
    other_owner: Bar | None = None
    for other in waiting:
        if other is bar or not _same_place(bar, other):
            continue
        if other.owner == bar.owner:
            return other
        other_owner = other_owner or other
    return other_owner


def _same_place(bar: Bar, other: Bar) -> bool:
    """Tell whether one of two pods of a workload may stand in for the other."""
    if bar.workload.resource == "daemonsets.apps":
        return bar.node == other.node
    return bar.workload.resource != "statefulsets.apps" or bar.key == other.key
