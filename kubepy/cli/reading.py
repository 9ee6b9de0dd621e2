"""Reading what the user names, up to a limit: a device or a pipe that never ends is refused in one line.

kubectl reads without a limit; an API server takes 3 MiB a request (``MaxRequestBodyBytes`` of
``apiserver/pkg/server/config.go``). What becomes one request may be as large as that, manifests of many objects more.
"""

from __future__ import annotations

from typing import IO

from kubepy.cli.errors import CliError

MIB = 1024 * 1024
MAX_REQUEST = 3 * MIB
MAX_MANIFESTS = 64 * MIB
_WHY = {MAX_REQUEST: "more than an API server takes in one request",
        MAX_MANIFESTS: "give its objects in several files"}


class TooLargeError(CliError):
    """There is more to read than the limit."""

    def __init__(self, source: str, limit: int) -> None:
        from kubepy.api.values.goformat import printable

        super().__init__(f"read {printable(source)}: is larger than {limit // MIB} MiB: {_WHY[limit]}")


def read_bytes(path: str, limit: int = MAX_REQUEST) -> bytes:
    """The content of a file. Raises OSError, TooLargeError."""
    with open(path, "rb") as file:
        parts, size = [], 0
        while part := file.read(MIB):
            parts.append(part)
            size += len(part)
            if size > limit:
                raise TooLargeError(path, limit)
    return b"".join(parts)


def read_string(path: str) -> str:
    """The text of a file that becomes one request or is a template; what is no UTF-8 is replaced.

    Raises OSError, TooLargeError.
    """
    return read_bytes(path).decode(errors="replace")


def read_standard_input(stream: IO[str], limit: int = MAX_REQUEST) -> bytes:
    """Read what is piped into the command. Raises TooLargeError."""
    source: IO[bytes] | None = getattr(stream, "buffer", None)
    parts, size = [], 0
    while part := source.read(MIB) if source else stream.read(MIB).encode(errors="surrogateescape"):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise TooLargeError("standard input", limit)
    return b"".join(parts)
