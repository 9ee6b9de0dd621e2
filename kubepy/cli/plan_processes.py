"""The runs of ``kubepy plan`` in several processes.

A further process opens the cluster anew and makes some of the runs; what it has found out goes
back to the one that shows it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.cli import kuberc
from kubepy.cli.errors import SilentExit, guarded
from kubepy.cli.processes import process_pool
from kubepy.cli.runtime.command import Command
from kubepy.cli.runtime.dispatch import dispatch, root_command
from kubepy.cli.runtime.factory import Factory

if TYPE_CHECKING:
    from kubepy.insight.runs import RunResult

PART = 4  # so many times as many parts as processes, so that none waits long for another


class RunsFactory(Factory):
    """The Factory of a process that makes some of the runs, and shows none.

    :ivar numbers: their seeds.
    :ivar results: what has come of them.
    """

    numbers: Sequence[int] = ()
    results: Sequence[RunResult] = ()


class Part(NamedTuple):
    """The answer of a process: its exit status, what it said on stderr, and its results."""

    status: int
    said: str
    results: tuple[RunResult, ...]


class PlanLine(NamedTuple):
    """A command line ``plan …``, as another process runs it.

    :ivar root: the class of the program's own command.
    :ivar main: runs command lines within it.
    :ivar stdin: all of its standard input.
    """

    root: Callable[[str], Command]
    main: Any
    program: str
    words: tuple[str, ...]
    stdin: str


def run_part(line: PlanLine, numbers: Sequence[int]) -> Part:
    """Make some of the runs of a command line in this process."""
    said = io.StringIO()
    factory = RunsFactory(io.StringIO(line.stdin), io.StringIO(), said)
    factory.program = line.program
    factory.words = line.words
    factory.main = line.main
    factory.numbers = numbers
    root = line.root(line.program)

    def execute() -> None:
        words = list(line.words)
        try:
            if factory.has_preferences(words):
                words = kuberc.applied(root, words, factory)
            dispatch(root, words, factory)
        finally:
            factory.close()

    status = guarded(execute, factory.say)
    return Part(status, said.getvalue(), tuple(factory.results))


def run_in_processes(
    factory: Factory, stdin: str, numbers: Sequence[int], jobs: int
) -> list[RunResult]:
    """Make the runs in so many processes. Raises SilentExit where a run fails, after what it says
    about that."""
    root = type(root_command(factory))
    line = PlanLine(root, factory.main, factory.program, tuple(factory.words), stdin)
    parts = min(jobs * PART, len(numbers))
    results: list[RunResult] = []
    with process_pool(min(jobs, parts), __name__) as pool:
        futures = [pool.submit(run_part, line, numbers[part::parts]) for part in range(parts)]
        for future in as_completed(futures):
            part = future.result()
            if part.status:
                pool.shutdown(wait=False, cancel_futures=True)
                factory.stderr.write(part.said)
                raise SilentExit(part.status)
            results += part.results
            factory.progress.show("trying", len(results), len(numbers))
    factory.progress.clear()
    return sorted(results, key=lambda result: result.seed)
