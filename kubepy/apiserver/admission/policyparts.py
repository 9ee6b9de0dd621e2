"""The parts of policies, validating and mutating ones: which requests they are about, their
parameters, and the expressions that see a request
(``apiserver/pkg/admission/plugin/policy/generic``).

Objects are seen as they are written; there is no ``authorizer``. What an expression may cost is not
estimated when the policy is created, but counted when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubepy.api.cel.checker import (
    Compiled,
    CompileError,
    compile_mutation,
    compile_policy_expression,
)
from kubepy.api.cel.cost import MATCH_CONDITIONS_BUDGET, BudgetExceeded, CostBudget
from kubepy.api.cel.interpreter import evaluate_within
from kubepy.api.cel.types import Type
from kubepy.api.cel.values import CelError, Record
from kubepy.api.meta import Object, labels_of
from kubepy.api.scheme import Resource
from kubepy.api.selectors import from_label_selector
from kubepy.apiserver.admission.matching import (
    matched_resource,
    namespace_matches,
    object_matches,
    request_attributes,
    rule_matches,
)
from kubepy.apiserver.server import Attributes
from kubepy.quoting import quote
from kubepy.storage import Key

GROUP = "admissionregistration.k8s.io"


class ConfigurationError(Exception):
    """A policy that cannot be applied as it is bound."""


# --- which requests -------------------------------------------------------------------------------


def matches(resources: Object, attributes: Attributes, *, needs_rules: bool = False) -> bool:
    """Tell whether constraints of a policy or a binding are about a request."""
    if (
        attributes.resource.group == GROUP
        or not namespace_matches(resources.get("namespaceSelector"), attributes)
        or not object_matches(resources.get("objectSelector"), attributes)
    ):
        return False

    requested = attributes.scope.requested_resource
    if any(
        rule_matches(rule, attributes, requested)
        for rule in resources.get("excludeResourceRules") or ()
    ):
        return False

    rules = resources.get("resourceRules") or ()
    match_policy = resources.get("matchPolicy", "Equivalent")
    if rules or needs_rules:
        return matched_resource(rules, attributes, match_policy) is not None
    return True


def bound(attributes: Attributes, policies: str, bindings: str) -> Iterator[tuple[Object, Object]]:
    """Yield the policies that are about a request, each with every binding of it that is; both in
    the order of their names.

    :param policies: the resource of the policies, as in ``bindings`` that of the bindings.
    """
    by_policy: dict[str, list[Object]] = {}
    for binding in attributes.transaction.list(bindings):
        by_policy.setdefault(binding["spec"].get("policyName", ""), []).append(binding)
    for policy in attributes.transaction.list(policies):
        own = by_policy.get(policy["metadata"]["name"])
        constraints = policy["spec"].get("matchConstraints") or {}
        if not own or not matches(constraints, attributes, needs_rules=True):
            continue
        for binding in own:
            if matches(binding["spec"].get("matchResources") or {}, attributes):
                yield policy, binding


# --- parameters -----------------------------------------------------------------------------------


def params_of(
    kind: Object | None, reference: Object | None, attributes: Attributes
) -> list[Object | None]:
    """Return the objects that a binding gives its policy; one None if it needs none. Raises
    ConfigurationError."""
    if kind is None or reference is None:
        return [None]
    resource = attributes.server.scheme.for_kind(kind.get("apiVersion", ""), kind.get("kind", ""))
    if resource is None:
        raise ConfigurationError(
            f"paramKind kind `{kind.get('apiVersion')}, Kind={kind.get('kind')}` not known"
        )

    namespace = (reference.get("namespace") or attributes.namespace) if resource.namespaced else ""
    if resource.namespaced and not namespace:
        raise ConfigurationError(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )

    if name := reference.get("name"):
        named = attributes.transaction.get(Key(resource.key, namespace, name))
        params: list[Object | None] = [] if named is None else [named]
    else:
        selector = from_label_selector(reference.get("selector") or {})
        objects = attributes.transaction.list(
            resource.key, namespace if resource.namespaced else None
        )
        params = [obj for obj in objects if selector.matches(labels_of(obj))]

    if not params and reference.get("parameterNotFoundAction") == "Deny":
        raise ConfigurationError(
            "no params found for policy binding with `Deny` parameterNotFoundAction"
        )

    return params


# --- evaluation -----------------------------------------------------------------------------------


class _Variables(Record):
    """``variables.name``: each is evaluated when it is first named, at the cost of the expression
    that names it."""

    def __init__(
        self, definitions: list[Object], scope: dict[str, Any], budget: CostBudget
    ) -> None:
        super().__init__()
        self._expressions = {
            definition["name"]: definition["expression"] for definition in definitions
        }
        self._scope = scope
        self._budget = budget

    def __contains__(self, name: object) -> bool:
        return name in self._expressions

    def __missing__(self, name: str) -> Any:
        try:
            compiled = compile_policy_expression(self._expressions[name])
            self[name] = evaluate_within(compiled.node, self._scope, self._budget)
        except CompileError as error:
            raise CelError(f"composited variable {quote(name)} fails to compile: {error}") from None
        except CelError as error:
            raise CelError(
                f"composited variable {quote(name)} fails to evaluate: {error}"
            ) from None
        return self[name]


class Evaluation:
    """The expressions of a policy that share a budget and variables."""

    def __init__(self, spec: Object, scope: dict[str, Any], budget: CostBudget) -> None:
        self._budget = budget
        self._scope = dict(scope)
        self._scope["variables"] = _Variables(spec.get("variables") or [], self._scope, budget)

    def value_of(self, expression: str) -> Any:
        """Evaluate an expression. Raises CelError, in the words of the answer, and
        BudgetExceeded."""
        return self._evaluated(expression, lambda: compile_policy_expression(expression))

    def mutation(self, expression: str, expected: Type) -> Any:
        """Evaluate an expression that makes a patch, of a type. Raises CelError and
        BudgetExceeded."""
        return self._evaluated(expression, lambda: compile_mutation(expression.strip(), expected))

    def _evaluated(self, expression: str, compiled: Callable[[], Compiled]) -> Any:
        try:
            return evaluate_within(compiled().node, self._scope, self._budget)
        except (CelError, CompileError) as error:
            raise CelError(f"expression '{expression}' resulted in error: {error}") from None


def all_conditions_hold(spec: Object, scope: dict[str, Any]) -> bool:
    """Tell whether all conditions hold.

    One that is false decides, even where others fail. Raises CelError with all failures, and
    BudgetExceeded.
    """
    evaluation = Evaluation(spec, scope, CostBudget(MATCH_CONDITIONS_BUDGET))
    holds = True
    failures = []
    for condition in spec.get("matchConditions") or ():
        try:
            holds = evaluation.value_of(condition["expression"]) is True and holds
        except CelError as error:
            failures.append(str(error))
    if holds and failures:
        raise CelError(failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]")
    return holds


def scope_of(param: Object | None, attributes: Attributes) -> dict[str, Any]:
    """Return the variables that the expressions of a policy see of a request, but for
    ``variables``. ``object`` is the request's own: it shows what mutations have changed."""
    namespace = None
    if attributes.namespace:
        namespace = attributes.transaction.get(Key("namespaces", "", attributes.namespace))
    scope = _request_scope(attributes, attributes.scope.requested_resource)
    return {**scope, "params": param, "namespaceObject": namespace}


def conditions_hold(conditions: list[Object], attributes: Attributes, resource: Resource) -> bool:
    """Tell whether the match conditions of a webhook hold; a request is seen as one for
    ``resource``.

    Raises CelError if one fails and none is false.
    """
    scope = _request_scope(attributes, resource)
    try:
        return all_conditions_hold({"matchConditions": conditions}, scope)
    except BudgetExceeded as error:
        raise CelError(str(error)) from None


def _request_scope(attributes: Attributes, resource: Resource) -> dict[str, Any]:
    """Return the variables that all expressions see of a request, which is one for ``resource``."""
    return {
        "object": None if attributes.is_deletion else attributes.obj,
        "oldObject": attributes.obj if attributes.is_deletion else attributes.old,
        "request": request_attributes(attributes, resource),
    }
