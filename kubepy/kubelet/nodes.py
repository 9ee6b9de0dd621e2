"""What the kubelet of a node reports of it. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kubepy.api.clock import format_time
from kubepy.api.meta import Object, annotations_of
from kubepy.api.objects.nodes import is_node_ready
from kubepy.kubelet.annotations import OUTCOME

HOST_IP = "192.168.0.1"  # of a node whose status has no InternalIP
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
    """Whether the node's kubelet would report Ready where the node does not say so."""
    return annotations_of(node).get(OUTCOME) != "not-ready" and not is_node_ready(node)


def register(node: Object, now: datetime) -> Object:
    """The node as its kubelet reports it: Ready, with what its manifest's status says of capacity and allocatable.

    A node annotated ``kubepy.dev/outcome: not-ready`` comes back as it is. Never changes the node it is given.
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
    """The kubelet's conditions in its order, then those that others have set."""
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
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((one["address"] for one in addresses if one.get("type") == "InternalIP"), HOST_IP)
