"""What a kubelet reports about containers that a runtime has made, beside their states: identities,
images, resources, mounts, and that their pod's sandbox is there.

Everything is a function of the pod and the state of its containers. It is added to statuses that
are made without it (``kubepy.kubelet.statuses``, ``kubepy.kubelet.modelled.statuses``) where
containers are modelled. Upstream: ``convertToAPIContainerStatuses`` in
``pkg/kubelet/kubelet_pods.go``, ``pkg/kubelet/status/generate.go``; containerd for what it answers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.clock import format_time
from kubepy.api.meta import uid_of
from kubepy.api.objects.images import image_repository, normalized_image
from kubepy.api.objects.pods import (
    RESIZE_PENDING,
    TERMINAL_PHASES,
    allocated_resources,
    get_condition,
)
from kubepy.lazy import blake2b, lazy_imports

with lazy_imports():
    from kubepy.kubelet import environment

if TYPE_CHECKING:
    from kubepy.api.typed import (
        Container,
        ContainerState,
        ContainerStatus,
        ContainerUser,
        Pod,
        PodCondition,
        PodStatus,
        ResourceRequirements,
        VolumeMountStatus,
    )

READY_TO_START = "PodReadyToStartContainers"
RESIZE_IN_PROGRESS = "PodResizeInProgress"
RESIZES = (RESIZE_PENDING, RESIZE_IN_PROGRESS)
FIRST_CONDITIONS = (*RESIZES, READY_TO_START)
STATUS_FIELDS = (
    ("initContainers", "initContainerStatuses"),
    ("containers", "containerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
)
ROOT: ContainerUser = {"linux": {"gid": 0, "supplementalGroups": [0], "uid": 0}}
NEVER: Any = None  # a time of the API that is null


def container_id(pod_uid: str, container: str, run: int) -> str:
    """Return the identity of a run of a container; its first run has the number 0."""
    digest = blake2b(f"{pod_uid}/{container}/{run}".encode(), 32)
    return f"containerd://{digest.hex()}"


@lru_cache(maxsize=1024)
def reported_image(image: str) -> str:
    """Return the name of an image as containerd reports it: with registry, group and tag, or with
    its digest alone."""
    repository, _ = image_repository(image)
    _, at, digest = image.partition("@")
    if at:
        return f"{repository}@{digest}"
    return normalized_image(image)


@lru_cache(maxsize=1024)
def image_id(image: str) -> str:
    """Return the digest by which an image is known: the one that its name has, or one that follows
    from its name."""
    name = reported_image(image)
    if "@" in name:
        return name
    repository, _ = image_repository(image)
    return f"{repository}@sha256:{blake2b(name.encode(), 32).hex()}"


def reported_mounts(container: Container) -> list[VolumeMountStatus]:
    """Return the mounts of a container as its status lists them."""
    mounts: list[VolumeMountStatus] = []
    for mount in container.get("volumeMounts") or ():
        entry: VolumeMountStatus = {"mountPath": mount["mountPath"], "name": mount["name"]}
        if mount.get("readOnly"):
            is_recursive = mount.get("recursiveReadOnly", "Disabled") != "Disabled"
            entry["readOnly"] = True
            entry["recursiveReadOnly"] = "Enabled" if is_recursive else "Disabled"
        mounts.append(entry)
    return mounts


def container_user(pod: Pod, container: Container) -> ContainerUser:
    """Return the user and the groups of a container's first process; an image's own are not
    known: root's."""
    if not pod["spec"].get("securityContext") and not container.get("securityContext"):
        return ROOT
    return {
        "linux": {
            "gid": environment.group_of(pod, container),
            "supplementalGroups": environment.groups_of(pod, container),
            "uid": environment.user_of(pod, container),
        }
    }


def with_runtime_fields(
    pod: Pod,
    status: PodStatus,
    now: datetime,
    *,
    mounts_fail: bool = False,
    resizing: Collection[str] = (),
) -> PodStatus:
    """Return a pod's status with what a runtime tells about its containers, and with the condition
    of its sandbox.

    :param status: the status that is to be reported; containers whose resize is pending keep the
        resources that the pod's present status says.
    :param mounts_fail: a volume cannot be mounted, so that there is no sandbox yet.
    :param resizing: the containers that have been given other resources and still run with the
        ones that they had.
    """
    reported = cast("dict[str, Any]", {**status})
    spec = cast("Mapping[str, list[Container]]", pod["spec"])
    old = cast("Mapping[str, list[ContainerStatus]]", pod.get("status") or {})
    allocated = allocated_resources(pod) if _is_resize_pending(status) else {}
    actual = {}
    if resizing:
        present = allocated_resources(pod)
        actual = {name: present[name] for name in resizing if name in present}
    for spec_field, status_field in STATUS_FIELDS:
        if not reported.get(status_field):
            continue
        containers = {container["name"]: container for container in spec.get(spec_field) or ()}
        known = {entry["name"]: entry for entry in old.get(status_field) or ()}
        reported[status_field] = [
            _with_runtime_fields(
                pod,
                containers[entry["name"]],
                entry,
                allocated,
                actual,
                known.get(entry["name"]),
            )
            if entry["name"] in containers
            else entry
            for entry in reported[status_field]
        ]

    has_sandbox = bool(status.get("podIP")) and not mounts_fail
    is_over = status.get("phase") in TERMINAL_PHASES
    sandbox = _sandbox_condition(pod, has_sandbox and not is_over, now)
    conditions = status.get("conditions") or []
    if is_over:
        conditions = [condition for condition in conditions if condition["type"] not in RESIZES]
    reported["conditions"] = _in_order(conditions, sandbox)
    return cast("PodStatus", reported)


