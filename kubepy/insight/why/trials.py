"""Trials: command lines are run on a fork, whose controllers then work on; a remedy that brings the
object to done is proven.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubepy.api.clock import format_exact_time, later
from kubepy.api.meta import Object, is_being_deleted
from kubepy.apiserver.cluster import LocalCluster
from kubepy.insight import Finding
from kubepy.insight.prediction import DAY, predict, work
from kubepy.insight.why import REAL, Remedy, forward, goals, jobs
from kubepy.insight.why.budget import Budget, BudgetSpent, most_of_run
from kubepy.insight.why.marks import RANKS, kind_of
from kubepy.insight.why.question import NOTES, Question
from kubepy.insight.why.scene import Scene, Words

MOST_WAITING = (
    600  # pods that are not where they should be: with more of them remedies may write only a tenth
)
LONG_ENOUGH = (
    600.0  # seconds that an object has been done where a run is cut off: longer than any back-off
)


class TimedCommand(NamedTuple):
    """A command line of a trial.

    :ivar after: seconds after the beginning of the trial at which it is run.
    """

    words: Words
    after: float = 0.0


class RemedyTrial(NamedTuple):
    """What came of command lines on a fork.

    :ivar proven: the object got there and stayed there, ``finishes_after`` seconds later.
    :ivar begun: the fork right after the last command; None where one failed, or was not run.
    :ivar end: the fork in the end.
    :ivar settled: nothing was due there any more.
    """

    commands: tuple[TimedCommand, ...]
    proven: bool = False
    finishes_after: float | None = None
    begun: LocalCluster | None = None
    end: LocalCluster | None = None
    settled: bool = False


class TrialRun:
    """One run of a fork with command lines.

    :param noted: the cause of what there is to say of a done object; "": the object is not done.
    :param has_many: there are many pods: it is enough if the object gets there once.
    """

    def __init__(
        self,
        question: Question,
        asked: Object,
        commands: Sequence[TimedCommand],
        noted: str,
        *,
        has_many: bool,
    ) -> None:
        self._question = question
        self._asked = asked
        self._noted = noted
        self._commands = tuple(commands)
        self._is_enough = has_many or is_being_deleted(asked)
        self._budget = Budget(most_of_run(asked), question.budget)
        self._status = 0
        self._since: float | None = (
            None  # seconds from the beginning from which on the object is done
        )
        self._started = question.cluster.clock.now()
        self._begun: LocalCluster | None = None

    def run(self, budget: Budget | None) -> RemedyTrial:
        """Run the commands, and let the controllers work on.

        :param budget: one that several trials share.
        """
        if budget is not None:
            self._budget = budget
        try:
            prediction = predict(
                self._question.cluster,
                self._act,
                observe=lambda fork: self._budget.count_write,
                done=self._is_over,
            )
        except BudgetSpent:
            return RemedyTrial(self._commands)

        if self._status != 0:
            return RemedyTrial(self._commands)
        end = prediction.cluster
        failed = RemedyTrial(self._commands, begun=self._begun, end=end, settled=prediction.settled)
        if not self._helps(end):
            return failed
        again = self._after_next_start(end)
        if again is not None and not self._helps(again):
            return failed._replace(end=again)
        seconds = self._seconds(end)
        since = seconds if self._since is None else self._since
        if self._budget.is_spent and not self._is_enough and seconds - since < LONG_ENOUGH:
            return failed
        return failed._replace(proven=True, finishes_after=since)

    def _act(self, fork: LocalCluster) -> None:
        assert self._question.run is not None
        for command in self._commands:
            if command.after > self._seconds(fork):
                work(fork, later(self._started, command.after), None, settled=False)
            self._status = self._question.run(fork, command.words)
            if self._status != 0:
                return
        self._begun = fork.fork(is_prediction=True).with_faults(fork.settings.faults)

    def _is_over(self, fork: LocalCluster) -> bool:
        self._budget.count_moment()
        if self._status != 0:
            return True
        if not self._helps(fork):
            self._since = None
        elif self._since is None:
            self._since = self._seconds(fork)
        return self._budget.is_spent or (self._since is not None and self._is_enough)

    def _helps(self, fork: LocalCluster) -> bool:
        """Return whether the object is done. What was noted of a done one must be gone then, and
        nothing else be left to do."""
        if not self._question.is_done(fork, self._asked):
            return False
        obj = self._question.scene(fork).get(*self._question.key) if self._noted else None
        note = self._question.scene(fork, NOTES).diagnose(obj) if obj is not None else None
        return note is None or (note.cause != self._noted and not note.remedies)

    def _after_next_start(self, end: LocalCluster) -> LocalCluster | None:
        """Return the fork after the next start of a CronJob; None for other objects, which do not
        start again."""
        scene = self._question.scene(end)
        obj = scene.get(*self._question.key)
        if obj is None or obj["kind"] != "CronJob" or self._is_enough:
            return None
        fork = end.fork(is_prediction=True).with_faults(end.settings.faults)
        fork = fork.observed(self._budget.count_write)
        start = jobs.starts_of(scene, obj).next
        work(fork, start, lambda _: self._budget.is_spent, settled=False)
        work(fork, later(start, DAY), self._is_over)
        return fork

    def _seconds(self, fork: LocalCluster) -> float:
        return (fork.clock.now() - self._started).total_seconds()


def try_remedies(
    question: Question, asked: Object, finding: Finding, *, is_note: bool = False
) -> list[RemedyTrial]:
    """Try each remedy of a finding alone, then, as long as no real one has helped, each of its
    fallbacks.

    :param is_note: the object is done, so that a remedy has to change what there is to say about
        it.

    With many pods they are tried until one helps, or has written too much: what would make hundreds
    of pods anew is soon given up.
    """
    noted = finding.cause if is_note else ""
    budget = shared_budget(question, is_note=is_note)
    scene = question.scene()
    trials: list[RemedyTrial] = []
    for words in (*finding.remedies, *finding.fallbacks):
        helped = [trial for trial in trials if trial.proven]
        if words in finding.fallbacks:
            is_enough = any(kind_of(scene, trial.commands[0].words) == REAL for trial in helped)
        else:
            is_enough = bool(helped) and budget is not None
        trials.append(
            RemedyTrial((TimedCommand(words),))
            if is_enough
            else try_commands(question, asked, [TimedCommand(words)], noted=noted, budget=budget)
        )

    return trials


def shared_budget(question: Question, *, is_note: bool = False) -> Budget | None:
    """Return the budget that all trials share where there are many pods, None where there are
    few."""
    pods, settled = _settled_pods(question.scene())
    if pods <= forward.MANY_PODS:
        return None
    costs_much = is_note or pods - settled > MOST_WAITING
    return Budget(
        forward.MOST_WRITES // 10 if costs_much else forward.MOST_WRITES, question.budget, at_once=0
    )


def _settled_pods(scene: Scene) -> tuple[int, int]:
    """Return how many pods there are, and how many of them are where they should be."""
    pods = scene.list("pods")
    return len(pods), sum(goals.pod(scene, pod) for pod in pods)


def try_commands(
    question: Question,
    asked: Object,
    commands: Sequence[TimedCommand],
    *,
    noted: str = "",
    budget: Budget | None = None,
) -> RemedyTrial:
    """Run command lines on a fork, and see whether the object gets there.

    Unless there are many pods, the object must still be there when all has come to rest: it might
    get there for a moment only, between two crashes.

    :param budget: one that several trials share, because there are many pods.
    """
    whole = question.budget
    if question.run is None or (whole is not None and (whole.is_spent or whole.tries <= 0)):
        return RemedyTrial(tuple(commands))
    if whole is not None:
        whole.tries -= 1
    return TrialRun(question, asked, commands, noted, has_many=budget is not None).run(budget)


def remedies_of(
    scene: Scene, finding: Finding, trials: Sequence[RemedyTrial]
) -> tuple[Remedy, ...]:
    """Return trials of single commands as remedies: real ones before those that only change the
    simulation, and these before those that destroy something; of each kind those that help come
    first. Fallbacks are named only if they do.
    """
    remedies = [
        Remedy(
            trial.commands[0].words,
            trial.proven,
            trial.finishes_after,
            kind_of(scene, trial.commands[0].words),
        )
        for trial in trials
    ]
    return tuple(
        sorted(
            (remedy for remedy in remedies if remedy.proven or remedy.command in finding.remedies),
            key=lambda remedy: (RANKS[remedy.kind], not remedy.proven),
        )
    )


def try_alone(question: Question, asked: Object, words: Words) -> Remedy:
    """Run a command line on a fork, and see whether the object is there as soon as it ends."""
    fork = question.cluster.fork(
        {"clock": format_exact_time(question.cluster.clock.now())}, is_prediction=True
    )
    started = fork.clock.now()
    run = question.run
    if run is None or run(fork, words) != 0 or not question.is_done(fork, asked):
        return Remedy(words)
    return Remedy(words, True, (fork.clock.now() - started).total_seconds())
