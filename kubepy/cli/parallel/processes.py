"""Further processes of this machine, which share the runs of a plan or a fuzz.

They are forked from one that was started for it, or started anew where the system cannot fork: no
two processes share the open files of a store. Where there are no processes, this one does all the
work.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Thread
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from kubepy import system

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

SAFE_PATH = "PYTHONSAFEPATH"

P = ParamSpec("P")
T = TypeVar("T")


class _ThisProcess(Executor):
    """An executor that does its work when it is given, in this process."""

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(work(*args, **kwargs))
        except Exception as error:  # as of another process, it is for whoever asks for the result
            future.set_exception(error)
        return future


@contextmanager
def process_pool(jobs: int, module: str) -> Iterator[Executor]:
    """Start processes, and end them when the block is over, whatever they do then.

    :param module: the one that they work with, which is imported once for all of them.

    They end, too, when this process does, even if it is killed: each of them waits for the end of a
    pipe that this process alone can write to.
    """
    if not system.HAS_PROCESSES:
        yield _ThisProcess()
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import Pipe, get_all_start_methods, get_context

    context: Any
    surroundings: AbstractContextManager[None]
    if "forkserver" in get_all_start_methods():
        _start_server(module)
        context, surroundings = get_context("forkserver"), nullcontext()
    else:  # each process is started anew, when it is first needed
        context, surroundings = get_context("spawn"), _safe_path()
    reader, writer = Pipe(duplex=False)
    with surroundings:
        pool = ProcessPoolExecutor(jobs, context, _begin, (reader,))
        try:
            yield pool
        finally:
            writer.close()
            pool.shutdown(cancel_futures=True)
            reader.close()


def _start_server(module: str) -> None:
    """Start the process that the others are forked from.

    SIGINT is blocked in it: Ctrl-C is for this process, which ends the others. Nor does it import
    what lies in the working directory, where somebody's operator.py would stand before the module
    ``operator`` of Python.
    """
    from multiprocessing import forkserver, resource_tracker

    with _safe_path():
        forkserver.set_forkserver_preload([module])
        resource_tracker.ensure_running()  # which would let SIGINT through again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            forkserver.ensure_running()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Let Python start without the working directory on its path."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


def _begin(lifeline: Connection) -> None:
    """Begin a process: let it end with the one that has asked for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    lifeline.poll(None)
    os._exit(1)
