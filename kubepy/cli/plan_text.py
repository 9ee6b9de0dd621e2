"""A plan as text: the steps in waves with availability beside them, a line for each workload, a
line for the end.

A wave is all that happens at one moment. Steps of one object in it are one phrase, objects with the
same phrase one line. Waves that repeat are folded, and so are the waves in the middle of a plan
that would be too long to read.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import IO, NamedTuple

from kubepy.api.meta import Object
from kubepy.api.values.goformat import format_duration
from kubepy.cli.plan_changes import AppliedChange, more_of, text_lines
from kubepy.controlplane.manager import WAIT_WRITES
from kubepy.insight import Course, Link, Step
from kubepy.insight.availability import Availability, at_step, extremes, judge
from kubepy.insight.harm import (
    BELOW_BOUND,
    BLOCKED,
    DATA,
    NEVER_FINISHES,
    OUTAGE,
    STUCK,
    UNREACHABLE,
    WORSE,
    Harm,
)
from kubepy.insight.plans import Plan, PlannedWorkload
from kubepy.insight.policy import HURTS, HeldCondition, PlanPolicy, status_of_plan
from kubepy.insight.runs import RunResult, Runs
from kubepy.insight.why.causes import CAUSES
from kubepy.quoting import printable
from kubepy.storage import Key
from kubepy.terminal import Colour, Painter, can_print, shortened, width_of

BAR_WIDTH = 10
NARROW = 72  # columns; where there are fewer, there are no bars
MIN_ROOM = 20  # columns for what happens, on the narrowest terminals too
MAX_HARM = 20  # lines about what is hurt
MAX_FAILED = 10  # lines about seeds that fail
MAX_LINES = 50  # of waves, before those in the middle are put together
HEAD, TAIL, BUCKETS = (
    5,
    3,
    12,
)  # the waves of a long plan that are shown singly at both ends; the parts between them
MAX_PERIOD = 12  # waves that may repeat together
RUN_OUT = (
    "cronjobs.batch",
    "jobs.batch",
)  # their pods are to end, so none are awaited as available
FULL = "▇"
EMPTY = "░"
PLAIN_BAR = ("#", ".")
# The symbol and the colour of each action; a phrase has those of its last action.
GOOD = "*"
BAD = "!"
GONE = "-"
CHANGED = "~"
NEW = "+"
COLOURS = {
    GOOD: Colour.GREEN,
    BAD: Colour.RED,
    GONE: Colour.RED,
    CHANGED: Colour.YELLOW,
    NEW: Colour.GREEN,
}
SYMBOLS = {
    "created": NEW,
    "scheduled": NEW,
    "started": NEW,
    "ready": GOOD,
    "available": GOOD,
    "succeeded": GOOD,
    "complete": GOOD,
    "completed": GOOD,
    "bound": GOOD,
    "uncordoned": GOOD,
    "terminating": GONE,
    "deleted": GONE,
    "failed": BAD,
    "unavailable": BAD,
    "not-ready": BAD,
    "waiting": BAD,
    "restarted": BAD,
    "evicted": GONE,
    "adopted": CHANGED,
    "changed": CHANGED,
    "cordoned": CHANGED,
    "orphaned": CHANGED,
    "paused": CHANGED,
    "replaced": CHANGED,
    "resumed": CHANGED,
    "scaled": CHANGED,
    "suspended": CHANGED,
    "tainted": CHANGED,
    "untainted": CHANGED,
}
# Actions that go without saying beside another one of the same object at the same moment.
IMPLIED = {
    "scheduled": ("created", "ready", "started"),
    "started": ("ready", "created"),
    "available": ("ready",),
    "terminating": ("deleted",),
    "unavailable": ("not-ready", "failed", "terminating", "deleted"),
    "not-ready": ("failed", "restarted", "terminating", "deleted"),
    "evicted": ("terminating", "deleted"),
}


class Phrase(NamedTuple):
    """What several objects of one workload do alike at one moment.

    :ivar workload: the workload that they belong to.
    """

    workload: Key
    resource: str
    actions: tuple[str, ...]
    reason: str


class WaveLine(NamedTuple):
    """A line of a wave: a phrase with the objects that it is about."""

    phrase: Phrase
    steps: tuple[Step, ...]  # the last of each object: the one that knows its node


class Wave(NamedTuple):
    """What happens at one moment, or in a part of a long plan.

    :ivar first: seconds from the beginning; ``last``: the same, but for a part.
    :ivar begin: how many steps there have been before; ``end``: and at its end.
    """

    first: float
    last: float
    begin: int
    end: int
    lines: tuple[WaveLine, ...]

    @property
    def label(self) -> str:
        """When it happens."""
        if self.first != self.last:
            return f"to {duration(self.last)}"
        return moment(self.first, at_once="now")

    @property
    def form(self) -> tuple[tuple[Phrase, int], ...]:
        """The lines without names: waves of the same form are alike. Sizes to which something is
        scaled differ."""
        return tuple(
            (
                line.phrase._replace(reason="")
                if line.phrase.actions == ("scaled",)
                else line.phrase,
                len(line.steps),
            )
            for line in self.lines
        )


class Beside(NamedTuple):
    """What stands at the end of a line, without colours and with them; "" for nothing."""

    plain: str = ""
    painted: str = ""

    def room(self, most: int) -> int:
        """Return how many columns it leaves of so many."""
        return max(most - (len(self.plain) + 2 if self.plain else 0), MIN_ROOM)


NOTHING = Beside()


class PlanText:
    """The text of a plan for one stream.

    :param policy: harm that it does not count is told in a faint colour.
    :param violations: its conditions that hold.
    :param plain: bars are drawn with ASCII characters, whatever the stream's encoding has.
    """

    def __init__(
        self,
        stream: IO[str],
        plan: Plan,
        policy: PlanPolicy,
        violations: Sequence[HeldCondition] = (),
        *,
        plain: bool = False,
    ) -> None:
        self._plan = plan
        self._policy = policy
        self._violations = violations
        self._paint = Painter(stream)
        self._width = width_of(stream)
        self._bar = PLAIN_BAR if plain or not can_print(stream, FULL + EMPTY) else (FULL, EMPTY)
        self._timeline = plan.prediction.timeline
        self._courses = {workload.key: workload.course for workload in plan.workloads}
        self._tops = plan.tops
        keys = (*self._courses, *(harm.key for harm in plan.harm))
        self._names_namespaces = len({key.namespace for key in keys if key.namespace}) > 1
        self._time_width = 0
        self._judged = {key: judge(course) for key, course in self._courses.items()}
        self._beside: dict[
            Key, str
        ] = {}  # the availability that stands beside the last line about a workload

    # --- parts

    def output(self, text: str) -> list[str]:
        """Return the lines that the command itself has printed, and an empty one."""
        lines = [
            self._paint(part, Colour.DIM)
            for line in text.splitlines()
            for part in (self._wrapped(line, "  ") if len(line) > self._width else [line])
        ]
        if lines:
            return [*lines, ""]
        return []

    def changes(self, changes: Sequence[AppliedChange]) -> list[str]:
        """Return the lines about what the command changes, and an empty one."""
        lines = [
            self._paint(shortened(line, self._width), COLOURS.get(line.strip()[0], Colour.DIM))
            for line in text_lines(changes)
        ]
        return [*lines, ""] if lines else []

    def lines(self) -> list[str]:
        """Return the waves, the workloads and the end."""
        parts = [self.shown_waves(MAX_LINES), list(self.workloads()), list(self.harm()), self.end()]
        return [
            line
            for number, part in enumerate(part for part in parts if part)
            for line in ([""] if number else []) + part
        ]

    # --- waves

    def shown_waves(self, most: float) -> list[str]:
        """Return the lines of the waves; those in the middle are put together where there would be
        more than so many."""
        waves = list(self.waves())
        self._time_width = max((len(wave.label) for wave in waves), default=0) + 2
        shown = list(self._folded(waves))
        if len(shown) > most:
            shown = list(self._folded(self.shortened_waves(waves), repeats=False))
        return shown

    def waves(self) -> Iterator[Wave]:
        """Yield the waves of the plan, in order."""
        steps = self._timeline.steps
        begin = 0
        for end in range(1, len(steps) + 1):
            if end == len(steps) or steps[end].at != steps[begin].at:
                yield self.wave_of(begin, end)
                begin = end

    def wave_of(self, begin: int, end: int) -> Wave:
        """Return the wave of the steps between two positions."""
        by_object: dict[tuple[Key, str], list[int]] = {}
        for position in range(begin, end):
            step = self._timeline.steps[position]
            by_object.setdefault((step.key, step.uid), []).append(position)
        phrases: dict[Phrase, list[Step]] = {}
        for positions in by_object.values():
            steps = [self._timeline.steps[position] for position in positions]
            phrases.setdefault(phrase_of(steps, self._tops[positions[0]]), []).append(steps[-1])
        workloads = dict.fromkeys(phrase.workload for phrase in phrases)
        ranks = {workload: rank for rank, workload in enumerate(workloads)}
        by_workload = sorted(phrases.items(), key=lambda entry: ranks[entry[0].workload])
        return Wave(
            self._seconds(begin),
            self._seconds(end - 1),
            begin,
            end,
            tuple(WaveLine(phrase, tuple(steps)) for phrase, steps in by_workload),
        )

    def _seconds(self, position: int) -> float:
        return (self._timeline.steps[position].at - self._timeline.since).total_seconds()

    def shortened_waves(self, waves: Sequence[Wave]) -> list[Wave]:
        """Return the waves of a long plan: those in the middle become a few parts."""
        middle = waves[HEAD:-TAIL]
        size = -(-len(middle) // BUCKETS)
        parts = [middle[start : start + size] for start in range(0, len(middle), size or 1)]
        return [
            *waves[:HEAD],
            *(together(part) for part in parts),
            *waves[max(len(waves) - TAIL, HEAD) :],
        ]

    def _folded(self, waves: Sequence[Wave], *, repeats: bool = True) -> Iterator[str]:
        """Yield the lines of waves; waves that repeat are shown once.

        :param repeats: fold them.
        """
        begins = [wave.first for wave in waves]
        forms = [wave.form for wave in waves]
        position = 0
        while position < len(waves):
            period, times = repetition(forms, begins, position) if repeats else (0, 0)
            for wave in waves[position : position + (period or 1)]:
                yield from self.wave_lines(wave)
            position += period or 1
            if times:
                last = waves[position + period * times - 1]
                yield from self.fold_line(begins[position] - begins[position - period], times, last)
                position += period * times

    def fold_line(self, interval: float, times: int, last: Wave) -> Iterator[str]:
        """Yield the line for waves that are as those above it."""
        again = f"... {times} more times like this, every {duration(interval)}"
        courses = [
            self._courses[line.phrase.workload]
            for line in last.lines
            if line.phrase.workload in self._courses
        ]
        label = f"to {duration(last.last)}"
        yield from self._row(label, " ", lambda room: again, (), courses[:1], last)

    def wave_lines(self, wave: Wave) -> Iterator[str]:
        """Yield the lines of a wave."""
        label = wave.label
        seen = set()
        for line in wave.lines:
            workload = line.phrase.workload
            if workload in self._courses and workload not in seen:
                courses = [self._courses[workload]]
            else:
                courses = []
            seen.add(workload)
            symbol = SYMBOLS.get(line.phrase.actions[-1], " ")
            colours = (COLOURS[symbol],) if symbol in COLOURS else ()
            text = partial(self.text_of, line)
            yield from self._row(label, symbol, text, colours, courses, wave)
            label = ""

    def _row(
        self,
        label: str,
        symbol: str,
        text: Callable[[int], str],
        colours: tuple[Colour, ...],
        courses: Sequence[Course],
        wave: Wave,
    ) -> Iterator[str]:
        """Yield a line, or several: the time, what happens, and the availability of a workload
        beside it.

        Where they do not fit, the bar makes room first, then numbers that stand above already; a
        text that is still too long goes on in the next line.

        :param text: what happens, in at most so many columns if possible.
        """
        most = self._width - self._time_width - 2
        beside = self.availability(courses[0], wave) if courses else NOTHING
        if courses:
            is_same = self._beside.get(courses[0].key) == beside.plain
            self._beside[courses[0].key] = beside.plain
            if len(text(beside.room(most))) > beside.room(most):
                beside = self.availability(courses[0], wave, has_bar=False)
                if is_same:
                    beside = NOTHING

        room = beside.room(most)
        first, *more = textwrap.wrap(text(room), room, break_on_hyphens=False) or [""]
        head = (
            f"{self._paint(label.ljust(self._time_width), Colour.DIM)}"
            f"{self._paint(symbol, *colours)} {first}"
        )
        if beside.plain:
            yield f"{head}{' ' * (room - len(first) + 2)}{beside.painted}".rstrip()
        else:
            yield head.rstrip()
        for line in more:
            yield f"{' ' * (self._time_width + 4)}{line}"

    def availability(self, course: Course, wave: Wave, *, has_bar: bool = True) -> Beside:
        """Return how many pods of a workload are available after a wave; in a part, at its
        worst."""
        judged = self._judged[course.key]
        during = [moment for moment in judged if wave.begin < moment.step <= wave.end]
        if during and wave.first != wave.last:
            lowest = extremes(during).lowest
        else:
            lowest = at_step(judged, wave.end)

        numbers = lowest.numbers
        bound = lowest.required
        most = max(state.desired for _, state in course.numbers)
        if not numbers.desired or course.key.resource in RUN_OUT:
            return NOTHING
        digits = len(str(most))
        text = f"{f'{numbers.available}/{numbers.desired}':>{2 * digits + 1}} "
        cells = BAR_WIDTH if self._width >= NARROW and has_bar else 0
        filled = min(numbers.available * cells // numbers.desired, cells)
        bar = self._bar[0] * filled + self._bar[1] * (cells - filled)
        end = f" min {bound:<{digits}}" if bound is not None else ""
        if not end and any(moment.required is not None for moment in judged):
            end = " " * len(f" min {most}")  # the bars of all lines stand below each other
        if not cells:
            text = text.strip()
            end = end.rstrip()
        colour = Colour.GREEN
        if numbers.available < numbers.desired:
            colour = Colour.RED if lowest.lacking else Colour.YELLOW
        return Beside(text + bar + end, text + self._paint(bar, colour) + end)

    def text_of(self, line: WaveLine, room: int) -> str:
        """Return a phrase with its objects: ``pod web-0 created, ready on node-1``,
        ``12 pods terminating``.

        :param room: so many columns it should take: where a node does not fit, it is left out.
        """
        phrase = line.phrase
        step = line.steps[0]
        actions = ", ".join(phrase.actions)
        if phrase.reason:
            reason = f"{' ' if phrase.actions[-1] == 'scaled' else ': '}{phrase.reason}"
        else:
            reason = ""

        kind = self._kind(phrase.resource)
        if len(line.steps) > 1:
            if len(self._courses) > 1 and phrase.workload.name:
                owner = f" of {self._name(phrase.workload)}"
            else:
                owner = ""
            return printable(f"{len(line.steps)} {plural(kind)}{owner} {actions}{reason}")

        text = printable(f"{kind} {self._name(step.key)} {actions}{reason}")
        with_node = printable(f"{text} on {step.node}") if step.node and not reason else text
        if len(with_node) <= room:
            return with_node
        return text

    def _kind(self, resource: str) -> str:
        """Return the kind of a resource in small letters: ``pod``, ``replicaset``."""
        known = self._plan.prediction.cluster.scheme.get(resource)
        if known:
            return known.kind.lower()
        return resource.partition(".")[0]

    def _name(self, key: Key) -> str:
        """Return a name, with its namespace where the plan is about several."""
        if self._names_namespaces and key.namespace:
            return f"{key.namespace}/{key.name}"
        return key.name

    # --- workloads

    def workloads(self) -> Iterator[str]:
        """Yield a line for each workload, and below one that does not finish what holds it up."""
        for workload in self._plan.workloads:
            is_finished = workload.finished_after is not None
            text = (
                f"{self._kind(workload.key.resource)} {self._name(workload.key)}: "
                f"{', '.join(self.facts(workload))}"
            )
            yield from self._sentence(text, Colour.GREEN if is_finished else Colour.RED)
            if workload.why is not None:
                yield from self.reasons(workload.why.cause, workload.why.chain)
            if workload.note is not None:
                yield from self.reasons(workload.note.cause, workload.note.chain, "note: ")

        if self._plan.others:
            names = ", ".join(
                f"{self._kind(key.resource)} {self._name(key)}" for key in self._plan.others
            )
            yield from self._sentence(
                f"not counted, for they did not get on before: {names}", Colour.DIM
            )

        for contest in self._plan.prediction.contests:
            yield from self._sentence(f"note: {contest.sentence}", Colour.RED)

    def facts(self, workload: PlannedWorkload) -> Iterator[str]:
        """Yield what there is to say about a workload in its line."""
        after = workload.finished_after
        if after is None:
            yield "does not finish"
        elif workload.goes_on:
            yield "goes on by itself"
        else:
            yield f"{'gone' if self.is_gone(workload) else 'done'} {moment(after)}"

        for number, word in self.pods(workload):
            yield f"{number} {plural('pod') if number > 1 else 'pod'} {word}"

        lowest = self.lowest(workload)
        if lowest is not None:
            numbers, bounds, bound = lowest[1:4]
            budget = f" by {bounds.budget}" if bounds.budget else ""
            yield (
                f"lowest {numbers.available}/{numbers.desired}"
                + (f" (min {bound}{budget})" if bound is not None else "")
            )

    @cached_property
    def _own_actions(self) -> dict[Key, list[str]]:
        """Actions of each object, in order."""
        actions: dict[Key, list[str]] = {}
        for step in self._timeline.steps:
            actions.setdefault(step.key, []).append(step.action)
        return actions

    @cached_property
    def _pod_actions(self) -> dict[Key, Counter[str]]:
        """Counts of the actions of each workload's pods."""
        actions: dict[Key, Counter[str]] = {}
        for step, top in zip(self._timeline.steps, self._tops, strict=True):
            if step.key.resource == "pods" and step.key != top:
                actions.setdefault(top, Counter())[step.action] += 1
        return actions

    def is_gone(self, workload: PlannedWorkload) -> bool:
        """Return whether a workload is deleted for good."""
        own = self._own_actions.get(workload.key, ())
        return "deleted" in own and "created" not in own[own.index("deleted") :]

    def pods(self, workload: PlannedWorkload) -> Iterator[tuple[int, str]]:
        """Yield how many pods of a workload are replaced, created and deleted."""
        pods = self._pod_actions.get(workload.key, Counter())
        replaced = min(pods["created"], pods["deleted"])
        for number, word in (
            (replaced, "replaced"),
            (pods["created"] - replaced, "created"),
            (pods["deleted"] - replaced, "deleted"),
        ):
            if number:
                yield number, word

    def lowest(self, workload: PlannedWorkload) -> Availability | None:
        """Return the moment at which a workload lacks most; None for one that needs no pods."""
        end = workload.course.numbers[-1][1]
        if not end.desired or self.is_gone(workload) or workload.key.resource in RUN_OUT:
            return None
        return extremes(self._judged[workload.key]).lowest

    def reasons(self, cause: str, chain: Sequence[Link], head: str = "") -> Iterator[str]:
        """Yield what ``why`` says of a workload: the cause, and the chain to what is to blame.

        :param head: stands before the cause.
        """
        yield from self._wrapped(f"  {head}{CAUSES.get(cause, '')} ({cause})", "    ")
        for link in chain:
            kind = self._kind(link.key.resource)
            yield from self._wrapped(f"    {kind} {self._name(link.key)}: {link.text}", "      ")

    def _sentence(self, text: str, colour: Colour) -> list[str]:
        return [self._paint(line, colour) for line in self._wrapped(text, "  ")]

    def _wrapped(self, text: str, indent: str) -> list[str]:
        """Return the lines of a text; further lines begin with the indent."""
        return textwrap.wrap(
            printable(text),
            self._width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )

    # --- harm

    def harm(self) -> Iterator[str]:
        """Yield a line for each object that is hurt, and each condition that holds, but for
        workloads that do not finish, which have theirs."""
        told = [harm for harm in self._plan.harm if self.is_told(harm)]
        for harm in told[:MAX_HARM]:
            counts = harm.kind in self._policy.fail_on
            text = f"! {self.subject(harm.key)}: {self.sentence(harm)}"
            if counts:
                yield from self._sentence(text, Colour.RED)
            else:
                yield from self._sentence(f"{text} (not counted)", Colour.DIM)
        if len(told) > MAX_HARM:
            kinds = Counter(harm.kind for harm in told[MAX_HARM:])
            more = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
            yield from self._sentence(f"! ... and {more}", Colour.RED)
        for violation in self._violations[:MAX_HARM]:
            text = f"! {self.subject(violation.key)}: {violation.condition}"
            yield from self._sentence(text, Colour.RED)
        if len(self._violations) > MAX_HARM:
            more = more_of(len(self._violations) - MAX_HARM, "condition")
            yield from self._sentence(f"! ... and {more}", Colour.RED)

    @cached_property
    def _harm_of(self) -> Mapping[Key, list[Harm]]:
        """The harm to each object."""
        harm_of = defaultdict[Key, list[Harm]](list)
        for harm in self._plan.harm:
            harm_of[harm.key].append(harm)
        return harm_of

    def is_told(self, harm: Harm) -> bool:
        """Return whether a harm has a line of its own: none that another one of the object
        says."""
        others = self._harm_of[harm.key]
        outages = [other for other in others if other.kind == OUTAGE]
        if harm.kind == WORSE:
            lasts = any(outage.seconds is None for outage in outages)
            return not lasts and not any(other.kind == NEVER_FINISHES for other in others)
        return harm.kind != NEVER_FINISHES and not (harm.kind == BELOW_BOUND and outages)

    def subject(self, key: Key) -> str:
        """Return an object with its kind: ``deployment web``."""
        return f"{self._kind(key.resource)} {self._name(key)}"

    def sentence(self, harm: Harm) -> str:
        """Return how an object is hurt, and when."""
        return f"{harm.kind} {self.when(harm)}: {FACTS[harm.kind](harm.before, harm.after)}"

    def when(self, harm: Harm) -> str:
        """Return when a harm begins, and how long it lasts: ``after 5s, to the end``. Nobody knows
        the end of one that only the limit of the plan cuts off."""
        when = moment((harm.at - self._timeline.since).total_seconds(), at_once="now")
        prediction = self._plan.prediction
        if harm.seconds is None and prediction.is_at_limit:
            how_long = f"still after {duration(prediction.limit)}"
        elif harm.seconds is None:
            how_long = "to the end"
        elif harm.seconds:
            how_long = f"for {duration(harm.seconds)}"
        else:
            how_long = "for a moment"
        return f"{when}{SAYS_HOW_LONG.get(harm.kind, '').format(how_long)}"

    def end(self) -> list[str]:
        """Return the line about the whole plan."""
        if status_of_plan(self._policy, self._plan, self._violations) != HURTS:
            return [self.verdict()]
        return [f"{self.verdict()} {self._paint('It hurts.', Colour.RED, Colour.BOLD)}"]

    def verdict(self) -> str:
        """Return the line about whether the plan finishes, and when."""
        plan = self._plan
        last = self._seconds(-1) if self._timeline.steps else 0.0
        if plan.finishes:
            if not self._timeline.steps:
                if not plan.command:
                    return "Nothing is under way."
                return "No workload changes."
            is_last = duration(last) == duration(plan.finished_after)
            text = (
                f"Finishes "
                f"{moment(plan.finished_after)}"
                f"{'' if is_last else f'; the last step is {moment(last)}'}."
            )
            return self._paint(text, Colour.GREEN, Colour.BOLD)

        if plan.prediction.is_cut:
            text = (
                f"Does not finish: the controllers write more than {WAIT_WRITES:,} times at "
                f"one moment."
            )
        elif plan.prediction.excesses:
            text = f"Does not finish: {plan.prediction.excesses[0].sentence}."
        elif any(contest.interval for contest in plan.prediction.contests):
            text = "Does not finish: it never comes to rest."
        elif plan.prediction.only_cron_jobs_go_on:
            text = "Does not finish: nothing more happens but the runs of CronJobs."
        elif not plan.prediction.settled:
            text = f"Does not finish within {duration(plan.prediction.limit)}."
        else:
            text = f"Does not finish: nothing more happens {moment(last, at_once='at all')}."

        return self._paint(text, Colour.RED, Colour.BOLD)

    def runs(self, runs: Runs) -> list[str]:
        """Return how several runs spread, and which fail; the plan above them is that of the
        worst."""
        lines = [
            "",
            f"{runs.runs} runs, of which {runs.finished} finish. Above is the worst of them, seed "
            f"{runs.worst}.",
        ]
        for workload in runs.workloads:
            after = workload.after
            if after is None:
                times = "never done, "
            else:
                times = (
                    f"done after {duration(after.median)} (median), "
                    f"{duration(after.percentile_95)} (95 %)"
                    f"{self._share(workload.finished, runs.runs)}, "
                )
            lines += self._wrapped(
                f"{self._kind(workload.key.resource)} {self._name(workload.key)}: {times}"
                f"lowest {workload.lowest} available",
                "  ",
            )

        for result in runs.failed[:MAX_FAILED]:
            lines += self._sentence(self._failure(result), Colour.RED)
        if len(runs.failed) > MAX_FAILED:
            lines.append(f"... and {more_of(len(runs.failed) - MAX_FAILED, 'failing seed')}")
        if runs.after:
            lines.append(
                f"All: {duration(runs.after.median)} (median), "
                f"{duration(runs.after.percentile_95)} (95 %)"
                f"{self._share(runs.finished, runs.runs)}."
            )

        return lines

    def _failure(self, result: RunResult) -> str:
        """Return a line about a run that fails."""
        objects = list(dict.fromkeys(self.subject(harm.key) for harm in result.harm))
        about = f" ({', '.join(objects[:3])}{', ...' if len(objects) > 3 else ''})"
        return f"seed {result.seed} fails: {result.cause}{about if objects else ''}"

    def _share(self, finished: int, runs: int) -> str:
        """Return of how many runs times are told, where that is not all of them."""
        if finished < runs:
            return f" of the {finished} that finish"
        return ""


