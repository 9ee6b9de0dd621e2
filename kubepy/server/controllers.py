"""The process beside a server that runs the controllers: their work would hold up requests in
threads of one process.

``python -m kubepy.server.controllers PLACE VERBOSITY WHICH COMMAND…`` works until its input ends.
There the server says when a request waits for the controllers to let go of the folder, and when it
has written.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing, suppress

from kubepy.apiserver.cluster import LocalCluster
from kubepy.controlplane import NAMES, OF_SERVER, build_manager
from kubepy.controlplane.open import open_cluster
from kubepy.controlplane.running import FileReporter, run_controllers
from kubepy.controlplane.summary import Summary
from kubepy.storage import NoClusterError, RemovedError, StorageError
from kubepy.terminal import guard_process

ALL, ONLY_KUBELETS = "all", "kubelets"
WHICH = {ALL: NAMES, ONLY_KUBELETS: OF_SERVER}
WAITING, WRITTEN = b"?", b"!"
YIELD_SECONDS = 0.02  # a writer that waits looks every 5 ms whether the folder is free
RETRY_SECONDS = (
    1.0  # after an error, and between two looks whether others still run the controllers
)
STOP_SECONDS = 10.0  # how long the controllers may take to finish what they have begun


class ControllerProcess:
    """The process, as the server sees it.

    :param which: ALL controllers, or ONLY_KUBELETS, with what an API server does itself.
    :param log: takes a line for the operator of the server.
    """

    def __init__(self, place: str, verbosity: int, which: str, log: Callable[[str], None]) -> None:
        self._command = [
            sys.executable,
            "-m",
            "kubepy.server.controllers",
            place,
            str(verbosity),
            which,
            *sys.argv[1:],
        ]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process. A session of its own keeps the terminal's signals away."""
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdin
        os.set_blocking(self._process.stdin.fileno(), False)

    def check(self) -> None:
        """Start the process again if it has died."""
        if self._process is not None and (status := self._process.poll()) is not None:
            self._log(
                f"error: the process of the controllers has ended (status {status}): it is "
                f"started again"
            )
            self.start()

    def tell(self, message: bytes) -> None:
        """Say that a writer is WAITING for the controllers to let go of the folder, or that it has
        WRITTEN."""
        if self._process is not None and self._process.stdin:
            with suppress(
                OSError
            ):  # a full pipe wakes as well as another byte; the dead are started again
                os.write(self._process.stdin.fileno(), message)

    def stop(self) -> None:
        """Let the process finish what it has begun."""
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


def main(place: str, verbosity: int, among: Sequence[str]) -> None:
    """Run the controllers until the server ends."""
    pipe, told = ServerPipe(), set[str]()

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def say_once(text: str) -> None:
        if text not in told:
            told.add(text)
            say(text)

    failures = Failures(say)

    def failed(error: Exception) -> None:
        if isinstance(error, NoClusterError):
            raise error
        if not isinstance(error, RemovedError):  # of a moment
            failures.tell(f"error: controllers: {error}")

    while not pipe.is_over():
        try:
            with closing(open_cluster(place)) as cluster:
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

                cluster.clock.pause = pipe.wait
                manager = build_manager(cluster, among)
                manager.commits_each_turn = True
                manager.is_awaited = pipe.is_awaited
                manager.poller.polled = files.look
                run_controllers(
                    cluster,
                    manager,
                    pipe.is_over,
                    settled,
                    failed,
                    occupied=lambda holder: pipe.wait(RETRY_SECONDS),
                )
        except StorageError as error:
            say_once(f"error: controllers: {error}")
        except Exception as error:
            say(f"internal error: controllers: {type(error).__name__}: {error}")
            if verbosity > 0:
                say(traceback.format_exc().rstrip("\n"))
        pipe.wait(RETRY_SECONDS)


def run(words: Sequence[str]) -> None:
    """Run the process of a command line; locks name the command of the server."""
    folder, verbosity, which, *command = words
    sys.argv = ["kubepy", *command]
    guard_process()
    main(folder, int(verbosity), WHICH[which])


if __name__ == "__main__":
    run(sys.argv[1:])
