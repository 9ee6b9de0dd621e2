"""A plan as parts that a document shows: the verdict, the harm, a row for each workload.

Texts are plain: whoever shows them escapes them for the document.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.cli.plan_forks import PlannedCommand
from kubepy.cli.plan_text import PlanText, moment, required_of
from kubepy.insight.harm import NEVER_FINISHES, Harm
from kubepy.insight.plans import Plan, PlannedWorkload
from kubepy.insight.policy import HeldCondition, PlanPolicy
from kubepy.insight.runs import Runs
from kubepy.insight.why.causes import CAUSES
from kubepy.quoting import printable

MOST_NAMED = 4  # objects in the verdict
HEADS = ("workload", "pods", "lowest available", "bound", "finished")  # of the table of workloads


class HarmRow(NamedTuple):
    """A harm, for a list.

    :ivar subject: ``deployment web``; ``when``: ``after 5s, for 10s``.
    :ivar change: ``3/3 → 0/3 available``.
    :ivar reasons: what holds up a workload that does not finish, from it to what is to blame.
    """

    kind: str
    subject: str
    when: str
    change: str
    counts: bool
    reasons: tuple[str, ...] = ()


class WorkloadRow(NamedTuple):
    """A workload, for a table; "" where there is nothing to say."""

    subject: str
    pods: str
    lowest: str
    bound: str
    finished: str


class Report:
    """What a document says of a plan.

    :param violations: the conditions of ``--fail-if`` that hold.
    :param runs: the spread of several runs; None for a single one.
    :param status: the exit status.
    """

    def __init__(
        self,
        plan: Plan,
        planned: PlannedCommand,
        policy: PlanPolicy,
        violations: Sequence[HeldCondition],
        runs: Runs | None,
        status: int,
    ) -> None:
        self.plan = plan
        self.planned = planned
        self.policy = policy
        self.violations = violations
        self.runs = runs
        self.status = status
        self.text = PlanText(io.StringIO(), plan, policy, violations)

    # --- the verdict

    @property
    def verdict(self) -> str:
        """The sentence about whether the plan finishes, and when."""
        return self.text.verdict()

    @cached_property
    def hurt(self) -> tuple[str, ...]:
        """The objects whose harm counts, each with its kinds: ``deployment web (outage)``."""
        kinds: dict[str, list[str]] = {}
        for row in self.harm:
            if row.counts and row.kind != NEVER_FINISHES:
                kinds.setdefault(row.subject, []).append(row.kind)
        for violation in self.violations:
            kinds.setdefault(self.text.subject(violation.key), []).append(violation.condition)
        named = [printable(f"{name} ({', '.join(texts)})") for name, texts in kinds.items()]
        more = len(named) - MOST_NAMED
        return (*named[:MOST_NAMED], *([f"{more} more"] if more > 0 else []))

    @property
    def about(self) -> str:
        """The command that the plan is about; "" for what is under way."""
        return " ".join(self.plan.command)

    @property
    def revisions(self) -> tuple[str, ...]:
        """The names of the revision before and that after; none for a plan of a command."""
        document = self.planned.document()
        return (document["from"], document["to"]) if "from" in document else ()

    # --- rows

    @cached_property
    def told_harm(self) -> list[Harm]:
        """The harm without that which another harm of the same object says."""
        return [
            harm
            for harm in self.plan.harm
            if harm.kind == NEVER_FINISHES or self.text.is_told(harm)
        ]

    @cached_property
    def harm(self) -> list[HarmRow]:
        """A row for each harm that is told."""
        whys = {workload.key: workload for workload in self.plan.workloads}
        rows = []
        for harm in self.told_harm:
            workload = whys.get(harm.key)
            reasons: tuple[str, ...] = ()
            if harm.kind == NEVER_FINISHES and workload is not None:
                reasons = tuple(self._reasons(workload))
            rows.append(
                HarmRow(
                    harm.kind,
                    self.text.subject(harm.key),
                    self.text.when(harm),
                    printable(change_of(harm)),
                    harm.kind in self.policy.fail_on,
                    reasons,
                )
            )
        return rows

    def _reasons(self, workload: PlannedWorkload) -> Iterator[str]:
        if workload.why is not None:
            for link in workload.why.chain:
                yield printable(f"{self.text.subject(link.key)}: {link.text}")

    @cached_property
    def conditions(self) -> list[tuple[str, str]]:
        """The conditions that hold: the object, and the expression."""
        return [
            (self.text.subject(held.key), printable(held.condition)) for held in self.violations
        ]

    @cached_property
    def workloads(self) -> list[WorkloadRow]:
        """A row for each workload."""
        return [self._row(workload) for workload in self.plan.workloads]

    def _row(self, workload: PlannedWorkload) -> WorkloadRow:
        pods = ", ".join(f"{count} {word}" for count, word in self.text.pods(workload))
        lowest = self.text.lowest(workload)
        if lowest is None:
            numbers = bound = ""
        else:
            numbers = f"{lowest.numbers.available}/{lowest.numbers.desired}"
            bound = "" if lowest.required is None else str(lowest.required)
            if lowest.required is not None and lowest.bounds.budget:
                bound += f" by {lowest.bounds.budget}"
        after = workload.finished_after
        if after is None:
            finished = "never"
        elif workload.goes_on:
            finished = "goes on by itself"
        else:
            finished = f"{'gone ' if self.text.is_gone(workload) else ''}{moment(after)}"
        return WorkloadRow(
            self.text.subject(workload.key), pods, numbers, printable(bound), finished
        )

    @cached_property
    def notes(self) -> list[str]:
        """Sentences about workloads that finish, or do not count."""
        notes = []
        for workload in self.plan.workloads:
            if workload.note is not None:
                cause = CAUSES.get(workload.note.cause, workload.note.cause)
                notes.append(f"{self.text.subject(workload.key)}: {cause}")
        if self.plan.others:
            names = ", ".join(map(self.text.subject, self.plan.others))
            notes.append(f"not counted, for they did not get on before: {names}")
        notes += [contest.sentence for contest in self.plan.prediction.contests]
        return [printable(note) for note in notes]


def change_of(harm: Harm) -> str:
    """Return the numbers or the state of an object before and after: ``3/3 → 0/3 available``."""
    before, after = harm.before, harm.after
    if "desired" in after:
        return f"{share_of(before)} → {share_of(after)} available{required_by(after)}"
    if "endpoints" in after:
        return f"{before['endpoints']} → {after['endpoints']} ready endpoints"
    if "disruptionsAllowed" in after:
        old = before["disruptionsAllowed"]
        return f"{'new' if old is None else old} → {after['disruptionsAllowed']} evictions allowed"
    state = after.get("phase") if "phase" in after else after.get("state", "")
    text = f"{before.get('phase') or before.get('state', '')} → {state or 'deleted'}"
    cause = after.get("cause", "")
    return f"{text}: {CAUSES.get(cause, cause)} ({cause})" if cause else text


def share_of(numbers: Object) -> str:
    """Return ``3/3``; what has no pods yet has none of none."""
    return f"{numbers.get('available', 0)}/{numbers.get('desired', 0)}"


def required_by(after: Object) -> str:
    """Return `` (3 required by the budget web)``, or why pods are missing; "" for neither."""
    required = required_of(after)
    if required:
        return f" ({required})"
    cause = after.get("cause", "")
    return f": {CAUSES.get(cause, cause)} ({cause})" if cause else ""