# --- harm ---------------------------------------------------------------------------------------


def of_pods(before: Object, after: Object) -> str:
    """Return ``1/3 available, 2 required by the budget web, 3/3 before``."""
    numbers = [f"{after['available']}/{after['desired']} available"]
    required = required_of(after)
    if required:
        numbers.append(required)
    numbers.append(f"{before['available']}/{before['desired']} before")
    return ", ".join(numbers)


def required_of(after: Object) -> str:
    """Return ``2 required by the budget web``; "" where no number of pods is required."""
    if after.get("required") is None:
        return ""
    budget = f" by the budget {after['budget']}" if after.get("budget") else ""
    return f"{after['required']} required{budget}"


def of_endpoints(before: Object, after: Object) -> str:
    return f"no endpoint ready, {before['endpoints']} before"


def of_budget(before: Object, after: Object) -> str:
    allowed = before["disruptionsAllowed"]
    return f"no eviction allowed, {f'{allowed} before' if allowed else 'it is new'}"


def of_data(before: Object, after: Object) -> str:
    if after["phase"]:
        return "it was bound, and is being deleted"
    return "it was bound, and is deleted"


def of_stuck(before: Object, after: Object) -> str:
    if after["cause"] in CAUSES:
        return f"{CAUSES[after['cause']]} ({after['cause']})"
    return "it was done, and is not any more"


