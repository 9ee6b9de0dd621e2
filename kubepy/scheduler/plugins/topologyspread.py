"""Topology spread constraints: how far the numbers of like pods in two domains may differ (``podtopologyspread``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kubepy.api.meta import Object, is_being_deleted, labels_of, namespace_of, uid_of
from kubepy.api.objects.nodes import (
    find_untolerated_taint,
    required_node_affinity_matches,
    required_node_selector,
    taints_of,
)
from kubepy.api.selectors import EQUALS, LabelSelector, Requirement, from_label_selector
from kubepy.scheduler.cache import NodeInfo, PodInfo
from kubepy.scheduler.framework import (
    NODE_ADD,
    NODE_DELETE,
    NODE_LABEL,
    NODE_TAINT,
    POD_ADD,
    POD_DELETE,
    POD_LABEL,
    POD_TERMINATING,
    SELF_UPDATE,
    SKIP,
    Admit,
    ClusterEvent,
    Plugin,
    Rejection,
    Skip,
    View,
)
from kubepy.scheduler.plugins.nodes import DO_NOT_SCHEDULE

DO_NOT = "DoNotSchedule"
ANYWAY = "ScheduleAnyway"


class Constraint(NamedTuple):
    """One constraint, read. ``honor_*``: domains count only nodes that the pod's affinity, its tolerations allow."""

    max_skew: int
    topology_key: str
    selector: LabelSelector
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False

    def includes_all(self, pod: PodInfo) -> bool:
        """Whether this pod's domains count every node."""
        restricted = pod.spec.get("nodeSelector") or required_node_selector(pod.spec) is not None
        return not self.honor_taints and not (self.honor_affinity and restricted)

    def includes(self, pod: PodInfo, node: Object) -> bool:
        if self.honor_affinity and not required_node_affinity_matches(pod.pod, node):
            return False
        if not self.honor_taints:
            return True
        return find_untolerated_taint(taints_of(node), pod.spec.get("tolerations"), DO_NOT_SCHEDULE) is None


Constraints = tuple[Constraint, ...]


def constraints_of(pod: PodInfo, action: str) -> Constraints:
    """The pod's own constraints of one kind: DoNotSchedule or ScheduleAnyway."""
    found = pod.spec.get("topologySpreadConstraints") or ()
    return tuple(_constraint(one, pod.labels) for one in found if one["whenUnsatisfiable"] == action)


def _constraint(constraint: Mapping[str, Any], labels: Mapping[str, str]) -> Constraint:
    return Constraint(
        max_skew=constraint["maxSkew"],
        topology_key=constraint["topologyKey"],
        selector=_selector(constraint, labels),
        min_domains=constraint.get("minDomains") or 1,
        honor_affinity=constraint.get("nodeAffinityPolicy", "Honor") == "Honor",
        honor_taints=constraint.get("nodeTaintsPolicy", "Ignore") == "Honor",
    )


def _selector(constraint: Mapping[str, Any], labels: Mapping[str, str]) -> LabelSelector:
    selector = from_label_selector(constraint.get("labelSelector"))
    own = [key for key in constraint.get("matchLabelKeys") or () if key in labels]
    if not own or "labelSelector" not in constraint:
        return selector
    return LabelSelector([*(Requirement(key, EQUALS, (labels[key],)) for key in own), *selector.requirements])


def has_all_keys(labels: Mapping[str, str], constraints: Iterable[Constraint]) -> bool:
    return all(constraint.topology_key in labels for constraint in constraints)


def count_matching(info: NodeInfo, selector: LabelSelector, namespace: str) -> int:
    """The pods on the node that a constraint means; those being deleted no longer count."""
    if selector.is_empty():
        return 0
    return sum(
        pod.namespace == namespace and not is_being_deleted(pod.pod) and selector.matches(pod.labels)
        for pod in info.pods.values()
    )


class State(NamedTuple):
    constraints: Constraints
    counts: list[dict[str, int]]  # for each constraint: domain → matching pods


