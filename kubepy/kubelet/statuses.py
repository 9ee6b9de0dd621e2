"""The status that a kubelet reports for a pod (``pkg/kubelet/status/generate.go``). Pure
functions."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.clock import format_time
from kubepy.api.meta import name_of, namespace_of, uid_of
from kubepy.api.objects.pods import TERMINAL_PHASES, is_restartable_init_container
from kubepy.kubelet.lifetimes import first_init_container
from kubepy.kubelet.obstacles import CREATING, INITIALIZING, NO_OBSTACLES, invalid_image
from kubepy.kubelet.outcomes import COMPLETED, KILLED, RUNNING, PodOutcome, StartObstacles, Waiting

if TYPE_CHECKING:
    from kubepy.api.typed import (
        Container,
        ContainerState,
        ContainerStatus,
        Pod,
        PodCondition,
        PodSpec,
        PodStatus,
        ResourceRequirements,
    )

OWN_CONDITIONS = ("Initialized", "Ready", "ContainersReady")
NEVER: Any = None  # a time of the API that is null
DEADLINE_REASON = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


class ConditionValues(NamedTuple):
    """The fields of a condition that a kubelet decides on."""

    status: str
    reason: str = ""
    message: str = ""


def pod_status(
    pod: Pod,
    outcome: PodOutcome,
    host_ip: str,
    pod_ip: str,
    now: datetime,
    obstacles: StartObstacles = NO_OBSTACLES,
) -> PodStatus:
    """Return the status that a kubelet reports for a pod with this outcome; qosClass and others'
    conditions stay.

    :param pod_ip: "" for a pod that has no address yet.
    :param obstacles: what keeps some of its containers from starting.
    """
    old = pod.get("status") or {}
    time = format_time(now)
    spec = pod["spec"]
    status: PodStatus = {**old}
    status.pop("reason", None)
    status.pop("message", None)
    held = _held_containers(pod, outcome, obstacles)
    status["containerStatuses"] = containers = [
        _held_status(pod, container, held[container["name"]], time)
        if container["name"] in held
        else container_status(pod, container, outcome, time)
        for container in spec["containers"]
    ]
    init_containers: list[ContainerStatus] = []
    if spec.get("initContainers"):
        status["initContainerStatuses"] = init_containers = [
            _held_status(pod, container, held[container["name"]], time)
            if container["name"] in held
            else _init_container_status(pod, container, outcome, time)
            for container in spec["initContainers"]
        ]

    if spec.get("ephemeralContainers"):
        status["ephemeralContainerStatuses"] = _ephemeral_container_statuses(pod, outcome, time)
    is_pending = any(not entry["lastState"] for entry in containers if entry["name"] in held)
    phase = "Pending" if is_pending and outcome.phase != "Failed" else outcome.phase
    status["conditions"] = pod_conditions(
        pod, ReportedContainers(phase, init_containers, containers), time
    )
    if pod_ip:
        status |= {"podIP": pod_ip, "podIPs": [{"ip": pod_ip}]}
    return acknowledged(
        pod,
        {
            **status,
            "hostIP": host_ip,
            "hostIPs": [{"ip": host_ip}],
            "phase": phase,
            "startTime": old.get("startTime") or time,
        },
    )


def _held_containers(
    pod: Pod, outcome: PodOutcome, obstacles: StartObstacles
) -> dict[str, Waiting]:
    """Return the containers that are not started whatever the pod's outcome, and why: also those
    that come after an init container which does not complete."""
    init_containers = pod["spec"].get("initContainers") or []
    containers = pod["spec"]["containers"]
    if obstacles.mounts:
        waiting = Waiting(INITIALIZING if init_containers else CREATING)
        return {container["name"]: waiting for container in (*init_containers, *containers)}
    held = dict(obstacles.containers)
    if outcome.init is not None and outcome.init.phase != "Succeeded":
        failing = first_init_container(pod)
    else:
        failing = ""

    names = [container["name"] for container in init_containers]
    stop = next((name for name in names if name in held or name == failing), "")
    if stop:
        later_names = (
            *names[names.index(stop) + 1 :],
            *(container["name"] for container in containers),
        )
        held |= dict.fromkeys(later_names, Waiting(INITIALIZING))

    return held


def _held_status(pod: Pod, container: Container, waiting: Waiting, time: str) -> ContainerStatus:
    """Return the status of a container that waits to be started; if it ran so far, it has been
    killed."""
    before = _status_before(pod, container["name"])
    state = before.get("state") or {}
    last_state = before.get("lastState") or {}
    if "running" in state:
        last_state = _terminated(before, KILLED, time)
    reason: ContainerState = {"waiting": {"reason": waiting.reason}}
    if waiting.message:
        reason["waiting"]["message"] = waiting.message
    return {
        "image": container["image"],
        "imageID": "",
        "lastState": last_state,
        "name": container["name"],
        "ready": False,
        "restartCount": before.get("restartCount", 0),
        "started": False,
        "state": reason,
    }


def container_status(
    pod: Pod, container: Container, outcome: PodOutcome, time: str
) -> ContainerStatus:
    """Return one entry of ``containerStatuses``. The count of restarts never goes down."""
    before = _status_before(pod, container["name"])
    is_new_run = outcome.state != "running" and outcome.restarts > before.get("restartCount", 0)
    if outcome.ended:
        last_state = _terminated({} if is_new_run else before, outcome.ended, time)
    else:
        last_state = None

    return {
        "image": container["image"],
        "imageID": "",
        "lastState": last_state or before.get("lastState") or {},
        "name": container["name"],
        "ready": outcome.ready,
        "restartCount": max(outcome.restarts, before.get("restartCount", 0)),
        "started": outcome.state == "running",
        "state": _state(pod, container, outcome, time),
    }


def _status_before(pod: Pod, container: str) -> ContainerStatus:
    status = pod.get("status") or {}
    statuses: list[ContainerStatus] = [
        *(status.get("containerStatuses") or ()),
        *(status.get("initContainerStatuses") or ()),
        *(status.get("ephemeralContainerStatuses") or ()),
    ]
    for entry in statuses:
        if entry["name"] == container:
            return entry
    return {}


def _state(pod: Pod, container: Container, outcome: PodOutcome, time: str) -> ContainerState:
    before = _status_before(pod, container["name"])
    if outcome.state == "running":
        return {"running": {"startedAt": time if outcome.ended else _started(before, time)}}
    if outcome.state == "terminated":
        return _terminated({} if outcome.ended else before, outcome, time)
    if not outcome.message:
        return {"waiting": {"reason": outcome.reason}}
    message = outcome.message.format(
        container=container["name"],
        image=container["image"],
        pod=f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})",
    )
    return {"waiting": {"message": message, "reason": outcome.reason}}


def _started(before: ContainerStatus, time: str) -> str:
    """Return when a container started: one that was running keeps that time."""
    state = before.get("state") or {}
    running = state.get("running", {})
    return running.get("startedAt") or time


def _terminated(before: ContainerStatus, outcome: PodOutcome, time: str) -> ContainerState:
    return {
        "terminated": {
            "exitCode": outcome.exit_code,
            "finishedAt": time,
            "reason": outcome.reason,
            "startedAt": _started(before, time),
        }
    }


def _init_container_status(
    pod: Pod, container: Container, outcome: PodOutcome, time: str
) -> ContainerStatus:
    """Return the status of an init container: a sidecar runs with the pod, any other has completed
    and is ready."""
    if is_restartable_init_container(container) and outcome.phase not in TERMINAL_PHASES:
        return container_status(pod, container, RUNNING, time)
    if outcome.init is not None and container["name"] == first_init_container(pod):
        return {
            **container_status(pod, container, outcome.init, time),
            "ready": outcome.init.phase == "Succeeded",
        }
    return {
        **container_status(pod, container, COMPLETED, time),
        "ready": not is_restartable_init_container(container),
    }


def _ephemeral_container_statuses(
    pod: Pod, outcome: PodOutcome, time: str
) -> list[ContainerStatus]:
    """Return the statuses of ephemeral containers, which run as long as the pod. One that waits for
    input ends at once: nobody can attach to it."""
    statuses: list[ContainerStatus] = []
    for container in pod["spec"].get("ephemeralContainers") or ():
        ended = container.get("stdin") or outcome.phase in ("Succeeded", "Failed")
        before = _status_before(pod, container["name"])
        state: ContainerState = {"running": {"startedAt": _started(before, time)}}
        waiting = invalid_image(container["image"])
        if waiting:
            state = {"waiting": {"message": waiting.message, "reason": waiting.reason}}
        elif ended:
            if "terminated" in before.get("state", {}):
                state = before["state"]
            else:
                state = _terminated(before, COMPLETED, time)
        statuses.append(
            {
                "image": container["image"],
                "imageID": "",
                "lastState": {},
                "name": container["name"],
                "ready": False,
                "restartCount": 0,
                "state": state,
            }
        )

    return statuses


class ReportedContainers(NamedTuple):
    """The phase of a pod and the statuses of its containers, from which its conditions follow."""

    phase: str
    init_containers: list[ContainerStatus]
    containers: list[ContainerStatus]

    def initialized(self, spec: PodSpec) -> ConditionValues:
        """Return the Initialized condition."""
        if self.phase == "Succeeded":
            return ConditionValues("True", "PodCompleted")
        sidecars = {
            container["name"]
            for container in spec.get("initContainers") or ()
            if is_restartable_init_container(container)
        }
        incomplete = [
            status["name"]
            for status in self.init_containers
            if not status["started" if status["name"] in sidecars else "ready"]
        ]
        has_started = any(
            "waiting" not in status["state"] or status["lastState"] for status in self.containers
        )
        if has_started or not incomplete:
            return ConditionValues("True")
        return ConditionValues(
            "False",
            "ContainersNotInitialized",
            f"containers with incomplete status: [{' '.join(incomplete)}]",
        )

    def ready(self, spec: PodSpec) -> ConditionValues:
        """Return the ContainersReady condition."""
        if self.phase in TERMINAL_PHASES:
            return ConditionValues(
                "False", "PodFailed" if self.phase == "Failed" else "PodCompleted"
            )

        sidecars = [
            container["name"]
            for container in spec.get("initContainers") or ()
            if is_restartable_init_container(container)
        ]
        unready = [
            status["name"]
            for status in (*self.init_containers, *self.containers)
            if not status["ready"] and (status in self.containers or status["name"] in sidecars)
        ]
        if not unready:
            return ConditionValues("True")
        return ConditionValues(
            "False", "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
        )


def pod_conditions(pod: Pod, reported: ReportedContainers, time: str) -> list[PodCondition]:
    """Return the kubelet's conditions before those of others (pkg/kubelet/status/generate.go)."""
    old = {
        condition["type"]: condition
        for condition in (pod.get("status") or {}).get("conditions") or ()
    }
    containers_ready = reported.ready(pod["spec"])
    own = {
        "Initialized": reported.initialized(pod["spec"]),
        "Ready": ready_condition(pod, containers_ready),
        "ContainersReady": containers_ready,
    }
    if "PodScheduled" not in old:  # bound by its manifest, past the scheduler
        own["PodScheduled"] = ConditionValues("True")
    conditions: list[PodCondition] = []
    for kind, values in own.items():
        before = old.get(kind)
        if before and before.get("status") == values.status:
            since = before.get("lastTransitionTime")
        else:
            since = None
        condition: PodCondition = {
            "lastProbeTime": NEVER,
            "lastTransitionTime": since or time,
            "status": values.status,
            "type": kind,
        }
        if values.message:
            condition["message"] = values.message
        if values.reason:
            condition["reason"] = values.reason
        generation = pod["metadata"].get("generation")
        if generation:
            condition["observedGeneration"] = generation
        conditions.append(condition)

    return [*conditions, *(condition for kind, condition in old.items() if kind not in own)]


