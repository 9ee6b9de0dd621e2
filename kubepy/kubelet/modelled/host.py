"""What the life of a pod finds on its node: images, files, processes, logs, the network.

A :class:`NodeAgent` serves all pods; a :class:`PodHost` one pod, for one look at it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.meta import controller_of, name_of, namespace_of, uid_of
from kubepy.api.values.quantity import parse_quantity
from kubepy.kubelet import environment, volumes
from kubepy.kubelet.behaviours import Behaviour, Behaviours
from kubepy.kubelet.modelled.life import Process
from kubepy.kubelet.modelled.logs import LogStore, last_lines
from kubepy.kubelet.modelled.programs import Program, program_of
from kubepy.kubelet.modelled.records import PodRecord
from kubepy.kubelet.network import ClusterView, Network
from kubepy.kubelet.obstacles import obstacles_of
from kubepy.kubelet.outcomes import StartObstacles
from kubepy.shell.files import FileSystem, Tree
from kubepy.shell.machine import Machine

if TYPE_CHECKING:
    from kubepy.api.objects.references import Find
    from kubepy.api.typed import Container, Node, Pod
    from kubepy.shell.surroundings import HttpAnswer, HttpRequest

KEPT_LOGS = 2  # of a container: the present run's and the one's before


class NodeAgent(NamedTuple):
    """What all pods of the cluster have in common for their kubelets.

    :ivar images: the images that each node has.
    :ivar draw: draws a number of seconds from a range, for a pod and a purpose.
    :ivar find: looks up a ConfigMap or a Secret.
    :ivar view: reads objects, for the network.
    """

    behaviours: Behaviours
    draw: Callable[[Pod, str, float, float], float]
    find: Find
    view: ClusterView
    network: Network
    logs: LogStore
    images: dict[str, set[str]]
    claims: volumes.ClaimFiles


class PodHost:
    """The node of one pod, as the life of the pod sees it.

    :param is_rehearsal: nothing is noted that outlives the look.
    """

    def __init__(
        self, agent: NodeAgent, pod: Pod, node: Node, *, is_rehearsal: bool = False
    ) -> None:
        self._agent = agent
        self._pod = pod
        self._node = node
        self._is_rehearsal = is_rehearsal
        self._trees: dict[str, Tree] = {}
        self._versions: dict[str, int] = {}

    def rehearsing(self) -> PodHost:
        """Return a host for a look ahead."""
        return PodHost(self._agent, self._pod, self._node, is_rehearsal=True)

    def behaviour(self, container: Container) -> Behaviour:
        """Return what rules, annotations and the table of images say of a container."""
        return self._agent.behaviours.of(self._pod, container, self._node)

    def draw(self, purpose: str, low: float, high: float) -> float:
        """Draw a number of seconds from a range."""
        if low >= high:
            return low
        return self._agent.draw(self._pod, purpose, low, high)

    def obstacles(self, container: Container) -> StartObstacles:
        """Return what keeps volumes from being mounted and the container from being created."""
        return obstacles_of(self._pod, self._agent.find, init_fails=False, pull_fails=False)

    def takes_image(self, container: Container) -> bool:
        """Tell whether the node has the image, and note that it has it from now on."""
        images = self._agent.images.setdefault(name_of(self._node), set())
        is_there = container["image"] in images
        if not self._is_rehearsal:
            images.add(container["image"])
        return is_there

    def memory_limit(self, container: Container) -> int | None:
        """Return the memory limit of a container in bytes."""
        limits = (container.get("resources") or {}).get("limits") or {}
        text = limits.get("memory")
        if text is None:
            return None
        return int(parse_quantity(text))

    def ends_by_itself(self) -> bool:
        """Tell whether programs of which nothing is known end after a moment: those of Jobs."""
        return (controller_of(self._pod) or {}).get("kind") == "Job"

    # --- processes

    def start(self, record: PodRecord, container: Container, now: datetime) -> Process:
        """Start the main process of a container. Raises StartError."""
        behaviour = self.behaviour(container)
        program = program_of(container, behaviour)
        if program.is_opaque:
            return Process(None)
        machine = self.new_machine(record, container, now)
        arguments = environment.expanded(program.command, machine.env)
        is_interactive = bool(container.get("stdin"))
        machine.start(
            arguments, stdin=None if is_interactive else b"", tty=bool(container.get("tty"))
        )
        machine.run(now)
        return Process(machine)

    def new_machine(self, record: PodRecord, container: Container, now: datetime) -> Machine:
        behaviour = self.behaviour(container)
        root = volumes.new_root(self._pod, container, self._node, behaviour.files)
        variables = {**behaviour.env, **self._environment(container)}
        return Machine(
            FileSystem(root, self._mounts(record, container, now)),
            variables,
            cwd=container.get("workingDir") or "/",
            hostname=environment.hostname(self._pod),
            now=now,
            surroundings=self._agent.network.from_pod(self._pod),
            unknown_ends=0.0 if self.ends_by_itself() else None,
        )

    def _environment(self, container: Container) -> dict[str, str]:
        services = self._agent.view.list("services", namespace_of(self._pod))
        return environment.environment(
            self._pod, container, self._agent.find, services, self._node
        )

    def restore(self, record: PodRecord, container: Container) -> Machine | None:
        """Return the machine of a run that is under way; None for a program of which nothing is
        known.

        A program of which only the begin is known is run again from then on.
        """
        container_record = record.containers[container["name"]]
        saved = container_record.machine
        now = record.at
        if saved is None:
            started = container_record.started
            if started is None:
                return None
            machine = self.start(record, container, started).machine
            if machine is not None:
                machine.run(now)
            return machine
        root = Tree.from_json(saved["root"])
        files = FileSystem(root, self._mounts(record, container, now))
        return Machine.from_json(
            saved["machine"], files, self._agent.network.from_pod(self._pod)
        )

    def keep(self, record: PodRecord, container: Container, machine: Machine) -> None:
        """Put a machine into the record of its container, and the volumes that have changed."""
        record.containers[container["name"]].machine = {
            "machine": machine.to_json(),
            "root": machine.files.root.to_json(),
        }
        self._keep_volumes(record)

    def release(self, record: PodRecord, container: Container, machine: Machine) -> None:
        """Keep the volumes of a machine whose run has ended."""
        self._keep_volumes(record)

    # --- volumes

    def _mounts(
        self, record: PodRecord, container: Container, now: datetime
    ) -> Sequence[volumes.Mount]:
        """Return the mounts of a container; containers share the trees of the pod's volumes."""
        for volume in self._pod["spec"].get("volumes") or ():
            name = volume["name"]
            if name not in self._trees:
                self._trees[name] = self._tree(record, volume, now)
                self._versions[name] = self._trees[name].version
        return volumes.mounts_of(self._pod, container, self._trees)

    def _tree(self, record: PodRecord, volume: Any, now: datetime) -> Tree:
        saved = record.volumes.get(volume["name"])
        if saved is not None:
            return Tree.from_json(saved)
        tree = volumes.volume_tree(self._pod, volume, self._agent.find, now)
        if tree is not None:
            return tree
        return self._agent.claims.load(self._pod, volume) or Tree()

    def _keep_volumes(self, record: PodRecord) -> None:
        for volume in self._pod["spec"].get("volumes") or ():
            name = volume["name"]
            tree = self._trees.get(name)
            if tree is None or tree.version == self._versions[name]:
                continue
            if not self._agent.claims.holds(volume):
                record.volumes[name] = tree.to_json()
            elif not self._is_rehearsal:
                self._agent.claims.save(self._pod, volume, tree)
            self._versions[name] = tree.version

    # --- logs

    def log(
        self, container: Container, run: int, output: list[tuple[datetime, str, bytes]]
    ) -> None:
        """Append to the log of a run."""
        if not self._is_rehearsal:
            self._agent.logs.append(uid_of(self._pod), container["name"], run, output)

    def begin_log(self, container: Container, run: int) -> None:
        """Forget the log of the run before the last."""
        if not self._is_rehearsal and run > KEPT_LOGS:
            self._agent.logs.remove(uid_of(self._pod), container["name"], run - KEPT_LOGS)

    def last_lines(self, container: Container, run: int) -> str:
        """Return the end of a log."""
        return last_lines(self._agent.logs.read(uid_of(self._pod), container["name"], run))

    # --- network

    def http(self, request: HttpRequest, host: str, now: datetime) -> HttpAnswer:
        """Send a request of the kubelet to an address. Raises NetworkError."""
        return self._agent.network.from_node(self._node).http(request, now)

    def connect(self, host: str, port: int, now: datetime) -> None:
        """Open a connection of the kubelet to an address. Raises NetworkError."""
        self._agent.network.from_node(self._node).connect(host, port, now)

    def answers_steadily(self, container: Container) -> bool:
        """Tell whether time alone does not change what a container answers."""
        return all(schedule.is_constant for _, schedule in self.behaviour(container).http)


