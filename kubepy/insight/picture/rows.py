"""The part of a picture about pods: a bar for each on its node, or folded rows where they are many.

A folded row is of one revision of a workload on a node, or on several nodes. Its height says how
many pods there were. Workloads of which little happened share a row. Pods that failed keep rows of
their own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from kubepy.insight.availability import JOBS
from kubepy.insight.picture import (
    AVAILABLE,
    FAILED,
    NODES,
    PENDING,
    READY,
    STARTING,
    SUCCEEDED,
    TERMINATING,
    Bar,
)
from kubepy.insight.picture.charts import runs
from kubepy.insight.picture.drawing import (
    LEFT,
    NAME_CHARACTER,
    PLOT,
    BarRow,
    Drawing,
    Fold,
    Label,
    Name,
    failed_span,
    number,
    pattern_class,
)
from kubepy.storage import Key

NODE_GAP = 6
# (most rows, height of each row in pixels); more rows than all of these have the small height
PITCHES = ((24, 22),)
SMALL_PITCH = 16
FOLDED_PITCHES = ((12, 22), (24, 16))
SMALL_FOLDED_PITCH = 12
# Nodes share rows where there would be more folded rows than MOST_FOLDS, or than fit on the screen;
# but LEAST_FOLDS are drawn even where they do not fit.
MOST_FOLDS, LEAST_FOLDS = 40, 16
SCREEN = 900.0  # pixels of height
MOST_FAILING = 10  # pods that keep rows of their own
MOST_LINKS = 8  # arrows between rows
MUST_SHOW = "inbar failed"  # the classes of names that are there even if they do not fit
SLOTS = 4  # places on a pixel of width that a folded row tells apart
LEAST_HEIGHT = 3.0  # of a pod in a folded row
COUNT_ROOM = 36.0  # the least room of a count in a folded row


def draw_pods(drawing: Drawing, top: float) -> float:
    """Draw the pods on their nodes; returns where the next part begins."""
    if drawing.is_folded:
        return draw_folded(drawing, top)
    return draw_nodes(drawing, top)


def natural(name: str) -> tuple[bool, list[tuple[int, str]]]:
    """Sort node-10 after node-9, and pods without a node last."""
    return not name, [
        (int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", name)
    ]


def node_names(drawing: Drawing) -> list[str]:
    """Return the nodes that something happened to, or that have pods; "" for pods without one."""
    nodes = {bar.node for bar in drawing.bars}
    nodes |= {step.key.name for step in drawing.timeline.steps if step.key.resource == NODES}
    return sorted(nodes, key=natural)


# --- a bar for each pod ---------------------------------------------------------------------------


def lanes_of(drawing: Drawing) -> dict[str, list[list[Bar]]]:
    """Return the rows of each node: pods of one workload share a row where they do not overlap.
    Behind a pod that has failed there is nothing: its name may need the room."""
    predecessor = {bar.successor: bar for bar in drawing.bars if bar.successor}
    lanes: dict[str, list[list[Bar]]] = {name: [] for name in node_names(drawing)}
    for bar in sorted(drawing.bars, key=lambda bar: (drawing.places[bar.workload], bar.start)):
        free = [
            lane
            for lane in lanes[bar.node]
            if lane[-1].workload == bar.workload
            and lane[-1].end <= max(bar.start, 0)
            and not lane[-1].has_failed
        ]
        lane = next(
            (lane for lane in free if lane[-1] is predecessor.get(bar)), free[0] if free else None
        )
        if lane is None:
            lanes[bar.node].append([bar])
        else:
            lane.append(bar)

    return lanes


def draw_nodes(drawing: Drawing, top: float) -> float:
    """Draw a bar for each pod; returns where the next part begins."""
    lanes = lanes_of(drawing)
    count = sum(max(len(rows), 1) for rows in lanes.values())
    pitch = next((pitch for most, pitch in PITCHES if count <= most), SMALL_PITCH)
    drawing.thickness = max(round(pitch * 0.68), 3)
    places = dict[Bar, float]()
    for index, (node, rows) in enumerate(lanes.items()):
        height = pitch * max(len(rows), 1) + NODE_GAP
        if index % 2 == 0:
            drawing.box(
                "stripe",
                0,
                top,
                PLOT,
                height,
            )
        y = top + NODE_GAP / 2 + pitch * 0.5 + 4
        drawing.texts.append(
            Label(
                8,
                y,
                node or "no node",
                "node",
                LEFT - 16,
            )
        )
        draw_node_states(drawing, node, top)
        for line, row in enumerate(rows):
            y = top + NODE_GAP / 2 + pitch * (line + 0.5)
            for bar in row:
                places[bar] = y
                draw_bar(drawing, bar, y)
                drawing.rows.append(BarRow(y - pitch / 2, y + pitch / 2, bar))
        top += height

    draw_links(drawing, places)
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
            drawing.stroke(
                state,
                start,
                top + 1.5,
                x - start,
            )

    for state, x in since.items():
        drawing.stroke(
            state,
            x,
            top + 1.5,
            PLOT - x,
        )


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
    fits. That of a pod that failed is always there."""
    colour = drawing.revisions.get((bar.workload, bar.revision), "none")
    longest = 0.0
    place = 0.0
    for start, end, state in bar.spans():
        x = drawing.scale.x(start)
        width = drawing.scale.x(end) - drawing.scale.x(start)
        drawing.stroke(
            f"{state}-{colour}",
            x,
            y,
            width,
        )
        if state == AVAILABLE and width > longest:
            longest = width
            place = x

    if bar.has_failed:
        begin, width = failed_span(bar, drawing.scale)
        text = f"{bar.key.name} {bar.reason}".rstrip()
        drawing.names.append(
            Name(
                begin,
                width,
                y + 3.5,
                text,
                MUST_SHOW,
            )
        )
    elif longest:
        drawing.names.append(
            Name(
                place,
                longest,
                y + 3.5,
                bar.key.name,
            )
        )


