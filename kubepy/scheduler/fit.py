"""Looking for nodes that fit, and what is said when there is none (upstream: ``schedule_one.go``, ``FitError``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from operator import attrgetter
from typing import Any

from kubepy.scheduler.cache import NodeInfo, PodInfo
from kubepy.scheduler.framework import Plugin, Rejection, Skip, View

MIN_NODES_TO_FIND = 100  # below that many every node is looked at
MIN_PERCENTAGE = 5
WORTH_REMEMBERING = 16  # with fewer nodes to look at, what they answer is not kept for the next pod of the template
UNKNOWN: Any = object()


@dataclass
class Cycle:
    """One attempt to place one pod: the plugins that have a say in it, each with its state.

    ``signature``: under what nodes remember the answer of the first plugins, those that look at the node only.
    """

    pod: PodInfo
    view: View
    states: list[tuple[Plugin, Any]] = field(default_factory=list)
    signature: str = ""
    remembered: int = 0  # how many plugins those are

    def remember(self) -> None:
        self.signature = self.pod.signature
        self.remembered = sum(1 for _ in takewhile(lambda state: state[0].looks_at_node_only, self.states))

    def clone(self) -> Cycle:
        return Cycle(self.pod, self.view, [(plugin, plugin.clone(state)) for plugin, state in self.states])

    def update(self, other: PodInfo, info: NodeInfo, count: int) -> None:
        """Another pod was put on or taken off a node, on trial."""
        for plugin, state in self.states:
            plugin.update(self.pod, state, other, info, count)

    def rejection(self, info: NodeInfo) -> Rejection | None:
        """What the first plugin that minds this node says."""
        if not self.signature:
            return self._first(self.states, info)
        found: Rejection | None = info.memo.get(self.signature, UNKNOWN)
        if found is UNKNOWN:
            found = info.memo[self.signature] = self._first(self.states[:self.remembered], info)
        if found is not None or self.remembered == len(self.states):
            return found
        return self._first(self.states[self.remembered:], info)

    def _first(self, states: Iterable[tuple[Plugin, Any]], info: NodeInfo) -> Rejection | None:
        for plugin, state in states:
            if (found := plugin.filter(self.pod, state, info)) is not None:
                return found
        return None

    def rejection_with_nominated(self, info: NodeInfo) -> Rejection | None:
        """The same, where pods of no lower priority that were promised this node count as if they were there."""
        nominated = self.view.cache.nominated(info.name)
        promised = nominated and [
            other
            for other in nominated
            if other.priority >= self.pod.priority and other.key != self.pod.key and other.key not in info.pods
        ]
        if promised:
            trial, crowded = self.clone(), info.copy()
            for other in promised:
                crowded.add(other)
                trial.update(other, crowded, 1)
            if (found := trial.rejection(crowded)) is not None:
                return found
        return self.rejection(info)


NO_REASON = Rejection((), False)


@dataclass
class Diagnosis:
    """Why no node was found. ``absent`` speaks for the nodes that were not looked at one by one."""

    nodes: dict[str, Rejection] = field(default_factory=dict)
    absent: Rejection = NO_REASON
    pre_filter: str = ""  # set when the pod was turned away before any node was looked at
    plugins: frozenset[str] = frozenset()
    candidates: frozenset[str] | None = None  # the only nodes that could fit; None: all

    def of(self, node: str) -> Rejection:
        return self.nodes.get(node, self.absent)


@dataclass
class Search:
    """The outcome of looking: nodes that fit, by name, or why there are none."""

    cycle: Cycle
    feasible: list[NodeInfo]
    diagnosis: Diagnosis


def prepare(pod: PodInfo, view: View, plugins: Iterable[Plugin]) -> tuple[Cycle, Diagnosis]:
    """Run the ``pre_filter`` of every plugin."""
    cycle, diagnosis = Cycle(pod, view), Diagnosis()
    limiting: list[str] = []
    for plugin in plugins:
        verdict = plugin.pre_filter(pod, view)
        if isinstance(verdict, Skip):
            continue
        if isinstance(verdict, Rejection):
            return cycle, _turned_away(verdict)
        cycle.states.append((plugin, verdict.state))
        if verdict.nodes is not None:
            limiting.append(plugin.name)
            before = diagnosis.candidates
            diagnosis.candidates = verdict.nodes if before is None else before & verdict.nodes
    if limiting:
        diagnosis.plugins = frozenset(limiting)
        diagnosis.absent = Rejection((f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(limiting))}]",), False)
    return cycle, diagnosis


def _turned_away(verdict: Rejection) -> Diagnosis:
    return Diagnosis(absent=verdict, pre_filter=", ".join(verdict.reasons), plugins=frozenset({verdict.plugin}))


def search(pod: PodInfo, view: View, plugins: Iterable[Plugin], start: int = 0) -> Search:
    """Look for nodes that fit, from the ``start``-th on; in a large cluster not at all of them."""
    cycle, diagnosis = prepare(pod, view, plugins)
    if diagnosis.pre_filter:
        return Search(cycle, [], diagnosis)
    if (nominated := _nominated_node(pod, view)) is not None and cycle.rejection_with_nominated(nominated) is None:
        return Search(cycle, [nominated], diagnosis)
    nodes = _nodes_to_look_at(view, diagnosis, start)
    if len(nodes) >= WORTH_REMEMBERING:
        cycle.remember()
    wanted = nodes_to_find(len(nodes))
    feasible = []
    ask = cycle.rejection_with_nominated if view.cache.has_nominations() else cycle.rejection
    for info in nodes:
        if (found := ask(info)) is not None:
            diagnosis.nodes[info.name] = found
            continue
        feasible.append(info)
        if len(feasible) == wanted:
            break
    diagnosis.plugins |= {found.plugin for found in diagnosis.nodes.values()}
    return Search(cycle, sorted(feasible, key=attrgetter("name")), diagnosis)


def _nominated_node(pod: PodInfo, view: View) -> NodeInfo | None:
    name = (pod.pod.get("status") or {}).get("nominatedNodeName")
    return view.cache.get(name) if name else None


def _nodes_to_look_at(view: View, diagnosis: Diagnosis, start: int) -> list[NodeInfo]:
    if diagnosis.candidates is not None:
        found = (view.cache.get(name) for name in sorted(diagnosis.candidates))
        return [info for info in found if info is not None]
    nodes = view.cache.nodes()
    return nodes if start == 0 else nodes[start:] + nodes[:start]


def nodes_to_find(number: int) -> int:
    """How many nodes that fit are enough to choose from (``numFeasibleNodesToFind``)."""
    if number < MIN_NODES_TO_FIND:
        return number
    percentage = max(50 - number // 125, MIN_PERCENTAGE)
    return max(number * percentage // 100, MIN_NODES_TO_FIND)


def fit_message(number: int, diagnosis: Diagnosis, post_filter: str) -> str:
    """``0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. …`` (``FitError.Error``)."""
    message = f"0/{number} nodes are available:"
    if diagnosis.pre_filter:
        message += f" {diagnosis.pre_filter}."
    elif reasons := ", ".join(_histogram(number, diagnosis.nodes, diagnosis.absent)):
        message += f" {reasons}."
    return f"{message} {post_filter}" if post_filter else message


def _histogram(number: int, nodes: Mapping[str, Rejection], absent: Rejection) -> list[str]:
    counts = Counter(reason for found in nodes.values() for reason in found.reasons)
    if len(nodes) < number:
        for reason in absent.reasons:
            counts[reason] += number - len(nodes)
    return sorted(f"{count} {reason}" for reason, count in counts.items())
