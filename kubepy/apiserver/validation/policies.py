"""ValidatingAdmissionPolicies and their bindings (``pkg/apis/admissionregistration/validation``)."""

from __future__ import annotations

from typing import Any

from kubepy.api.errors import FieldError, duplicate, forbidden_field, invalid_value, not_supported, required
from kubepy.api.meta import Object
from kubepy.apiserver.validation.fields import Errors, validate_choice
from kubepy.apiserver.validation.labels import validate_label_selector

REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
ACTIONS = ("Audit", "Deny", "Warn")
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")


def validate_policy(policy: Object) -> list[FieldError]:
    errors: Errors = []
    spec = policy.get("spec") or {}
    if spec.get("failurePolicy") not in ("Fail", "Ignore"):
        errors.append(not_supported("spec.failurePolicy", spec.get("failurePolicy"), ("Fail", "Ignore")))
    if (kind := spec.get("paramKind")) is not None:
        errors.extend(required(f"spec.paramKind.{field}") for field in ("apiVersion", "kind") if not kind.get(field))
    if spec.get("matchConstraints") is None:
        errors.append(required("spec.matchConstraints"))
    else:
        _validate_selectors(spec["matchConstraints"], "spec.matchConstraints", errors)
        _validate_rules(spec["matchConstraints"], errors)
    for index, condition in enumerate(spec.get("matchConditions") or ()):
        at = f"spec.matchConditions[{index}].expression"
        _validate_expression(condition.get("expression", ""), at, "bool", errors)
    for index, variable in enumerate(spec.get("variables") or ()):
        _validate_expression(variable.get("expression", ""), f"spec.variables[{index}].expression", "", errors)
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        why = "validations or auditAnnotations must be set"
        errors.extend(required(f"spec.{field}", why) for field in ("validations", "auditAnnotations"))
    for index, validation in enumerate(spec.get("validations") or ()):
        _validate_validation(validation, f"spec.validations[{index}]", errors)
    return errors


def _validate_selectors(resources: Object, path: str, errors: Errors) -> None:
    for field in ("namespaceSelector", "objectSelector"):
        validate_label_selector(resources.get(field), f"{path}.{field}", errors)


def _validate_rules(constraints: Object, errors: Errors) -> None:
    path = "spec.matchConstraints.resourceRules"
    if not constraints.get("resourceRules"):
        errors.append(required(path))
    for index, rule in enumerate(constraints.get("resourceRules") or ()):
        errors.extend(required(f"{path}[{index}].{field}") for field in ("operations", "apiGroups", "apiVersions",
                                                                       "resources") if not rule.get(field))
        errors.extend(not_supported(f"{path}[{index}].operations[{position}]", operation, OPERATIONS)
                      for position, operation in enumerate(rule.get("operations") or ()) if operation not in OPERATIONS)


def _validate_validation(validation: Object, path: str, errors: Errors) -> None:
    _validate_expression(validation.get("expression", ""), f"{path}.expression", "bool", errors)
    if validation.get("messageExpression") is not None and validation["messageExpression"].strip():
        _validate_expression(validation["messageExpression"], f"{path}.messageExpression", "string", errors)
    message = validation.get("message", "")
    if message and not message.strip():
        errors.append(invalid_value(f"{path}.message", message, "message must be non-empty if specified"))
    elif "\n" in message.strip():
        errors.append(invalid_value(f"{path}.message", message, "message must not contain line breaks"))
    elif "\n" in validation.get("expression", "").strip() and not message:
        errors.append(required(f"{path}.message", "message must be specified if expression contains line breaks"))
    if (reason := validation.get("reason")) is not None and reason not in REASONS:
        errors.append(not_supported(f"{path}.reason", reason, REASONS))


def _validate_expression(expression: str, path: str, wanted: str, errors: Errors) -> None:
    from kubepy.api.cel.checker import CompileError, compile_policy_expression

    if not expression.strip():
        errors.append(required(path, "expression is not specified"))
        return
    try:
        found: Any = compile_policy_expression(expression.strip()).type
    except CompileError as error:
        errors.append(invalid_value(path, expression.strip(), f"compilation failed: {error}"))
        return
    if wanted and str(found) not in (wanted, "dyn"):
        errors.append(invalid_value(path, expression.strip(), f"must evaluate to {wanted}"))


def validate_binding(binding: Object) -> list[FieldError]:
    errors: Errors = []
    spec = binding.get("spec") or {}
    if not spec.get("policyName"):
        errors.append(required("spec.policyName"))
    if (reference := spec.get("paramRef")) is not None:
        _validate_reference(reference, errors)
    _validate_selectors(spec.get("matchResources") or {}, "spec.matchResources", errors)
    actions = spec.get("validationActions") or []
    if not actions:
        errors.append(required("spec.validationActions", "at least one validation action is required"))
    for index, action in enumerate(actions):
        validate_choice(action, ACTIONS, f"spec.validationActions[{index}]", errors)
        if action in actions[:index]:
            errors.append(duplicate(f"spec.validationActions[{index}]", action))
    if {"Deny", "Warn"} <= set(actions):
        errors.append(invalid_value("spec.validationActions", actions,
                                    "must not contain both Deny and Warn (repeating the same validation failure "
                                    "information in the API response and headers serves no purpose)"))
    return errors


def _validate_reference(reference: Object, errors: Errors) -> None:
    if not reference.get("name") and reference.get("selector") is None:
        errors.append(required("spec.paramRef", "one of name or selector must be specified"))
    elif reference.get("name") and reference.get("selector") is not None:
        errors.extend(forbidden_field(f"spec.paramRef.{field}", "name and selector are mutually exclusive")
                      for field in ("name", "selector"))
    action = reference.get("parameterNotFoundAction")
    if action is None:
        errors.append(required("spec.paramRef.parameterNotFoundAction"))
    elif action not in ("Allow", "Deny"):
        errors.append(not_supported("spec.paramRef.parameterNotFoundAction", action, ("Deny", "Allow")))
