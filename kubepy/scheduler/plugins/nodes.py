"""Filters that look at the node itself: cordoned, named, tainted, labelled, with its ports taken."""

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
    Admit,
    ClusterEvent,
    Plugin,
    Rejection,
    Skip,
    View,
)

UNSCHEDULABLE = {"key": TAINT_UNSCHEDULABLE, "effect": NO_SCHEDULE}
DO_NOT_SCHEDULE = (NO_SCHEDULE, NO_EXECUTE)


class NodeUnschedulable(Plugin):
    """Cordoned nodes take only pods that tolerate that."""

    name = "NodeUnschedulable"
    looks_at_node_only = True
    wakes_on = frozenset({NODE_ADD, NODE_TAINT, SELF_UPDATE})
    REJECTION = Rejection(("node(s) were unschedulable",), False, name)

    def filter(self, pod: PodInfo, state: Any, info: NodeInfo) -> Rejection | None:
        if not info.unschedulable:
            return None
        tolerated = any(tolerates(one, UNSCHEDULABLE) for one in pod.spec.get("tolerations") or ())
        return None if tolerated else self.REJECTION

    def may_help(self, pod: PodInfo, event: ClusterEvent) -> bool:
        if SELF_UPDATE in event.actions:
            return True
        return not is_unschedulable(event.new or {}) and (event.old is None or is_unschedulable(event.old))


class NodeName(Plugin):
    """A pod that names its node goes nowhere else; the scheduler never sees one, but preemption may."""

    name = "NodeName"
    looks_at_node_only = True
    wakes_on = frozenset({NODE_ADD})
    REJECTION = Rejection(("node(s) didn't match the requested node name",), False, name)

    def pre_filter(self, pod: PodInfo, view: View) -> Admit | Skip:
        return Admit() if node_name(pod.pod) else SKIP

    def filter(self, pod: PodInfo, state: Any, info: NodeInfo) -> Rejection | None:
        return None if node_name(pod.pod) == info.name else self.REJECTION


class TaintToleration(Plugin):
    name = "TaintToleration"
    looks_at_node_only = True
    wakes_on = frozenset({NODE_ADD, NODE_TAINT, SELF_UPDATE})
    REJECTION = Rejection(("node(s) had untolerated taint(s)",), False, name)

    def filter(self, pod: PodInfo, state: Any, info: NodeInfo) -> Rejection | None:
        if not info.taints or find_untolerated_taint(info.taints, pod.spec.get("tolerations"), DO_NOT_SCHEDULE) is None:
            return None
        return self.REJECTION

    def may_help(self, pod: PodInfo, event: ClusterEvent) -> bool:
        if SELF_UPDATE in event.actions:
            return True
        return not _repels(pod, event.new) and (event.old is None or _repels(pod, event.old))


def _repels(pod: PodInfo, node: Mapping[str, Any] | None) -> bool:
    taints = taints_of(node) if node is not None else []
    return find_untolerated_taint(taints, pod.spec.get("tolerations"), DO_NOT_SCHEDULE) is not None


class NodeAffinity(Plugin):
    """nodeSelector and required node affinity. One that names nodes spares looking at any other."""

    name = "NodeAffinity"
    looks_at_node_only = True
    wakes_on = frozenset({NODE_ADD, NODE_LABEL})
    REJECTION = Rejection(("node(s) didn't match Pod's node affinity/selector",), False, name)
    CONFLICT = Rejection(("pod affinity terms conflict",), False, name)

    def pre_filter(self, pod: PodInfo, view: View) -> Admit | Skip | Rejection:
        required = required_node_selector(pod.spec)
        if required is None:
            return Admit() if pod.spec.get("nodeSelector") else SKIP
        names = named_nodes(required)
        if names is not None and not names:
            return self.CONFLICT
        return Admit(nodes=names)

    def filter(self, pod: PodInfo, state: Any, info: NodeInfo) -> Rejection | None:
        return None if required_node_affinity_matches(pod.pod, info.node or {}) else self.REJECTION

    def may_help(self, pod: PodInfo, event: ClusterEvent) -> bool:
        if event.new is None or not required_node_affinity_matches(pod.pod, event.new):
            return False
        return event.old is None or not required_node_affinity_matches(pod.pod, event.old)


def named_nodes(selector: Mapping[str, Any]) -> frozenset[str] | None:
    """The nodes that a selector's ``matchFields`` allow; None when a term does not go by name."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        return None
    found: frozenset[str] = frozenset()
    for term in terms:
        names = _named_by(term)
        if names is None:
            return None
        found |= names
    return found


def _named_by(term: Mapping[str, Any]) -> frozenset[str] | None:
    names: frozenset[str] | None = None
    for field in term.get("matchFields") or ():
        if field["key"] == METADATA_NAME and field["operator"] == "In":
            values = frozenset(field["values"])
            names = values if names is None else names & values
    return names


class NodePorts(Plugin):
    name = "NodePorts"
    looks_at_node_only = True
    wakes_on = frozenset({NODE_ADD, POD_DELETE})
    REJECTION = Rejection(("node(s) didn't have free ports for the requested pod ports",), True, name)

    def pre_filter(self, pod: PodInfo, view: View) -> Admit | Skip:
        return Admit() if pod.ports else SKIP

    def filter(self, pod: PodInfo, state: Any, info: NodeInfo) -> Rejection | None:
        taken = any(wanted.clashes(used) for used in info.ports for wanted in pod.ports)
        return self.REJECTION if taken else None

    def may_help(self, pod: PodInfo, event: ClusterEvent) -> bool:
        if POD_DELETE not in event.actions or event.old is None:
            return True
        freed = host_ports(event.old)
        return any(wanted.clashes(one) for one in freed for wanted in pod.ports)
