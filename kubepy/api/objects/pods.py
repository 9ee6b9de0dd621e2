"""Questions about pods: readiness, availability, life, priority, quality of service, requests,
ports.

Pure functions over plain dicts, on the hot paths of controllers and scheduler. Upstream:
``pkg/api/v1/pod/util.go``, ``pkg/apis/core/v1/helper/qos``, ``component-helpers/resource``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple, cast

from kubepy.api.clock import format_time, later, parse_time
from kubepy.api.meta import AnyObject, Object, ObjectT, nested_list, nested_map, status_of
from kubepy.api.values.quantity import Quantity

# The lowest priority of the pods that the system cannot do without
# (``scheduling.SystemCriticalPriority``).
SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")  # as upstream visits them
RESIZE_PENDING = "PodResizePending"  # a condition
TERMINAL_PHASES = frozenset(("Failed", "Succeeded"))
Amounts = dict[str, Quantity]

QOS_RESOURCES = ("cpu", "memory")


# --- conditions -----------------------------------------------------------------------------------


def get_condition(pod: AnyObject, condition_type: str) -> Object | None:
    """Return the condition of that type, or None, of any object with ``status.conditions``
    (``GetPodCondition``)."""
    if status := pod.get("status"):
        conditions: list[Object] = nested_list(status, "conditions")
        for condition in conditions:
            if condition.get("type") == condition_type:
                return condition
    return None


def set_condition(conditions: list[ObjectT], condition: ObjectT, now: datetime) -> bool:
    """Put a condition into the list, in place of the one of its type or at the end
    (``UpdatePodCondition``).

    ``lastTransitionTime`` is now, or stays as it was if the status did not change. The list is
    changed, never the conditions in it. Returns whether the list has changed.
    """
    for index, old in enumerate(conditions):
        if old.get("type") != condition["type"]:
            continue
        old_time = (
            old.get("lastTransitionTime") if old.get("status") == condition["status"] else None
        )
        conditions[index] = cast(
            ObjectT, {**condition, "lastTransitionTime": old_time or format_time(now)}
        )
        return conditions[index] != old
    conditions.append(cast(ObjectT, {**condition, "lastTransitionTime": format_time(now)}))
    return True


def is_pod_ready(pod: AnyObject) -> bool:
    condition = get_condition(pod, "Ready")
    return condition is not None and condition.get("status") == "True"


def pod_ready_time(pod: AnyObject) -> datetime | None:
    """Return the time since which the pod is Ready; None if it is not, or its condition has no
    time."""
    condition = get_condition(pod, "Ready")
    if condition is None or condition.get("status") != "True":
        return None
    time = condition.get("lastTransitionTime")
    if time:
        return parse_time(time)
    return None


def is_pod_available(pod: AnyObject, min_ready_seconds: int, now: datetime) -> bool:
    """Return whether the pod has been Ready for ``min_ready_seconds`` (``IsPodAvailable``)."""
    if min_ready_seconds == 0:
        return is_pod_ready(pod)
    since = pod_ready_time(pod)
    return since is not None and later(since, min_ready_seconds) <= now


def next_availability(
    ready_times: Iterable[datetime | None], min_ready_seconds: int, now: datetime
) -> datetime | None:
    """Return when the next of several pods, which are Ready since these times, will have been so
    for so long; None if there is no such pod (``FindMinNextPodAvailabilityCheck``)."""
    latest_available = later(now, -min_ready_seconds)
    waiting = (since for since in ready_times if since is not None and since > latest_available)
    if (first := min(waiting, default=None)) is not None:
        return later(first, min_ready_seconds)
    return None


# --- life -----------------------------------------------------------------------------------------


def phase_of(pod: AnyObject) -> str:
    return str(status_of(pod).get("phase", ""))


def is_pod_terminal(pod: AnyObject) -> bool:
    """Return whether the pod's phase is Failed or Succeeded."""
    return phase_of(pod) in TERMINAL_PHASES


