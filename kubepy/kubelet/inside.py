"""The inside of containers: what ``exec``, ``attach``, ``cp`` and ``port-forward`` work on.

Containers of a cluster that does not model them cannot be looked into.
"""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from kubepy.api.meta import name_of, namespace_of, uid_of
from kubepy.apiserver.request import Patch
from kubepy.apiserver.settings import MODELLED
from kubepy.kubelet.logs import PrintedLine
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.kubelet import behaviours
    from kubepy.kubelet.modelled import agent, host, life, logs, records, stopping
    from kubepy.shell import programs, surroundings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubepy.api.typed import Node, Pod
    from kubepy.apiserver.client import Client
    from kubepy.kubelet.behaviours import Behaviour, ExecAnswer
    from kubepy.kubelet.modelled.logs import PrintedText
    from kubepy.shell.machine import Machine

LOOKED_INTO = "kubepy.dev/looked-into"  # an annotation that is gone as soon as it was set
MERGE = "application/merge-patch+json"
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
    """The output of a process at one moment, to ``stdout`` or ``stderr``."""

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


class PodReply(NamedTuple):
    """The answer of a listening container."""

    status: int
    reason: str = ""
    headers: Mapping[str, str] = {}
    body: bytes = b""


class CannotConnect(Exception):
    """No container of a pod takes a connection: the message is that of the kernel."""


def open_container(client: Client, pod: Pod, name: str) -> AbstractContextManager[Box]:
    """Open a running container of a pod. Raises NoContainers."""
    if not runs_containers(client):
        raise NoContainers
    return _opened(client, pod, name)


@contextmanager
def _opened(client: Client, pod: Pod, name: str) -> Iterator[Box]:
    with client.transaction():
        box = OpenContainer(client, pod, name)
        yield box
    if box.is_to_be_seen:
        poke(client, pod)


class OpenContainer:
    """A container of a modelled pod, as it is kept in the cluster.

    :ivar is_to_be_seen: what has changed in it is something for the kubelet of its pod.
    """

    def __init__(self, client: Client, pod: Pod, name: str) -> None:
        self._client = client
        self._pod = pod
        self._name = name
        self._pods = agent.modelled_pods_of(client)
        node = cast("Node", client.get("nodes", pod["spec"]["nodeName"]))
        self._record = self._pods.record(pod, client.clock.now())
        run_pod = self._pods.agent.pod_to_run(pod, node)
        self._host = host.PodHost(self._pods.agent, run_pod, node)
        self._life = life.PodLife(run_pod, self._record, self._host)
        self._container = self._life.spec_of(name)
        self._behaviour = self._host.behaviour(self._container)
        self._version = 0
        self.is_to_be_seen = False

    @cached_property
    def machine(self) -> ContainerMachine:
        """The processes of the container. What those of the others have done by now is there."""
        machine = self._life.machine_for_commands(self._name)
        self._version = machine.files.version
        self._life.share_processes()
        self._life.run_machines(self._client.clock.now())
        return RunningContainer(machine, self._behaviour)

    def changed(self) -> None:
        """Keep what has changed; the kubelet of the pod looks again where files have changed, or
        the main process has ended."""
        machine = self._life.machine_for_commands(self._name)
        for container, _ in self._life.running():
            stopping.collect_output(self._life, container)
        self._life.store_machines()
        has_ended = False
        for name, each in self._life.machines().items():
            is_over = each.has_main and each.exit_of(1) is not None
            self._life.record_of(name).is_ended = is_over
            has_ended = has_ended or is_over
        self._pods.keep(self._pod, self._record)
        if machine.files.version != self._version or has_ended:
            self.is_to_be_seen = True


class RunningContainer:
    """The processes of a container, with the answers that rules give to commands."""

    def __init__(self, machine: Machine, behaviour: Behaviour) -> None:
        self._machine = machine
        self._behaviour = behaviour

    @property
    def unknowns(self) -> Sequence[str]:
        """The programs and constructs of which nothing is known."""
        return self._machine.unknowns

    def start(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | None = b"",
        tty: bool = False,
        unknown_ends: float | None = None,
    ) -> int:
        """Start a process. Raises CannotStart."""
        answer = behaviours.answer_to(self._behaviour, argv)
        words = list(argv) if answer is None else answering_command(answer)
        try:
            return self._machine.start(
                words,
                stdin=stdin,
                tty=tty,
                unknown_ends=unknown_ends,
            )
        except programs.StartError as error:
            raise CannotStart(error.code, error.message) from None

    def write_stdin(self, pid: int, data: bytes | None) -> None:
        """Write to the input of a process."""
        self._machine.write_stdin(pid, data)

    def run(self, until: datetime) -> None:
        """Do what is due."""
        self._machine.run(max(until, self._machine.now))

    def next_time(self) -> datetime | None:
        """Return when something goes on by itself."""
        return self._machine.next_time()

    def exit_of(self, pid: int) -> ProcessExit | None:
        """Return the end of a process."""
        return self._machine.exit_of(pid)

    def signal(self, pid: int, number: int) -> None:
        """Send a signal to a process."""
        self._machine.signal(pid, number)

    def take_output(self, pid: int) -> Sequence[ProcessOutput]:
        """Return what a process has printed; that of the main process is in its log."""
        if pid == 1:
            return ()
        return self._machine.take_output(pid)

    def waits_for_input(self, pid: int) -> bool:
        """Tell whether a process goes on only when its input does."""
        return self._machine.waits_for_input(pid)


