"""The drawing under way, which the other parts draw on: its sizes, colours, paths and texts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from xml.sax.saxutils import escape

from kubepy.insight import Timeline
from kubepy.insight.availability import JOBS, judge
from kubepy.insight.picture import (
    FAILED,
    NODES,
    PODS,
    Bar,
    TopControllers,
    all_bars,
)
from kubepy.insight.picture.scale import Scale
from kubepy.insight.picture.words import Words
from kubepy.insight.steps import AVAILABLE, CREATED, DELETED, READY, TERMINATING
from kubepy.storage import Key

WIDTH = 960
LEFT = 176
RIGHT = 12
PLOT = WIDTH - LEFT - RIGHT
MOST_PODS = 60  # where there are more, rows are of several pods
CHARACTER, BOLD_CHARACTER, SMALL_CHARACTER = 6.3, 6.9, 5.5  # the widths of letters, on average
NAME_CHARACTER = 5.4  # of a letter of a pod's name
REVISIONS = 6
# name: light, dark. Revisions differ for all eyes: a test measures it. Text has a contrast of 4.5
COLOURS = {
    "ground": ("#ffffff", "#14181d"),
    "text": ("#1b2127", "#e8edf2"),
    "faint": ("#596673", "#a2b0bd"),
    "stripe": ("#f5f7f9", "#1a2027"),
    "moment": ("#1b212712", "#e8edf214"),
    "frame": ("#a9b4bf", "#566472"),
    "band": ("#bfe3d0", "#1d4735"),
    "bound": ("#2b7a55", "#5fb98f"),
    "fail": ("#b3122b", "#ff7d87"),
    "inbar": ("#ffffff", "#0b0e11"),
    "none": ("#56616b", "#aab5bf"),
    "r0": ("#0b63a8", "#6cb6f5"),
    "r1": ("#c05703", "#f5a742"),
    "r2": ("#1601a6", "#8f66ec"),
    "r3": ("#853958", "#ca5e93"),
    "r4": ("#094a1c", "#3b9867"),
    "r5": ("#410c43", "#21ffb7"),
}
Number = int | float


class Mark(NamedTuple):
    """Something to point out in a picture: a harm that a plan has found.

    :ivar key: the object that it is about; it need not be a workload.
    :ivar at: when it begins; ``until``: when it ends, None where it lasts.
    :ivar text: what it is, in a few words: ``outage``.
    """

    key: Key
    at: datetime
    text: str
    until: datetime | None = None


class Label(NamedTuple):
    """A text of the drawing.

    :ivar text: the whole text; what is longer than its place is shortened.
    :ivar room: the width of its place; 0: as wide as it is.
    """

    x: float
    y: float
    text: str
    classes: str = ""
    room: float = 0


class Note(NamedTuple):
    """A text on the time axis, which has the room up to the next note of its line.

    :ivar x: where it begins; what it is about is to the left of it.
    """

    x: float
    y: float
    text: str
    classes: str = ""


class Name(NamedTuple):
    """A text in a bar. It is there if it fits, that of a pod that failed always."""

    x: float
    width: float
    y: float
    text: str
    classes: str = "inbar"


class BarRow(NamedTuple):
    """The row of a bar, which others may share."""

    top: float
    bottom: float
    bar: Bar


class Fold(NamedTuple):
    """A row that stands for several pods.

    :ivar idle: how many of them nothing happened to.
    """

    top: float
    bottom: float
    text: str
    idle: int


def number(value: Number) -> str:
    """Write a coordinate with two decimals at most."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    if abs(value) < 1:
        return text.replace("0.", ".", 1)
    return text


def shortened(text: str, room: float, size: float = CHARACTER, *, at_end: bool = False) -> str:
    """Return a text that fits its room, with an ellipsis in its middle, or at its end."""
    most = int(room / size)
    if not room or len(text) <= most:
        return text
    if at_end:
        return f"{text[: max(most - 1, 1)]}…"
    head = max((most - 1) // 2, 1)
    return f"{text[:head]}…{text[len(text) - max(most - 1 - head, 0) :]}"


def clean(text: str) -> str:
    """Escape a text for XML, which has no control characters."""
    return escape(
        re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text),
        {'"': "&quot;"},
    )


