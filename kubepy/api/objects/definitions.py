"""Conversion of CustomResourceDefinitions between ``v1`` and ``v1beta1``, in which a kube-apiserver
stores them.

What all versions have in common stands once in v1beta1, beside them.
Upstream: ``apiextensions-apiserver/pkg/apis/apiextensions/v1/conversion.go``, and the defaults of
v1beta1.
"""

from __future__ import annotations

from typing import Any

from kubepy.api.meta import AnyObject, Object

V1 = "apiextensions.k8s.io/v1"
V1BETA1 = "apiextensions.k8s.io/v1beta1"
# What a version has, and what that is called where all versions have it.
_COMMON = {
    "subresources": "subresources",
    "schema": "validation",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
_COLUMNS = "additionalPrinterColumns"


def to_v1beta1(definition: AnyObject) -> Object:
    """Return a definition of v1 as v1beta1 has it."""
    spec = dict(definition["spec"])
    versions = [dict(version) for version in spec["versions"]]
    for version in versions:
        _rename_paths(version, "jsonPath", "JSONPath")
    spec["versions"] = versions
    if versions:
        spec["version"] = versions[0]["name"]
        _move_common(spec, versions)
    if conversion := spec.get("conversion"):
        spec["conversion"] = _flat_conversion(conversion)
    spec.setdefault("preserveUnknownFields", False)
    return {**definition, "apiVersion": V1BETA1, "spec": spec}


def _move_common(spec: Object, versions: list[Object]) -> None:
    for field, common in _COMMON.items():
        first = versions[0].get(field)
        is_common = all(_is_equal(version.get(field), first) for version in versions)
        if not is_common:
            continue
        for version in versions:
            version.pop(field, None)
        if first is not None and first != []:
            spec[common] = first


def _is_equal(value: Any, other: Any) -> bool:
    """Compare as upstream does: no list is an empty one."""
    return bool(value == other or (value in (None, []) and other in (None, [])))


def _flat_conversion(conversion: AnyObject) -> Object:
    flat = {field: value for field, value in conversion.items() if field != "webhook"}
    webhook = conversion.get("webhook") or {}
    if "clientConfig" in webhook:
        flat["webhookClientConfig"] = webhook["clientConfig"]
    if "conversionReviewVersions" in webhook:
        flat["conversionReviewVersions"] = webhook["conversionReviewVersions"]
    return flat


def from_v1beta1(definition: AnyObject) -> Object:
    """Return a definition of v1beta1, with the defaults of that version, as v1 has it."""
    spec = dict(definition["spec"])
    first = spec.pop("version", None)
    versions = [dict(version) for version in spec.get("versions") or ()]
    if not versions and first:
        versions = [{"name": first, "served": True, "storage": True}]
    for field, common in _COMMON.items():
        value = spec.pop(common, None)
        if value is not None:
            for version in versions:
                version[field] = value
    for version in versions:
        _rename_paths(version, "JSONPath", "jsonPath")
    spec["versions"] = versions
    spec["conversion"] = _deep_conversion(spec.get("conversion") or {"strategy": "None"})
    if not spec.setdefault("preserveUnknownFields", True):
        del spec["preserveUnknownFields"]
    _add_defaults(spec)
    converted = {**definition, "apiVersion": V1, "spec": spec}
    if status := definition.get("status"):
        # protobuf does not tell an empty list from none
        lists = {field: status.get(field) or [] for field in ("conditions", "storedVersions")}
        converted["status"] = {**status, **lists}
    return converted


def _add_defaults(spec: Object) -> None:
    spec["scope"] = spec.get("scope") or "Namespaced"
    names = spec["names"] = dict(spec["names"])
    kind = names.get("kind", "")
    names["singular"] = names.get("singular") or kind.lower()
    names["listKind"] = names.get("listKind") or f"{kind}List"


def _deep_conversion(conversion: AnyObject) -> Object:
    deep = dict(conversion)
    client_config = deep.pop("webhookClientConfig", None)
    review_versions = deep.pop("conversionReviewVersions", None)
    if review_versions is None and deep.get("strategy") == "Webhook":
        review_versions = ["v1beta1"]
    if client_config is not None or review_versions is not None:
        webhook: Object = {"conversionReviewVersions": review_versions or []}
        if client_config is not None:
            webhook["clientConfig"] = client_config
        deep["webhook"] = webhook
    return deep


def _rename_paths(version: Object, old: str, new: str) -> None:
    """Give the path of each column its name in the other version."""
    if columns := version.get(_COLUMNS):
        version[_COLUMNS] = [
            {new if field == old else field: value for field, value in column.items()}
            for column in columns
        ]
