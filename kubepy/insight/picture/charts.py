"""The part of a picture about workloads: how many pods were available, and what changed.

The first few have a chart, in the order of what happened to them. The others, and Jobs, have a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise, zip_longest
from typing import Any, NamedTuple

from kubepy.insight.availability import JOBS, Availability, extremes
from kubepy.insight.picture import FAILED, SUCCEEDED
from kubepy.insight.picture.drawing import (
    LEFT,
    PLOT,
    Drawing,
    Label,
    Note,
    number,
    pattern_class,
)
from kubepy.storage import Key

HEAD, HEIGHT = 34, 48  # of a chart: the texts above it, and itself
CHART_GAP = 12
ROW = 20  # the height of a row
ROW_CHART = 13  # of which its curve takes so much
MOST_CHARTS = 6
MOST_ROWS = 40
MOST_REVISIONS = 6  # that a chart names
REVISION_LINE = 14
LEAST_PIXELS = 6.0  # of one pod, where a workload has so few that it can have them
SLOTS = 4  # places on a pixel of width at which the runs of Jobs can be told apart


def draw_workloads(drawing: Drawing, top: float) -> float:
    """Draw the workloads; returns where the next part begins."""
    courses = drawing.judged_workloads
    with_chart = charted(drawing, courses)
    for key in courses:
        if key in with_chart:
            top = draw_chart_part(drawing, key, top)
    rows = [key for key in courses if key not in with_chart]
    for key in rows[:MOST_ROWS]:
        draw_row(drawing, key, top)
        top += ROW
    if len(rows) > MOST_ROWS:
        text = f"and {len(rows) - MOST_ROWS} more workloads, to which less happened"
        drawing.texts.append(
            Label(
                8,
                top + 14,
                text,
                "small faint",
            )
        )
        top += ROW
    for key in dict.fromkeys(mark.key for mark in drawing.marks):
        if key not in drawing.charts:
            top = draw_marked_object(drawing, key, top)
    return top + (4 if rows else 0)


def charted(drawing: Drawing, courses: Sequence[Key]) -> set[Key]:
    """Return the workloads that have a chart of their own: all, if they are few; otherwise the
    first of those that were changed or harmed."""
    lasting = [key for key in courses if key.resource not in JOBS]
    if len(lasting) > MOST_CHARTS:
        lasting = [key for key in lasting if drawing.ranks[key] <= 1][:MOST_CHARTS]
    return set(lasting)


# --- a chart --------------------------------------------------------------------------------------


def draw_chart_part(drawing: Drawing, key: Key, top: float) -> float:
    """Draw a workload with its chart; returns where the next part begins."""
    revisions = [
        (revision, name)
        for (workload, revision), name in drawing.revisions.items()
        if workload == key
    ][-MOST_REVISIONS:]
    drawing.charts[key] = (top, top + HEAD + HEIGHT)
    kind = f"{key.resource.partition('.')[0]} in {key.namespace}"
    drawing.texts.append(
        Label(
            LEFT,
            top + 14,
            summary_of(drawing, key),
            "small cut",
        )
    )
    drawing.texts.append(
        Label(
            8,
            top + 14,
            key.name,
            "name",
            LEFT - 16,
        )
    )
    drawing.texts.append(
        Label(
            8,
            top + 29,
            kind,
            "small faint",
            LEFT - 30,
        )
    )
    for line, (revision, name) in enumerate(revisions):
        y = top + 41 + REVISION_LINE * line
        drawing.keys.append(revision_swatch(name, 8, y))
        label = drawing.label(key, revision)
        drawing.texts.append(
            Label(
                23,
                y + 3.5,
                label,
                "small cut",
                LEFT - 58,
            )
        )

    draw_curve(drawing, key, (top + HEAD, top + HEAD + HEIGHT))
    drawing.stroke(
        "frame",
        0,
        top + HEAD + HEIGHT,
        PLOT,
    )
    draw_changes(drawing, key, top + HEAD - 14)
    draw_marks(
        drawing,
        key,
        top + HEAD,
        top + HEAD + HEIGHT,
    )
    height = max(HEAD + HEIGHT, 41 + REVISION_LINE * len(revisions) - 6)
    return top + height + CHART_GAP


def revision_swatch(name: str, x: float, y: float) -> str:
    """Return a sample of a revision's colour and pattern."""
    swatch = f'<path class="swatch {name}" d="M{x} {number(y)}h10"/>'
    if pattern := pattern_class(name):
        swatch += f'<path class="{pattern}" d="M{x} {number(y + 3.5)}h10"/>'
    return swatch


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