def is_pod_active(pod: AnyObject) -> bool:
    """Return whether the pod has neither ended nor is being deleted
    (``controller.IsPodActive``)."""
    return not pod["metadata"].get("deletionTimestamp") and phase_of(pod) not in TERMINAL_PHASES


def is_pod_terminating(pod: AnyObject) -> bool:
    """Return whether the pod is being deleted and has not ended
    (``controller.IsPodTerminating``)."""
    return bool(pod["metadata"].get("deletionTimestamp")) and phase_of(pod) not in TERMINAL_PHASES


def node_name(pod: AnyObject) -> str:
    """Return the name of the node that the pod is bound to, or ""."""
    return str(pod["spec"].get("nodeName", ""))


def priority(pod: AnyObject) -> int:
    return int(pod["spec"].get("priority") or 0)


# --- ports ----------------------------------------------------------------------------------------


class HostPort(NamedTuple):
    """A port that a pod takes on its node. ``ip`` is ``0.0.0.0`` for all addresses."""

    ip: str
    protocol: str
    port: int

    def clashes(self, other: HostPort) -> bool:
        """Return whether the two ports conflict on one node (``HostPortInfo.CheckConflict``)."""
        if self.port != other.port or self.protocol != other.protocol:
            return False
        return self.ip == other.ip or "0.0.0.0" in (self.ip, other.ip)


