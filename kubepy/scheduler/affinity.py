"""The pod affinity and anti-affinity terms of a pod, ready to be matched (``kube-scheduler/framework``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kubepy.api.selectors import NOTHING, LabelSelector, from_label_selector

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Term(NamedTuple):
    """One affinity term. Its namespaces are those named, or those whose labels its namespace selector fits."""

    topology_key: str
    namespaces: frozenset[str]
    selector: LabelSelector
    namespace_selector: LabelSelector
    weight: int = 1

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels, in a namespace with those, is meant (``AffinityTerm.Matches``)."""
        if namespace in self.namespaces or self.namespace_selector.matches(namespace_labels):
            return self.selector.matches(labels)
        return False


Terms = tuple[Term, ...]


class PodTerms(NamedTuple):
    required_affinity: Terms = ()
    required_anti_affinity: Terms = ()
    preferred_affinity: Terms = ()
    preferred_anti_affinity: Terms = ()

    @property
    def any(self) -> bool:
        return any(self)


NO_TERMS = PodTerms()


def pod_terms(affinity: Mapping[str, Any], namespace: str) -> PodTerms:
    """All four kinds of terms of a pod's ``spec.affinity``."""
    near, far = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    if not near and not far:
        return NO_TERMS
    return PodTerms(
        _required(near, namespace), _required(far, namespace), _preferred(near, namespace), _preferred(far, namespace)
    )


def _required(affinity: Mapping[str, Any], namespace: str) -> Terms:
    return tuple(_term(term, namespace) for term in affinity.get(REQUIRED) or ())


def _preferred(affinity: Mapping[str, Any], namespace: str) -> Terms:
    terms = affinity.get(PREFERRED) or ()
    return tuple(_term(one["podAffinityTerm"], namespace, one["weight"]) for one in terms if one["weight"])


def _term(term: Mapping[str, Any], namespace: str, weight: int = 1) -> Term:
    """A term without namespaces and without a selector of them means the pod's own namespace."""
    namespaces, selector = term.get("namespaces") or (), term.get("namespaceSelector")
    if not namespaces and selector is None:
        namespaces = (namespace,)
    return Term(
        topology_key=term["topologyKey"],
        namespaces=frozenset(namespaces),
        selector=from_label_selector(term.get("labelSelector")),
        namespace_selector=from_label_selector(selector) if selector is not None else NOTHING,
        weight=weight,
    )
