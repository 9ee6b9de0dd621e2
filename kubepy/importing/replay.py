"""The runs that the model of containers makes of those of a source: where that is something else
than their status says, the status is right.

A command is run in the model from the begin of its run on, over objects of the source, and nothing
is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kubepy.api.meta import Object
from kubepy.kubelet.behaviours import Behaviour, Behaviours, schedule_of
from kubepy.kubelet.environment import ContainerConfigError
from kubepy.kubelet.lastingvolumes import LastingVolumes
from kubepy.kubelet.modelled.host import NodeAgent, PodHost
from kubepy.kubelet.modelled.listening import Listeners
from kubepy.kubelet.modelled.logs import LogStore
from kubepy.kubelet.modelled.probing import port_number
from kubepy.kubelet.modelled.programs import program_of
from kubepy.kubelet.modelled.records import ContainerRecord, PodRecord
from kubepy.kubelet.network import Network
from kubepy.kubelet.network.listeners import path_of, ports_of
from kubepy.kubelet.payloads import MountError
from kubepy.shell.machine import StartError
from kubepy.shell.surroundings import NetworkRequest

if TYPE_CHECKING:
    from kubepy.api.typed import Container, Node, Pod
    from kubepy.importing.evidence import ContainerEvidence, SourceObjects
    from kubepy.shell.machine import Machine

MOST_MOMENTS = 1_000  # of a run: what has more is too much to be run again
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


class ReplayedRun(NamedTuple):
    """The course of a run in the model.

    :ivar code: the exit code, None where it runs on.
    :ivar seconds: how long it has run.
    :ivar is_costly: it does so much that it is not to be run again.
    """

    code: int | None
    seconds: float
    is_costly: bool = False


class Model:
    """The model of containers over the objects of a source."""

    def __init__(self, source: SourceObjects) -> None:
        self._source = source
        self._behaviours = Behaviours(find=source.get)
        view = SourceView(source)
        values: dict[str, str | None] = {}

        def set_values(changes: Mapping[str, str | None]) -> None:
            values.update(changes)

        self._agent = NodeAgent(
            behaviours=self._behaviours,
            draw=lambda pod, purpose, low, high: low,
            find=source.get,
            view=view,
            network=Network(
                view,
                Listeners(self._behaviours.of),
                {},
            ),
            logs=LogStore(values.get, lambda name, text: set_values({name: text})),
            images={},
            lasting=LastingVolumes(
                values.get,
                set_values,
                source.get,
            ),
            defaults={},
        )

    def is_opaque(self, evidence: ContainerEvidence) -> bool:
        """Tell whether the model knows nothing of what a container runs."""
        container = cast("Container", evidence.container)
        return program_of(container, self._behaviour(evidence)).is_opaque

    def replay(self, evidence: ContainerEvidence, age: float) -> ReplayedRun | None:
        """Run a container in the model for as long as it has run; None where nothing can be said
        of it.

        :param age: in seconds.
        """
        if self.is_opaque(evidence):
            return None
        started = self._source.now - timedelta(seconds=age)
        try:
            machine = self._started(evidence, started)
        except StartError as error:
            return ReplayedRun(error.code, 0.0)
        if machine is None:
            return None
        return _followed(
            machine,
            started,
            age,
        )

    def failing_answers(self, evidence: ContainerEvidence) -> dict[str, Any]:
        """Return what rules must say so that the probes of a container succeed, which have
        succeeded; empty where they do so in the model."""
        values: dict[str, Any] = {}
        for field in PROBES:
            probe = evidence.container.get(field)
            if not probe:
                continue
            command = (probe.get("exec") or {}).get("command")
            if command and self._command_fails(evidence, command):
                values.setdefault("exec", {})[escaped(" ".join(command))] = ""
            elif not command:
                self._add_answer(
                    evidence,
                    probe,
                    values,
                )
        return values

    def _behaviour(self, evidence: ContainerEvidence) -> Behaviour:
        pod = cast("Pod", evidence.pod)
        return self._behaviours.of(pod, cast("Container", evidence.container))

    def _host(self, evidence: ContainerEvidence) -> tuple[PodHost, PodRecord]:
        pod = cast("Pod", evidence.pod)
        name = pod["spec"].get("nodeName") or ""
        node = self._source.get(
            "nodes",
            "",
            name,
        ) or {"metadata": {"name": name}}
        host = PodHost(
            self._agent,
            pod,
            cast("Node", node),
            is_rehearsal=True,
        )
        record = PodRecord(at=self._source.now)
        for field in ("initContainers", "containers"):
            for container in cast("Object", pod["spec"]).get(field) or ():
                record.containers[container["name"]] = ContainerRecord(container["name"])
        return host, record

    def _started(self, evidence: ContainerEvidence, started: datetime) -> Machine | None:
        """Start a container. Raises StartError."""
        host, record = self._host(evidence)
        with suppress(MountError, ContainerConfigError):
            container = cast("Container", evidence.container)
            return host.start(
                record,
                container,
                started,
            ).machine
        return None

    def _command_fails(self, evidence: ContainerEvidence, command: list[str]) -> bool:
        """Tell whether a command fails in the model, run beside the container's program."""
        host, record = self._host(evidence)
        now = self._source.now
        try:
            with suppress(MountError, ContainerConfigError):
                container = cast("Container", evidence.container)
                machine = host.machine_beside(
                    record,
                    container,
                    now,
                )
                pid = machine.start(command, unknown_ends=0.0)
                machine.run(now)
                end = machine.exit_of(pid)
                return end is None or end.code != 0
        except StartError:
            return True
        return False

    def _add_answer(
        self, evidence: ContainerEvidence, probe: Object, values: dict[str, Any]
    ) -> None:
        """Add what is to be said so that a probe over the network succeeds."""
        handler = probe.get("httpGet") or probe.get("tcpSocket") or probe.get("grpc")
        if not handler:
            return
        container = cast("Container", evidence.container)
        port = port_number(container, handler.get("port") or 0)
        if port is None:
            return
        behaviour = self._behaviour(evidence)
        ports = ports_of(container, behaviour)
        if port not in ports:
            listened = values.setdefault("listens", sorted(ports))
            if port not in listened:
                listened.append(port)
        if not probe.get("httpGet") or not (behaviour.http or behaviour.serves):
            return
        path = (handler.get("path") or "").removeprefix("/")
        asked = path_of(NetworkRequest("GET", f"http://pod/{path}"))
        schedule = schedule_of(behaviour, asked)
        if schedule is None or schedule.at(0.0).status >= 400:
            values.setdefault("http", {})[escaped(asked)] = 200


class SourceView:
    """The objects of a source, as the network of the model reads them."""

    def __init__(self, source: SourceObjects) -> None:
        self._source = source
        self.get = source.get
        self.list = source.list

    @property
    def now(self) -> datetime:
        """The moment of the source."""
        return self._source.now


def _followed(machine: Machine, started: datetime, age: float) -> ReplayedRun:
    """Follow a machine through a run."""
    until = started + timedelta(seconds=age)
    for _ in range(MOST_MOMENTS):
        moment = machine.next_time()
        if moment is None or moment > until:
            return ReplayedRun(None, age)
        machine.run(moment)
        end = machine.exit_of(1)
        if end is not None:
            return ReplayedRun(end.code, (end.time - started).total_seconds())
    return ReplayedRun(
        None,
        age,
        is_costly=True,
    )


def escaped(text: str) -> str:
    """Return a pattern that matches a text alone."""
    return re.sub(r"[\[*?]", r"[\g<0>]", text)
