"""The picture as one html file, which needs nothing beside it: drawing, style, script, and the data
of the steps.

Without JavaScript it is the drawing with a table of the workloads. The page of ``kubepy serve`` is
the same page without a timeline; it fetches :func:`live_document` whenever there are new steps.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import groupby, pairwise
from typing import Any

from kubepy.api.meta import Object
from kubepy.insight import Timeline
from kubepy.insight.availability import Availability
from kubepy.insight.picture import PODS, Bar
from kubepy.insight.picture.drawing import COLOURS, LEFT, PLOT, WIDTH, Drawing, Mark, clean, number
from kubepy.insight.picture.svg import (
    body_of,
    caption_of,
    colour_rules,
    description_of,
    draw,
    legend_of,
    resource_text,
)
from kubepy.insight.timeline import worst_document
from kubepy.storage import Key

COLUMNS = (
    "Workload",
    "Namespace",
    "Desired at the end",
    "Lowest available",
    "Required then",
    "Most unavailable",
    "Most surge",
    "Updated at the end",
)

# a page that asks for nothing
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
ICON = '\n<link rel="icon" href="data:,">'  # or else a browser asks for /favicon.ico


def render_html(
    timeline: Timeline, marks: Sequence[Mark] = (), title: str = "Timeline", above: str = ""
) -> str:
    """Draw a timeline as a page of its own.

    :param marks: what to point out: the harms of a plan.
    :param above: html that stands above the picture.
    """
    drawing = draw(timeline, 0, marks)
    data = json.dumps(page_data(drawing), ensure_ascii=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    return page(
        title,
        caption_of(timeline),
        above + content(drawing),
        data,
        drawing.thickness,
    )


def live_document(timeline: Timeline) -> Object:
    """Return what the live page shows: the content of the page, and the data of its steps."""
    drawing = draw(timeline, 0)
    return {"content": content(drawing), "data": page_data(drawing)}


def live_page() -> str:
    """Return the page without data, which fetches them."""
    return page("Timeline")


def live_script() -> str:
    """Return the script of the live page, as it stands between its tags."""
    return f"\n{resource_text('page.js')}{resource_text('live.js')}"


def page(
    heading: str, caption: str = "", main: str = "", data: str = "", thickness: float = 0
) -> str:
    """Return a page; without data it is the live one."""
    head = f'\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">' if data else ICON
    values = {
        "title": clean(f"{heading}: {caption}" if caption else heading),
        "heading": clean(heading),
        "style": page_style(thickness),
        "main": main,
        "data": data,
        "head": head,
        "script": f"\n{resource_text('page.js')}" if data else live_script(),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], resource_text("page.html"))


def page_style(thickness: float) -> str:
    """Return the style of a page: the colours of both themes, the thickness of bars, the drawing,
    the rest."""

    def variables(theme: int) -> str:
        return " ".join(f"--{name}: {colours[theme]};" for name, colours in COLOURS.items())

    return (
        f"\n:root {{ color-scheme: light; --thickness: {number(thickness)}; {variables(0)} }}\n"
        "@media (prefers-color-scheme: dark) {\n"
        f":root:not([data-theme=light]) {{ color-scheme: dark; {variables(1)} }}\n}}\n"
        f":root[data-theme=dark] {{ color-scheme: dark; {variables(1)} }}\n"
        + resource_text("drawing.css")
        + colour_rules()
        + resource_text("page.css")
    )


def content(drawing: Drawing) -> str:
    """Return the content of a page: caption, drawing, legend, and the numbers of the workloads."""
    height = number(drawing.height)
    return (
        f'<p id="caption">{caption_of(drawing.timeline)}, '
        f"{len(drawing.timeline.steps)} steps</p>\n"
        f'<div id="picture">\n'
        f'<svg id="drawing" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" '
        f'aria-label="{clean(description_of(drawing))}">\n'
        f"{body_of(drawing)}</svg>\n</div>\n{legend(drawing)}{workloads_table(drawing)}"
    )


def legend(drawing: Drawing) -> str:
    """Return the list that explains the picture."""
    items = "".join(
        f'<li><svg width="26" height="14" aria-hidden="true">{sample(0, 7)}</svg> {name}</li>\n'
        for name, sample in legend_of(drawing)
    )
    if items:
        return f'<ul id="legend" aria-label="Legend">\n{items}</ul>\n'
    return ""


def workloads_table(drawing: Drawing) -> str:
    """Return the table of the workloads' numbers."""
    rows = list[str]()
    for key in drawing.judged_workloads:
        name, *cells = workload_cells(key, drawing.judged[key])
        others = "".join(f"<td>{clean(cell)}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row">{clean(name)}</th>{others}</tr>\n')
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    if rows:
        return (
            f'<div class="scroll"><table id="workloads">\n<caption>Workloads</'
            f"caption>\n<thead><tr>{head}</tr></thead>"
            f"\n<tbody>\n{''.join(rows)}</tbody></table></div>\n"
        )
    return ""


def workload_cells(key: Key, judged: Sequence[Availability]) -> list[str]:
    """Return the cells of a workload: the numbers that ``-o json`` has."""
    workload = worst_document(key, judged)
    required = workload["bounds"]["minAvailable"]
    cells = [
        workload["namespace"],
        workload["desired"],
        workload["minAvailable"],
        "" if required is None else required,
        workload["maxUnavailable"],
        workload["maxSurge"],
        workload["updated"],
    ]
    return [f"{key.resource}/{key.name}", *map(str, cells)]


class Distinct:
    """Distinct values, which others name by their place among them."""

    def __init__(self) -> None:
        self._places = dict[Any, int]()

    def place(self, value: Any) -> int:
        return self._places.setdefault(value, len(self._places))

    def values(self) -> list[Any]:
        return list(self._places)


def page_data(drawing: Drawing) -> Object:
    """Return the data of a page, as lists of numbers, so that thousands of pods take little room.

    ``words`` are texts. A kind is [resource, namespace, owner, revision], an action [name, reason].
    ``objects`` has three numbers for each: name, kind, node; ``steps`` two: action, object. Names
    and the objects of steps are differences to those before. Steps belong to the moments of the
    axis in their order: [place, width, steps, 1 for one of note]. A bar is [object, y, first step,
    last step, replacement's bar or -1]. The numbers of a workload are differences to those before.
    """
    words = Distinct()
    kinds = Distinct()
    objects = Distinct()
    actions = Distinct()
    timeline = drawing.timeline
    steps = list[int]()
    things = [0]
    for step in timeline.steps:
        kind = kinds.place(
            (
                words.place(step.key.resource),
                words.place(step.key.namespace),
                words.place(step.owner),
                words.place(step.revision),
            )
        )
        things.append(objects.place((words.place(step.key.name), kind, words.place(step.node))))
        action = actions.place((words.place(step.action), words.place(step.reason)))
        steps += [action, things[-1] - things[-2]]

    def place_of(bar: Bar) -> int:
        """Return the place of a pod among the objects."""
        if bar.last >= 0:
            return things[bar.last + 1]
        kind = (
            words.place(PODS),
            words.place(bar.key.namespace),
            words.place(bar.owner),
            words.place(bar.revision),
        )
        return objects.place((words.place(bar.key.name), kinds.place(kind), words.place(bar.node)))

    scale = drawing.scale
    charts = [key for key in drawing.judged_workloads if key in drawing.charts]
    return {
        "since": round(timeline.since.timestamp() * 1_000_000),
        "left": LEFT,
        "plot": PLOT,
        "thickness": drawing.thickness,
        "height": drawing.height,
        "moments": [
            [round(moment.x, 2), round(moment.width, 2), moment.steps, int(moment.is_major)]
            for moment in scale.moments
        ],
        "resolution": round(scale.resolution * 1_000_000) or 1,
        "times": times_of(timeline),
        "gaps": [[round(gap.x + gap.width / 2, 2), gap.text] for gap in scale.gaps],
        "days": [[round(x, 2), text] for x, text in scale.days()],
        "steps": steps,
        "bars": list(bars_data(drawing, place_of)),
        "folds": [list(fold) for fold in drawing.folds],
        "names": [
            [round(name.x, 2), round(name.width, 2), name.y, name.text, name.classes]
            for name in drawing.names
        ],
        "notes": [[round(note.x, 2), note.y, note.text, note.classes] for note in drawing.notes],
        "courses": [course_data(key, drawing.judged[key], *drawing.charts[key]) for key in charts],
        "words": words.values(),
        "kinds": kinds.values(),
        "actions": actions.values(),
        "objects": [
            part
            for (before, *_), (name, *rest) in pairwise([(0,), *objects.values()])
            for part in (name - before, *rest)
        ],
    }


def bars_data(drawing: Drawing, place_of: Callable[[Bar], int]) -> Iterator[list[Any]]:
    """Yield the data of each bar; ``place_of`` returns the place of its pod among the objects."""
    places = {row.bar: place for place, row in enumerate(drawing.rows)}
    for top, bottom, bar in drawing.rows:
        replacement = bar.replacement
        successor = -1 if replacement is None else places.get(replacement, -1)
        yield [place_of(bar), (top + bottom) / 2, bar.start, bar.end, successor]


def times_of(timeline: Timeline) -> list[int]:
    """Return the times of the steps: microseconds since the time before, number of steps, and so
    on."""
    flat = list[int]()
    before = timeline.since
    for at, steps in groupby(step.at for step in timeline.steps):
        flat += [(at - before) // timedelta(microseconds=1), len(list(steps))]
        before = at
    return flat


def course_data(key: Key, judged: Sequence[Availability], top: float, bottom: float) -> list[Any]:
    """Return [resource/name, namespace, top, bottom, changes, order]: its numbers, with how many
    were required (-1: nothing says so), as differences to those before; the order has the place of
    each among the distinct ones."""
    rows = [
        (step, *numbers, -1 if required is None else required)
        for step, numbers, _, required, *_ in judged
    ]
    changes = Distinct()
    order = [
        changes.place(tuple(value - old for value, old in zip(row, before, strict=True)))
        for before, row in pairwise([(0,) * 8, *rows])
    ]
    return [f"{key.resource}/{key.name}", key.namespace, top, bottom, changes.values(), order]
