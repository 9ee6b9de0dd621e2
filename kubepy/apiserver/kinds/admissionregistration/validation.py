"""Admission webhooks and admission policies
(``pkg/apis/admissionregistration/validation``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kubepy.api.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_many,
)
from kubepy.api.meta import Object, nested_list, spec_of
from kubepy.api.values.names import dns1035_label, dns1123_subdomain
from kubepy.apiserver.validation.fields import (
    Errors,
    has_invalid_label_value,
    label_key,
    validate_as,
    validate_choice,
    validate_format,
    validate_label_selector,
    validate_optional_choice,
    validate_required_as,
)
from kubepy.apiserver.validation.formats import port_number
from kubepy.lazy import lazy_imports

if TYPE_CHECKING:
    from kubepy.api.cel.types import Type

with lazy_imports():  # only objects with expressions need CEL, and only webhooks with URLs these
    from kubepy.api.cel import checker
    from kubepy.api.values import gourls

SIDE_EFFECTS = ("None", "NoneOnDryRun")
ALL_SIDE_EFFECTS = ("None", "NoneOnDryRun", "Some", "Unknown")
REVIEW_VERSIONS = ("v1", "v1beta1")
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
MUTATED_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
PATCH_TYPES = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}  # their fields
SCOPES = ("*", "Cluster", "Namespaced")
LONGEST_WAIT = 30
MOST_CONDITIONS = 64


class _Tolerance(NamedTuple):
    """The faults that the old configuration had already, which an update tolerates."""

    repeated_names: bool = False
    side_effects: bool = False
    unknown_versions: bool = False
    label_values: bool = False


def validate_webhooks(configuration: Object, old: Object | None = None) -> list[FieldError]:
    old_webhooks = (old or {}).get("webhooks") or []
    old_names = [webhook.get("name", "") for webhook in old_webhooks]

    tolerance = _Tolerance(
        repeated_names=len(set(old_names)) < len(old_names),
        side_effects=any(
            webhook.get("sideEffects") not in SIDE_EFFECTS for webhook in old_webhooks
        ),
        unknown_versions=any(
            not set(nested_list(webhook, "admissionReviewVersions")) & set(REVIEW_VERSIONS)
            for webhook in old_webhooks
        ),
        label_values=any(
            has_invalid_label_value(webhook.get("namespaceSelector"))
            or has_invalid_label_value(webhook.get("objectSelector"))
            for webhook in old_webhooks
        ),
    )
    errors: Errors = []
    names: set[str] = set()
    for index, webhook in enumerate(nested_list(configuration, "webhooks")):
        path = f"webhooks[{index}]"
        name = webhook.get("name", "")
        _validate_webhook(webhook, tolerance, path, errors)
        _validate_review_versions(webhook, tolerance, f"{path}.admissionReviewVersions", errors)
        if name and name in names and not tolerance.repeated_names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)

    return errors


def _validate_review_versions(
    webhook: Object, tolerance: _Tolerance, path: str, errors: Errors
) -> None:
    versions = nested_list(webhook, "admissionReviewVersions")
    if not versions:
        errors.append(required(path, f"must specify one of {', '.join(REVIEW_VERSIONS)}"))
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.append(invalid_value(f"{path}[{index}]", version, "duplicate version"))
        else:
            validate_as(dns1035_label, version, f"{path}[{index}]", errors)

    if not tolerance.unknown_versions and not set(versions) & set(REVIEW_VERSIONS):
        errors.append(
            invalid_value(
                path, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}"
            )
        )


def _validate_webhook(webhook: Object, tolerance: _Tolerance, path: str, errors: Errors) -> None:
    name = webhook.get("name", "")
    if not name:  # upstream: IsFullyQualifiedName
        errors.append(required(f"{path}.name"))
    elif complaints := dns1123_subdomain(name):
        errors.append(invalid_value(f"{path}.name", name, ",".join(complaints)))
    elif name.count(".") < 2:
        detail = "should be a domain with at least three segments separated by dots"
        errors.append(invalid_value(f"{path}.name", name, detail))

    for index, rule in enumerate(nested_list(webhook, "rules")):
        validate_rule(rule, f"{path}.rules[{index}]", errors)
    validate_optional_choice(
        webhook.get("failurePolicy"), ("Fail", "Ignore"), f"{path}.failurePolicy", errors
    )
    validate_optional_choice(
        webhook.get("matchPolicy"), ("Equivalent", "Exact"), f"{path}.matchPolicy", errors
    )
    allowed = ALL_SIDE_EFFECTS if tolerance.side_effects else SIDE_EFFECTS
    effects = webhook.get("sideEffects")
    if effects is None:
        errors.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(allowed)}"))
    validate_optional_choice(effects, allowed, f"{path}.sideEffects", errors)
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= LONGEST_WAIT:
        detail = f"the timeout value must be between 1 and {LONGEST_WAIT} seconds"
        errors.append(invalid_value(f"{path}.timeoutSeconds", seconds, detail))

    for field in ("namespaceSelector", "objectSelector"):
        validate_label_selector(
            webhook.get(field),
            f"{path}.{field}",
            errors,
            allow_invalid_values=tolerance.label_values,
        )

    validate_optional_choice(
        webhook.get("reinvocationPolicy"),
        ("IfNeeded", "Never"),
        f"{path}.reinvocationPolicy",
        errors,
    )
    validate_webhook_client(webhook.get("clientConfig") or {}, f"{path}.clientConfig", errors)
    _validate_conditions(nested_list(webhook, "matchConditions"), f"{path}.matchConditions", errors)


def _validate_conditions(conditions: list[Object], path: str, errors: Errors) -> None:
    if len(conditions) > MOST_CONDITIONS:
        errors.append(too_many(path, len(conditions), MOST_CONDITIONS))

    names: set[str] = set()
    for index, condition in enumerate(conditions):
        name = condition.get("name", "")
        at = f"{path}[{index}]"
        expression = condition.get("expression", "").strip()
        if not expression:
            errors.append(required(f"{at}.expression"))
        else:
            # only the syntax: it may use ``authorizer``, which policies do not have here, and is
            # never evaluated
            try:
                checker.parse_expression(expression)
            except checker.CompileError as error:
                errors.append(
                    invalid_value(f"{at}.expression", expression, f"compilation failed: {error}")
                )
        validate_required_as(label_key, name, f"{at}.name", errors)
        if name and name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)


# --- rules ----------------------------------------------------------------------------------------


def validate_rule(rule: Object, path: str, errors: Errors) -> None:
    """Validate a rule: operations on resources of API groups in some versions."""
    operations = nested_list(rule, "operations")
    _validate_list(operations, f"{path}.operations", "operations", errors)
    for index, operation in enumerate(operations):
        if operation not in OPERATIONS:
            errors.append(not_supported(f"{path}.operations[{index}]", operation, OPERATIONS))
    _validate_list(nested_list(rule, "apiGroups"), f"{path}.apiGroups", "API groups", errors)
    versions = nested_list(rule, "apiVersions")
    _validate_list(versions, f"{path}.apiVersions", "API versions", errors)
    errors.extend(
        required(f"{path}.apiVersions[{index}]")
        for index, version in enumerate(versions)
        if not version
    )
    _validate_resources(nested_list(rule, "resources"), f"{path}.resources", errors)
    validate_optional_choice(rule.get("scope"), SCOPES, f"{path}.scope", errors)


def _validate_resources(resources: list[str], path: str, errors: Errors) -> None:
    """Validate the resources of a rule: none that a wildcard before it includes."""
    if not resources:
        errors.append(required(path))

    wildcards: set[str] = set()
    for index, resource in enumerate(resources):
        at = f"{path}[{index}]"
        if not resource:
            errors.append(required(at))
        elif "/" in resource:
            parent, _, subresource = resource.partition("/")
            for wildcard in (f"{parent}/*", f"*/{subresource}"):
                if wildcard in wildcards:
                    detail = f"if '{wildcard}' is present, must not specify {resource}"
                    errors.append(invalid_value(at, resource, detail))
            if "*" in (parent, subresource):
                wildcards.add(resource)

    if len(resources) > 1 and "*/*" in resources:
        detail = "if '*/*' is present, must not specify other resources"
        errors.append(invalid_value(path, resources, detail))
    plain = [resource for resource in resources if resource and "/" not in resource]
    if "*" in plain and plain[-1] != "*":  # upstream looks at the last resource only
        detail = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid_value(path, resources, detail))


def _validate_list(values: list[Any], path: str, plural: str, errors: Errors) -> None:
    if not values:
        errors.append(required(path))
    if len(values) > 1 and "*" in values:
        errors.append(
            invalid_value(path, values, f"if '*' is present, must not specify other {plural}")
        )


# --- webhook clients (apiserver/pkg/util/webhook/validation.go) -----------------------------------


def validate_webhook_client(client: Object, path: str, errors: Errors) -> None:
    url = client.get("url")
    service = client.get("service")
    if (url is None) == (service is None):
        errors.append(required(path, "exactly one of url or service is required"))
    elif url is not None:
        _validate_url(url, f"{path}.url", errors)
    elif service is not None:
        _validate_service(service, f"{path}.service", errors)


def _validate_url(url: str, path: str, errors: Errors) -> None:
    form = "; desired format: https://host[/path]"
    try:
        parsed = gourls.parse(url)
    except gourls.GoUrlError as error:
        errors.append(required(path, f"url must be a valid URL: {error}{form}"))
        return
    if parsed.scheme != "https":
        detail = f"'https' is the only allowed URL scheme{form}"
        errors.append(invalid_value(path, parsed.scheme, detail))
    if not parsed.host:
        errors.append(invalid_value(path, "", f"host must be specified{form}"))
    if parsed.userinfo is not None:
        detail = "user information is not permitted in the URL"
        errors.append(invalid_value(path, parsed.userinfo, detail))
    if parsed.fragment:
        detail = "fragments are not permitted in the URL"
        errors.append(invalid_value(path, parsed.fragment, detail))
    if parsed.raw_query:
        detail = "query parameters are not permitted in the URL"
        errors.append(invalid_value(path, parsed.raw_query, detail))


def _validate_service(service: Object, path: str, errors: Errors) -> None:
    # Upstream mistakes name for namespace and vice versa; so the errors come in that order.
    if not service.get("namespace"):
        errors.append(required(f"{path}.name"))
    if not service.get("name"):
        errors.append(required(f"{path}.namespace"))
    port = service.get("port", 443)
    if complaints := port_number(port):
        detail = "port is not valid: " + ", ".join(complaints)
        errors.append(invalid_value(f"{path}.port", port, detail))
    _validate_url_path(service.get("path") or "/", f"{path}.path", errors)


def _validate_url_path(url_path: str, path: str, errors: Errors) -> None:
    if url_path == "//":
        errors.append(invalid_value(path, url_path, "segment[0] may not be empty"))
    elif url_path != "/":
        if not url_path.startswith("/"):
            errors.append(invalid_value(path, url_path, "must start with a '/'"))
        for index, segment in enumerate(url_path[1:].removesuffix("/").split("/")):
            if not segment:
                errors.append(invalid_value(path, url_path, f"segment[{index}] may not be empty"))
            else:
                complaints = [
                    f"segment[{index}]: {detail}" for detail in dns1123_subdomain(segment)
                ]
                validate_format(url_path, complaints, path, errors)


# --- policies and their bindings ------------------------------------------------------------------


REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
ACTIONS = ("Audit", "Deny", "Warn")


def validate_policy(policy: Object) -> list[FieldError]:
    errors: Errors = []
    spec = spec_of(policy)
    _validate_policy_parts(spec, OPERATIONS, errors)

    if not spec.get("validations") and not spec.get("auditAnnotations"):
        detail = "validations or auditAnnotations must be set"
        errors.extend(
            required(f"spec.{field}", detail) for field in ("validations", "auditAnnotations")
        )

    for index, validation in enumerate(nested_list(spec, "validations")):
        _validate_validation(validation, f"spec.validations[{index}]", errors)
    return errors


def _validate_policy_parts(spec: Object, operations: tuple[str, ...], errors: Errors) -> None:
    """Validate what validating and mutating policies have both."""
    if spec.get("failurePolicy") not in ("Fail", "Ignore"):
        errors.append(
            not_supported("spec.failurePolicy", spec.get("failurePolicy"), ("Fail", "Ignore"))
        )

    kind = spec.get("paramKind")
    if kind is not None:
        errors.extend(
            required(f"spec.paramKind.{field}")
            for field in ("apiVersion", "kind")
            if not kind.get(field)
        )

    if spec.get("matchConstraints") is None:
        errors.append(required("spec.matchConstraints"))
    else:
        _validate_selectors(spec["matchConstraints"], "spec.matchConstraints", errors)
        rules = nested_list(spec["matchConstraints"], "resourceRules")
        path = "spec.matchConstraints.resourceRules"
        if not rules:
            errors.append(required(path))
        for index, rule in enumerate(rules):
            names = ("operations", "apiGroups", "apiVersions", "resources")
            errors.extend(
                required(f"{path}[{index}].{name}") for name in names if not rule.get(name)
            )
            for position, operation in enumerate(nested_list(rule, "operations")):
                validate_optional_choice(
                    operation, operations, f"{path}[{index}].operations[{position}]", errors
                )

    for index, condition in enumerate(nested_list(spec, "matchConditions")):
        at = f"spec.matchConditions[{index}].expression"
        _validate_expression(condition.get("expression", ""), at, "bool", errors)

    for index, variable in enumerate(nested_list(spec, "variables")):
        _validate_expression(
            variable.get("expression", ""), f"spec.variables[{index}].expression", "", errors
        )


def validate_mutating_policy(policy: Object) -> list[FieldError]:
    errors: Errors = []
    spec = spec_of(policy)
    _validate_policy_parts(spec, MUTATED_OPERATIONS, errors)
    mutations = nested_list(spec, "mutations")
    if not mutations:
        errors.append(required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(mutations):
        _validate_mutation(mutation, f"spec.mutations[{index}]", errors)
    validate_choice(
        spec.get("reinvocationPolicy", ""),
        ("IfNeeded", "Never"),
        "spec.reinvocationPolicy",
        errors,
    )
    return errors


def _validate_mutation(mutation: Object, path: str, errors: Errors) -> None:
    patch_type = mutation.get("patchType", "")
    if patch_type not in PATCH_TYPES:
        validate_choice(patch_type, tuple(PATCH_TYPES), f"{path}.patchType", errors)
        return
    for name, field in PATCH_TYPES.items():
        at = f"{path}.{field}"
        if name != patch_type:
            if mutation.get(field) is not None:
                detail = f"must not be specified when patchType is {patch_type}"
                errors.append(invalid_value(at, f"{{{field}}}", detail))
            continue
        if mutation.get(field) is None:
            errors.append(required(at, f"must be specified when patchType is {patch_type}"))
            continue
        expected = checker.OBJECT if name == "ApplyConfiguration" else checker.JSON_PATCHES
        _validate_patch(mutation[field].get("expression", "").strip(), expected, at, errors)


def _validate_patch(expression: str, expected: Type, path: str, errors: Errors) -> None:
    """Compile an expression that makes a patch."""
    if not expression:
        errors.append(required(f"{path}.expression"))
        return
    try:
        checker.compile_mutation(expression, expected)
    except checker.WrongTypeError as error:
        errors.append(invalid_value(f"{path}.expression", expression, str(error)))
    except checker.CompileError as error:
        reason = f"compilation failed: {error}"
        errors.append(invalid_value(f"{path}.expression", expression, reason))


def _validate_validation(validation: Object, path: str, errors: Errors) -> None:
    _validate_expression(validation.get("expression", ""), f"{path}.expression", "bool", errors)

    if (validation.get("messageExpression") or "").strip():
        _validate_expression(
            validation["messageExpression"], f"{path}.messageExpression", "string", errors
        )

    message = validation.get("message", "")
    if message and not message.strip():
        errors.append(
            invalid_value(f"{path}.message", message, "message must be non-empty if specified")
        )
    elif "\n" in message.strip():
        errors.append(
            invalid_value(f"{path}.message", message, "message must not contain line breaks")
        )
    elif "\n" in validation.get("expression", "").strip() and not message:
        errors.append(
            required(
                f"{path}.message", "message must be specified if expression contains line breaks"
            )
        )

    validate_optional_choice(validation.get("reason"), REASONS, f"{path}.reason", errors)


def _validate_selectors(resources: Object, path: str, errors: Errors) -> None:
    for field in ("namespaceSelector", "objectSelector"):
        validate_label_selector(resources.get(field), f"{path}.{field}", errors)


def _validate_expression(expression: str, path: str, expected: str, errors: Errors) -> None:
    """Compile a CEL expression; ``expected`` is the type that it must have, "" for any."""
    if not expression.strip():
        errors.append(required(path, "expression is not specified"))
        return
    try:
        type_: Any = checker.compile_policy_expression(expression.strip()).type
    except checker.CompileError as error:
        errors.append(invalid_value(path, expression.strip(), f"compilation failed: {error}"))
        return
    if expected and str(type_) not in (expected, "dyn"):
        errors.append(invalid_value(path, expression.strip(), f"must evaluate to {expected}"))


def validate_mutating_binding(binding: Object) -> list[FieldError]:
    errors: Errors = []
    _validate_binding_parts(spec_of(binding), errors)
    return errors


def validate_binding(binding: Object) -> list[FieldError]:
    errors: Errors = []
    spec = spec_of(binding)
    _validate_binding_parts(spec, errors)

    actions = nested_list(spec, "validationActions")
    if not actions:
        errors.append(
            required("spec.validationActions", "at least one validation action is required")
        )

    for index, action in enumerate(actions):
        validate_choice(action, ACTIONS, f"spec.validationActions[{index}]", errors)
        if action in actions[:index]:
            errors.append(duplicate(f"spec.validationActions[{index}]", action))

    if {"Deny", "Warn"} <= set(actions):
        errors.append(
            invalid_value(
                "spec.validationActions",
                actions,
                "must not contain both Deny and Warn (repeating the same validation failure "
                "information in the API response and headers serves no purpose)",
            )
        )

    return errors


def _validate_binding_parts(spec: Object, errors: Errors) -> None:
    """Validate what bindings of validating and of mutating policies have both."""
    if not spec.get("policyName"):
        errors.append(required("spec.policyName"))

    reference = spec.get("paramRef")
    if reference is not None:
        if not reference.get("name") and reference.get("selector") is None:
            errors.append(required("spec.paramRef", "one of name or selector must be specified"))
        elif reference.get("name") and reference.get("selector") is not None:
            errors.extend(
                forbidden_field(
                    f"spec.paramRef.{field}", "name and selector are mutually exclusive"
                )
                for field in ("name", "selector")
            )
        action = reference.get("parameterNotFoundAction")
        if action is None:
            errors.append(required("spec.paramRef.parameterNotFoundAction"))
        elif action not in ("Allow", "Deny"):
            errors.append(
                not_supported("spec.paramRef.parameterNotFoundAction", action, ("Deny", "Allow"))
            )

    _validate_selectors(spec.get("matchResources") or {}, "spec.matchResources", errors)
