"""The picture as svg: workloads with their availability above, below them the pods on their nodes.

Bars are horizontal strokes, collected in one path for each state and revision: a thousand pods take
little room, and the page zooms them by moving what stands in the paths (``page.js``).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from importlib.resources import files
from itertools import groupby, zip_longest
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from kubepy.api.clock import format_exact_time
from kubepy.api.values.goformat import format_duration
from kubepy.insight import Course, Timeline
from kubepy.insight.availability import JOBS, extremes, judge
from kubepy.insight.picture import (
    AVAILABLE,
    FAILED,
    NODES,
    PENDING,
    PODS,
    READY,
    STARTING,
    SUCCEEDED,
    TERMINATING,
    Bar,
    TopControllers,
    bars_of,
    idle_bars,
)
from kubepy.insight.picture.scale import Scale
from kubepy.storage import Key

WIDTH = 960
LEFT = 168
RIGHT = 12
PLOT = WIDTH - LEFT - RIGHT
HEAD = 52
AXIS = 24
CHART_GAP = 12
NODE_GAP = 6
PITCHES = ((24, 22), (60, 16), (150, 11), (400, 7))  # up to so many rows, the height of one
SMALLEST_PITCH = 4
MANY_WORKLOADS = 6  # from which on their charts are lower
CHARTS = ((34, 48), (18, 20))  # the heights of a chart's head and of itself: ordinary, low
LABEL_HEIGHT = 12
MOST_IDLE = 100  # pods without a step that are drawn
REVISIONS = 8
STATE_NAMES = {
    PENDING: "not scheduled",
    STARTING: "not ready",
    READY: "ready",
    AVAILABLE: "available",
    TERMINATING: "terminating",
    FAILED: "failing",
    SUCCEEDED: "succeeded",
}
# name: light, dark. Revisions differ for colour-blind eyes too; text has a contrast of 4.5 at least
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
    "r1": ("#b45309", "#f5a742"),
    "r2": ("#0f7660", "#4fd0ac"),
    "r3": ("#8a3f92", "#d9a0e4"),
    "r4": ("#6b6100", "#dccb4a"),
    "r5": ("#3f4fbf", "#a8b1ff"),
    "r6": ("#c02f6d", "#f27fb2"),
    "r7": ("#2a3740", "#e6edf1"),
}
Number = int | float


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


def number(value: Number) -> str:
    """Write a coordinate with two decimals at most."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    if abs(value) < 1:
        return text.replace("0.", ".", 1)
    return text


