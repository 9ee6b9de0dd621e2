"""The report of a kubelet on its node, and the addresses of pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kubepy.api.clock import format_time
from kubepy.api.meta import Object, annotations_of
from kubepy.api.objects.nodes import is_node_ready
from kubepy.kubelet.outcomes import OUTCOME
from kubepy.runtime.reconcile import Key

HOST_IP = "192.168.0.1"  # of a node whose status has no InternalIP
POD_NETWORK = "10.244.{}.{}"  # a /16
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
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def is_registration_due(node: Mapping[str, Any]) -> bool:
    """Tell whether the node's kubelet would report Ready, which its status does not say yet."""
    return annotations_of(node).get(OUTCOME) != "not-ready" and not is_node_ready(node)


def register(node: Object, now: datetime) -> Object:
    """Return the node as its kubelet reports it: Ready, with the capacity and allocatable of its manifest's status.

    A node annotated ``kubepy.dev/outcome: not-ready`` is returned as it is. The argument is never changed.
    """
    if not is_registration_due(node):
        return node
    status = dict(node.get("status") or {})
    status["capacity"] = status.get("capacity") or dict(DEFAULT_CAPACITY)
    status["allocatable"] = status.get("allocatable") or dict(status["capacity"])
    status["conditions"] = _node_conditions(status.get("conditions") or (), now)
    status["nodeInfo"] = {key: (status.get("nodeInfo") or {}).get(key) or value for key, value in NODE_INFO.items()}
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    return {**node, "status": status}


def _node_conditions(old: Sequence[Object], now: datetime) -> list[Object]:
    """Return the kubelet's conditions in its order, then those that others have set."""
    time, before = format_time(now), {condition["type"]: condition for condition in old}
    conditions = []
    for kind, status, reason, message in NODE_CONDITIONS:
        last = before.pop(kind, {})
        since = last.get("lastTransitionTime") if last.get("status") == status else None
        conditions.append({
            "lastHeartbeatTime": time, "lastTransitionTime": since or time, "message": message, "reason": reason,
            "status": status, "type": kind,
        })  # fmt: skip
    return [*conditions, *before.values()]


def internal_ip(node: Mapping[str, Any]) -> str:
    """Return the first InternalIP of a node, or a default."""
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((address["address"] for address in addresses if address.get("type") == "InternalIP"), HOST_IP)


class PodAddresses:
    """Assigns each pod an address of its own: the next free one above the last, so that a run repeats itself."""

    def __init__(self) -> None:
        self._used: dict[str, Key] = {}
        self._of: dict[Key, str] = {}
        self._last = 0

    def observe(self, key: Key, pod: Mapping[str, Any] | None) -> None:
        """Take in the address of a pod that has one; None: the pod was deleted."""
        address = ((pod or {}).get("status") or {}).get("podIP", "")
        if self._of.get(key, "") == address:
            return
        if (before := self._of.pop(key, None)) and self._used.get(before) == key:
            del self._used[before]
        if address:
            self._of[key] = address
            self._used[address] = key

    def next(self) -> str:
        """Return an address that no pod has. Raises RuntimeError when the network is full."""
        for _ in range(0xFFFE):
            self._last = self._last % 0xFFFE + 1
            if (address := POD_NETWORK.format(self._last >> 8, self._last & 0xFF)) not in self._used:
                return address
        raise RuntimeError(f"every address of {POD_NETWORK.format(0, 0)}/16 belongs to a pod")
