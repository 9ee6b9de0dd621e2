"""The report of a kubelet on its node, and the addresses of pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.clock import format_time
from kubepy.api.meta import annotations_of, name_of
from kubepy.api.objects.nodes import is_node_ready
from kubepy.api.objects.outcomes import OUTCOME
from kubepy.apiserver.validation.resources import is_extended
from kubepy.runtime.informers import PODS, Index, Informers, Lister, Query

if TYPE_CHECKING:
    from kubepy.api.typed import Node, NodeCondition, NodeStatus, NodeSystemInfo, Pod

HOST_IP = "192.168.0.1"  # of a node whose status has no InternalIP
NODE_NETWORK = "192.168.{}.{}"  # a /16
POD_NETWORK = "10.244.{}.{}"  # a /16
MOST_READ_TOGETHER = 64  # addresses: the next ones, twice as many each time
DEFAULT_CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "110"}
NODE_INFO = {
    "architecture": "amd64",
    "bootID": "",
    "containerRuntimeVersion": "sim://1",
    "kernelVersion": "0",
    "kubeProxyVersion": "",
    "kubeletVersion": "v1.36.0",
    "machineID": "",
    "operatingSystem": "linux",
    "osImage": "kubepy",
    "systemUUID": "",
}
NODE_CONDITIONS = (  # pkg/kubelet/nodestatus/setters.go; Ready comes last
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def is_registration_due(node: Node) -> bool:
    """Tell whether the node's kubelet would report Ready, which its status does not say yet."""
    if annotations_of(node).get(OUTCOME) == "not-ready":
        return False
    return not is_node_ready(node)


def register(node: Node, now: datetime) -> Node:
    """Return the node as its kubelet reports it: Ready, with the capacity and allocatable of its
    manifest's status.

    A node annotated ``kubepy.dev/outcome: not-ready`` is returned as it is. The argument is never
    changed.
    """
    if not is_registration_due(node):
        return node
    status: NodeStatus = {**(node.get("status") or {})}
    status["capacity"] = status.get("capacity") or dict(DEFAULT_CAPACITY)
    status["allocatable"] = status.get("allocatable") or dict(status["capacity"])
    time = format_time(now)
    before = {condition["type"]: condition for condition in status.get("conditions") or ()}
    own: list[NodeCondition] = []
    for kind, value, reason, message in NODE_CONDITIONS:
        last = before.pop(kind, {})
        since = last.get("lastTransitionTime") if last.get("status") == value else None
        own.append(
            {
                "lastHeartbeatTime": time,
                "lastTransitionTime": since or time,
                "message": message,
                "reason": reason,
                "status": value,
                "type": kind,
            }
        )

    status["conditions"] = [*own, *before.values()]
    reported: Mapping[str, Any] = status.get("nodeInfo") or {}
    status["nodeInfo"] = cast(
        "NodeSystemInfo", {key: reported.get(key) or value for key, value in NODE_INFO.items()}
    )
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    return {**node, "status": status}


def is_report_due(node: Node) -> bool:
    """Tell whether the node's kubelet, one that models containers, would report what its status
    does not say yet."""
    if annotations_of(node).get(OUTCOME) == "not-ready":
        return False
    if is_registration_due(node):
        return True
    status = node.get("status") or {}
    return not status.get("addresses") or _allocatable(status) != status.get("allocatable")


def report(node: Node, now: datetime, new_address: Callable[[], str]) -> Node:
    """Return the node as a kubelet that models containers reports it: registered, with addresses,
    and with all of its extended resources allocatable.

    Upstream: ``pkg/kubelet/nodestatus/setters.go``.

    :param new_address: returns the address of a node that has none.
    """
    registered = register(node, now)
    status: NodeStatus = {**(registered.get("status") or {})}
    if not status.get("addresses"):
        status["addresses"] = [
            {"type": "InternalIP", "address": new_address()},
            {"type": "Hostname", "address": name_of(node)},
        ]
    status["allocatable"] = _allocatable(status)
    return {**registered, "status": status}


def _allocatable(status: NodeStatus) -> dict[str, str]:
    """Return what can be allocated on a node: of each extended resource its capacity, of others
    what the status says."""
    allocatable = {
        name: quantity
        for name, quantity in (status.get("allocatable") or {}).items()
        if not is_extended(name)
    }
    for name, quantity in (status.get("capacity") or {}).items():
        if is_extended(name):
            allocatable[name] = quantity
    return allocatable


def internal_ip(node: Node, default: str = HOST_IP) -> str:
    """Return the first InternalIP of a node, or a default."""
    status = node.get("status") or {}
    for address in status.get("addresses") or ():
        if address.get("type") == "InternalIP":
            return address["address"]
    return default


class NodeAddresses:
    """Assigns each node an address of its own: the lowest that no other node has."""

    def __init__(self, nodes: Lister[Node]) -> None:
        self._nodes = nodes
        self._used: set[str] | None = None  # None: nobody has asked yet
        self._last = 0

    def observe(self, node: Node) -> None:
        """Take note of a node that has come or changed."""
        if self._used is not None:
            self._used.add(internal_ip(node, ""))

    def next(self) -> str:
        """Return an address that no node has. Raises RuntimeError when the network is full."""
        if self._used is None:
            self._used = {internal_ip(node, "") for node in self._nodes.list()}
        while self._last < 0xFFFE:
            self._last += 1
            address = _address(self._last, NODE_NETWORK)
            if address not in self._used:
                self._used.add(address)
                return address
        raise RuntimeError(f"every address of {NODE_NETWORK.format(0, 0)}/16 belongs to a node")


class PodAddresses:
    """Assigns each pod an address of its own: the next free one above the last, so that a run
    repeats itself.

    :ivar last: the number of the last one, which the kubelet remembers.
    """

    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        self._by_address: Index[Pod, None] = informers.add_index(
            PODS,
            lambda pod: ((pod.get("status") or {}).get("podIP") or "", None),
            lambda address: (_pods_with(address),),
        )
        self._read_together, self._read = (
            1,
            0,
        )  # the addresses asked for at once, and how many of them are left
        self.last = 0

    def next(self) -> str:
        """Return an address that no pod has. Raises RuntimeError when the network is full."""
        for _ in range(0xFFFE):
            if not self._read:
                self._read = self._read_together
                self._informers.load(
                    *(_pods_with(_address(self.last + ahead)) for ahead in range(1, self._read + 1))
                )
                self._read_together = min(2 * self._read, MOST_READ_TOGETHER)
            self._read -= 1
            self.last = self.last % 0xFFFE + 1
            address = _address(self.last)
            if not self._by_address.group(address):
                return address
        raise RuntimeError(f"every address of {POD_NETWORK.format(0, 0)}/16 belongs to a pod")


def _address(number: int, network: str = POD_NETWORK) -> str:
    """Return an address by its number; after the last comes the first."""
    number = (number - 1) % 0xFFFE + 1
    return network.format(number >> 8, number & 0xFF)


def _pods_with(address: str) -> Query:
    return Query(PODS, None, "address", address)
