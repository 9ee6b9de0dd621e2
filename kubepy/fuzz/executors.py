"""The places where runs are made: in this process, in others, or on other machines.

Any ``concurrent.futures.Executor`` will do. Work is handed out in small parts, and their records
come back in the order in which they were asked for, so that a report does not depend on who has
made which run. The runs of a worker that was lost are made again.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from multiprocessing import get_all_start_methods, get_context
from typing import NamedTuple

from kubepy import __version__
from kubepy.fuzz.cases import FuzzCase, World
from kubepy.fuzz.run import RunRecord, run_once
from kubepy.runtime.oracle import RunName
from kubepy.storage import FolderError

PART = 8  # runs that are handed out together
AHEAD = 4  # parts that are handed out beyond those that are under way
MOST_TRIES = 4  # of one part
KEPT_WORLDS = 2

_worlds: dict[str, World] = {}  # those that this process has opened, by the digests of their cases


class PartResult(NamedTuple):
    """The answer of a worker.

    :ivar error: why a run could not be made: a file, or a check that cannot be evaluated.
    """

    records: list[RunRecord]
    error: str = ""


def run_part(version: str, case: FuzzCase, digest: str, names: Sequence[RunName]) -> PartResult:
    """Make some runs in this process."""
    if version != __version__:
        return PartResult([], f"the worker has kubepy {__version__}, and not {version}")
    try:
        world = world_of(case, digest)
        return PartResult([run_once(world, name) for name in names])
    except FolderError as error:
        return PartResult([], str(error))


def digest_of(case: FuzzCase) -> str:
    """Return what tells one case from another."""
    return hashlib.blake2b(pickle.dumps(case), digest_size=16).hexdigest()


def world_of(case: FuzzCase, digest: str) -> World:
    """Return a case as it is open in this process. Raises FolderError."""
    world = _worlds.get(digest)
    if world is None:
        while len(_worlds) >= KEPT_WORLDS:
            del _worlds[next(iter(_worlds))]
        world = _worlds[digest] = World(case)
    return world


class RunMaker:
    """Makes the runs of a case.

    :param executor: who makes them; None: this process.
    :param new_executor: makes another executor where the first one is broken.
    :param jobs: how many parts are under way at a time.
    :param made: is told how many runs were made.
    """

    def __init__(
        self,
        case: FuzzCase,
        executor: Executor | None = None,
        new_executor: Callable[[], Executor] | None = None,
        jobs: int = 1,
        made: Callable[[int], object] = lambda count: None,
    ) -> None:
        self.case = case
        self.digest = digest_of(case)
        self._executor = executor
        self._new_executor = new_executor
        self._most = jobs + AHEAD
        self._made = made

    def run_many(self, names: Sequence[RunName]) -> Iterator[RunRecord]:
        """Make runs, and yield their records in this order. Raises FolderError."""
        parts = [names[begin : begin + PART] for begin in range(0, len(names), PART)]
        if self._executor is None:
            for part in parts:
                yield from self._taken(self._run_here(part))
            return
        waiting = deque(parts)
        under_way: deque[tuple[Sequence[RunName], Future[PartResult]]] = deque()
        while waiting or under_way:
            while waiting and len(under_way) < self._most:
                part = waiting.popleft()
                under_way.append((part, self._submit(part)))
            part, future = under_way.popleft()
            yield from self._taken(self._result(part, future))

    def _run_here(self, names: Sequence[RunName]) -> PartResult:
        return run_part(__version__, self.case, self.digest, names)

    def _submit(self, names: Sequence[RunName]) -> Future[PartResult]:
        assert self._executor is not None
        try:
            return self._executor.submit(run_part, __version__, self.case, self.digest, names)
        except BrokenExecutor:
            if self._new_executor is None:
                raise
            self._executor = self._new_executor()
            return self._executor.submit(run_part, __version__, self.case, self.digest, names)

    def _result(self, names: Sequence[RunName], future: Future[PartResult]) -> PartResult:
        """Wait for a part; where its worker was lost, hand it out again. Raises FolderError where
        that happens again and again."""
        for _ in range(MOST_TRIES):
            try:
                return future.result()
            except Exception as error:
                if not is_loss(error):
                    raise
                future = self._submit(names)
        raise FolderError(
            f"the runs {names[0]} to {names[-1]} were lost {MOST_TRIES} times: the processes that "
            "made them ended"
        )

    def _taken(self, result: PartResult) -> list[RunRecord]:
        if result.error:
            raise FolderError(result.error)
        self._made(len(result.records))
        return result.records


def is_loss(error: BaseException) -> bool:
    """Return whether an exception says that a worker was lost, and nothing about its work."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ in (
        "KilledWorker",
        "CancelledError",
    )


def process_pool(jobs: int) -> ProcessPoolExecutor:
    """Return an executor with so many processes of this machine."""
    method = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
    context = get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload([__name__])
    return ProcessPoolExecutor(jobs, context)
