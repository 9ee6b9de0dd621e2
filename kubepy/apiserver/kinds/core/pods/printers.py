"""Tables of pods: READY, STATUS and RESTARTS (``printPod``)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from kubepy.api.meta import Object, nested_map, spec_of, status_of
from kubepy.api.objects.pods import is_pod_terminal, is_restartable_init_container
from kubepy.apiserver.printers import Cell, age, printer, since

NODE_LOST = (
    "NodeLost"  # the reason that the node controller gives the pods of a node it cannot reach
)


class Restarts(NamedTuple):
    """The number of restarts of containers, and the time of the last end before one ("": not
    known)."""

    times: int
    last: str

    def text(self, now: datetime) -> str:
        if self.times and self.last:
            return f"{self.times} ({since(self.last, now)} ago)"
        return str(self.times)


class ContainersState(NamedTuple):
    """The common state of containers; ``reason`` is "" where the pod's own counts."""

    reason: str
    ready: int
    restarts: Restarts


NO_RESTARTS = Restarts(0, "")
INITIALIZED = ContainersState("", 0, NO_RESTARTS)  # the state of no init containers


@printer(
    "Name",
    "Ready",
    "Status",
    "Restarts",
    "Age",
    "+IP",
    "+Node",
    "+Nominated Node",
    "+Readiness Gates",
)
def print_pod(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    status = status_of(obj)
    state = pod_state(obj)
    ips = status.get("podIPs") or [{"ip": status.get("podIP")}]
    total = len(spec.get("containers") or []) + len(_sidecars(spec))
    return [
        obj["metadata"]["name"],
        f"{state.ready}/{total}",
        state.reason,
        state.restarts.text(now),
        age(obj, now),
        ips[0].get("ip") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        _readiness_gates(spec, status),
    ]


def _readiness_gates(spec: dict[str, Any], status: dict[str, Any]) -> str:
    """Return how many of the readiness gates are met: ``1/2``."""
    gates = spec.get("readinessGates")
    if not gates:
        return "<none>"
    met = [gate for gate in gates if _condition(status, gate["conditionType"]) == "True"]
    return f"{len(met)}/{len(gates)}"


def pod_state(pod: Object) -> ContainersState:
    """Return READY's first number, STATUS and RESTARTS of a pod."""
    spec = spec_of(pod)
    status = status_of(pod)
    if spec.get("initContainers") or status.get("initContainerStatuses"):
        state = _initializing(spec, status)
        if not state.reason or _condition(status, "Initialized") == "True":
            names = _sidecars(spec)
            reached, _ = _reached(spec, status)
            sidecars = _restarts(container for container in reached if container["name"] in names)
            state = _running(status, state, sidecars)
    else:  # as in most pods
        state = _running(status, INITIALIZED, NO_RESTARTS)

    reason = state.reason or _own_reason(status)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == NODE_LOST:
            reason = "Unknown"
        elif not is_pod_terminal(pod):
            reason = "Terminating"

    return ContainersState(reason, state.ready, state.restarts)


def _own_reason(status: dict[str, Any]) -> str:
    """Return the reason or phase of the pod itself."""
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase") or "")


def _condition(status: dict[str, Any], kind: str) -> str:
    """Return the status of the first condition of that type, or ""."""
    return next(
        (
            condition.get("status", "")
            for condition in status.get("conditions") or []
            if condition["type"] == kind
        ),
        "",
    )


def _restarts(statuses: Iterable[dict[str, Any]]) -> Restarts:
    times = 0
    last = ""
    for status in statuses:
        times += status.get("restartCount", 0)
        ended = nested_map(status, "lastState", "terminated").get("finishedAt") or ""
        last = max(last, ended)  # all times are written alike: text sorts as time
    return Restarts(times, last)


def _ended(terminated: dict[str, Any]) -> str:
    """Return the reason for the end of a container."""
    if terminated.get("reason"):
        return str(terminated["reason"])
    signal = terminated.get("signal", 0)
    if signal:
        return f"Signal:{signal}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


# --- init containers ------------------------------------------------------------------------------


def _sidecars(spec: dict[str, Any]) -> set[str]:
    return {
        container["name"]
        for container in spec.get("initContainers") or []
        if is_restartable_init_container(container)
    }


def _initializing(spec: dict[str, Any], status: dict[str, Any]) -> ContainersState:
    """Return the progress of the init containers, without a reason when they are through."""
    sidecars = _sidecars(spec)
    reached, stuck = _reached(spec, status)
    through = reached[:-1] if stuck else reached
    ready = sum(
        1
        for container in through
        if not _succeeded(container) and container["name"] in sidecars and container.get("ready")
    )

    reason = ""
    if stuck:
        state = reached[-1].get("state") or {}
        reason = (state.get("waiting") or {}).get("reason", "")
        if state.get("terminated") is not None:
            reason = _ended(state["terminated"])
        elif not reason or reason == "PodInitializing":
            reason = f"{len(through)}/{len(spec.get('initContainers') or [])}"
        reason = f"Init:{reason}"

    return ContainersState(reason, ready, _restarts(reached))


def _reached(spec: dict[str, Any], status: dict[str, Any]) -> tuple[list[dict[str, Any]], bool]:
    """Return the statuses up to the first init container that holds the pod up, and whether there
    is one."""
    sidecars = _sidecars(spec)
    statuses = status.get("initContainerStatuses") or []
    for index, container in enumerate(statuses):
        is_started_sidecar = container["name"] in sidecars and container.get("started")
        if not _succeeded(container) and not is_started_sidecar:
            return statuses[: index + 1], True
    return statuses, False


def _succeeded(status: dict[str, Any]) -> bool:
    terminated = (status.get("state") or {}).get("terminated")
    return terminated is not None and terminated.get("exitCode", 0) == 0


# --- containers -----------------------------------------------------------------------------------


def _running(status: dict[str, Any], init: ContainersState, sidecars: Restarts) -> ContainersState:
    """Return the state of the containers after initialization; of several reasons the first
    container's."""
    statuses = status.get("containerStatuses") or []
    reason = init.reason
    error = ""
    ready = 0
    for container in reversed(statuses):
        state = container.get("state") or {}
        terminated = state.get("terminated")
        if (state.get("waiting") or {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif terminated is not None:
            reason = _ended(terminated)
            error = reason if terminated.get("exitCode", 0) else error
        elif container.get("ready") and state.get("running") is not None:
            ready += 1

    shown_reason = reason or (status.get("reason") and _own_reason(status))
    if shown_reason == "Completed":  # the first container has completed
        reason = _reason_when_completed(status, ready, error)
    own = _restarts(statuses)
    return ContainersState(
        reason,
        init.ready + ready,
        Restarts(own.times + sidecars.times, max(own.last, sidecars.last)),
    )


def _reason_when_completed(status: dict[str, Any], ready: int, error: str) -> str:
    """Return the reason of a pod of which the first container has completed.

    :param ready: how many of the others are ready.
    :param error: the reason of the first that failed, "" if none did.
    """
    is_ready = any(
        condition["type"] == "Ready" and condition.get("status") == "True"
        for condition in status.get("conditions") or []
    )
    if ready and is_ready:
        return "Running"
    if error:
        return error
    return "NotReady" if ready else "Completed"
