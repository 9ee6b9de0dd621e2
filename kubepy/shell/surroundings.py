"""The cluster around a container, as its processes ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

Headers = tuple[tuple[str, str], ...]


class NetworkRequest(NamedTuple):
    """A request over HTTP.

    :ivar method: "" where the body is all that was sent, and no HTTP.
    :ivar url: with scheme, host and, where it is not the scheme's own, port.
    :ivar client: the address that it comes from, as far as that is known.
    """

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""
    client: str = ""


class HttpAnswer(NamedTuple):
    """An answer over HTTP."""

    status: int
    reason: str = ""
    headers: Headers = ()
    body: bytes = b""


class NetworkError(Exception):
    """A connection that does not come about.

    :ivar kind: ``no such host``, ``refused``, ``timeout``, ``unreachable`` or ``reset``.
    :ivar seconds: how long it takes until that is known; of a time-out: as long as the program
        waits.
    """

    def __init__(self, kind: str, seconds: float = 0.0) -> None:
        super().__init__(kind)
        self.kind = kind
        self.seconds = seconds


class Surroundings(Protocol):
    """The network as one container sees it. Everything here raises NetworkError."""

    def http(self, request: NetworkRequest, now: datetime) -> HttpAnswer:
        """Send a request."""

    def connect(self, host: str, port: int, now: datetime) -> None:
        """Open a connection and close it."""

    def resolve(self, name: str, now: datetime) -> Sequence[str]:
        """Return the addresses of a host."""


class Isolated:
    """The surroundings of a container without a network."""

    def http(self, request: NetworkRequest, now: datetime) -> HttpAnswer:
        """Find no host."""
        raise NetworkError("no such host")

    def connect(self, host: str, port: int, now: datetime) -> None:
        """Find no host."""
        raise NetworkError("no such host")

    def resolve(self, name: str, now: datetime) -> Sequence[str]:
        """Find no host."""
        raise NetworkError("no such host")
