"""The node of a pod, as the life of the pod finds it: images, files, processes, logs, the network.

A :class:`NodeAgent` serves all pods; a :class:`PodHost` one pod, for one look at it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from kubepy.api.clock import format_time, parse_time
from kubepy.api.meta import name_of, namespace_of, nested_list, uid_of
from kubepy.api.objects.images import image_repository
from kubepy.api.objects.pods import is_restartable_init_container
from kubepy.api.values.quantity import Quantity
from kubepy.kubelet.behaviours import Behaviour, Behaviours
from kubepy.kubelet.capabilities import capabilities_of
from kubepy.kubelet.containerfiles import CLUSTER_DNS
from kubepy.kubelet.environment import (
    ContainerConfigError,
    command_of,
    environment,
    group_of,
    groups_of,
    hostname_in_container,
    process_environment,
    user_of,
)
from kubepy.kubelet.images import facts_of, has_busybox
from kubepy.kubelet.lastingvolumes import unprocessed_claims
from kubepy.kubelet.modelled.choice import is_pod_of_job
from kubepy.kubelet.modelled.leniency import (
    ignores_references,
    with_optional_references,
    without_absent_references,
)
from kubepy.kubelet.modelled.life import MainProcess
from kubepy.kubelet.modelled.logs import LogStore, last_lines
from kubepy.kubelet.modelled.programs import mount_of, program_of
from kubepy.kubelet.modelled.records import PodRecord
from kubepy.kubelet.modelled.statuses import reported_status
from kubepy.kubelet.modelled.tokens import VOLUME as ACCOUNT_VOLUME
from kubepy.kubelet.modelled.tokens import (
    ReadToken,
    unsigned_token,
    with_account_mount,
    with_account_volume,
)
from kubepy.kubelet.mounts import ContainerFiles, file_reader
from kubepy.kubelet.network import Network, service_environment
from kubepy.kubelet.network.listeners import running_containers
from kubepy.kubelet.obstacles import CONFIG_ERROR, CREATING, obstacles_of
from kubepy.kubelet.outcomes import StartObstacles, Waiting
from kubepy.kubelet.payloads import MountError, VolumeSources, is_projection
from kubepy.kubelet.volumes import empty_tree, refresh, volume_tree
from kubepy.lazy import blake2b
from kubepy.quoting import quote
from kubepy.shell.files import FileError, Tree
from kubepy.shell.machine import ContainerSetting, Machine

if TYPE_CHECKING:
    from kubepy.api.meta import AnyObject, Object
    from kubepy.api.objects.references import Find
    from kubepy.api.typed import Container, Node, Pod
    from kubepy.apiserver.absence import AbsentObjects
    from kubepy.kubelet.lastingvolumes import LastingVolumes
    from kubepy.kubelet.network import ClusterView
    from kubepy.kubelet.network.connections import Connections
    from kubepy.shell.files import FileSystem
    from kubepy.shell.surroundings import HttpAnswer, NetworkRequest

KEPT_LOGS = 2  # of a container: the present run's and the one's before
USERS_OF_NAMESPACE = 65_536
USER_NAMESPACES = 32_000  # of a node
DNS_SERVICE = "kube-dns"


class NodeAgent(NamedTuple):
    """The things that all pods of the cluster have in common for their kubelets.

    :ivar images: the images that each node has.
    :ivar draw: draws a number of seconds from a range, for a pod and a purpose.
    :ivar find: looks up a ConfigMap or a Secret.
    :ivar view: reads objects, for the network.
    :ivar defaults: the annotations that pods have by the settings of the cluster.
    :ivar read_token: makes the tokens of pods when somebody reads their files.
    :ivar absent: what an imported source names and does not hold: no pod waits for it.
    """

    behaviours: Behaviours
    draw: Callable[[Pod, str, float, float], float]
    find: Find
    view: ClusterView
    network: Network
    logs: LogStore
    images: dict[str, dict[str, bool]]
    lasting: LastingVolumes
    defaults: Mapping[str, str]
    read_token: ReadToken = unsigned_token
    absent: AbsentObjects | None = None

    def pod_to_run(self, pod: Pod, node: Node) -> Pod:
        """Return a pod as its containers are run: without what it must have, where an annotation
        says so."""
        if ignores_references(pod, node, self.defaults):
            return with_optional_references(pod, self.find)
        if self.absent is not None:
            return without_absent_references(pod, self.find, self.absent)
        return pod


class PodHost:
    """The node of one pod, as the life of the pod sees it.

    :param is_rehearsal: nothing is noted that outlives the look.
    """

    def __init__(
        self, agent: NodeAgent, pod: Pod, node: Node, *, is_rehearsal: bool = False
    ) -> None:
        self._agent = agent
        self._pod = with_account_volume(pod)
        self._node = node
        self._is_rehearsal = is_rehearsal
        self._trees: dict[str, Tree] = {}
        self._versions: dict[str, int] = {}

    def rehearsing(self) -> PodHost:
        """Return a host for a look ahead."""
        return PodHost(
            self._agent,
            self._pod,
            self._node,
            is_rehearsal=True,
        )

    def behaviour(self, container: Container) -> Behaviour:
        """Return what rules, annotations and the table of images say of a container."""
        return self._agent.behaviours.of(self._pod, container, self._node)

    def draw(self, purpose: str, low: float, high: float) -> float:
        """Draw a number of seconds from a range."""
        if low >= high:
            return low
        return self._agent.draw(
            self._pod,
            purpose,
            low,
            high,
        )

    def obstacles(self, container: Container) -> StartObstacles:
        """Return what keeps volumes from being mounted and the container from being created."""
        obstacles = obstacles_of(
            self._pod,
            self._agent.find,
            init_fails=False,
            pull_fails=False,
        )
        name = container["name"]
        if obstacles.mounts or obstacles.of(name) is not None:
            return obstacles
        try:
            self._variables(container)
        except ContainerConfigError as error:
            held = (*obstacles.containers, (name, Waiting(CONFIG_ERROR, str(error))))
            return StartObstacles(containers=held)
        return obstacles

    def sub_path_problem(self, record: PodRecord, container: Container, now: datetime) -> str:
        """Return why a part of a volume cannot be mounted into a container; "" where it can."""
        mounts = container.get("volumeMounts") or ()
        if not any(mount.get("subPath") or mount.get("subPathExpr") for mount in mounts):
            return ""
        self._load_trees(record, now)
        try:
            self._container_files(container, self._variables(container, record)).check()
        except ContainerConfigError as error:
            return str(error)
        return ""

    def mount_problems(self, record: PodRecord, now: datetime) -> list[str]:
        """Return what keeps volumes from being mounted, as the messages of ``FailedMount``."""
        obstacles = obstacles_of(
            self._pod,
            self._agent.find,
            init_fails=False,
            pull_fails=False,
        )
        problems = [
            f"MountVolume.SetUp failed for volume {quote(volume)} : {message}"
            for volume, message in obstacles.mounts
        ]
        claims = unprocessed_claims(self._pod, self._agent.find)
        if claims:
            problems.append(claims)
        problems += self._ruled_problems()
        if problems:
            return problems
        for volume in self._pod["spec"].get("volumes") or ():
            try:
                self._load_tree(record, volume, now)
            except MountError as error:
                name = quote(volume["name"])
                problems.append(f"MountVolume.SetUp failed for volume {name} : {error}")
        return problems

    def _ruled_problems(self) -> list[str]:
        """Return what rules say of containers that are not even created; the same message once."""
        problems: list[str] = []
        for container in self._pod["spec"]["containers"]:
            start = self.behaviour(container).start
            if start is not None and start.reason == CREATING and start.message not in problems:
                problems.append(start.message)
        return problems

    def missing_pull_secrets(self) -> list[str]:
        """Return the names of the Secrets for registries that are not there."""
        missing: list[str] = []
        for reference in self._pod["spec"].get("imagePullSecrets") or ():
            name = reference.get("name") or ""
            if self._agent.find("secrets", namespace_of(self._pod), name) is None:
                missing.append(name)
        return missing

    def takes_image(self, container: Container) -> bool:
        """Tell whether the node has the image, and note that it has it from now on."""
        images = self._agent.images.setdefault(name_of(self._node), {})
        is_there = container["image"] in images
        if not self._is_rehearsal:
            images[container["image"]] = True
        return is_there

    def memory_limit(self, container: Container) -> int | None:
        """Return the memory limit of a container in bytes."""
        limits = (container.get("resources") or {}).get("limits") or {}
        text = limits.get("memory")
        if text is None:
            return None
        return Quantity.parse(text).value()

    def ends_by_itself(self, container: Container) -> bool:
        """Tell whether programs of which nothing is known end after a moment: those of Jobs, and of
        init containers."""
        if is_pod_of_job(self._pod):
            return True
        if is_restartable_init_container(container):
            return False
        return container in (self._pod["spec"].get("initContainers") or ())

    # --- processes

    def start(self, record: PodRecord, container: Container, now: datetime) -> MainProcess:
        """Start the main process of a container, which has done nothing yet. Raises StartError."""
        behaviour = self.behaviour(container)
        variables = self._variables(container, record)
        command, arguments = command_of(container, variables)
        expanded: Container = {**container, "command": command, "args": arguments}
        program = program_of(expanded, behaviour)
        if program.is_opaque:
            self._keep_shown_objects(record, now)
            run = record.containers[container["name"]]
            run.variables = variables if _refers_to_objects(container) else {}
            self._write_files(record, container, now)
            return MainProcess(None)
        machine = self.new_machine(record, container, now)
        word = program.command[0]
        if self._is_hidden(container, word, machine.files):
            record.containers[container["name"]].unknowns = [word]
            return MainProcess(None)
        machine.start(
            program.command,
            stdin=None if container.get("stdin") else b"",
            tty=bool(container.get("tty")),
            is_main=True,
        )
        return MainProcess(machine)

    def _is_hidden(self, container: Container, word: str, files: FileSystem) -> bool:
        """Tell whether a program may lie in a volume of which the model does not know the files:
        only what the cluster itself has put into a volume, or nobody yet, is known."""
        if "/" not in word:
            return False
        name = mount_of(container, word)
        if not name or files.exists(posixpath.join(container.get("workingDir") or "/", word)):
            return False
        for volume in self._pod["spec"].get("volumes") or ():
            if volume["name"] == name:
                return not is_projection(volume) and volume.get("emptyDir") is None
        return False

    def _write_files(self, record: PodRecord, container: Container, now: datetime) -> None:
        """Make the files that the program of an image makes when it starts: those in volumes, which
        others can see."""
        paths = self.behaviour(container).writes
        if not paths:
            return
        files = self.new_machine(record, container, now).files
        for path in paths:
            with suppress(FileError):  # its folder is not there
                if not files.exists(path):
                    files.write(path, b"", now=now)
        self._keep_volumes(record)

    def new_machine(self, record: PodRecord, container: Container, now: datetime) -> Machine:
        """Return a machine in which nothing runs."""
        behaviour = self.behaviour(container)
        variables = self._variables(container, record)
        self._load_trees(record, now)
        files = self._container_files(container, variables).new(
            behaviour.files, now, self._dns_address()
        )
        record.containers[container["name"]].image_size = files.root.usage
        setting = ContainerSetting(
            cwd=container.get("workingDir") or "/",
            hostname=hostname_in_container(self._pod),
            user=user_of(self._pod, container),
            unknown_ends=0.0 if self.ends_by_itself(container) else None,
            has_busybox=has_busybox(container["image"]),
            group=group_of(self._pod, container),
            groups=groups_of(self._pod, container),
            capabilities=capabilities_of(container),
            user_base=self._user_base(),
            lacks=behaviour.lacks,
            own_programs=behaviour.programs if behaviour.is_bare else None,
        )
        machine = Machine(
            files,
            process_environment(
                self._pod,
                container,
                variables,
                behaviour.env,
            ),
            setting,
            now=now,
            surroundings=self._surroundings(record),
        )
        self._complete_tokens(machine)
        return machine

    def _complete_tokens(self, machine: Machine) -> None:
        """Let the processes of a machine read tokens that are good at their time."""
        read_token = self._agent.read_token
        machine.files.complete = lambda content: read_token(content, machine.now)

    def _user_base(self) -> int:
        """Return the user of the node that root of the pod is; 0 where it is root."""
        if self._pod["spec"].get("hostUsers", True):
            return 0
        digest = blake2b(uid_of(self._pod).encode(), 2)
        return USERS_OF_NAMESPACE * (1 + int.from_bytes(digest, "big") % USER_NAMESPACES)

    def machine_beside(self, record: PodRecord, container: Container, now: datetime) -> Machine:
        """Return a machine in which the main process runs that is only known by name."""
        machine = self.new_machine(record, container, now)
        facts = facts_of(container["image"])
        processes = facts.processes_of(container) if facts is not None else ()
        for process in processes:
            owner, _, title = process.partition(" ")
            machine.add_resident(title, "" if machine.user else owner)
        if not processes:
            words = program_of(container, self.behaviour(container)).command
            image = image_repository(container["image"])[0]
            machine.add_resident(" ".join(words) or f"/{image.rpartition('/')[2]}")
        return machine

    def _variables(self, container: Container, record: PodRecord | None = None) -> dict[str, str]:
        """Return the variables that the kubelet gives to a container.

        :param record: the run that it tells of knows only the Services that were there at its
            start; None: those of now.
        """
        spec = self._pod["spec"]
        own = namespace_of(self._pod)
        services: list[Any] = []
        start = None if record is None else self._reported_start(record, container)
        run = None if record is None else record.containers.get(container["name"])
        if start is not None and run is not None and run.variables:
            return run.variables
        if spec.get("enableServiceLinks", True):
            for service in self._agent.view.list("services", own):
                if start is None or _was_there(service, start, self._pod):
                    services.append(service)
        master = self._agent.view.get("services", "default", "kubernetes")
        if master is not None and master not in services:
            services.append(master)
        variables = service_environment(services)
        try:
            return self._environment(container, variables)
        except ContainerConfigError:
            if start is None:
                raise
        # What a running container refers to may be gone: it does not see that.
        plain = [variable for variable in container.get("env") or () if "value" in variable]
        return self._environment({**container, "env": plain, "envFrom": []}, variables)

    def _environment(self, container: Container, services: Mapping[str, str]) -> dict[str, str]:
        return environment(
            self._pod,
            container,
            self._agent.find,
            services,
            self._node,
            file_reader(self._trees),
        )

    def _reported_start(self, record: PodRecord, container: Container) -> datetime | None:
        """Return when the run of a container began which the pod's status tells of; None where its
        present run begins only now."""
        name = container["name"]
        run = record.containers.get(name)
        started = run.started if run is not None else None
        for reported, start in running_containers(self._pod):
            is_this_run = started is not None and start == started.replace(microsecond=0)
            if reported["name"] == name and is_this_run:
                return start
        return None

    def _container_files(
        self, container: Container, variables: Mapping[str, str]
    ) -> ContainerFiles:
        mounting = with_account_mount(container, self._pod)
        return ContainerFiles(
            self._pod,
            mounting,
            self._node,
            self._trees,
            variables,
        )

    def _dns_address(self) -> str:
        service = self._agent.view.get("services", "kube-system", DNS_SERVICE)
        if service is None:
            return CLUSTER_DNS
        return str(service["spec"].get("clusterIP") or CLUSTER_DNS)

    def restore(self, record: PodRecord, container: Container) -> Machine | None:
        """Return the machine of a run that is under way; None for a program of which nothing is
        known.

        A program of which only the begin is known is run again from then on.
        """
        container_record = record.containers[container["name"]]
        self._load_trees(record, record.at)
        machine = self._saved_machine(record, container)
        if machine is not None or container_record.started is None:
            return machine
        machine = self.start(record, container, container_record.started).machine
        if machine is not None:
            machine.run(record.at)
        return machine

    def _saved_machine(self, record: PodRecord, container: Container) -> Machine | None:
        """Return a machine as it was kept; None where there is none, or something else."""
        saved = record.containers[container["name"]].machine
        if saved is None:
            return None
        try:
            files = self._container_files(container, saved["machine"]["env"]).again(
                Tree.from_json(saved["root"]), self._dns_address()
            )
            surroundings = self._surroundings(record)
            machine = Machine.from_json(saved["machine"], files, surroundings)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return None  # the program is run again from its begin
        self._complete_tokens(machine)
        return machine

    def keep(self, record: PodRecord, container: Container, machine: Machine) -> None:
        """Put a machine into the record of its container, and the volumes that have changed."""
        if machine.uses_network:
            record.uses_network = True
        record.containers[container["name"]].machine = {
            "machine": machine.to_json(),
            "root": machine.files.root.to_json(),
        }
        self._keep_volumes(record)

    def release(self, record: PodRecord, container: Container, machine: Machine) -> None:
        """Keep the volumes of a machine whose run has ended."""
        self._keep_volumes(record)

    # --- volumes

    def _load_trees(self, record: PodRecord, now: datetime) -> None:
        """Have the trees of the pod's volumes, which its containers share."""
        for volume in self._pod["spec"].get("volumes") or ():
            self._load_tree(record, volume, now)

    def _load_tree(self, record: PodRecord, volume: AnyObject, now: datetime) -> None:
        name = volume["name"]
        if name not in self._trees:
            self._trees[name] = self._tree(record, volume, now)
            self._versions[name] = self._trees[name].version

    def _tree(self, record: PodRecord, volume: AnyObject, now: datetime) -> Tree:
        saved = record.volumes.get(volume["name"])
        if saved is not None:
            return Tree.from_json(saved)
        try:
            tree = volume_tree(
                self._pod,
                volume,
                self._sources(),
                now,
            )
        except MountError:
            if not any(container.runs for container in record.containers.values()):
                raise
            tree = empty_tree(self._pod, volume, now)  # what it shows is gone since the start
        if tree is not None:
            return tree
        if self._agent.lasting.holds(volume):
            return self._agent.lasting.load(self._pod, volume, now)
        return empty_tree(self._pod, volume, now)

    def _sources(self) -> VolumeSources:
        return VolumeSources(self._agent.find, self._node)

    def refresh_volumes(self, record: PodRecord, now: datetime) -> bool:
        """Bring the files that show objects up to date. Return whether they have changed."""
        self._load_trees(record, now)
        is_changed = False
        for volume in self._pod["spec"].get("volumes") or ():
            if not is_projection(volume):
                continue
            try:
                changed = refresh(
                    self._trees[volume["name"]], self._pod, volume, self._sources(), now
                )
            except MountError:
                continue  # what it shows is gone: the files stay as they were, as at a kubelet
            is_changed = is_changed or changed
        self._keep_volumes(record)
        return is_changed

    def _keep_shown_objects(self, record: PodRecord, now: datetime) -> None:
        """Keep the volumes that show a ConfigMap or a Secret as they are now: they stay when it
        goes."""
        for volume in self._pod["spec"].get("volumes") or ():
            sources = [volume, *nested_list(volume, "projected", "sources")]
            if volume["name"].startswith(ACCOUNT_VOLUME):
                continue
            if any(source.get(field) for source in sources for field in ("configMap", "secret")):
                self._load_tree(record, volume, now)
                record.volumes[volume["name"]] = self._trees[volume["name"]].to_json()

    def _keep_volumes(self, record: PodRecord) -> None:
        for volume in self._pod["spec"].get("volumes") or ():
            name = volume["name"]
            tree = self._trees.get(name)
            if tree is None:
                continue
            is_new = name not in record.volumes
            is_changed = tree.version != self._versions[name]
            if self._agent.lasting.holds(volume):
                if is_changed and not self._is_rehearsal:
                    self._save(volume, tree)
            elif is_new or is_changed:
                record.volumes[name] = tree.to_json()
            self._versions[name] = tree.version

    def _save(self, volume: AnyObject, tree: Tree) -> None:
        """Keep a volume that outlives the pod; one that was taken away meanwhile is gone."""
        with suppress(MountError):
            self._agent.lasting.save(self._pod, volume, tree)

    def volume_usage(self, record: PodRecord, name: str, now: datetime) -> int:
        """Return the bytes that a volume takes on its disk."""
        self._load_trees(record, now)
        return self._trees[name].usage

    # --- logs

    def log(
        self, container: Container, run: int, output: list[tuple[datetime, str, bytes]]
    ) -> None:
        """Append to the log of a run."""
        if not self._is_rehearsal:
            self._agent.logs.append(
                uid_of(self._pod),
                container["name"],
                run,
                output,
            )

    def log_size(self, container: Container, run: int) -> int:
        """Return the bytes of the logs of a container that are kept."""
        size = 0
        for kept in range(max(1, run - KEPT_LOGS + 1), run + 1):
            for entry in self._agent.logs.read(uid_of(self._pod), container["name"], kept):
                size += len(entry.text.encode("utf-8", "surrogateescape"))
        return size

    def begin_log(self, container: Container, run: int) -> None:
        """Forget the log of the run before the last."""
        if not self._is_rehearsal and run > KEPT_LOGS:
            self._agent.logs.remove(uid_of(self._pod), container["name"], run - KEPT_LOGS)

    def last_lines(self, container: Container, run: int) -> str:
        """Return the end of a log."""
        entries = self._agent.logs.read(uid_of(self._pod), container["name"], run)
        return last_lines(entries)

    # --- network

    def http(self, record: PodRecord, request: NetworkRequest, now: datetime) -> HttpAnswer:
        """Send a request of the kubelet: to the pod itself, or to another address. Raises
        NetworkError."""
        url = urlsplit(request.url)
        host = url.hostname or ""
        port = url.port or (443 if url.scheme == "https" else 80)
        if host == self._address:
            pod = self._reported(record, now)
            return self._agent.network.http_to_pod(
                pod,
                port,
                request,
                now,
            )
        return self._agent.network.from_node(self._node).http(request, now)

    def connect(self, record: PodRecord, host: str, port: int, now: datetime) -> None:
        """Open a connection of the kubelet. Raises NetworkError."""
        if host == self._address:
            self._agent.network.connect_to_pod(self._reported(record, now), port, now)
        else:
            self._agent.network.from_node(self._node).connect(host, port, now)

    @property
    def _address(self) -> str:
        return (self._pod.get("status") or {}).get("podIP") or ""

    def _surroundings(self, record: PodRecord) -> Connections:
        """Return the network as the processes of the pod see it."""
        return self._agent.network.from_pod(self._pod, lambda: self._running_pod(record))

    def _running_pod(self, record: PodRecord) -> Pod:
        """Return the pod with all its containers that have been started by now: its processes reach
        those, whatever the status says so far."""
        statuses: list[dict[str, Any]] = []
        for name, container in record.containers.items():
            if container.is_running and container.started is not None:
                running = {"startedAt": format_time(container.started)}
                statuses.append({"name": name, "state": {"running": running}})
        status = {**(self._pod.get("status") or {}), "phase": "Running"}
        status["containerStatuses"] = statuses
        status.pop("initContainerStatuses", None)
        return cast("Pod", {**self._pod, "status": status})

    def _reported(self, record: PodRecord, now: datetime) -> Pod:
        """Return the pod with the status that it has at this moment."""
        host_ip = (self._pod.get("status") or {}).get("hostIP") or ""
        status = reported_status(
            self._pod,
            record,
            host_ip,
            self._address,
            now,
        )
        return {**self._pod, "status": status}

    def answers_change(
        self, container: Container, started: datetime, now: datetime
    ) -> datetime | None:
        """Return when a container answers something else by itself, None for never."""
        age = (now - started).total_seconds()
        changes = [schedule.next_change(age) for _, schedule in self.behaviour(container).http]
        seconds = min((each for each in changes if each is not None), default=None)
        if seconds is None:
            return None
        return started + timedelta(seconds=seconds)


def _refers_to_objects(container: Container) -> bool:
    """Tell whether variables of a container come from ConfigMaps or Secrets."""
    return bool(container.get("envFrom")) or any(
        variable.get("valueFrom") for variable in container.get("env") or ()
    )


def _was_there(service: Object, start: datetime, pod: Pod) -> bool:
    """Tell whether a Service was there when a container of a pod started. Of what happened in the
    same second the later change has the greater resourceVersion."""
    metadata = service["metadata"]
    created = parse_time(metadata["creationTimestamp"])
    if created != start:
        return created < start
    return int(metadata["resourceVersion"]) < int(pod["metadata"]["resourceVersion"])
