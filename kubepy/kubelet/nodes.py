"""The report of a kubelet on its node, and the addresses of pods."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.clock import format_time
from kubepy.api.meta import annotations_of
from kubepy.api.objects.nodes import is_node_ready
from kubepy.api.objects.outcomes import OUTCOME
from kubepy.runtime.informers import PODS, Index, Informers, Query

if TYPE_CHECKING:
    from kubepy.api.typed import Node, NodeCondition, NodeStatus, NodeSystemInfo, Pod

HOST_IP = "192.168.0.1"  # of a node whose status has no InternalIP
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


def internal_ip(node: Node) -> str:
    """Return the first InternalIP of a node, or a default."""
    status = node.get("status") or {}
    for address in status.get("addresses") or ():
        if address.get("type") == "InternalIP":
            return address["address"]
    return HOST_IP


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


def _address(number: int) -> str:
    """Return an address by its number; after the last comes the first."""
    number = (number - 1) % 0xFFFE + 1
    return POD_NETWORK.format(number >> 8, number & 0xFF)


def _pods_with(address: str) -> Query:
    return Query(PODS, None, "address", address)
