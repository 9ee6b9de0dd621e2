"""The rolling update of a DaemonSet: old pods that give way to new ones
(``pkg/controller/daemon/update.go``).

:func:`surge` decides with maxSurge, :func:`old_pods_to_delete` without. Pure functions of a
DaemonSetState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.api.values.gonumbers import scaled_value
from kubepy.controllers.daemonset.placement import NOWHERE
from kubepy.controllers.daemonset.pods import find_updated_pods_on_node
from kubepy.controllers.daemonset.state import DaemonSetState

if TYPE_CHECKING:
    from kubepy.api.typed import DaemonSet, RollingUpdateDaemonSet

PodChanges = tuple[list[str], list[str]]  # nodes that need a pod, and names of pods to delete


def rolling_update(state: DaemonSetState) -> PodChanges:
    """Decide what the rolling update creates and deletes next (``rollingUpdate``). Raises
    ValueError."""
    desired = state.nodes.counts().desired
    max_surge, max_unavailable = updated_desired_node_counts(state.daemon_set, desired)
    if max_surge:
        return surge(state, max_surge, desired)
    return [], old_pods_to_delete(state, max_unavailable)


def old_pods_to_delete(state: DaemonSetState, max_unavailable: int) -> list[str]:
    """Without surge: delete old pods, unavailable ones all at once, available ones as far as
    maxUnavailable allows.

    Their successors are made when they are gone. A node with no pod, or with one of each, counts as
    unavailable.
    """
    nodes = state.nodes
    allowed = nodes.allowed_replacement_pods
    pods_to_delete = [allowed[node] for node in sorted(allowed)]
    remaining_unavailable = max_unavailable - nodes.num_unavailable
    if remaining_unavailable > 0:
        candidate_nodes = sorted(nodes.candidate_pods)[:remaining_unavailable]
        pods_to_delete += [nodes.candidate_pods[node] for node in candidate_nodes]
    return pods_to_delete


def surge(state: DaemonSetState, max_surge: int, desired: int) -> PodChanges:
    """With surge: a new pod beside an old available one on at most maxSurge nodes; beside an
    unavailable one at once.

    An old pod goes when the new one beside it is available. On a node that should no longer run the
    pod it goes when enough others are available, so that moving a DaemonSet from node to node
    leaves no gap.
    """
    num_surge = 0
    num_available = 0
    allowed_new_nodes: list[str] = []
    candidate_new_nodes: list[str] = []
    old_pods: list[str] = []
    should_not_run_pods: list[str] = []
    nodes = state.nodes
    criteria = state.criteria
    for node in nodes.nodes_to_update():
        new_pod, old_pod, has_surplus = find_updated_pods_on_node(nodes.pods_on(node), criteria)
        if has_surplus:
            num_surge += 1
            continue
        new_is_available = new_pod is not None and criteria.is_available(new_pod)
        if old_pod is None:
            num_available += new_is_available
            continue
        old_is_available = criteria.is_available(old_pod)
        num_available += old_is_available
        if new_pod is not None:
            if new_is_available:
                old_pods.append(old_pod.name)
            else:
                num_surge += 1
        elif nodes.placements.get(node, NOWHERE).should_run:
            if old_is_available:
                candidate_new_nodes.append(node)
            else:
                allowed_new_nodes.append(node)
        elif old_is_available:
            should_not_run_pods.append(old_pod.name)
        else:
            old_pods.append(old_pod.name)

    remaining_surge = max(max_surge - num_surge, 0)
    num_deletable = max(num_available - desired, 0)
    return (
        [*allowed_new_nodes, *candidate_new_nodes[:remaining_surge]],
        [*old_pods, *should_not_run_pods[:num_deletable]],
    )


# --- strategy -------------------------------------------------------------------------------------


def updated_desired_node_counts(daemon_set: DaemonSet, desired: int) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable as numbers of nodes; percentages are of the desired nodes
    and round up.

    Never both are zero: then one may be unavailable (``updatedDesiredNodeCounts``). Raises
    ValueError.
    """
    max_surge = surge_count(daemon_set, desired)
    max_unavailable = scaled_value(
        _rolling_update(daemon_set).get("maxUnavailable"), desired, round_up=True
    )
    if desired > 0 and max_surge == 0 and max_unavailable == 0:
        max_unavailable = 1
    return max_surge, max_unavailable


def surge_count(daemon_set: DaemonSet, desired: int) -> int:
    """Return how many nodes may have a second pod; 0 unless the strategy is RollingUpdate. Raises
    ValueError."""
    return scaled_value(_rolling_update(daemon_set).get("maxSurge"), desired, round_up=True)


def allows_surge(daemon_set: DaemonSet) -> bool:
    """Return whether a node may have two pods at all (``AllowsSurge``)."""
    try:
        return surge_count(daemon_set, 1) > 0
    except ValueError:
        return False


def _rolling_update(daemon_set: DaemonSet) -> RollingUpdateDaemonSet:
    strategy = daemon_set["spec"].get("updateStrategy") or {}
    if strategy.get("type") != "RollingUpdate":
        return {}
    return strategy.get("rollingUpdate") or {}