def ready_condition(pod: Pod, containers: ConditionValues) -> ConditionValues:
    """Return the Ready condition: that of the containers, and when they are ready that of the
    readiness gates."""
    gates = pod["spec"].get("readinessGates")
    if containers.status != "True" or not gates:
        return containers
    conditions = (pod.get("status") or {}).get("conditions") or ()
    status_of = {condition["type"]: condition["status"] for condition in conditions}
    messages = []
    for gate in gates:
        name = gate["conditionType"]
        if name not in status_of:
            messages.append(
                f'corresponding condition of pod readiness gate "{name}" does not exist.'
            )
        elif status_of[name] != "True":
            messages.append(
                f'the status of pod readiness gate "{name}" is not "True", but {status_of[name]}'
            )

    if messages:
        return ConditionValues("False", "ReadinessGatesNotReady", ", ".join(messages))
    return containers


def expired_status(pod: Pod, host_ip: str, pod_ip: str, now: datetime) -> PodStatus:
    """Return the status of a pod that ran for longer than ``spec.activeDeadlineSeconds``
    (``active_deadline.go``)."""
    status = pod_status(pod, KILLED, host_ip, pod_ip, now)
    return {**status, "reason": DEADLINE_REASON, "message": DEADLINE_MESSAGE}


def _resized(status: ContainerStatus, resources: ResourceRequirements) -> ContainerStatus:
    """Return the status of a container that has these resources now; one that has not started has
    none."""
    if not resources or "running" not in (status.get("state") or {}):
        return status
    resized: ContainerStatus = {**status}
    requests = resources.get("requests")
    if requests:
        resized["allocatedResources"] = requests
    resized["resources"] = resources
    return resized


