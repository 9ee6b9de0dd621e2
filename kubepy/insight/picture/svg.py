"""The picture as svg: workloads with their availability above, below them the pods on their nodes.

Bars are horizontal strokes, collected in one path for each state and revision: a thousand pods take
little room, and the page zooms them by moving what stands in the paths (``page.js``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from importlib.resources import files

from kubepy.api.clock import format_time
from kubepy.insight import Timeline
from kubepy.insight.availability import JOBS
from kubepy.insight.picture import (
    AVAILABLE,
    FAILED,
    PENDING,
    READY,
    STARTING,
    SUCCEEDED,
    TERMINATING,
)
from kubepy.insight.picture.charts import draw_workloads, summary_of
from kubepy.insight.picture.drawing import (
    BOLD_CHARACTER,
    CHARACTER,
    COLOURS,
    LEFT,
    PLOT,
    REVISIONS,
    RIGHT,
    SMALL_CHARACTER,
    WIDTH,
    Drawing,
    Label,
    Mark,
    Note,
    clean,
    number,
    pattern_class,
    shortened,
)
from kubepy.insight.picture.rows import draw_pods, stroke_classes, visible_names
from kubepy.insight.picture.scale import rough_duration

HEAD = 52
AXIS = 24
LEAST_NOTE = 24.0  # the room below which a note is left out
STATE_NAMES = {
    PENDING: "not scheduled",
    STARTING: "not ready",
    READY: "ready",
    AVAILABLE: "available",
    TERMINATING: "terminating",
    FAILED: "failing",
    SUCCEEDED: "succeeded",
}
FOLD_NAMES = {
    "available": "available",
    "coming": "not available yet",
    "there": "terminating",
    "failing": "failing",
}
# of each revision: dashes of the line along its bars, which tells it from others without colour
PATTERNS = ("", "1.5 3", "none", "9 4", "9 3 2 3", "2 8")


# --- the whole ------------------------------------------------------------------------------------


def draw(timeline: Timeline, top: float, marks: Sequence[Mark] = ()) -> Drawing:
    """Lay a timeline out from ``top`` on, and point out ``marks`` in it."""
    drawing = Drawing(timeline, marks)
    charts = top + AXIS
    pods = draw_workloads(drawing, charts)
    below = draw_pods(drawing, pods)
    draw_axis(drawing, top, below)
    drawing.height = below + 8
    return drawing


def draw_axis(drawing: Drawing, top: float, bottom: float) -> None:
    """Draw the moments, the days, and the gaps that are cut short."""
    for moment in drawing.scale.moments:
        if moment.width > 1.5:
            drawing.box(
                "moment",
                moment.x,
                top + AXIS - 4,
                moment.width,
                bottom - top - AXIS + 4,
            )
        if moment.is_major:
            drawing.ticks.append(
                Label(
                    moment.x,
                    top + 14,
                    moment.after,
                    "tick",
                )
            )
    for x, text in drawing.scale.days():
        drawing.add("day", f"M{number(x)} {number(top + AXIS - 4)}V{number(bottom)}")
        drawing.days.append(
            Label(
                x,
                top + 14,
                text,
                "tick date",
            )
        )
    for gap in drawing.scale.gaps:
        x = gap.x + gap.width / 2
        drawing.add("break", f"M{number(x)} {number(top + AXIS - 4)}V{number(bottom)}")
        drawing.gaps.append(
            Label(
                x,
                top + 14,
                f"⋯{gap.text}⋯",
                "tick middle",
            )
        )
    drawing.stroke(
        "frame",
        0,
        top + AXIS - 4,
        PLOT,
    )


def visible_ticks(drawing: Drawing) -> Iterable[Label]:
    """Yield the times that have room: those of long gaps, days, then from left to right. A time of
    the clock is not said twice."""
    taken = list[tuple[float, float]]()
    before = ""
    for label in [*drawing.gaps, *drawing.days, *drawing.ticks]:
        width = 6.5 * len(label.text) + 8
        start = label.x - (width / 2 if "middle" in label.classes else 4)
        has_room = start + width < PLOT + RIGHT and all(
            start + width <= other or end <= start for other, end in taken
        )
        is_said = label.classes == "tick" and label.text == before
        if has_room and not is_said:
            taken.append((start, start + width))
            yield label._replace(x=LEFT + label.x)
            before = label.text


def visible_notes(drawing: Drawing) -> Iterable[Label]:
    """Yield the notes that have room, up to the next one of their line."""
    lines = defaultdict[float, list[Note]](list)
    for note in drawing.notes:
        lines[note.y].append(note)
    for notes in lines.values():
        notes.sort(key=lambda note: note.x)
        ends = [note.x - 10 for note in notes[1:]] + [float(PLOT)]
        for note, end in zip(notes, ends, strict=True):
            if end - note.x >= LEAST_NOTE:
                classes = f"{note.classes} small cut"
                yield Label(
                    LEFT + note.x,
                    note.y,
                    note.text,
                    classes,
                    end - note.x,
                )


LAYERS = (
    "stripe",
    "moment",
    "day",
    "band",
    "harm",
    "bound",
    "break",
    "frame",
    "count",
    "run-succeeded",
    "run-failed",
    "line",
    "low",
    "event",
    "down",
    "cordon",
    "link",
)
ABOVE = ("down", "cordon", "link")  # which lie above the bars
FOLD_LAYERS = {"there": "hatched", "coming": "pale", "available": "", "failing": ""}


def plot_of(drawing: Drawing) -> Iterable[str]:
    """Yield the elements of the plot from the ground up; a state of several strokes has its path
    once."""
    plot = drawing.plot
    for classes in LAYERS:
        if classes in plot and classes not in ABOVE:
            yield path_element(classes, plot[classes])
    yield from folds_of(drawing)
    for name in sorted(name for name in plot if name.partition("-")[0] in STATE_NAMES):
        state, _, colour = name.partition("-")
        first, *others = stroke_classes(state, colour, "t")
        path = "".join(plot[name])
        yield f'<g class="{first}"><path id="{name}" d="{path}"/></g>\n'
        yield from (f'<use href="#{name}" class="{other}"/>\n' for other in others)
        if state == AVAILABLE and (pattern := pattern_class(colour)):
            shift = number(drawing.thickness / 2 - 2)
            yield f'<use href="#{name}" class="{pattern}" y="{shift}"/>\n'
    yield from (path_element(classes, plot[classes]) for classes in ABOVE if classes in plot)


def folds_of(drawing: Drawing) -> Iterable[str]:
    """Yield the areas of folded rows, the largest first, each with what lies over it."""
    for field, overlay in FOLD_LAYERS.items():
        for name in sorted(drawing.plot):
            if not name.startswith(f"fold {field}-"):
                continue
            colour = name.partition("-")[2]
            path = "".join(drawing.plot[name])
            identity = f"{field}-{colour}"
            yield f'<g class="fill-{colour}"><path class="area" id="{identity}" d="{path}"/></g>\n'
            if overlay:
                yield f'<use href="#{identity}" class="{overlay}"/>\n'
    for name in sorted(drawing.plot):
        if name.startswith("base "):
            yield path_element(name.removeprefix("base "), drawing.plot[name])


def path_element(classes: str, pieces: Iterable[str]) -> str:
    """Return the element of a path."""
    return f'<path class="{classes}" d="{"".join(pieces)}"/>\n'


HATCH = (
    '<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse">'
    '<path class="hatch" d="M0 0h2.5v5h-2.5z"/></pattern></defs>\n'
)


def body_of(drawing: Drawing) -> str:
    """Return the elements of a drawing: the plot, which moves when it is zoomed, and the texts
    beside it."""
    paths = "".join(plot_of(drawing))
    ticks = "".join(map(text_element, visible_ticks(drawing)))
    texts = "".join(map(text_element, drawing.texts))
    inside = [*visible_names(drawing), *visible_notes(drawing)]
    hatch = HATCH if any(name.startswith("fold there") for name in drawing.plot) else ""
    return (
        f'{hatch}<svg class="plot" x="{LEFT}" width="{PLOT}" '
        f'height="{number(drawing.height)}">\n{paths}</svg>\n'
        f'<g class="ticks">{ticks}</g>\n<g class="texts">{"".join(drawing.keys)}{texts}</g>\n'
        f'<g class="names">{"".join(map(text_element, inside))}</g>\n'
    )


def text_element(label: Label) -> str:
    """Return a text; one that is shortened says the whole when it is pointed at."""
    words = label.classes.split()
    size = CHARACTER
    if "small" in words:
        size = SMALL_CHARACTER
    elif "name" in words:
        size = BOLD_CHARACTER
    short = shortened(
        label.text,
        label.room,
        size,
        at_end="cut" in words,
    )
    title = f"<title>{clean(label.text)}</title>" if short != label.text else ""
    return (
        f'<text class="{label.classes}" x="{number(label.x)}" '
        f'y="{number(label.y)}">{clean(short)}{title}</text>\n'
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
    """Return the rules that colour the revisions, and those of their patterns."""
    names = [*(f"r{n}" for n in range(REVISIONS)), "none"]
    strokes = (f".{name} {{ stroke: var(--{name}); }}\n" for name in names)
    fills = (f".fill-{name} {{ fill: var(--{name}); }}\n" for name in [*names, "fail"])
    patterns = (
        f".p{n} {{ stroke: var(--ground); stroke-dasharray: {dashes}; stroke-width: 1.75; }}\n"
        for n, dashes in enumerate(PATTERNS)
        if dashes
    )
    return "".join([*strokes, *fills, *patterns])


def themed(rules: str, theme: int) -> str:
    """Put the colours of a theme in the place of variables."""
    return re.sub(r"var\(--(\w+)\)", lambda match: COLOURS[match[1]][theme], rules)


def svg_style(drawing: Drawing, body: str) -> str:
    """Return the style of an svg that stands alone: the rules that its body uses, with literal
    colours, since not every viewer knows variables."""
    used = {"title", "faint", "ground"}
    used |= {word for classes in re.findall('class="([^"]*)"', body) for word in classes.split()}
    rules = "".join(
        line
        for line in (resource_text("drawing.css") + colour_rules()).splitlines(keepends=True)
        if is_used(line, used)
    )
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


def is_used(rule: str, used: set[str]) -> bool:
    """Tell whether a rule, which is a line, is about elements or about a class that is used."""
    classes = re.findall(r"\.([a-z][\w-]*)", rule.partition("{")[0])
    return "{" in rule and (not classes or not used.isdisjoint(classes))


def caption_of(timeline: Timeline) -> str:
    """Say from when to when a timeline goes."""
    span = rough_duration((timeline.until - timeline.since).total_seconds())
    return f"{format_time(timeline.since)} to {format_time(timeline.until)} ({span})"


def description_of(drawing: Drawing) -> str:
    """Say in words what a picture shows."""
    courses = "".join(
        f" {key.resource}/{key.name} in {key.namespace}: {summary_of(drawing, key)}."
        for key in drawing.judged_workloads
    )
    marks = "".join(f" {mark.text}: {mark.key.resource}/{mark.key.name}." for mark in drawing.marks)
    return f"{len(drawing.timeline.steps)} steps.{marks}{courses}"


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

    def area(classes: str) -> Callable[[float, float], str]:
        return sample(classes, "m0 -5h26v10h-26z")

    def fold(field: str) -> Callable[[float, float], str]:
        colour = "fill-fail" if field == "failing" else "fill-none"
        overlay = area(FOLD_LAYERS[field]) if FOLD_LAYERS[field] else lambda x, y: ""
        return lambda x, y: f'<g class="{colour}">{area("area")(x, y)}</g>{overlay(x, y)}'

    fold_names = dict(FOLD_NAMES)
    drawn = {name.partition("-")[0] for name in drawing.plot}
    signs = (
        ("available pods", "line", mark("line")),
        ("pods that stay", "count", mark("count")),
        ("allowed", "band", area("band")),
        ("fewer than required", "low", mark("low")),
        ("harm", "harm", area("harm")),
        ("change", "event", lambda x, y: sample("event", "l4 4l-4 4l-4-4z")(x + 13, y - 4)),
        (
            "run of a Job",
            "run-succeeded",
            lambda x, y: sample("run-succeeded", "v-8")(x + 13, y + 4),
        ),
        ("failed run", "run-failed", lambda x, y: sample("run-failed", "v-13")(x + 13, y + 6)),
        ("replaced by", "link", lambda x, y: sample("link", "l0 10m0 0l-3 -5l6 0z")(x + 13, y - 5)),
        ("node not ready", "down", mark("down")),
        ("node cordoned", "cordon", mark("cordon")),
        (
            "gap, shortened",
            "break",
            lambda x, y: sample("break", "v12")(x + 13, y - 6),
        ),
    )
    if any(key.resource in JOBS for key in drawing.workloads):
        fold_names["available"] = "available, or running"
    return [
        *((name, partial(swatch, state)) for state, name in STATE_NAMES.items() if state in drawn),
        *((name, fold(field)) for field, name in fold_names.items() if f"fold {field}" in drawn),
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
        pieces.append(
            draw_sample(x, y - 4)
            + text_element(
                Label(
                    x + 32,
                    y,
                    name,
                    "small",
                )
            )
        )
        x += width
    return "".join(pieces), y + 12


def render_svg(timeline: Timeline, marks: Sequence[Mark] = (), title: str = "Timeline") -> str:
    """Draw a timeline as svg, light or dark as its viewer prefers.

    :param marks: what to point out: the harms of a plan.
    """
    drawing = draw(timeline, HEAD, marks)
    legend, bottom = legend_svg(drawing)
    height = number(bottom)
    caption = caption_of(timeline)
    body = f"{body_of(drawing)}{legend}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" '
        f'role="img" aria-labelledby="title description">\n<title id="title">{clean(title)}: '
        f"{caption}</title>\n"
        f'<desc id="description">{clean(description_of(drawing))}</desc>\n'
        f'<style>\n{svg_style(drawing, body)}</style>\n<rect class="ground" width="{WIDTH}" '
        f'height="{height}"/>\n'
        f'<text class="title" x="8" y="24">{clean(title)}</text>\n'
        f'<text class="faint" x="8" y="42">{caption}</text>\n'
        f"{body}</svg>\n"
    )