FACTS: dict[str, Callable[[Object, Object], str]] = {
    OUTAGE: of_pods,
    WORSE: of_pods,
    BELOW_BOUND: of_pods,
    UNREACHABLE: of_endpoints,
    BLOCKED: of_budget,
    DATA: of_data,
    STUCK: of_stuck,
}
# The kinds that may be over before the end.
SAYS_HOW_LONG = dict.fromkeys((OUTAGE, BELOW_BOUND, UNREACHABLE), ", {}")


# --- phrases --------------------------------------------------------------------------------------


def phrase_of(steps: Sequence[Step], workload: Key) -> Phrase:
    """Return what one object does at one moment."""
    actions = list(dict.fromkeys(step.action for step in steps))
    said = tuple(
        action
        for action in actions
        if not any(other in actions for other in IMPLIED.get(action, ()))
    )
    reasons = [step.reason for step in steps if step.reason and step.action in said]
    if said == ("scaled",) and len(reasons) > 1:
        reasons = [f"{reasons[0].partition(' ')[0]} to {reasons[-1].rpartition(' ')[2]}"]
    return Phrase(
        workload, steps[0].key.resource, said or tuple(actions), reasons[-1] if reasons else ""
    )


def together(waves: Sequence[Wave]) -> Wave:
    """Return several waves as one, with the steps of each action counted together; pods that others
    follow: once."""
    lines: dict[Phrase, list[Step]] = {}
    for wave in waves:
        for line in wave.lines:
            for action in line.phrase.actions:
                lines.setdefault(line.phrase._replace(actions=(action,), reason=""), []).extend(
                    line.steps
                )

    for workload in dict.fromkeys(phrase.workload for phrase in lines):
        created, deleted, *around = (
            Phrase(workload, "pods", (action,), "")
            for action in ("created", "deleted", "terminating", "ready", "available", "started")
        )
        if created in lines and deleted in lines:
            replaced = min(lines[created], lines[deleted], key=len)
            lines = {
                phrase: steps
                for phrase, steps in lines.items()
                if phrase not in (created, deleted, *around)
            }
            lines[created._replace(actions=("replaced",))] = replaced

    return Wave(
        waves[0].first,
        waves[-1].last,
        waves[0].begin,
        waves[-1].end,
        tuple(WaveLine(phrase, tuple(steps)) for phrase, steps in lines.items()),
    )


