"""The filters by properties of the node: cordoned, named, tainted, labelled, with its ports
taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubepy.api.objects.nodes import (
    METADATA_NAME,
    NO_EXECUTE,
    NO_SCHEDULE,
    TAINT_UNSCHEDULABLE,
    find_untolerated_taint,
    is_unschedulable,
    required_node_affinity_matches,
    required_node_selector,
    taints_of,
    tolerates,
)
from kubepy.api.objects.pods import host_ports, node_name
from kubepy.scheduler.cache import NodeInfo, PodInfo
from kubepy.scheduler.framework import (
    NODE_ADD,
    NODE_LABEL,
    NODE_TAINT,
    POD_DELETE,
    SELF_UPDATE,
    SKIP,
    ClusterEvent,
    FilterPlugin,
    Handle,
    PluginStatus,
    PreFilterResult,
    Skip,
)

UNSCHEDULABLE = {"key": TAINT_UNSCHEDULABLE, "effect": NO_SCHEDULE}
DO_NOT_SCHEDULE_EFFECTS = (NO_SCHEDULE, NO_EXECUTE)


class NodeUnschedulable(FilterPlugin):
    """Allow cordoned nodes only for pods that tolerate that."""

    name = "NodeUnschedulable"
    looks_at_node_only = True
    events_to_register = frozenset({NODE_ADD, NODE_TAINT, SELF_UPDATE})
    REJECTION = PluginStatus(("node(s) were unschedulable",), False, name)

    def filter(self, pod: PodInfo, state: Any, node_info: NodeInfo) -> PluginStatus | None:
        if not node_info.unschedulable:
            return None
        tolerated = any(
            tolerates(toleration, UNSCHEDULABLE) for toleration in pod.spec.get("tolerations") or ()
        )
        if tolerated:
            return None
        return self.REJECTION

    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        if SELF_UPDATE in event.actions:
            return True
        if is_unschedulable(event.new or {}):
            return False
        return event.old is None or is_unschedulable(event.old)


class NodeName(FilterPlugin):
    """Allow only the node that a pod names; the scheduler never sees such a pod, but preemption
    may."""

    name = "NodeName"
    looks_at_node_only = True
    events_to_register = frozenset({NODE_ADD})
    REJECTION = PluginStatus(("node(s) didn't match the requested node name",), False, name)

    def pre_filter(self, pod: PodInfo, handle: Handle) -> PreFilterResult | Skip:
        if node_name(pod.pod):
            return PreFilterResult()
        return SKIP

    def filter(self, pod: PodInfo, state: Any, node_info: NodeInfo) -> PluginStatus | None:
        if node_name(pod.pod) == node_info.name:
            return None
        return self.REJECTION


class TaintToleration(FilterPlugin):
    """Allow only nodes whose taints the pod tolerates."""

    name = "TaintToleration"
    looks_at_node_only = True
    events_to_register = frozenset({NODE_ADD, NODE_TAINT, SELF_UPDATE})
    REJECTION = PluginStatus(("node(s) had untolerated taint(s)",), False, name)

    def filter(self, pod: PodInfo, state: Any, node_info: NodeInfo) -> PluginStatus | None:
        if not node_info.taints:
            return None
        tolerations = pod.spec.get("tolerations")
        taint = find_untolerated_taint(node_info.taints, tolerations, DO_NOT_SCHEDULE_EFFECTS)
        if taint is not None:
            return self.REJECTION
        return None

    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        if SELF_UPDATE in event.actions:
            return True
        if _repels(pod, event.new):
            return False
        return event.old is None or _repels(pod, event.old)


def _repels(pod: PodInfo, node: Mapping[str, Any] | None) -> bool:
    taints = taints_of(node) if node is not None else []
    return (
        find_untolerated_taint(taints, pod.spec.get("tolerations"), DO_NOT_SCHEDULE_EFFECTS)
        is not None
    )


class NodeAffinity(FilterPlugin):
    """Match nodeSelector and required node affinity. Affinity that names nodes spares looking at
    any other."""

    name = "NodeAffinity"
    looks_at_node_only = True
    events_to_register = frozenset({NODE_ADD, NODE_LABEL})
    REJECTION = PluginStatus(("node(s) didn't match Pod's node affinity/selector",), False, name)
    CONFLICT = PluginStatus(("pod affinity terms conflict",), False, name)

    def pre_filter(self, pod: PodInfo, handle: Handle) -> PreFilterResult | Skip | PluginStatus:
        required = required_node_selector(pod.spec)
        if required is None:
            if pod.spec.get("nodeSelector"):
                return PreFilterResult()
            return SKIP
        names = named_nodes(required)
        if names is not None and not names:
            return self.CONFLICT
        return PreFilterResult(node_names=names)

    def filter(self, pod: PodInfo, state: Any, node_info: NodeInfo) -> PluginStatus | None:
        if required_node_affinity_matches(pod.pod, node_info.node or {}):
            return None
        return self.REJECTION

    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        if event.new is None or not required_node_affinity_matches(pod.pod, event.new):
            return False
        if event.old is None:
            return True
        return not required_node_affinity_matches(pod.pod, event.old)


def named_nodes(selector: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the nodes that a selector's ``matchFields`` allow; None when a term does not go by
    name."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        return None
    allowed: frozenset[str] = frozenset()
    for term in terms:
        values = [
            frozenset(field["values"])
            for field in term.get("matchFields") or ()
            if field["key"] == METADATA_NAME and field["operator"] == "In"
        ]
        if not values:
            return None
        allowed |= frozenset.intersection(*values)
    return allowed


class NodePorts(FilterPlugin):
    """Allow only nodes on which the pod's host ports are free."""

    name = "NodePorts"
    looks_at_node_only = True
    events_to_register = frozenset({NODE_ADD, POD_DELETE})
    REJECTION = PluginStatus(
        ("node(s) didn't have free ports for the requested pod ports",), True, name
    )

    def pre_filter(self, pod: PodInfo, handle: Handle) -> PreFilterResult | Skip:
        if pod.ports:
            return PreFilterResult()
        return SKIP

    def filter(self, pod: PodInfo, state: Any, node_info: NodeInfo) -> PluginStatus | None:
        taken = any(port.clashes(used) for used in node_info.ports for port in pod.ports)
        if taken:
            return self.REJECTION
        return None

    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        if POD_DELETE not in event.actions or event.old is None:
            return True
        freed = host_ports(event.old)
        return any(port.clashes(freed_port) for freed_port in freed for port in pod.ports)
