"""Servers that tests start as processes of their own."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

STOP_TIMEOUT = 20.0


class ServerProgram:
    """A server that a test starts, with all that it writes in a file ``log``.

    :param folder: of the log and of what the server keeps.
    :cvar ended_by: the signal at the end of a ``with`` block.
    """

    ended_by: ClassVar[signal.Signals] = signal.SIGKILL

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process that runs."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        raise NotImplementedError

    def log(self) -> str:
        """Return what it has written."""
        return (self.folder / "log").read_text(errors="replace")

    def stop(self) -> None:
        """End it as its operator does."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut does."""
        self._end(signal.SIGKILL)

    def _run(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=env)

    def _check_start(self, *, is_late: bool) -> None:
        """Fail where it has ended, or its time to start is over."""
        assert self._process is not None
        if is_late or self._process.poll() is not None:
            raise AssertionError(f"{self._process.args[0]} does not start:\n{self.log()[-3000:]}")

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._end(self.ended_by)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(self.ended_by)