def _with_runtime_fields(
    pod: Pod,
    container: Container,
    entry: ContainerStatus,
    allocated: Mapping[str, Any],
    actual: Mapping[str, Any],
    before: ContainerStatus | None,
) -> ContainerStatus:
    name = container["name"]
    reported: ContainerStatus = {**entry}
    mounts = reported_mounts(container)
    if mounts:
        reported["volumeMounts"] = mounts
    state = entry["state"]
    last = entry.get("lastState") or {}
    is_waiting = "waiting" in state
    if is_waiting and not last:
        return reported

    image = entry["image"]
    run = entry.get("restartCount", 0)
    identity = _identity(pod, name, run, before)
    reported["image"] = reported_image(image)
    reported["imageID"] = image_id(image)
    if before is not None and _is_same_image(before, image, run):
        reported["image"] = before["image"]
        reported["imageID"] = before["imageID"]
    reported["containerID"] = identity
    reported["state"] = _identified(state, identity)
    if last:
        last_run = run if is_waiting else max(0, run - 1)
        last_identity = _known_end(last, before) or _identity(pod, name, last_run, before)
        reported["lastState"] = _identified(last, last_identity)
    reported["user"] = container_user(pod, container)
    resources: ResourceRequirements | None = allocated.get(name)
    if resources is None:
        resources = container.get("resources") or {}
    reported["resources"] = actual.get(name, resources)
    reported.pop("allocatedResources", None)
    if resources.get("requests"):
        reported["allocatedResources"] = resources["requests"]
    return reported


def _identity(pod: Pod, name: str, run: int, before: ContainerStatus | None) -> str:
    """Return the identity of a run of a container: the one that was reported of it already, as one
    whose cluster was imported has it, or a new one."""
    if before is not None and before.get("restartCount", 0) == run:
        known = before.get("containerID")
        if known:
            return known
    return container_id(uid_of(pod), name, run)


def _known_end(last: ContainerState, before: ContainerStatus | None) -> str:
    """Return the identity that was reported of a run which has ended, "" where none was."""
    ended = last.get("terminated")
    if ended is None or before is None:
        return ""
    reported = (before.get("lastState") or {}).get("terminated")
    if reported is None or reported.get("finishedAt") != ended.get("finishedAt"):
        return ""
    return reported.get("containerID", "")


def _is_same_image(before: ContainerStatus, image: str, run: int) -> bool:
    """Tell whether a container runs the image of which the runtime has reported name and digest
    before."""
    if not before.get("imageID"):
        return False
    if before.get("restartCount", 0) == run and before.get("containerID"):
        return True
    return before.get("image") in (image, reported_image(image))


def _identified(state: ContainerState, identity: str) -> ContainerState:
    """Return a state that names the run that has ended, where it is the state of an end."""
    terminated = state.get("terminated")
    if terminated is None or terminated.get("containerID"):
        return state
    return {"terminated": {**terminated, "containerID": identity}}


def _is_resize_pending(status: PodStatus) -> bool:
    types = {condition["type"] for condition in status.get("conditions") or ()}
    return RESIZE_PENDING in types


def _sandbox_condition(pod: Pod, has_sandbox: bool, now: datetime) -> PodCondition:
    """Return the condition PodReadyToStartContainers."""
    value = "True" if has_sandbox else "False"
    before = get_condition(pod, READY_TO_START)
    since = format_time(now)
    if before is not None and before["status"] == value:
        since = before["lastTransitionTime"]
    condition: PodCondition = {
        "lastProbeTime": NEVER,
        "lastTransitionTime": since,
        "status": value,
        "type": READY_TO_START,
    }
    generation = pod["metadata"].get("generation")
    if generation:
        condition["observedGeneration"] = generation
    return condition


def _in_order(conditions: Sequence[PodCondition], sandbox: PodCondition) -> list[PodCondition]:
    """Return conditions with that of the sandbox, which only those of a resize precede."""
    resizes = [condition for condition in conditions if condition["type"] in RESIZES]
    others = [condition for condition in conditions if condition["type"] not in FIRST_CONDITIONS]
    return [*resizes, sandbox, *others]
