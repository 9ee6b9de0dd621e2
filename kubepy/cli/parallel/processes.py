"""Further processes of this machine, which share the runs of a plan or a fuzz.

They are forked from one that was started for it: no two processes share the open files of a store.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import Pipe, forkserver, get_context, resource_tracker
from multiprocessing.connection import Connection
from threading import Thread

SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def process_pool(jobs: int, module: str) -> Iterator[Executor]:
    """Start processes, and end them when the block is over, whatever they do then.

    :param module: the one that they work with, which is imported once for all of them.

    They end, too, when this process does, even if it is killed: each of them waits for the end of a
    pipe that this process alone can write to.
    """
    _start_server(module)
    reader, writer = Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, get_context("forkserver"), _begin, (reader,))
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