def rejected_status(pod: Pod, reason: str, message: str, now: datetime) -> PodStatus:
    """Return the status of a pod that its node does not admit: nothing of it has run
    (``rejectPod``)."""
    old = pod.get("status") or {}
    kept: PodStatus = {"qosClass": old["qosClass"]} if "qosClass" in old else {}
    return acknowledged(
        pod,
        {
            **kept,
            "phase": "Failed",
            "reason": reason,
            "message": f"Pod was rejected: {message}",
            "startTime": format_time(now),
        },
    )


def acknowledged_status(pod: Pod, now: datetime) -> PodStatus:
    """Return the present status with the present generation as observed, new ephemeral containers
    as started, and containers with the resources to which they may have been resized."""
    status = acknowledged(pod, {**pod["status"]})
    resources = {
        container["name"]: container.get("resources") for container in pod["spec"]["containers"]
    }
    statuses = status.get("containerStatuses")
    if statuses:
        status["containerStatuses"] = [
            _resized(entry, resources.get(entry["name"]) or {}) for entry in statuses
        ]

    if pod["spec"].get("ephemeralContainers"):
        status["ephemeralContainerStatuses"] = _ephemeral_container_statuses(
            pod, RUNNING, format_time(now)
        )

    generation = pod["metadata"]["generation"]
    status["conditions"] = [
        {**condition, "observedGeneration": generation}
        if condition["type"] in OWN_CONDITIONS
        else condition
        for condition in status.get("conditions") or ()
    ]
    return status


def acknowledged(pod: Pod, status: PodStatus) -> PodStatus:
    generation = pod["metadata"].get("generation")
    if generation:
        return {**status, "observedGeneration": generation}
    return status
