"""ValidatingAdmissionPolicies: rules in CEL about any request
(``apiserver/pkg/admission/plugin/policy/validating``).

A policy says what must hold of which requests, a binding where that counts and what follows if it
does not. Objects are seen as they are written; there is no ``authorizer``. What an expression may
cost is not estimated when the policy is created, but counted when it runs: each binding and
parameter has one budget for the match conditions and another for the validations and their
messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kubepy.api import errors
from kubepy.api.cel.checker import CompileError, compile_policy_expression
from kubepy.api.cel.cost import MATCH_CONDITIONS_BUDGET, OUT_OF_BUDGET, BudgetExceeded, CostBudget
from kubepy.api.cel.interpreter import evaluate_within
from kubepy.api.cel.values import MAX_MESSAGE, CelError, Record
from kubepy.api.errors import Cause
from kubepy.api.meta import Object, labels_of
from kubepy.api.scheme import Resource
from kubepy.api.selectors import from_label_selector
from kubepy.api.values.goformat import quote
from kubepy.apiserver.admission.matching import (
    matched_resource,
    namespace_matches,
    object_matches,
    request_attributes,
    rule_matches,
)
from kubepy.apiserver.server import Attributes
from kubepy.storage import Key

GROUP = "admissionregistration.k8s.io"
POLICIES = f"validatingadmissionpolicies.{GROUP}"
BINDINGS = f"validatingadmissionpolicybindings.{GROUP}"
ERRORS = {
    error.reason: error
    for error in (
        errors.Unauthorized,
        errors.Forbidden,
        errors.RequestEntityTooLarge,
        errors.Invalid,
    )
}


class Decision(NamedTuple):
    """A denial by the validation at ``position``. ``is_error``: the validation could not run."""

    message: str
    reason: str = "Invalid"
    position: int = 0
    is_error: bool = False


class ConfigurationError(Exception):
    """A policy that cannot be applied as it is bound."""


def check_policies(attributes: Attributes) -> None:
    """Refuse or warn as the policies say. Raises Status."""
    bindings: dict[str, list[Object]] = {}
    for binding in attributes.transaction.list(BINDINGS):
        bindings.setdefault(binding["spec"].get("policyName", ""), []).append(binding)
    denied: list[str] = []
    reasons: list[str] = []
    for policy in attributes.transaction.list(POLICIES):
        own = bindings.get(policy["metadata"]["name"])
        if own and _matches(
            policy["spec"].get("matchConstraints") or {}, attributes, needs_rules=True
        ):
            for message, reason in _decisions(policy, own, attributes):
                denied.append(message)
                reasons.append(reason)

    if denied:
        forbidden = attributes.forbidden(denied[0], [Cause("", denied[0])])
        raise ERRORS[reasons[0]](
            forbidden.message,
            name=forbidden.name,
            kind=attributes.resource.plural,
            resource=forbidden.resource,
            causes=forbidden.causes,
        )


def _decisions(
    policy: Object, bindings: list[Object], attributes: Attributes
) -> Iterator[tuple[str, str]]:
    """Return the message and reason of each denial by the bindings of a policy."""
    for binding in bindings:
        spec = binding["spec"]
        if not _matches(spec.get("matchResources") or {}, attributes):
            continue
        names = (
            f"ValidatingAdmissionPolicy '{policy['metadata']['name']}' with binding "
            f"'{binding['metadata']['name']}'"
        )
        try:
            params = _params(policy["spec"].get("paramKind"), spec.get("paramRef"), attributes)
        except ConfigurationError as error:
            if policy["spec"].get("failurePolicy") != "Ignore":
                yield f"{names} denied request: failed to configure binding: {error}", "Invalid"
            continue
        for param in params:
            for decision in _evaluate(policy["spec"], param, attributes):
                actions = spec.get("validationActions") or ()
                if "Warn" in actions:
                    attributes.context.warn(f"Validation failed for {names}: {decision.message}")
                if "Deny" in actions:
                    yield f"{names} denied request: {decision.message}", decision.reason


# --- which requests -------------------------------------------------------------------------------


def _matches(resources: Object, attributes: Attributes, *, needs_rules: bool = False) -> bool:
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


# --- parameters -----------------------------------------------------------------------------------


def _params(
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


class _Evaluation:
    """The expressions of a policy that share a budget and variables."""

    def __init__(self, spec: Object, scope: dict[str, Any], budget: CostBudget) -> None:
        self._budget = budget
        self._scope = dict(scope)
        self._scope["variables"] = _Variables(spec.get("variables") or [], self._scope, budget)

    def value_of(self, expression: str) -> Any:
        """Evaluate an expression. Raises CelError, in the words of the answer, and
        BudgetExceeded."""
        try:
            return evaluate_within(
                compile_policy_expression(expression).node, self._scope, self._budget
            )
        except (CelError, CompileError) as error:
            raise CelError(f"expression '{expression}' resulted in error: {error}") from None


def _evaluate(spec: Object, param: Object | None, attributes: Attributes) -> list[Decision]:
    """Return the denials of the policy, in the order of its validations; none where its conditions
    do not hold."""
    scope = _scope(param, attributes)
    try:
        if not _conditions_hold(spec, scope):
            return []
        budget = CostBudget()
        decisions = list(_denials(spec, _Evaluation(spec, scope, budget)))
    except CelError as error:
        decisions = [Decision(str(error), is_error=True)]
    except BudgetExceeded:
        decisions = [Decision(OUT_OF_BUDGET, is_error=True)]
    else:
        decisions = _with_messages(spec, decisions, _Evaluation(spec, scope, budget))

    if spec.get("failurePolicy", "Fail") == "Fail":
        return decisions
    return [decision for decision in decisions if not decision.is_error]


def _conditions_hold(spec: Object, scope: dict[str, Any]) -> bool:
    """Tell whether all conditions hold.

    One that is false decides, even where others fail. Raises CelError with all failures, and
    BudgetExceeded.
    """
    evaluation = _Evaluation(spec, scope, CostBudget(MATCH_CONDITIONS_BUDGET))
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


def _denials(spec: Object, evaluation: _Evaluation) -> Iterator[Decision]:
    """Evaluate the validations, and yield those that deny or fail. Raises BudgetExceeded."""
    for index, validation in enumerate(spec.get("validations") or ()):
        try:
            if evaluation.value_of(validation["expression"]) is not True:
                message = str(validation.get("message") or "").strip()
                yield Decision(
                    message or f"failed expression: {validation['expression'].strip()}",
                    validation.get("reason") or "Invalid",
                    index,
                )
        except CelError as error:
            yield Decision(str(error), is_error=True, position=index)


def _with_messages(
    spec: Object, decisions: list[Decision], evaluation: _Evaluation
) -> list[Decision]:
    """Evaluate every messageExpression, needed or not; all validations fail if the budget ends
    there."""
    validations = spec.get("validations") or []
    try:
        messages = [
            _message(validation.get("messageExpression"), evaluation) for validation in validations
        ]
    except BudgetExceeded:
        failed = {decision.position: decision for decision in decisions if decision.is_error}
        ended = Decision(f"failed messageExpression: {OUT_OF_BUDGET}", is_error=True)
        return [failed.get(index, ended) for index in range(len(validations))]

    return [
        decision
        if decision.is_error
        else decision._replace(message=messages[decision.position] or decision.message)
        for decision in decisions
    ]


def _message(expression: str | None, evaluation: _Evaluation) -> str:
    """Return the message of a messageExpression; "" to use the plain message. Raises
    BudgetExceeded."""
    if not expression:
        return ""
    try:
        value = evaluation.value_of(expression)
    except CelError:
        return ""
    text = value.strip() if isinstance(value, str) else ""
    if "\n" in text or len(text.encode()) > MAX_MESSAGE:
        return ""
    return text


def _scope(param: Object | None, attributes: Attributes) -> dict[str, Any]:
    namespace = None
    if attributes.namespace:
        namespace = attributes.transaction.get(Key("namespaces", "", attributes.namespace))
    return {
        "object": None if attributes.is_deletion else attributes.obj,
        "oldObject": attributes.obj if attributes.is_deletion else attributes.old,
        "request": request_attributes(attributes, attributes.scope.requested_resource),
        "params": param,
        "namespaceObject": namespace,
    }


def conditions_hold(conditions: list[Object], attributes: Attributes, resource: Resource) -> bool:
    """Tell whether the match conditions of a webhook hold; a request is seen as one for
    ``resource``.

    Raises CelError if one fails and none is false.
    """
    scope = {
        "object": None if attributes.is_deletion else attributes.obj,
        "oldObject": attributes.obj if attributes.is_deletion else attributes.old,
        "request": request_attributes(attributes, resource),
    }
    try:
        return _conditions_hold({"matchConditions": conditions}, scope)
    except BudgetExceeded:
        raise CelError(OUT_OF_BUDGET) from None
