"""Keep users from giving rights that they do not have themselves, where roles are enforced.

Who writes a role must have all rights in it, or the right to ``escalate`` it; who writes a binding
must have all rights of its role, or the right to ``bind`` it. Upstream: ``pkg/registry/rbac``
(``escalation_check.go``, ``*/policybased``), ``pkg/registry/rbac/validation``
(``ConfirmNoEscalation``), ``endpoints/handlers/update.go`` (``withAuthorization``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.api.objects.rbac import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    GROUP,
    ROLE_BINDINGS,
    ROLES,
    uncovered,
)
from kubepy.apiserver.authorization import EVERYTHING, PRIVILEGED_GROUP, AttributesRecord
from kubepy.apiserver.server import Attributes, RequestScope
from kubepy.quoting import quote
from kubepy.storage import Key

# Fields that the garbage collector changes: an update of nothing else gives no rights.
_COLLECTOR_FIELDS = ("ownerReferences", "finalizers", "selfLink", "managedFields")


def authorize_creation(scope: RequestScope) -> None:
    """Check that the user may create what a request is about to create: an update or a server-side
    apply of an absent object was allowed as an update or patch. Raises Forbidden."""
    attributes = _attributes(scope, "create")
    decision = scope.server.authorizer.authorize(attributes)
    if not decision.allowed:
        raise attributes.forbidden(decision.reason)


def confirm_no_escalation(attributes: Attributes) -> None:
    """Check that a new or changed role or binding gives nobody rights that its writer does not
    have.

    Raises Forbidden, NotFound (of the role of a binding).
    """
    resource, scope = attributes.resource.key, attributes.scope
    if (
        resource not in (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)
        or scope.is_internal
    ):
        return

    if PRIVILEGED_GROUP in (scope.context.user.get("groups") or ()):
        return
    obj, old = attributes.obj, attributes.old
    if old is not None and _without_collector_fields(obj) == _without_collector_fields(old):
        return
    if resource in (ROLES, CLUSTER_ROLES):
        _check_role(attributes, obj, old)
    else:
        _check_binding(attributes, obj.get("roleRef") or {})


def _check_role(attributes: Attributes, role: Object, old: Object | None) -> None:
    scope = attributes.scope
    if scope.server.authorizer.authorize(_attributes(scope, "escalate")).allowed:
        return
    if problem := _escalation(scope, role.get("rules") or ()):
        raise _forbidden(attributes, problem)
    if (_aggregates(role) or (old is not None and _aggregates(old))) and _escalation(
        scope, EVERYTHING
    ):
        raise _forbidden(
            attributes, "must have cluster-admin privileges to use the aggregationRule"
        )


def _forbidden(attributes: Attributes, problem: str) -> errors.Forbidden:
    return errors.forbidden(
        attributes.resource.key, attributes.obj["metadata"].get("name", ""), problem
    )


def _check_binding(attributes: Attributes, reference: Object) -> None:
    scope = attributes.scope
    kind, name = reference.get("kind", ""), reference.get("name", "")
    if kind not in ("Role", "ClusterRole"):
        return  # validation refuses it
    resource, namespace = f"{kind.lower()}s.{GROUP}", scope.namespace
    binding = _attributes(scope, "bind")._replace(
        api_group=reference.get("apiGroup", ""),
        resource=f"{kind.lower()}s",
        name=name,
        namespace=namespace,
    )
    if scope.server.authorizer.authorize(binding).allowed:
        return
    if kind == "Role" and not namespace:
        raise errors.BadRequest("Namespace parameter required.")
    role = (
        scope.transaction.get(Key(resource, namespace if kind == "Role" else "", name))
        if name
        else None
    )
    if role is None:
        raise errors.not_found(
            scope.resource.key, name
        )  # upstream names the resource of the request

    if problem := _escalation(scope, role.get("rules") or ()):
        raise _forbidden(attributes, problem)


def _attributes(scope: RequestScope, verb: str) -> AttributesRecord:
    resource = scope.resource
    return AttributesRecord(
        scope.context.user,
        verb,
        resource.group,
        resource.plural,
        scope.request.subresource,
        scope.namespace,
        scope.request.name,
    )


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _without_collector_fields(obj: Object) -> Object:
    metadata = {
        field: value for field, value in obj["metadata"].items() if field not in _COLLECTOR_FIELDS
    }
    return {**obj, "metadata": metadata}


def _escalation(scope: RequestScope, rules: Iterable[Object]) -> str:
    """Return the error of a user who does not have all rights of some rules, "" for one who has."""
    user = scope.context.user
    own, problems = scope.server.authorizer.rules_for(user, scope.namespace)
    missing = uncovered(own, rules)
    if not missing:
        return ""
    lines = sorted({_compact_string(rule) for rule in _compacted(missing)})
    problem = (
        f"user {quote(user.get('username', ''))} (groups={_go_list(user.get('groups') or ())}) is "
        f"attempting to "
        "grant RBAC permissions not currently held:\n" + "\n".join(lines)
    )
    if problems:
        error = problems[0] if len(problems) == 1 else f"[{', '.join(dict.fromkeys(problems))}]"
        problem += f"; resolution errors: [{error}]"
    return problem


def _compacted(rules: Iterable[Object]) -> list[Object]:
    """Join rules of one resource (and name) that differ in their verbs only (``CompactRules``)."""
    joined: dict[Any, Object] = {}
    others = []
    for rule in rules:
        if "nonResourceURLs" in rule:
            others.append(rule)
            continue
        key = rule["apiGroups"][0], rule["resources"][0], tuple(rule.get("resourceNames") or ())
        known = joined.setdefault(key, {**rule, "verbs": []})
        known["verbs"].extend(rule["verbs"])
    return [*others, *joined.values()]


def _compact_string(rule: Object) -> str:
    names = {
        "apiGroups": "APIGroups",
        "resources": "Resources",
        "nonResourceURLs": "NonResourceURLs",
        "resourceNames": "ResourceNames",
        "verbs": "Verbs",
    }
    return (
        "{"
        + ", ".join(
            f"{name}:{_go_list(rule[field])}" for field, name in names.items() if rule.get(field)
        )
        + "}"
    )


def _go_list(values: Iterable[str]) -> str:
    return f"[{' '.join(map(quote, values))}]"
