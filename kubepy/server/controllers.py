"""The controllers beside a server: a process of their own, or a thread where the cluster is in the
memory of the server's.

A process is the rule, since their work would hold up requests in threads of one process.
``python -m kubepy.server.controllers PLACE VERBOSITY NAMES COMMAND…`` works until its input ends.
There the server says when a request waits for the controllers to let go of the folder, and when it
has written.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from typing import Protocol

from kubepy import system
from kubepy.apiserver.cluster import LocalCluster
from kubepy.controlplane import build_manager
from kubepy.controlplane.open import open_cluster
from kubepy.controlplane.running import FileReporter, run_controllers
from kubepy.controlplane.summary import Summary
from kubepy.storage import NoClusterError, RemovedError, StorageError
from kubepy.terminal import guard_process

WAITING, WRITTEN = b"?", b"!"
YIELD_SECONDS = 0.02  # a writer that waits looks every 5 ms whether the folder is free
RETRY_SECONDS = (
    1.0  # after an error, and between two looks whether others still run the controllers
)
STOP_SECONDS = 10.0  # how long the controllers may take to finish what they have begun


class Controllers(Protocol):
    """The controllers, as the server sees them."""

    def start(self) -> None:
        """Let them begin."""

    def check(self) -> None:
        """Let them begin again if they have died."""

    def tell(self, message: bytes) -> None:
        """Say that a writer is WAITING for the controllers to let go of the cluster, or that it
        has WRITTEN."""

    def stop(self) -> None:
        """Let them finish what they have begun."""


class ServerLine(Protocol):
    """What the server says to the controllers.

    :ivar is_closed: the server has ended, in order or not.
    """

    is_closed: bool

    def wait(self, seconds: float) -> None:
        """Wait until the server says something, at most so long."""

    def is_awaited(self) -> bool:
        """Return whether a writer waits."""

    def is_over(self) -> bool:
        """Let a writer in that waits, between two batches; return whether the server has ended."""


class ControllerProcess:
    """The process, as the server sees it.

    :param names: the reconcilers that run.
    :param log: takes a line for the operator of the server.
    """

    def __init__(
        self, place: str, verbosity: int, names: Collection[str], log: Callable[[str], None]
    ) -> None:
        self._command = [
            sys.executable,
            "-m",
            "kubepy.server.controllers",
            place,
            str(verbosity),
            ",".join(sorted(names)),
            *sys.argv[1:],
        ]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()  # another thread may stop it that another one looks after

    def start(self) -> None:
        """Start the process."""
        with self._lock:
            self._start()

    def _start(self) -> None:
        # A session of its own keeps the terminal's signals away.
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdin
        system.set_nonblocking(self._process.stdin.fileno())

    def check(self) -> None:
        """Start the process again if it has died."""
        with self._lock:
            if self._process is not None and (status := self._process.poll()) is not None:
                self._log(
                    f"error: the process of the controllers has ended (status {status}): it is "
                    f"started again"
                )
                self._start()

    def tell(self, message: bytes) -> None:
        """Say that a writer is WAITING for the controllers to let go of the folder, or that it has
        WRITTEN."""
        with self._lock:
            if self._process is not None and self._process.stdin:
                # A full pipe wakes as well as another byte; the dead are started again.
                with suppress(OSError):
                    os.write(self._process.stdin.fileno(), message)

    def stop(self) -> None:
        """Let the process finish what it has begun."""
        with self._lock:
            if self._process is None:
                return
            process, self._process = self._process, None
            assert process.stdin
            with suppress(OSError):
                process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class ControllerThread:
    """The controllers of a cluster in memory, in a thread of the server.

    :param cluster: returns the open cluster for the thread.
    :param names: the reconcilers that run.
    :param log: takes a line for the operator of the server.
    """

    def __init__(
        self,
        cluster: Callable[[], LocalCluster],
        verbosity: int,
        names: Collection[str],
        log: Callable[[str], None],
    ) -> None:
        self._line = ThreadLine()

        def run() -> None:
            run_until_over(
                lambda: nullcontext(cluster()), self._line, verbosity, names, log, hears_writes=True
            )

        self._thread = threading.Thread(target=run, name="controllers", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def check(self) -> None:
        """Do nothing: an error does not end the thread."""

    def tell(self, message: bytes) -> None:
        self._line.tell(message)

    def stop(self) -> None:
        if self._thread.is_alive():
            self._line.close()
            self._thread.join(STOP_SECONDS)


class ThreadLine:
    """What a server says to the thread of its controllers."""

    def __init__(self) -> None:
        self.is_closed = False
        self._is_awaited = False
        self._said = threading.Event()

    def tell(self, message: bytes) -> None:
        if message == WAITING:
            self._is_awaited = True
        self._said.set()

    def close(self) -> None:
        self.is_closed = True
        self._said.set()

    def wait(self, seconds: float) -> None:
        if not self.is_closed:
            self._said.wait(seconds)
        self._said.clear()

    def is_awaited(self) -> bool:
        return self._is_awaited

    def is_over(self) -> bool:
        if self._is_awaited:
            self._is_awaited = False
            time.sleep(YIELD_SECONDS)
        return self.is_closed


class ServerPipe:
    """The standard input of the process.

    :ivar is_closed: the server has ended, in order or not.
    """

    def __init__(self) -> None:
        self.is_closed = False
        self._is_awaited = False

    def wait(self, seconds: float) -> None:
        """Wait until the server says something, at most so long."""
        if not self.is_closed and select.select([0], [], [], seconds)[0]:
            heard = os.read(0, 65536)
            self.is_closed = not heard
            self._is_awaited = self._is_awaited or WAITING in heard

    def is_awaited(self) -> bool:
        """Return whether a writer waits."""
        self.wait(0)
        return self._is_awaited

    def is_over(self) -> bool:
        """Let a writer in that waits, between two batches; return whether the server has ended."""
        if self.is_awaited():
            self._is_awaited = False
            time.sleep(YIELD_SECONDS)
        return self.is_closed


class Failures:
    """Says what keeps the controllers from their work, once until it is another trouble or they
    have worked again."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._told = ""

    def tell(self, text: str) -> None:
        if text != self._told:
            self._told = text
            self._say(text)

    def end(self) -> None:
        self._told = ""


