"""The pod and the container that a command looks into.

Upstream: ``kubectl/pkg/polymorphichelpers`` (``attachablepodforobject.go``, ``helpers.go``),
``kubectl/pkg/cmd/util/podcmd``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kubepy.api.clock import parse_optional_time, parse_time
from kubepy.api.meta import (
    Object,
    annotations_of,
    is_being_deleted,
    name_of,
    namespace_of,
    spec_of,
    status_of,
)
from kubepy.api.objects.pods import TERMINAL_PHASES, get_condition, is_pod_ready
from kubepy.api.selectors import from_label_selector, from_set
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import bool_flag, duration_flag, string_flag
from kubepy.cli.runtime.options import Options
from kubepy.kubelet import inside
from kubepy.quoting import quote

if TYPE_CHECKING:
    from kubepy.api.scheme import Resource

PODS = "pods"
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_NOTES = (("containers", ""), ("ephemeralContainers", " (ephem)"), ("initContainers", " (init)"))
_FIELDS = ("containers", "initContainers", "ephemeralContainers")
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class SessionOptions(Options):
    """The flags of commands that begin a session with a container: ``exec``, ``attach``."""

    container: str = string_flag(
        "container",
        "c",
        help="Container name. Without it, the annotation kubectl.kubernetes.io/default-container "
        "of the pod, or its first container.",
    )
    stdin: bool = bool_flag("stdin", "i", help="Pass stdin to the container.")
    tty: bool = bool_flag("tty", "t", help="Stdin is a TTY.")
    quiet: bool = bool_flag("quiet", "q", help="Only print output from the remote session.")
    pod_running_timeout: float = duration_flag(
        "pod-running-timeout",
        default=60.0,
        help="How long to wait until at least one pod is running.",
    )


def require_containers(factory: Factory, command: str) -> None:
    """Raise CliError in a cluster whose containers cannot be looked into."""
    factory.require_cluster()
    if not inside.runs_containers(factory.client):
        raise CliError(f"{quote(command)} is not supported: {inside.NO_CONTAINERS}")


# --- pods -----------------------------------------------------------------------------------------


def named_object(
    factory: Factory, options: Options, words: list[str], many: str
) -> tuple[Resource, Object]:
    """Return the object that POD, TYPE/NAME, or a file names, and its type. Raises CliError,
    Status.

    :param many: the error where there are several.
    """
    if len(words) == 1 and "/" not in words[0]:
        words = [PODS, words[0]]
    infos, problems = Builder(factory, options, args=words).do().infos()
    if problems:
        raise problems[0]
    if len(infos) != 1:
        raise CliError(many)
    info = infos[0]
    resource = info.resource
    name = info.name
    namespace = info.namespace or factory.namespace
    return resource, factory.client.get(resource.gvr, name, namespace=namespace)


def attachable_pod(
    factory: Factory, resource: Resource, obj: Object, timeout: float | None
) -> Object:
    """Return a pod, or the first of an object's pods, for which it waits. Raises CliError."""
    if resource.key == PODS:
        return obj
    selector = _selector_of(resource, obj)
    namespace = namespace_of(obj)
    pods: list[Object] = []

    def has_pods() -> bool:
        pods.clear()
        page = factory.client.list(PODS, namespace=namespace, label_selector=selector)
        for pod in page.items:
            if _is_active(pod):
                pods.append(pod)
        return bool(pods)

    if not has_pods():
        factory.driver.wait_until(has_pods, timeout)
    if not pods:
        raise CliError("timed out waiting for the condition")
    return max(pods, key=_activity)


def _is_active(pod: Object) -> bool:
    if is_being_deleted(pod):
        return False
    return status_of(pod).get("phase") not in TERMINAL_PHASES


def _selector_of(resource: Resource, obj: Object) -> str:
    """Return the selector of an object's pods (``SelectorsForObject``). Raises CliError."""
    kind = f"*{resource.version}.{resource.kind}"
    selector = spec_of(obj).get("selector")
    if resource.key in ("services", "replicationcontrollers"):
        if not selector:
            raise CliError(
                f"cannot attach to {kind}: invalid service '{name_of(obj)}': Service is defined "
                "without a selector"
            )
        return str(from_set(selector))
    if resource.group not in ("apps", "batch") or not selector:
        raise CliError(f"cannot attach to {kind}: selector for {kind} not implemented")
    return str(from_label_selector(selector))


def _activity(pod: Object) -> tuple[Any, ...]:
    """Return a key by which the pod that is best to look into is the largest (``ActivePods``)."""
    status = status_of(pod)
    earliest = datetime.min.replace(tzinfo=UTC)
    is_ready = is_pod_ready(pod)
    condition: Any = get_condition(pod, "Ready") or {}
    ready_since = None
    if is_ready:
        ready_since = condition.get("lastTransitionTime")
    restarts = []
    for entry in status.get("containerStatuses") or ():
        restarts.append(entry.get("restartCount", 0))
    created = parse_optional_time(pod["metadata"].get("creationTimestamp"))
    if created is None:
        created = earliest
    return (
        bool(pod["spec"].get("nodeName")),
        _PHASES.get(status.get("phase", ""), 0),
        is_ready,
        -(parse_time(ready_since) if ready_since else earliest).timestamp(),
        -max(restarts, default=0),
        -created.timestamp(),
    )


# --- containers -----------------------------------------------------------------------------------


def containers_of(pod: Object) -> Iterator[Object]:
    """Yield the containers of all kinds."""
    for field in _FIELDS:
        yield from pod["spec"].get(field) or ()


def find_container(pod: Object, name: str) -> Object | None:
    """Return the container of a name (``FindContainerByName``)."""
    for container in containers_of(pod):
        if container["name"] == name:
            return container
    return None


def all_container_names(pod: Object) -> str:
    """Write the names of all containers, with notes at those that are of another kind."""
    names = []
    for field, note in _NOTES:
        for container in pod["spec"].get(field) or ():
            names.append(f"{container['name']}{note}")
    return ", ".join(names)


def find_or_default_container(factory: Factory, pod: Object, name: str, quiet: bool) -> Object:
    """Return the named container, or the one that counts where none is named, and say so
    (``FindOrDefaultContainerByName``). Raises CliError."""
    containers: list[Object] = pod["spec"].get("containers") or []
    if not containers:
        raise CliError(f"pod {namespace_of(pod)}/{name_of(pod)} does not have any containers")
    name = name or annotations_of(pod).get(DEFAULT_CONTAINER, "")
    if name:
        container = find_container(pod, name)
        if container is None:
            raise CliError(
                f"container {name} is not valid for pod {name_of(pod)} out of: "
                f"{all_container_names(pod)}"
            )
        return container
    has_others = len(list(containers_of(pod))) > 1
    if has_others and not quiet:
        first = quote(containers[0]["name"])
        factory.say(f"Defaulted container {first} out of: {all_container_names(pod)}")
    return containers[0]
