"""The resize of running pods: whether their node has room for it, and what is reported then.

What a container has been given stands in ``containerStatuses[].resources``: a resize is under way
where the spec says something else. Pure functions. Upstream: ``pkg/kubelet/allocation``,
``pkg/kubelet/events/resize.go``; a pod that asks for more than its node has is Infeasible, as the
documentation says (v1.36.2 calls it Deferred).

``resized_status`` restarts the containers of pods that just run. For those of ``modelled`` the
worker does (``PodWorker.restart``): as long as one of them stops, the resize is under way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kubepy.api.clock import format_time
from kubepy.api.objects.pods import (
    RESIZE_PENDING,
    allocated_resources,
    allocated_spec,
    get_condition,
    is_restartable_init_container,
)
from kubepy.apiserver.validation.fields import semantically_equal
from kubepy.kubelet.reporting import RESIZE_IN_PROGRESS
from kubepy.scheduler.cache import NodeInfo, pod_info
from kubepy.scheduler.plugins.resources import insufficient_resources

if TYPE_CHECKING:
    from kubepy.api.typed import Container, Node, Pod, PodCondition, PodStatus

INFEASIBLE = "Infeasible"
DEFERRED = "Deferred"
NORMAL, WARNING = "Normal", "Warning"
RESTART = "RestartContainer"
TERMINATED = 143  # the exit code of a program that ends on SIGTERM


class ResizeEvent(NamedTuple):
    """An event about a resize.

    :ivar field_path: the container that it is about; "": the pod.
    """

    type: str
    reason: str
    message: str
    field_path: str = ""


class PendingResize(NamedTuple):
    """The reason why a resize is not carried out.

    :ivar reason: that of the condition.
    :ivar event_reason: what the event's message says.
    """

    reason: str
    event_reason: str
    message: str


class Resize(NamedTuple):
    """A resize that is under way.

    :ivar pending: None: it is carried out.
    :ivar restarts: the names of the containers that are restarted for it.
    :ivar stopping: those of them that still run with the resources that they had.
    """

    pending: PendingResize | None
    restarts: tuple[str, ...] = ()
    stopping: tuple[str, ...] = ()


def is_deferred(pod: Pod) -> bool:
    """Tell whether a resize of the pod waits for room."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == RESIZE_PENDING:
            return condition.get("reason") == DEFERRED
    return False


def resize_of(pod: Pod, node: Node, others: Iterable[Pod]) -> Resize | None:
    """Return the resize that the spec of a pod asks for, None where containers have what it says.

    :param others: the other pods of the node that have not ended.
    """
    changed = [container for container in _resizable(pod) if _changes(pod, container)]
    if not changed:
        return None
    pending = _missing_room(pod, node, others)
    if pending is not None:
        return Resize(pending)
    restarts = tuple(container["name"] for container in changed if _must_restart(pod, container))
    return Resize(None, restarts)


def _resizable(pod: Pod) -> list[Container]:
    """Return the containers that can be resized (``IsResizableContainer``)."""
    spec = pod["spec"]
    sidecars = [
        container
        for container in spec.get("initContainers") or ()
        if is_restartable_init_container(container)
    ]
    return [*sidecars, *spec["containers"]]


def _changes(pod: Pod, container: Container) -> bool:
    """Tell whether a container has other resources than its spec says."""
    present = allocated_resources(pod).get(container["name"])
    if present is None:
        return False
    return not semantically_equal(present, container.get("resources") or {})


def _must_restart(pod: Pod, container: Container) -> bool:
    """Tell whether a container is restarted for the change of its resources."""
    present: Mapping[str, Any] = allocated_resources(pod).get(container["name"]) or {}
    wanted: Mapping[str, Any] = container.get("resources") or {}
    for policy in container.get("resizePolicy") or ():
        if policy["restartPolicy"] != RESTART:
            continue
        name = policy["resourceName"]
        for kind in ("requests", "limits"):
            before = (present.get(kind) or {}).get(name)
            after = (wanted.get(kind) or {}).get(name)
            if not semantically_equal(before, after):
                return True
    return False


def _missing_room(pod: Pod, node: Node, others: Iterable[Pod]) -> PendingResize | None:
    """Return why a node has no room for what a pod asks for, None where it has."""
    node_info = NodeInfo(node["metadata"]["name"])
    node_info.set_node(node)
    asking: Pod = {**pod, "status": {}}  # what it has been given so far does not count
    requests = pod_info(asking).requests
    for name in ("cpu", "memory"):
        capacity = node_info.allocatable.get(name, 0)
        requested = requests.get(name, 0)
        if requested > capacity:
            message = (
                f"Node didn't have enough capacity: {name}, requested: {requested}, "
                f"capacity: {capacity}"
            )
            return PendingResize(INFEASIBLE, INFEASIBLE, message)

    for other in others:
        node_info.add(pod_info(_as_allocated(other)))
    for short in insufficient_resources(requests, node_info):
        message = (
            f"Node didn't have enough resource: {short.resource}, requested: {short.requested}, "
            f"used: {short.used}, capacity: {short.capacity}"
        )
        return PendingResize(DEFERRED, f"OutOf{short.resource}", message)
    return None


def _as_allocated(pod: Pod) -> Pod:
    """Return a pod with the resources that its containers have, where a resize is pending."""
    if get_condition(pod, RESIZE_PENDING) is None:
        return pod
    return cast("Pod", {**pod, "spec": allocated_spec(pod)})