def base_of(least: int, most: int, height: float) -> int:
    """Return the number at the foot of a curve: 0 where a single pod still shows, or else one near
    the least."""
    pixels = min(LEAST_PIXELS, height / 3)  # that one pod is to have
    if most * pixels <= height:
        return 0
    if (most - least + 1) * pixels <= height:
        return max(least - 1, 0)
    if least > most * 0.75:
        return least - (most - least)
    return 0


class Level(NamedTuple):
    """The numbers of a workload that its curve shows, from a place on."""

    x: float
    available: int
    staying: int
    desired: int
    required: int | None
    most: int

    @property
    def is_lacking(self) -> bool:
        return self.required is not None and self.available < self.required


def levels_of(drawing: Drawing, key: Key) -> list[Level]:
    """Return what the curve of a workload shows, whenever it changes."""
    levels = [
        Level(
            drawing.scale.x(moment.step - 1),
            moment.numbers.available,
            moment.numbers.staying,
            moment.numbers.desired,
            moment.required,
            moment.most,
        )
        for moment in drawing.judged[key]
    ]
    return [
        level
        for before, level in pairwise([None, *levels])
        if level is not None and (before is None or before[1:] != level[1:])
    ]


def draw_line(drawing: Drawing, classes: str, places: list[tuple[float, float]]) -> None:
    """Draw a line of steps through places."""
    line = list(runs((x, (quartered(y),)) for x, y in places))
    steps = (
        f"H{number(end)}{f'V{after[2]}' if after else ''}"
        for (_, end, _), after in zip_longest(line, line[1:])
    )
    drawing.add(classes, f"M0 {line[0][2]}{''.join(steps)}")


def draw_curve(
    drawing: Drawing, key: Key, place: tuple[float, float], *, has_labels: bool = True
) -> None:
    """Draw the availability of a workload against its band, between two heights."""
    ceiling, floor = place
    moments = levels_of(drawing, key)
    most = max(1, *(max(moment.staying, moment.available, moment.most) for moment in moments))
    least = min(
        min(moment.available, moment.desired if moment.required is None else moment.required)
        for moment in moments
    )
    base = base_of(least, most, floor - ceiling)

    def y(value: int) -> float:
        return floor - (floor - ceiling) * (max(value, base) - base) / (most - base)

    for x, end, low, high in runs((moment.x, (moment.required, moment.most)) for moment in moments):
        if low is not None:
            drawing.box(
                "band",
                x,
                y(high),
                end - x,
                y(min(low, high)) - y(high),
            )
            drawing.stroke(
                "bound",
                x,
                y(low),
                end - x,
            )

    for x, end, available, lacking in runs(
        (moment.x, (moment.available, moment.is_lacking)) for moment in moments
    ):
        if lacking:
            drawing.stroke(
                "low",
                x,
                y(available),
                end - x,
            )

    draw_line(drawing, "count", [(moment.x, y(moment.staying)) for moment in moments])
    draw_line(drawing, "line", [(moment.x, y(moment.available)) for moment in moments])
    if has_labels:
        drawing.texts += [
            Label(
                LEFT - 6,
                y(value) + 3.5,
                str(value),
                "small faint end y",
            )
            for value in sorted({base, least, most})
            if value in (base, most) or min(y(value) - y(most), y(base) - y(value)) > 9
        ]


# --- changes --------------------------------------------------------------------------------------


def draw_changes(drawing: Drawing, key: Key, level: float, *, is_row: bool = False) -> None:
    """Draw a diamond for each moment in which a workload was changed, and say what changed."""
    steps = drawing.timeline.steps
    own_steps = [
        place
        for place in drawing.events[key]
        if steps[place].key == key or (steps[place].action == "failed" and key.resource not in JOBS)
    ]
    for _, places in groupby(own_steps, key=lambda place: steps[place].at):
        changes = list(places)
        x = drawing.scale.x(changes[0])
        drawing.add("event", f"M{number(x)} {number(level)}l4 4l-4 4l-4-4z")
        words = dict.fromkeys(drawing.words.of_change(place, steps[place]) for place in changes)
        if not is_row or set(words) - {"created", "deleted", "terminating"}:
            drawing.notes.append(
                Note(
                    x + 7,
                    level + 7.5,
                    ", ".join(words),
                    "note",
                )
            )