def answering_command(answer: ExecAnswer) -> list[str]:
    """Return a command that prints what a rule says, and ends as it says."""
    script = (
        f"printf %s {shlex.quote(answer.stdout)}; printf %s {shlex.quote(answer.stderr)} >&2; "
        f"exit {answer.exit_code}"
    )
    return ["sh", "-c", script]


def poke(client: Client, pod: Pod) -> None:
    """Let the kubelet look at a pod again: it hears of changes of the pod alone. The pod is the
    same afterwards."""
    for value in (client.clock.timestamp(), None):
        body = {"metadata": {"annotations": {LOOKED_INTO: value}}}
        client.patch(
            "pods",
            name_of(pod),
            Patch(MERGE, body),
            namespace=namespace_of(pod),
        )


def log_reader(client: Client, pod: Pod) -> Callable[[str, int], list[PrintedLine] | None]:
    """Return a function that reads what a run of a container has printed, for ``read_log``."""

    def read(container: str, run: int) -> list[PrintedLine] | None:
        entries = printed_by(
            client,
            pod,
            container,
            run,
        )
        if entries is None:
            return None
        lines: list[PrintedLine] = []
        for entry in entries:
            for text in io.StringIO(entry.text, newline="\n"):
                lines.append(PrintedLine(entry.time, text.removesuffix("\n"), text.endswith("\n")))
        return lines

    return read


def printed_by(client: Client, pod: Pod, container: str, run: int) -> list[PrintedText] | None:
    """Return what a run of a container has printed by now; None for a pod of which no record is
    kept.

    :param run: 1 for the first run.
    """
    if not runs_containers(client):
        return None
    if client.value(f"{records.RECORD}{uid_of(pod)}") is None:
        text = client.value(logs.log_name(uid_of(pod), container, run))  # of an imported pod
        return None if text is None else logs.parse_log(text)
    pods = agent.modelled_pods_of(client)
    record = pods.record(pod, client.clock.now())
    container_record = record.containers.get(container)
    if container_record is not None and container_record.runs == run and container_record.started:
        with open_container(client, pod, container) as box:
            box.machine.run(client.clock.now())
            box.changed()
    return pods.agent.logs.read(uid_of(pod), container, run)


def next_time_of(client: Client, pod: Pod, container: str) -> datetime | None:
    """Return when something goes on by itself in a running container; None: never."""
    if not runs_containers(client) or client.value(f"{records.RECORD}{uid_of(pod)}") is None:
        return None
    with open_container(client, pod, container) as box:
        return box.machine.next_time()


def runs_containers(client: Client) -> bool:
    """Tell whether the cluster models what runs in containers."""
    return client.settings.kubelet.containers == MODELLED


def connect_to_pod(client: Client, pod: Pod, port: int) -> None:
    """Check that a container of a pod listens on a port. Raises NoContainers, CannotConnect."""
    if not runs_containers(client):
        raise NoContainers
    network = agent.modelled_pods_of(client).agent.network
    try:
        network.connect_to_pod(pod, port)
    except surroundings.NetworkError as error:
        raise CannotConnect(_words_of(error)) from None


def http_to_pod(client: Client, pod: Pod, port: int, request: PodRequest) -> PodReply:
    """Send a request to a pod from its node. Raises NoContainers, CannotConnect."""
    if not runs_containers(client):
        raise NoContainers
    network = agent.modelled_pods_of(client).agent.network
    address = (pod.get("status") or {}).get("podIP") or ""
    url = f"http://{address}:{port}{request.target}"
    headers = tuple(request.headers.items())
    try:
        answer = network.http_to_pod(
            pod,
            port,
            surroundings.NetworkRequest(
                request.method,
                url,
                headers,
                request.body,
            ),
        )
    except surroundings.NetworkError as error:
        raise CannotConnect(_words_of(error)) from None
    return PodReply(
        answer.status,
        answer.reason,
        dict(answer.headers),
        answer.body,
    )


def _words_of(error: surroundings.NetworkError) -> str:
    """Return the kernel's words for a connection that failed."""
    words = {"timeout": "connection timed out", "reset": "connection reset by peer"}
    return words.get(error.kind, "connection refused")
