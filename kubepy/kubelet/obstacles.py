"""The things that keep a kubelet from starting containers, whatever their outcome: names of images
that cannot be parsed, and, where ``references`` asks for it, ConfigMaps and Secrets that are
missing.

Upstream: ``pkg/kubelet/images/image_manager.go``, ``makeEnvironmentVariables`` in
``pkg/kubelet/kubelet_pods.go``, the reconciler of ``pkg/kubelet/volumemanager``. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import namespace_of
from kubepy.api.objects.images import image_name_problem
from kubepy.api.objects.pods import is_restartable_init_container
from kubepy.api.objects.references import Find, missing_references
from kubepy.kubelet.outcomes import CRASHED, PULL_FAILED, UNPULLED, StartObstacles, Waiting
from kubepy.quoting import quote

if TYPE_CHECKING:
    from kubepy.api.typed import Container, ContainerStatus, Pod

CREATING = "ContainerCreating"
INITIALIZING = "PodInitializing"
INVALID_IMAGE_NAME = "InvalidImageName"
CONFIG_ERROR = "CreateContainerConfigError"
ERR_IMAGE_PULL = PULL_FAILED.reason
IMAGE_PULL_BACKOFF = UNPULLED.reason
PULL_REASONS = (IMAGE_PULL_BACKOFF, ERR_IMAGE_PULL)
CRASH_LOOP = CRASHED.reason
NO_OBSTACLES = StartObstacles()


class KubeletEvent(NamedTuple):
    """A Warning event about a pod."""

    reason: str
    message: str


def obstacles_of(
    pod: Pod, find: Find | None, *, init_fails: bool, pull_fails: bool
) -> StartObstacles:
    """Return what keeps the containers of a pod from starting: of its init containers the first
    one, or else of all its containers.

    :param find: looks up ConfigMaps and Secrets; None where they need not be there.
    :param init_fails: the first init container that is no sidecar does not complete: no later one
        is reached.
    :param pull_fails: the images of the containers cannot be pulled, so that nothing else matters
        to them.
    """
    spec = pod["spec"]
    statuses = _statuses_by_name(pod)
    missing = [*missing_references(spec, namespace_of(pod), find)] if find is not None else []
    if not any(_has_started(status) for status in statuses.values()):
        of_volumes = (problem for problem in reversed(missing) if problem.reference.volume)
        mounts = {problem.reference.volume: problem.message for problem in of_volumes}
        if mounts:
            return StartObstacles(mounts=tuple(sorted(mounts.items())))

    config = {
        problem.reference.container: problem.message
        for problem in reversed(missing)
        if problem.reference.container
    }

    def obstacle(container: Container) -> Waiting | None:
        waiting = invalid_image(container["image"])
        if waiting is not None:
            return waiting
        name = container["name"]
        message = config.get(name)
        if not message or _has_started(statuses.get(name)):
            return None
        return Waiting(CONFIG_ERROR, message)

    for container in spec.get("initContainers") or ():
        has_started = _has_started(statuses.get(container["name"]))
        if not has_started and (waiting := obstacle(container)):
            return StartObstacles(containers=((container["name"], waiting),))
        if init_fails and not is_restartable_init_container(container):
            return NO_OBSTACLES

    held = ((container["name"], obstacle(container)) for container in spec["containers"])
    return StartObstacles(
        containers=tuple(
            (name, waiting)
            for name, waiting in held
            if waiting is not None and not (pull_fails and waiting.reason == CONFIG_ERROR)
        )
    )


def invalid_image(image: str) -> Waiting | None:
    """Return the state of a container whose image has a name that cannot be parsed; None where it
    can."""
    problem = image_name_problem(image)
    if not problem:
        return None
    return Waiting(
        INVALID_IMAGE_NAME, f"Failed to apply default image tag {quote(image)}: {problem}"
    )


def lacks_configuration(pod: Pod) -> bool:
    """Tell whether the status of a pod says that a container has its image and lacks its
    configuration."""
    status = pod.get("status") or {}
    for container_status in status.get("containerStatuses") or ():
        if _waiting_reason(container_status) == CONFIG_ERROR and is_held(pod, container_status):
            return True
    return False


def shows_failed_pull(pod: Pod) -> bool:
    """Tell whether the status of a pod says that an image cannot be pulled."""
    return any(
        _waiting_reason(status) in PULL_REASONS for status in _statuses_by_name(pod).values()
    )


def reported_obstacles(pod: Pod) -> StartObstacles | None:
    """Return the obstacles that the status of a pod shows, without the volumes' messages; None
    where there is none."""
    statuses = _statuses_by_name(pod)
    if not any(map(_waiting_reason, statuses.values())):
        return None  # as of most pods
    held = {
        name: Waiting(
            _waiting_reason(status), (status["state"].get("waiting") or {}).get("message", "")
        )
        for name, status in statuses.items()
        if is_held(pod, status)
    }
    roots = tuple((name, waiting) for name, waiting in held.items() if waiting.message)
    if roots:
        return StartObstacles(containers=roots)
    if held and len(held) == len(statuses):
        return StartObstacles(mounts=(("", ""),))
    return None


def is_held(pod: Pod, status: ContainerStatus) -> bool:
    """Tell whether a container waits for something other than its outcome. A status that somebody
    has set by hand, without the message of a kubelet, is none of these."""
    match _waiting_reason(status):
        case "InvalidImageName" | "CreateContainerConfigError":
            return bool((status["state"].get("waiting") or {}).get("message"))
        case "ContainerCreating":
            if not pod["status"].get("podIP"):
                return True
            return bool(pod["spec"].get("hostNetwork"))
        case reason:
            return reason == INITIALIZING


def are_reported(obstacles: StartObstacles, pod: Pod) -> bool:
    """Tell whether the status of a pod shows these obstacles and no others."""
    reported = reported_obstacles(pod) or NO_OBSTACLES
    if bool(obstacles.mounts) != bool(reported.mounts):
        return False
    return obstacles.containers == reported.containers


def events_of(obstacles: StartObstacles) -> Iterator[KubeletEvent]:
    """Yield the events with which a kubelet says what keeps containers from starting."""
    for volume, message in obstacles.mounts:
        yield KubeletEvent(
            "FailedMount", f"MountVolume.SetUp failed for volume {quote(volume)} : {message}"
        )
    for _, waiting in obstacles.containers:
        if waiting.reason == INVALID_IMAGE_NAME:
            yield KubeletEvent("InspectFailed", waiting.message)
            yield KubeletEvent("Failed", f"Error: {waiting.reason}")
        else:
            yield KubeletEvent("Failed", f"Error: {waiting.message}")


def _statuses_by_name(pod: Pod) -> dict[str, ContainerStatus]:
    status = pod.get("status") or {}
    return {
        entry["name"]: entry
        for entry in (
            *(status.get("initContainerStatuses") or ()),
            *(status.get("containerStatuses") or ()),
        )
    }


def _waiting_reason(status: ContainerStatus) -> str:
    state = status.get("state") or {}
    waiting = state.get("waiting") or {}
    return waiting.get("reason", "")


def _has_started(status: ContainerStatus | None) -> bool:
    """Tell whether a container has ever been started."""
    if status is None:
        return False
    state = status.get("state") or {}
    if "running" in state:
        return True
    if "terminated" in state:
        return True
    if status.get("restartCount", 0) > 0:
        return True
    return bool((status.get("lastState") or {}).get("terminated"))
