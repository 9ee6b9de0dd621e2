"""The reasons for what the containers of a pod do: which annotation, rule, setting or well-known
image, and which part of the manifest (``kubepy why pod/NAME --behaviour``)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kubepy.api.meta import Object, name_of, namespace_of
from kubepy.api.objects.pods import containers_with_paths
from kubepy.api.values.goformat import to_json
from kubepy.apiserver.settings import MODELLED
from kubepy.kubelet.behaviours import Behaviour, Behaviours, finder, unknown_notes

if TYPE_CHECKING:
    from kubepy.api.typed import Container, Node, Pod
    from kubepy.apiserver.client import Client

# The parts of a container that say what it does, beside its command.
PARTS = ("env", "envFrom", "startupProbe", "livenessProbe", "readinessProbe", "lifecycle")
HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
# Fields that say of whom the others are, and not what the container does.
UNSHOWN = frozenset(("programs", "serves", "writes", "lacks", "user"))


class Said(NamedTuple):
    """One thing that a container does, in words, and what says so."""

    field: str
    value: str
    source: str


class ContainerAnswer(NamedTuple):
    """The behaviour of one container.

    :param is_known: whether anything is known of its image.
    """

    name: str
    image: str
    is_known: bool
    said: tuple[Said, ...]


class BehaviourAnswer(NamedTuple):
    """The behaviours of the containers of a pod.

    :param containers: how they live, ``modelled`` or ``simple``.
    :param notes: what is not known, a line each.
    """

    namespace: str
    name: str
    containers: str
    answers: tuple[ContainerAnswer, ...]
    notes: tuple[str, ...]

    @property
    def is_modelled(self) -> bool:
        return self.containers == MODELLED


def explain_behaviour(client: Client, pod: Object) -> BehaviourAnswer:
    """Say what the containers of a pod do, and what says so. Raises AnnotationError,
    UnknownOutcomeError for an annotation that cannot be read."""

    find = finder(client)
    typed_pod = cast("Pod", pod)
    known = Behaviours.of_cluster(client, find)
    node_name = pod["spec"].get("nodeName", "")
    node: Any = None
    if node_name:
        node = find("nodes", "", node_name)
    behaviours = known.of_pod(typed_pod, cast("Node | None", node))
    answers: list[ContainerAnswer] = []
    for container, path in containers_with_paths(typed_pod["spec"], "spec"):
        name = container["name"]
        image = container.get("image") or ""
        behaviour = behaviours[name]
        said = tuple(_said(path, cast("Container", container), behaviour))
        answers.append(ContainerAnswer(name, image, behaviour.is_known, said))
    notes = unknown_notes(typed_pod, behaviours)
    containers = client.settings.kubelet.containers
    return BehaviourAnswer(
        namespace_of(pod), name_of(pod), containers, tuple(answers), tuple(notes)
    )


def behaviour_document(answer: BehaviourAnswer) -> Object:
    """Return the answer as JSON data."""
    items: list[Object] = []
    for container in answer.answers:
        fields = [said._asdict() for said in container.said]
        items.append(
            {
                "container": container.name,
                "image": container.image,
                "isKnown": container.is_known,
                "fields": fields,
            }
        )
    return {
        "kind": "Behaviour",
        "object": {"resource": "pods", "namespace": answer.namespace, "name": answer.name},
        "containers": answer.containers,
        "items": items,
        "notes": list(answer.notes),
    }


def _said(path: str, container: Container, behaviour: Behaviour) -> Iterator[Said]:
    """Yield what a container does: what it runs, its other parts, and what is known beside."""
    yield from _program(path, container, behaviour)
    parts = cast("Mapping[str, Any]", container)
    for part in PARTS:
        value = parts.get(part)
        if value:
            yield Said(part, _in_words(part, value), f"{path}.{part}")
    for field, source in behaviour.sources.items():
        if field in UNSHOWN or field in ("entrypoint", "command"):
            continue
        yield Said(_json_name(field), _shown(getattr(behaviour, field)), source)


def _program(path: str, container: Container, behaviour: Behaviour) -> Iterator[Said]:
    """Yield what a container runs, and who says so."""
    command = container.get("command") or ()
    args = container.get("args") or ()
    if command:
        yield Said("command", shlex.join(command), f"{path}.command")
    elif behaviour.entrypoint:
        yield Said("command", shlex.join(behaviour.entrypoint), behaviour.sources["entrypoint"])
    if args:
        yield Said("args", shlex.join(args), f"{path}.args")
    elif not command and behaviour.command:
        yield Said("args", shlex.join(behaviour.command), behaviour.sources["command"])


def _in_words(part: str, value: Any) -> str:
    """Return a part of a manifest in a few words."""
    if part in ("env", "envFrom"):
        names = [entry.get("name") or next(iter(entry), "") for entry in value]
        return ", ".join(names)
    if part == "lifecycle":
        return ", ".join(f"{hook}: {_handler(value[hook])}" for hook in value)
    return _handler(value)


def _handler(value: Mapping[str, Any]) -> str:
    """Return what a probe or a hook does."""
    for kind in (*HANDLERS, "sleep"):
        handler = value.get(kind)
        if handler is not None:
            return f"{kind} {to_json(handler)}"
    return to_json(dict(value))


def _json_name(field: str) -> str:
    """Return the name of a field as rules have it."""
    first, *rest = field.split("_")
    return "".join((first, *(word.capitalize() for word in rest)))


def _shown(value: Any) -> str:
    """Return the value of a field in a few words."""
    if isinstance(value, Mapping):
        return ", ".join(value)
    if isinstance(value, Sequence) and not isinstance(value, str) and not hasattr(value, "_asdict"):
        return ", ".join(_entry(entry) for entry in value)
    return str(value)


def _entry(entry: Any) -> str:
    """Return one entry of a list: of a pair, what it is of."""
    if isinstance(entry, tuple):
        subject = entry[0]
        return str(getattr(subject, "text", subject))
    return str(entry)
