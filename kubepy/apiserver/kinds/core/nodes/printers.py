"""Tables of Nodes (``printNode``)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubepy.api.meta import Object, labels_of, nested_list, spec_of, status_of
from kubepy.apiserver.printers import Cell, age, printer

ROLE_PREFIX = "node-role.kubernetes.io/"
ROLE = "kubernetes.io/role"


@printer(
    "Name",
    "Status",
    "Roles",
    "Age",
    "Version",
    "+Internal-IP",
    "+External-IP",
    "+OS-Image",
    "+Kernel-Version",
    "+Container-Runtime",
)
def print_node(obj: Object, now: datetime) -> list[Cell]:
    status = status_of(obj)
    info = status.get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or "<unknown>"
    if architecture := info.get("architecture"):
        kernel += f" ({architecture})"
    return [
        obj["metadata"]["name"],
        node_status(obj),
        ",".join(node_roles(obj)) or "<none>",
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or "<unknown>",
        kernel,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def node_status(node: Object) -> str:
    """Return ``Ready,SchedulingDisabled`` and the like."""
    conditions = {
        condition["type"]: condition.get("status")
        for condition in nested_list(node, "status", "conditions")
    }
    ready = "Unknown"
    if "Ready" in conditions:
        ready = "Ready" if conditions["Ready"] == "True" else "NotReady"
    if spec_of(node).get("unschedulable"):
        return f"{ready},SchedulingDisabled"
    return ready


def node_roles(node: Object) -> list[str]:
    """Return the roles that a node's labels give it, sorted (``findNodeRoles``)."""
    labels = labels_of(node)
    roles = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)}
    roles.add(labels.get(ROLE, ""))
    return sorted(roles - {""})


def _address(status: dict[str, Any], kind: str) -> str:
    return next(
        (
            address["address"]
            for address in nested_list(status, "addresses")
            if address["type"] == kind
        ),
        "<none>",
    )
