"""Which of the nodes that fit is the best: the default profile's scores, 0 to 100 each, with upstream's weights.

Equal sums are decided by name, where upstream throws dice. ImageLocality is left out: no node has images here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from kubepy.api.meta import Object, controller_of
from kubepy.api.objects.nodes import PREFER_NO_SCHEDULE, node_selector_term_matches, tolerates
from kubepy.api.selectors import LabelSelector, Requirement, from_label_selector, from_set
from kubepy.scheduler.affinity import PREFERRED, Terms
from kubepy.scheduler.cache import NodeInfo, PodInfo
from kubepy.scheduler.framework import View
from kubepy.scheduler.plugins.topologyspread import ANYWAY, Constraint, constraints_of, count_matching, has_all_keys

MAX = 100
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
CONTROLLERS = {"ReplicaSet": "replicasets.apps", "ReplicationController": "replicationcontrollers",
               "StatefulSet": "statefulsets.apps"}
SYSTEM_DEFAULTS = ((HOSTNAME, 3), (ZONE, 5))  # topology key, max skew: of pods without constraints of their own

Nodes = Sequence[NodeInfo]
Scores = list[int]
Scorer = Callable[[PodInfo, Nodes, View], Scores | None]  # None: all alike


def best_node(pod: PodInfo, nodes: Nodes, view: View) -> NodeInfo:
    """The node with the highest sum; of several the first (they come by name)."""
    if len(nodes) == 1:
        return nodes[0]
    totals = [0] * len(nodes)
    for weight, scorer in SCORERS:
        if (scores := scorer(pod, nodes, view)) is not None:
            totals = [total + weight * score for total, score in zip(totals, scores, strict=True)]
    return nodes[totals.index(max(totals))]


def _normalized(scores: Scores, *, reverse: bool = False) -> Scores:
    """Scaled so that the highest is 100, or for ``reverse`` 0 (``DefaultNormalizeScore``)."""
    top = max(scores)
    if top == 0:
        return [MAX] * len(scores) if reverse else scores
    scaled = [score * MAX // top for score in scores]
    return [MAX - score for score in scaled] if reverse else scaled


def taint_scores(pod: PodInfo, nodes: Nodes, view: View) -> Scores | None:
    """Fewer untolerated PreferNoSchedule taints are better."""
    tolerations = [one for one in pod.spec.get("tolerations") or () if one.get("effect") in (None, PREFER_NO_SCHEDULE)]

    def count(info: NodeInfo) -> int:
        return sum(
            taint.get("effect") == PREFER_NO_SCHEDULE and not any(tolerates(one, taint) for one in tolerations)
            for taint in info.taints
        )

    counts = [count(info) if info.taints else 0 for info in nodes]
    return _normalized(counts, reverse=True) if any(counts) else None


def node_affinity_scores(pod: PodInfo, nodes: Nodes, view: View) -> Scores | None:
    """The weights of the preferred terms that fit."""
    terms = ((pod.spec.get("affinity") or {}).get("nodeAffinity") or {}).get(PREFERRED) or ()
    if not terms:
        return None
    return _normalized([
        sum(term["weight"] for term in terms if node_selector_term_matches(term["preference"], info.node or {}))
        for info in nodes
    ])  # fmt: skip


def resource_scores(pod: PodInfo, nodes: Nodes, view: View) -> Scores:
    """The two scores of resources, which have the same weight. Nodes remember them for pods of one template."""
    key = f"resources {pod.signature}"
    scores = []
    for info in nodes:
        score = info.memo.get(key)
        if score is None:
            score = info.memo[key] = least_allocated(pod, info) + balanced(pod, info)
        scores.append(score)
    return scores


def least_allocated(pod: PodInfo, info: NodeInfo) -> int:
    """The more cpu and memory left over, the better (``leastResourceScorer``)."""
    return _average(
        _left_over(info.nonzero_cpu + pod.nonzero_cpu, info.allocatable.get("cpu", 0)),
        _left_over(info.nonzero_memory + pod.nonzero_memory, info.allocatable.get("memory", 0)),
    )


def _left_over(requested: int, capacity: int) -> int | None:
    if capacity == 0:
        return None
    return 0 if requested > capacity else (capacity - requested) * MAX // capacity


def _average(*scores: int | None) -> int:
    found = [score for score in scores if score is not None]
    return sum(found) // len(found) if found else 0


def balanced(pod: PodInfo, info: NodeInfo) -> int:
    """Cpu and memory used in like proportion are better (``balancedResourceScorer``); all alike without requests."""
    if not pod.requests.get("cpu") and not pod.requests.get("memory"):
        return 0
    half = MAX // 2
    return half + (half + _balance(info, pod.requests) - _balance(info, {})) // 2


def _balance(info: NodeInfo, more: Mapping[str, int]) -> int:
    cpu, memory = info.allocatable.get("cpu", 0), info.allocatable.get("memory", 0)
    if not cpu or not memory:
        return MAX  # nothing to be out of balance with
    used = info.requested
    cpu_part = min((used.get("cpu", 0) + more.get("cpu", 0)) / cpu, 1.0)
    memory_part = min((used.get("memory", 0) + more.get("memory", 0)) / memory, 1.0)
    return int((1 - abs(cpu_part - memory_part) / 2) * MAX)


# --- topology spread ----------------------------------------------------------------------------------------------


def spread_scores(pod: PodInfo, nodes: Nodes, view: View) -> Scores | None:
    """Fewer like pods in the node's domains are better (``podtopologyspread/scoring.go``)."""
    own = bool(pod.spec.get("topologySpreadConstraints"))
    constraints = constraints_of(pod, ANYWAY) if own else _default_constraints(pod, nodes, view)
    if not constraints:
        return None
    counted = [info for info in nodes if not own or has_all_keys(info.labels, constraints)]
    raw = [0.0] * len(counted)
    for constraint in constraints:
        for index, part in enumerate(_constraint_scores(pod, constraint, counted, view, constraints if own else ())):
            raw[index] += part
    by_name = dict(zip((info.name for info in counted), _spread_normalized([round(one) for one in raw]), strict=True))
    return [by_name.get(info.name, 0) for info in nodes]


