"""Sequences of remedies, for objects that several causes hold up: after each remedy the fork is
asked again.

The search goes on with what is nearest to an end: it follows a remedy that has changed the answer
before it tries others, and sequences of real remedies before those with a simulated or destructive
one. It ends with the first sequence that brings the object to done, or with the budget of the
answer. Remedies that the sequence does not need are left out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.apiserver.cluster import LocalCluster
from kubepy.insight import Finding
from kubepy.insight.why import RemedySequence, RemedyStep, goals
from kubepy.insight.why.budget import Budget
from kubepy.insight.why.endings import finding_between
from kubepy.insight.why.marks import RANKS, kind_of
from kubepy.insight.why.question import Question
from kubepy.insight.why.remedies import top_owner
from kubepy.insight.why.trials import RemedyTrial, TimedCommand, shared_budget, try_commands

MOST_STEPS = 6  # of a sequence


class SearchStage(NamedTuple):
    """A fork after some remedies, which have not sufficed.

    :ivar steps: the remedies so far.
    :ivar trial: that of the last one.
    :ivar seen: the answers on the way here.
    """

    steps: tuple[RemedyStep, ...]
    trial: RemedyTrial
    seen: frozenset[object]


class SequenceSearch:
    """The search for a sequence of remedies that brings an object to done.

    :param finding: the answer about the object as it is.
    :param end: the cluster as it is in the end, without any remedy.
    """

    def __init__(
        self, question: Question, asked: Object, finding: Finding, end: LocalCluster
    ) -> None:
        self._question = question
        self._asked = asked
        self._finding = finding
        self._end = end
        self._started = question.cluster.clock.now()
        self._budget: Budget | None = shared_budget(question)
        self._numbers = count()
        self._stages: list[tuple[int, int, int, SearchStage]] = []  # the nearest to an end first

    def run(self, trials: Iterable[RemedyTrial]) -> RemedySequence | None:
        """Return a sequence; None where none is found within the budget.

        :param trials: the remedies of the finding, each tried alone.
        """
        seen = frozenset([self._signature(self._question, self._finding, self._end)])
        begin = SearchStage(
            (), RemedyTrial((), begun=self._question.cluster, end=self._end, settled=True), seen
        )
        if (sequence := self._follow(begin, self._finding, trials)) is not None:
            return sequence
        while self._stages:
            *_, stage = heappop(self._stages)
            if (sequence := self._expand(stage)) is not None:
                return sequence
        return None

    def _expand(self, stage: SearchStage) -> RemedySequence | None:
        """Ask again, and try each remedy of the answer; return the sequence if one brings the
        object to done."""
        question = self._question_at(stage.trial.begun)
        end = stage.trial.end
        if question is None or end is None:
            return None
        finding = finding_between(question, end)
        signature = self._signature(question, finding, end) if finding is not None else None
        if finding is None or signature in stage.seen:
            return None
        words = (*finding.remedies, *finding.fallbacks)
        trials = (
            try_commands(question, self._asked, [TimedCommand(remedy)], budget=self._budget)
            for remedy in words
        )
        return self._follow(stage._replace(seen=stage.seen | {signature}), finding, trials)

    def _follow(
        self, stage: SearchStage, finding: Finding, trials: Iterable[RemedyTrial]
    ) -> RemedySequence | None:
        """Note the stages after further remedies; return the sequence if one of them brings the
        object to done."""
        for trial in trials:
            base = stage.trial.begun
            if (
                trial.begun is None and stage.trial.settled
            ):  # it is about what has yet to be made, or to fail
                base = stage.trial.end
                trial = self._try_later(stage, trial)
            question = self._question_at(base)
            if trial.begun is None or question is None or base is None:
                continue
            words = trial.commands[0].words
            step = RemedyStep(
                words, finding.cause, kind_of(question.scene(), words), self._seconds(base)
            )
            after = SearchStage((*stage.steps, step), trial, stage.seen)
            if trial.proven:
                return self._shortest(after)
            if len(after.steps) < MOST_STEPS:
                marked = sum(RANKS[taken.kind] for taken in after.steps)
                heappush(self._stages, (marked, -len(after.steps), next(self._numbers), after))

        return None

    def _try_later(self, stage: SearchStage, trial: RemedyTrial) -> RemedyTrial:
        """Try a command at the end of a stage, which it could not be run at the beginning of."""
        question = self._question_at(stage.trial.end)
        if (
            question is None
            or question.cluster.clock.now() <= (stage.trial.begun or question.cluster).clock.now()
        ):
            return trial
        return try_commands(question, self._asked, trial.commands, budget=self._budget)

    def _shortest(self, stage: SearchStage) -> RemedySequence:
        """Return the sequence of a stage without the remedies that it does not need."""
        steps = stage.steps
        after = steps[-1].after + (stage.trial.finishes_after or 0.0)
        for step in steps:
            fewer = tuple(other for other in steps if other is not step)
            if not fewer:
                break
            commands = [TimedCommand(other.command, other.after) for other in fewer]
            trial = try_commands(self._question, self._asked, commands, budget=self._budget)
            if trial.proven:
                steps = fewer
                after = trial.finishes_after or 0.0
        return RemedySequence(steps, after)

    def _question_at(self, cluster: LocalCluster | None) -> Question | None:
        if cluster is not None:
            return self._question._replace(cluster=cluster)
        return None

    def _seconds(self, cluster: LocalCluster) -> float:
        return (cluster.clock.now() - self._started).total_seconds()

    def _signature(self, question: Question, finding: Finding, end: LocalCluster) -> object:
        """Return what tells an answer from that before a remedy: the cause, the place that it is
        in, and how far the object comes."""
        obj = question.scene(end).get(*question.key)
        return (
            finding.cause,
            place_of(question, finding),
            goals.progress(obj) if obj is not None else None,
        )


def place_of(question: Question, finding: Finding) -> tuple[object, ...]:
    """Return the object that an answer ends at, the field and its value; a pod, which may be made
    anew, counts as its owner."""
    if not finding.chain:
        return ()
    leaf = finding.chain[-1]
    scene = question.scene()
    obj = scene.get(*leaf.key) if leaf.key.resource == "pods" else None
    if obj is not None:
        return scene.key(top_owner(scene, obj)), leaf.field
    return leaf.key, leaf.field, str(leaf.value)


def sequence_of_one(
    finding: Finding, trials: Sequence[RemedyTrial], question: Question
) -> RemedySequence | None:
    """Return the first proven remedy as a sequence, real ones first; None where none is proven."""
    scene = question.scene()
    proven = [(kind_of(scene, trial.commands[0].words), trial) for trial in trials if trial.proven]
    if not proven:
        return None
    kind, trial = min(proven, key=lambda entry: RANKS[entry[0]])
    return RemedySequence(
        (RemedyStep(trial.commands[0].words, finding.cause, kind),), trial.finishes_after or 0.0
    )
