"""The filter by topology spread constraints: the number of like pods in two domains may differ only
so far.

Upstream: ``plugins/podtopologyspread``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.meta import is_being_deleted, labels_of, namespace_of, uid_of
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
    ClusterEvent,
    FilterPlugin,
    Handle,
    PluginStatus,
    PreFilterResult,
    Skip,
)
from kubepy.scheduler.plugins.nodes import DO_NOT_SCHEDULE_EFFECTS

if TYPE_CHECKING:
    from kubepy.api.typed import Node

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"


class Constraint(NamedTuple):
    """One parsed constraint. ``honor_*``: domains count only nodes that the pod's affinity, its
    tolerations allow."""

    max_skew: int
    topology_key: str
    selector: LabelSelector
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False

    def includes_all(self, pod: PodInfo) -> bool:
        """Tell whether this pod's domains count every node."""
        if self.honor_taints:
            return False
        if not self.honor_affinity:
            return True
        if pod.spec.get("nodeSelector"):
            return False
        return required_node_selector(pod.spec) is None

    def includes(self, pod: PodInfo, node: Node) -> bool:
        """Tell whether this pod's domains count the node."""
        if self.honor_affinity and not required_node_affinity_matches(pod.pod, node):
            return False
        if not self.honor_taints:
            return True
        return (
            find_untolerated_taint(
                taints_of(node), pod.spec.get("tolerations"), DO_NOT_SCHEDULE_EFFECTS
            )
            is None
        )


Constraints = tuple[Constraint, ...]


def constraints_of(pod: PodInfo, action: str) -> Constraints:
    """Parse the pod's own constraints of one kind: DoNotSchedule or ScheduleAnyway."""
    constraints = pod.spec.get("topologySpreadConstraints") or ()
    return tuple(
        _constraint(constraint, pod.labels)
        for constraint in constraints
        if constraint["whenUnsatisfiable"] == action
    )


def _constraint(constraint: Mapping[str, Any], labels: Mapping[str, str]) -> Constraint:
    selector = from_label_selector(constraint.get("labelSelector"))
    keys = [key for key in constraint.get("matchLabelKeys") or () if key in labels]
    if keys and "labelSelector" in constraint:
        own = (Requirement(key, EQUALS, (labels[key],)) for key in keys)
        selector = LabelSelector([*own, *selector.requirements])
    return Constraint(
        max_skew=constraint["maxSkew"],
        topology_key=constraint["topologyKey"],
        selector=selector,
        min_domains=constraint.get("minDomains") or 1,
        honor_affinity=constraint.get("nodeAffinityPolicy", "Honor") == "Honor",
        honor_taints=constraint.get("nodeTaintsPolicy", "Ignore") == "Honor",
    )


def has_all_keys(labels: Mapping[str, str], constraints: Iterable[Constraint]) -> bool:
    return all(constraint.topology_key in labels for constraint in constraints)


def count_matching(node_info: NodeInfo, selector: LabelSelector, namespace: str) -> int:
    """Count the pods on the node that a selector matches, without those being deleted."""
    if selector.is_empty():
        return 0
    return sum(
        pod.namespace == namespace
        and not is_being_deleted(pod.pod)
        and selector.matches(pod.labels)
        for pod in node_info.pods.values()
    )


class SpreadState(NamedTuple):
    """The constraints of the incoming pod, and the matching pods in each domain."""

    constraints: Constraints
    counts: list[dict[str, int]]  # for each constraint: domain → matching pods


