"""Find the nodes that a pod fits on, and say why when there are none (upstream:
``schedule_one.go``, ``FitError``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from operator import attrgetter
from typing import Any

from kubepy.scheduler.cache import NodeInfo, PodInfo
from kubepy.scheduler.framework import FilterPlugin, Handle, PluginStatus, Skip

MIN_FEASIBLE_NODES_TO_FIND = 100  # in a cluster of fewer nodes every node is looked at
MIN_FEASIBLE_NODES_PERCENTAGE = 5
MIN_NODES_TO_MEMOIZE = (
    16  # with fewer nodes to look at, their answers are not kept for the next pod of the template
)
NO_MEMO: Any = object()


@dataclass
class CycleState:
    """One attempt to schedule one pod: the plugins that have a say in it, each with its state.

    ``signature`` is the key under which nodes keep the answer of the first ``memoized`` plugins,
    those that look at the node only.
    """

    pod: PodInfo
    handle: Handle
    states: list[tuple[FilterPlugin, Any]] = field(default_factory=list)
    signature: str = ""
    memoized: int = 0

    def memoize(self) -> None:
        """Let nodes keep their answers for the next pod of the same template."""
        self.signature = self.pod.signature
        self.memoized = sum(
            1 for _ in takewhile(lambda state: state[0].looks_at_node_only, self.states)
        )

    def clone(self) -> CycleState:
        return CycleState(
            self.pod, self.handle, [(plugin, plugin.clone(state)) for plugin, state in self.states]
        )

    def update(self, other: PodInfo, node_info: NodeInfo, count: int) -> None:
        """Correct the states: another pod was added to (1) or removed from (-1) a node, on
        trial."""
        for plugin, state in self.states:
            plugin.update(self.pod, state, other, node_info, count)

    def run_filter_plugins(self, node_info: NodeInfo) -> PluginStatus | None:
        """Return the answer of the first plugin that rejects this node; None when the pod fits."""
        if not self.signature:
            return self._first_status(self.states, node_info)
        status: PluginStatus | None = node_info.memo.get(self.signature, NO_MEMO)
        if status is NO_MEMO:
            status = self._first_status(self.states[: self.memoized], node_info)
            if status is not None or node_info.is_filled:
                node_info.memo[self.signature] = status
        if status is not None or self.memoized == len(self.states):
            return status
        return self._first_status(self.states[self.memoized :], node_info)

    def _first_status(
        self, states: Iterable[tuple[FilterPlugin, Any]], node_info: NodeInfo
    ) -> PluginStatus | None:
        for plugin, state in states:
            status = plugin.filter(self.pod, state, node_info)
            if status is not None:
                return status
        return None

    def run_filter_plugins_with_nominated_pods(self, node_info: NodeInfo) -> PluginStatus | None:
        """Run the filters, first as if nominated pods of no lower priority were on this node
        already."""
        nominated = self.handle.cache.nominated(node_info.name)
        others = nominated and [
            other
            for other in nominated
            if other.priority >= self.pod.priority
            and other.key != self.pod.key
            and other.key not in node_info.pods
        ]
        if others:
            trial = self.clone()
            trial_node = node_info.copy()
            for other in others:
                trial_node.add(other)
                trial.update(other, trial_node, 1)
            status = trial.run_filter_plugins(trial_node)
            if status is not None:
                return status

        return self.run_filter_plugins(node_info)


NO_STATUS = PluginStatus((), False)


@dataclass
class Diagnosis:
    """The reasons why no node was found (``framework.Diagnosis``).

    ``absent_nodes_status`` holds for the nodes that were not looked at one by one.
    ``pre_filter_message`` is set when the pod was rejected before any node was looked at. Only the
    nodes in ``node_names`` could fit (None: all).
    """

    node_to_status: dict[str, PluginStatus] = field(default_factory=dict)
    absent_nodes_status: PluginStatus = NO_STATUS
    pre_filter_message: str = ""
    unschedulable_plugins: frozenset[str] = frozenset()
    node_names: frozenset[str] | None = None

    def status_of(self, node: str) -> PluginStatus:
        return self.node_to_status.get(node, self.absent_nodes_status)


@dataclass
class FitResult:
    """The feasible nodes of a pod, by name, or the reasons why there are none."""

    cycle: CycleState
    feasible: list[NodeInfo]
    diagnosis: Diagnosis


def run_pre_filter_plugins(
    pod: PodInfo, handle: Handle, plugins: Iterable[FilterPlugin]
) -> tuple[CycleState, Diagnosis]:
    """Run the ``pre_filter`` of every plugin, up to the first that rejects the pod."""
    cycle = CycleState(pod, handle)
    diagnosis = Diagnosis()
    limiting: list[str] = []
    for plugin in plugins:
        result = plugin.pre_filter(pod, handle)
        if isinstance(result, Skip):
            continue
        if isinstance(result, PluginStatus):
            return cycle, Diagnosis(
                absent_nodes_status=result,
                pre_filter_message=", ".join(result.reasons),
                unschedulable_plugins=frozenset({result.plugin}),
            )
        cycle.states.append((plugin, result.state))
        if result.node_names is not None:
            limiting.append(plugin.name)
            before = diagnosis.node_names
            if before is None:
                diagnosis.node_names = result.node_names
            else:
                diagnosis.node_names = before & result.node_names

    if limiting:
        diagnosis.unschedulable_plugins = frozenset(limiting)
        reason = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(limiting))}]"
        diagnosis.absent_nodes_status = PluginStatus((reason,), False)

    return cycle, diagnosis


def find_nodes_that_fit_pod(
    pod: PodInfo, handle: Handle, plugins: Iterable[FilterPlugin], start: int = 0
) -> FitResult:
    """Look for nodes that fit, from the ``start``-th on; in a large cluster not at all of them."""
    cache = handle.cache
    cycle, diagnosis = run_pre_filter_plugins(pod, handle, plugins)
    if diagnosis.pre_filter_message:
        return FitResult(cycle, [], diagnosis)
    nominated_name = (pod.pod.get("status") or {}).get("nominatedNodeName")
    nominated = cache.get(nominated_name) if nominated_name else None
    if nominated is not None and cycle.run_filter_plugins_with_nominated_pods(nominated) is None:
        return FitResult(cycle, [nominated], diagnosis)
    if diagnosis.node_names is not None:
        found = (cache.get(name) for name in sorted(diagnosis.node_names))
        nodes = [node_info for node_info in found if node_info is not None]
    else:
        nodes = cache.nodes()
        nodes = nodes[start:] + nodes[:start] if start else nodes

    if len(nodes) >= MIN_NODES_TO_MEMOIZE:
        cycle.memoize()
    num_nodes_to_find = num_feasible_nodes_to_find(len(nodes))
    feasible = []
    if cache.has_nominations():
        run = cycle.run_filter_plugins_with_nominated_pods
    else:
        run = cycle.run_filter_plugins

    for node_info in nodes:
        status = run(node_info)
        if status is not None:
            diagnosis.node_to_status[node_info.name] = status
            continue
        feasible.append(node_info)
        if len(feasible) == num_nodes_to_find:
            break

    diagnosis.unschedulable_plugins |= {
        status.plugin for status in diagnosis.node_to_status.values()
    }
    return FitResult(cycle, sorted(feasible, key=attrgetter("name")), diagnosis)


def num_feasible_nodes_to_find(number: int) -> int:
    """Return how many feasible nodes are enough to choose from (``numFeasibleNodesToFind``)."""
    if number < MIN_FEASIBLE_NODES_TO_FIND:
        return number
    percentage = max(50 - number // 125, MIN_FEASIBLE_NODES_PERCENTAGE)
    return max(number * percentage // 100, MIN_FEASIBLE_NODES_TO_FIND)


def fit_error_message(number: int, diagnosis: Diagnosis, post_filter: str) -> str:
    """Say ``0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. …``
    (``FitError.Error``)."""
    message = f"0/{number} nodes are available:"
    if diagnosis.pre_filter_message:
        message += f" {diagnosis.pre_filter_message}."
    else:
        counts = Counter(
            reason for status in diagnosis.node_to_status.values() for reason in status.reasons
        )
        absent = number - len(diagnosis.node_to_status)
        if absent > 0:
            counts.update(dict.fromkeys(diagnosis.absent_nodes_status.reasons, absent))
        if counts:
            message += (
                f" {', '.join(sorted(f'{count} {reason}' for reason, count in counts.items()))}."
            )

    if post_filter:
        return f"{message} {post_filter}"
    return message
