"""Files that the user names, read up to a limit, and temporary files.

A device or a pipe that never ends is refused in one line.
kubectl reads without a limit; an API server takes 3 MiB a request (``MaxRequestBodyBytes`` of
``apiserver/pkg/server/config.go``). What becomes one request may be as large as that, manifests of
many objects more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO

from kubepy import system
from kubepy.cli.errors import CliError
from kubepy.quoting import printable

MIB = 1024 * 1024
MAX_REQUEST = 3 * MIB
MAX_MANIFESTS = 64 * MIB
_REASONS = {
    MAX_REQUEST: "more than an API server takes in one request",
    MAX_MANIFESTS: "give its objects in several files",
}


_noted: ContextVar[dict[str, bytes] | None] = ContextVar("noted", default=None)


@contextmanager
def noting_reads() -> Iterator[dict[str, bytes]]:
    """Note which files are read in the block: their contents, by the paths under which they are
    opened."""
    noted: dict[str, bytes] = {}
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


class TooLargeError(CliError):
    """Input that is larger than its limit."""

    def __init__(self, source: str, limit: int) -> None:
        super().__init__(
            f"read {printable(source)}: is larger than {limit // MIB} MiB: {_REASONS[limit]}"
        )


def read_bytes(path: str, limit: int = MAX_REQUEST) -> bytes:
    """Return the content of a file. Raises OSError, TooLargeError."""
    with open(path, "rb") as file:
        parts = []
        size = 0
        while part := file.read(MIB):
            parts.append(part)
            size += len(part)
            if size > limit:
                raise TooLargeError(path, limit)
    content = b"".join(parts)
    if (noted := _noted.get()) is not None:
        noted[path] = content
    return content


def read_string(path: str) -> str:
    """Return the text of a file that becomes one request or is a template; bytes that are no UTF-8
    are replaced.

    Raises OSError, TooLargeError.
    """
    return read_bytes(path).decode(errors="replace")


def read_standard_input(stream: IO[str], limit: int = MAX_REQUEST) -> bytes:
    """Read what is piped into the command. Raises TooLargeError."""
    source: IO[bytes] | None = getattr(stream, "buffer", None)
    parts = []
    size = 0
    while part := source.read(MIB) if source else stream.read(MIB).encode(errors="surrogateescape"):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise TooLargeError("standard input", limit)
    return b"".join(parts)


# --- temporary files ------------------------------------------------------------------------------


def create_folder(prefix: str) -> str:
    """Create a folder that only this user can read (``os.MkdirTemp``); returns its path. Raises
    OSError."""
    for path in _paths(prefix, ""):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            continue
        return path
    raise AssertionError("unreachable")


def create_file(prefix: str, suffix: str, text: str) -> str:
    """Create a file that only this user can read (``os.CreateTemp``); returns its path. Raises
    OSError."""
    for path in _paths(prefix, suffix):
        try:
            descriptor = os.open(path, system.WRITE_NEW, 0o600)
        except FileExistsError:
            continue
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        return path
    raise AssertionError("unreachable")


def _paths(prefix: str, suffix: str) -> Iterator[str]:
    """Yield names to try: of the process and a counter, so that tests meet the same names again."""
    import tempfile

    number = os.getpid() * 1000
    while True:
        yield os.path.join(tempfile.gettempdir(), f"{prefix}{number}{suffix}")
        number += 1