class PodTopologySpread(FilterPlugin):
    """Enforce constraints of the kind DoNotSchedule."""

    name = "PodTopologySpread"
    events_to_register = frozenset(
        {
            POD_ADD,
            POD_LABEL,
            POD_DELETE,
            POD_TERMINATING,
            NODE_ADD,
            NODE_DELETE,
            NODE_LABEL,
            NODE_TAINT,
            SELF_UPDATE,
        }
    )
    REJECTION = PluginStatus(("node(s) didn't match pod topology spread constraints",), True, name)
    NO_LABEL = PluginStatus((REJECTION.reasons[0] + " (missing required label)",), False, name)

    def pre_filter(self, pod: PodInfo, handle: Handle) -> PreFilterResult | Skip:
        constraints = constraints_of(pod, DO_NOT_SCHEDULE)
        if not constraints:
            return SKIP
        counts: list[dict[str, int]] = [{} for _ in constraints]
        for node_info in handle.cache.nodes():
            if node_info.node is None or not has_all_keys(node_info.labels, constraints):
                continue
            for constraint, domains in zip(constraints, counts, strict=True):
                if constraint.includes(pod, node_info.node):
                    domain = node_info.labels[constraint.topology_key]
                    number = count_matching(node_info, constraint.selector, pod.namespace)
                    domains[domain] = domains.get(domain, 0) + number
        return PreFilterResult(SpreadState(constraints, counts))

    def filter(self, pod: PodInfo, state: SpreadState, node_info: NodeInfo) -> PluginStatus | None:
        for constraint, domains in zip(state.constraints, state.counts, strict=True):
            domain = node_info.labels.get(constraint.topology_key)
            if domain is None:
                return self.NO_LABEL
            if len(domains) >= constraint.min_domains:
                fewest = min(domains.values(), default=2**31 - 1)
            else:
                fewest = 0
            here = domains.get(domain, 0) + constraint.selector.matches(pod.labels)
            if here - fewest > constraint.max_skew:
                return self.REJECTION
        return None

    def clone(self, state: SpreadState) -> SpreadState:
        return SpreadState(state.constraints, [dict(domains) for domains in state.counts])

    def update(
        self, pod: PodInfo, state: SpreadState, other: PodInfo, node_info: NodeInfo, count: int
    ) -> None:
        if other.namespace != pod.namespace or node_info.node is None:
            return
        if not has_all_keys(node_info.labels, state.constraints):
            return
        for constraint, domains in zip(state.constraints, state.counts, strict=True):
            if constraint.selector.matches(other.labels) and constraint.includes(
                pod, node_info.node
            ):
                domain = node_info.labels[constraint.topology_key]
                domains[domain] = domains.get(domain, 0) + count

    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        constraints = constraints_of(pod, DO_NOT_SCHEDULE)
        if event.actions & {NODE_ADD, NODE_DELETE, NODE_LABEL, NODE_TAINT}:
            return _node_queueing_hint(constraints, event)
        return _pod_queueing_hint(pod, constraints, event)


def _node_queueing_hint(constraints: Constraints, event: ClusterEvent) -> bool:
    was = event.old is not None and has_all_keys(labels_of(event.old), constraints)
    now = event.new is not None and has_all_keys(labels_of(event.new), constraints)
    if event.old is None or event.new is None or was != now:
        return was or now
    if not now:
        return False
    if NODE_TAINT in event.actions:
        return True
    old = labels_of(event.old)
    new = labels_of(event.new)
    for constraint in constraints:
        key = constraint.topology_key
        if old.get(key) != new.get(key):
            return True

    return False


def _pod_queueing_hint(pod: PodInfo, constraints: Constraints, event: ClusterEvent) -> bool:
    changed = event.new or event.old
    if changed is None:
        return False
    is_itself = uid_of(changed) == uid_of(pod.pod)
    if namespace_of(changed) != pod.namespace and not is_itself:
        return False
    selectors = [constraint.selector for constraint in constraints]
    if event.old is None or event.new is None or POD_TERMINATING in event.actions:
        return any(selector.matches(labels_of(changed)) for selector in selectors)
    if is_itself and any(constraint.honor_taints for constraint in constraints):
        return True
    old = labels_of(event.old)
    new = labels_of(event.new)
    return any(selector.matches(old) != selector.matches(new) for selector in selectors)