def name_width(text: str, classes: str) -> float:
    """Return the room that a name needs; that of a pod that failed is bold."""
    return NAME_CHARACTER * len(text) * (1.15 if classes == MUST_SHOW else 1) + 8


def visible_names(drawing: Drawing) -> Iterator[Label]:
    """Yield the names that fit in their bars, and those that must be there."""
    for name in drawing.names:
        width = name_width(name.text, name.classes)
        if name.classes == MUST_SHOW:
            x = max(min(name.x, PLOT - width), 0)
            yield Label(
                LEFT + x + 5,
                name.y,
                name.text,
                name.classes,
            )
        elif width < name.width:
            yield Label(
                LEFT + name.x + 5,
                name.y,
                name.text,
                name.classes,
            )


def draw_links(drawing: Drawing, places: dict[Bar, float]) -> None:
    """Link pods to those that replace them. More than a few arrows would hide the rest."""
    pairs = [(bar, bar.replacement) for bar in places if bar.replacement in places]
    is_few = sum(places[bar] != places[other] for bar, other in pairs if other) <= MOST_LINKS
    for bar, other in pairs:
        if other is not None and places[bar] == places[other] and bar.end <= other.start:
            begin = drawing.scale.x(bar.end)
            drawing.stroke(
                "link",
                begin,
                places[bar],
                drawing.scale.x(other.start) - begin,
            )
        elif other is not None and is_few:
            draw_arrow(drawing, (bar, places[bar]), (other, places[other]))


def draw_arrow(drawing: Drawing, bar: tuple[Bar, float], other: tuple[Bar, float]) -> None:
    """Draw an arrow from a pod to the one in another row that replaces it."""
    x = drawing.scale.x(bar[0].removed)
    end = max(x, drawing.scale.x(other[0].start))
    down = 1 if other[1] > bar[1] else -1
    tip = other[1] - drawing.thickness / 2 * down
    begin = bar[1] + drawing.thickness / 2 * down
    head = "l-3 -5l6 0z" if down > 0 else "l-3 5l6 0z"
    tip_text = f"{number(end)} {number(tip)}"
    drawing.add("link", f"M{number(x)} {number(begin)}L{tip_text}M{tip_text}{head}")


