"""A timeline as text: a row for each pod, in which a character stands for a moment.

The columns are the moments at which something happened. A moment in which one thing follows from
another has a column for each step of that, so that pods which are replaced within one second still
show in their order; time that passes widens the columns where there is room. Where there are more
moments than columns, each column stands for several; where there are more pods than rows, each row
does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import IO, NamedTuple

from kubepy.api.clock import format_exact_time
from kubepy.insight import Course, Step, Timeline
from kubepy.insight.availability import JOBS, Availability, Extremes, badness, extremes, judge
from kubepy.insight.picture import (
    AVAILABLE,
    FAILED,
    PENDING,
    PODS,
    READY,
    STARTING,
    SUCCEEDED,
    TERMINATING,
    Bar,
    bars_of,
)
from kubepy.insight.picture.scale import gap_shares, short_duration
from kubepy.insight.revisions import REVISION_RESOURCES
from kubepy.quoting import printable
from kubepy.storage import Key
from kubepy.terminal import Colour, Painter, can_print, shortened, width_of

MAX_ROWS, FOLDED_ROWS = (
    60,
    24,
)  # of all pods; where those are more, several share a row, and so many are enough
FEWEST_ROWS = 6  # of the pods of one workload, where others take the rest
MAX_WORKLOADS = 20
MAX_EVENTS, LAST_EVENTS = 20, 8  # lines of what else happened, and how many of those are the last
WIDEST_MOMENT = 10  # columns that a moment gets on average where there is room
NAME_SHARE, LONGEST_NODE = (
    0.36,
    14,
)  # of the width, for the names of pods; characters of the name of a node
SHORTEST_NAME = 20  # characters of a name that is cut
LEVELS, PLAIN_LEVELS = "0▁▂▃▄▅▆▇█", "0123456789#"  # from none to all
RISING = (PENDING, STARTING, READY)
SYMBOLS = {PENDING: ".", STARTING: ":", TERMINATING: "-", FAILED: "!", SUCCEEDED: "*"}
MEANINGS = {
    ".": "pending",
    ":": "started, not ready",
    "a": "ready, not available yet",
    "A": "available",
    "-": "terminating",
    "!": "failed",
    "*": "succeeded",
}
REVISION_COLOURS = (Colour.BLUE, Colour.YELLOW, Colour.MAGENTA, Colour.CYAN, Colour.GREEN)
ONCE = (
    "adopted",
    "created",
    "orphaned",
    "ready",
)  # of many objects at one moment, told in one line
UNTOLD = (
    "created",
    "scheduled",
    "started",
    "ready",
    "available",
    "unavailable",
    "terminating",
    "deleted",
    "succeeded",
)  # of pods


class Cell(NamedTuple):
    """A character of a row, and the revision that gives it its colour (-1: none)."""

    text: str
    revision: int = -1


BLANK = Cell(" ")


# --- columns --------------------------------------------------------------------------------------


class Columns:
    """The moments of a timeline, as columns of text.

    :ivar ends: how many steps there have been at the end of each column; the first may stand for
        the time before all.
    :ivar widths: how many characters each takes.
    :ivar most: how many moments the fullest column stands for.
    """

    def __init__(
        self, timeline: Timeline, lives: Sequence[Life], room: int, *, has_before: bool
    ) -> None:
        ends = list(_sub_moments(timeline.steps, lives))
        count = max(room - has_before, 1)
        self.most = -(-len(ends) // count)
        if self.most > 1:
            ends = [ends[len(ends) * column // count - 1] for column in range(1, count + 1)]
        self.ends = [0] * has_before + ends
        firsts = [0, *self.ends] if not has_before else [0, 0, *self.ends[1:]]
        self._times = [timeline.steps[first].at for first in firsts[: len(self.ends)]]
        self.is_first = [
            first == 0 or timeline.steps[first - 1].at != timeline.steps[first].at
            for first in firsts[: len(self.ends)]
        ]
        if has_before:
            self.is_first[0], self.is_first[1] = False, True
        moments = [*self._times, max(timeline.until, self._times[-1])] if self._times else []
        seconds = [
            max((after - before).total_seconds(), 0.0) for before, after in pairwise(moments)
        ]
        spare = max(min(room, WIDEST_MOMENT * len(self.ends)) - len(self.ends), 0)
        self.widths = [1 + int(share * spare) for share in gap_shares(seconds)[0]]
        self.since = timeline.since
        self._room = room

    def of(self, number: int) -> int:
        """Return the column in which a step is; the number of all columns for what comes after
        all."""
        return bisect_left(self.ends, number + 1)

    def axis(self) -> str:
        """Return the times at which columns begin, as far as they have room."""
        text = ""
        last = ""
        place = 0
        for time, width, is_first in zip(self._times, self.widths, self.is_first, strict=True):
            label = short_duration((time - self.since).total_seconds())
            has_room = (not text or len(text) < place) and place + len(label) <= self._room
            if is_first and has_room and label != last:
                text = text.ljust(place) + label
                last = label
            place += width
        return text


def _sub_moments(steps: Sequence[Step], lives: Iterable[Life]) -> Iterator[int]:
    """Yield how many steps there have been whenever a column may end: with a moment, before a pod
    changes again, and before a workload is changed."""
    changing = {number: life for life in lives for number in life.numbers}
    seen: set[Life] = set()
    for number, step in enumerate(steps):
        life = changing.get(number)
        is_cause = step.key.resource not in (PODS, *REVISION_RESOURCES) and bool(seen)
        if number and (step.at != steps[number - 1].at or life in seen or is_cause):
            yield number
            seen.clear()
        if life is not None:
            seen.add(life)
    if steps:
        yield len(steps)


# --- pods -----------------------------------------------------------------------------------------


class Life:
    """The life of a pod as it shows: states that end in the moment in which they begin are left out
    on the way up.

    :ivar changes: (number of a step, state).
    """

    def __init__(self, bar: Bar, steps: Sequence[Step], revision: int) -> None:
        self.bar = bar
        self.revision = revision
        self.changes: list[tuple[int, str]] = []
        for number, state in bar.states:
            before, earlier = self.changes[-1] if self.changes else (-1, "")
            if (
                earlier in RISING
                and before >= 0
                and state != TERMINATING
                and steps[before].at == steps[number].at
            ):
                self.changes[-1] = before, state
            else:
                self.changes.append((number, state))

    @property
    def numbers(self) -> list[int]:
        """The steps at which what shows of it changes."""
        last = [self.bar.end] if self.bar.end >= 0 else []
        return [number for number, _ in self.changes if number >= 0] + last

    def cells(self, columns: Columns) -> list[Cell]:
        """Return its state at the end of each column; one that came and went within a column shows
        there, and so does a failure."""
        cells = [BLANK] * len(columns.ends)
        ends = [number for number, _ in self.changes[1:]] + [self.bar.end]
        for (number, state), end in zip(self.changes, ends, strict=True):
            first = columns.of(number)
            last = columns.of(end)
            cell = self._cell(state)
            cells[first:last] = [cell] * (last - first)
            if first == last < len(cells) and (
                state == FAILED or (state != TERMINATING and cells[first] == BLANK)
            ):
                cells[first] = cell
        return cells

    def _cell(self, state: str) -> Cell:
        letter = chr(ord("A") + self.revision % 26)
        return Cell(
            SYMBOLS.get(state) or (letter if state == AVAILABLE else letter.lower()), self.revision
        )


class TextRow(NamedTuple):
    """A row of one pod or several."""

    name: str
    node: str
    cells: list[Cell]


def in_order(lives: Iterable[Life]) -> list[list[Life]]:
    """Return each pod with those that replace it, in the order in which they are replaced, then in
    that of creation."""
    by_bar = {id(life.bar): life for life in lives}
    following = {
        id(life.bar): by_bar.get(id(after))
        for life in by_bar.values()
        if (after := life.bar.successor) is None or after.start > life.bar.start
    }
    replacing = {id(life) for life in following.values()}
    chains = []
    for life in by_bar.values():
        if id(life) not in replacing:
            chain = [life]
            while successor := following.get(id(chain[-1].bar)):
                chain.append(successor)
            chains.append(chain)

    return sorted(chains, key=lambda chain: (chain[0].bar.removed, chain[0].bar.start))


def rows_of(chains: Sequence[list[Life]], columns: Columns, limit: int) -> Iterator[TextRow]:
    """Yield a row for each pod; if those are too many, for as many pods in each row as it takes."""
    if sum(map(len, chains)) <= limit:
        for life in (life for chain in chains for life in chain):
            yield TextRow(life.bar.key.name, life.bar.node, life.cells(columns))
        return

    limit = min(limit, len(chains))
    for part in range(limit):
        group = chains[len(chains) * part // limit : len(chains) * (part + 1) // limit]
        lives = [life for chain in group for life in chain]
        nodes = {life.bar.node for life in lives if life.bar.node}
        yield TextRow(
            f"{len(lives)} pods",
            nodes.pop() if len(nodes) == 1 else f"{len(nodes)} nodes",
            [
                _common(cells)
                for cells in zip(*(life.cells(columns) for life in lives), strict=True)
            ],
        )


def _common(cells: Iterable[Cell]) -> Cell:
    """Return the cell of several pods: that of most which are there, unless one of them failed."""
    counts = Counter(cell for cell in cells if cell != BLANK)
    failed = next((cell for cell in counts if cell.text == SYMBOLS[FAILED]), None)
    return failed or max(counts, key=lambda cell: (counts[cell], cell), default=BLANK)


# --- availability ---------------------------------------------------------------------------------


def levels_of(judged: Sequence[Availability], columns: Columns) -> list[Availability]:
    """Return how a workload stood in each column: at its worst, unless its available pods have only
    become more."""
    levels = []
    position = 0
    now = judged[0]
    for end in columns.ends:
        before = now
        during = []
        while position < len(judged) and judged[position].step <= end:
            now = judged[position]
            during.append(now)
            position += 1
        worst = min(during, key=badness, default=now)
        levels.append(worst if worst.numbers.available < before.numbers.available else now)
    return levels


def level_text(available: int, desired: int, levels: str) -> str:
    """Return a character for a number of pods: itself, or where it has several digits, how full the
    workload is."""
    if max(available, desired) < 10:
        if available or desired:
            return str(available)
        return " "
    if available >= desired:
        return levels[-1]
    return levels[max(available * (len(levels) - 1) // desired, min(available, 1))]


# --- the text -------------------------------------------------------------------------------------


class TimelineText:
    """The text of a timeline for one stream.

    :ivar max_rows: about how many rows of pods it has at most.
    :ivar subjects: what was asked for: its steps are told even where those of its kind are not.
    :param plain: levels are drawn with ASCII characters, whatever the stream's encoding has.
    """

    def __init__(
        self,
        stream: IO[str],
        timeline: Timeline,
        max_rows: int = MAX_ROWS,
        subjects: Collection[Key] = (),
        *,
        plain: bool = False,
    ) -> None:
        self._timeline, self._max_rows, self._subjects = timeline, max_rows, set(subjects)
        self._paint = Painter(stream)
        self._width = width_of(stream)
        self._levels = PLAIN_LEVELS if plain or not can_print(stream, LEVELS) else LEVELS
        bars = bars_of(timeline)
        self._revisions: dict[Key, list[str]] = defaultdict(list)
        lives = []
        for bar in bars:
            known = self._revisions[bar.workload]
            if bar.revision not in known:
                known.append(bar.revision)
            lives.append(Life(bar, timeline.steps, known.index(bar.revision)))

        self._lives: dict[Key, list[Life]] = defaultdict(list)
        for life in lives:
            bare = Key(PODS, life.bar.key.namespace, "")
            self._lives[bare if life.bar.workload == life.bar.key else life.bar.workload].append(
                life
            )

        self._name_width = min(
            max((len(bar.key.name) for bar in bars), default=0), int(self._width * NAME_SHARE)
        )
        self._name_width = max(self._name_width, len("available"))
        self._node_width = min(max((len(bar.node) for bar in bars), default=0), LONGEST_NODE)
        self._node_width = max(self._node_width, len("50 nodes"))
        room = self._width - self._name_width - self._node_width - 4
        self._judged = {course.key: judge(course) for course in timeline.courses}
        lacks_at_first = any(judged[0].lacking for judged in self._judged.values())
        self._columns = Columns(
            timeline,
            lives,
            max(room, 10),
            has_before=lacks_at_first or any(bar.start < 0 for bar in bars),
        )
        self._used: set[str] = set()
        self._has_levels = False

    def lines(self) -> list[str]:
        """Return the lines: the time it is about, workload by workload, what else happened, what
        the signs mean."""
        timeline = self._timeline
        length = (timeline.until - timeline.since).total_seconds()
        lines = [
            f"{format_exact_time(timeline.since)} to {format_exact_time(timeline.until)} "
            f"({short_duration(length)})"
        ]
        shown = sorted(self._lives, key=lambda key: -len(self._lives[key]))[:MAX_WORKLOADS]
        allowed = self._allowed_rows(shown)
        for key in self._lives:
            if key in allowed:
                lines += ["", *self._workload(key, allowed[key])]
        if rest := [key for key in self._lives if key not in allowed]:
            pods = sum(len(self._lives[key]) for key in rest)
            lines += ["", f"... and {pods} pods of {len(rest)} more workloads: name one to see it"]
        if events := self._events():
            lines += ["", *events]
        return [*lines, *self._legend()]

    def _allowed_rows(self, keys: Sequence[Key]) -> dict[Key, int]:
        """Return how many rows each workload may take: small ones all that they need, the others
        share the rest."""
        fits = sum(len(self._lives[key]) for key in keys) <= self._max_rows
        allowed = {}
        rows = self._max_rows if fits else min(self._max_rows, max(FOLDED_ROWS, 3 * len(keys)))
        for left, key in zip(range(len(keys), 0, -1), reversed(keys), strict=True):
            allowed[key] = max(min(len(self._lives[key]), rows // left), FEWEST_ROWS)
            rows -= allowed[key]
        return allowed

    # --- a workload

    def _workload(self, key: Key, limit: int) -> Iterator[str]:
        course = next((course for course in self._timeline.courses if course.key == key), None)
        place = f" in {key.namespace}" if key.namespace else ""
        if key.name:
            parts = (f"{key.resource}/", key.name, place)
        else:
            parts = ("", "pods of no workload", place)

        yield self._paint(name_cut(*parts, self._width), Colour.BOLD)
        for line in filled(list(self._facts(key, course)), ", ", self._width):
            yield self._paint(line, Colour.DIM)
        yield self._line("", "", self._columns.axis())
        if (
            course
            and key.resource not in JOBS
            and any(numbers.desired for _, numbers in course.numbers)
        ):
            yield from self._availability(course)

        for row in rows_of(in_order(self._lives[key]), self._columns, limit):
            yield self._line(row.name, row.node, "".join(self._painted(row.cells)))

    def _facts(self, key: Key, course: Course | None) -> Iterator[str]:
        """Yield what there is to say about a workload: its size, its bounds and what became of
        them, its revisions."""
        if course and course.numbers and key.resource not in JOBS:
            numbers = [numbers for _, numbers in course.numbers]
            desired = list(
                dict.fromkeys(entry.desired for entry in numbers if entry.desired or entry.pods)
            ) or [0]
            yield f"desired {' to '.join(map(str, [desired[0], desired[-1]][: len(desired)]))}"
            yield from _bound_facts(extremes(self._judged[key]), len(desired))
            there = sum(life.bar.start < 0 for life in self._lives[key])
            if numbers[0].pods > there:
                yield f"pods without a change, not shown: {numbers[0].pods - there}"
        for number, revision in enumerate(self._revisions[key]):
            if revision:
                yield f"{chr(ord('A') + number % 26)} = {printable(revision)}"

    def _availability(self, course: Course) -> Iterator[str]:
        levels = levels_of(self._judged[course.key], self._columns)
        self._has_levels |= any(
            max(level.numbers.available, level.numbers.desired) > 9 for level in levels
        )
        text = [
            self._paint(
                level_text(level.numbers.available, level.numbers.desired, self._levels) * width,
                Colour.RED if level.lacking else Colour.GREEN,
            )
            for level, width in zip(levels, self._columns.widths, strict=True)
        ]
        required = sorted({level.required for level in levels if level.required is not None})
        bound = "-".join(map(str, dict.fromkeys((required[0], required[-1])))) if required else ""
        yield self._line("available", f"min {bound}" if required else "", "".join(text))
        if any(level.lacking for level in levels):
            marks = (
                ("^" if level.lacking else " ") * width
                for level, width in zip(levels, self._columns.widths, strict=True)
            )
            yield self._line("", "too few", self._paint("".join(marks).rstrip(), Colour.RED))

    def _line(self, name: str, node: str, cells: str) -> str:
        name = _middle_cut(printable(name), self._name_width)
        node = _middle_cut(printable(node), self._node_width)
        return f"  {name:{self._name_width}} {node:{self._node_width}} {cells}".rstrip()

    def _painted(self, cells: Sequence[Cell]) -> Iterator[str]:
        """Yield the characters of a row, those of a colour together; the last ones that are blank
        are left out."""
        wide = [
            cell
            for cell, width in zip(cells, self._columns.widths, strict=True)
            for _ in range(width)
        ]
        while wide and wide[-1] == BLANK:
            wide.pop()
        for cell, group in groupby(wide):
            self._used.add(cell.text)
            yield self._paint(cell.text * len(list(group)), *self._colours(cell))

    def _colours(self, cell: Cell) -> tuple[Colour, ...]:
        if cell == BLANK:
            return ()
        if cell.text == SYMBOLS[FAILED]:
            return (Colour.RED, Colour.BOLD)
        colour = REVISION_COLOURS[cell.revision % len(REVISION_COLOURS)]
        if cell.text.isupper():
            return (colour, Colour.INVERSE)
        return (colour,)

    # --- what else happened

    def _events(self) -> list[str]:
        """Return what happened to other objects than pods, and what befell pods; the middle of many
        is left out."""
        told: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for step in filter(self._is_told, self._timeline.steps):
            after = short_duration((step.at - self._timeline.since).total_seconds())
            whose = step.owner or ("", after)[step.action in ONCE] or step.key.name
            told.setdefault((step.key.resource, whose, step.action, step.reason), []).append(
                (after, step.key.name)
            )

        groups = []
        for (resource, _, action, reason), entries in told.items():
            times, names = (list(dict.fromkeys(entry)) for entry in zip(*entries, strict=True))
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            often = f" ({len(entries)} times, last at {times[-1]})" if len(times) > 1 else ""
            reason = f": {reason}" if reason else ""
            groups.append((times[0], f"{resource}/", names[0], f"{more} {action}{reason}{often}"))

        width = max((len(after) for after, *_ in groups), default=0)
        lines = [
            shortened(name_cut(f"  {after:{width}} {kind}", name, text, self._width), self._width)
            for after, kind, name, text in groups
        ]
        if len(lines) > MAX_EVENTS:
            lines[MAX_EVENTS - LAST_EVENTS : -LAST_EVENTS] = [
                f"  ... {len(lines) - MAX_EVENTS} more"
            ]

        return lines

    def _is_told(self, step: Step) -> bool:
        if step.key.resource == PODS:
            return step.action not in UNTOLD
        return step.key.resource not in REVISION_RESOURCES or step.key in self._subjects

    def _legend(self) -> list[str]:
        signs = set(map(_sign_of_legend, self._used - {" "}))
        parts = [f"{sign} {meaning}" for sign, meaning in MEANINGS.items() if sign in signs]
        if self._has_levels:
            parts.append(
                f"{self._levels[1]} to {self._levels[-1]} the share of pods that are available: "
                f"few to all"
            )
        if self._columns.most > 1:
            parts.append(f"a column is up to {self._columns.most} moments")
        lines = [self._paint(line, Colour.DIM) for line in filled(parts, "   ", self._width)]
        if lines:
            return ["", *lines]
        return []


def _bound_facts(worst: Extremes, sizes: int) -> Iterator[str]:
    """Yield what became of the bounds of a workload. ``sizes``: how many it had."""
    numbers, bounds, required = worst.lowest[1:4]
    if worst.is_up:
        if required is None:
            allowed = ""
        else:
            allowed = (
                f" (allowed {required} by "
                f"{f'budget {bounds.budget}' if bounds.budget else 'maxUnavailable'})"
            )
        yield (
            f"lowest available "
            f"{numbers.available}{f' of {numbers.desired}' if sizes > 1 else ''}{allowed}"
        )
    else:
        yield f"available {numbers.available}, has not come up"

    if worst.most_surge or worst.allowed_surge is not None:
        yield (
            f"most surge {worst.most_surge}"
            + ("" if worst.allowed_surge is None else f" (allowed {worst.allowed_surge})")
        )


def filled(parts: Sequence[str], separator: str, width: int) -> list[str]:
    """Return lines with as many parts in each as have room."""
    lines: list[str] = []
    for number, part in enumerate(parts):
        text = part + (separator if number < len(parts) - 1 else "")
        if lines and len(lines[-1]) + len(text.rstrip()) <= width:
            lines[-1] += text
        else:
            lines.append(text)
    return [line.rstrip() for line in lines]


def name_cut(before: str, name: str, after: str, width: int) -> str:
    """Return three texts as one, the name cut in its middle where they have no room; some of it is
    left."""
    before, name, after = map(printable, (before, name, after))
    return (
        f"{before}{_middle_cut(name, max(width - len(before) - len(after), SHORTEST_NAME))}{after}"
    )


def _middle_cut(text: str, width: int) -> str:
    """Return a text that fits in so many columns, cut in its middle: names differ at their ends."""
    if len(text) <= width:
        return text
    end = (width - 2) // 2
    return f"{text[: width - 2 - end]}..{text[len(text) - end :]}"


def _sign_of_legend(sign: str) -> str:
    """Return the sign that stands for another one in the legend: one letter for all revisions."""
    if sign in MEANINGS:
        return sign
    if sign.isupper():
        return "A"
    return "a"