def draw_marks(drawing: Drawing, key: Key, ceiling: float, floor: float) -> None:
    """Point out what harms an object; what begins at one moment has one text."""
    marks = sorted((mark for mark in drawing.marks if mark.key == key), key=lambda mark: mark.at)
    for at, together in groupby(marks, key=lambda mark: mark.at):
        texts = dict[str, None]()
        x = drawing.scale.x_at(at)
        for mark in together:
            end = PLOT if mark.until is None else drawing.scale.x_at(mark.until)
            drawing.box(
                "harm",
                x,
                ceiling,
                max(end - x, 2),
                floor - ceiling,
            )
            texts[mark.text] = None
        drawing.notes.append(
            Note(
                x + 3,
                floor - 4,
                ", ".join(texts),
                "note harmed",
            )
        )


def draw_marked_object(drawing: Drawing, key: Key, top: float) -> float:
    """Draw a row for an object that has no pods of its own, such as a Service."""
    drawing.charts[key] = (top, top + 17)
    name = f"{key.resource.partition('.')[0]}/{key.name}"
    drawing.texts.append(
        Label(
            8,
            top + 14,
            name,
            "name",
            LEFT - 16,
        )
    )
    draw_marks(
        drawing,
        key,
        top + 3,
        top + 17,
    )
    return top + ROW


# --- rows -----------------------------------------------------------------------------------------


def draw_row(drawing: Drawing, key: Key, top: float) -> None:
    """Draw a workload as a row: its curve, or the runs of a Job."""
    floor = top + 3 + ROW_CHART
    drawing.charts[key] = (top, floor)
    drawing.stroke(
        "frame",
        0,
        floor,
        PLOT,
    )
    if key.resource in JOBS:
        draw_runs(drawing, key, floor)
    else:
        draw_curve(
            drawing,
            key,
            (top + 3, floor),
            has_labels=False,
        )
    drawing.texts.append(
        Label(
            8,
            top + 14,
            key.name,
            "name row",
            LEFT - 84,
        )
    )
    summary = short_summary(drawing, key)
    drawing.texts.append(
        Label(
            LEFT - 6,
            top + 14,
            summary,
            row_classes(drawing, key),
        )
    )
    draw_changes(
        drawing,
        key,
        top + 6,
        is_row=True,
    )
    draw_marks(
        drawing,
        key,
        top + 3,
        floor,
    )


def row_classes(drawing: Drawing, key: Key) -> str:
    """Return the classes of what a row says about its workload."""
    return "small end y " + ("failing" if drawing.ranks[key] == 0 else "faint")


def draw_runs(drawing: Drawing, key: Key, floor: float) -> None:
    """Draw a stroke for each pod of Jobs at its end; a taller one where it failed."""
    ends = {
        (state, round(drawing.scale.x(place) * SLOTS) / SLOTS)
        for bar in drawing.by_workload[key]
        for place, state in bar.states
        if state in (SUCCEEDED, FAILED) and place >= 0
    }
    for state, x in sorted(ends):
        height = ROW_CHART if state == FAILED else ROW_CHART - 5
        drawing.add(f"run-{state}", f"M{number(x)} {number(floor)}v{-height}")


def ends_of(drawing: Drawing, key: Key) -> Counter[str]:
    """Count how the pods of Jobs ended."""
    return Counter(
        state for bar in drawing.by_workload[key] for state in {state for _, state in bar.states}
    )


def short_summary(drawing: Drawing, key: Key) -> str:
    """Say in a few characters how a workload fared."""
    if key.resource in JOBS:
        ends = ends_of(drawing, key)
        if ends[FAILED]:
            return f"{ends[FAILED]} of {ends[FAILED] + ends[SUCCEEDED]} failed"
        return f"{ends[SUCCEEDED]} ran"
    lowest = extremes(drawing.judged[key]).lowest.numbers
    return f"min {lowest.available} of {lowest.desired}"


def summary_of(drawing: Drawing, key: Key) -> str:
    """Say in one line how a workload fared: of Jobs, how their pods ended."""
    if key.resource in JOBS:
        ends = ends_of(drawing, key)
        plural = "" if ends[SUCCEEDED] == 1 else "s"
        return f"{ends[SUCCEEDED]} pod{plural} succeeded, {ends[FAILED]} failed"

    judged = drawing.judged[key]
    worst = extremes(judged)
    last = judged[-1].numbers
    at_end = f"{last.available} of {last.desired} available at the end, {last.updated} updated"
    if not worst.is_up:
        return at_end
    return f"{lowest_text(worst.lowest)}; {at_end}"


def lowest_text(lowest: Availability) -> str:
    """Say how few pods were available, and how many were required then."""
    text = f"at least {lowest.numbers.available} of {lowest.numbers.desired} available"
    if lowest.required is None:
        return text
    budget = f" by budget {lowest.bounds.budget}" if lowest.bounds.budget else ""
    return f"{text} ({lowest.required} required{budget})"
