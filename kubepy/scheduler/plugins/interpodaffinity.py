"""The filter by pod affinity and anti-affinity: pods that must, or must not, share a domain
(``interpodaffinity``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from kubepy.api.meta import AnyObject, labels_of, namespace_of, uid_of
from kubepy.api.selectors import NOTHING
from kubepy.scheduler.affinity import AffinityTerm, Terms, pod_terms
from kubepy.scheduler.cache import NodeInfo, PodInfo
from kubepy.scheduler.framework import (
    NAMESPACE,
    NODE_ADD,
    NODE_LABEL,
    POD_ADD,
    POD_DELETE,
    POD_LABEL,
    SELF_UPDATE,
    SKIP,
    ClusterEvent,
    FilterPlugin,
    Handle,
    PluginStatus,
    PreFilterResult,
    Skip,
)

if TYPE_CHECKING:
    from kubepy.api.typed import Pod

Counts = dict[tuple[str, str], int]  # (topology key, domain) → pods
Labels = Mapping[str, str]


class AffinityState(NamedTuple):
    """For each domain the number of pods that match the incoming pod's terms, or have terms that it
    matches."""

    handle: Handle
    affinity: Counts
    anti_affinity: Counts
    existing_anti_affinity: Counts


def _count(counts: Counts, key: str, labels: Labels, number: int) -> None:
    domain = labels.get(key)
    if domain is None:
        return
    counts[key, domain] = counts.get((key, domain), 0) + number
    if not counts[key, domain]:
        del counts[key, domain]


def match_all(terms: Terms, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
    """Tell whether every term matches a pod; without terms none does."""
    if not terms:
        return False
    return all(term.matches(namespace, labels, namespace_labels) for term in terms)


class InterPodAffinity(FilterPlugin):
    """Enforce required terms of the incoming pod, and required anti-affinity of the pods that
    run."""

    name = "InterPodAffinity"
    events_to_register = frozenset(
        {POD_ADD, POD_LABEL, POD_DELETE, NODE_ADD, NODE_LABEL, NAMESPACE, SELF_UPDATE}
    )
    AFFINITY = PluginStatus(("node(s) didn't match pod affinity rules",), False, name)
    ANTI_AFFINITY = PluginStatus(("node(s) didn't match pod anti-affinity rules",), True, name)
    EXISTING = PluginStatus(
        ("node(s) didn't satisfy existing pods anti-affinity rules",), True, name
    )

    def pre_filter(self, pod: PodInfo, handle: Handle) -> PreFilterResult | Skip:
        state = AffinityState(handle, {}, {}, {})
        for node_info in handle.cache.nodes_with_affinity():
            for other in node_info.with_anti_affinity.values():
                self._count_existing(pod, state, other, node_info.labels, 1)
        if pod.terms.required_affinity or pod.terms.required_anti_affinity:
            for node_info in handle.cache.nodes():
                for other in node_info.pods.values():
                    self._count_incoming(pod, state, other, node_info.labels, 1)
        elif not state.existing_anti_affinity:
            return SKIP
        return PreFilterResult(state)

    def filter(
        self, pod: PodInfo, state: AffinityState, node_info: NodeInfo
    ) -> PluginStatus | None:
        labels = node_info.labels
        if not self._affinity_holds(pod, state, labels):
            return self.AFFINITY
        for term in pod.terms.required_anti_affinity:
            key = term.topology_key
            if key in labels and state.anti_affinity.get((key, labels[key]), 0) > 0:
                return self.ANTI_AFFINITY
        if any(state.existing_anti_affinity.get(pair, 0) > 0 for pair in labels.items()):
            return self.EXISTING
        return None

    def _affinity_holds(self, pod: PodInfo, state: AffinityState, labels: Labels) -> bool:
        terms = pod.terms.required_affinity
        if any(term.topology_key not in labels for term in terms):
            return False
        if all(
            state.affinity.get((term.topology_key, labels[term.topology_key]), 0) > 0
            for term in terms
        ):
            return True
        # The first pod of a group with affinity to each other may go anywhere.
        own = state.handle.namespace_labels(pod.namespace)
        if state.affinity:
            return False
        return match_all(terms, pod.namespace, pod.labels, own)

    def clone(self, state: AffinityState) -> AffinityState:
        counts = (state.affinity, state.anti_affinity, state.existing_anti_affinity)
        return AffinityState(state.handle, *(dict(count) for count in counts))

    def update(
        self, pod: PodInfo, state: AffinityState, other: PodInfo, node_info: NodeInfo, count: int
    ) -> None:
        self._count_existing(pod, state, other, node_info.labels, count)
        self._count_incoming(pod, state, other, node_info.labels, count)

    def _count_existing(
        self, pod: PodInfo, state: AffinityState, other: PodInfo, labels: Labels, count: int
    ) -> None:
        own = state.handle.namespace_labels(pod.namespace)
        for term in other.terms.required_anti_affinity:
            if term.matches(pod.namespace, pod.labels, own):
                _count(state.existing_anti_affinity, term.topology_key, labels, count)

    def _count_incoming(
        self, pod: PodInfo, state: AffinityState, other: PodInfo, labels: Labels, count: int
    ) -> None:
        theirs = state.handle.namespace_labels(other.namespace)
        if match_all(pod.terms.required_affinity, other.namespace, other.labels, theirs):
            for term in pod.terms.required_affinity:
                _count(state.affinity, term.topology_key, labels, count)
        for term in pod.terms.required_anti_affinity:
            if term.matches(other.namespace, other.labels, theirs):
                _count(state.anti_affinity, term.topology_key, labels, count)

    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Accept more events than upstream's hints, which leave the others to a retry every five
        minutes."""
        if SELF_UPDATE in event.actions:
            if event.new is None:
                return False
            return uid_of(event.new) == uid_of(pod.pod)
        if NAMESPACE in event.actions:
            return True
        if event.actions & {NODE_ADD, NODE_LABEL}:
            return _node_queueing_hint(pod, event)
        return _pod_queueing_hint(pod, event)