# --- folded rows ----------------------------------------------------------------------------------


class Count(NamedTuple):
    """How many pods of a row there were from a place on. What is above in the row includes what is
    below it: ``coming`` counts the available pods, too, ``there`` also those that terminate."""

    failing: int = 0
    available: int = 0
    coming: int = 0
    there: int = 0


class FoldedRow(NamedTuple):
    """The pods that share a row.

    :ivar colour: the class of their revision.
    :ivar counts: how many pods there are from each step on.
    """

    text: str
    colour: str
    bars: list[Bar]
    counts: list[tuple[int, Count]]

    @property
    def scale_key(self) -> Key | None:
        """The workload whose rows have one scale; None for those of several workloads."""
        workloads = {bar.workload for bar in self.bars}
        return workloads.pop() if len(workloads) == 1 else None

    @property
    def most(self) -> int:
        """How many pods there are at most."""
        return max((count.there for _, count in self.counts), default=1) or 1


class NodeGroup(NamedTuple):
    """Nodes that share rows, with their rows, and the pods that have rows of their own."""

    nodes: list[str]
    rows: list[FoldedRow]
    failing: list[Bar]


def draw_folded(drawing: Drawing, top: float) -> float:
    """Draw folded rows; returns where the next part begins."""
    fitting = int((SCREEN - top) / (SMALL_FOLDED_PITCH + NODE_GAP / 2))
    groups = node_groups(drawing, max(min(fitting, MOST_FOLDS), LEAST_FOLDS))
    count = sum(len(group.rows) + len(group.failing) for group in groups)
    pitch = next((pitch for most, pitch in FOLDED_PITCHES if count <= most), SMALL_FOLDED_PITCH)
    drawing.thickness = round(pitch * 0.68)
    most = defaultdict[Key | None, int](int)  # pods in a row, by what has one scale
    for row in (row for group in groups for row in group.rows):
        most[row.scale_key] = max(most[row.scale_key], row.most)
    for index, group in enumerate(groups):
        height = pitch * max(len(group.rows) + len(group.failing), 1) + NODE_GAP
        if index % 2 == 0:
            drawing.box(
                "stripe",
                0,
                top,
                PLOT,
                height,
            )
        y = top + NODE_GAP / 2 + pitch / 2 + 4
        drawing.texts.append(
            Label(
                8,
                y,
                group_text(group.nodes),
                "node",
                70,
            )
        )
        for node in group.nodes:
            draw_node_states(drawing, node, top)
        y = top + NODE_GAP / 2
        for row in group.rows:
            draw_fold(
                drawing,
                row,
                (y, y + pitch),
                most[row.scale_key],
            )
            y += pitch
        for bar in group.failing:
            draw_bar(drawing, bar, y + pitch / 2)
            drawing.rows.append(BarRow(y, y + pitch, bar))
            y += pitch
        top += height
    return top


def group_text(nodes: Sequence[str]) -> str:
    """Return a name for several nodes."""
    if len(nodes) == 1:
        return nodes[0] or "no node"
    return f"{nodes[0]} +{len(nodes) - 1}"


