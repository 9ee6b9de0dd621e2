"""What a DaemonSet has on every node. Each node is judged anew only when something there has changed: a rollout over
many nodes is as many syncs, and none of them may cost what all nodes do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from kubepy.api.meta import Object, is_being_deleted
from kubepy.api.objects.pods import is_pod_ready, is_pod_terminal
from kubepy.controllers.daemonset.manage import Changes, changes_on_node, unscheduled_without_node
from kubepy.controllers.daemonset.placement import NOWHERE, Placement
from kubepy.controllers.daemonset.pods import target_node, template_generation
from kubepy.controllers.daemonset.rolling_update import NodeState, decide, limits_of, node_state
from kubepy.controllers.daemonset.status import Counts, count_on_node
from kubepy.runtime.reconcile import Key


class Judgement(NamedTuple):
    """What one node comes to. ``state`` None: it neither has nor wants a pod. ``is_passing``: time alone changes it."""

    counts: Counts
    state: NodeState | None
    changes: Changes
    is_passing: bool


NOTHING = Judgement(Counts(), None, Changes(), False)


class Ledger:
    """The claimed pods of one DaemonSet by node, and what follows from them.

    Pods are put in as they change; :meth:`look` then brings everything up to date.
    """

    def __init__(self) -> None:
        self._pods: dict[Key, Object] = {}
        self._by_node: dict[str, dict[Key, Object]] = {}
        self._judged: dict[str, Judgement] = {}
        self._changed: set[str] = set()  # nodes to be judged again
        self._acting: set[str] = set()  # nodes where something is to be done
        self._passing: set[str] = set()
        self._totals = list(Counts())
        self._basis: tuple[Any, ...] = ()
        self._placements: Mapping[str, Placement] = {}

    # --- pods

    def put(self, key: Key, pod: Object | None) -> None:
        """Take in a pod as it is now; None: it is gone, or not the DaemonSet's any more."""
        before = self._pods.pop(key, None)
        if before is not None:
            self._take_off(key, target_node(before))
        if pod is not None:
            self._pods[key] = pod
            # Those that have ended and are being deleted are of no more concern (``getNodesToDaemonPods``).
            if (node := target_node(pod)) and not (is_being_deleted(pod) and is_pod_terminal(pod)):
                self._by_node.setdefault(node, {})[key] = pod
                self._changed.add(node)

    def _take_off(self, key: Key, node: str) -> None:
        pods = self._by_node.get(node, {})
        if pods.pop(key, None) is not None:
            self._changed.add(node)
        if not pods:
            self._by_node.pop(node, None)

    def pods(self) -> list[Object]:
        """In key order."""
        return [self._pods[key] for key in sorted(self._pods)]

    def _on(self, node: str) -> list[Object]:
        pods = self._by_node.get(node, {})
        return list(pods.values()) if len(pods) < 2 else [pods[key] for key in sorted(pods)]

    # --- judging

    def look(self, daemon_set: Object, placements: Mapping[str, Placement], hash_: str, now: datetime) -> None:
        """Judge what has changed. ``placements``: of every node there is, by name, in order."""
        basis = daemon_set["spec"], hash_, template_generation(daemon_set)
        if basis != self._basis:
            self._basis = basis
            self._changed.update(placements, self._by_node, self._judged)
        if placements is not self._placements:
            self._changed.update(_differing(self._placements, placements))
            self._placements = placements
        for node in self._changed | self._passing:
            self._settle(node, self._judge(daemon_set, node, hash_, now))
        self._changed.clear()

    def _judge(self, daemon_set: Object, node: str, hash_: str, now: datetime) -> Judgement:
        placement, pods = self._placements.get(node), self._on(node)
        if placement is None and not pods:
            return NOTHING
        state = node_state(daemon_set, node, pods, hash_, now) if pods or (placement or NOWHERE).should_run else None
        if placement is None:  # there is no such node
            return Judgement(Counts(), state, Changes(), is_passing(daemon_set, pods))
        changes = Changes()
        changes_on_node(changes, daemon_set, node, placement, pods, hash_, now)
        counts = count_on_node(daemon_set, placement, pods, hash_, now)
        return Judgement(counts, state, changes, is_passing(daemon_set, pods))

    def _settle(self, node: str, judgement: Judgement) -> None:
        before = self._judged.pop(node, NOTHING).counts
        self._totals = [sum_ - old + new for sum_, old, new in
                        zip(self._totals, before, judgement.counts, strict=True)]
        self._acting.discard(node)
        self._passing.discard(node)
        if judgement is not NOTHING:
            self._judged[node] = judgement
        if judgement.changes != Changes():
            self._acting.add(node)
        if judgement.is_passing:
            self._passing.add(node)

    # --- what follows

    @property
    def counts(self) -> Counts:
        return Counts(*self._totals)

    def manage(self) -> Changes:
        """The pods to make and those to delete, on each node for itself (``manage``)."""
        found = Changes()
        for node in sorted(self._acting):
            found.add(self._judged[node].changes)
        strangers = self._by_node.keys() - self._placements.keys()
        found.delete += unscheduled_without_node(self._placements, {node: self._on(node) for node in strangers})
        return found

    def rolling_update(self, daemon_set: Object) -> Changes:
        """What the rolling update does next. Raises ValueError."""
        return decide(self._states(), limits_of(daemon_set, self.counts.desired), self._placements)

    def _states(self) -> Iterator[NodeState]:
        judged = (self._judged[node] for node in sorted(self._judged))
        return (one.state for one in judged if one.state is not None)


def is_passing(daemon_set: Object, pods: Iterable[Object]) -> bool:
    """Whether a pod is ready that must be so for a while until it is available."""
    return bool(daemon_set["spec"].get("minReadySeconds")) and any(map(is_pod_ready, pods))


def _differing(before: Mapping[str, Placement], now: Mapping[str, Placement]) -> set[str]:
    return {node for node in before.keys() | now.keys() if before.get(node) != now.get(node)}
