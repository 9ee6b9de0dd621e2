"""The state of a DaemonSet that one sync goes by, as it was observed when the sync began."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.clock import format_micro_time, parse_time
from kubepy.api.meta import uid_of
from kubepy.api.objects.pods import TERMINAL_PHASES
from kubepy.controllers.daemonset.placement import NOWHERE, Placement
from kubepy.controllers.daemonset.pods import DaemonPod, oldest_first

if TYPE_CHECKING:
    from kubepy.api.typed import ControllerRevision, DaemonSet
    from kubepy.runtime.reconcile import Key


class DaemonSetState(NamedTuple):
    """Everything that :func:`~kubepy.controllers.daemonset.decide.decide` decides by. Nobody
    changes it."""

    key: Key
    daemon_set: DaemonSet
    hash: str  # of the current revision
    template_generation: (
        str | None
    )  # that pods of the present template carry; None where only the hash counts
    nodes: DaemonNodes
    placements: Mapping[str, Placement]  # of all nodes, by name, in order
    failed_pods_backoff: FailedPodsBackoff
    min_ready_seconds: int
    latest_available: datetime  # pods are available that have been Ready since then
    now: datetime
    pods: Collection[DaemonPod] = ()  # all of them
    old_revisions: Sequence[ControllerRevision] = ()

    def placement(self, node: str) -> Placement:
        """Return where a node stands; one that is not there runs nothing."""
        return self.placements.get(node, NOWHERE)

    def pods_on(self, node: str) -> Sequence[DaemonPod]:
        """Return the pods that run on a node or are meant for it, by name."""
        return self.nodes.pods_on.get(node, ())

    def is_updated(self, pod: DaemonPod) -> bool:
        """Return whether a pod is of the present template, by its hash or by the older generation
        label (``IsPodUpdated``)."""
        return (pod.hash == self.hash and bool(self.hash)) or (
            self.template_generation is not None
            and pod.template_generation == self.template_generation
        )

    def is_available(self, pod: DaemonPod) -> bool:
        """Return whether a pod has been Ready for ``minReadySeconds`` (``IsPodAvailable``)."""
        return pod.is_ready and (
            not self.min_ready_seconds
            or (pod.ready_since is not None and pod.ready_since <= self.latest_available)
        )

    def nodes_by_facts(self) -> Mapping[NodeFacts, Collection[str]]:
        """Return all nodes, and those that only pods name, by what follows from them."""
        return self.nodes.by_facts(self)

    def count_nodes(self) -> Counts:
        """Count the nodes, and one pod on each, for the status."""
        numbers = [
            [len(nodes) * count for count in facts.counts]
            for facts, nodes in self.nodes_by_facts().items()
        ]
        return Counts(*map(sum, zip(*numbers, strict=True)))

    def updated_and_old_pod(self, node: str) -> UpdatedAndOldPod:
        """Return the new and the old pod of a node, of those that are not being deleted, and
        whether there are more of one template, which the manage step cleans up first
        (``findUpdatedPodsOnNode``)."""
        new: list[DaemonPod] = []
        old: list[DaemonPod] = []
        pods = self.pods_on(node)
        if len(pods) == 1 and pods[0].is_active:  # as most nodes
            return (pods[0], None, False) if self.is_updated(pods[0]) else (None, pods[0], False)
        for pod in pods:
            if not pod.is_being_deleted:
                (new if self.is_updated(pod) else old).append(pod)
        return new[0] if new else None, old[0] if old else None, len(new) > 1 or len(old) > 1


UpdatedAndOldPod = tuple["DaemonPod | None", "DaemonPod | None", bool]


# --- nodes ----------------------------------------------------------------------------------------


class Counts(NamedTuple):
    """Numbers of nodes, as the status gives them."""

    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0


class NodeFacts(NamedTuple):
    """The facts about a node that decisions of a sync go by; most nodes have the same.

    :ivar counts: what the node adds to the status.
    :ivar is_managed: the manage step may have something to do there.
    :ivar is_unavailable: a rolling update without surge counts the node as unavailable.
    :ivar is_old: the node's one pod is old, and may be replaced.
    """

    counts: Counts
    is_managed: bool
    is_unavailable: bool
    is_old: bool


def facts_of(state: DaemonSetState, node: str) -> NodeFacts:
    """Return the facts about one node."""
    pods, placement = state.pods_on(node), state.placement(node)
    should_run = placement.should_run
    if not pods:
        return NodeFacts(Counts(desired=int(should_run)), should_run, should_run, False)
    counts = Counts(misscheduled=int(node in state.placements))
    if should_run:  # one pod a node counts: the oldest scheduled one, also when it is being deleted
        pod = pods[0] if len(pods) == 1 else oldest_first(pods)[0]
        counts = Counts(
            1, 1, 0, int(pod.is_ready), int(state.is_available(pod)), int(state.is_updated(pod))
        )
    new, old, has_surplus = state.updated_and_old_pod(node)
    if has_surplus or (new is None) == (old is None):
        is_unavailable, is_old = True, False
    else:
        is_unavailable, is_old = not state.is_available(new or old or pods[0]), new is None
    is_settled = len(pods) == 1 and pods[0].is_active and placement.should_continue
    return NodeFacts(counts, not is_settled, is_unavailable, is_old)


class DaemonNodes:
    """The pods of a DaemonSet by node, and the facts about all nodes.

    Of nodes that are as they were the facts stay from sync to sync: a DaemonSet has many nodes, and
    few of them change between two syncs.
    """

    def __init__(self, pods: Iterable[DaemonPod] = ()) -> None:
        self.pods_on: dict[str, list[DaemonPod]] = {}  # by name; nodes without pods are left out
        self._changed: set[str] = (
            set()
        )  # nodes whose pods have changed since the facts about them were looked for
        self._facts: dict[str, NodeFacts] = {}
        self._by_facts: dict[NodeFacts, dict[str, None]] = {}
        self._basis: tuple[Any, ...] = ()  # all else that the facts follow from
        for pod in pods:
            self.replace(None, pod)

    def replace(self, old: DaemonPod | None, new: DaemonPod | None) -> None:
        """Take in another state of a pod. Pods that have ended and are being deleted are of no more
        concern (``getNodesToDaemonPods``)."""
        if old is not None and old.target_node:
            self._changed.add(old.target_node)
            kept = [pod for pod in self.pods_on.pop(old.target_node, ()) if pod.name != old.name]
            if kept:
                self.pods_on[old.target_node] = kept
        if (
            new is not None
            and new.target_node
            and not (new.is_being_deleted and new.phase in TERMINAL_PHASES)
        ):
            self._changed.add(new.target_node)
            pods = self.pods_on.setdefault(new.target_node, [])
            pods.append(new)
            if len(pods) > 1:
                pods.sort(key=attrgetter("name"))

    def by_facts(self, state: DaemonSetState) -> Mapping[NodeFacts, Collection[str]]:
        """Return the nodes of a state, whose nodes these are, by the facts about them."""
        basis = (
            state.placements,
            state.hash,
            state.template_generation,
            state.min_ready_seconds,
            state.latest_available if state.min_ready_seconds else None,
        )
        changed: Iterable[str] = sorted(self._changed)
        if not self._basis or self._basis[0] is not basis[0] or self._basis[1:] != basis[1:]:
            self._facts.clear()
            self._by_facts.clear()
            changed = sorted({*state.placements, *self.pods_on})
        for node in changed:
            if (before := self._facts.pop(node, None)) is not None:
                nodes = self._by_facts[before]
                del nodes[node]
                if not nodes:
                    del self._by_facts[before]
            if node in state.placements or node in self.pods_on:
                facts = self._facts[node] = facts_of(state, node)
                self._by_facts.setdefault(facts, {})[node] = None
        self._basis = basis
        self._changed.clear()
        return self._by_facts


# --- failed pods ----------------------------------------------------------------------------------

INITIAL_DELAY = timedelta(seconds=1)
MAX_DELAY = timedelta(minutes=15)
MAX_AGE = 2 * MAX_DELAY  # an entry that was not used for so long starts again


class _Delay(NamedTuple):
    length: timedelta
    since: datetime


class FailedPodsBackoff:
    """The time that a node's failed pod must stay before it is replaced: 1 s, doubling to 15 min,
    so that a pod which its node rejects is not made again in a hot loop (client-go
    ``util/flowcontrol/backoff.go``)."""

    def __init__(self) -> None:
        self._delays: dict[str, _Delay] = {}

    def remaining(self, key: str, now: datetime) -> float:
        """Return the seconds to wait; 0 when the pod may be deleted. Upstream waits the whole delay
        again, which comes to the same state later."""
        delay = self._delays.get(key)
        if delay is None or now - delay.since > MAX_AGE:
            return 0.0
        return max((delay.since + delay.length - now).total_seconds(), 0.0)

    def next_delay(self, key: str, now: datetime) -> timedelta:
        """Return the delay that follows when a failed pod is deleted now: twice the one before."""
        delay = self._delays.get(key)
        if delay is None or now - delay.since > MAX_AGE:
            return INITIAL_DELAY
        return min(2 * delay.length, MAX_DELAY)

    def is_at_cap(self, key: str) -> bool:
        return key in self._delays and self._delays[key].length == MAX_DELAY

    def step(self, key: str, now: datetime) -> None:
        """Note that a failed pod is being deleted; drop the entries of others that were not used
        for long."""
        self._delays[key] = _Delay(self.next_delay(key, now), now)
        self._delays = {
            key: delay for key, delay in self._delays.items() if now - delay.since <= MAX_AGE
        }

    def memory(self) -> dict[str, Any]:
        return {
            key: [delay.length.total_seconds(), format_micro_time(delay.since)]
            for key, delay in self._delays.items()
        }

    def recall(self, memory: dict[str, Any]) -> None:
        self._delays.update(
            {
                key: _Delay(timedelta(seconds=length), parse_time(since))
                for key, (length, since) in memory.items()
            }
        )


def backoff_key(daemon_set: DaemonSet, node: str) -> str:
    """Return the key of a node's failed pods, another for each generation
    (``failedPodsBackoffKey``)."""
    observed = (daemon_set.get("status") or {}).get("observedGeneration", 0)
    return f"{uid_of(daemon_set)}/{observed}/{node}"
