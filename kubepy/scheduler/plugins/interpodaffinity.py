"""Pod affinity and anti-affinity: which pods want to be, or must not be, in one domain (``interpodaffinity``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kubepy.api.meta import Object, labels_of, namespace_of, uid_of
from kubepy.api.selectors import NOTHING
from kubepy.scheduler.affinity import Term, Terms, pod_terms
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
    Admit,
    ClusterEvent,
    Plugin,
    Rejection,
    Skip,
    View,
)

Counts = dict[tuple[str, str], int]  # (topology key, domain) → pods
Labels = Mapping[str, str]


class State(NamedTuple):
    """How many pods meet the incoming pod's terms, and how many have terms against it, in each domain."""

    view: View
    affinity: Counts
    anti_affinity: Counts
    existing_anti_affinity: Counts


def _count(counts: Counts, key: str, labels: Labels, number: int) -> None:
    if (domain := labels.get(key)) is None:
        return
    counts[key, domain] = counts.get((key, domain), 0) + number
    if not counts[key, domain]:
        del counts[key, domain]


def meets_all(terms: Terms, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
    """Whether a pod is one that every term means; without terms no pod is."""
    return bool(terms) and all(term.matches(namespace, labels, namespace_labels) for term in terms)


class InterPodAffinity(Plugin):
    name = "InterPodAffinity"
    wakes_on = frozenset({POD_ADD, POD_LABEL, POD_DELETE, NODE_ADD, NODE_LABEL, NAMESPACE, SELF_UPDATE})
    AFFINITY = Rejection(("node(s) didn't match pod affinity rules",), False, name)
    ANTI_AFFINITY = Rejection(("node(s) didn't match pod anti-affinity rules",), True, name)
    EXISTING = Rejection(("node(s) didn't satisfy existing pods anti-affinity rules",), True, name)

    def pre_filter(self, pod: PodInfo, view: View) -> Admit | Skip:
        state = State(view, {}, {}, {})
        for info in view.cache.with_anti_affinity.values():
            for other in info.with_anti_affinity.values():
                self._count_existing(pod, state, other, info, 1)
        if pod.terms.required_affinity or pod.terms.required_anti_affinity:
            for info in view.cache.nodes():
                for other in info.pods.values():
                    self._count_incoming(pod, state, other, info, 1)
        elif not state.existing_anti_affinity:
            return SKIP
        return Admit(state)

    def filter(self, pod: PodInfo, state: State, info: NodeInfo) -> Rejection | None:
        labels = info.labels
        if not self._affinity_holds(pod, state, labels):
            return self.AFFINITY
        for term in pod.terms.required_anti_affinity:
            key = term.topology_key
            if key in labels and state.anti_affinity.get((key, labels[key]), 0) > 0:
                return self.ANTI_AFFINITY
        if any(state.existing_anti_affinity.get(pair, 0) > 0 for pair in labels.items()):
            return self.EXISTING
        return None

    def _affinity_holds(self, pod: PodInfo, state: State, labels: Labels) -> bool:
        terms = pod.terms.required_affinity
        if any(term.topology_key not in labels for term in terms):
            return False
        if all(state.affinity.get((term.topology_key, labels[term.topology_key]), 0) > 0 for term in terms):
            return True
        # The first of a group that wants to be together may go anywhere.
        own = state.view.namespace_labels(pod.namespace)
        return not state.affinity and meets_all(terms, pod.namespace, pod.labels, own)

    def clone(self, state: State) -> State:
        counts = (state.affinity, state.anti_affinity, state.existing_anti_affinity)
        return State(state.view, *(dict(one) for one in counts))

    def update(self, pod: PodInfo, state: State, other: PodInfo, info: NodeInfo, count: int) -> None:
        self._count_existing(pod, state, other, info, count)
        self._count_incoming(pod, state, other, info, count)

    def _count_existing(self, pod: PodInfo, state: State, other: PodInfo, info: NodeInfo, count: int) -> None:
        own = state.view.namespace_labels(pod.namespace)
        for term in other.terms.required_anti_affinity:
            if term.matches(pod.namespace, pod.labels, own):
                _count(state.existing_anti_affinity, term.topology_key, info.labels, count)

    def _count_incoming(self, pod: PodInfo, state: State, other: PodInfo, info: NodeInfo, count: int) -> None:
        theirs = state.view.namespace_labels(other.namespace)
        if meets_all(pod.terms.required_affinity, other.namespace, other.labels, theirs):
            for term in pod.terms.required_affinity:
                _count(state.affinity, term.topology_key, info.labels, count)
        for term in pod.terms.required_anti_affinity:
            if term.matches(other.namespace, other.labels, theirs):
                _count(state.anti_affinity, term.topology_key, info.labels, count)

    def may_help(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """More changes than upstream's hints name, which leaves the others to a retry every five minutes."""
        if SELF_UPDATE in event.actions:
            return event.new is not None and uid_of(event.new) == uid_of(pod.pod)
        if NAMESPACE in event.actions:
            return True
        if event.actions & {NODE_ADD, NODE_LABEL}:
            return _node_may_help(pod, event)
        return _pod_may_help(pod, event)


def _node_may_help(pod: PodInfo, event: ClusterEvent) -> bool:
    new = labels_of(event.new or {"metadata": {}})
    if event.old is None:
        near = any(term.topology_key in new for term in pod.terms.required_affinity)
        return near or bool(pod.terms.required_anti_affinity)
    old = labels_of(event.old)
    for term in pod.terms.required_affinity:
        if term.topology_key in new and old.get(term.topology_key) != new[term.topology_key]:
            return True
    for term in pod.terms.required_anti_affinity:
        if term.topology_key in old and new.get(term.topology_key) != old[term.topology_key]:
            return True
    return False


def _pod_may_help(pod: PodInfo, event: ClusterEvent) -> bool:
    near, far = pod.terms.required_affinity, pod.terms.required_anti_affinity
    old, new = event.old, event.new
    if old is None:
        return new is not None and _means_all(near, new)
    if new is not None:
        joins = not _means_all(near, old) and _means_all(near, new)
        return joins or any(_means(term, old) and not _means(term, new) for term in far)
    if any(_means(term, old) for term in far):
        return True
    theirs = pod_terms(old["spec"].get("affinity") or {}, namespace_of(old)).required_anti_affinity
    return any(_means(term, pod.pod) for term in theirs)


def _means_all(terms: Terms, pod: Object) -> bool:
    return bool(terms) and all(_means(term, pod) for term in terms)


def _means(term: Term, pod: Object) -> bool:
    """Whether a term could mean a pod, as far as can be said without the labels of the pod's namespace."""
    somewhere = namespace_of(pod) in term.namespaces or term.namespace_selector is not NOTHING
    return somewhere and term.selector.matches(labels_of(pod))
