"""The status of a pod from the records of its containers (``convertToAPIContainerStatuses`` in
``pkg/kubelet/kubelet_pods.go``). Pure functions."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.clock import format_time
from kubepy.api.objects.pods import get_condition, is_restartable_init_container
from kubepy.kubelet.modelled.phases import phase_of
from kubepy.kubelet.obstacles import CREATING, INITIALIZING
from kubepy.kubelet.statuses import (
    ConditionValues,
    ReportedContainers,
    acknowledged,
    pod_conditions,
    ready_condition,
)

if TYPE_CHECKING:
    from kubepy.api.typed import Container, ContainerState, ContainerStatus, Pod, PodStatus
    from kubepy.kubelet.modelled.records import ContainerRecord, PodRecord, RunEnd

COMPLETED = "Completed"
START_ERROR = "StartError"
NEVER_STARTED = "1970-01-01T00:00:00Z"
TERMINAL_PHASES = ("Failed", "Succeeded")
NOT_LOCATED: Any = {
    "terminated": {
        "exitCode": 137,
        "finishedAt": None,
        "message": "The container could not be located when the pod was terminated",
        "reason": "ContainerStatusUnknown",
        "startedAt": None,
    }
}


def reported_status(
    pod: Pod, record: PodRecord, host_ip: str, pod_ip: str, now: datetime
) -> PodStatus:
    """Return the status that a kubelet reports for a pod; qosClass and others' conditions stay.

    :param pod_ip: "" for a pod that has no address yet.
    """
    old = pod.get("status") or {}
    spec = pod["spec"]
    status: PodStatus = {**old}
    for name in ("reason", "message", "podIP", "podIPs"):
        status.pop(name, None)  # type: ignore[misc]
    containers = [_status(pod, record, container) for container in spec["containers"]]
    init_containers = [
        _init_status(pod, record, container) for container in spec.get("initContainers") or ()
    ]
    status["containerStatuses"] = containers
    if init_containers:
        status["initContainerStatuses"] = init_containers
    ephemeral_containers = cast("list[Container]", spec.get("ephemeralContainers") or [])
    if ephemeral_containers:
        status["ephemeralContainerStatuses"] = [
            {**_status(pod, record, container), "ready": False}
            for container in ephemeral_containers
        ]

    phase = phase_of(spec, record.containers, is_ending=bool(record.end) or record.is_over)
    if record.end and record.is_over:
        phase = "Failed"
    if record.mounts_fail and not record.is_over:
        phase = "Pending"
    if record.is_over and phase not in TERMINAL_PHASES:
        phase = "Failed"  # it is deleted before its containers have run (``TerminatePod``)
        if not init_containers:
            for container in containers:
                if "waiting" in container["state"]:
                    container["state"] = NOT_LOCATED
    time = format_time(now)
    status["conditions"] = pod_conditions(
        pod, ReportedContainers(phase, init_containers, containers), time
    )
    if record.end and record.is_over:
        status["reason"] = record.end
        status["message"] = record.end_message
    if pod_ip:
        status |= {"podIP": pod_ip, "podIPs": _with_others(old.get("podIPs"), pod_ip)}
    status["hostIP"] = host_ip
    status["hostIPs"] = _with_others(old.get("hostIPs"), host_ip)
    status["phase"] = phase
    status["startTime"] = old.get("startTime") or time
    return acknowledged(pod, status)


def _with_others(addresses: Any, address: str) -> Any:
    """Return the addresses that were reported, where the first is the same, or that one alone."""
    if addresses and addresses[0].get("ip") == address:
        return addresses
    return [{"ip": address}]


def is_outdated(pod: Pod, record: PodRecord) -> bool:
    """Tell whether the status of a pod lacks what follows from its spec and its conditions alone: a
    first report, the present generation, its readiness gates, a new ephemeral container."""
    status = pod.get("status") or {}
    if not status.get("containerStatuses"):
        return True
    observed = status.get("observedGeneration")
    if observed is not None and observed < pod["metadata"].get("generation", 0):
        return True
    if not pod["spec"].get("readinessGates"):
        return False
    ready = get_condition(pod, "Ready") or {}
    containers_ready = get_condition(pod, "ContainersReady") or {}
    if containers_ready.get("status") != "True":
        return False
    expected = ready_condition(pod, ConditionValues("True"))
    reported = (ready.get("status", ""), ready.get("reason", ""), ready.get("message", ""))
    return expected != reported


def _status(pod: Pod, pod_record: PodRecord, container: Container) -> ContainerStatus:
    """Return one entry of ``containerStatuses``."""
    record = pod_record.containers[container["name"]]
    is_reported = record.is_running and record.hook is None
    last_state: ContainerState = {}
    if record.last is not None:
        last_state = {"terminated": _terminated(record.last)}  # type: ignore[typeddict-item]
    return {
        "image": record.image or container["image"],
        "imageID": "",
        "lastState": last_state,
        "name": container["name"],
        "ready": record.is_ready and is_reported,
        "restartCount": record.restarts,
        "started": record.has_started and is_reported,
        "state": _state(pod, record),
    }


def _init_status(pod: Pod, pod_record: PodRecord, container: Container) -> ContainerStatus:
    """Return one entry of ``initContainerStatuses``: one that has completed is ready."""
    status = _status(pod, pod_record, container)
    if is_restartable_init_container(container):
        return status
    ending = pod_record.containers[container["name"]].ending
    status["ready"] = ending is not None and ending.exit_code == 0
    return status


def _state(pod: Pod, record: ContainerRecord) -> ContainerState:
    if record.started is not None and record.hook is None:
        return {"running": {"startedAt": format_time(record.started)}}
    if record.ending is not None:
        return {"terminated": _terminated(record.ending)}  # type: ignore[typeddict-item]
    has_init_containers = bool(pod["spec"].get("initContainers"))
    reason = record.reason or (INITIALIZING if has_init_containers else CREATING)
    if not record.message:
        return {"waiting": {"reason": reason}}
    return {"waiting": {"message": record.message, "reason": reason}}


def _terminated(ending: RunEnd) -> dict[str, object]:
    """Return a ``ContainerStateTerminated``."""
    values: dict[str, object] = {
        "exitCode": ending.exit_code,
        "finishedAt": format_time(ending.finished),
        "reason": ending.reason,
        "startedAt": format_time(ending.started) if ending.started else NEVER_STARTED,
    }
    if ending.message:
        values["message"] = ending.message
    return values