def shortened(text: str, room: float, size: float = 6.3) -> str:
    """Return a text that fits its room, with an ellipsis in its middle."""
    most = int(room / size)
    if not room or len(text) <= most:
        return text
    head = max((most - 1) // 2, 1)
    return f"{text[:head]}…{text[len(text) - max(most - 1 - head, 0) :]}"


class Drawing:
    """A drawing under way: paths on the time axis by class, texts on it and beside it.

    :ivar plot: class: pieces of the path's ``d``. Capital letters are places on the time axis, as
        is the length after ``h``; ``l`` and ``v`` are sizes that stay at any zoom.
    :ivar rows: (top, bottom, bar) of each bar.
    :ivar events: the numbers of the steps of each node, and of each workload with what it owns, but
        for pods.
    :ivar left_out: how many pods without a step are not drawn.
    :ivar names: (x, width, y, bar): the longest part of a bar that has room for its name.
    :ivar charts: of each workload the top of its part, and top and bottom of its chart.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline, self.scale, self.bars = timeline, Scale(timeline, PLOT), bars_of(timeline)
        idle = idle_bars(timeline, self.bars)
        self.left_out = len(idle) if len(idle) > MOST_IDLE else 0
        self.bars += idle if not self.left_out else []
        owners = TopControllers(timeline)
        self.events = defaultdict[Key, list[int]](list)
        for place, step in enumerate(timeline.steps):
            if step.key.resource != PODS:
                self.events[step.key if step.key.resource == NODES else owners.top(step)].append(
                    place
                )

        self.workloads = sorted(
            {*(course.key for course in timeline.courses), *(bar.workload for bar in self.bars)}
        )
        self.revisions = revision_classes(self.bars, self.workloads)
        self.plot, self.texts, self.ticks = (
            defaultdict[str, list[str]](list),
            list[Label](),
            list[Label](),
        )
        self.rows = list[tuple[float, float, Bar]]()
        self.names = list[tuple[float, float, float, Bar]]()
        self.charts = dict[Key, tuple[float, float, float]]()
        self.gaps, self.keys = list[Label](), list[str]()
        self.height = 0.0
        self.thickness = 0.0
        self.judged = {course.key: judge(course) for course in timeline.courses if course.numbers}

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


def revision_classes(bars: Iterable[Bar], workloads: Sequence[Key]) -> dict[tuple[Key, str], str]:
    """Return the class of each revision of each workload: older ones first, those that nothing has
    are "none"."""
    classes = dict[tuple[Key, str], str]()
    for bar in sorted(bars, key=lambda bar: (workloads.index(bar.workload), bar.start)):
        if bar.revision:
            classes.setdefault((bar.workload, bar.revision), f"r{len(classes) % REVISIONS}")
    return classes


# --- workloads ------------------------------------------------------------------------------------


def draw_charts(drawing: Drawing, top: float) -> float:
    """Draw the availability of each workload; returns where the next part begins."""
    courses = [course for course in sorted(drawing.timeline.courses) if course.numbers]
    head, height = CHARTS[len(courses) > MANY_WORKLOADS]
    for course in courses:
        drawing.charts[course.key] = (top, top + head, top + head + height)
        draw_chart_labels(drawing, course, is_low=len(courses) > MANY_WORKLOADS)
        draw_chart(drawing, course)
        top += head + height + CHART_GAP
    return top


def quartered(y: float) -> str:
    """Write a height to a quarter of a pixel: of a thousand pods a single one makes no
    difference."""
    return number(round(y * 4) / 4)


def runs(values: Iterable[tuple[float, tuple[Any, ...]]]) -> Iterable[tuple[Any, ...]]:
    """Yield (begin, end, *value) for each run of equal values along the time axis."""
    begins = [
        (value, next(places)[0]) for value, places in groupby(values, key=lambda place: place[1])
    ]
    for (value, x), after in zip_longest(begins, begins[1:]):
        yield x, after[1] if after else float(PLOT), *value


def draw_chart(drawing: Drawing, course: Course) -> None:
    """Draw the availability of a workload against its band, with the events of it and of what it
    owns above."""
    _, ceiling, floor = drawing.charts[course.key]
    places = [
        (drawing.scale.x(moment.step - 1), moment.numbers, moment)
        for moment in drawing.judged[course.key]
    ]
    most = max(
        1, *(max(numbers.staying, numbers.available, moment.most) for _, numbers, moment in places)
    )
    least = min(
        min(numbers.available, numbers.desired if moment.required is None else moment.required)
        for _, numbers, moment in places
    )
    base = least - max(most - least, 1) if least > most * 0.75 else 0

    def y(value: int) -> float:
        return floor - (floor - ceiling) * (max(value, base) - base) / (most - base)

    for x, end, low, high in runs((x, (moment.required, moment.most)) for x, _, moment in places):
        if low is not None:
            drawing.box("band", x, y(high), end - x, y(min(low, high)) - y(high))
            drawing.stroke("bound", x, y(low), end - x)

    for x, end, available, lacking in runs(
        (x, (numbers.available, moment.lacking)) for x, numbers, moment in places
    ):
        if lacking:
            drawing.stroke("low", x, y(available), end - x)

    for classes, values in (
        ("count", [numbers.staying for _, numbers, _ in places]),
        ("line", [numbers.available for _, numbers, _ in places]),
    ):
        line = list(
            runs((x, (quartered(y(value)),)) for (x, *_), value in zip(places, values, strict=True))
        )
        drawing.add(
            classes,
            f"M0 {line[0][2]}"
            + "".join(
                f"H{number(end)}{f'V{after[2]}' if after else ''}"
                for (_, end, _), after in zip_longest(line, line[1:])
            ),
        )

    drawing.stroke("frame", 0, floor, PLOT)
    drawing.texts += [
        Label(LEFT - 6, y(value) + 3.5, str(value), "small faint end y")
        for value in sorted({base, least, most})
        if value in (base, most) or y(value) - y(most) > 9
    ]
    level = ceiling - 14 if floor - ceiling > 30 else floor - 4
    for place in drawing.events[course.key]:
        drawing.add("event", f"M{number(drawing.scale.x(place))} {number(level)}l4 4l-4 4l-4-4z")


def draw_chart_labels(drawing: Drawing, course: Course, is_low: bool) -> None:
    """Write a workload's name, its revisions, and how it fared."""
    top = drawing.charts[course.key][0]
    key = course.key
    kind = f"{key.resource.partition('.')[0]} in {key.namespace}"
    revisions = [
        (revision, name)
        for (workload, revision), name in drawing.revisions.items()
        if workload == key
    ]
    drawing.texts.append(Label(LEFT, top + 14, summary_of(drawing, key), "small summary"))
    drawing.texts.append(Label(8, top + 14, key.name, "name", LEFT - 16))
    if is_low:
        drawing.texts.append(Label(8, top + 40, kind, "small faint", LEFT - 30))
    else:
        drawing.texts.append(Label(8, top + 29, kind, "small faint", LEFT - 30))

    for line, (revision, name) in enumerate(revisions[-3:]):
        x, y = (8 + line * 14, top + 24) if is_low else (8, top + 40 + 14 * line)
        drawing.keys.append(f'<path class="swatch {name}" d="M{x} {number(y)}h10"/>')
        if not is_low:
            drawing.texts.append(Label(23, y + 3.5, revision, "small", LEFT - 60))


def summary_of(drawing: Drawing, key: Key) -> str:
    """Say in one line how a workload fared: of Jobs, how their pods ended."""
    if key.resource in JOBS:
        ends = Counter(
            state for bar in drawing.bars if bar.workload == key for _, state in bar.states[-2:]
        )
        return (
            f"{ends[SUCCEEDED]} pod{'' if ends[SUCCEEDED] == 1 else 's'} succeeded, "
            f"{ends[FAILED]} failed"
        )

    judged = drawing.judged[key]
    worst = extremes(judged)
    last = judged[-1].numbers
    lowest = worst.lowest
    at_end = f"{last.available} of {last.desired} available at the end, {last.updated} updated"
    if not worst.is_up:
        return at_end
    budget = f" by budget {lowest.bounds.budget}" if lowest.bounds.budget else ""
    return (
        f"at least {lowest.numbers.available} of {lowest.numbers.desired} available"
        + (f" ({lowest.required} required{budget})" if lowest.required is not None else "")
        + f"; {at_end}"
    )


# --- nodes ----------------------------------------------------------------------------------------


def lanes_of(drawing: Drawing) -> dict[str, list[list[Bar]]]:
    """Return the rows of each node: pods of one workload share a row where they do not overlap."""
    nodes = {bar.node for bar in drawing.bars} | {
        step.key.name for step in drawing.timeline.steps if step.key.resource == NODES
    }
    order = {workload: place for place, workload in enumerate(drawing.workloads)}
    predecessor = {bar.successor: bar for bar in drawing.bars if bar.successor}
    lanes: dict[str, list[list[Bar]]] = {name: [] for name in sorted(nodes, key=natural)}
    for bar in sorted(drawing.bars, key=lambda bar: (order[bar.workload], bar.start)):
        free = [
            lane
            for lane in lanes[bar.node]
            if lane[-1].workload == bar.workload and lane[-1].end <= max(bar.start, 0)
        ]
        lane = next(
            (lane for lane in free if lane[-1] is predecessor.get(bar)), free[0] if free else None
        )
        if lane is None:
            lanes[bar.node].append([bar])
        else:
            lane.append(bar)

    return lanes


def natural(name: str) -> tuple[bool, list[tuple[int, str]]]:
    """Sort node-10 after node-9, and pods without a node last."""
    return not name, [
        (int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", name)
    ]


def draw_nodes(drawing: Drawing, top: float) -> float:
    """Draw the pods on their nodes; returns where the next part begins."""
    lanes = lanes_of(drawing)
    count = sum(max(len(rows), 1) for rows in lanes.values())
    pitch = next((pitch for most, pitch in PITCHES if count <= most), SMALLEST_PITCH)
    gap = NODE_GAP if len(lanes) <= 60 else 0
    drawing.thickness = max(round(pitch * 0.68), 3)
    places = dict[Bar, float]()
    labelled = 0.0
    for index, (node, rows) in enumerate(lanes.items()):
        height = pitch * max(len(rows), 1) + gap
        if index % 2 == 0:
            drawing.box("stripe", 0, top, PLOT, height)
        if top >= labelled:
            y = top + gap / 2 + min(pitch, 20) * 0.5 + 4
            drawing.texts.append(Label(8, y, node or "no node", "node", LEFT - 16))
            labelled = top + LABEL_HEIGHT
        draw_node_states(drawing, node, top)
        for line, row in enumerate(rows):
            y = top + gap / 2 + pitch * (line + 0.5)
            for bar in row:
                places[bar] = y
                draw_bar(drawing, bar, y)
                drawing.rows.append((y - pitch / 2, y + pitch / 2, bar))
        top += height

    for bar, y in places.items():
        if bar.successor:
            draw_link(drawing, bar, y, places[bar.successor])
    return top


def draw_node_states(drawing: Drawing, node: str, top: float) -> None:
    """Draw above a node's rows when it was not ready, and when it was cordoned."""
    since = dict[str, float]()
    begin = 0.0
    ends = {"ready": "down", "uncordoned": "cordon"}
    begins = {"not-ready": "down", "cordoned": "cordon"}
    for place in drawing.events[Key(NODES, "", node)]:
        x = drawing.scale.x(place)
        step = drawing.timeline.steps[place]
        if step.action == "created":
            begin = float(PLOT)  # it becomes ready for the first time
        elif step.action in begins:
            since.setdefault(begins[step.action], x)
        elif (state := ends.get(step.action)) and (start := since.pop(state, begin)) < x:
            drawing.stroke(state, start, top + 1.5, x - start)

    for state, x in since.items():
        drawing.stroke(state, x, top + 1.5, PLOT - x)


# of each state: classes, and the part of a bar's thickness; the first is in the colour of the
# revision
STROKES = {
    PENDING: (("dotted", 0),),
    STARTING: (("", 100), ("hollow", 70)),
    READY: (("", 100), ("hollow", 30)),
    AVAILABLE: (("", 100),),
    TERMINATING: (("striped", 100),),
    FAILED: (("", 100), ("hollow", 75), ("broken", 50)),
    SUCCEEDED: (("thin", 0),),
}


def stroke_classes(state: str, colour: str, size: str) -> list[str]:
    """Return the classes of a state's strokes, the first one below the others. They differ without
    their colour."""
    words = [
        [colour if not layer else "", style, f"{size}{part}" if part else ""]
        for layer, (style, part) in enumerate(STROKES[state])
    ]
    return [" ".join(filter(None, classes)) for classes in words]


def draw_bar(drawing: Drawing, bar: Bar, y: float) -> None:
    """Draw a pod: a stroke for each state; its name stands in the longest part that is solid, if it
    fits."""
    colour = drawing.revisions.get((bar.workload, bar.revision), "none")
    longest = 0.0
    place = 0.0
    for start, end, state in bar.spans():
        x = drawing.scale.x(start)
        width = drawing.scale.x(end) - drawing.scale.x(start)
        drawing.stroke(f"{state}-{colour}", x, y, width)
        if state == AVAILABLE and width > longest:
            longest = width
            place = x
    if drawing.thickness >= 11 and longest:
        drawing.names.append((place, longest, y + 3.5, bar))
        if longest > 5.4 * len(bar.key.name) + 8:
            drawing.texts.append(Label(LEFT + place + 5, y + 3.5, bar.key.name, "inbar"))


def draw_link(drawing: Drawing, bar: Bar, y: float, successor_y: float) -> None:
    """Link a pod to the one that replaces it."""
    successor = bar.successor
    if successor is None:
        return
    if y == successor_y and bar.end <= successor.start:
        drawing.stroke(
            "link",
            drawing.scale.x(bar.end),
            y,
            drawing.scale.x(successor.start) - drawing.scale.x(bar.end),
        )
        return

    x = drawing.scale.x(bar.removed)
    end = max(x, drawing.scale.x(successor.start))
    down = successor_y > y
    tip = successor_y + drawing.thickness / 2 * (-1 if down else 1)
    arrow = ""
    if drawing.thickness > 6:
        arrow = "l-3 -5l6 0z" if down else "l-3 5l6 0z"
    drawing.add(
        "link",
        f"M{number(x)} {number(y + drawing.thickness / 2 * (1 if down else -1))}"
        f"L{number(end)} {number(tip)}" + (f"M{number(end)} {number(tip)}{arrow}" if arrow else ""),
    )


# --- the whole ------------------------------------------------------------------------------------


def draw(timeline: Timeline, top: float) -> Drawing:
    """Lay a timeline out from ``top`` on."""
    drawing = Drawing(timeline)
    charts = top + AXIS
    pods = draw_charts(drawing, charts)
    below = draw_nodes(drawing, pods)
    draw_axis(drawing, top, below)
    drawing.height = below + 8
    return drawing


def draw_axis(drawing: Drawing, top: float, bottom: float) -> None:
    """Draw the moments, and the gaps that are cut short."""
    for moment in drawing.scale.moments:
        if moment.width > 1.5:
            drawing.box("moment", moment.x, top + AXIS - 4, moment.width, bottom - top - AXIS + 4)
        drawing.ticks.append(Label(moment.x, top + 14, moment.after, "tick"))
    for gap in drawing.scale.gaps:
        for x in (gap.x + gap.width * 0.4, gap.x + gap.width * 0.6):
            drawing.add("break", f"M{number(x)} {number(top + AXIS - 4)}V{number(bottom)}")
        drawing.gaps.append(Label(gap.x + gap.width / 2, top + 14, f"⋯{gap.text}⋯", "tick middle"))
    drawing.stroke("frame", 0, top + AXIS - 4, PLOT)


def visible_ticks(drawing: Drawing) -> Iterable[Label]:
    """Yield the times that have room: those of long gaps, then from left to right."""
    taken = list[tuple[float, float]]()
    for label in [*drawing.gaps, *drawing.ticks]:
        width = 6.5 * len(label.text) + 8
        start = label.x - (width / 2 if "middle" in label.classes else 4)
        if (
            all(start + width <= other or end <= start for other, end in taken)
            and start + width < PLOT + RIGHT
        ):
            taken.append((start, start + width))
            yield label._replace(x=LEFT + label.x)


LAYERS = (
    "stripe",
    "moment",
    "band",
    "bound",
    "break",
    "frame",
    "count",
    "line",
    "low",
    "event",
    "down",
    "cordon",
    "link",
)


def plot_of(drawing: Drawing) -> Iterable[str]:
    """Yield the elements of the plot from the ground up; a state of several strokes has its path
    once."""
    for classes in filter(drawing.plot.__contains__, LAYERS):
        yield f'<path class="{classes}" d="{"".join(drawing.plot[classes])}"/>\n'
    for name in sorted(drawing.plot.keys() - set(LAYERS)):
        state, _, colour = name.partition("-")
        first, *others = stroke_classes(state, colour, "t")
        yield f'<g class="{first}"><path id="{name}" d="{"".join(drawing.plot[name])}"/></g>\n'
        yield from (f'<use href="#{name}" class="{other}"/>\n' for other in others)


def body_of(drawing: Drawing) -> str:
    """Return the elements of a drawing: the plot, which moves when it is zoomed, and the texts
    beside it."""
    paths = "".join(plot_of(drawing))
    ticks = "".join(map(text_element, visible_ticks(drawing)))
    texts = "".join(map(text_element, drawing.texts))
    return (
        f'<svg class="plot" x="{LEFT}" width="{PLOT}" '
        f'height="{number(drawing.height)}">\n{paths}</svg>\n'
        f'<g class="ticks">{ticks}</g>\n<g class="texts">{"".join(drawing.keys)}{texts}</g>\n'
    )


def text_element(label: Label) -> str:
    """Return a text; one that is shortened says the whole when it is pointed at."""
    short = shortened(label.text, label.room, 5.5 if "small" in label.classes else 6.3)
    title = f"<title>{clean(label.text)}</title>" if short != label.text else ""
    return (
        f'<text class="{label.classes}" x="{number(label.x)}" '
        f'y="{number(label.y)}">{clean(short)}{title}</text>\n'
    )


def clean(text: str) -> str:
    """Escape a text for XML, which has no control characters."""
    return escape(
        re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text),
        {'"': "&quot;"},
    )


def thickness_rules(drawing: Drawing) -> str:
    """Return the style rules for the thickness of bars."""
    return "".join(
        f".t{part} {{ stroke-width: {number(max(drawing.thickness * part / 100, 1))}; }}\n"
        for part in (100, 75, 70, 50, 30)
    )


@cache
def resource_text(name: str) -> str:
    """Read a file of this package."""
    return files(__package__ or "").joinpath(name).read_text(encoding="utf-8")


def colour_rules() -> str:
    """Return the rules that colour the revisions."""
    return "".join(
        f".{name} {{ stroke: var(--{name}); }}\n"
        for name in [*(f"r{n}" for n in range(REVISIONS)), "none"]
    )


def themed(rules: str, theme: int) -> str:
    """Put the colours of a theme in the place of variables."""
    return re.sub(r"var\(--(\w+)\)", lambda match: COLOURS[match[1]][theme], rules)


def svg_style(drawing: Drawing) -> str:
    """Return the style of an svg that stands alone: literal colours, since not every viewer knows
    variables."""
    rules = resource_text("drawing.css") + colour_rules()
    coloured = "".join(line for line in rules.splitlines(keepends=True) if "var(" in line)
    dark = re.sub(
        r"(?<=\{ ).*(?= \})",
        lambda match: "; ".join(
            part for part in match[0].rstrip(";").split("; ") if "var(" in part
        ),
        coloured,
    )
    return (
        themed(rules, 0)
        + thickness_rules(drawing)
        + f"@media (prefers-color-scheme: dark) {{\n{themed(dark, 1)}}}\n"
    )


def caption_of(timeline: Timeline, left_out: int = 0) -> str:
    """Say from when to when a timeline goes, and how many pods are not drawn."""
    span = format_duration((timeline.until - timeline.since).total_seconds())
    return (
        f"{format_exact_time(timeline.since)} to {format_exact_time(timeline.until)} ({span})"
        + (f", without {left_out} pods that stayed as they were" if left_out else "")
    )


def description_of(drawing: Drawing) -> str:
    """Say in words what a picture shows."""
    courses = "".join(
        f" {course.key.resource}/{course.key.name} in {course.key.namespace}: "
        f"{summary_of(drawing, course.key)}."
        for course in sorted(drawing.timeline.courses)
        if course.numbers
    )
    return f"{len(drawing.timeline.steps)} steps.{courses}"


def swatch(state: str, x: float, y: float) -> str:
    """Return a sample of a state."""
    return "".join(
        f'<path class="{classes}" d="M{number(x)} {number(y)}h26"/>'
        for classes in stroke_classes(state, "none", "s")
    )


def legend_of(drawing: Drawing) -> list[tuple[str, Callable[[float, float], str]]]:
    """Return the names of what a drawing shows, each with a function that draws a sample from x on,
    around y."""

    def sample(classes: str, path: str) -> Callable[[float, float], str]:
        return lambda x, y: f'<path class="{classes}" d="M{number(x)} {number(y)}{path}"/>'

    def mark(classes: str) -> Callable[[float, float], str]:
        return sample(classes, "h26")

    states = {state for bar in drawing.bars for *_, state in bar.spans()}
    signs = (
        ("available pods", "line", mark("line")),
        ("pods that stay", "count", mark("count")),
        ("allowed", "band", lambda x, y: sample("band", "v-10h26v10z")(x, y + 5)),
        ("fewer than required", "low", mark("low")),
        ("change", "event", lambda x, y: sample("event", "l4 4l-4 4l-4-4z")(x + 13, y - 4)),
        ("replaced by", "link", lambda x, y: sample("link", "l0 10m0 0l-3 -5l6 0z")(x + 13, y - 5)),
        ("node not ready", "down", mark("down")),
        ("node cordoned", "cordon", mark("cordon")),
        (
            "gap, shortened",
            "break",
            lambda x, y: (
                sample("break", "v12")(x + 8, y - 6) + sample("break", "v12")(x + 18, y - 6)
            ),
        ),
    )
    return [
        *((name, partial(swatch, state)) for state, name in STATE_NAMES.items() if state in states),
        *((name, draw_sample) for name, classes, draw_sample in signs if classes in drawing.plot),
    ]


def legend_svg(drawing: Drawing) -> tuple[str, float]:
    """Return the legend, and where it ends."""
    pieces = list[str]()
    x = 8.0
    y = drawing.height + 18
    for name, draw_sample in legend_of(drawing):
        width = 54 + 5.6 * len(name)
        if x + width > WIDTH:
            x = 8.0
            y = y + 20
        pieces.append(draw_sample(x, y - 4) + text_element(Label(x + 32, y, name, "small")))
        x += width
    return "".join(pieces), y + 12


def render_svg(timeline: Timeline) -> str:
    """Draw a timeline as svg, light or dark as its viewer prefers."""
    drawing = draw(timeline, HEAD)
    legend, bottom = legend_svg(drawing)
    height = number(bottom)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" '
        f'role="img" aria-labelledby="title description">\n<title id="title">Timeline: '
        f"{caption_of(timeline)}</title>\n"
        f'<desc id="description">{clean(description_of(drawing))}</desc>\n'
        f'<style>\n{svg_style(drawing)}</style>\n<rect class="ground" width="{WIDTH}" '
        f'height="{height}"/>\n'
        f'<text class="title" x="8" y="24">Timeline</text>\n'
        f'<text class="faint" x="8" y="42">{caption_of(timeline, drawing.left_out)}</text>\n'
        f"{body_of(drawing)}{legend}</svg>\n"
    )
