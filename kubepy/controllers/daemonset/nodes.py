"""The nodes of a DaemonSet: the pods on each, and what follows from them for the status and for a
rolling update.

Upstream walks over all nodes three times in every sync (``manage``, ``rollingUpdate``,
``updateDaemonSetStatus``). A DaemonSet has many nodes, and few of them change between two syncs: so
the informers' index of pods keeps a :class:`DaemonSetNodes` for each DaemonSet, which looks again
only at nodes that have changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.objects.pods import TERMINAL_PHASES
from kubepy.controllers.daemonset.placement import (
    NOWHERE,
    Placement,
    node_should_run_daemon_pod,
)
from kubepy.controllers.daemonset.pods import (
    DaemonPod,
    PodCriteria,
    find_updated_pods_on_node,
    oldest_first,
)
from kubepy.controllers.daemonset.status import Counts

if TYPE_CHECKING:
    from kubepy.api.typed import DaemonSet, Node, PodTemplateSpec
    from kubepy.runtime.reconcile import Key


class NodeStatus(NamedTuple):
    """What one node adds to the status of a DaemonSet, and to its rolling update.

    :ivar is_settled: there is nothing to decide in ``pods_should_be_on_node``.
    :ivar is_unavailable: it counts against maxUnavailable.
    :ivar old_pod: the name of the node's only pod, if that is of another template; "" for none.
    """

    counts: Counts
    is_settled: bool
    is_unavailable: bool
    old_pod: str


def node_status(
    pods: Sequence[DaemonPod],
    placement: Placement,
    criteria: PodCriteria,
    *,
    is_there: bool,
) -> NodeStatus:
    """Look at one node. ``is_there``: there is such a node, and not only pods that name it."""
    should_run = placement.should_run
    if not pods:
        return NodeStatus(Counts(desired=int(should_run)), not should_run, should_run, "")
    if should_run:  # one pod counts: the oldest scheduled one, also when it is being deleted
        pod = pods[0] if len(pods) == 1 else oldest_first(pods)[0]
        counts = Counts(
            desired=1,
            current=1,
            ready=int(pod.is_ready),
            available=int(criteria.is_available(pod)),
            updated=int(criteria.is_updated(pod)),
        )
    else:
        counts = Counts(misscheduled=int(is_there))

    is_settled = placement.should_continue and len(pods) == 1 and pods[0].is_active
    new_pod, old_pod, has_surplus = find_updated_pods_on_node(pods, criteria)
    if not has_surplus and old_pod is None and new_pod is not None:
        return NodeStatus(counts, is_settled, not criteria.is_available(new_pod), "")
    if not has_surplus and new_pod is None and old_pod is not None:
        return NodeStatus(counts, is_settled, not criteria.is_available(old_pod), old_pod.name)
    return NodeStatus(counts, is_settled, True, "")


class DaemonSetNodes:
    """The nodes of one DaemonSet.

    The index of its pods tells it of each pod that changes (:meth:`replace`); a sync lets it place
    the pod anew where nodes or the template have changed, and look at the nodes that have changed
    since the last sync (:meth:`place`, :meth:`observe`). What is below follows from
    ``nodes_to_daemon_pods``, ``placements`` and the criteria of the last :meth:`observe` alone:
    ``tests/controllers/test_daemonset_nodes.py`` compares it with a look at all nodes.

    :ivar nodes_to_daemon_pods: the pods that run on a node or are meant for it, by name; nodes
        without pods are left out.
    :ivar placements: where each node stands, by name, in order.
    :ivar unsettled: nodes about which something may be to be decided.
    :ivar num_unavailable: the number of nodes that count against maxUnavailable.
    :ivar allowed_replacement_pods: old pods that are not available, by their nodes.
    :ivar candidate_pods: old pods that are available, by their nodes.
    """

    def __init__(self, pods: Iterable[DaemonPod] = ()) -> None:
        self.nodes_to_daemon_pods: dict[str, list[DaemonPod]] = {}
        self.placements: Mapping[str, Placement] = {}
        self._placed: tuple[int, PodTemplateSpec | None] = (-1, None)
        self._criteria: PodCriteria | None = None  # None: look at every node
        self._changed: set[str] = set()  # nodes whose pods have changed since they were looked at
        self._forget_statuses()
        for pod in pods:
            self.replace(None, pod)

    def _forget_statuses(self) -> None:
        self._statuses: dict[str, NodeStatus] = {}
        self._nodes_with: Counter[Counts] = Counter()
        self.unsettled: set[str] = set()
        self.num_unavailable = 0
        self.allowed_replacement_pods: dict[str, str] = {}
        self.candidate_pods: dict[str, str] = {}

    # --- what has changed

    def replace(self, old: DaemonPod | None, new: DaemonPod | None) -> None:
        """Take in another state of a pod. Pods that have ended and are being deleted are of no more
        concern (``getNodesToDaemonPods``)."""
        if old is not None and old.target_node:
            self._changed.add(old.target_node)
            pods = self.nodes_to_daemon_pods.pop(old.target_node, ())
            others = [pod for pod in pods if pod.name != old.name]
            if others:
                self.nodes_to_daemon_pods[old.target_node] = others

        if new is None or not new.target_node:
            return
        if new.is_being_deleted and new.phase in TERMINAL_PHASES:
            return
        self._changed.add(new.target_node)
        pods = self.nodes_to_daemon_pods.setdefault(new.target_node, [])
        pods.append(new)
        if len(pods) > 1:
            pods.sort(key=attrgetter("name"))

    def place(self, daemon_set: DaemonSet, nodes: Mapping[Key, Node], changes: int) -> None:
        """Place the DaemonSet's pod on all nodes, unless neither nodes nor template have changed.

        :param changes: another number after ``nodes`` have changed.
        """
        basis = changes, daemon_set["spec"]["template"]
        if self._placed == basis:
            return
        self._placed = basis
        should_run = node_should_run_daemon_pod(daemon_set)
        self.set_placements({key.name: should_run(nodes[key]) for key in sorted(nodes)})

    def set_placements(self, placements: Mapping[str, Placement]) -> None:
        self.placements = placements
        self._criteria = None

    def observe(self, criteria: PodCriteria) -> None:
        """Look at the nodes that have changed; at all of them if the criteria have."""
        if self._criteria == criteria:
            changed = self._changed
        else:
            self._criteria = criteria
            self._forget_statuses()
            changed = {*self.placements, *self.nodes_to_daemon_pods}
        self._changed = set()
        for node in sorted(changed):
            status = self._statuses.pop(node, None)
            if status is not None:
                self._subtract(node, status)
            if node in self.placements or node in self.nodes_to_daemon_pods:
                self._add(node, self._status_of(node, criteria))

    def _status_of(self, node: str, criteria: PodCriteria) -> NodeStatus:
        placement = self.placements.get(node)
        return node_status(
            self.pods_on(node),
            NOWHERE if placement is None else placement,
            criteria,
            is_there=placement is not None,
        )

    def _add(self, node: str, status: NodeStatus) -> None:
        self._statuses[node] = status
        self._nodes_with[status.counts] += 1
        if not status.is_settled:
            self.unsettled.add(node)
        if status.is_unavailable:
            self.num_unavailable += 1
        if status.old_pod:
            self._replaceable(status)[node] = status.old_pod

    def _subtract(self, node: str, status: NodeStatus) -> None:
        self._nodes_with[status.counts] -= 1
        if not status.is_settled:
            self.unsettled.remove(node)
        if status.is_unavailable:
            self.num_unavailable -= 1
        if status.old_pod:
            del self._replaceable(status)[node]

    def _replaceable(self, status: NodeStatus) -> dict[str, str]:
        if status.is_unavailable:
            return self.allowed_replacement_pods
        return self.candidate_pods

    # --- what is known

    def pods_on(self, node: str) -> Sequence[DaemonPod]:
        """Return the pods that run on a node or are meant for it, by name."""
        return self.nodes_to_daemon_pods.get(node, ())

    def counts(self) -> Counts:
        """Count the nodes, and one pod on each, for the status."""
        sums = [0] * len(Counts._fields)
        for counts, nodes in self._nodes_with.items():
            for field, count in enumerate(counts):
                sums[field] += count * nodes
        return Counts(*sums)

    def nodes_to_update(self) -> list[str]:
        """Return the nodes that have a pod or should have one, by name."""
        should_run = [node for node, placement in self.placements.items() if placement.should_run]
        if self.nodes_to_daemon_pods.keys() <= set(should_run):
            return should_run
        return sorted({*should_run, *self.nodes_to_daemon_pods})
