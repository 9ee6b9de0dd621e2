"""A plan as Markdown, for the comment of a pull request: GitHub's and GitLab's.

Names and messages are others': every character that means something in Markdown is written as an
entity, names stand in ``<code>``, where neither forge makes a mention or a link of them, and what
is folded stands in fences that are longer than any in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kubepy.cli.plan_changes import CREATED, DELETED, AppliedChange, names_of
from kubepy.cli.plan_report import HEADS, HarmRow, Report
from kubepy.insight.policy import DOES_NOT_FINISH, HURTS
from kubepy.quoting import printable
from kubepy.terminal import shortened

# GitHub takes 65,536 characters a comment; what finds the comment again needs some of them.
MOST_CHARACTERS = 64_000
MOST_WAVE_LINES = 1_000
LONGEST_LINE = 400  # characters of one line that is folded
LONGEST_TEXT = 1_000  # characters of a message
# An underscore within a word means nothing.
MEANS_SOMETHING = re.compile(r"[\\`*\[\]#|~&<>]|(?<![^\W_])_|_(?![^\W_])")
# What GitHub or GitLab make a mention or a reference of, where a word follows.
REFERENCES = re.compile(r"[@#!$%~&^](?=[\w\"])")
NO_WIDTH = "&#8203;"
MARKS = {0: "✅", DOES_NOT_FINISH: "❌", HURTS: "⚠️"}


def render_markdown(report: Report) -> str:
    """Return a plan as Markdown, in at most MOST_CHARACTERS characters."""
    parts = [
        Section([verdict_line(report), *about_lines(report)]),
        Section(list(harm_lines(report)), noun=("line about harm", "lines about harm")),
        Section(list(table_rows(report)), before=table_head(), noun=("workload", "workloads")),
        Section([f"- {text_of(note)}" for note in report.notes], noun=("note", "notes")),
        fold("What changes", diff_lines(report.planned.changes or ()), "diff"),
        fold("Output of the command", output_lines(report)),
        fold("Step by step", report.text.shown_waves(MOST_WAVE_LINES)),
        fold("All runs", report.text.runs(report.runs)[1:] if report.runs else []),
    ]
    verdict, harm, table, notes, diff, output, waves, runs = parts
    shorten([waves, runs, output, diff, notes, table, harm, verdict])
    return "\n\n".join(text for part in parts if (text := part.text)) + "\n"


# --- parts ----------------------------------------------------------------------------------------


@dataclass
class Section:
    """A part of the document, of which the last lines may be left out.

    :ivar before: lines above it, ``after`` lines below it.
    :ivar noun: its lines, as a noun: one of them, and several.
    :ivar kept: how many of its lines are shown; None: all.
    """

    lines: Sequence[str]
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    noun: tuple[str, str] = ("line", "lines")
    kept: int | None = None

    @property
    def text(self) -> str:
        if not self.lines:
            return ""
        lines = list(self.lines[: self.kept])
        left_out = len(self.lines) - len(lines)
        one, several = self.noun
        what = f"1 {one} is" if left_out == 1 else f"{left_out:,} {several} are"
        more = [f"\n{what} left out: the comment would be too long."]
        return "\n".join([*self.before, *lines, *self.after, *(more if left_out else [])])

    def shorten_by(self, excess: int) -> None:
        """Leave out the last lines, so that the text has so many characters fewer, if possible."""
        wanted = len(self.text) - excess
        self.kept = len(self.lines)
        while self.kept and len(self.text) > wanted:
            # Line by line at the end; before that in larger parts, for there may be thousands.
            longest = max(map(len, self.lines[: self.kept])) + 1
            self.kept -= min(max((len(self.text) - wanted) // longest, 1), self.kept)


def fold(title: str, lines: Iterable[str], language: str = "") -> Section:
    """Return a part that is folded: lines in a fence."""
    shown = [shortened(printable(line), LONGEST_LINE) for line in lines]
    longest = max((len(run) for line in shown for run in re.findall("`+", line)), default=0)
    fence = "`" * max(longest + 1, 3)
    return Section(
        shown,
        ["<details>", f"<summary>{title}</summary>", "", f"{fence}{language}"],
        [fence, "", "</details>"],
    )


def shorten(parts: Sequence[Section]) -> None:
    """Shorten parts, the first ones first, until all of them have room."""
    for part in parts:
        length = sum(len(other.text) + 2 for other in parts)
        if length <= MOST_CHARACTERS:
            return
        part.shorten_by(length - MOST_CHARACTERS)


# --- the head -------------------------------------------------------------------------------------


def verdict_line(report: Report) -> str:
    """Return the line about the whole: whether it finishes, whom it hurts, the exit status."""
    hurts = f" It hurts: {', '.join(map(code, report.hurt))}." if report.hurt else ""
    status = f" Exit status {report.status}."
    return f"{MARKS[report.status]} **{text_of(report.verdict)}**{hurts}{status}"


def about_lines(report: Report) -> Iterator[str]:
    """Yield what the plan is about."""
    yield ""
    command = code(f"kubepy {report.about}") if report.about else "what is under way"
    if report.revisions:
        before, after = map(code, report.revisions)
        yield f"From {before} to {after}: {command}"
    else:
        yield f"Plan of {command}"


def harm_lines(report: Report) -> Iterator[str]:
    """Yield a line for each harm and each condition, and what holds up what does not finish."""
    for row in report.harm:
        yield harm_line(row)
        for reason in row.reasons:
            yield f"  - {text_of(reason)}"
    for subject, condition in report.conditions:
        yield f"- {code(subject)}: {code(condition)}"


def harm_line(row: HarmRow) -> str:
    """Return a harm as an entry of a list: the object, what, when, before and after."""
    counts = "" if row.counts else " (does not count)"
    kind = f"**{row.kind}**" if row.counts else row.kind
    return f"- {code(row.subject)}: {kind} {text_of(row.when)}: {text_of(row.change)}{counts}"


def table_head() -> list[str]:
    """Return the head of the table of workloads."""
    return [row_of(HEADS), row_of(["---"] * len(HEADS))]


def table_rows(report: Report) -> Iterator[str]:
    """Yield a row for each workload."""
    for row in report.workloads:
        yield row_of([code(row.subject), *map(text_of, row[1:])])


def row_of(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


# --- what is folded -------------------------------------------------------------------------------


def output_lines(report: Report) -> list[str]:
    """Return what the command prints; nothing where the changes say it."""
    if report.planned.changes:
        return []
    return report.planned.output.splitlines()


def diff_lines(changes: Sequence[AppliedChange]) -> Iterator[str]:
    """Yield changes as ``diff -u`` shows them."""
    names = names_of(changes)
    for change in changes:
        name = names[change.key]
        yield f"--- {'/dev/null' if change.action == CREATED else name}"
        yield f"+++ {'/dev/null' if change.action == DELETED else name}"
        yield from change.diff()


# --- escaping -------------------------------------------------------------------------------------


def text_of(text: str) -> str:
    """Return a text that means nothing in Markdown, mentions nobody and refers to nothing."""

    def replaced(match: re.Match[str]) -> str:
        character = match[0]
        shown = entity(character) if MEANS_SOMETHING.match(text, match.start()) else character
        return shown + (NO_WIDTH if REFERENCES.match(text, match.start()) else "")

    text = shortened(printable(text), LONGEST_TEXT)
    return without_links(re.sub(f"{MEANS_SOMETHING.pattern}|[@!$%^]", replaced, text))


def code(text: str) -> str:
    """Return a name, in which a forge seeks neither mentions nor references."""
    shown = shortened(printable(text), LONGEST_TEXT)
    shown = MEANS_SOMETHING.sub(lambda match: entity(match[0]), shown)
    return f"<code>{without_links(shown)}</code>"


def entity(character: str) -> str:
    return f"&#{ord(character)};"


def without_links(text: str) -> str:
    """Return a text of which GitHub makes no links."""
    return text.replace("://", "&#58;//").replace("www.", "www&#46;")
