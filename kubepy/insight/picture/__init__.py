"""The pictures of a :class:`~kubepy.insight.Timeline`: svg, one html file, Chrome's trace format.

==========  ==========================================================================================
this        the bars: each pod from its creation to its end, in states, and the pod that replaces it
``scale``   places on the time axis: room for moments without length, breaks for long gaps
``svg``     ``render_svg``: lays the bars out in rows and draws them
``html``    ``render_html``: the same drawing with its steps, a style and a script, in one file
``trace``   ``render_trace``: for chrome://tracing and Perfetto
==========  ==========================================================================================

A picture is derived from the timeline alone, so the same history makes the same bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from kubepy.insight import Course, Step, Timeline
from kubepy.storage import Key

PODS, NODES = "pods", "nodes"
PENDING, STARTING, READY, AVAILABLE, TERMINATING, FAILED, SUCCEEDED = STATES = (
    "pending", "starting", "ready", "available", "terminating", "failed", "succeeded")

STATE_AFTER = {
    "created": PENDING, "scheduled": STARTING, "bound": STARTING, "started": STARTING, "running": STARTING,
    "restarted": STARTING, "ready": READY, "available": AVAILABLE, "unavailable": STARTING, "unready": STARTING,
    "not-ready": STARTING, "terminating": TERMINATING, "failed": FAILED, "crashed": FAILED, "succeeded": SUCCEEDED}
STATE_BEFORE = {  # of a pod that was there before its first step
    "scheduled": PENDING, "bound": PENDING, "started": STARTING, "running": STARTING, "ready": STARTING,
    "available": READY, "failed": STARTING, "crashed": STARTING}
_OWN_OWNER = {"replicasets.apps": "deployments.apps", "jobs.batch": "cronjobs.batch"}
_JOBS = ("jobs.batch", "cronjobs.batch")


@dataclass(eq=False)
class Bar:
    """The life of one pod between the ends of a timeline.

    :ivar workload: the key of its top controller, or its own.
    :ivar start: the number of the step that created it; -1 if it was there before.
    :ivar end: the number of the step that deleted it; the number of all steps if it stays.
    :ivar states: (number of the step, state), the first from ``start`` on.
    :ivar successor: the pod that replaces it.
    """

    key: Key
    workload: Key
    start: int
    end: int
    node: str = ""
    revision: str = ""
    states: list[tuple[int, str]] = field(default_factory=list)
    successor: Bar | None = None

    def take(self, number: int, step: Step) -> None:
        """Let the pod make a step."""
        self.node, self.revision = step.node or self.node, step.revision or self.revision
        state = STATE_AFTER.get(step.action)
        if step.action == "deleted":
            self.end = number
        elif state and state != self.states[-1][1] and self.states[-1][1] != TERMINATING:
            self.states.append((number, state))

    @property
    def removed(self) -> int:
        """The number of the step from which on the pod is not one of its workload's, or ``end``."""
        going = (TERMINATING, FAILED) if self.workload.resource in _JOBS else (TERMINATING,)
        return next((number for number, state in self.states if state in going), self.end)

    def spans(self) -> Iterable[tuple[int, int, str]]:
        """Yield each state with the numbers of the steps at which it begins and ends."""
        ends = [number for number, _ in self.states[1:]] + [self.end]
        return ((number, end, state) for (number, state), end in zip(self.states, ends, strict=True))


def bars_of(timeline: Timeline) -> list[Bar]:
    """Return the bars of a timeline's pods, those that were there first before the others, linked to successors.

    A pod without a step is unknown to a timeline.
    """
    owners, open_bars = TopControllers(timeline), dict[Key, Bar]()
    bars: list[Bar] = []
    for number, step in enumerate(timeline.steps):
        if step.key.resource != PODS:
            continue
        bar = open_bars.get(step.key)
        if bar is None or step.action == "created":
            new = step.action == "created"
            bar = open_bars[step.key] = Bar(step.key, owners.top(step), number if new else -1, len(timeline.steps))
            finished = step.action == "deleted" and bar.workload.resource in _JOBS
            before = PENDING if new else SUCCEEDED if finished else STATE_BEFORE.get(step.action, AVAILABLE)
            bar.states.append((bar.start, before))
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


class TopControllers:
    """The top controllers of a timeline's objects."""

    def __init__(self, timeline: Timeline) -> None:
        self._owners = {step.key: _owner_key(step) for step in timeline.steps if step.owner}
        self._workloads = {course.key for course in timeline.courses}

    def top(self, step: Step) -> Key:
        """Return the workload at the top of an object's owners: the object itself if it has none."""
        key, seen = step.key, set[Key]()
        while key not in seen:
            seen.add(key)
            key = self._owners.get(key) or self._by_name(key) or key
        return key

    def _by_name(self, key: Key) -> Key | None:
        """Return the workload that an owner without steps belongs to: its name begins with the workload's."""
        above = Key(_OWN_OWNER.get(key.resource, ""), key.namespace, key.name.rpartition("-")[0])
        return above if above in self._workloads else None


def _owner_key(step: Step) -> Key:
    resource, _, name = step.owner.partition("/")
    return Key(resource, step.key.namespace, name)


def link_successors(bars: Iterable[Bar], course: Course | None, steps: int) -> None:
    """Link each pod of a workload that another one replaces to that one.

    A pod that goes while its workload has too few is replaced by the next that comes; one that goes while there are too
    many, as with a surge, by one that has come. A pod of a DaemonSet is replaced on its node, one of a StatefulSet by
    that of its name.

    :param steps: the number of the timeline's steps.
    """
    numbers = list(course.numbers if course else ())
    staying = numbers[0][1].pods if numbers else sum(bar.start < 0 for bar in bars)
    gone, spare, desired = list[Bar](), list[Bar](), -1
    events = [(number, bar) for bar in bars for number in (bar.start, bar.removed) if 0 <= number < steps]
    for number, bar in sorted(events, key=lambda event: event[0]):
        while numbers and numbers[0][0] <= number + 1:
            desired = numbers.pop(0)[1].desired
        new = number == bar.start
        staying += 1 if new else -1
        waiting, same = gone if new else spare, spare if new else gone
        partner = next((other for other in waiting if _same_place(bar, other)), None)
        if partner is None:
            same.append(bar)
        else:
            waiting.remove(partner)
            old, successor = (partner, bar) if new else (bar, partner)
            old.successor = successor
        if desired >= 0:
            for pods, wanted in ((gone, desired - staying), (spare, staying - desired)):
                del pods[:max(len(pods) - max(wanted, 0), 0)]


def _same_place(bar: Bar, other: Bar) -> bool:
    """Tell whether one of two pods of a workload may stand in for the other."""
    if bar.workload.resource == "daemonsets.apps":
        return bar.node == other.node
    return bar.workload.resource != "statefulsets.apps" or bar.key == other.key
