"""One run: the workload on a fork of the cluster, with controllers that the oracle disturbs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import ClockLimit, later
from kubepy.api.errors import Conflict, Status
from kubepy.api.meta import Object, name_of
from kubepy.api.values.goformat import format_duration
from kubepy.clusters import Cluster
from kubepy.controlplane import build_manager
from kubepy.controlplane.disturbance import DisturbedControllers, OperatorProcess
from kubepy.fuzz.cases import World
from kubepy.fuzz.checks import CheckError, CheckSuite, Violation
from kubepy.fuzz.choices import described
from kubepy.fuzz.patience import LONGEST_CALL, CallTooLong, begin_call, limited_calls
from kubepy.fuzz.words import said
from kubepy.quoting import printable
from kubepy.runtime.oracle import Choice, Oracle, Point, RunName
from kubepy.storage import FolderError, Key

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.controlplane.manager import Manager

# Seconds in which nothing is disturbed, after a run: the longest back-off, and half as much again
CALM = 1500.0
MOST_WRITES = 5_000  # without an end of the work: then a run ends
NEAR = 16  # choices behind a new state, of which every fourth is kept
MOST_SEEN = 400  # states that are kept of a run


class Seen(NamedTuple):
    """A state of what checks read, when it was first seen in a run.

    :ivar taken: how many choices had been taken before; ``points``: had been met.
    :ivar near: some of those that were met right behind it.
    """

    digest: int
    taken: int
    points: int
    near: tuple[Point, ...] = ()


class RunStep(NamedTuple):
    """A line of what happened in a run.

    :ivar at: seconds since the beginning.
    :ivar who: a user, or the controller that was disturbed.
    :ivar what: ``create``, ``write``, ``delete``, ``command``, or the purpose of a choice.
    :ivar words: what it is about.
    """

    at: float
    who: str
    what: str
    words: str


class RunRecord(NamedTuple):
    """The record of a run.

    :ivar name: by which it is repeated.
    :ivar choices: that have disturbed it, in their order.
    :ivar seen: its new states, in their order.
    :ivar writes: how many there were.
    :ivar steps: what happened, where it is asked for.
    :ivar raised: the first exception of an operator's function that is no error of the API; "" for
        none.
    :ivar failed: the command that failed, with what it said; "" where none did.
    """

    name: RunName
    violation: Violation | None
    choices: tuple[Choice, ...]
    seen: tuple[Seen, ...] = ()
    writes: int = 0
    settled: bool = True
    finished_after: float = 0.0
    steps: tuple[RunStep, ...] = ()
    failed: str = ""
    raised: str = ""


class FuzzRun:
    """A run while it goes on.

    :param world: what it begins with.
    :param name: its seed, and its choices where they are given.
    :param left_out: the numbers of the commands that are not run.
    :param explains: the steps of the run are kept.
    :ivar local: the fork of the run.
    :ivar started: the moment at which it begins; ``revision``: that of the cluster then.
    """

    def __init__(
        self,
        world: World,
        name: RunName,
        left_out: Sequence[int] = (),
        *,
        explains: bool = False,
    ) -> None:
        self._world = world
        self._left_out = frozenset(left_out)
        self._explains = explains
        self.steps: list[RunStep] = []
        self.writes = 0
        self._seen: dict[int, Seen] = {}
        self._failed = ""
        self._raised = ""
        self._check_error: CheckError | None = None
        self._oracle = Oracle(name, self._note_choice if explains else None)
        self._made: set[Key] = set()  # where steps are kept
        self.name = name
        self.started = world.started
        self.local = self._fork()
        self.revision = self.local.client.revision()
        self._suite = CheckSuite(world.checks, self.local)
        self._observed = self.local.observed(self._note_write)
        self._observed.added = self._added = self._controllers()
        self.cluster = Cluster(self._observed)
        with redirect_stdout(io.StringIO()), limited_calls():
            self._manager = self._added.manager = self._new_manager()

    # --- setting up

    def _fork(self) -> LocalCluster:
        world = self._world
        seed = self._oracle.run.seed
        fork = world.base.fork(world.settings(seed), is_prediction=True)
        faults = world.faults or fork.settings.faults
        return fork.with_faults(faults)

    def _controllers(self) -> DisturbedControllers:
        operator = self._world.operator
        process = None
        if operator is not None and self._world.names:
            process = OperatorProcess(lambda: operator.start(self.cluster))
        return DisturbedControllers(
            self._oracle,
            self._world.names,
            process,
            disturbs_all=self._world.case.disturbs_all,
        )

    def _new_manager(self) -> Manager:
        manager = build_manager(self._observed)
        manager.is_undivided = True
        manager.synced = self._note_sync
        choose, clock = self._added.choose_entry, self.local.clock
        manager.queues.choose = lambda entry, others: choose(clock.now(), entry, others)
        return manager

    # --- going on

    def go(self) -> RunRecord:
        """Do the workload, and let the controllers work until nothing is left to do or time is
        over; what they print is dropped. Raises CheckError, FolderError."""
        try:
            with redirect_stdout(io.StringIO()), limited_calls():
                return self._go()
        except CallTooLong as error:
            operator = self._world.operator
            place = "the controllers" if operator is None else operator.place_of(error)
            limit = format_duration(LONGEST_CALL)
            raise FolderError(
                f"run {self.name}: {place}: no end after {limit} of computing"
            ) from None

    def _go(self) -> RunRecord:
        start = self._world.started
        end = later(start, self._world.case.duration)
        clock = self.local.clock
        clock.limit = end
        self._added.disturbs_until = later(start, self._world.case.duration / 2)
        with suppress(ClockLimit):
            self._work_load()
        clock.limit = None
        if not self._is_over():
            self._let_work(end)
        if not self._is_over() and not self._manager.is_settled():
            self._calm_down(end)
        if not self._is_over() and self._manager.queues.has_failures():
            self._wait_for_back_off()
        settled = self._manager.is_settled()
        if self._check_error is not None:
            raise self._check_error
        if not self._is_over():
            self._suite.finish(settled=settled)
        return RunRecord(
            self._oracle.run,
            self._suite.violation,
            tuple(self._oracle.taken),
            self._states(),
            self.writes,
            settled,
            self._at(),
            tuple(self.steps),
            self._failed,
            self._raised,
        )

    def _let_work(self, end: datetime) -> None:
        """Let the controllers work until nothing is due, or time is over. An operator that looks
        again and again works to the end."""
        self._manager.advance(end, settled=True, most_writes=MOST_WRITES)
        names = set(self._world.names)
        polls = any(due.reconciler in names for due in self._manager.queues.all_due())
        if polls and not self._is_over():
            self._manager.advance(end, most_writes=MOST_WRITES)

    def _calm_down(self, end: datetime) -> None:
        """Let the controllers do what is still due: a key that was disturbed often comes again only
        when its back-off is over."""
        self._manager.advance(later(end, CALM), settled=True, most_writes=MOST_WRITES)

    def _wait_for_back_off(self) -> None:
        """Let keys come once more that have failed so often that they count as repeating: what
        they failed for may be over."""
        end = later(self.local.clock.now(), CALM)
        self._manager.advance(end, most_writes=MOST_WRITES)

    def _states(self) -> tuple[Seen, ...]:
        points = self._oracle.points
        return tuple(
            seen._replace(near=tuple(points[seen.points : seen.points + NEAR : NEAR // 4]))
            for seen in self._seen.values()
        )

    def _work_load(self) -> None:
        """Run the commands, then the workload of the operator's file; a violation ends it."""
        for number, words in enumerate(self._world.case.commands):
            if self._is_over():
                return
            if number not in self._left_out:
                self._run_command(words)
        operator = self._world.operator
        if operator is not None and not self._is_over():
            operator.workload(self.cluster)

    def _run_command(self, words: Sequence[str]) -> None:
        line = " ".join(words)
        self._note_step("user", "command", line)
        result = self.cluster.run(list(words))
        if result or self._failed:
            return
        said = result.stderr.strip()
        self._failed = printable(f"{line}: {said}")

    def _is_over(self) -> bool:
        """Return whether a check is violated, or could not be evaluated."""
        return self._suite.violation is not None or self._check_error is not None

    # --- what happens

    def _at(self) -> float:
        now = self.local.clock.now()
        return (now - self._world.started).total_seconds()

    def _note_write(self, key: Key, obj: Object | None, user: Object) -> None:
        """Take in that a request has written an object; what a review answers is not stored."""
        name = key.name or ("" if obj is None else name_of(obj))
        if not name:
            return
        self.writes += 1
        if self._is_over():
            return
        key = key._replace(name=name)
        stored = self.local.client.stored(key)
        if self._explains:
            self._note_step(user.get("username", ""), self._verb(key, stored), said(key))
        resources = self._suite.resources
        if resources is not None and key.resource not in resources:
            return
        try:
            self._suite.note(key, stored, user)
        except CheckError as error:  # whoever has written would take it for an answer
            self._check_error = error
        if self._is_over():
            self._manager.halt()
            return
        digest = self._suite.digest()
        if digest not in self._seen and len(self._seen) < MOST_SEEN:
            oracle = self._oracle
            self._seen[digest] = Seen(digest, len(oracle.taken), len(oracle.points))

    def _verb(self, key: Key, stored: Object | None) -> str:
        """Return what a write has done to an object, and note whether it is there now."""
        if stored is None:
            self._made.discard(key)
            return "delete"
        is_known = key in self._made or self._world.base.client.stored(key) is not None
        self._made.add(key)
        return "write" if is_known else "create"

    def _note_sync(self, controller: str, key: Key, error: Exception | None) -> None:
        begin_call()
        if error is None:
            self._suite.note_success(controller, key)
        else:
            self._note_raised(controller, error)
            if not (isinstance(error, Conflict) and self._added.has_caused(error, controller)):
                self._suite.note_failure(controller, key, error)
            if self._suite.violation is not None:
                self._manager.halt()

    def _note_raised(self, controller: str, error: Exception) -> None:
        if self._raised or controller not in self._world.names or isinstance(error, Status):
            return
        self._raised = printable(f"controller {controller}: {type(error).__name__}: {error}")

    def _note_choice(self, choice: Choice) -> None:
        self._note_step(choice.subject[0], choice.purpose, described(choice))

    def _note_step(self, who: str, what: str, words: str) -> None:
        if self._explains:
            self.steps.append(RunStep(self._at(), who, what, words))


def run_once(world: World, name: RunName) -> RunRecord:
    """Make a run. Raises CheckError, FolderError."""
    return FuzzRun(world, name).go()
