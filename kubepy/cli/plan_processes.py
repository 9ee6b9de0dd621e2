"""The runs of ``kubepy plan`` in several processes, or on other machines.

A worker opens a copy of the cluster, as it was here, and makes some of the runs; what it has found
out goes back to the process that shows it.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.cli.errors import CliError, SilentExit, guarded
from kubepy.cli.parallel.commandfiles import CommandFiles
from kubepy.cli.parallel.processes import process_pool
from kubepy.cli.parallel.runmaker import PART, PartAnswer, PartFailed, RunMaker, Task, other_version
from kubepy.cli.runtime.command import Command
from kubepy.cli.runtime.dispatch import dispatch, root_command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.kubeconfig import Target
from kubepy.cli.runtime.options import GlobalOptions
from kubepy.controlplane.images import ClusterImage, open_image
from kubepy.insight.policy import PlanPolicy

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.insight.runs import RunResult

# The one that a Python program has given, which makes the runs of a plan; None: this process does.
executor: ContextVar[Executor | None] = ContextVar("executor", default=None)
_opened: dict[bytes, LocalCluster | None] = {}  # of the last case of this process
_one_at_a_time = Lock()  # runs of one process, whose executor may have several threads


@contextmanager
def made_by(given: Executor | None) -> Iterator[None]:
    """Let an executor make the runs of the plans in the block."""
    token = executor.set(given)
    try:
        yield
    finally:
        executor.reset(token)


class PlanCase(NamedTuple):
    """A command line ``plan …``, as another process runs it.

    :ivar root: the class of the program's own command.
    :ivar main: runs command lines within it.
    :ivar stdin: all of its standard input.
    :ivar target: the namespace and the user that it works with.
    :ivar policy: what makes it fail.
    :ivar image: the cluster; None: there is none yet.
    :ivar files: those that it reads, where other machines make runs.
    """

    root: Callable[[str], Command]
    main: Any
    program: str
    words: tuple[str, ...]
    stdin: str
    target: Target
    policy: PlanPolicy
    image: ClusterImage | None
    files: CommandFiles | None = None


class RunsFactory(Factory):
    """The Factory of a process that makes some of the runs, and shows none.

    :ivar numbers: their seeds.
    :ivar policy: what makes a run fail.
    :ivar results: what has come of them.
    :ivar said: its stderr.
    """

    def __init__(
        self, case: PlanCase, cluster: LocalCluster | None, numbers: Sequence[int]
    ) -> None:
        self.said = io.StringIO()
        super().__init__(io.StringIO(case.stdin), io.StringIO(), self.said, cluster)
        self.program = case.program
        self.words = case.words
        self.main = case.main
        self.policy = case.policy
        self.numbers = numbers
        self.results: Sequence[RunResult] = ()
        if cluster is not None:
            self._target = case.target._replace(place="")

    def use(self, options: GlobalOptions, *, may_create: bool) -> None:
        """Work with the global flags of a command line from now on; they have chosen the cluster
        already."""
        if self.open_cluster:
            options.state = ""
        super().use(options, may_create=may_create)

    def has_preferences(self, words: Sequence[str]) -> bool:
        """Return that there are none: the words are those with preferences."""
        return False


def run_part(version: str, case: bytes, names: Sequence[str]) -> PartAnswer[RunResult]:
    """Make some of the runs of a command line in this process.

    :param version: of the kubepy that asks.
    :param case: a PlanCase; it comes from memory, never from a file.
    :param names: the seeds.
    """
    if error := other_version(version):
        return PartAnswer([], error)
    with _one_at_a_time:
        plan: PlanCase = pickle.loads(case)
        factory = RunsFactory(plan, _cluster_of(case, plan), list(map(int, names)))

        def execute() -> None:
            try:
                dispatch(plan.root(plan.program), list(plan.words), factory)
            finally:
                factory.close()

        with plan.files.unpacked() if plan.files is not None else nullcontext():
            status = guarded(execute, factory.say)
        if status:
            return PartAnswer([], "a run has failed", factory.said.getvalue())
        return PartAnswer(factory.results)


def _cluster_of(case: bytes, plan: PlanCase) -> LocalCluster | None:
    """Return the cluster of a case as it is open in this process."""
    if case not in _opened:
        _opened.clear()
        _opened[case] = open_image(plan.image) if plan.image is not None else None
    return _opened[case]


class RunWorkers(NamedTuple):
    """Workers that make the runs.

    :ivar jobs: how many there are.
    :ivar executor: has them; None: processes of this machine.
    """

    jobs: int
    executor: Executor | None = None


def make_runs(
    factory: Factory, case: PlanCase, numbers: Sequence[int], workers: RunWorkers
) -> list[RunResult]:
    """Make the runs with these seeds. Raises SilentExit where a run fails, after what it says about
    that, and CliError where the workers do."""
    made = 0

    def note(count: int) -> None:
        nonlocal made
        made += count
        factory.progress.show("trying", made, len(numbers))

    with ExitStack() as stack:

        def new_pool() -> Executor:
            return stack.enter_context(process_pool(min(workers.jobs, len(numbers)), __name__))

        maker: RunMaker[RunResult] = RunMaker(
            Task(run_part, pickle.dumps(case)),
            new_pool() if workers.executor is None else workers.executor,
            new_executor=new_pool if workers.executor is None else None,
            jobs=workers.jobs if workers.executor is None else max(workers.jobs, PART),
            made=note,
        )
        try:
            results = list(maker.run_many(numbers))
        except PartFailed as error:
            factory.progress.clear()
            if not error.said:
                raise CliError(str(error)) from error
            factory.stderr.write(error.said)
            raise SilentExit(1) from None
    factory.progress.clear()
    return results


def case_of(factory: Factory, words: Sequence[str], policy: PlanPolicy) -> PlanCase:
    """Return a command line as others run it, without its cluster, its files and its input."""
    root = type(root_command(factory))
    return PlanCase(
        root, factory.main, factory.program, tuple(words), "", factory._target, policy, None
    )