def _node_queueing_hint(pod: PodInfo, event: ClusterEvent) -> bool:
    affinity = pod.terms.required_affinity
    anti_affinity = pod.terms.required_anti_affinity
    new = labels_of(event.new or {"metadata": {}})
    if event.old is None:
        return bool(anti_affinity) or any(term.topology_key in new for term in affinity)
    old = labels_of(event.old)
    for term in affinity:
        key = term.topology_key
        if key in new and old.get(key) != new[key]:
            return True

    for term in anti_affinity:
        key = term.topology_key
        if key in old and new.get(key) != old[key]:
            return True

    return False


def _pod_queueing_hint(pod: PodInfo, event: ClusterEvent) -> bool:
    affinity = pod.terms.required_affinity
    anti_affinity = pod.terms.required_anti_affinity
    old = event.old
    new = event.new
    if old is None:
        return new is not None and _may_match_all(affinity, new)
    if new is not None:
        joins = not _may_match_all(affinity, old) and _may_match_all(affinity, new)
        if joins:
            return True
        return any(_may_match(term, old) and not _may_match(term, new) for term in anti_affinity)

    if any(_may_match(term, old) for term in anti_affinity):
        return True
    deleted = cast("Pod", old)
    theirs = pod_terms(
        deleted["spec"].get("affinity") or {}, namespace_of(old)
    ).required_anti_affinity
    return any(_may_match(term, pod.pod) for term in theirs)


def _may_match_all(terms: Terms, pod: AnyObject) -> bool:
    if not terms:
        return False
    return all(_may_match(term, pod) for term in terms)


def _may_match(term: AffinityTerm, pod: AnyObject) -> bool:
    """Tell whether a term could match a pod, as far as can be said without the labels of the pod's
    namespace."""
    is_in_namespace = namespace_of(pod) in term.namespaces
    if not is_in_namespace and term.namespace_selector is NOTHING:
        return False
    return term.selector.matches(labels_of(pod))
