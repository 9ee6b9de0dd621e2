"""A plan as pictures: the drawing of ``timeline`` with its harm marked, as svg or in a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from kubepy.cli.plan_report import HEADS, HarmRow, Report
from kubepy.insight import Timeline
from kubepy.insight.harm import Harm
from kubepy.insight.picture import html, svg
from kubepy.insight.picture.drawing import Mark, clean
from kubepy.insight.policy import DOES_NOT_FINISH, HURTS
from kubepy.insight.revisions import with_rollouts
from kubepy.terminal import shortened

TITLE = "Plan"
LONGEST_TITLE = 100  # characters, for which the picture has room
BAD = (DOES_NOT_FINISH, HURTS)


def render_svg(report: Report) -> str:
    """Return the picture of a plan."""
    return svg.render_svg(timeline_of(report), marks_of(report), title_of(report))


def render_html(report: Report) -> str:
    """Return a page that needs nothing beside it: verdict, harm, workloads, picture."""
    above = "".join((verdict(report), harm_list(report), table(report), notes(report)))
    return html.render_html(timeline_of(report), marks_of(report), title_of(report), above)


def timeline_of(report: Report) -> Timeline:
    """Return what the plan does, with what the revisions bring."""
    prediction = report.plan.prediction
    return with_rollouts(prediction.cluster, prediction.timeline)


def title_of(report: Report) -> str:
    """Return the title: what the plan is about."""
    about = f"kubepy {report.about}" if report.about else "what is under way"
    if report.revisions:
        before, after = report.revisions
        return shortened(f"{TITLE} from {before} to {after}: {about}", LONGEST_TITLE)
    return shortened(f"{TITLE} of {about}", LONGEST_TITLE)


def marks_of(report: Report) -> list[Mark]:
    """Return what the picture points out."""
    return [mark_of(harm) for harm in report.told_harm]


def mark_of(harm: Harm) -> Mark:
    """Return the mark of one harm."""
    until = None if harm.seconds is None else harm.at + timedelta(seconds=harm.seconds)
    return Mark(harm.key, harm.at, harm.kind, until)


# --- the page above the picture -------------------------------------------------------------------


def verdict(report: Report) -> str:
    """Return the verdict, with the exit status."""
    hurts = f" It hurts: {clean(', '.join(report.hurt))}." if report.hurt else ""
    mood = "hurts" if report.status in BAD else "fine"
    return (
        f'<p id="verdict" class="{mood}">'
        f"<strong>{clean(report.verdict)}</strong>"
        f"{hurts} Exit status {report.status}.</p>\n"
    )


def harm_list(report: Report) -> str:
    """Return the list of what is hurt; "" for nothing."""
    items = [*map(harm_item, report.harm)]
    items += [
        f"<li>{clean(subject)}: <code>{clean(condition)}</code></li>\n"
        for subject, condition in report.conditions
    ]
    return f'<ul id="harm">\n{"".join(items)}</ul>\n' if items else ""


def harm_item(row: HarmRow) -> str:
    """Return one harm as an entry of the list."""
    counts = "" if row.counts else " (does not count)"
    reasons = "".join(f"<li>{clean(reason)}</li>" for reason in row.reasons)
    below = f"<ul>{reasons}</ul>" if reasons else ""
    return (
        f"<li>{clean(row.subject)}: <strong>{clean(row.kind)}</strong> {clean(row.when)}: "
        f"{clean(row.change)}{counts}{below}</li>\n"
    )


def table(report: Report) -> str:
    """Return the table of workloads; "" where there are none."""
    head = "".join(f'<th scope="col">{name.capitalize()}</th>' for name in HEADS)
    rows = "".join(rows_of(report.workloads))
    if not rows:
        return ""
    return (
        f'<div class="scroll"><table id="planned">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}</tbody></table></div>\n"
    )


def rows_of(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a table, each with its name first."""
    for name, *cells in rows:
        others = "".join(f"<td>{clean(cell)}</td>" for cell in cells)
        yield f'<tr><th scope="row">{clean(name)}</th>{others}</tr>\n'


def notes(report: Report) -> str:
    """Return what else there is to say."""
    return "".join(f"<p>{clean(note)}</p>\n" for note in report.notes)