def _constraint_scores(
    pod: PodInfo, constraint: Constraint, nodes: Nodes, view: View, required: Iterable[Constraint]
) -> list[float]:
    key = constraint.topology_key
    if not any(key in info.labels for info in nodes):
        return [0.0] * len(nodes)
    if key == HOSTNAME:
        size = len(nodes)
        counts = _like_pods(pod, constraint, nodes)
    else:
        domains = _domain_counts(pod, constraint, nodes, view, required)
        size = len(domains)
        counts = [domains[info.labels.get(key, "")] for info in nodes]
    weight, least = math.log(size + 2), constraint.max_skew - 1
    return [
        count * weight + least if key in info.labels else 0.0
        for info, count in zip(nodes, counts, strict=True)
    ]  # fmt: skip


def _like_pods(pod: PodInfo, constraint: Constraint, nodes: Nodes) -> list[int]:
    """How many pods on each node the constraint means. Nodes remember it."""
    key = f"like {pod.namespace} {constraint.selector}"
    counts = []
    for info in nodes:
        count = info.memo.get(key)
        if count is None:
            count = info.memo[key] = count_matching(info, constraint.selector, pod.namespace)
        counts.append(count)
    return counts


def _domain_counts(
    pod: PodInfo, constraint: Constraint, nodes: Nodes, view: View, required: Iterable[Constraint]
) -> dict[str, int]:
    """The like pods in each domain that one of the nodes is in, counted over all nodes there are."""
    key = constraint.topology_key
    domains = {info.labels.get(key, ""): 0 for info in nodes}
    found = view.cache.nodes()
    if required or not constraint.includes_all(pod):
        found = [info for info in found
                 if has_all_keys(info.labels, required) and constraint.includes(pod, info.node or {})]
    for info, count in zip(found, _like_pods(pod, constraint, found), strict=True):
        domain = info.labels.get(key, "")
        if domain in domains:
            domains[domain] += count
    return domains


