"""LimitRanges (``ValidateLimitRange`` upstream)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, duplicate, forbidden_field, invalid_value, required
from kubepy.api.meta import Object, nested_list
from kubepy.api.values.names import qualified_name
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.validation.fields import Errors, validate_format
from kubepy.apiserver.validation.resources import (
    container_resource_name,
    is_overcommit_allowed,
    resource_name,
)


def validate_limit_range(limit_range: Object) -> list[FieldError]:
    errors: Errors = []
    kinds: set[str] = set()
    for index, item in enumerate(nested_list(limit_range, "spec", "limits")):
        path = f"spec.limits[{index}]"
        kind = item.get("type", "")
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
    default = sizes.get("default")
    request = sizes.get("defaultRequest")
    if default and request and default != request and not is_overcommit_allowed(name):
        detail = (
            f"default value {amounts['default']} must equal to defaultRequest value "
            f"{amounts['defaultRequest']} "
            f"in {name}"
        )
        errors.append(
            invalid_value(f"{path}.defaultRequest[{name}]", amounts["defaultRequest"], detail)
        )
