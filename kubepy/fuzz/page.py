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
    plain_timeline = read_timeline(run.local, run.started, after_revision=run.revision)
    timeline = with_rollouts(run.local, plain_timeline)
    first = report.violations[:1]
    marks = [_mark(found) for found in first if found.violation.key is not None]
    title = f"Fuzz: run {run.name}"
    parts = [_verdict(report)]
    for found in report.violations:
        parts += _parts(found)
    above = "".join(parts)
    return html.render_html(timeline, marks, title, above)


def _mark(found: FoundViolation) -> Mark:
    violation = found.violation
    assert violation.key is not None
    moment = parse_time(violation.moment)
    return Mark(violation.key, moment, violation.check, None)


def _verdict(report: FuzzReport) -> str:
    mood = "fine" if report else "hurts"
    text = clean(outcome(report))
    return f'<p id="verdict" class="{mood}"><strong>{text}</strong></p>\n'


def _parts(found: FoundViolation) -> Iterator[str]:
    """Yield the parts of what is said about a violation."""
    check = clean(found.check)
    message = clean(found.violation.message)
    at = format_duration(found.at)
    replay = clean(found.replay)
    yield f"<h2>{check}</h2>\n"
    yield f"<p>{message}</p>\n"
    yield f"<p>Violated {at} after the beginning of run <code>{replay}</code>.</p>\n"
    if found.disturbances:
        items = [f"<li>{clean(line)}</li>" for line in found.disturbances]
        yield f"<ul>{''.join(items)}</ul>\n"
    transcript = clean(found.transcript)
    yield f'<div class="scroll"><pre>{transcript}</pre></div>\n'
