"""The score plugins of the default profile, and the choice of a node by them: 0 to 100 each, with
upstream's weights.

Equal sums are decided by name, where upstream throws dice. ImageLocality is left out: no node has
images here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from kubepy.api.meta import Object, controller_of
from kubepy.api.objects.nodes import PREFER_NO_SCHEDULE, node_selector_term_matches, tolerates
from kubepy.api.selectors import LabelSelector, Requirement, from_label_selector, from_set
from kubepy.scheduler.affinity import PREFERRED, Terms
from kubepy.scheduler.cache import NodeInfo, PodInfo
from kubepy.scheduler.framework import Handle
from kubepy.scheduler.plugins.topologyspread import (
    SCHEDULE_ANYWAY,
    Constraint,
    constraints_of,
    count_matching,
    has_all_keys,
)

MAX_NODE_SCORE = 100
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
CONTROLLERS = {
    "ReplicaSet": "replicasets.apps",
    "ReplicationController": "replicationcontrollers",
    "StatefulSet": "statefulsets.apps",
}
SYSTEM_DEFAULTS = (
    (HOSTNAME, 3),
    (ZONE, 5),
)  # topology key, max skew: for pods without constraints of their own

Nodes = Sequence[NodeInfo]
Scores = list[int]


class ScorePlugin(NamedTuple):
    """A plugin that scores all feasible nodes of a pod; None when they are all alike."""

    name: str
    weight: int
    score: Callable[[PodInfo, Nodes, Handle], Scores | None]


def select_host(pod: PodInfo, nodes: Nodes, handle: Handle) -> NodeInfo:
    """Choose the node with the highest sum of weighted scores; of several the first (they come by
    name)."""
    if len(nodes) == 1:
        return nodes[0]
    totals = [0] * len(nodes)
    for plugin in SCORE_PLUGINS:
        scores = plugin.score(pod, nodes, handle)
        if scores is not None:
            totals = [
                total + plugin.weight * score for total, score in zip(totals, scores, strict=True)
            ]
    return nodes[totals.index(max(totals))]


def _normalized(scores: Scores, *, reverse: bool = False) -> Scores:
    """Scale scores so that the highest becomes 100, or for ``reverse`` 0
    (``DefaultNormalizeScore``)."""
    top = max(scores)
    if top == 0:
        if reverse:
            return [MAX_NODE_SCORE] * len(scores)
        return scores
    scaled = [score * MAX_NODE_SCORE // top for score in scores]
    if reverse:
        return [MAX_NODE_SCORE - score for score in scaled]
    return scaled


def taint_scores(pod: PodInfo, nodes: Nodes, handle: Handle) -> Scores | None:
    """Prefer nodes with fewer untolerated PreferNoSchedule taints."""
    tolerations = [
        toleration
        for toleration in pod.spec.get("tolerations") or ()
        if toleration.get("effect") in (None, PREFER_NO_SCHEDULE)
    ]
    counts = [
        sum(
            taint.get("effect") == PREFER_NO_SCHEDULE
            and not any(tolerates(toleration, taint) for toleration in tolerations)
            for taint in node_info.taints
        )
        for node_info in nodes
    ]
    if any(counts):
        return _normalized(counts, reverse=True)
    return None


def node_affinity_scores(pod: PodInfo, nodes: Nodes, handle: Handle) -> Scores | None:
    """Add the weights of the preferred terms that match."""
    terms = ((pod.spec.get("affinity") or {}).get("nodeAffinity") or {}).get(PREFERRED) or ()
    if not terms:
        return None
    return _normalized(
        [
            sum(
                term["weight"]
                for term in terms
                if node_selector_term_matches(term["preference"], node_info.node or {})
            )
            for node_info in nodes
        ]
    )


def resource_scores(pod: PodInfo, nodes: Nodes, handle: Handle) -> Scores:
    """Add the two scores of resources, which have the same weight. Nodes keep them for pods of one
    template."""
    key = f"resources {pod.signature}"
    scores = []
    for node_info in nodes:
        score = node_info.memo.get(key)
        if score is None:
            score = node_info.memo[key] = least_allocated(pod, node_info) + balanced_allocation(
                pod, node_info
            )
        scores.append(score)
    return scores


def least_allocated(pod: PodInfo, node_info: NodeInfo) -> int:
    """Prefer nodes with more cpu and memory left over (``leastResourceScorer``)."""
    scores = []
    for requested, capacity in (
        (node_info.nonzero_cpu + pod.nonzero_cpu, node_info.allocatable.get("cpu", 0)),
        (node_info.nonzero_memory + pod.nonzero_memory, node_info.allocatable.get("memory", 0)),
    ):
        if capacity:
            scores.append(
                0 if requested > capacity else (capacity - requested) * MAX_NODE_SCORE // capacity
            )
    if scores:
        return sum(scores) // len(scores)
    return 0


def balanced_allocation(pod: PodInfo, node_info: NodeInfo) -> int:
    """Prefer cpu and memory used in like proportion (``balancedResourceScorer``); all alike without
    requests."""
    if not pod.requests.get("cpu") and not pod.requests.get("memory"):
        return 0
    with_pod = _balance(node_info, pod.requests)
    without_pod = _balance(node_info, {})
    half = MAX_NODE_SCORE // 2
    return half + (half + with_pod - without_pod) // 2


def _balance(node_info: NodeInfo, more: Mapping[str, int]) -> int:
    cpu = node_info.allocatable.get("cpu", 0)
    memory = node_info.allocatable.get("memory", 0)
    if not cpu or not memory:
        return MAX_NODE_SCORE  # nothing to be out of balance with
    requested_cpu = node_info.requested.get("cpu", 0) + more.get("cpu", 0)
    requested_memory = node_info.requested.get("memory", 0) + more.get("memory", 0)
    cpu_fraction = min(requested_cpu / cpu, 1.0)
    memory_fraction = min(requested_memory / memory, 1.0)
    difference = abs(cpu_fraction - memory_fraction)
    return int((1 - difference / 2) * MAX_NODE_SCORE)


# --- topology spread ------------------------------------------------------------------------------


def spread_scores(pod: PodInfo, nodes: Nodes, handle: Handle) -> Scores | None:
    """Prefer nodes whose domains have fewer like pods (``podtopologyspread/scoring.go``)."""
    own = bool(pod.spec.get("topologySpreadConstraints"))
    if own:
        constraints = constraints_of(pod, SCHEDULE_ANYWAY)
    else:
        constraints = _default_constraints(pod, nodes, handle)

    if not constraints:
        return None
    counted = [
        node_info for node_info in nodes if not own or has_all_keys(node_info.labels, constraints)
    ]
    raw = [0.0] * len(counted)
    for constraint in constraints:
        parts = _constraint_scores(pod, constraint, counted, handle, constraints if own else ())
        raw = [total + part for total, part in zip(raw, parts, strict=True)]
    rounded = [round(score) for score in raw]
    low = min(rounded, default=0)
    high = max(rounded, default=0)
    scores = [
        MAX_NODE_SCORE * (high + low - score) // high if high else MAX_NODE_SCORE
        for score in rounded
    ]
    by_name = dict(zip((node_info.name for node_info in counted), scores, strict=True))
    return [by_name.get(node_info.name, 0) for node_info in nodes]


def _constraint_scores(
    pod: PodInfo,
    constraint: Constraint,
    nodes: Nodes,
    handle: Handle,
    required: Iterable[Constraint],
) -> list[float]:
    key = constraint.topology_key
    if not any(key in node_info.labels for node_info in nodes):
        return [0.0] * len(nodes)
    if key == HOSTNAME:
        size = len(nodes)
        counts = _count_like_pods(pod, constraint, nodes)
    else:
        domains = _count_by_domain(pod, constraint, nodes, handle, required)
        size = len(domains)
        counts = [domains[node_info.labels.get(key, "")] for node_info in nodes]

    weight = math.log(size + 2)
    least = constraint.max_skew - 1
    return [
        count * weight + least if key in node_info.labels else 0.0
        for node_info, count in zip(nodes, counts, strict=True)
    ]  # fmt: skip


def _count_like_pods(pod: PodInfo, constraint: Constraint, nodes: Nodes) -> list[int]:
    """Count the pods on each node that the constraint selects. Nodes keep the number."""
    key = f"like {pod.namespace} {constraint.selector}"
    counts = []
    for node_info in nodes:
        count = node_info.memo.get(key)
        if count is None:
            count = node_info.memo[key] = count_matching(
                node_info, constraint.selector, pod.namespace
            )
        counts.append(count)
    return counts


def _count_by_domain(
    pod: PodInfo,
    constraint: Constraint,
    nodes: Nodes,
    handle: Handle,
    required: Iterable[Constraint],
) -> dict[str, int]:
    """Count the like pods in each domain that one of the nodes is in, over all nodes of the
    cluster."""
    key = constraint.topology_key
    domains = {node_info.labels.get(key, ""): 0 for node_info in nodes}
    counted = handle.cache.nodes()
    if required or not constraint.includes_all(pod):
        counted = [
            node_info
            for node_info in counted
            if has_all_keys(node_info.labels, required)
            and constraint.includes(pod, node_info.node or {})
        ]

    for node_info, count in zip(counted, _count_like_pods(pod, constraint, counted), strict=True):
        domain = node_info.labels.get(key, "")
        if domain in domains:
            domains[domain] += count

    return domains


def _default_constraints(pod: PodInfo, nodes: Nodes, handle: Handle) -> tuple[Constraint, ...]:
    """Spread the pods of one service or controller a little over hosts and zones."""
    if not any(key in node_info.labels for node_info in nodes for key, _ in SYSTEM_DEFAULTS):
        return ()  # no label tells the nodes apart
    selector = default_selector(pod, handle)
    if selector.is_empty():
        return ()
    return tuple(Constraint(max_skew, key, selector) for key, max_skew in SYSTEM_DEFAULTS)


def default_selector(pod: PodInfo, handle: Handle) -> LabelSelector:
    """Merge the selectors of a pod's services and of its controller
    (``helper.DefaultSelector``)."""
    merged: dict[str, str] = {}
    for service in handle.informers.list("services", pod.namespace):
        selector = service["spec"].get("selector") or {}
        if all(pod.labels.get(key) == value for key, value in selector.items()):
            merged |= selector
    requirements: list[Requirement] = []
    owner = _controller_with_selector(pod, handle)
    if owner is not None:
        selector = owner["spec"].get("selector")
        if owner["kind"] == "ReplicationController":
            merged |= selector or {}
        else:
            requirements += from_label_selector(selector).requirements
    return LabelSelector([*from_set(merged).requirements, *requirements])


def _controller_with_selector(pod: PodInfo, handle: Handle) -> Object | None:
    """Return the controller of a pod, if it is of a kind that selects its pods."""
    reference = controller_of(pod.pod)
    if reference is None:
        return None
    resource = CONTROLLERS.get(reference["kind"])
    if resource is None:
        return None
    return handle.informers.get(resource, pod.namespace, reference["name"])


# --- pod affinity ---------------------------------------------------------------------------------

TopologyScores = dict[tuple[str, str], int]  # (topology key, domain) → score


def pod_affinity_scores(pod: PodInfo, nodes: Nodes, handle: Handle) -> Scores | None:
    """Prefer domains with pods that the pod has affinity to, or that have affinity to it
    (``scoring.go``)."""
    has_preferences = bool(pod.terms.preferred_affinity or pod.terms.preferred_anti_affinity)
    topology: TopologyScores = {}
    for node_info in (
        handle.cache.nodes() if has_preferences else handle.cache.nodes_with_affinity()
    ):
        labels = node_info.labels
        for other in (node_info.pods if has_preferences else node_info.with_affinity).values():
            for terms, sign in (
                (pod.terms.preferred_affinity, 1),
                (pod.terms.preferred_anti_affinity, -1),
            ):
                _score_terms(terms, sign, other, labels, handle, topology)
            for terms, sign in (
                (other.terms.required_affinity, 1),
                (other.terms.preferred_affinity, 1),
                (other.terms.preferred_anti_affinity, -1),
            ):
                _score_terms(terms, sign, pod, labels, handle, topology)

    if not topology:
        return None
    scores = [
        sum(topology.get(pair, 0) for pair in node_info.labels.items()) for node_info in nodes
    ]
    low = min(scores)
    high = max(scores)
    return [MAX_NODE_SCORE * (score - low) // (high - low) if high > low else 0 for score in scores]


def _score_terms(
    terms: Terms,
    sign: int,
    pod: PodInfo,
    labels: Mapping[str, str],
    handle: Handle,
    topology: TopologyScores,
) -> None:
    """Add the weights of the terms that select the pod to the domains of a node with these
    labels."""
    for term in terms:
        if term.topology_key not in labels:
            continue
        if term.matches(pod.namespace, pod.labels, handle.namespace_labels(pod.namespace)):
            pair = (term.topology_key, labels[term.topology_key])
            topology[pair] = topology.get(pair, 0) + sign * term.weight


SCORE_PLUGINS = (
    ScorePlugin("TaintToleration", 3, taint_scores),
    ScorePlugin("NodeAffinity", 2, node_affinity_scores),
    ScorePlugin("NodeResourcesFit and NodeResourcesBalancedAllocation", 1, resource_scores),
    ScorePlugin("PodTopologySpread", 2, spread_scores),
    ScorePlugin("InterPodAffinity", 2, pod_affinity_scores),
)