class Drawing:
    """A drawing under way: paths on the time axis by class, texts on it and beside it.

    :ivar plot: class: pieces of the path's ``d``. Capital letters are places on the time axis, as
        is the length after ``h``; ``V`` is a height, ``l`` and ``v`` are sizes that stay at any
        zoom.
    :ivar rows: the place of each bar.
    :ivar folds: the rows that stand for several pods.
    :ivar events: the numbers of the steps of each node, and of each workload with what it owns, but
        for pods.
    :ivar names: the texts in bars, ``notes`` those beside changes.
    :ivar charts: of each workload the top of its part, and the bottom of its chart.
    :ivar workloads: those that are drawn, in the order of what happened to them;
        ``judged_workloads``: those of them that have numbers; ``places``: where each stands.
    """

    def __init__(self, timeline: Timeline, marks: Sequence[Mark] = ()) -> None:
        self.timeline = timeline
        self.marks = marks
        self.owners = TopControllers(timeline)
        self.words = Words(timeline, self.owners)
        self.bars = all_bars(timeline, self.owners)
        self.scale = Scale(timeline, PLOT, minor_steps(timeline, self.owners))
        self.is_folded = len(self.bars) > MOST_PODS
        self.events = defaultdict[Key, list[int]](list)
        for place, step in enumerate(timeline.steps):
            if step.key.resource == NODES:
                self.events[step.key].append(place)
            elif step.key.resource != PODS:
                self.events[self.owners.top(step)].append(place)

        self.judged = {course.key: judge(course) for course in timeline.courses if course.numbers}
        self.by_workload = defaultdict[Key, list[Bar]](list)
        for bar in self.bars:
            self.by_workload[bar.workload].append(bar)
        self.ranks = {
            key: self._rank(key)
            for key in dict.fromkeys((*self.by_workload, *(c.key for c in timeline.courses)))
        }
        self.workloads = sorted(self.ranks, key=self._place)
        self.judged_workloads = [key for key in self.workloads if key in self.judged]
        self.places = {key: place for place, key in enumerate(self.workloads)}
        self.revisions = revision_classes(self.bars, self.places)

        self.plot = defaultdict[str, list[str]](list)
        self.texts = list[Label]()
        self.ticks = list[Label]()
        self.gaps = list[Label]()
        self.days = list[Label]()
        self.notes = list[Note]()
        self.names = list[Name]()
        self.keys = list[str]()
        self.rows = list[BarRow]()
        self.folds = list[Fold]()
        self.charts = dict[Key, tuple[float, float]]()
        self.height = 0.0
        self.thickness = 0.0

    def _rank(self, key: Key) -> int:
        """Say how much happened to a workload: 0 for harm, 1 for a change, 2 for pods that came or
        went, 3 for Jobs that did their work."""
        if any(mark.key == key for mark in self.marks):
            return 0
        if any(bar.has_failed for bar in self.by_workload[key]):
            return 0
        if key.resource in JOBS:
            return 3
        judged = self.judged.get(key, ())
        is_short = judged and judged[-1].numbers.available < judged[-1].numbers.desired
        if is_short or any(moment.lacking for moment in judged):
            return 0
        if self.own_events(key):
            return 1
        return 2

    def _place(self, key: Key) -> tuple[int, int, int, Key]:
        """Say where a workload stands among the others: by its rank, then those first that were
        changed most often, then those of most pods."""
        steps = self.timeline.steps
        changes = [place for place in self.own_events(key) if steps[place].action != CREATED]
        return self.ranks[key], -len(changes), -len(self.by_workload[key]), key

    def own_events(self, key: Key) -> list[int]:
        """Return the numbers of the steps of a workload itself; ReplicaSets only follow it."""
        steps = self.timeline.steps
        return [place for place in self.events[key] if steps[place].key == key]

    def label(self, workload: Key, revision: str) -> str:
        """Say what a revision brought, beside its hash."""
        return " ".join(filter(None, (self.words.labels.get((workload, revision)), revision)))

    def add(self, classes: str, path: str) -> None:
        self.plot[classes].append(path)

    def box(self, classes: str, x: float, y: float, width: float, height: float) -> None:
        """Fill a rectangle on the time axis."""
        self.add(
            classes, f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z"
        )

    def stroke(self, classes: str, x: float, y: float, width: float) -> None:
        """Draw a horizontal line on the time axis."""
        self.add(classes, f"M{number(x)} {number(y)}h{number(width)}")


def minor_steps(timeline: Timeline, owners: TopControllers) -> set[int]:
    """Return the numbers of the steps that need no room of their own: the runs of Jobs, and the
    turns of crash loops."""
    minor = set[int]()
    failing = set[Key]()
    for number_, step in enumerate(timeline.steps):
        is_turn = step.key in failing and step.action in ("restarted", "waiting")
        if is_turn or owners.top(step).resource in JOBS:
            minor.add(number_)
        if step.action in (READY, AVAILABLE, TERMINATING, DELETED):
            failing.discard(step.key)
        elif step.action == "restarted" or (step.action == "waiting" and step.node):
            failing.add(step.key)
    return minor


def revision_classes(bars: Iterable[Bar], places: Mapping[Key, int]) -> dict[tuple[Key, str], str]:
    """Return the class of each revision of each workload: older ones first, those that nothing has
    are "none".

    :param places: where each workload stands among the others.
    """
    classes = dict[tuple[Key, str], str]()
    for bar in sorted(bars, key=lambda bar: (places[bar.workload], bar.start)):
        if bar.revision:
            classes.setdefault((bar.workload, bar.revision), f"r{len(classes) % REVISIONS}")
    return classes


def pattern_class(colour: str) -> str:
    """Return the class of the pattern that goes with a revision's colour; "" where there is none:
    for the first revision, and for pods without one."""
    if colour in ("r0", "none"):
        return ""
    return f"p{colour[1:]}"


def failed_span(bar: Bar, scale: Scale) -> tuple[float, float]:
    """Return begin and width of the longest time for which a pod failed."""
    spans = [
        (scale.x(start), scale.x(end) - scale.x(start))
        for start, end, state in bar.spans()
        if state == FAILED
    ]
    return max(spans, key=lambda span: span[1])