def run_until_over(
    opened: Callable[[], AbstractContextManager[LocalCluster]],
    line: ServerLine,
    verbosity: int,
    among: Collection[str],
    say: Callable[[str], None],
    *,
    hears_writes: bool = False,
) -> None:
    """Run the controllers until the server ends.

    :param opened: opens the cluster for the length of a block.
    :param hears_writes: nobody but the server writes, so that there is nothing to look for before
        it says something.
    """
    told = set[str]()

    def say_once(text: str) -> None:
        if text not in told:
            told.add(text)
            say(text)

    def listen(seconds: float) -> bool:
        line.wait(seconds)
        return True

    failures = Failures(say)

    def failed(error: Exception) -> None:
        if isinstance(error, NoClusterError):
            raise error
        if not isinstance(error, RemovedError):  # of a moment
            failures.tell(f"error: controllers: {error}")

    while not line.is_over():
        try:
            with opened() as cluster:
                files = FileReporter(cluster, lambda text: say(f"Warning: {text}"), say)

                def settled(
                    summary: Summary, cluster: LocalCluster = cluster, files: FileReporter = files
                ) -> None:
                    told_failures = summary.failures if verbosity > 0 else ()
                    for failure in told_failures:
                        say(
                            f"{failure.reconciler}: {failure.key.resource}/{failure.key.name}: "
                            f"{failure.error}"
                        )
                    files.look()
                    cluster.store.sync()
                    failures.end()

                if not hears_writes:  # else others have the same clock
                    cluster.clock.pause = line.wait
                manager = build_manager(cluster, among)
                manager.commits_each_turn = True
                manager.is_awaited = line.is_awaited
                manager.poller.polled = files.look
                if hears_writes:
                    manager.poller.listen = listen
                    manager.poller.reads_folder = False
                run_controllers(
                    cluster,
                    manager,
                    line.is_over,
                    settled,
                    failed,
                    occupied=lambda holder: line.wait(RETRY_SECONDS),
                )
        except StorageError as error:
            say_once(f"error: controllers: {error}")
        except Exception as error:
            say(f"internal error: controllers: {type(error).__name__}: {error}")
            if verbosity > 0:
                say(traceback.format_exc().rstrip("\n"))
        line.wait(RETRY_SECONDS)


def run(words: Sequence[str]) -> None:
    """Run the process of a command line; locks name the command of the server."""
    place, verbosity, names, *command = words
    sys.argv = ["kubepy", *command]
    guard_process()

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    run_until_over(
        lambda: closing(open_cluster(place)), ServerPipe(), int(verbosity), names.split(","), say
    )


if __name__ == "__main__":
    run(sys.argv[1:])
