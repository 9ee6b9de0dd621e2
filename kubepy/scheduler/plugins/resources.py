"""Whether a node has room: number of pods, cpu, memory and every other resource (``noderesources/fit.go``)."""

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
    Plugin,
    Rejection,
)

FIRST = ("cpu", "memory", "ephemeral-storage")  # upstream names these before the others


class NodeResourcesFit(Plugin):
    name = "NodeResourcesFit"
    looks_at_node_only = True
    wakes_on = frozenset({NODE_ADD, NODE_ALLOCATABLE, POD_DELETE, POD_SCALE_DOWN, SELF_UPDATE})

    def filter(self, pod: PodInfo, state: Any, info: NodeInfo) -> Rejection | None:
        full = len(info.pods) + 1 > info.allocatable.get("pods", 0)
        if not full and not pod.requests:
            return None
        short = _short(pod.requests, info.allocatable, info.requested)
        if not full and not short:
            return None
        reasons = (("Too many pods",) if full else ()) + tuple(f"Insufficient {name}" for name in short)
        hopeless = any(pod.requests[name] > info.allocatable.get(name, 0) for name in short)
        return Rejection(reasons, not hopeless, self.name)

    def may_help(self, pod: PodInfo, event: ClusterEvent) -> bool:
        if not event.actions & {NODE_ADD, NODE_ALLOCATABLE}:
            return True
        allocatable = _allocatable(event.new)
        if _short(pod.requests, allocatable, {}) or allocatable.get("pods", 0) < 1:
            return False
        return event.old is None or _has_grown(pod, _allocatable(event.old), allocatable)


class Lack(NamedTuple):
    """A resource of which a node has too little: what is asked for, taken, and there in all."""

    resource: str
    requested: int
    used: int
    capacity: int


def lacking(requests: Resources, info: NodeInfo) -> list[Lack]:
    """What the node lacks for these requests, in upstream's order (``Fits``)."""
    taken, capacity = len(info.pods), info.allocatable.get("pods", 0)
    full = [Lack("pods", 1, taken, capacity)] if taken + 1 > capacity else []
    return full + [
        Lack(name, requests[name], info.requested.get(name, 0), info.allocatable.get(name, 0))
        for name in _short(requests, info.allocatable, info.requested)
    ]


def _short(requests: Resources, allocatable: Resources, used: Resources) -> list[str]:
    """The resources of which the node has too little left, in upstream's order."""
    short = []
    for name, amount in requests.items():  # a plain loop: this runs for every pod and node
        if amount > allocatable.get(name, 0) - used.get(name, 0) and amount > 0:
            short.append(name)
    if len(short) < 2:
        return short
    return sorted(short, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))


def _allocatable(node: Mapping[str, Any] | None) -> Resources:
    return resource_list(((node or {}).get("status") or {}).get("allocatable"))


def _has_grown(pod: PodInfo, before: Resources, after: Resources) -> bool:
    wanted = ["pods", *(name for name, amount in pod.requests.items() if amount)]
    return any(after.get(name, 0) > before.get(name, 0) for name in wanted)
