"""ResourceQuotas (``ValidateResourceQuota`` upstream)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, invalid_value, required
from kubepy.api.meta import Object, nested_list, nested_map
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.validation.fields import (
    IMMUTABLE,
    Errors,
    go_view,
    validate_as,
)
from kubepy.apiserver.validation.resources import (
    CONTAINER_RESOURCES,
    COUNTED,
    resource_name,
    validate_resource_quantity,
)

QUOTA_RESOURCES = (
    CONTAINER_RESOURCES
    | COUNTED
    | frozenset(("requests.storage",))
    | frozenset(f"requests.{name}" for name in CONTAINER_RESOURCES)
    | frozenset(f"limits.{name}" for name in CONTAINER_RESOURCES)
)
_POD_RESOURCES = frozenset(
    ("pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory")
)
# The resources that each scope may be used with.
SCOPES = {
    "BestEffort": frozenset(("pods",)),
    "NotBestEffort": _POD_RESOURCES,
    "Terminating": _POD_RESOURCES,
    "NotTerminating": _POD_RESOURCES,
    "PriorityClass": _POD_RESOURCES,
    "CrossNamespacePodAffinity": _POD_RESOURCES,
    "VolumeAttributesClass": frozenset(("persistentvolumeclaims", "requests.storage")),
}
OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
ONLY_EXISTS = (
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    "CrossNamespacePodAffinity",
)


def validate_quota(quota: Object, old: Object | None = None) -> list[FieldError]:
    errors: Errors = []
    spec = quota["spec"]
    _validate_amounts(spec.get("hard") or {}, "spec.hard", errors)

    scopes = nested_list(spec, "scopes")
    path = "spec.scopes"
    for scope in scopes:
        if scope not in SCOPES:
            errors.append(invalid_value(path, scopes, "unsupported scope"))
        errors.extend(
            invalid_value(path, scopes, "unsupported scope applied to resource")
            for name in sorted(spec.get("hard") or ())
            if not _is_in_scope(name, scope)
        )

    errors.extend(
        invalid_value(path, scopes, "conflicting scopes")
        for pair in OPPOSITES
        if set(pair) <= set(scopes)
    )
    selector = spec.get("scopeSelector")
    if selector is not None:
        _validate_scope_selector(selector, spec, errors)
    if old is not None and set(scopes) != set(nested_list(old["spec"], "scopes")):
        errors.append(invalid_value("spec.scopes", scopes or None, IMMUTABLE))
    return errors


def validate_quota_status(quota: Object) -> list[FieldError]:
    errors: Errors = []
    for field in ("hard", "used"):
        _validate_amounts(nested_map(quota, "status", field), f"status.{field}", errors)
    return errors


def _validate_amounts(amounts: Object, path: str, errors: Errors) -> None:
    for name in sorted(amounts):
        at = f"{path}[{name}]"
        validate_as(resource_name, name, at, errors)
        if "/" not in name and not _is_quota_resource(name):
            errors.append(invalid_value(at, name, "must be a standard resource for quota"))
        validate_resource_quantity(name, amounts[name], at, errors)


def _is_quota_resource(name: str) -> bool:
    return name in QUOTA_RESOURCES or name.startswith(("hugepages-", "requests.hugepages-"))


def _is_in_scope(name: str, scope: str) -> bool:
    if scope not in SCOPES or not _is_quota_resource(name):
        return True
    return name in SCOPES[scope]


def _validate_scope_selector(selector: Object, spec: Object, errors: Errors) -> None:
    path = "spec.scopeSelector.matchExpressions"
    scopes = []
    for expression in nested_list(selector, "matchExpressions"):
        scope = expression.get("scopeName", "")
        if scope not in SCOPES:
            errors.append(invalid_value(f"{path}.scopeName", scope, "unsupported scope"))
        shown = go_view("core.ScopeSelector", selector)
        errors.extend(
            invalid_value(path, shown, "unsupported scope applied to resource")
            for name in sorted(spec.get("hard") or ())
            if not _is_in_scope(name, scope)
        )
        _validate_scope_operator(expression, path, errors)
        scopes.append(scope)

    errors.extend(
        invalid_value(path, spec.get("scopes") or None, "conflicting scopes")
        for pair in OPPOSITES
        if set(pair) <= set(scopes)
    )


def _validate_scope_operator(expression: Object, path: str, errors: Errors) -> None:
    operator = expression.get("operator", "")
    values = nested_list(expression, "values")

    if expression.get("scopeName", "") in ONLY_EXISTS and operator != "Exists":
        detail = (
            "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
            "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
            "ResourceQuotaScopeNotBestEffort "
            "or ResourceQuotaScopeCrossNamespacePodAffinity"
        )
        errors.append(invalid_value(f"{path}.operator", operator, detail))

    if operator in ("In", "NotIn"):
        if not values:
            detail = (
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            )
            errors.append(required(f"{path}.values", detail))
    elif operator not in ("Exists", "DoesNotExist"):
        detail = "not a valid selector operator"
        errors.append(invalid_value(f"{path}.operator", operator, detail))
    elif values:
        detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        errors.append(invalid_value(f"{path}.values", values, detail))


def quota_warnings(quota: Object) -> list[str]:
    """Warn of a quota with more requests than limits, which can never be used up."""
    hard = quota["spec"].get("hard") or {}
    warnings = []
    for name in ("cpu", "memory", "storage", "ephemeral-storage"):
        request = f"requests.{name}"
        limit = f"limits.{name}"
        if request not in hard and name in ("cpu", "memory"):
            request = name
        if request not in hard or limit not in hard:
            continue
        if Quantity.parse(hard[request]) > Quantity.parse(hard[limit]):
            warnings.append(
                f"ResourceQuota {request} ({hard[request]}) should be less than {limit} "
                f"({hard[limit]})"
            )

    return warnings
