"""What is not known of a pod in a cluster that models containers: images and programs that do
nothing but run, volumes whose files lie elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from kubepy.api.errors import NotFound
from kubepy.api.meta import AnyObject, Object, nested_map, uid_of
from kubepy.api.objects.outcomes import UnknownOutcomeError
from kubepy.api.objects.usage import AnnotationError
from kubepy.kubelet import inside
from kubepy.kubelet.behaviours import Behaviours, containers_of, unknown_notes
from kubepy.kubelet.images import files_of
from kubepy.kubelet.modelled.programs import program_of
from kubepy.kubelet.modelled.records import RECORD, load_record
from kubepy.quoting import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubepy.api.typed import Pod
    from kubepy.apiserver.client import Client
    from kubepy.kubelet.behaviours import Behaviour

# The types of volumes whose files the cluster knows: it fills them, or they begin empty.
KNOWN_VOLUMES = frozenset(
    {
        "configMap",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "hostPath",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)


def notes_on_unknowns(client: Client, pod: Object) -> list[str]:
    """Return a line for each image, each program and each volume of a pod of which nothing is
    known, none in a cluster that does not model containers."""
    if not inside.runs_containers(client):
        return []

    def find(resource: str, namespace: str, name: str) -> Object | None:
        try:
            return client.get(resource, name, namespace=namespace)
        except NotFound:
            return None

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
    for name, met in unknown_programs(client, pod).items():
        known_of = programs.get(name, [])
        programs[name] = list(dict.fromkeys([*known_of, *met]))
    return [*unknown_notes(typed_pod, behaviours, programs), *unknown_volumes(typed_pod)]


def unknown_commands(pod: Pod, behaviours: Mapping[str, Behaviour]) -> dict[str, list[str]]:
    """Return the programs that containers are to start and that are not known, by the names of the
    containers."""
    commands: dict[str, list[str]] = {}
    for container in containers_of(pod):
        if container.get("command"):
            unknown = program_of(container, behaviours[container["name"]]).unknown
            if unknown:
                commands[container["name"]] = [unknown]
    return commands


def unknown_volumes(pod: Pod) -> list[str]:
    """Return a line for each volume of whose files nothing is known."""
    lines: list[str] = []
    for volume in pod["spec"].get("volumes") or ():
        sources = [source for source in volume if source != "name"]
        if sources and sources[0] not in KNOWN_VOLUMES and not is_known_image_volume(volume):
            name = quote(volume["name"])
            lines.append(f"volume {name}: the files of {sources[0]} are not known: it is empty")
    return lines


def is_known_image_volume(volume: AnyObject) -> bool:
    """Tell whether a volume is an image of which files are known."""
    image = nested_map(volume, "image").get("reference") or ""
    return bool(image) and bool(files_of(image))


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