def host_ports(pod: AnyObject) -> list[HostPort]:
    """Return the host ports of the containers and of the init containers that keep running
    (``util.GetHostPorts``)."""
    spec = pod["spec"]
    sidecars = [
        container
        for container in nested_list(spec, "initContainers")
        if is_restartable_init_container(container)
    ]
    return [
        HostPort(port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in (*nested_list(spec, "containers"), *sidecars)
        for port in nested_list(container, "ports")
        if port.get("hostPort", 0) > 0
    ]


def containers_with_paths(spec: AnyObject, path: str) -> Iterator[tuple[Object, str]]:
    """Yield every container of a pod spec with its path: init, regular, ephemeral
    (``VisitContainersWithPath``)."""
    for field in CONTAINER_LISTS:
        for index, container in enumerate(spec.get(field) or ()):
            yield container, f"{path}.{field}[{index}]"


def is_restartable_init_container(container: AnyObject) -> bool:
    """Return whether an init container is a sidecar: started in its turn, then kept running."""
    return container.get("restartPolicy") == "Always"


# --- resources ------------------------------------------------------------------------------------


def pod_requests(pod: AnyObject) -> Amounts:
    """Return the total requests of the pod, overhead included (``resource.PodRequests``)."""
    requests = aggregate(pod["spec"], "requests")
    if pod["spec"].get("resources"):
        requests |= _pod_level(pod["spec"], "requests")
    return _sum(requests, pod["spec"].get("overhead"))


def is_resize_infeasible(pod: AnyObject) -> bool:
    """Return whether the pod asks for a resize that its node can never carry out
    (``resource.IsPodResizeInfeasible``)."""
    for condition in nested_list(pod, "status", "conditions"):
        if condition.get("type") == RESIZE_PENDING:
            return bool(condition.get("reason") == "Infeasible")
    return False


def allocated_resources(pod: AnyObject) -> dict[str, Object]:
    """Return the resources that a pod's status says its containers have, by their names."""
    resources: dict[str, Object] = {}
    for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        for entry in nested_list(pod, "status", field):
            if "resources" in entry:
                resources[entry["name"]] = entry["resources"]
    return resources


def allocated_spec(pod: AnyObject) -> Object:
    """Return the spec of a pod with the resources that its containers have been given, whatever
    resize it asks for (``UpdatePodFromAllocation``)."""
    allocated = allocated_resources(pod)
    spec = dict(pod["spec"])
    for field in ("initContainers", "containers"):
        containers: list[Object] = []
        for container in spec.get(field) or ():
            resources = allocated.get(container["name"], container.get("resources"))
            containers.append({**container, "resources": resources or {}})
        if containers:
            spec[field] = containers
    return spec


def pod_limits(pod: AnyObject) -> Amounts:
    """Return the total limits of the pod; overhead is added to limits that are there
    (``resource.PodLimits``)."""
    limits = aggregate(pod["spec"], "limits")
    if pod["spec"].get("resources"):
        limits |= _pod_level(pod["spec"], "limits")
    overhead = nested_map(pod["spec"], "overhead")
    limited = {
        name: amount
        for name, amount in overhead.items()
        if name in limits and not limits[name].is_zero()
    }
    return _sum(limits, limited)


def _pod_level(spec: AnyObject, kind: str) -> Amounts:
    """Return the pod-level resources of a pod spec; cpu, memory and huge pages replace the
    containers'."""
    own = spec["resources"].get(kind) or {}
    return {
        name: Quantity.parse(amount)
        for name, amount in own.items()
        if name in QOS_RESOURCES or name.startswith("hugepages-")
    }


def _sum(amounts: Amounts, more: AnyObject | None) -> Amounts:
    if not more:
        return amounts
    total = dict(amounts)
    for name, text in more.items():
        amount = Quantity.parse(text)
        total[name] = total[name] + amount if name in total else amount
    return total


def qos_class(pod: AnyObject) -> str:
    """Return Guaranteed, Burstable or BestEffort (``qos.ComputePodQOS``), which the API server puts
    into the status."""
    spec = pod["spec"]
    if spec.get("resources"):
        holders = [spec]
    else:
        holders = [
            container
            for field in ("containers", "initContainers")
            for container in spec.get(field) or ()
        ]

    if not any(holder.get("resources") for holder in holders):
        return "BestEffort"
    requests: Amounts = {}
    limits: Amounts = {}
    guaranteed = True
    for holder in holders:
        resources = nested_map(holder, "resources")
        own = _positive(resources.get("limits"))
        guaranteed = guaranteed and len(own) == len(QOS_RESOURCES)
        requests = _sum(requests, _positive(resources.get("requests")))
        limits = _sum(limits, own)

    if not requests and not limits:
        return "BestEffort"
    if guaranteed and requests == limits:
        return "Guaranteed"
    return "Burstable"


def _positive(quantities: AnyObject | None) -> dict[str, Any]:
    """Return cpu and memory if they are greater than zero."""
    return {
        name: quantities[name]
        for name in QOS_RESOURCES
        if quantities and name in quantities and Quantity.parse(quantities[name]).nanos > 0
    }


def aggregate(spec: AnyObject, field: str) -> Amounts:
    """Return the sum of the containers or the need of the largest init container, whichever is
    more, by resource name.

    ``field``: requests or limits. Init containers run one after another, but sidecars among them go
    on (``AggregateContainerRequests``). Overhead and the pod-level ``resources`` are not included.
    Upstream: ``k8s.io/component-helpers/resource/helpers.go``.
    """
    total: Amounts = {}
    for container in nested_list(spec, "containers"):
        _add(total, amounts_of(container, field))
    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in nested_list(spec, "initContainers"):
        own = amounts_of(container, field)
        if container.get("restartPolicy") == "Always":
            _add(total, own)
            _add(sidecars, own)
            needed = dict(sidecars)
        else:
            needed = dict(own)
            _add(needed, sidecars)
        _raise_to(largest, needed)

    _raise_to(total, largest)
    return dict(sorted(total.items()))


def amounts_of(container: AnyObject, field: str) -> Amounts:
    resources = nested_map(container, "resources").get(field) or {}
    return {name: Quantity.parse(amount) for name, amount in resources.items()}


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, amount in least.items():
        if name not in total or total[name] < amount:
            total[name] = amount
