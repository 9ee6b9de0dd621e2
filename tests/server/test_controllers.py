"""The process of a server's controllers."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from kubepy.server.controllers import WRITTEN, ControllerProcess, Failures

GRACE = 0.2  # seconds in which another thread stops the process, if nothing keeps it from that


class StoppedProcess:
    """A process that another thread stops while it is used."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self.thread = threading.Thread(target=stop)
        self._process = subprocess.Popen(["true"], stdin=subprocess.PIPE)
        self._process.wait()

    def _stop_beside(self) -> None:
        if self.thread.ident is None:
            self.thread.start()
            self.thread.join(GRACE)

    @property
    def stdin(self) -> Any:
        self._stop_beside()
        return self._process.stdin

    def poll(self) -> int:
        self._stop_beside()
        return 1

    def wait(self, seconds: float) -> int:
        return 1


def stopped_controllers() -> tuple[Any, StoppedProcess]:
    """Return controllers whose process is stopped as soon as somebody looks at it."""
    controllers: Any = ControllerProcess("memory:", 0, (), lambda line: None)
    controllers._command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    controllers._process = process = StoppedProcess(controllers.stop)
    return controllers, process


def test_controllers_that_are_stopped_are_not_started_again() -> None:
    controllers, process = stopped_controllers()
    controllers.check()
    process.thread.join()
    assert controllers._process is None


def test_controllers_are_told_while_another_thread_stops_them() -> None:
    controllers, process = stopped_controllers()
    controllers.tell(WRITTEN)
    process.thread.join()
    assert controllers._process is None


def test_trouble_of_controllers_is_said_once_until_it_is_another_or_over() -> None:
    said: list[str] = []
    failures = Failures(said.append)
    for text in ("No space left", "No space left", "Read-only", "No space left"):
        failures.tell(text)
    failures.end()
    failures.tell("No space left")
    assert said == ["No space left", "Read-only", "No space left", "No space left"]
