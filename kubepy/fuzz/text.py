"""The report of a fuzz as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from kubepy.api.values.goformat import format_duration
from kubepy.fuzz.reporting import FoundViolation, FuzzReport
from kubepy.fuzz.transcripts import held_line

WIDTH = 80


def report_text(report: FuzzReport, seed: str) -> Iterator[str]:
    """Yield the lines of a report.

    :param seed: the run that was repeated; "" for a search.
    """
    if seed and report:
        yield held_line(seed)
        return
    for found in report.violations:
        yield from _violation(found)
    if seed:
        return
    branches = f", {report.branches} of them branches" if report.branches else ""
    runs = "1 run" if report.runs == 1 else f"{report.runs} runs"
    yield f"{runs}{branches}; {report.states} states of what checks read"
    yield outcome(report)


def outcome(report: FuzzReport) -> str:
    """Return a line that says which checks hold, or are violated."""
    if report:
        return f"all checks hold: {', '.join(report.checks)}"
    violated = [found.check for found in report.violations]
    return f"violated: {', '.join(violated)} ({len(violated)} of {len(report.checks)} checks)"


def _violation(found: FoundViolation) -> Iterator[str]:
    at = format_duration(found.at)
    run = f"a branch of seed {found.seed}" if found.is_branch else f"seed {found.seed}"
    yield f"violated: {found.check}, by {run}, {at} after the beginning"
    yield from _wrapped(found.violation.message, "  ")
    count = len(found.disturbances)
    if not count:
        yield "  nothing needs to be disturbed for that"
    else:
        yield f"  the smallest run has {count} {'disturbance' if count == 1 else 'disturbances'}:"
        for line in found.disturbances:
            yield from _wrapped(line, "  - ")
    if found.also:
        yield from _wrapped(f"also by seeds {', '.join(map(str, found.also))}", "  ")
    yield ""
    yield from found.transcript.splitlines()
    yield ""


def _wrapped(text: str, begin: str) -> list[str]:
    """Return a text as lines, of which the first begins in its own way."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=begin,
        subsequent_indent=" " * len(begin),
        break_long_words=False,
        break_on_hyphens=False,
    )
