"""The state of a pod while its life goes on: its record, the machines of its containers, the events
that it has caused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from kubepy.api.meta import is_being_deleted, name_of, namespace_of, uid_of
from kubepy.api.objects.pods import is_restartable_init_container
from kubepy.kubelet.modelled.programs import is_other_image
from kubepy.kubelet.modelled.records import ContainerRecord, PodRecord

if TYPE_CHECKING:
    from kubepy.api.typed import Container, Pod
    from kubepy.kubelet.behaviours import Behaviour
    from kubepy.kubelet.outcomes import StartObstacles
    from kubepy.shell.machine import Machine
    from kubepy.shell.surroundings import HttpAnswer, NetworkRequest

NORMAL, WARNING = "Normal", "Warning"
# The pids of containers that share them: the first is the sandbox's, the next few are those of the
# programs that a runtime begins with.
FIRST_PID, PIDS_OF_CONTAINER = 8, 100
SPEC_FIELDS = {
    "containers": "spec.containers",
    "initContainers": "spec.initContainers",
    "ephemeralContainers": "spec.ephemeralContainers",
}


class PodEvent(NamedTuple):
    """An event about a pod, or about the container at ``field_path``."""

    type: str
    reason: str
    message: str
    field_path: str = ""


class MainProcess(NamedTuple):
    """The main process of a container's run.

    :ivar machine: None: a program of which nothing is known, which runs until it is stopped.
    """

    machine: Machine | None


class Host(Protocol):
    """The node of a pod and the cluster around it, as the life of the pod asks them."""

    def behaviour(self, container: Container) -> Behaviour:
        """Return what rules, annotations and the table of images say of a container."""

    def draw(self, purpose: str, low: float, high: float) -> float:
        """Draw a number of seconds from a range: a function of the seed, the pod and the
        purpose."""

    def sub_path_problem(self, record: PodRecord, container: Container, now: datetime) -> str:
        """Return why a part of a volume cannot be mounted into a container; "" where it can."""

    def obstacles(self, container: Container) -> StartObstacles:
        """Return what keeps a container from being created."""

    def mount_problems(self, record: PodRecord, now: datetime) -> list[str]:
        """Return what keeps volumes from being mounted, as the messages of ``FailedMount``."""

    def missing_pull_secrets(self) -> list[str]:
        """Return the names of the Secrets for registries that are not there."""

    def takes_image(self, container: Container) -> bool:
        """Tell whether the node has the image of a container, and note that it has it from now
        on."""

    def start(self, record: PodRecord, container: Container, now: datetime) -> MainProcess:
        """Start the main process of a container. Raises StartError."""

    def restore(self, record: PodRecord, container: Container) -> Machine | None:
        """Return the machine of a container's run that is under way, as its record has it; None
        where nothing is known of the program."""

    def machine_beside(self, record: PodRecord, container: Container, now: datetime) -> Machine:
        """Return a machine with the files and the environment of a container, in which its main
        process runs that is only known by name."""

    def memory_limit(self, container: Container) -> int | None:
        """Return the memory limit of a container in bytes, None for none."""

    def rehearsing(self) -> Host:
        """Return a host for a look ahead, which leaves no trace."""

    def ends_by_itself(self, container: Container) -> bool:
        """Tell whether programs of which nothing is known end after a moment: those of Jobs, and of
        init containers."""

    def begin_log(self, container: Container, run: int) -> None:
        """Begin the log of a run."""

    def keep(self, record: PodRecord, container: Container, machine: Machine) -> None:
        """Put a machine back into the record of its container, and the volumes that it shares."""

    def release(self, record: PodRecord, container: Container, machine: Machine) -> None:
        """Keep of a machine whose run has ended what outlives it: the volumes."""

    def log(
        self, container: Container, run: int, output: list[tuple[datetime, str, bytes]]
    ) -> None:
        """Append to the log of a run of a container."""

    def last_lines(self, container: Container, run: int) -> str:
        """Return the end of a log: at most 80 lines and 2,048 bytes."""

    def volume_usage(self, record: PodRecord, name: str, now: datetime) -> int:
        """Return the bytes that a volume takes on its disk."""

    def log_size(self, container: Container, run: int) -> int:
        """Return the bytes of the logs of a container that are kept."""

    def http(self, record: PodRecord, request: NetworkRequest, now: datetime) -> HttpAnswer:
        """Send a request of the kubelet. Raises NetworkError."""

    def connect(self, record: PodRecord, host: str, port: int, now: datetime) -> None:
        """Open a connection of the kubelet to an address. Raises NetworkError."""

    def answers_change(
        self, container: Container, started: datetime, now: datetime
    ) -> datetime | None:
        """Return when a container answers something else by itself, None for never."""

    def refresh_volumes(self, record: PodRecord, now: datetime) -> bool:
        """Bring the files that show objects up to date. Return whether they have changed."""


class PodLife:
    """A pod, what is known of it, and what has happened to it.

    :ivar now: the moment up to which the pod has lived.
    :ivar events: those that have not been recorded.
    :ivar is_changed: its status may differ from the one that was reported.
    :ivar is_behind: it lives through what is past: what has changed around it since, the pod itself
        included, is not to be seen yet.
    """

    def __init__(self, pod: Pod, record: PodRecord, host: Host) -> None:
        self.pod = pod
        self.record = record
        self.host = host
        self.now = record.at
        self.events: list[PodEvent] = []
        self.is_changed = False
        self.is_behind = False
        self._machines: dict[str, Machine] = {}
        self._opaque: set[str] = set()  # the containers that have no machine
        self._specs: dict[str, tuple[str, int, Container]] = {}
        for list_name in SPEC_FIELDS:
            containers = cast("list[Container]", pod["spec"].get(list_name) or ())
            for index, container in enumerate(containers):
                self._specs[container["name"]] = list_name, index, container
        for name in self._specs:
            record.containers.setdefault(name, ContainerRecord(name))

    # --- the parts of the pod

    @property
    def init_containers(self) -> list[Container]:
        """The init containers in their order, sidecars among them."""
        return cast("list[Container]", self.pod["spec"].get("initContainers") or [])

    @property
    def containers(self) -> list[Container]:
        """The containers in their order."""
        return self.pod["spec"]["containers"]

    @property
    def ephemeral_containers(self) -> list[Container]:
        """The ephemeral containers in their order."""
        return cast("list[Container]", self.pod["spec"].get("ephemeralContainers") or [])

    @property
    def sidecars(self) -> list[Container]:
        """The init containers that run with the pod."""
        return [each for each in self.init_containers if is_restartable_init_container(each)]

    def spec_of(self, name: str) -> Container:
        """Return the specification of a container."""
        return self._specs[name][2]

    def is_init(self, name: str) -> bool:
        """Tell whether a container is an init container that ends before the others start."""
        list_name, _, container = self._specs[name]
        return list_name == "initContainers" and not is_restartable_init_container(container)

    def record_of(self, container: Container | str) -> ContainerRecord:
        """Return the record of a container."""
        name = container if isinstance(container, str) else container["name"]
        return self.record.containers[name]

    def running(self) -> Iterator[tuple[Container, ContainerRecord]]:
        """Yield the containers of which a run is under way."""
        for name, (_, _, container) in self._specs.items():
            record = self.record.containers[name]
            if record.is_running:
                yield container, record

    @property
    def full_name(self) -> str:
        """The pod as a kubelet names it: ``name_namespace(uid)``."""
        return f"{name_of(self.pod)}_{namespace_of(self.pod)}({uid_of(self.pod)})"

    @property
    def address(self) -> str:
        """The address of the pod, "" before it has one."""
        return (self.pod.get("status") or {}).get("podIP") or ""

    # --- what happens

    def emit(self, event_type: str, reason: str, message: str, container: str = "") -> None:
        """Note an event about the pod, or about a container of it."""
        field_path = ""
        if container:
            list_name = self._specs[container][0]
            field_path = f"{SPEC_FIELDS[list_name]}{{{container}}}"
        self.events.append(
            PodEvent(
                event_type,
                reason,
                message,
                field_path,
            )
        )

    @property
    def is_ending(self) -> bool:
        """Tell whether the pod as a whole ends, so that none of its containers starts again."""
        return bool(self.record.end) or bool(self.record.grace)

    def note_deletion(self) -> None:
        """Note that the pod is being deleted, and how much time its containers get: never more than
        before (``calculateEffectiveGracePeriod``)."""
        if not is_being_deleted(self.pod):
            return
        seconds = max(self.pod["metadata"].get("deletionGracePeriodSeconds") or 0, 1)
        if not self.record.grace or seconds < self.record.grace:
            self.record.grace = seconds

    def has_other_image(self, container: Container) -> bool:
        """Tell whether a container runs another image than its specification says by now."""
        running = self.record_of(container).image
        return bool(running) and is_other_image(running, container)

    def touch(self) -> None:
        """Note that the status may have changed."""
        self.is_changed = True

    def after(self, seconds: float) -> datetime:
        """Return the moment that comes so many seconds from now."""
        return self.now + timedelta(seconds=seconds)

    # --- machines

    def machine(self, name: str) -> Machine | None:
        """Return the machine of a container whose run is under way; None where nothing is known of
        its program and nothing was started beside it."""
        if name in self._machines or name in self._opaque:
            return self._machines.get(name)
        machine = self.host.restore(self.record, self.spec_of(name))
        if machine is None:
            self._opaque.add(name)
        else:
            self._machines[name] = machine
        return machine

    def machine_for_commands(self, name: str) -> Machine:
        """Return the machine of a running container, in which commands can be started."""
        machine = self.machine(name)
        if machine is None:
            machine = self.host.machine_beside(self.record, self.spec_of(name), self.now)
            self._machines[name] = machine
            self._opaque.discard(name)
        return machine

    def set_machine(self, name: str, machine: Machine | None) -> None:
        """Give a container the machine of a new run, or take it from one that has ended."""
        self.record.containers[name].machine = None
        self._machines.pop(name, None)
        if machine is None:
            self._opaque.add(name)
        else:
            self._opaque.discard(name)
            self._machines[name] = machine

    def machines(self) -> Mapping[str, Machine]:
        """Return the machines of the containers that run, by their names."""
        for container, _ in self.running():
            self.machine(container["name"])
        return self._machines

    def share_processes(self) -> None:
        """Let the processes of all containers see each other, where the pod says so, and those of
        an ephemeral container the processes of its target."""
        if not self.pod["spec"].get("shareProcessNamespace"):
            self._share_with_targets()
            return
        machines = [self.machine_for_commands(each["name"]) for each, _ in self.running()]
        for place, machine in enumerate(machines):
            machine.share_processes(machines, FIRST_PID + place * PIDS_OF_CONTAINER)

    def _share_with_targets(self) -> None:
        if not self.ephemeral_containers:
            return
        names = [container["name"] for container, _ in self.running()]
        for container in self.ephemeral_containers:
            target = cast("dict[str, Any]", container).get("targetContainerName")
            if target in names and container["name"] in names:
                seen = [self.machine_for_commands(target)]
                machine = self.machine_for_commands(container["name"])
                machine.share_processes(seen, FIRST_PID)

    def run_machines(self, until: datetime) -> None:
        """Let the processes of all containers go on up to a moment, in the order of time: what one
        writes into a volume another one reads."""
        machines = [*self.machines().values()]
        while True:
            moments = [machine.next_time() for machine in machines]
            due = [moment for moment in moments if moment is not None and moment <= until]
            if not due:
                break
            for machine in machines:
                machine.run(max(min(due), machine.now))
        for machine in machines:
            machine.run(max(until, machine.now))

    def store_machines(self) -> None:
        """Put what the machines are now into the records."""
        for name, machine in self._machines.items():
            self.host.keep(self.record, self.spec_of(name), machine)
