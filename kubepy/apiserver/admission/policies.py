"""ValidatingAdmissionPolicies: rules in CEL about any request
(``apiserver/pkg/admission/plugin/policy/validating``).

A policy says what must hold of which requests, a binding where that counts and what follows if it
does not. Each binding and parameter has one budget for the match conditions and another for the
validations and their messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kubepy.api import errors
from kubepy.api.cel.cost import BudgetExceeded, CostBudget
from kubepy.api.cel.values import MAX_MESSAGE, CelError
from kubepy.api.errors import Cause
from kubepy.api.meta import Object
from kubepy.apiserver.admission.policyparts import (
    GROUP,
    ConfigurationError,
    Evaluation,
    all_conditions_hold,
    bound,
    params_of,
    scope_of,
)
from kubepy.apiserver.server import Attributes

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


def check_policies(attributes: Attributes) -> None:
    """Refuse or warn as the policies say. Raises Status."""
    denied: list[str] = []
    reasons: list[str] = []
    for policy, binding in bound(attributes, POLICIES, BINDINGS):
        for message, reason in _decisions(policy, binding, attributes):
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
    policy: Object, binding: Object, attributes: Attributes
) -> Iterator[tuple[str, str]]:
    """Yield the message and reason of each denial by a policy as it is bound."""
    spec = binding["spec"]
    names = (
        f"ValidatingAdmissionPolicy '{policy['metadata']['name']}' with binding "
        f"'{binding['metadata']['name']}'"
    )
    try:
        params = params_of(policy["spec"].get("paramKind"), spec.get("paramRef"), attributes)
    except ConfigurationError as error:
        if policy["spec"].get("failurePolicy") != "Ignore":
            yield f"{names} denied request: failed to configure binding: {error}", "Invalid"
        return
    for param in params:
        for decision in _evaluate(policy["spec"], param, attributes):
            actions = spec.get("validationActions") or ()
            if "Warn" in actions:
                attributes.context.warn(f"Validation failed for {names}: {decision.message}")
            if "Deny" in actions:
                yield f"{names} denied request: {decision.message}", decision.reason


# --- evaluation -----------------------------------------------------------------------------------


def _evaluate(spec: Object, param: Object | None, attributes: Attributes) -> list[Decision]:
    """Return the denials of the policy, in the order of its validations; none where its conditions
    do not hold."""
    scope = scope_of(param, attributes)
    try:
        if not all_conditions_hold(spec, scope):
            return []
        budget = CostBudget()
        decisions = list(_denials(spec, Evaluation(spec, scope, budget)))
    except (CelError, BudgetExceeded) as error:
        decisions = [Decision(str(error), is_error=True)]
    else:
        decisions = _with_messages(spec, decisions, Evaluation(spec, scope, budget))

    if spec.get("failurePolicy", "Fail") == "Fail":
        return decisions
    return [decision for decision in decisions if not decision.is_error]


def _denials(spec: Object, evaluation: Evaluation) -> Iterator[Decision]:
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
    spec: Object, decisions: list[Decision], evaluation: Evaluation
) -> list[Decision]:
    """Evaluate every messageExpression, needed or not; all validations fail if the budget ends
    there."""
    validations = spec.get("validations") or []
    try:
        messages = [
            _message(validation.get("messageExpression"), evaluation) for validation in validations
        ]
    except BudgetExceeded as error:
        failed = {decision.position: decision for decision in decisions if decision.is_error}
        ended = Decision(f"failed messageExpression: {error}", is_error=True)
        return [failed.get(index, ended) for index in range(len(validations))]

    return [
        decision
        if decision.is_error
        else decision._replace(message=messages[decision.position] or decision.message)
        for decision in decisions
    ]


def _message(expression: str | None, evaluation: Evaluation) -> str:
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
