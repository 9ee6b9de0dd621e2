"""Roles and their bindings, and CertificateSigningRequests
(``pkg/apis/{rbac,certificates}/validation``)."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator

from kubepy.api import selectors
from kubepy.api.errors import (
    FieldError,
    duplicate,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from kubepy.api.meta import Object
from kubepy.api.values.goformat import Ordered
from kubepy.api.values.names import NameRule, dns1123_label, dns1123_subdomain, path_segment
from kubepy.apiserver.validation.fields import (
    Errors,
    json_view,
    validate_format,
    validate_label_name,
    validate_label_selector,
    validate_label_values,
    validate_operator,
)
from kubepy.quoting import quote

GROUP = "rbac.authorization.k8s.io"
SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
SUBJECT_KINDS = ("ServiceAccount", "User", "Group")


def validate_role(role: Object, *, namespaced: bool) -> list[FieldError]:
    errors: Errors = []
    for index, rule in enumerate(role.get("rules") or ()):
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
        selectors = aggregation.get("clusterRoleSelectors") or []
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
        validate_format(role["name"], path_segment(role["name"]), "roleRef.name", errors)
    for index, subject in enumerate(binding.get("subjects") or ()):
        subject_path = f"subjects[{index}]"
        kind, name, group = (
            subject.get("kind", ""),
            subject.get("name", ""),
            subject.get("apiGroup", ""),
        )
        if not name:
            errors.append(required(f"{subject_path}.name"))
        if kind == "ServiceAccount":
            if name:
                validate_format(name, dns1123_subdomain(name), f"{subject_path}.name", errors)
            if group:
                errors.append(not_supported(f"{subject_path}.apiGroup", group, ("",)))
            if not namespaced and not subject.get("namespace"):
                errors.append(required(f"{subject_path}.namespace"))
        elif kind not in SUBJECT_KINDS:
            errors.append(not_supported(f"{subject_path}.kind", kind, SUBJECT_KINDS))
        elif group != GROUP:
            errors.append(not_supported(f"{subject_path}.apiGroup", group, (GROUP,)))
    return errors


def validate_binding_update(binding: Object, old: Object, *, namespaced: bool) -> list[FieldError]:
    errors = validate_binding(binding, namespaced=namespaced)
    role, old_role = binding.get("roleRef") or {}, old.get("roleRef") or {}
    if role != old_role:
        shown = {
            "APIGroup": role.get("apiGroup", ""),
            "Kind": role.get("kind", ""),
            "Name": role.get("name", ""),
        }
        errors.append(invalid_value("roleRef", shown, "cannot change roleRef"))
    return errors


# --- certificate signing requests (pkg/apis/certificates/validation); signatures are not checked --


USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
TEN_MINUTES = 600
_PEM = re.compile(rb"-----BEGIN (.+?)-----\s.*-----END \1-----", re.DOTALL)


def validate_request(request: Object) -> list[FieldError]:
    errors: Errors = []
    spec = request["spec"]
    encoded = spec.get("request")
    block = _PEM.search(b64decode(encoded or ""))
    if block is None or block[1] != b"CERTIFICATE REQUEST":
        errors.append(
            invalid_value("spec.request", encoded, "PEM block type must be CERTIFICATE REQUEST")
        )
    if not spec.get("usages"):
        errors.append(required("spec.usages"))
    for index, usage in enumerate(spec.get("usages") or ()):
        if usage not in USAGES:
            errors.append(not_supported(f"spec.usages[{index}]", usage, USAGES))
        if usage in spec["usages"][:index]:
            errors.append(duplicate(f"spec.usages[{index}]", usage))
    _validate_signer(spec.get("signerName", ""), errors)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < TEN_MINUTES:
        errors.append(
            invalid_value(
                "spec.expirationSeconds",
                seconds,
                "may not specify a duration less than 600 seconds (10 minutes)",
            )
        )
    return errors


def _validate_signer(name: str, errors: Errors) -> None:
    """Validate a domain and a path, as in ``example.com/my-signer`` (``ValidateSignerName``)."""
    path = "spec.signerName"
    domain, _, rest = name.partition("/")
    if not name:
        errors.append(required(path))
        return
    if name.count("/") != 1:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        errors.append(invalid_value(path, name, detail))
        return
    if len(domain) > 253:
        errors.append(too_long(path, 253))
    _validate_labels(domain, dns1123_label, path, errors)
    if "." not in domain:
        errors.append(
            invalid_value(
                path, domain, "should be a domain with at least two segments separated by dots"
            )
        )
    _validate_labels(rest, dns1123_subdomain, path, errors)
    if len(name) > 571:
        errors.append(too_long(path, 571))


def _validate_labels(text: str, rule: NameRule, path: str, errors: Errors) -> None:
    """Add the errors of the first part between dots that has some."""
    for label in text.split("."):
        if details := rule(label):
            errors.extend(
                invalid_value(path, text, f"validating label {quote(label)}: {detail}")
                for detail in details
            )
            return


# --- reviews --------------------------------------------------------------------------------------


def validate_access(spec: Object, *, of_subject: bool = False) -> list[FieldError]:
    """Check that a review is about a resource or about a path, not both.

    :param of_subject: it is about another user, who must be named.
    """
    errors: Errors = []
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        errors.append(
            invalid_value(
                "spec.nonResourceAttributes",
                _path_view(path),
                "cannot be specified in combination with resourceAttributes",
            )
        )
    if resource is None and path is None:
        errors.append(
            invalid_value(
                "spec.resourceAttributes",
                None,
                "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            )
        )
    if of_subject and not spec.get("user") and not spec.get("groups"):
        errors.append(
            invalid_value(
                "spec.user", spec.get("user", ""), "at least one of user or group must be specified"
            )
        )
    for kind in ("fieldSelector", "labelSelector"):
        if (selector := (resource or {}).get(kind)) is not None:
            _validate_selector_attributes(selector, f"spec.resourceAttributes.{kind}", errors)
    return errors


def _path_view(path: Object) -> Ordered:
    """Return the attributes of a path as Go prints their internal type."""
    return Ordered({"Path": path.get("path", ""), "Verb": path.get("verb", "")})


def _validate_selector_attributes(selector: Object, path: str, errors: Errors) -> None:
    raw, requirements = selector.get("rawSelector", ""), selector.get("requirements") or ()
    if raw and requirements:
        errors.append(
            invalid_value(
                f"{path}.rawSelector", raw, "may not specified at the same time as requirements"
            )
        )
    if not raw and not requirements:
        errors.append(
            required(
                f"{path}.requirements",
                f"when {path} is specified, requirements or rawSelector is required",
            )
        )
    is_of_fields = path.endswith("fieldSelector")
    for index, requirement in enumerate(requirements):
        at = f"{path}.requirements[{index}]"
        if is_of_fields and not requirement.get("key"):
            errors.append(required(f"{at}.key", "must be specified"))
        if requirement.get("operator") in SELECTOR_OPERATORS:  # newer clients may know others
            validate_operator(requirement, at, errors)
        if not is_of_fields:
            validate_label_name(requirement.get("key", ""), f"{at}.key", errors)
            validate_label_values(requirement.get("values"), f"{at}.values", errors)


def validate_empty_metadata(
    metadata: Object, detail: str = "must be empty", ignored: tuple[str, ...] = ("managedFields",)
) -> list[FieldError]:
    if all(field in ignored for field in metadata):
        return []
    return [invalid_value("metadata", json_view("meta/v1.ObjectMeta", metadata), detail)]


def validate_local_access(review: Object) -> list[FieldError]:
    """Check that a review is about the namespace in which it is made."""
    metadata, spec = review["metadata"], review["spec"]
    namespace, asked = metadata.get("namespace", ""), spec.get("resourceAttributes")
    errors = validate_empty_metadata(
        metadata, "must be empty except for namespace", ("managedFields", "namespace")
    )
    if asked is not None and asked.get("namespace", "") != namespace:
        errors.append(
            invalid_value(
                "spec.resourceAttributes.namespace",
                asked.get("namespace", ""),
                "must match metadata.namespace",
            )
        )
    if (path := spec.get("nonResourceAttributes")) is not None:
        errors.append(
            invalid_value(
                "spec.nonResourceAttributes", _path_view(path), "disallowed on this kind of request"
            )
        )
    return errors


def ignored_selectors(attributes: Object) -> Iterator[tuple[str, str]]:
    """Yield the selectors of a review that cannot be read, each with what becomes of it."""

    def is_field(requirement: Object) -> bool:
        return (
            requirement.get("operator") in ("In", "NotIn")
            and len(requirement.get("values") or ()) == 1
        )

    def is_label(requirement: Object) -> bool:
        return requirement.get("operator") in SELECTOR_OPERATORS

    for kind, is_readable, parse in (
        ("fieldSelector", is_field, selectors.parse_fields),
        ("labelSelector", is_label, selectors.parse_labels),
    ):
        selector = attributes.get(kind) or {}
        requirements = selector.get("requirements") or ()
        readable = [requirement for requirement in requirements if is_readable(requirement)]
        if len(readable) < len(requirements):
            yield kind, "partially ignored" if readable else "ignored"
        elif raw := selector.get("rawSelector"):
            try:
                parse(raw)
            except selectors.SelectorError:
                yield kind, "ignored"
