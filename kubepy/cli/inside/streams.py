"""A session with a process of a container, at the streams of this process.

Input is read in a thread, so that the process goes on meanwhile. In a cluster with time of its own,
time stands still while the process waits for input, and moves while it waits for time.
"""

from __future__ import annotations

import codecs
import io
import os
import queue
import signal
import threading
from typing import IO, TYPE_CHECKING, Any, Protocol

from kubepy.cli.errors import SilentExit
from kubepy.cli.runtime import driver
from kubepy.kubelet.sessions import STDERR, ContainerSession, StepResult

if TYPE_CHECKING:
    from datetime import datetime

    from kubepy.cli.runtime.factory import Factory

PIECE = 32 * 1024
NO_TTY = "Unable to use a TTY - input is not a terminal or the right kind of file"


class InputPieces:
    """The pieces of a stream as they come, then None."""

    def __init__(self, stream: IO[str] | IO[bytes]) -> None:
        self._pieces: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.is_closed = False
        descriptor = _descriptor_of(stream)
        if descriptor is None:
            text = stream.read()
            self._pieces.put(text.encode() if isinstance(text, str) else text)
            self._pieces.put(None)
            return
        reader = threading.Thread(target=self._read, args=(descriptor,), daemon=True)
        reader.start()

    def _read(self, descriptor: int) -> None:
        data: bytes | None = b"-"
        while data:
            try:
                data = os.read(descriptor, PIECE)
            except OSError:  # a terminal that is gone
                data = b""
            self._pieces.put(data or None)

    def take(self, *, waits: bool = False) -> list[bytes | None]:
        """Return the pieces that have come since; wait for the first if there is none."""
        pieces: list[bytes | None] = []
        while not self.is_closed:
            try:
                piece = self._pieces.get(block=waits and not pieces)
            except queue.Empty:
                break
            pieces.append(piece)
            self.is_closed = piece is None
        return pieces


def _descriptor_of(stream: IO[str] | IO[bytes]) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):  # no file: a text in memory
        return None


class ByteWriter:
    """Writes bytes to a stream of text; a terminal gets them as text, which is made harmless."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._binary: Any = None if stream.isatty() else getattr(stream, "buffer", None)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: bytes) -> None:
        if self._binary is None:
            self._stream.write(self._decoder.decode(data))
        else:
            self._stream.flush()
            self._binary.write(data)
        self._stream.flush()


def has_terminal(factory: Factory, tty: bool, quiet: bool) -> bool:
    """Tell whether a session has a terminal, as it is asked to; say so if stdin is none."""
    if tty and not factory.stdin.isatty():
        if not quiet:
            factory.say(NO_TTY)
        return False
    return tty


class Sink(Protocol):
    """A taker of bytes."""

    def write(self, data: bytes, /) -> object: ...


class StreamedSession:
    """A session and the streams of this process.

    :param reads: the stdin of this process is that of the session.
    :param source: the stdin of the session, in place of that of this process.
    :param tty: the session has a terminal, whose interrupt is its.
    """

    def __init__(
        self,
        factory: Factory,
        session: ContainerSession,
        *,
        reads: bool = False,
        tty: bool = False,
        source: IO[bytes] | None = None,
    ) -> None:
        self._factory = factory
        self._session = session
        self._tty = tty
        self._input: InputPieces | None = None
        if source is not None:
            self._input = InputPieces(source)
        elif reads:
            self._input = InputPieces(factory.stdin)
        self._out: Sink = ByteWriter(factory.stdout)
        self._err: Sink = ByteWriter(factory.stderr)
        self._progress = StepResult()

    def run(self) -> int:
        """Pass on input and output until the process has ended; return its exit status."""
        factory = self._factory
        timeout = factory.options.timeout_seconds() or None
        while True:
            try:
                self._feed(waits=self._stands_still())
                if not self._is_due():
                    factory.driver.wait_until(
                        self._is_due, timeout, retry=driver.Retry(self._next_time, goes_on=True)
                    )
            except KeyboardInterrupt:
                if not self._tty:
                    self._session.leave(factory.client)
                    raise
                self._session.signal(factory.client, signal.SIGINT)
            if self._progress.exit_code is not None:
                return self._progress.exit_code
            if self._is_stranded():
                return 0
            if not self._stands_still():
                raise SilentExit(1)  # --request-timeout has passed

    def collect(self) -> tuple[int, bytes, bytes]:
        """Let the process run to its end; return its exit status, and all that it has written."""
        out = io.BytesIO()
        err = io.BytesIO()
        self._out, self._err = out, err
        status = self.run()
        return status, out.getvalue(), err.getvalue()

    def _next_time(self) -> datetime | None:
        return self._progress.next_time

    def _stands_still(self) -> bool:
        """Tell whether nothing but input goes on, and time stands still for that."""
        pieces = self._input
        if pieces is None or pieces.is_closed:
            return False
        return self._progress.waits_for_input and self._factory.client.clock.own is not None

    def _is_stranded(self) -> bool:
        """Tell whether the process waits for input that does not come: its stdin stays open, but
        that of this process has ended. Time would go on for ever, where it is the cluster's own."""
        pieces = self._input
        if pieces is None or not pieces.is_closed:
            return False
        return self._progress.waits_for_input and self._factory.client.clock.own is not None

    def _feed(self, *, waits: bool) -> None:
        if self._input is None:
            return
        for piece in self._input.take(waits=waits):
            self._session.write(self._factory.client, piece)

    def _is_due(self) -> bool:
        """Let the session go on; tell whether it is over, or waits for input."""
        self._feed(waits=False)
        self._progress = self._session.step(self._factory.client)
        for stream, data in self._progress.output:
            if stream == STDERR and not self._tty:
                self._err.write(data)
            else:
                self._out.write(data)
        if self._progress.exit_code is not None:
            return True
        return self._stands_still() or self._is_stranded()


def end_with(factory: Factory, code: int) -> None:
    """End the command as its process has ended. Raises SilentExit."""
    if code:
        factory.say(f"command terminated with exit code {code}")
        raise SilentExit(code)
