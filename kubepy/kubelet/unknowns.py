"""What is not known of a pod in a cluster that models containers: images and programs that do
nothing but run, volumes whose files lie elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from kubepy.api.meta import Object, annotations_of, uid_of
from kubepy.api.objects.outcomes import OUTCOME, UnknownOutcomeError
from kubepy.api.objects.usage import AnnotationError
from kubepy.kubelet import foreseen, inside
from kubepy.kubelet.behaviours import Behaviours, containers_of, finder, unknown_notes
from kubepy.kubelet.modelled.programs import program_of
from kubepy.kubelet.modelled.records import RECORD, load_record
from kubepy.quoting import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubepy.api.typed import Pod
    from kubepy.apiserver.client import Client
    from kubepy.kubelet.behaviours import Behaviour

STATUS_FIELDS = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


def notes_on_unknowns(client: Client, pod: Object) -> list[str]:
    """Return a line for each image, each program and each volume of a pod of which nothing is
    known, none in a cluster that does not model containers."""
    if not inside.runs_containers(client):
        return []

    find = finder(client)
    typed_pod = cast("Pod", pod)
    node: Any = None
    node_name = pod["spec"].get("nodeName")
    if node_name:
        node = find("nodes", "", node_name)
    try:
        behaviours = Behaviours.of_cluster(client, find).of_pod(typed_pod, node)
    except (AnnotationError, UnknownOutcomeError):  # the kubelet tells of it in an event
        return []
    programs = unknown_commands(typed_pod, behaviours)
    doubts = doubts_about(typed_pod, behaviours)
    for name, met in unknown_programs(client, pod).items():
        known_of = programs.get(name, [])
        programs[name] = list(dict.fromkeys([*known_of, *met]))
    return [*unknown_notes(typed_pod, behaviours, programs), *doubts, *unknown_volumes(typed_pod)]


def notes_on_silence(client: Client, pod: Object) -> list[str]:
    """Return a line for each container of a pod that has a command, probes or hooks, in a cluster
    that does not act on them; none in others."""
    if inside.runs_containers(client) or annotations_of(pod).get(OUTCOME):
        return []
    lines = []
    for container in containers_of(cast("Pod", pod)):
        subjects = foreseen.not_acted_on(container)
        if subjects:
            listed = " and ".join(subjects)
            lines.append(
                f"container {quote(container['name'])}: {listed} are not acted on in this cluster"
            )
    return lines


def has_run(pod: Object) -> bool:
    """Tell whether a container of a pod runs, or has run."""
    status = pod.get("status") or {}
    for field in STATUS_FIELDS:
        for container in status.get(field) or ():
            state = container.get("state") or {}
            if "running" in state or "terminated" in state or container.get("lastState"):
                return True
    return False


def unknown_commands(pod: Pod, behaviours: Mapping[str, Behaviour]) -> dict[str, list[str]]:
    """Return the programs that containers are to start and that are not known, by the names of the
    containers."""
    commands: dict[str, list[str]] = {}
    for container in containers_of(pod):
        behaviour = behaviours[container["name"]]
        unknown = program_of(container, behaviour).unknown
        is_given = bool(container.get("command") or container.get("args"))
        if unknown and is_given and foreseen.is_called(unknown, container):
            commands[container["name"]] = [unknown]
    return commands


def unknown_volumes(pod: Pod) -> list[str]:
    """Return a line for each volume of whose files nothing is known."""
    lines: list[str] = []
    for volume, type_ in foreseen.unknown_volumes(pod):
        name = quote(volume)
        lines.append(f"volume {name}: the files of {type_} are not known: it is empty")
    return lines


def doubts_about(pod: Pod, behaviours: Mapping[str, Behaviour]) -> list[str]:
    """Return a line for each image that may not exist."""
    lines = []
    for container in containers_of(pod):
        name = quote(container["name"])
        image = container.get("image") or ""
        if "pull" not in behaviours[container["name"]].sources and foreseen.is_doubtful(image):
            doubt = f"nothing tells whether the image {quote(image)} exists"
            lines.append(f"container {name}: {doubt}: it is pulled all the same")
    return lines


def unknown_programs(client: Client, pod: Object) -> dict[str, list[str]]:
    """Return the programs and constructs that the containers of a pod have met and that are not
    known, by the names of the containers."""
    record = load_record(client.value(f"{RECORD}{uid_of(pod)}"))
    if record is None:
        return {}
    programs: dict[str, list[str]] = {}
    for name, container in record.containers.items():
        met = [*container.unknowns]
        if container.machine is not None:
            met += container.machine["machine"]["unknowns"]
        programs[name] = met
    return programs
