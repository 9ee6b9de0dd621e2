"""Validating and mutating webhooks, which are stored and never called (``pkg/apis/admissionregistration/validation``).

An update tolerates what the old configuration had already: names that repeat, side effects, review versions that no
server knows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kubepy.api.errors import FieldError, duplicate, invalid_value, not_supported, required, too_many
from kubepy.api.meta import Object
from kubepy.api.values.names import dns1035_label, dns1123_subdomain
from kubepy.apiserver.validation.fields import Errors, validate_format, validate_optional_choice
from kubepy.apiserver.validation.labels import has_invalid_label_value, label_key, validate_label_selector
from kubepy.apiserver.validation.webhook_clients import validate_webhook_client

SIDE_EFFECTS = ("None", "NoneOnDryRun")
ALL_SIDE_EFFECTS = ("None", "NoneOnDryRun", "Some", "Unknown")
REVIEW_VERSIONS = ("v1", "v1beta1")
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
SCOPES = ("*", "Cluster", "Namespaced")
LONGEST_WAIT, MOST_CONDITIONS = 30, 64


class _Tolerance(NamedTuple):
    """What the old configuration had already."""

    repeated_names: bool = False
    side_effects: bool = False
    unknown_versions: bool = False
    label_values: bool = False


def validate_webhooks(configuration: Object, old: Object | None = None) -> list[FieldError]:
    tolerance = _tolerance((old or {}).get("webhooks") or [])
    errors: Errors = []
    names: set[str] = set()
    for index, webhook in enumerate(configuration.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", webhook.get("name", "")
        _validate_webhook(webhook, tolerance, path, errors)
        _validate_versions(webhook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions", errors,
                           any_version=tolerance.unknown_versions)
        if name and name in names and not tolerance.repeated_names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
    return errors


def _tolerance(webhooks: list[Object]) -> _Tolerance:
    names = [one.get("name", "") for one in webhooks]
    return _Tolerance(
        repeated_names=len(set(names)) < len(names),
        side_effects=any(one.get("sideEffects") not in SIDE_EFFECTS for one in webhooks),
        unknown_versions=any(not set(one.get("admissionReviewVersions") or ()) & set(REVIEW_VERSIONS)
                             for one in webhooks),
        label_values=any(has_invalid_label_value(one.get(field)) for one in webhooks
                         for field in ("namespaceSelector", "objectSelector")))


def _validate_webhook(webhook: Object, tolerance: _Tolerance, path: str, errors: Errors) -> None:
    errors.extend(_wrong_name(webhook.get("name", ""), f"{path}.name"))
    for index, rule in enumerate(webhook.get("rules") or ()):
        validate_rule(rule, f"{path}.rules[{index}]", errors)
    validate_optional_choice(webhook.get("failurePolicy"), ("Fail", "Ignore"), f"{path}.failurePolicy", errors)
    validate_optional_choice(webhook.get("matchPolicy"), ("Equivalent", "Exact"), f"{path}.matchPolicy", errors)
    allowed, effects = ALL_SIDE_EFFECTS if tolerance.side_effects else SIDE_EFFECTS, webhook.get("sideEffects")
    if effects is None:
        errors.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(allowed)}"))
    validate_optional_choice(effects, allowed, f"{path}.sideEffects", errors)
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= LONGEST_WAIT:
        why = f"the timeout value must be between 1 and {LONGEST_WAIT} seconds"
        errors.append(invalid_value(f"{path}.timeoutSeconds", seconds, why))
    for field in ("namespaceSelector", "objectSelector"):
        validate_label_selector(webhook.get(field), f"{path}.{field}", errors,
                                allow_invalid_values=tolerance.label_values)
    validate_optional_choice(webhook.get("reinvocationPolicy"), ("IfNeeded", "Never"), f"{path}.reinvocationPolicy",
                             errors)
    validate_webhook_client(webhook.get("clientConfig") or {}, f"{path}.clientConfig", errors)
    _validate_conditions(webhook.get("matchConditions") or [], f"{path}.matchConditions", errors)


def _wrong_name(name: str, path: str) -> list[FieldError]:
    """``IsFullyQualifiedName``."""
    if not name:
        return [required(path)]
    if wrong := dns1123_subdomain(name):
        return [invalid_value(path, name, ",".join(wrong))]
    if name.count(".") < 2:
        why = "should be a domain with at least three segments separated by dots"
        return [invalid_value(path, name, why)]
    return []


def _validate_versions(versions: list[str], path: str, errors: Errors, *, any_version: bool) -> None:
    if not versions:
        errors.append(required(path, f"must specify one of {', '.join(REVIEW_VERSIONS)}"))
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.append(invalid_value(f"{path}[{index}]", version, "duplicate version"))
        else:
            validate_format(version, dns1035_label(version), f"{path}[{index}]", errors)
    if not any_version and not set(versions) & set(REVIEW_VERSIONS):
        errors.append(invalid_value(path, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}"))


def _validate_conditions(conditions: list[Object], path: str, errors: Errors) -> None:
    if len(conditions) > MOST_CONDITIONS:
        errors.append(too_many(path, len(conditions), MOST_CONDITIONS))
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        name, at = condition.get("name", ""), f"{path}[{index}]"
        _validate_expression(condition.get("expression", ""), f"{at}.expression", errors)
        if not name:
            errors.append(required(f"{at}.name"))
        else:
            validate_format(name, label_key(name), f"{at}.name", errors)
        if name and name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)


def _validate_expression(expression: str, path: str, errors: Errors) -> None:
    """Its syntax: what it may name (``authorizer``) is more than policies know here, and nothing evaluates it."""
    from kubepy.api.cel.checker import CompileError, parse_expression

    if not expression.strip():
        errors.append(required(path))
        return
    try:
        parse_expression(expression.strip())
    except CompileError as error:
        errors.append(invalid_value(path, expression.strip(), f"compilation failed: {error}"))


# --- rules --------------------------------------------------------------------------------------------------------


def validate_rule(rule: Object, path: str, errors: Errors) -> None:
    """What is asked about: operations on the resources of API groups in some versions."""
    operations = rule.get("operations") or []
    _validate_list(operations, f"{path}.operations", "operations", errors)
    for index, operation in enumerate(operations):
        if operation not in OPERATIONS:
            errors.append(not_supported(f"{path}.operations[{index}]", operation, OPERATIONS))
    _validate_list(rule.get("apiGroups") or [], f"{path}.apiGroups", "API groups", errors)
    versions = rule.get("apiVersions") or []
    _validate_list(versions, f"{path}.apiVersions", "API versions", errors)
    errors.extend(required(f"{path}.apiVersions[{index}]") for index, version in enumerate(versions) if not version)
    _validate_resources(rule.get("resources") or [], f"{path}.resources", errors)
    validate_optional_choice(rule.get("scope"), SCOPES, f"{path}.scope", errors)


def _validate_list(values: list[Any], path: str, what: str, errors: Errors) -> None:
    if not values:
        errors.append(required(path))
    if len(values) > 1 and "*" in values:
        errors.append(invalid_value(path, values, f"if '*' is present, must not specify other {what}"))


def _validate_resources(resources: list[str], path: str, errors: Errors) -> None:
    if not resources:
        errors.append(required(path))
    wildcards: set[str] = set()
    for index, resource in enumerate(resources):
        if not resource:
            errors.append(required(f"{path}[{index}]"))
        elif "/" in resource:
            errors.extend(_covered(resource, wildcards, f"{path}[{index}]"))
            wildcards |= {resource} if "*" in (resource.partition("/")[0], resource.partition("/")[2]) else set()
    if len(resources) > 1 and "*/*" in resources:
        errors.append(invalid_value(path, resources, "if '*/*' is present, must not specify other resources"))
    plain = [one for one in resources if one and "/" not in one]
    if "*" in plain and plain[-1] != "*":  # upstream looks at the last one
        why = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid_value(path, resources, why))


def _covered(resource: str, wildcards: set[str], path: str) -> list[FieldError]:
    """Whether an earlier ``pods/*`` or ``*/status`` names it already."""
    parent, _, part = resource.partition("/")
    return [invalid_value(path, resource, f"if '{one}' is present, must not specify {resource}")
            for one in (f"{parent}/*", f"*/{part}") if one in wildcards]