def repetition(forms: Sequence[object], begins: Sequence[float], start: int) -> tuple[int, int]:
    """Return the number of waves from a position on that repeat, and how often they do, at the same
    intervals."""
    for period in range(1, MAX_PERIOD + 1):
        times = 0
        position = start + period
        interval = begins[position] - begins[start] if position < len(begins) else 0.0
        while (
            position + period <= len(forms)
            and forms[position : position + period] == forms[start : start + period]
            and (
                all(
                    abs(begins[position + offset] - begins[position + offset - period] - interval)
                    < 0.001
                    for offset in range(period)
                )
            )
        ):
            times = times + 1
            position = position + period
        if times * period > 2 and times > 1:
            return period, times

    return 0, 0


def moment(seconds: float, at_once: str = "at once") -> str:
    """Return ``after 18s``, or other words for no time."""
    if seconds:
        return f"after {duration(seconds)}"
    return at_once


def duration(seconds: float) -> str:
    """Return a duration as Go prints it, to a tenth of a second or a whole one, without parts at
    its end that are 0."""
    text = format_duration(round(seconds, 1) if seconds < 60 else round(seconds))
    return re.sub(r"(?<=[hm])0[ms]$", "", re.sub(r"(?<=[hm])0s$", "", text))


def plural(noun: str) -> str:
    if noun.endswith("s"):
        return f"{noun}es"
    return f"{noun}s"
