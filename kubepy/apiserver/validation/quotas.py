"""ResourceQuotas and LimitRanges (``pkg/apis/core/validation``)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, duplicate, forbidden_field, invalid_value, required
from kubepy.api.meta import Object
from kubepy.api.values.names import qualified_name
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.validation.fields import IMMUTABLE, Errors, go_view, validate_format
from kubepy.apiserver.validation.resources import (
    CONTAINER_RESOURCES,
    COUNTED,
    container_resource_name,
    is_overcommit_allowed,
    resource_name,
    validate_resource_quantity,
)

QUOTA_RESOURCES = (
    CONTAINER_RESOURCES
    | COUNTED
    | frozenset(("requests.storage",))
    | frozenset(f"{kind}.{name}" for kind in ("requests", "limits") for name in CONTAINER_RESOURCES)
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


# --- quotas ---------------------------------------------------------------------------------------


def validate_quota(quota: Object, old: Object | None = None) -> list[FieldError]:
    errors: Errors = []
    spec = quota["spec"]
    _validate_amounts(spec.get("hard") or {}, "spec.hard", errors)
    scopes, path = spec.get("scopes") or [], "spec.scopes"
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
    if (selector := spec.get("scopeSelector")) is not None:
        _validate_scope_selector(selector, spec, errors)
    if old is not None and set(scopes) != set(old["spec"].get("scopes") or ()):
        errors.append(invalid_value("spec.scopes", scopes or None, IMMUTABLE))
    return errors


def validate_quota_status(quota: Object) -> list[FieldError]:
    errors: Errors = []
    for field in ("hard", "used"):
        _validate_amounts((quota.get("status") or {}).get(field) or {}, f"status.{field}", errors)
    return errors


def _validate_amounts(amounts: Object, path: str, errors: Errors) -> None:
    for name in sorted(amounts):
        at = f"{path}[{name}]"
        validate_format(name, resource_name(name), at, errors)
        if "/" not in name and not _is_quota_resource(name):
            errors.append(invalid_value(at, name, "must be a standard resource for quota"))
        validate_resource_quantity(name, amounts[name], at, errors)


def _is_quota_resource(name: str) -> bool:
    return name in QUOTA_RESOURCES or name.startswith(("hugepages-", "requests.hugepages-"))


def _is_in_scope(name: str, scope: str) -> bool:
    return not _is_quota_resource(name) or scope not in SCOPES or name in SCOPES[scope]


def _validate_scope_selector(selector: Object, spec: Object, errors: Errors) -> None:
    path, scopes = "spec.scopeSelector.matchExpressions", []
    for expression in selector.get("matchExpressions") or ():
        scope = expression.get("scopeName", "")
        if scope not in SCOPES:
            errors.append(invalid_value(f"{path}.scopeName", scope, "unsupported scope"))
        shown = go_view("core.ScopeSelector", selector)
        errors.extend(
            invalid_value(path, shown, "unsupported scope applied to resource")
            for name in sorted(spec.get("hard") or ())
            if not _is_in_scope(name, scope)
        )
        operator, values = expression.get("operator", ""), expression.get("values") or []
        if scope in ONLY_EXISTS and operator != "Exists":
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
                    "must be at least one value when `operator` is 'In' or 'NotIn' for scope "
                    "selector"
                )
                errors.append(required(f"{path}.values", detail))
        elif operator not in ("Exists", "DoesNotExist"):
            errors.append(
                invalid_value(f"{path}.operator", operator, "not a valid selector operator")
            )
        elif values:
            detail = (
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            )
            errors.append(invalid_value(f"{path}.values", values, detail))
        scopes.append(scope)
    errors.extend(
        invalid_value(path, spec.get("scopes") or None, "conflicting scopes")
        for pair in OPPOSITES
        if set(pair) <= set(scopes)
    )


def quota_warnings(quota: Object) -> list[str]:
    """Warn of a quota with more requests than limits, which can never be used up."""
    hard, warnings = quota["spec"].get("hard") or {}, []
    for name in ("cpu", "memory", "storage", "ephemeral-storage"):
        request, limit = f"requests.{name}", f"limits.{name}"
        if request not in hard and name in ("cpu", "memory"):
            request = name
        if (
            request in hard
            and limit in hard
            and Quantity.parse(hard[request]) > Quantity.parse(hard[limit])
        ):
            warnings.append(
                f"ResourceQuota {request} ({hard[request]}) should be less than {limit} "
                f"({hard[limit]})"
            )
    return warnings


# --- limit ranges ---------------------------------------------------------------------------------


def validate_limit_range(limit_range: Object) -> list[FieldError]:
    errors: Errors = []
    kinds: set[str] = set()
    for index, item in enumerate((limit_range.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{index}]", item.get("type", "")
        complaints = qualified_name(kind)
        validate_format(kind, complaints, f"{path}.type", errors)
        if (
            not complaints
            and "/" not in kind
            and kind not in ("Container", "PersistentVolumeClaim", "Pod")
        ):
            errors.append(
                invalid_value(
                    f"{path}.type", kind, "must be a standard limit type or fully qualified"
                )
            )
        if kind in kinds:
            errors.append(duplicate(f"{path}.type", kind))
        kinds.add(kind)
        check = container_resource_name if kind in ("Pod", "Container") else resource_name
        fields = ["max", "min", "maxLimitRequestRatio"]
        if kind == "Pod":
            detail = "may not be specified when `type` is 'Pod'"
            errors.extend(
                forbidden_field(f"{path}.{field}", detail)
                for field in ("default", "defaultRequest")
                if item.get(field)
            )
        else:
            fields[2:2] = ["default", "defaultRequest"]
        amounts = {field: item.get(field) or {} for field in fields}
        for field, values in amounts.items():
            if (
                field == "maxLimitRequestRatio"
                and kind == "PersistentVolumeClaim"
                and "storage" not in amounts["min"]
                and "storage" not in amounts["max"]
            ):
                detail = (
                    "either minimum or maximum storage value is required, but neither was provided"
                )
                errors.append(required(f"{path}.limits", detail))
            for name in sorted(values):
                validate_format(name, check(name), f"{path}.{field}[{name}]", errors)
        for name in sorted({name for values in amounts.values() for name in values}):
            _validate_order(
                {field: values[name] for field, values in amounts.items() if name in values},
                name,
                path,
                errors,
            )
    return errors


# Pairs of fields, of which the first must not be greater; the field and the amount that the error
# shows; its text.
_ORDER = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)


def _validate_order(amounts: dict[str, str], name: str, path: str, errors: Errors) -> None:
    """Validate the amounts of a resource against each other; ``amounts`` is by field."""
    sizes = {field: Quantity.parse(amount) for field, amount in amounts.items()}
    for low, high, field, shown, detail in _ORDER:
        if low in sizes and high in sizes and sizes[low] > sizes[high]:
            errors.append(
                invalid_value(
                    f"{path}.{field}[{name}]",
                    amounts[shown],
                    detail.format(amounts[low], amounts[high]),
                )
            )
    if "maxLimitRequestRatio" in sizes:
        shown = amounts["maxLimitRequestRatio"]
        ratio = sizes["maxLimitRequestRatio"]
        if ratio < Quantity.parse("1"):
            errors.append(
                invalid_value(
                    f"{path}.maxLimitRequestRatio[{name}]", shown, f"ratio {shown} is less than 1"
                )
            )
        if "min" in sizes and "max" in sizes and sizes["min"].nanos:
            limit = sizes["max"].milli_value() / sizes["min"].milli_value()
            if ratio.milli_value() / 1000 > limit:
                detail = f"ratio {shown} is greater than max/min = {limit:f}"
                errors.append(invalid_value(f"{path}.maxLimitRequestRatio[{name}]", shown, detail))
    default, request = sizes.get("default"), sizes.get("defaultRequest")
    if default and request and default != request and not is_overcommit_allowed(name):
        detail = (
            f"default value {amounts['default']} must equal to defaultRequest value "
            f"{amounts['defaultRequest']} "
            f"in {name}"
        )
        errors.append(
            invalid_value(f"{path}.defaultRequest[{name}]", amounts["defaultRequest"], detail)
        )