def _spread_normalized(scores: Scores) -> Scores:
    low, high = min(scores, default=0), max(scores, default=0)
    return [MAX * (high + low - score) // high if high else MAX for score in scores]


def _default_constraints(pod: PodInfo, nodes: Nodes, view: View) -> tuple[Constraint, ...]:
    """A little spreading over hosts and zones for the pods of one service or controller."""
    if not any(key in info.labels for info in nodes for key, _ in SYSTEM_DEFAULTS):
        return ()  # nothing to tell the nodes apart by
    selector = default_selector(pod, view)
    if selector.is_empty():
        return ()
    return tuple(Constraint(max_skew, key, selector) for key, max_skew in SYSTEM_DEFAULTS)


def default_selector(pod: PodInfo, view: View) -> LabelSelector:
    """The labels by which services and the controller of a pod find it (``helper.DefaultSelector``)."""
    merged: dict[str, str] = {}
    for service in view.informers.list("services", pod.namespace):
        wanted = service["spec"].get("selector")
        if wanted and all(pod.labels.get(key) == value for key, value in wanted.items()):
            merged |= wanted
    owner = _owner(pod.pod, view)
    if owner is not None and owner["kind"] == "ReplicationController":
        merged |= owner["spec"].get("selector") or {}
    requirements: list[Requirement] = list(from_set(merged).requirements)
    if owner is not None and owner["kind"] != "ReplicationController":
        requirements += from_label_selector(owner["spec"].get("selector")).requirements
    return LabelSelector(requirements)


def _owner(pod: Object, view: View) -> Object | None:
    reference = controller_of(pod)
    resource = CONTROLLERS.get(reference["kind"]) if reference is not None else None
    if reference is None or resource is None:
        return None
    return view.informers.get(resource, pod["metadata"]["namespace"], reference["name"])


# --- pod affinity -------------------------------------------------------------------------------------------------

Domains = dict[tuple[str, str], int]  # (topology key, domain) → score


def pod_affinity_scores(pod: PodInfo, nodes: Nodes, view: View) -> Scores | None:
    """Nearer to the pods that it likes, or that like it, is better (``interpodaffinity/scoring.go``)."""
    asks = bool(pod.terms.preferred_affinity or pod.terms.preferred_anti_affinity)
    domains: Domains = {}
    for info in view.cache.nodes() if asks else view.cache.with_affinity.values():
        for other in (info.pods if asks else info.with_affinity).values():
            _score_pair(pod, other, info.labels, view, domains)
    if not domains:
        return None
    scores = [sum(domains.get(pair, 0) for pair in info.labels.items()) for info in nodes]
    low, high = min(scores), max(scores)
    return [MAX * (score - low) // (high - low) if high > low else 0 for score in scores]


def _score_pair(pod: PodInfo, other: PodInfo, labels: Mapping[str, str], view: View, domains: Domains) -> None:
    for terms, sign in ((pod.terms.preferred_affinity, 1), (pod.terms.preferred_anti_affinity, -1)):
        _score_terms(terms, sign, other, labels, view, domains)
    for terms, sign in ((other.terms.required_affinity, 1), (other.terms.preferred_affinity, 1),
                        (other.terms.preferred_anti_affinity, -1)):  # fmt: skip
        _score_terms(terms, sign, pod, labels, view, domains)


def _score_terms(
    terms: Terms, sign: int, meant: PodInfo, labels: Mapping[str, str], view: View, domains: Domains
) -> None:
    for term in terms:
        if term.topology_key not in labels:
            continue
        if term.matches(meant.namespace, meant.labels, view.namespace_labels(meant.namespace)):
            pair = (term.topology_key, labels[term.topology_key])
            domains[pair] = domains.get(pair, 0) + sign * term.weight


SCORERS: tuple[tuple[int, Scorer], ...] = (
    (3, taint_scores),
    (2, node_affinity_scores),
    (1, resource_scores),
    (2, spread_scores),
    (2, pod_affinity_scores),
)
