"""The inside of containers: what ``exec``, ``attach``, ``cp`` and ``port-forward`` work on.

Containers of a cluster that does not model them cannot be looked into.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubepy.api.typed import Pod
    from kubepy.apiserver.client import Client

NO_CONTAINERS = "no containers run here: pods are simulated"


class NoContainers(Exception):
    """The cluster does not model what runs in containers."""

    def __init__(self) -> None:
        super().__init__(NO_CONTAINERS)


class CannotStart(Exception):
    """A program that cannot be started in a container.

    :ivar code: the exit status that a shell has for it: 126, 127.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ProcessExit(Protocol):
    """The end of a process."""

    @property
    def code(self) -> int: ...


class ProcessOutput(Protocol):
    """What a process has written at one moment, to ``stdout`` or ``stderr``."""

    @property
    def stream(self) -> str: ...
    @property
    def data(self) -> bytes: ...


class ContainerMachine(Protocol):
    """The processes of a container."""

    @property
    def unknowns(self) -> Sequence[str]: ...

    def start(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | None = b"",
        tty: bool = False,
        unknown_ends: float | None = None,
    ) -> int:
        """Start a process and return its id. Raises CannotStart.

        :param stdin: None: it stays open, and is fed by :meth:`write_stdin`.
        :param unknown_ends: the seconds after which a program that is not known ends.
        """

    def write_stdin(self, pid: int, data: bytes | None) -> None: ...
    def run(self, until: datetime) -> None: ...
    def next_time(self) -> datetime | None: ...
    def exit_of(self, pid: int) -> ProcessExit | None: ...
    def signal(self, pid: int, number: int) -> None: ...
    def take_output(self, pid: int) -> Sequence[ProcessOutput]: ...

    def waits_for_input(self, pid: int) -> bool:
        """Tell whether a process, or a child of it, goes on only when its stdin does."""


class Box(Protocol):
    """A container that is open."""

    @property
    def machine(self) -> ContainerMachine: ...

    def changed(self) -> None:
        """Keep what has changed in it."""


class PodRequest(NamedTuple):
    """A request to a listening container.

    :ivar target: the path and the query.
    """

    method: str
    target: str
    headers: Mapping[str, str] = {}
    body: bytes = b""


class HttpReply(NamedTuple):
    """The answer of a listening container."""

    status: int
    reason: str = ""
    headers: Mapping[str, str] = {}
    body: bytes = b""


class CannotConnect(Exception):
    """No container of a pod takes a connection: the message is that of the kernel."""


def open_container(client: Client, pod: Pod, name: str) -> AbstractContextManager[Box]:
    """Open a running container of a pod. Raises NoContainers."""
    raise NoContainers


def runs_containers(client: Client) -> bool:
    """Tell whether the cluster models what runs in containers."""
    return False


def connect_to_pod(client: Client, pod: Pod, port: int) -> None:
    """Check that a container of a pod listens on a port. Raises NoContainers, CannotConnect."""
    raise NoContainers


def http_to_pod(client: Client, pod: Pod, port: int, request: PodRequest) -> HttpReply:
    """Send a request to a pod from its node. Raises NoContainers, CannotConnect."""
    raise NoContainers
