"""One fuzz from beginning to end: the search, the shrinking of what it finds, the report."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from datetime import timedelta
from typing import NamedTuple, TypedDict, Unpack

from kubepy.api.values.goformat import seconds_of
from kubepy.arguments import checked
from kubepy.cli.files import noting_reads
from kubepy.cli.parallel.commandfiles import command_files
from kubepy.cli.parallel.processes import process_pool
from kubepy.cli.parallel.runmaker import PART, RunMaker, Task
from kubepy.clusters import Cluster
from kubepy.controlplane.images import ClusterImage, image_of
from kubepy.fuzz.builtin_checks import INTERNAL_ERROR
from kubepy.fuzz.cases import (
    DEFAULT_DURATION,
    ChecksSource,
    FuzzCase,
    checks_of,
)
from kubepy.fuzz.choices import described
from kubepy.fuzz.keptsearch import KeptSearch
from kubepy.fuzz.operators import OperatorSource
from kubepy.fuzz.reporting import FoundViolation, FuzzReport, first_of_each_check
from kubepy.fuzz.run import FuzzRun, RunRecord
from kubepy.fuzz.search import Search
from kubepy.fuzz.shrinking import Shrinker
from kubepy.fuzz.transcripts import ReplayLine, transcript_of
from kubepy.fuzz.workers import task_of, world_of
from kubepy.quoting import printable
from kubepy.runtime.oracle import RunName, parse_run
from kubepy.storage import FolderError

WORK = "kubepy.fuzz.workers"  # the module of those who make the runs
MOST_ALSO = 20  # further seeds that are named for a check
FilePath = str | os.PathLike[str]


class FuzzFiles(NamedTuple):
    """The parts of a fuzz, as somebody names them.

    :ivar operator: the path of its file; "": there is none.
    :ivar checks: paths of files, and names of built-in checks.
    :ivar commands: the words of each command, without the program's name.
    :ivar duration: seconds of the cluster's time that a run takes at most.
    :ivar faults: the path of a file; "": there are none.
    :ivar disturb: ``own``, ``all``; "": ``own`` where there is an operator.
    """

    operator: str = ""
    checks: Sequence[str] = ()
    commands: Sequence[Sequence[str]] = ()
    duration: float = DEFAULT_DURATION
    faults: str = ""
    disturb: str = ""


class FuzzSettings(TypedDict, total=False):
    """The settings of :func:`fuzz`: how each run goes, and how many are made at a time."""

    duration: timedelta | str | float
    faults: FilePath
    disturb: str
    jobs: int


@checked
def fuzz(
    operator: FilePath = "",
    checks: Sequence[FilePath] = (),
    commands: Sequence[str | Sequence[str]] = (),
    *,
    seeds: Sequence[int] | int | str = range(100),
    cluster: Cluster | None = None,
    executor: Executor | None = None,
    **settings: Unpack[FuzzSettings],
) -> FuzzReport:
    """Run a workload over many seeds, and say which checks are violated: ``kubepy fuzz``.

    :param operator: a file of Python with ``operator(cluster)`` and ``workload(cluster)``.
    :param checks: files of checks, or names of built-in ones: ``["checks.yaml", "settles"]``.
    :param commands: command lines, without the program's name.
    :param seeds: many; or one run: a seed, or a ``replay`` of a report.
    :param cluster: on a fork of which each run begins; None: a fresh one with three nodes.
    :param executor: makes the runs, in place of this process.
    :param settings: ``duration``: how much of the cluster's time a run takes at most (10 minutes);
        ``faults``: a file; ``disturb``: ``own`` (only the operator's controllers) or ``all``;
        ``jobs``: how many processes share the runs.

    Raises FolderError for files that cannot be read, and checks that cannot be evaluated.
    """
    lines = [shlex.split(line) if isinstance(line, str) else list(line) for line in commands]
    files = FuzzFiles(
        os.fspath(operator),
        [os.fspath(name) for name in checks],
        lines,
        seconds_of(settings.get("duration", DEFAULT_DURATION)),
        os.fspath(settings.get("faults", "")),
        settings.get("disturb", ""),
    )
    image = None
    if cluster is not None:
        with cluster._open() as local:
            image = image_of(local)
    session = FuzzSession(new_case(files, image))
    if isinstance(seeds, int | str):
        return session.replay(str(seeds))
    return session.search(seeds, settings.get("jobs", 1), executor)


def new_case(files: FuzzFiles, image: ClusterImage | None) -> FuzzCase:
    """Return a case of these files. Raises FolderError for one that cannot be read, and for what
    cannot be.

    :param image: of the cluster on which each run begins; None: a fresh one.
    """
    if files.disturb not in ("", "own", "all"):
        raise FolderError(f"disturb: {printable(files.disturb)}: must be own or all")
    if files.disturb == "own" and not files.operator:
        raise FolderError("disturb: own: there is no operator")
    if not files.checks:
        raise FolderError("there is no check: name a file of checks, or a built-in one")
    if not files.operator and not files.commands:
        raise FolderError("there is no workload: name an operator, or a command")
    sources = tuple(
        ChecksSource(name, _read(name) if _is_file(name) else None) for name in files.checks
    )
    longest = max((check.within or 0.0 for check in checks_of(sources)), default=0.0)
    operator = OperatorSource(files.operator, _read(files.operator)) if files.operator else None
    return FuzzCase(
        image=image,
        operator=operator,
        checks=sources,
        commands=tuple(map(tuple, files.commands)),
        duration=max(files.duration, longest),
        faults=(files.faults, _read(files.faults)) if files.faults else None,
        disturbs_all=files.disturb == "all" or not files.operator,
    )


def _is_file(name: str) -> bool:
    return os.path.isfile(name) or "/" in name or name.endswith((".yaml", ".yml"))


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        raise FolderError(printable(f"{path}: not UTF-8")) from None
    except OSError as error:
        raise FolderError(printable(f"{path}: {error.strerror}")) from None


class FuzzSession:
    """A fuzz of one case.

    :ivar shown: the run that violates the first check of the report, if there is one.
    :param words: further flags of the command line that repeats a run.
    :param made: is told how many runs were made.
    """

    def __init__(
        self,
        case: FuzzCase,
        words: Sequence[str] = (),
        made: Callable[[int], object] = lambda count: None,
    ) -> None:
        self._case = case
        self._task = task_of(case)
        self._line = ReplayLine.of(case, words)
        self._made = made
        self._first = RunName(0)
        self.shown: FuzzRun | None = None

    def replay(self, run: str) -> FuzzReport:
        """Repeat a run. Raises FolderError."""
        try:
            name = parse_run(run)
        except ValueError as error:
            raise FolderError(f"seed {printable(run)}: {error}") from None
        self._first = name
        records = list(RunMaker(self._task, made=self._made).run_many([name]))
        if records[0].failed:
            self._check_undisturbed()
        return self._report(records, len(records[0].seen), shrinks=False)

    def _check_undisturbed(self) -> None:
        """Raise FolderError if a command fails where nothing is disturbed."""
        undisturbed = self._new_run(RunName(0)).go()
        if undisturbed.failed:
            raise FolderError(f"the workload fails undisturbed: {undisturbed.failed}")
        judged = {check.name for check in world_of(self._task.case).checks}
        if undisturbed.raised and INTERNAL_ERROR not in judged:
            raise FolderError(f"the operator fails undisturbed: {undisturbed.raised}")

    def search(
        self,
        seeds: Sequence[int],
        jobs: int = 1,
        executor: Executor | None = None,
        kept: KeptSearch | None = None,
    ) -> FuzzReport:
        """Try seeds. Raises FolderError, also for a command that fails where nothing is disturbed.

        :param executor: makes the runs; None: this process, or so many of its own.
        :param kept: keeps their records until the search is over.
        """
        with noting_reads() as noted:
            self._check_undisturbed()
        task = self._task if executor is None else self._task_with_files(noted)
        with ExitStack() as stack:

            def new_pool() -> Executor:
                return stack.enter_context(process_pool(jobs, WORK))

            maker = RunMaker(
                task,
                executor,
                new_executor=new_pool if executor is None and jobs > 1 else None,
                jobs=jobs if executor is None else max(jobs, PART),
                expected=len(seeds),
                made=self._made,
            )
            run_many = maker.run_many if kept is None else kept.kept_by(maker.run_many, self._made)
            search = Search(run_many)
            records = list(search.go(seeds))
        return self._report(records, len(search.states), shrinks=True)

    def _task_with_files(self, noted: Mapping[str, bytes]) -> Task[RunRecord]:
        """Return the runs as work for other machines, with the files that the commands have
        read. Raises CliError."""
        words = [word for line in self._case.commands for word in line]
        return task_of(self._case._replace(files=command_files(noted, words)))

    def _report(self, records: Sequence[RunRecord], states: int, *, shrinks: bool) -> FuzzReport:
        world = world_of(self._task.case)
        found = [
            self._found(violating, shrinks=shrinks)
            for violating in first_of_each_check(records).values()
        ]
        return FuzzReport(
            runs=len(records),
            branches=sum(record.name.choices is not None for record in records) * shrinks,
            states=states,
            checks=tuple(check.name for check in world.checks),
            violations=tuple(found),
            failed=next((record.failed for record in records if record.failed), ""),
            raised=next((record.raised for record in records if record.raised), ""),
        )

    def _found(self, violating: Sequence[RunRecord], *, shrinks: bool) -> FoundViolation:
        """Return what is reported of a check that some runs violate."""
        record = violating[0]
        left_out: tuple[int, ...] = ()
        if shrinks:
            smaller = Shrinker(self._attempt, record, len(self._case.commands)).shrink()
            record, left_out = smaller.record, smaller.left_out
        run = self._new_run(record.name, left_out, explains=True)
        self.shown = self.shown or run
        explained = run.go()
        violation = explained.violation
        assert violation is not None
        also = [other.name.seed for other in violating[1:] if other.name.choices is None]
        found = FoundViolation(
            violating[0].name.seed,
            str(record.name),
            violation,
            tuple(map(described, explained.choices)),
            left_out,
            explained.steps,
            tuple(also[:MOST_ALSO]),
            is_branch=shrinks and violating[0].name.choices is not None,
        )
        return found._replace(transcript=transcript_of(found, self._line))

    def _attempt(self, name: RunName, left_out: tuple[int, ...]) -> RunRecord:
        return self._new_run(name, left_out).go()

    def _new_run(
        self, name: RunName, left_out: tuple[int, ...] = (), *, explains: bool = False
    ) -> FuzzRun:
        world = world_of(self._task.case)
        return FuzzRun(world, name, left_out, explains=explains)

    def shown_run(self) -> FuzzRun:
        """Return the run that violates the first check of the report; where all hold, the one that
        was repeated, or that of the first seed."""
        if self.shown is None:
            self.shown = self._new_run(self._first)
            self.shown.go()
        return self.shown
