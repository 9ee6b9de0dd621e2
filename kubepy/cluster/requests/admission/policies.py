"""ValidatingAdmissionPolicies: rules in CEL about any request (``apiserver/pkg/admission/plugin/policy/validating``).

A policy says what must hold of which requests, a binding where that counts and what follows if it does not. Objects are
seen as they are written; there is no ``authorizer``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kubepy.cluster.cel.admission import compiled
from kubepy.cluster.cel.checker import CompileError
from kubepy.cluster.cel.interpreter import evaluate
from kubepy.cluster.cel.values import CelError, Record
from kubepy.cluster.errors import Cause, Status
from kubepy.cluster.meta import Object, labels_of
from kubepy.cluster.requests.admission.request import Request, refusal
from kubepy.cluster.selectors.labels import from_label_selector
from kubepy.storage import Key

GROUP = "admissionregistration.k8s.io"
POLICIES, BINDINGS = f"validatingadmissionpolicies.{GROUP}", f"validatingadmissionpolicybindings.{GROUP}"
CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}


class Decision(NamedTuple):
    """A denial: why, and the reason that the answer has."""

    message: str
    reason: str = "Invalid"


class ConfigurationError(Exception):
    """A policy that cannot be applied as it is bound."""


def check_policies(request: Request, operation: str) -> None:
    """Raises what the policies deny, and warns of what they only warn of. ``operation``: CREATE, UPDATE or DELETE."""
    bindings: dict[str, list[Object]] = {}
    for binding in request.session.list(BINDINGS):
        bindings.setdefault(binding["spec"].get("policyName", ""), []).append(binding)
    denied: list[str] = []
    reasons: list[str] = []
    for policy in request.session.list(POLICIES):
        own = bindings.get(policy["metadata"]["name"])
        if own and _matches(policy["spec"].get("matchConstraints") or {}, request, operation, needs_rules=True):
            for message, reason in _decisions(policy, own, request, operation):
                denied.append(message)
                reasons.append(reason)
    if denied:
        raise _denial(request, denied[0], reasons[0])


def _denial(request: Request, message: str, reason: str) -> Status:
    status = refusal(request.target, request.obj, message, [Cause("", message)])
    status.code, status.reason, status.kind = CODES.get(reason, 422), reason, request.target.resource.plural
    return status


def _decisions(policy: Object, bindings: list[Object], request: Request,
               operation: str) -> Iterator[tuple[str, str]]:
    """What each binding denies, with its reason."""
    for binding in bindings:
        spec = binding["spec"]
        if not _matches(spec.get("matchResources") or {}, request, operation):
            continue
        names = f"ValidatingAdmissionPolicy '{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
        try:
            params = _params(policy["spec"].get("paramKind"), spec.get("paramRef"), request)
        except ConfigurationError as error:
            if policy["spec"].get("failurePolicy") != "Ignore":
                yield f"{names} denied request: failed to configure binding: {error}", "Invalid"
            continue
        for param in params:
            for decision in _evaluate(policy["spec"], param, request, operation):
                actions = spec.get("validationActions") or ()
                if "Warn" in actions:
                    request.server.warn(f"Validation failed for {names}: {decision.message}")
                if "Deny" in actions:
                    yield f"{names} denied request: {decision.message}", decision.reason


# --- which requests -------------------------------------------------------------------------------------------------


def _matches(resources: Object, request: Request, operation: str, *, needs_rules: bool = False) -> bool:
    target = request.target
    if target.resource.group == GROUP or not _namespace_matches(resources.get("namespaceSelector"), request):
        return False
    objects = [one for one in (request.obj, request.old) if one is not None]
    selector = from_label_selector(resources.get("objectSelector") or {})
    if not any(selector.matches(labels_of(one)) for one in objects):
        return False
    if any(_rule_matches(rule, request, operation) for rule in resources.get("excludeResourceRules") or ()):
        return False
    rules = resources.get("resourceRules") or ()
    return any(_rule_matches(rule, request, operation) for rule in rules) if rules or needs_rules else True


def _namespace_matches(selector: Object | None, request: Request) -> bool:
    if not selector:
        return True
    if request.target.resource.key == "namespaces":
        return from_label_selector(selector).matches(labels_of(request.obj))
    if not request.target.namespace:
        return True
    namespace = request.session.get(Key("namespaces", "", request.target.namespace))
    return namespace is not None and from_label_selector(selector).matches(labels_of(namespace))


def _rule_matches(rule: Object, request: Request, operation: str) -> bool:
    resource = request.target.resource
    scope = rule.get("scope", "*")
    if scope != "*" and (scope == "Namespaced") != bool(request.target.namespace):
        return False
    if rule.get("resourceNames") and request.target.name not in rule["resourceNames"]:
        return False
    return (_one_of(operation, rule.get("operations")) and _one_of(resource.group, rule.get("apiGroups"))
            and _one_of(resource.version, rule.get("apiVersions"))
            and any(_names(name, resource.plural, request.subresource) for name in rule.get("resources") or ()))


def _one_of(value: str, allowed: list[str] | None) -> bool:
    return bool(allowed) and ("*" in (allowed or ()) or value in (allowed or ()))


def _names(name: str, plural: str, subresource: str) -> bool:
    wanted, _, sub = name.partition("/")
    return wanted in ("*", plural) and sub in ("*", subresource)


# --- parameters -----------------------------------------------------------------------------------------------------


def _params(kind: Object | None, reference: Object | None, request: Request) -> list[Object | None]:
    """The objects that a binding gives its policy; one None if it needs none. Raises ConfigurationError."""
    if kind is None or reference is None:
        return [None]
    resource = request.server.scheme.for_kind(kind.get("apiVersion", ""), kind.get("kind", ""))
    if resource is None:
        raise ConfigurationError(f"paramKind kind `{kind.get('apiVersion')}, Kind={kind.get('kind')}` not known")
    namespace = (reference.get("namespace") or request.target.namespace) if resource.namespaced else ""
    if resource.namespaced and not namespace:
        raise ConfigurationError("cannot use namespaced paramRef in policy binding that matches cluster-scoped "
                                 "resources")
    if name := reference.get("name"):
        named = request.session.get(Key(resource.key, namespace, name))
        found: list[Object | None] = [] if named is None else [named]
    else:
        selector = from_label_selector(reference.get("selector") or {})
        objects = request.session.list(resource.key, namespace if resource.namespaced else None)
        found = [one for one in objects if selector.matches(labels_of(one))]
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return found


# --- evaluation -----------------------------------------------------------------------------------------------------


class _Variables(Record):
    """``variables.name``: each is worked out when it is first named."""

    def __init__(self, definitions: list[Object], scope: dict[str, Any]) -> None:
        super().__init__()
        self._expressions = {one["name"]: one["expression"] for one in definitions}
        self._scope = scope

    def __contains__(self, name: object) -> bool:
        return name in self._expressions

    def __missing__(self, name: str) -> Any:
        self[name] = evaluate(compiled(self._expressions[name]).node, self._scope)
        return self[name]


def _evaluate(spec: Object, param: Object | None, request: Request, operation: str) -> Iterator[Decision]:
    """What the policy denies, in the order of its validations; nothing where its conditions do not hold."""
    scope = _scope(spec, param, request, operation)
    fails = spec.get("failurePolicy", "Fail") == "Fail"
    for condition in spec.get("matchConditions") or ():
        try:
            if evaluate(compiled(condition["expression"]).node, scope) is not True:
                return
        except (CelError, CompileError) as error:
            if fails:
                yield Decision(_error(condition["expression"], error))
            return
    for validation in spec.get("validations") or ():
        try:
            if evaluate(compiled(validation["expression"]).node, scope) is not True:
                yield Decision(_message(validation, scope), validation.get("reason") or "Invalid")
        except (CelError, CompileError) as error:
            if fails:
                yield Decision(_error(validation["expression"], error))


def _error(expression: str, error: Exception) -> str:
    return f"expression '{expression}' resulted in error: {error}"


def _message(validation: Mapping[str, Any], scope: dict[str, Any]) -> str:
    if expression := validation.get("messageExpression"):
        try:
            found = evaluate(compiled(expression).node, scope)
        except (CelError, CompileError):
            found = None  # upstream falls back to the plain message
        if isinstance(found, str) and found.strip() and "\n" not in found.strip():
            return found.strip()
    message = str(validation.get("message") or "").strip()
    return message or f"failed expression: {validation['expression'].strip()}"


def _scope(spec: Object, param: Object | None, request: Request, operation: str) -> dict[str, Any]:
    namespace = None
    if request.target.namespace:
        namespace = request.session.get(Key("namespaces", "", request.target.namespace))
    scope = {
        "object": None if operation == "DELETE" else request.obj,
        "oldObject": request.obj if operation == "DELETE" else request.old,
        "request": _attributes(request, operation), "params": param, "namespaceObject": namespace,
    }
    scope["variables"] = _Variables(spec.get("variables") or [], scope)
    return scope


def _attributes(request: Request, operation: str) -> Object:
    target = request.target
    group_version = {"group": target.resource.group, "version": target.resource.version}
    kind = {**group_version, "kind": target.resource.kind}
    resource = {**group_version, "resource": target.resource.plural}
    return {
        "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource, "name": target.name,
        "namespace": target.namespace, "operation": operation, "subResource": request.subresource,
        "requestSubResource": request.subresource, "dryRun": request.session.dry_run,
        "userInfo": dict(request.server.requester),
    }