class PodTopologySpread(Plugin):
    name = "PodTopologySpread"
    wakes_on = frozenset({
        POD_ADD, POD_LABEL, POD_DELETE, POD_TERMINATING, NODE_ADD, NODE_DELETE, NODE_LABEL, NODE_TAINT, SELF_UPDATE,
    })  # fmt: skip
    REJECTION = Rejection(("node(s) didn't match pod topology spread constraints",), True, name)
    NO_LABEL = Rejection((REJECTION.reasons[0] + " (missing required label)",), False, name)

    def pre_filter(self, pod: PodInfo, view: View) -> Admit | Skip:
        constraints = constraints_of(pod, DO_NOT)
        if not constraints:
            return SKIP
        counts: list[dict[str, int]] = [{} for _ in constraints]
        for info in view.cache.nodes():
            if info.node is None or not has_all_keys(info.labels, constraints):
                continue
            for constraint, domains in zip(constraints, counts, strict=True):
                if constraint.includes(pod, info.node):
                    domain = info.labels[constraint.topology_key]
                    number = count_matching(info, constraint.selector, pod.namespace)
                    domains[domain] = domains.get(domain, 0) + number
        return Admit(State(constraints, counts))

    def filter(self, pod: PodInfo, state: State, info: NodeInfo) -> Rejection | None:
        for constraint, domains in zip(state.constraints, state.counts, strict=True):
            domain = info.labels.get(constraint.topology_key)
            if domain is None:
                return self.NO_LABEL
            fewest = min(domains.values(), default=2**31 - 1) if len(domains) >= constraint.min_domains else 0
            here = domains.get(domain, 0) + constraint.selector.matches(pod.labels)
            if here - fewest > constraint.max_skew:
                return self.REJECTION
        return None

    def clone(self, state: State) -> State:
        return State(state.constraints, [dict(domains) for domains in state.counts])

    def update(self, pod: PodInfo, state: State, other: PodInfo, info: NodeInfo, count: int) -> None:
        if other.namespace != pod.namespace or info.node is None or not has_all_keys(info.labels, state.constraints):
            return
        for constraint, domains in zip(state.constraints, state.counts, strict=True):
            if constraint.selector.matches(other.labels) and constraint.includes(pod, info.node):
                domain = info.labels[constraint.topology_key]
                domains[domain] = domains.get(domain, 0) + count

    def may_help(self, pod: PodInfo, event: ClusterEvent) -> bool:
        constraints = constraints_of(pod, DO_NOT)
        if event.actions & {NODE_ADD, NODE_DELETE, NODE_LABEL, NODE_TAINT}:
            return _node_may_help(constraints, event)
        return _pod_may_help(pod, constraints, event)


def _node_may_help(constraints: Constraints, event: ClusterEvent) -> bool:
    was = event.old is not None and has_all_keys(labels_of(event.old), constraints)
    now = event.new is not None and has_all_keys(labels_of(event.new), constraints)
    if event.old is None or event.new is None or was != now:
        return was or now
    old, new = labels_of(event.old), labels_of(event.new)
    moved = any(old.get(one.topology_key) != new.get(one.topology_key) for one in constraints)
    return now and (moved or NODE_TAINT in event.actions)


def _pod_may_help(pod: PodInfo, constraints: Constraints, event: ClusterEvent) -> bool:
    changed = event.new or event.old
    if changed is None or (namespace_of(changed) != pod.namespace and uid_of(changed) != uid_of(pod.pod)):
        return False
    if event.old is None or event.new is None or POD_TERMINATING in event.actions:
        return any(one.selector.matches(labels_of(changed)) for one in constraints)
    if uid_of(changed) == uid_of(pod.pod) and any(one.honor_taints for one in constraints):
        return True
    return any(one.selector.matches(labels_of(event.old)) != one.selector.matches(labels_of(event.new))
               for one in constraints)  # fmt: skip