def node_groups(drawing: Drawing, most: int) -> list[NodeGroup]:
    """Return the nodes with their rows; so many share rows that there are not more than ``most``,
    if that can be."""
    failing = failing_bars(drawing)
    names = node_names(drawing)
    bars = defaultdict[str, list[Bar]](list)
    for bar in drawing.bars:
        bars[bar.node].append(bar)
    quiet = quiet_workloads(drawing)
    needed = {node: {row_key(bar, quiet) for bar in own} for node, own in bars.items()}
    size = 1
    while size < len(names):
        rows = sum(
            len(set().union(*(needed.get(node, set()) for node in nodes)))
            for nodes in chunks(names, size)
        )
        if rows <= most:
            break
        size = max(size + 1, size * rows // most)  # with less there are more rows, too
    return [
        node_group(
            drawing,
            nodes,
            [bar for node in nodes for bar in bars[node]],
            failing,
            quiet,
        )
        for nodes in chunks(names, size)
    ]


def quiet_workloads(drawing: Drawing) -> set[Key]:
    """Return the workloads that share a row on each node: Jobs, and those to which little
    happened."""
    quiet = {key for key in drawing.workloads if drawing.ranks[key] > 1 or key.resource in JOBS}
    if len(quiet) == 1 and not any(key.resource in JOBS for key in quiet):
        return set()
    return quiet


def row_key(bar: Bar, quiet: Collection[Key]) -> tuple[Key, str] | None:
    """Return what the pods of a row have in common; None for that of several workloads."""
    if bar.workload in quiet:
        return None
    return bar.workload, bar.revision


def chunks(names: Sequence[str], size: int) -> Iterator[list[str]]:
    """Yield names by so many; pods without a node stay alone."""
    nodes = [name for name in names if name]
    for first in range(0, len(nodes), size):
        yield nodes[first : first + size]
    if "" in names:
        yield [""]


def failing_bars(drawing: Drawing) -> set[Bar]:
    """Return the pods that keep rows of their own: those that failed, as long as they are few. Of
    Jobs, their row above shows it."""
    failing = [bar for bar in drawing.bars if bar.has_failed and bar.workload.resource not in JOBS]
    return set(failing[:MOST_FAILING])


def node_group(
    drawing: Drawing,
    nodes: list[str],
    bars: Iterable[Bar],
    failing: Collection[Bar],
    quiet: Collection[Key],
) -> NodeGroup:
    """Return the rows of nodes: one for each revision of the workloads that were changed, one for
    all others.

    :param failing: the pods that keep rows of their own.
    :param quiet: the workloads that share a row.
    """
    shared = defaultdict[tuple[Key, str] | None, list[Bar]](list)
    own = []
    for bar in bars:
        if bar in failing:
            own.append(bar)
        else:
            shared[row_key(bar, quiet)].append(bar)

    rows = [
        revision_row(drawing, *key, shared[key])
        for key in sorted(
            filter(None, shared), key=lambda key: (drawing.places[key[0]], shared[key][0].start)
        )
    ]
    if others := shared.get(None):
        rows.append(
            FoldedRow(
                others_text(others),
                "none",
                others,
                counts_of(others),
            )
        )
    return NodeGroup(nodes, rows, own)


def others_text(bars: Iterable[Bar]) -> str:
    """Name the workloads that share a row."""
    workloads = {bar.workload for bar in bars}
    if all(key.resource in JOBS for key in workloads):
        return "jobs"
    if len(workloads) == 1:
        return next(iter(workloads)).name
    return f"{len(workloads)} others"


def revision_row(drawing: Drawing, workload: Key, revision: str, bars: list[Bar]) -> FoldedRow:
    """Return the row of a revision, named by what it brought."""
    text = drawing.words.labels.get((workload, revision)) or revision
    if not text.startswith(workload.name):
        text = f"{workload.name} {text}".rstrip()
    colour = drawing.revisions.get((workload, revision), "none")
    return FoldedRow(
        text,
        colour,
        bars,
        counts_of(bars),
    )


def counts_of(bars: Iterable[Bar]) -> list[tuple[int, Count]]:
    """Return how many pods there are from each step on. A pod of a Job counts as available while it
    runs."""
    changes = defaultdict[int, list[int]](lambda: [0, 0, 0, 0])  # of the fields of Count
    for bar in bars:
        is_job = bar.workload.resource in JOBS
        for start, end, state in bar.spans():
            if state == SUCCEEDED:
                continue
            is_running = state == AVAILABLE or (is_job and state in (STARTING, READY))
            is_failing = state == FAILED
            is_available = is_failing or is_running
            for place, sign in ((start, 1), (end, -1)):
                change = changes[place]
                change[0] += sign * is_failing
                change[1] += sign * is_available
                change[2] += sign * (state != TERMINATING)
                change[3] += sign

    failing = available = coming = there = 0
    counts = []
    for place in sorted(changes):
        change = changes[place]
        failing += change[0]
        available += change[1]
        coming += change[2]
        there += change[3]
        counts.append(
            (
                place,
                Count(
                    failing,
                    available,
                    coming,
                    there,
                ),
            )
        )
    return counts


FOLD_FIELDS = ("there", "coming", "available", "failing")  # the largest first


def draw_fold(drawing: Drawing, row: FoldedRow, place: tuple[float, float], most: int) -> None:
    """Draw a folded row: areas, the largest below the others, and counts in them."""
    top, bottom = place
    floor = bottom - 1.0
    height = floor - top - 1.0
    counts = list(by_slot((drawing.scale.x(step), count) for step, count in row.counts))
    lines = [[count[place] for _, count in counts] for place in (3, 2, 1, 0)]
    places = [x for x, _ in counts]
    for field, line, above in zip(
        FOLD_FIELDS,
        lines,
        [*lines[1:], None],
        strict=True,
    ):
        if line != above and any(line):  # or else it is hidden
            colour = "fail" if field == "failing" else row.colour
            path = "".join(
                area(
                    places,
                    line,
                    floor,
                    height / most,
                )
            )
            drawing.add(f"fold {field}-{colour}", path)
    if pattern := pattern_class(row.colour):
        for begin, end, is_there in runs((x, (count.there > 0,)) for x, count in counts):
            if is_there:
                drawing.stroke(f"base {pattern}", begin, floor - 1, end - begin)
    drawing.names += count_names(counts, (top + bottom) / 2 + 3.5)

    label = Label(
        LEFT - 6,
        (top + bottom) / 2 + 3.5,
        row.text,
        "small faint end y",
        LEFT - 86,
    )
    drawing.texts.append(label)
    drawing.rows += [BarRow(top, bottom, bar) for bar in row.bars if bar.last >= 0]
    idle = sum(bar.last < 0 for bar in row.bars)
    drawing.folds.append(
        Fold(
            top,
            bottom,
            row.text,
            idle,
        )
    )


def by_slot(counts: Iterable[tuple[float, Count]]) -> Iterator[tuple[float, Count]]:
    """Yield counts at places that can be told apart: of those that are nearer, the highest, then
    the last."""
    slots: list[tuple[int, Count, Count]] = []
    for x, count in counts:
        slot = round(x * SLOTS)
        if slots and slots[-1][0] == slot:
            slots[-1] = slot, Count(*map(max, slots[-1][1], count)), count
        else:
            slots.append((slot, count, count))
    ends = [slot for slot, *_ in slots[1:]] + [round(PLOT * SLOTS)]
    for (slot, highest, last), end in zip(slots, ends, strict=True):
        yield slot / SLOTS, highest
        if highest != last and slot + 1 < end:
            yield (slot + 1) / SLOTS, last


def area(
    places: Sequence[float], values: Sequence[int], floor: float, unit: float
) -> Iterator[str]:
    """Yield the pieces of the areas under a line of steps, where it is not 0."""
    tops = {
        value: number(floor - max(round(value * unit * SLOTS) / SLOTS, LEAST_HEIGHT))
        for value in dict.fromkeys(values)
        if value
    }
    foot = number(floor)
    before = ""
    for x, value in zip([*places, float(PLOT)], [*values, 0], strict=True):
        top = tops.get(value, "")
        if top == before:
            continue
        begin = f"H{number(x)}" if before else f"M{number(x)} {foot}"
        yield f"{begin}V{top}" if top else f"{begin}V{foot}z"
        before = top


def count_names(counts: Sequence[tuple[float, Count]], y: float) -> Iterator[Name]:
    """Yield how many pods are available, and of how many, wherever that stays for a while."""
    for (x, count), (end, _) in pairwise([*counts, (float(PLOT), Count())]):
        begin = max(x, 0.0)
        if count.there and end - begin > COUNT_ROOM:
            text = str(count.available - count.failing)
            if count.there > count.available - count.failing:
                text += f" of {count.there}"
            yield Name(
                begin,
                end - begin,
                y,
                text,
                "inbar counted",
            )
