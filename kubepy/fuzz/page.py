"""The report of a fuzz as a page: what is violated, and the run that does it on the timeline."""

from __future__ import annotations

from collections.abc import Iterator

from kubepy.api.clock import parse_time
from kubepy.api.values.goformat import format_duration
from kubepy.fuzz.reporting import FoundViolation, FuzzReport
from kubepy.fuzz.run import FuzzRun
from kubepy.fuzz.text import outcome
from kubepy.insight.picture import html
from kubepy.insight.picture.drawing import Mark, clean
from kubepy.insight.revisions import with_rollouts
from kubepy.insight.timeline import read_timeline


def render_html(report: FuzzReport, run: FuzzRun) -> str:
    """Return a page that needs nothing beside it.

    :param run: the one that is drawn: it violates the first check of the report, or none.
    """
    timeline = with_rollouts(
        run.local, read_timeline(run.local, run.started, after_revision=run.revision)
    )
    marks = [_mark(found) for found in report.violations[:1] if found.violation.key is not None]
    above = "".join((_verdict(report), *map(_violation, report.violations)))
    return html.render_html(timeline, marks, f"Fuzz: run {run.name}", above)


def _mark(found: FoundViolation) -> Mark:
    violation = found.violation
    assert violation.key is not None
    return Mark(violation.key, parse_time(violation.moment), violation.check, None)


def _verdict(report: FuzzReport) -> str:
    mood = "fine" if report else "hurts"
    text = clean(outcome(report))
    return f'<p id="verdict" class="{mood}"><strong>{text}</strong></p>\n'


def _violation(found: FoundViolation) -> str:
    return "".join(_parts(found))


def _parts(found: FoundViolation) -> Iterator[str]:
    """Yield the parts of what is said about a violation."""
    at = format_duration(found.at) if found.at else "0s"
    yield f"<h2>{clean(found.check)}</h2>\n"
    yield f"<p>{clean(found.violation.message)}</p>\n"
    yield f"<p>Violated {at} after the beginning of run <code>{clean(found.replay)}</code>.</p>\n"
    if found.disturbances:
        items = "".join(f"<li>{clean(line)}</li>" for line in found.disturbances)
        yield f"<ul>{items}</ul>\n"
    yield f'<div class="scroll"><pre>{clean(found.transcript)}</pre></div>\n'
