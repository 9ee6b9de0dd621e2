"""The rolling update of a DaemonSet: old pods that give way to new ones
(``pkg/controller/daemon/update.go``).

:func:`surge` decides with maxSurge, :func:`replace` without. Pure functions of a DaemonSetState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubepy.api.values.gonumbers import scaled_value
from kubepy.controllers.daemonset.state import DaemonSetState

if TYPE_CHECKING:
    from kubepy.api.typed import DaemonSet, RollingUpdateDaemonSet

PodChanges = tuple[list[str], list[str]]  # nodes that need a pod, and names of pods to delete


def rolling_update(state: DaemonSetState) -> PodChanges:
    """Decide what the rolling update creates and deletes next. Raises ValueError."""
    desired = state.count_nodes().desired
    max_surge, max_unavailable = updated_desired_node_counts(state.daemon_set, desired)
    return surge(state, max_surge, desired) if max_surge else replace(state, max_unavailable)


def replace(state: DaemonSetState, max_unavailable: int) -> PodChanges:
    """Without surge: delete old pods, unavailable ones all at once, available ones as far as
    maxUnavailable allows.

    The manage step makes their successors. A node with no pod, or with one of each, counts as
    unavailable.
    """
    unavailable = 0
    allowed_replacement: list[str] = []
    candidates: list[str] = []
    for facts, nodes in state.nodes_by_facts().items():
        unavailable += len(nodes) * facts.is_unavailable
        if facts.is_old:
            (allowed_replacement if facts.is_unavailable else candidates).extend(nodes)
    chosen = sorted(allowed_replacement)
    if unavailable < max_unavailable:
        chosen += sorted(candidates)[: max_unavailable - unavailable]
    return [], [
        old.name for node in chosen if (old := state.updated_and_old_pod(node)[1]) is not None
    ]


def surge(state: DaemonSetState, max_surge: int, desired: int) -> PodChanges:
    """With surge: a new pod beside an old available one on at most maxSurge nodes; beside an
    unavailable one at once.

    An old pod goes when the new one beside it is available. On a node that should no longer run the
    pod it goes when enough others are available, so that moving a DaemonSet from node to node
    leaves no gap.
    """
    surging = available_nodes = 0
    new_nodes: list[str] = []
    old_pods: list[str] = []
    candidate_nodes: list[str] = []
    should_not_run_pods: list[str] = []
    for node in nodes_to_update(state):
        new, old, has_surplus = state.updated_and_old_pod(node)
        if has_surplus:
            surging += 1
            continue
        new_is_available, old_is_available = (
            pod is not None and state.is_available(pod) for pod in (new, old)
        )
        available_nodes += old_is_available if old else new_is_available
        if old is None:
            continue
        if new is not None:
            surging += not new_is_available
            if new_is_available:
                old_pods.append(old.name)
        elif not state.placement(node).should_run:
            (should_not_run_pods if old_is_available else old_pods).append(old.name)
        else:
            (candidate_nodes if old_is_available else new_nodes).append(node)
    return (
        [*new_nodes, *candidate_nodes[: max(max_surge - surging, 0)]],
        [*old_pods, *should_not_run_pods[: max(available_nodes - desired, 0)]],
    )


def nodes_to_update(state: DaemonSetState) -> list[str]:
    """Return the nodes that have a pod or should have one, by name."""
    should_run = [node for node, placement in state.placements.items() if placement.should_run]
    if state.nodes.pods_on.keys() <= set(should_run):
        return should_run
    return sorted({*should_run, *state.nodes.pods_on})


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
    return (strategy.get("rollingUpdate") or {}) if strategy.get("type") == "RollingUpdate" else {}
