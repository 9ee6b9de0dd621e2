"""The requests that a webhook or an admission policy is about: rules and selectors.

Upstream: ``apiserver/pkg/admission/plugin/webhook/{generic,predicates}``,
``plugin/policy/matching``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubepy.api.meta import Object, labels_of
from kubepy.api.scheme import Resource
from kubepy.api.selectors import from_label_selector
from kubepy.apiserver.server import Attributes
from kubepy.storage import Key

# These configure admission itself, so that nothing in the way of all requests is in the way of its
# own removal.
EXEMPT = frozenset(
    f"{plural}.admissionregistration.k8s.io"
    for plural in (
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    )
)


def matched_resource(
    rules: Sequence[Object], attributes: Attributes, match_policy: str
) -> Resource | None:
    """Return the resource in the version that a rule names, which for ``Equivalent`` may not be the
    request's.

    A rule that names the version of the request comes before all others (``ShouldCallHook``).
    """
    requested = attributes.scope.requested_resource
    if any(rule_matches(rule, attributes, requested) for rule in rules):
        return requested
    if match_policy != "Equivalent":
        return None
    others = [requested.at(version) for version in requested.other_versions]
    return next(
        (other for rule in rules for other in others if rule_matches(rule, attributes, other)), None
    )


def rule_matches(rule: Object, attributes: Attributes, resource: Resource) -> bool:
    """Tell whether a rule is about a request for a resource in this version."""
    scope = rule.get("scope") or "*"
    if scope != "*" and (scope == "Namespaced") != resource.namespaced:
        return False
    if rule.get("resourceNames") and attributes.name not in rule["resourceNames"]:
        return False
    return (
        _is_among(attributes.operation, rule.get("operations"))
        and _is_among(resource.group, rule.get("apiGroups"))
        and _is_among(resource.version, rule.get("apiVersions"))
        and any(
            plural in ("*", resource.plural) and subresource in ("*", attributes.subresource)
            for plural, _, subresource in (
                name.partition("/") for name in rule.get("resources") or ()
            )
        )
    )


def names_resource(configuration: Object, resource: Resource) -> bool:
    """Return whether a webhook of a configuration may be called for objects of a resource, or for
    its subresources, in whichever version."""
    if resource.key in EXEMPT:
        return False
    for webhook in configuration.get("webhooks") or ():
        for rule in webhook.get("rules") or ():
            plurals = [name.partition("/")[0] for name in rule.get("resources") or ()]
            if _is_among(resource.group, rule.get("apiGroups")) and _is_among(
                resource.plural, plurals
            ):
                return True
    return False


def _is_among(value: str, allowed: Iterable[str] | None) -> bool:
    allowed = allowed or ()
    return "*" in allowed or value in allowed


def namespace_matches(selector: Object | None, attributes: Attributes) -> bool:
    """Tell whether the labels of the request's namespace match; cluster-scoped objects always do.

    A namespace is selected by its own labels, a new or changed one by those that it is to have.
    """
    if not selector:
        return True
    if attributes.resource.key == "namespaces":
        return from_label_selector(selector).matches(labels_of(attributes.obj))
    if not attributes.namespace:
        return True
    namespace = attributes.transaction.get(Key("namespaces", "", attributes.namespace))
    return namespace is not None and from_label_selector(selector).matches(labels_of(namespace))


def object_matches(selector: Object | None, attributes: Attributes) -> bool:
    """Tell whether the labels of the object match, as it is or as it was."""
    if not selector:
        return True
    parsed = from_label_selector(selector)
    return any(
        parsed.matches(labels_of(obj))
        for obj in (attributes.obj, attributes.old)
        if obj is not None
    )


def request_attributes(attributes: Attributes, resource: Resource) -> Object:
    """Describe a request as AdmissionReviews and expressions (``request``) see it.

    :param resource: the resource in the version in which the rules match it.
    """
    requested = attributes.scope.requested_resource
    name = attributes.name or attributes.obj["metadata"].get("name", "")
    if attributes.scope.request.verb == "deletecollection":
        name = ""
    return {
        "kind": _kind(attributes.body or resource),
        "resource": _resource(resource),
        "subResource": attributes.subresource,
        "requestKind": _kind(attributes.body or requested),
        "requestResource": _resource(requested),
        "requestSubResource": attributes.subresource,
        "name": name,
        "namespace": name if attributes.resource.key == "namespaces" else attributes.namespace,
        "operation": attributes.operation,
        "userInfo": dict(attributes.context.user),
        "dryRun": attributes.transaction.dry_run,
    }


def _kind(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _resource(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}
