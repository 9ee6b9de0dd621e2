"""Sessions with a process of a container: what ``exec`` and ``attach`` do, on the command line and
over HTTP alike.

The processes of a container are kept in the cluster, so that a session holds nothing but their
names: each step opens the container, lets it run up to the cluster's time, and returns what is new.
Between two steps anybody may move the time, run the controllers, or delete the pod.
Upstream: ``pkg/kubelet`` (``GetExec``, ``GetAttach``), ``k8s.io/cri-streaming``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from kubepy import system
from kubepy.api import errors
from kubepy.api.meta import name_of, namespace_of, uid_of
from kubepy.kubelet import inside
from kubepy.kubelet.logs import ContainerLog, LogOptions, choose_container, read_log
from kubepy.quoting import quote

if TYPE_CHECKING:
    from kubepy.api.typed import Container, ContainerStatus, Node, Pod
    from kubepy.apiserver.client import Client

PODS, NODES = "pods", "nodes"
KILLED = 137
INIT = 1  # the process that an attached session is about
STDOUT, STDERR = "stdout", "stderr"
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


class StepResult(NamedTuple):
    """What a step of a session has brought.

    :ivar output: pieces of ``stdout`` and ``stderr``, in their order.
    :ivar exit_code: that of the process, None as long as it runs.
    :ivar waits_for_input: the process goes on only when its stdin does.
    :ivar next_time: when something goes on by itself in the container; None: never.
    """

    output: tuple[tuple[str, bytes], ...] = ()
    exit_code: int | None = None
    waits_for_input: bool = False
    next_time: datetime | None = None


class SessionTarget(NamedTuple):
    """One run of a container, which ends when the container is started again."""

    namespace: str
    pod: str
    uid: str
    container: str
    restarts: int

    def is_over(self, pod: Pod) -> bool:
        """Tell whether the container does not run any more, or runs anew."""
        status = status_of_container(pod, self.container)
        if uid_of(pod) != self.uid or status is None:
            return True
        if status.get("restartCount", 0) != self.restarts:
            return True
        state = status.get("state") or {}
        return "running" not in state


class ContainerSession(Protocol):
    """A process in a container, seen from outside."""

    def step(self, client: Client) -> StepResult:
        """Return what is new at this moment."""

    def write(self, client: Client, data: bytes | None) -> None:
        """Write to the stdin of the process; None closes it."""

    def signal(self, client: Client, number: int) -> None:
        """Send a signal to the process."""

    def leave(self, client: Client) -> None:
        """End the session before the process has ended."""


def status_of_container(pod: Pod, container: str) -> ContainerStatus | None:
    """Return the status of a container of any kind."""
    status = cast("dict[str, list[ContainerStatus]]", pod.get("status") or {})
    for field in _STATUSES:
        for entry in status.get(field) or ():
            if entry["name"] == container:
                return entry
    return None


def running_container(pod: Pod, name: str) -> SessionTarget:
    """Return the present run of a container, "" for the only one. Raises BadRequest, Status where
    it does not run."""
    container = choose_container(pod, name)
    if not pod["spec"].get("nodeName"):
        raise errors.BadRequest(f"pod {name_of(pod)} does not have a host assigned")
    status = status_of_container(pod, container)
    if status is None or "running" not in (status.get("state") or {}):
        raise errors.internal_error(
            f"unable to upgrade connection: container not found ({quote(container)})"
        )
    return SessionTarget(
        namespace_of(pod), name_of(pod), uid_of(pod), container, status.get("restartCount", 0)
    )


def exec_in(
    client: Client,
    pod: Pod,
    container: str,
    command: Sequence[str],
    *,
    stdin: bool = False,
    tty: bool = False,
) -> ExecSession:
    """Start a command in a running container. Raises Status, NoContainers.

    :param stdin: the command's stdin stays open, and is fed by the session.
    """
    run = running_container(pod, container)
    with inside.open_container(client, pod, run.container) as box:
        machine = box.machine
        machine.run(client.clock.now())
        known = frozenset(machine.unknowns)
        try:
            pid = machine.start(
                command,
                stdin=None if stdin else b"",
                tty=tty,
                unknown_ends=0.0,
            )
        except inside.CannotStart as error:
            raise errors.internal_error(
                f"error executing command in container: failed to exec in container: {error}"
            ) from None
        box.changed()
    return ExecSession(run, pid, known, tty=tty)


class ExecSession:
    """A command that was started in a container.

    :param unknowns: the programs of the container that were known before as not known.
    :param tty: the command has a terminal, which hangs up when the session is left.
    """

    def __init__(
        self,
        run: SessionTarget,
        pid: int,
        unknowns: frozenset[str] = frozenset(),
        *,
        tty: bool = False,
    ) -> None:
        self._run = run
        self._pid = pid
        self._tty = tty
        self._unknowns = set(unknowns)

    def step(self, client: Client) -> StepResult:
        pod = _find_pod(client, self._run)
        if pod is None or self._run.is_over(pod):
            return StepResult(exit_code=KILLED)
        with inside.open_container(client, pod, self._run.container) as box:
            machine = box.machine
            machine.run(client.clock.now())
            output = []
            for piece in machine.take_output(self._pid):
                output.append((piece.stream, piece.data))
            end = machine.exit_of(self._pid)
            if output or end is not None:
                box.changed()
            output += self._notes(machine.unknowns)
            return StepResult(
                tuple(output),
                None if end is None else end.code,
                end is None and machine.waits_for_input(self._pid),
                machine.next_time(),
            )

    def write(self, client: Client, data: bytes | None) -> None:
        def write(machine: inside.ContainerMachine) -> None:
            machine.write_stdin(self._pid, data)

        self._act(client, write)

    def signal(self, client: Client, number: int) -> None:
        def send(machine: inside.ContainerMachine) -> None:
            machine.signal(self._pid, number)

        self._act(client, send)

    def leave(self, client: Client) -> None:
        if self._tty:
            self.signal(client, system.SIGHUP)
        else:
            self.write(client, None)

    def _act(self, client: Client, act: Callable[[inside.ContainerMachine], None]) -> None:
        """Do something with the process, if it still runs."""
        pod = _find_pod(client, self._run)
        if pod is None or self._run.is_over(pod):
            return
        with inside.open_container(client, pod, self._run.container) as box:
            machine = box.machine
            machine.run(client.clock.now())
            if machine.exit_of(self._pid) is not None:
                return
            act(machine)
            machine.run(client.clock.now())
            box.changed()

    def _notes(self, unknowns: Sequence[str]) -> list[tuple[str, bytes]]:
        """Say once of each program and construct that the model does not know it."""
        notes = []
        for name in unknowns:
            if name in self._unknowns:
                continue
            self._unknowns.add(name)
            text = f"note: {name}: not known here, so it does nothing\n"
            notes.append((STDERR, text.encode()))
        return notes


def attach_to(client: Client, pod: Pod, container: str, *, stdin: bool = False) -> AttachSession:
    """Attach to the first process of a running container. Raises Status, NoContainers.

    :param stdin: the session feeds the process, where the container has a stdin.
    """
    run = running_container(pod, container)
    with inside.open_container(client, pod, run.container):
        pass
    log = log_of(client, pod, LogOptions(run.container))
    printed = 0 if log is None else len(log.data)
    attached = find_container(pod, run.container)
    return AttachSession(
        run,
        printed,
        feeds=stdin and bool(attached.get("stdin")),
        closes=bool(attached.get("stdinOnce")),
    )


def find_container(pod: Pod, name: str) -> Container:
    """Return a container of any kind, which must be there."""
    spec = cast("dict[str, list[Container]]", pod["spec"])
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            if container["name"] == name:
                return container
    raise errors.internal_error(f"container not found ({quote(name)})")


class AttachSession:
    """The first process of a container. What it prints is read from the container's log.

    :param printed: how many bytes of the log have been seen already.
    :param feeds: the session feeds the stdin of the process.
    :param closes: the stdin of the process ends with the first session that feeds it
        (``stdinOnce``); otherwise it stays open.
    """

    def __init__(self, run: SessionTarget, printed: int, *, feeds: bool, closes: bool) -> None:
        self._run = run
        self._printed = printed
        self._feeds = feeds
        self._closes = closes
        self._exec = ExecSession(run, INIT)

    def step(self, client: Client) -> StepResult:
        pod = _find_pod(client, self._run)
        if pod is None:
            return StepResult(exit_code=KILLED)
        output = self._new_output(client, pod)
        if self._run.is_over(pod):
            return StepResult(output, 0)
        with inside.open_container(client, pod, self._run.container) as box:
            machine = box.machine
            machine.run(client.clock.now())
            return StepResult(
                output,
                None,
                machine.waits_for_input(INIT),
                machine.next_time(),
            )

    def _new_output(self, client: Client, pod: Pod) -> tuple[tuple[str, bytes], ...]:
        status = status_of_container(pod, self._run.container)
        if uid_of(pod) != self._run.uid or status is None:
            return ()
        is_previous = status.get("restartCount", 0) != self._run.restarts
        options = LogOptions(self._run.container, previous=is_previous)
        try:
            log = log_of(client, pod, options)
        except errors.BadRequest:  # the log of that run is gone
            return ()
        if log is None or len(log.data) <= self._printed:
            return ()
        data = log.data[self._printed :]
        self._printed = len(log.data)
        return ((STDOUT, data),)

    def write(self, client: Client, data: bytes | None) -> None:
        if self._feeds and (data is not None or self._closes):
            self._exec.write(client, data)

    def signal(self, client: Client, number: int) -> None:
        self._exec.signal(client, number)

    def leave(self, client: Client) -> None:
        self.write(client, None)


def _find_pod(client: Client, run: SessionTarget) -> Pod | None:
    try:
        return cast("Pod", client.get(PODS, run.pod, namespace=run.namespace))
    except errors.NotFound:
        return None


def log_of(client: Client, pod: Pod, options: LogOptions) -> ContainerLog | None:
    """Return the log of a container as it is now. Raises Status."""

    def find_node(name: str) -> Node | None:
        try:
            return cast("Node", client.get(NODES, name))
        except errors.NotFound:
            return None

    reader = inside.log_reader(client, pod)
    return read_log(
        pod,
        options,
        find_node,
        client.clock.now(),
        reader,
    )
