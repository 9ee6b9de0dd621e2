"""Roles and bindings: what a rule covers, reconciliation with what they should be, aggregation of
ClusterRoles.

Upstream: ``component-helpers/auth/rbac/{reconciliation,validation}``,
``pkg/controller/clusterroleaggregation``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kubepy.api.meta import AnyObject, Object, annotations_of, labels_of, name_of, nested_list
from kubepy.api.selectors import from_label_selector

GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLES = f"clusterroles.{GROUP}"
CLUSTER_ROLE_BINDINGS = f"clusterrolebindings.{GROUP}"
ROLES = f"roles.{GROUP}"
ROLE_BINDINGS = f"rolebindings.{GROUP}"
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
CREATE = "create"
UPDATE = "update"
RECREATE = "recreate"


class ReconcileResult(NamedTuple):
    """An object as it should be, the operation that makes it so ("": none is needed), and the
    reasons.

    ``missing`` and ``extra`` are rules of a role or subjects of a binding. A protected object is
    not changed.
    """

    object: Object
    operation: str
    missing: list[Object]
    extra: list[Object]
    is_protected: bool = False


def reconcile_role(existing: Object, expected: Object, *, removes: bool) -> ReconcileResult:
    """Make a role allow what is expected, and only that if ``removes``."""
    role = _with_metadata(existing, expected)
    old_rules = nested_list(existing, "rules")
    new_rules = nested_list(expected, "rules")
    missing = uncovered(old_rules, new_rules)
    aggregation = expected.get("aggregationRule")
    is_aggregated = aggregation is not None and existing.get("aggregationRule") is not None
    extra = [] if is_aggregated else uncovered(new_rules, old_rules)
    if removes and (missing or extra):
        role["rules"] = new_rules
    elif missing:
        role["rules"] = [*old_rules, *missing]

    if aggregation is None:
        role.pop("aggregationRule", None)
    else:
        old = nested_list(role, "aggregationRule", "clusterRoleSelectors")
        new = nested_list(aggregation, "clusterRoleSelectors")
        missing_selectors = [selector for selector in new if selector not in old]
        if removes and (missing_selectors or [selector for selector in old if selector not in new]):
            role["aggregationRule"] = aggregation
        elif missing_selectors:
            role["aggregationRule"] = {"clusterRoleSelectors": [*old, *missing_selectors]}

    return ReconcileResult(
        role, UPDATE if role != existing else "", missing, extra, _is_protected(existing)
    )


def reconcile_binding(existing: Object, expected: Object, *, removes: bool) -> ReconcileResult:
    """Bind the expected subjects, and only those if ``removes``.

    A binding of another role is deleted and created again, since the role of a binding cannot be
    changed.
    """
    if existing["roleRef"] != expected["roleRef"]:
        return ReconcileResult(expected, RECREATE, [], [], _is_protected(existing))
    binding = _with_metadata(existing, expected)
    old = nested_list(existing, "subjects")
    new = nested_list(expected, "subjects")
    missing = _difference(new, old)
    extra = _difference(old, new)
    if removes and (missing or extra):
        binding["subjects"] = new
    elif missing:
        binding["subjects"] = [*old, *missing]
    return ReconcileResult(
        binding, UPDATE if binding != existing else "", missing, extra, _is_protected(existing)
    )


def _is_protected(existing: Object) -> bool:
    return annotations_of(existing).get(AUTOUPDATE) == "false"


def _difference(subjects: Iterable[Object], others: list[Object]) -> list[Object]:
    difference: list[Object] = []
    for subject in subjects:
        if subject not in others and subject not in difference:
            difference.append(subject)
    return difference


def _with_metadata(existing: Object, expected: Object) -> Object:
    """Return a copy of the existing object with the labels and annotations that it lacks."""
    merged = copy.deepcopy(existing)
    for field in ("annotations", "labels"):
        if values := {
            **(expected["metadata"].get(field) or {}),
            **(existing["metadata"].get(field) or {}),
        }:
            merged["metadata"][field] = dict(sorted(values.items()))
    return merged


# --- rules ----------------------------------------------------------------------------------------


def uncovered(owners: Sequence[AnyObject], servants: Iterable[AnyObject]) -> list[Object]:
    """Return what the servants' rules allow and none of the owners' does, broken down
    (``Covers``)."""
    return [
        part
        for rule in servants
        for part in broken_down(rule)
        if not any(covers(owner, part) for owner in owners)
    ]


def broken_down(rule: AnyObject) -> Iterator[Object]:
    """Yield rules of one verb and one resource, name or URL each."""
    for group in nested_list(rule, "apiGroups"):
        for resource in nested_list(rule, "resources"):
            for verb in nested_list(rule, "verbs"):
                for name in rule.get("resourceNames") or [None]:
                    yield {
                        "verbs": [verb],
                        "apiGroups": [group],
                        "resources": [resource],
                        **({"resourceNames": [name]} if name is not None else {}),
                    }
    for url in nested_list(rule, "nonResourceURLs"):
        for verb in nested_list(rule, "verbs"):
            yield {"verbs": [verb], "nonResourceURLs": [url]}


def covers(owner: AnyObject, part: AnyObject) -> bool:
    """Return whether a rule allows what another one does that is broken down."""
    for field in ("verbs", "apiGroups"):
        owned = owner.get(field) or ()
        if "*" not in owned and not set(part.get(field) or ()) <= set(owned):
            return False

    owned = nested_list(owner, "resources")
    for resource in nested_list(part, "resources"):
        _, slash, subresource = resource.partition("/")
        if not ("*" in owned or resource in owned or (slash and f"*/{subresource}" in owned)):
            return False

    owned = nested_list(owner, "resourceNames")
    names = nested_list(part, "resourceNames")
    if owned and not (names and set(names) <= set(owned)):
        return False
    owned = nested_list(owner, "nonResourceURLs")
    return all(
        any(own == url or (own.endswith("*") and url.startswith(own.rstrip("*"))) for own in owned)
        for url in nested_list(part, "nonResourceURLs")
    )


def aggregated_rules(role: Object, roles: list[Object]) -> list[Object]:
    """Return the rules of all other roles that the role selects, by name within each selector,
    without duplicates.

    Raises SelectorError.
    """
    rules: list[Object] = []
    for label_selector in nested_list(role["aggregationRule"], "clusterRoleSelectors"):
        selector = from_label_selector(label_selector)
        for other in sorted(roles, key=name_of):
            if name_of(other) != name_of(role) and selector.matches(labels_of(other)):
                for rule in nested_list(other, "rules"):
                    if rule not in rules:
                        rules.append(rule)
    return rules