def resize_events(pod: Pod, resize: Resize, *, restarts: bool) -> list[ResizeEvent]:
    """Return the events about a resize that are not told yet. One that is carried out is complete
    at once, or when the containers have stopped that it restarts.

    :param restarts: tell also of the containers that are restarted; False: somebody else does.
    """
    generation = pod["metadata"].get("generation", 0)
    pending = resize.pending
    if pending is None:
        summary = _summary(pod, generation)
        stopped: list[ResizeEvent] = []
        for name in resize.restarts if restarts else ():
            message = f"Container {name} resize requires restart"
            stopped.append(ResizeEvent(NORMAL, "Killing", message, f"spec.containers{{{name}}}"))
        events = stopped
        if not _is_in_progress(pod):
            started = ResizeEvent(NORMAL, "ResizeStarted", f"Pod resize started: {summary}")
            events = [started, *stopped]
        if not resize.stopping:
            message = f"Pod resize completed: {summary}"
            events.append(ResizeEvent(NORMAL, "ResizeCompleted", message))
        return events
    before = get_condition(pod, RESIZE_PENDING) or {}
    if (before.get("reason"), before.get("observedGeneration")) == (pending.reason, generation):
        return []
    summary = _summary(pod, generation, pending.message)
    message = f"Pod resize {pending.event_reason}: {summary}"
    return [ResizeEvent(WARNING, f"Resize{pending.reason}", message)]


def _is_in_progress(pod: Pod) -> bool:
    """Tell whether the resize to the present generation is reported to be under way."""
    condition = get_condition(pod, RESIZE_IN_PROGRESS) or {}
    return condition.get("observedGeneration") == pod["metadata"].get("generation")


def _summary(pod: Pod, generation: int, error: str = "") -> str:
    """Return the resources of a pod's containers as JSON (``makeResourceSummaryFromSpec``)."""
    summary: dict[str, Any] = {}
    spec = cast("Mapping[str, list[Container]]", pod["spec"])
    for field in ("initContainers", "containers"):
        entries = [
            {"name": container["name"], "resources": _ordered(container.get("resources") or {})}
            for container in spec.get(field) or ()
        ]
        if entries:
            summary[field] = entries
    summary["generation"] = generation
    if error:
        summary["error"] = error
    return json.dumps(summary, separators=(",", ":"), ensure_ascii=False)


def _ordered(resources: Mapping[str, Any]) -> dict[str, Any]:
    """Return resources in the order in which Go prints them."""
    ordered: dict[str, Any] = {}
    for kind in ("limits", "requests"):
        if resources.get(kind):
            ordered[kind] = dict(sorted(resources[kind].items()))
    if resources.get("claims"):
        ordered["claims"] = resources["claims"]
    return ordered


def resized_status(
    pod: Pod, status: PodStatus, resize: Resize | None, now: datetime, *, restarts: bool
) -> PodStatus:
    """Return a status with the condition of a resize that is pending or under way, and without one
    that is not.

    :param restarts: restart the containers that must be; False: somebody else does.
    """
    resized: PodStatus = {**status}
    others = [
        condition
        for condition in status.get("conditions") or ()
        if condition["type"] not in (RESIZE_PENDING, RESIZE_IN_PROGRESS)
    ]
    resized["conditions"] = others
    if resize is None:
        return resized
    if resize.pending is not None:
        resized["conditions"] = [_condition_pending(pod, resize.pending, now), *others]
    elif resize.stopping:
        resized["conditions"] = [_condition_in_progress(pod, now), *others]
    elif restarts:
        for field in ("containerStatuses", "initContainerStatuses"):
            entries = cast("dict[str, Any]", resized).get(field)
            if entries:
                cast("dict[str, Any]", resized)[field] = [
                    _restarted(entry, now) if entry["name"] in resize.restarts else entry
                    for entry in entries
                ]
    return resized


def _condition_pending(pod: Pod, pending: PendingResize, now: datetime) -> PodCondition:
    """Return the condition PodResizePending."""
    before = get_condition(pod, RESIZE_PENDING) or {}
    since = before.get("lastTransitionTime") if before.get("reason") == pending.reason else None
    condition = _condition(RESIZE_PENDING, pod, since, now)
    condition["message"] = pending.message
    condition["reason"] = pending.reason
    return condition


def _condition_in_progress(pod: Pod, now: datetime) -> PodCondition:
    """Return the condition PodResizeInProgress."""
    before = get_condition(pod, RESIZE_IN_PROGRESS) or {}
    since = before.get("lastTransitionTime")
    return _condition(RESIZE_IN_PROGRESS, pod, since, now)


def _condition(kind: str, pod: Pod, since: str | None, now: datetime) -> PodCondition:
    """Return a condition of a resize that holds since a time, None: from now on."""
    time = format_time(now)
    condition: PodCondition = {
        "lastProbeTime": time,
        "lastTransitionTime": since or time,
        "status": "True",
        "type": kind,
    }
    generation = pod["metadata"].get("generation")
    if generation:
        condition["observedGeneration"] = generation
    return condition


def _restarted(entry: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the status of a running container that has been stopped and started again."""
    running = (entry.get("state") or {}).get("running")
    if running is None:
        return dict(entry)
    time = format_time(now)
    terminated = {
        "exitCode": TERMINATED,
        "finishedAt": time,
        "reason": "Error",
        "startedAt": running["startedAt"],
    }
    return {
        **entry,
        "lastState": {"terminated": terminated},
        "restartCount": entry["restartCount"] + 1,
        "state": {"running": {"startedAt": time}},
    }
