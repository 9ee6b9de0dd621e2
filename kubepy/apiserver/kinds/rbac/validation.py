"""Roles and their bindings (``pkg/apis/rbac/validation``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, invalid_value, not_supported, required
from kubepy.api.meta import Object, nested_list
from kubepy.api.values.names import dns1123_subdomain, path_segment
from kubepy.apiserver.validation.fields import (
    Errors,
    validate_as,
    validate_label_selector,
)

GROUP = "rbac.authorization.k8s.io"
SUBJECT_KINDS = ("ServiceAccount", "User", "Group")


def validate_role(role: Object, *, namespaced: bool) -> list[FieldError]:
    errors: Errors = []
    for index, rule in enumerate(nested_list(role, "rules")):
        rule_path = f"rules[{index}]"
        if not rule.get("verbs"):
            errors.append(required(f"{rule_path}.verbs", "verbs must contain at least one value"))
        if urls := rule.get("nonResourceURLs"):
            at = f"{rule_path}.nonResourceURLs"
            if namespaced:
                errors.append(
                    invalid_value(at, urls, "namespaced rules cannot apply to non-resource URLs")
                )
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                errors.append(invalid_value(at, urls, detail))
            continue
        if not rule.get("apiGroups"):
            errors.append(
                required(
                    f"{rule_path}.apiGroups", "resource rules must supply at least one api group"
                )
            )
        if not rule.get("resources"):
            errors.append(
                required(
                    f"{rule_path}.resources", "resource rules must supply at least one resource"
                )
            )

    aggregation = role.get("aggregationRule")
    if aggregation is not None:
        selectors = nested_list(aggregation, "clusterRoleSelectors")
        path = "aggregationRule.clusterRoleSelectors"
        if not selectors:
            errors.append(
                required(
                    path, "at least one clusterRoleSelector required if aggregationRule is non-nil"
                )
            )
        for index, selector in enumerate(selectors):
            known = len(errors)
            validate_label_selector(selector, f"{path}[{index}]", errors)
            if len(errors) > known:
                errors.append(invalid_value(f"{path}[{index}]", None, "invalid label selector."))

    return errors


def validate_binding(binding: Object, *, namespaced: bool) -> list[FieldError]:
    errors: Errors = []
    role = binding.get("roleRef") or {}
    if role.get("apiGroup", "") != GROUP:
        errors.append(not_supported("roleRef.apiGroup", role.get("apiGroup", ""), (GROUP,)))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if role.get("kind", "") not in kinds:
        errors.append(not_supported("roleRef.kind", role.get("kind", ""), kinds))
    if not role.get("name"):
        errors.append(required("roleRef.name"))
    else:
        validate_as(path_segment, role["name"], "roleRef.name", errors)
    for index, subject in enumerate(nested_list(binding, "subjects")):
        _validate_subject(subject, f"subjects[{index}]", errors, needs_namespace=not namespaced)
    return errors


def _validate_subject(subject: Object, path: str, errors: Errors, *, needs_namespace: bool) -> None:
    kind = subject.get("kind", "")
    name = subject.get("name", "")
    group = subject.get("apiGroup", "")
    if not name:
        errors.append(required(f"{path}.name"))
    if kind == "ServiceAccount":
        if name:
            validate_as(dns1123_subdomain, name, f"{path}.name", errors)
        if group:
            errors.append(not_supported(f"{path}.apiGroup", group, ("",)))
        if needs_namespace and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif kind not in SUBJECT_KINDS:
        errors.append(not_supported(f"{path}.kind", kind, SUBJECT_KINDS))
    elif group != GROUP:
        errors.append(not_supported(f"{path}.apiGroup", group, (GROUP,)))


def validate_binding_update(binding: Object, old: Object, *, namespaced: bool) -> list[FieldError]:
    errors = validate_binding(binding, namespaced=namespaced)
    role = binding.get("roleRef") or {}
    old_role = old.get("roleRef") or {}
    if role != old_role:
        shown = {
            "APIGroup": role.get("apiGroup", ""),
            "Kind": role.get("kind", ""),
            "Name": role.get("name", ""),
        }
        errors.append(invalid_value("roleRef", shown, "cannot change roleRef"))
    return errors
