"""The pod affinity and anti-affinity terms of a pod, ready to be matched
(``kube-scheduler/framework``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kubepy.api.selectors import NOTHING, LabelSelector, from_label_selector

if TYPE_CHECKING:
    from kubepy.api.typed import Affinity, PodAffinity, PodAffinityTerm, PodAntiAffinity

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class AffinityTerm(NamedTuple):
    """One affinity term. It applies to the namespaces named and to those that its namespace
    selector matches."""

    topology_key: str
    namespaces: frozenset[str]
    selector: LabelSelector
    namespace_selector: LabelSelector
    weight: int = 1

    def matches(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> bool:
        """Tell whether the term selects a pod with these labels, in a namespace with those."""
        if namespace in self.namespaces or self.namespace_selector.matches(namespace_labels):
            return self.selector.matches(labels)
        return False


Terms = tuple[AffinityTerm, ...]


class PodTerms(NamedTuple):
    """The four kinds of affinity terms of a pod."""

    required_affinity: Terms = ()
    required_anti_affinity: Terms = ()
    preferred_affinity: Terms = ()
    preferred_anti_affinity: Terms = ()

    @property
    def any(self) -> bool:
        return any(self)


NO_TERMS = PodTerms()


def pod_terms(affinity: Affinity, namespace: str) -> PodTerms:
    """Parse a pod's ``spec.affinity``."""
    pod_affinity = affinity.get("podAffinity") or {}
    anti_affinity = affinity.get("podAntiAffinity") or {}
    if not pod_affinity and not anti_affinity:
        return NO_TERMS
    return PodTerms(
        _required(pod_affinity, namespace),
        _required(anti_affinity, namespace),
        _preferred(pod_affinity, namespace),
        _preferred(anti_affinity, namespace),
    )


def _required(affinity: PodAffinity | PodAntiAffinity, namespace: str) -> Terms:
    terms = affinity.get(REQUIRED) or ()
    return tuple(_term(term, namespace) for term in terms)


def _preferred(affinity: PodAffinity | PodAntiAffinity, namespace: str) -> Terms:
    return tuple(
        _term(weighted["podAffinityTerm"], namespace, weighted["weight"])
        for weighted in affinity.get(PREFERRED) or ()
        if weighted["weight"]
    )


def _term(term: PodAffinityTerm, namespace: str, weight: int = 1) -> AffinityTerm:
    """Parse a term; without namespaces and a namespace selector it applies to the pod's own
    namespace."""
    namespaces = term.get("namespaces") or ()
    selector = term.get("namespaceSelector")
    if not namespaces and selector is None:
        namespaces = [namespace]
    return AffinityTerm(
        topology_key=term["topologyKey"],
        namespaces=frozenset(namespaces),
        selector=from_label_selector(term.get("labelSelector")),
        namespace_selector=from_label_selector(selector) if selector is not None else NOTHING,
        weight=weight,
    )
