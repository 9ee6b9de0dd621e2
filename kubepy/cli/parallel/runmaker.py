"""The places where runs are made: in this process, in others, or on other machines.

Any ``concurrent.futures.Executor`` will do. Work is handed out in small parts, and their records
come back in the order in which they were asked for, so that a report does not depend on who has
made which run. The runs of a worker that was lost are made again.

What a worker is sent is plain: texts, and the case as bytes, which only a worker of the same
version opens.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from typing import Any, Generic, NamedTuple, TypeVar

from kubepy import __version__
from kubepy.quoting import printable
from kubepy.storage import FolderError

PART = 8  # runs that are handed out together, at most
PARTS_EACH = 4  # of a round for each worker, so that none waits long for another
PAYS = 5.0  # seconds of computing left, from which on processes are begun: each takes 1 to start
MOST_TRIES = 3  # of a run that is made alone
Record = TypeVar("Record")


class PartFailed(FolderError):
    """A part of the runs could not be made.

    :ivar said: what the command that failed has said on stderr; "" where the message says it.
    """

    def __init__(self, message: str, said: str = "") -> None:
        super().__init__(printable(message))
        self.said = said


class PartAnswer(NamedTuple, Generic[Record]):
    """The answer of a worker.

    :ivar error: why a run could not be made; "" where all are.
    :ivar said: what was said about it already, in full lines.
    """

    records: Sequence[Record]
    error: str = ""
    said: str = ""


class Task(NamedTuple, Generic[Record]):
    """The work of those who make runs.

    :ivar work: makes some runs; it is told the version of the kubepy that asks, the case, and the
        names of the runs. Workers are sent the name of this function.
    :ivar case: what the runs begin with, as bytes.
    """

    work: Callable[[str, bytes, Sequence[str]], PartAnswer[Record]]
    case: bytes

    def submit(self, executor: Executor, names: Sequence[str]) -> Future[PartAnswer[Record]]:
        """Hand out some runs. Raises BrokenExecutor."""
        return executor.submit(self.work, __version__, self.case, names)


def other_version(version: str) -> str:
    """Return why this process makes no runs for the kubepy of another version; "" if it does."""
    if version == __version__:
        return ""
    return f"a worker has kubepy {__version__}, and this is kubepy {version}"


class _Part(Generic[Record]):
    """Some runs that were handed out together.

    :ivar losses: how often the worker that made them was lost.
    """

    def __init__(self, names: Sequence[str], future: Future[PartAnswer[Record]]) -> None:
        self.names = names
        self.future = future
        self.losses = 0

    def is_lost(self) -> bool:
        """Return whether the worker that makes these runs has been lost."""
        if not self.future.done():
            return False
        return self.future.cancelled() or is_loss(self.future.exception())


class RunMaker(Generic[Record]):
    """Makes the runs of a case.

    :param task: makes some of them, in whichever process.
    :param executor: makes them; None: this process.
    :param new_executor: makes another executor: where the first one is broken; and where there is
        none, when so much is left to do that it pays.
    :param jobs: how many runs the executor makes at a time.
    :param expected: how many runs there will be.
    :param made: is told how many runs were made.
    """

    def __init__(
        self,
        task: Task[Record],
        executor: Executor | None = None,
        *,
        new_executor: Callable[[], Executor] | None = None,
        jobs: int = PART,
        expected: int = 0,
        made: Callable[[int], object] = lambda count: None,
    ) -> None:
        self._task = task
        self._executor = executor
        self._new_executor = new_executor
        self._jobs = jobs
        self._expected = expected
        self._made = made
        self._count = 0
        self._seconds = 0.0  # that the runs in this process took, without the first
        self._counted = 0  # these runs

    def run_many(self, runs: Sequence[Any]) -> Iterator[Record]:
        """Make runs, and yield their records in this order. Raises PartFailed.

        :param runs: workers are sent their texts.
        """
        names = list(map(str, runs))
        done = 0
        while done < len(names) and not self._has_executor():
            yield from self._taken(self._run_here(names[done]))
            done += 1
        if done < len(names):
            yield from self._run_elsewhere(names[done:])

    # --- in this process

    def _has_executor(self) -> bool:
        """Return whether an executor makes the next run; begin one where that pays."""
        if self._executor is None and self._new_executor is not None and self._counted:
            left = self._expected - self._count
            if left * self._seconds / self._counted > PAYS:
                self._executor = self._new_executor()
        return self._executor is not None

    def _run_here(self, name: str) -> PartAnswer[Record]:
        begun = time.process_time()
        answer = self._task.work(__version__, self._task.case, [name])
        if self._count:
            self._seconds += time.process_time() - begun
            self._counted += 1
        return answer

    # --- elsewhere

    def _run_elsewhere(self, names: Sequence[str]) -> Iterator[Record]:
        size = max(1, min(PART, len(names) // (self._jobs * PARTS_EACH)))
        parts: list[_Part[Record]] = []
        try:
            for begin in range(0, len(names), size):
                some = names[begin : begin + size]
                parts.append(_Part(some, self._submit(some)))
            while parts:
                records = self._records(parts)
                del parts[0]
                yield from records
        finally:
            for part in parts:
                part.future.cancel()

    def _submit(self, names: Sequence[str]) -> Future[PartAnswer[Record]]:
        assert self._executor is not None
        try:
            return self._task.submit(self._executor, names)
        except BrokenExecutor as error:
            if self._new_executor is None:
                raise PartFailed(
                    "the executor has lost its workers, and makes no further runs"
                ) from error
            self._executor = self._new_executor()
            return self._task.submit(self._executor, names)

    def _records(self, parts: Sequence[_Part[Record]]) -> list[Record]:
        """Wait for the first of these parts. Where its worker was lost, hand out again what was
        lost with it, and make the runs of this part one by one when it is lost again. Raises
        PartFailed."""
        part = parts[0]
        while True:
            try:
                return self._taken(self._answer(part.future))
            except PartFailed:
                raise
            except Exception as error:
                if not is_loss(error):
                    raise
            if part.losses:
                return [record for name in part.names for record in self._run_alone(name)]
            for lost in parts:
                if not lost.losses and lost.is_lost():
                    lost.losses += 1
                    lost.future = self._submit(lost.names)

    def _run_alone(self, name: str) -> list[Record]:
        """Make a run that is perhaps what ends its workers. Raises PartFailed if it is."""
        for _ in range(MOST_TRIES):
            try:
                return self._taken(self._answer(self._submit([name])))
            except PartFailed:
                raise
            except Exception as error:
                if not is_loss(error):
                    raise
        raise PartFailed(f"run {name}: each of {MOST_TRIES} processes that made it has ended")

    def _answer(self, future: Future[PartAnswer[Record]]) -> PartAnswer[Record]:
        """Wait for what a worker answers. Raises PartFailed where it has no kubepy."""
        try:
            return future.result()
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "kubepy":
                raise
            raise PartFailed(f"a worker cannot import kubepy {__version__}: {error}") from error

    def _taken(self, answer: PartAnswer[Record]) -> list[Record]:
        if answer.error:
            raise PartFailed(answer.error, answer.said)
        self._count += len(answer.records)
        self._made(len(answer.records))
        return list(answer.records)


def is_loss(error: BaseException | None) -> bool:
    """Return whether an exception says that a worker was lost, and nothing about its work."""
    return (
        isinstance(error, BrokenExecutor | CancelledError)
        or type(error).__name__ == "KilledWorker"  # of Dask, which is not imported for this
    )


def cores() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
