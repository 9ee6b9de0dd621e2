"""The filter by room on the node: number of pods, cpu, memory and every other resource
(``noderesources/fit.go``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kubepy.scheduler.cache import NodeInfo, PodInfo, Resources, resource_list
from kubepy.scheduler.framework import (
    NODE_ADD,
    NODE_ALLOCATABLE,
    POD_DELETE,
    POD_SCALE_DOWN,
    SELF_UPDATE,
    ClusterEvent,
    FilterPlugin,
    PluginStatus,
)

FIRST = ("cpu", "memory", "ephemeral-storage")  # upstream reports these before the others


class NodeResourcesFit(FilterPlugin):
    """Allow only nodes with enough of every resource left."""

    name = "NodeResourcesFit"
    looks_at_node_only = True
    events_to_register = frozenset(
        {NODE_ADD, NODE_ALLOCATABLE, POD_DELETE, POD_SCALE_DOWN, SELF_UPDATE}
    )

    def filter(self, pod: PodInfo, state: Any, node_info: NodeInfo) -> PluginStatus | None:
        full = not node_info.has_room()
        if not full and not pod.requests:
            return None
        insufficient = _insufficient(pod.requests, node_info.allocatable, node_info.requested)
        if not full and not insufficient:
            return None
        reasons = (("Too many pods",) if full else ()) + tuple(
            f"Insufficient {name}" for name in insufficient
        )
        hopeless = any(
            pod.requests[name] > node_info.allocatable.get(name, 0) for name in insufficient
        )
        return PluginStatus(reasons, not hopeless, self.name)

    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        if not event.actions & {NODE_ADD, NODE_ALLOCATABLE}:
            return True
        allocatable = _allocatable(event.new)
        if _insufficient(pod.requests, allocatable, {}) or allocatable.get("pods", 0) < 1:
            return False
        if event.old is None:
            return True
        before = _allocatable(event.old)
        names = ["pods", *(name for name, amount in pod.requests.items() if amount)]
        return any(allocatable.get(name, 0) > before.get(name, 0) for name in names)


class InsufficientResource(NamedTuple):
    """A resource of which a node has too little left."""

    resource: str
    requested: int
    used: int
    capacity: int


def insufficient_resources(requests: Resources, node_info: NodeInfo) -> list[InsufficientResource]:
    """List the resources of which the node has too little for these requests, in upstream's order
    (``Fits``)."""
    taken = len(node_info.pods)
    capacity = node_info.allocatable.get("pods", 0)
    full = [InsufficientResource("pods", 1, taken, capacity)] if taken + 1 > capacity else []
    return full + [
        InsufficientResource(
            name,
            requests[name],
            node_info.requested.get(name, 0),
            node_info.allocatable.get(name, 0),
        )
        for name in _insufficient(requests, node_info.allocatable, node_info.requested)
    ]


def _insufficient(requests: Resources, allocatable: Resources, used: Resources) -> list[str]:
    """List the resources of which the node has too little left, in upstream's order."""
    names = []
    for name, amount in requests.items():  # a plain loop: this runs for every pod and node
        if amount > allocatable.get(name, 0) - used.get(name, 0) and amount > 0:
            names.append(name)
    if len(names) < 2:
        return names
    return sorted(
        names, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name)
    )


def _allocatable(node: Mapping[str, Any] | None) -> Resources:
    if node is None:
        return {}
    status = node.get("status") or {}
    return resource_list(status.get("allocatable"))
