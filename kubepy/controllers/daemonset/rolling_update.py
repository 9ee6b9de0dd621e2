"""Which old pods give way to new ones (``pkg/controller/daemon/update.go``, ``rollingUpdate``). Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from kubepy.api.meta import Object, is_being_deleted, name_of
from kubepy.api.objects.pods import is_pod_available
from kubepy.controllers.daemonset.manage import Changes
from kubepy.controllers.daemonset.placement import Placement
from kubepy.controllers.daemonset.pods import (
    is_updated,
    surge_count,
    template_generation,
    unavailable_count,
)


class Limits(NamedTuple):
    """``desired``: how many nodes should run the pod. Never zero for both others: then one may be unavailable."""

    max_surge: int
    max_unavailable: int
    desired: int


class NodeState(NamedTuple):
    """The pods of a node that are not being deleted: at most one of each template, or ``crowded``, which the manage
    step cleans up first (``findUpdatedPodsOnNode``)."""

    node: str
    new: Object | None
    old: Object | None
    crowded: bool
    new_is_available: bool
    old_is_available: bool


def decide(states: Iterable[NodeState], limits: Limits, placements: Mapping[str, Placement]) -> Changes:
    """What to create and delete next. ``states``: every node that has a pod or should have one, by name."""
    return _replace(states, limits) if limits.max_surge == 0 else _surge(states, limits, placements)


def limits_of(daemon_set: Object, desired: int) -> Limits:
    """``updatedDesiredNodeCounts``; percentages are of the desired nodes and round up. Raises ValueError."""
    max_surge, max_unavailable = surge_count(daemon_set, desired), unavailable_count(daemon_set, desired)
    if desired > 0 and max_surge == 0 and max_unavailable == 0:
        max_unavailable = 1
    return Limits(max_surge, max_unavailable, desired)


def node_state(daemon_set: Object, node: str, pods: Iterable[Object], hash_: str, now: datetime) -> NodeState:
    generation = template_generation(daemon_set)
    min_ready_seconds = daemon_set["spec"].get("minReadySeconds") or 0
    new: list[Object] = []
    old: list[Object] = []
    for pod in pods:
        if not is_being_deleted(pod):
            (new if is_updated(pod, hash_, generation) else old).append(pod)
    crowded = len(new) > 1 or len(old) > 1
    new_is_available, old_is_available = (bool(found) and is_pod_available(found[0], min_ready_seconds, now)
                                          for found in (new, old))
    return NodeState(node, new[0] if new else None, old[0] if old else None, crowded, new_is_available,
                     old_is_available)


def _replace(states: Iterable[NodeState], limits: Limits) -> Changes:
    """Without surge: delete old pods, unavailable ones all at once, available ones as far as maxUnavailable allows.

    The manage step makes their successors. A node with no pod, or with one of each, counts as unavailable.
    """
    unavailable = 0
    replaceable: list[str] = []
    candidates: list[str] = []
    for state in states:
        is_single = not state.crowded and (state.new is None) != (state.old is None)
        available = is_single and (state.new_is_available or state.old_is_available)
        unavailable += not available
        if is_single and state.old is not None:
            (candidates if available else replaceable).append(name_of(state.old))
    return Changes(delete=[*replaceable, *candidates[:max(limits.max_unavailable - unavailable, 0)]])


def _surge(states: Iterable[NodeState], limits: Limits, placements: Mapping[str, Placement]) -> Changes:
    """With surge: a new pod beside an old available one on at most maxSurge nodes; beside an unavailable one at once.

    An old pod goes when the new one beside it is available. On a node that should no longer run the pod it goes when
    enough others are available, so that moving a DaemonSet from node to node leaves no gap.
    """
    changes, surging, available_nodes = Changes(), 0, 0
    candidates: list[str] = []
    leaving: list[str] = []
    for state in states:
        if state.crowded:
            surging += 1
            continue
        available_nodes += state.old_is_available if state.old else state.new_is_available
        if state.old is None:
            continue
        if state.new is not None:
            surging += not state.new_is_available
            if state.new_is_available:
                changes.delete.append(name_of(state.old))
        elif not _should_run(placements, state.node):
            (leaving if state.old_is_available else changes.delete).append(name_of(state.old))
        else:
            (candidates if state.old_is_available else changes.create).append(state.node)
    changes.delete += leaving[:max(available_nodes - limits.desired, 0)]
    changes.create += candidates[:max(limits.max_surge - surging, 0)]
    return changes


def _should_run(placements: Mapping[str, Placement], node: str) -> bool:
    placement = placements.get(node)
    return placement is not None and placement.should_run
