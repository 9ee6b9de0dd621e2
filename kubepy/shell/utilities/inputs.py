"""The input of programs: operands, standard input and devices."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from kubepy.shell.files import MISSING as MISSING_FILE
from kubepy.shell.files import FileError
from kubepy.shell.utilities.endless import ENDLESS, READ_AT_MOST, endless_bytes
from kubepy.shell.utilities.program import STDIN_NAMES, Failure, complain
from kubepy.shell.utility import Execution

MISSING = "{name}: {problem}"


def absolute(call: Execution, name: str) -> str:
    """Return the absolute path of a name; an empty one names nothing."""
    if name:
        return posixpath.join(call.cwd, name)
    return ""


def read_file(call: Execution, name: str) -> bytes:
    """Return the content of a file, or of standard input for its names. Raises FileError."""
    if name in STDIN_NAMES:
        return call.stdin
    if name in ENDLESS:
        return endless_bytes(call, name, READ_AT_MOST)
    if not name:
        raise FileError(MISSING_FILE)
    path = absolute(call, name)
    return call.files.read(path)


class Inputs:
    """The contents of operands; what cannot be read is reported and passed over."""

    def __init__(
        self,
        call: Execution,
        names: Sequence[str],
        *,
        message: str = MISSING,
        directory: str = MISSING,
        status: int = 1,
        is_directory_empty: bool = False,
    ) -> None:
        self.status = 0
        self._is_directory_empty = is_directory_empty
        self._call = call
        self._names = names or ["-"]
        self._message = message
        self._directory = directory
        self._failure_status = status

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        for name in self._names:
            try:
                content = read_file(self._call, name)
            except FileError as error:
                self._report(name, error.problem)
                if self._is_directory_empty and error.problem == "Is a directory":
                    yield name, b""
            else:
                yield name, content

    def _report(self, name: str, problem: str) -> None:
        self.status = self._failure_status
        message = self._message
        if problem == "Is a directory":
            message = self._directory
        complain(self._call, message.format(name=name, problem=problem))


def joined_inputs(call: Execution, names: Sequence[str]) -> tuple[bytes, int]:
    """Return all that the operands hold, and the exit status of reading them."""
    inputs = Inputs(call, names)
    content = b"".join(data for _, data in inputs)
    return content, inputs.status


def lines_of(data: bytes, separator: bytes = b"\n") -> list[bytes]:
    """Split into lines without their ends; a last line needs no end."""
    lines = data.split(separator)
    if lines[-1] == b"":
        lines.pop()
    return lines


def kept_lines(data: bytes) -> list[bytes]:
    """Split into lines that keep their ends."""
    lines = data.split(b"\n")
    last = lines.pop()
    kept = [line + b"\n" for line in lines]
    if last:
        return [*kept, last]
    return kept


def whole_number(text: str, message: str, status: int = 1) -> int:
    """Read a number that may not be negative. Raises Failure with the message."""
    if not (text.isascii() and text.isdigit()):
        raise Failure(message, status)
    return int(text)


def to_text(data: bytes) -> str:
    """Return bytes as text with one character for each."""
    return data.decode("latin-1")


def from_argument(argument: str) -> str:
    """Return an argument as text with one character for each of its bytes."""
    return argument.encode("utf-8", "surrogateescape").decode("latin-1")


def to_bytes(text: str) -> bytes:
    """Return the bytes of such a text."""
    return text.encode("latin-1")
