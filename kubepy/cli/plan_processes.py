"""The runs of ``kubepy plan`` in several processes.

A further process opens the cluster anew and makes some of the runs; what it has found out goes
back to the one that shows it. It is started, not forked: two processes must not share the open
files of a store.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TYPE_CHECKING, NamedTuple

from kubepy.cli.errors import SilentExit, guarded
from kubepy.cli.main import Root, with_preferences
from kubepy.cli.main import main as run_line
from kubepy.cli.runtime.dispatch import dispatch
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
    """What a process says: its exit status, what it said on stderr, and its results."""

    status: int
    said: str
    results: tuple[RunResult, ...]


def run_part(program: str, words: Sequence[str], stdin: str, numbers: Sequence[int]) -> Part:
    """Make some of the runs of a command line ``plan …`` in this process."""
    said = io.StringIO()
    factory = RunsFactory(io.StringIO(stdin), io.StringIO(), said)
    factory.program = program
    factory.words = words
    factory.main = run_line
    factory.numbers = numbers
    root = Root(program)

    def execute() -> None:
        try:
            dispatch(root, with_preferences(root, list(words), factory), factory)
        finally:
            factory.close()

    status = guarded(execute, factory.say)
    return Part(status, said.getvalue(), tuple(factory.results))


def run_in_processes(
    factory: Factory, stdin: str, numbers: Sequence[int], jobs: int
) -> list[RunResult]:
    """Make the runs in so many processes. Raises SilentExit where a run fails, after what it says
    about that."""
    parts = min(jobs * PART, len(numbers))
    results: list[RunResult] = []
    with ProcessPoolExecutor(min(jobs, parts), get_context("spawn")) as pool:
        futures = [
            pool.submit(run_part, factory.program, list(factory.words), stdin, numbers[part::parts])
            for part in range(parts)
        ]
        for future in as_completed(futures):
            part = future.result()
            if part.status:
                pool.shutdown(wait=False, cancel_futures=True)
                factory.stderr.write(part.said)
                raise SilentExit(part.status)
            results += part.results
            factory.progress.show("trying", len(results), len(numbers))
    factory.progress.clear()
    return sorted(results, key=lambda result: list(numbers).index(result.seed))
