"""LimitRanges (``ValidateLimitRange`` upstream)."""

from __future__ import annotations

from kubepy.api.errors import FieldError, duplicate, forbidden_field, invalid_value, required
from kubepy.api.meta import Object, nested_list
from kubepy.api.values.names import qualified_name
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.validation.fields import Errors, validate_as, validate_format
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
        is_standard = kind in ("Container", "PersistentVolumeClaim", "Pod")
        if not complaints and "/" not in kind and not is_standard:
            errors.append(
                invalid_value(
                    f"{path}.type", kind, "must be a standard limit type or fully qualified"
                )
            )
        if kind in kinds:
            errors.append(duplicate(f"{path}.type", kind))
        kinds.add(kind)
        _validate_limits(item, kind, path, errors)

    return errors


def _validate_limits(item: Object, kind: str, path: str, errors: Errors) -> None:
    """Validate the amounts of the limits of one type: their resources, then their order."""
    check = container_resource_name if kind in ("Pod", "Container") else resource_name

    fields = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"]
    if kind == "Pod":
        fields = ["max", "min", "maxLimitRequestRatio"]
        detail = "may not be specified when `type` is 'Pod'"
        errors.extend(
            forbidden_field(f"{path}.{field}", detail)
            for field in ("default", "defaultRequest")
            if item.get(field)
        )

    amounts = {field: item.get(field) or {} for field in fields}
    names: set[str] = set()
    for field, values in amounts.items():
        if field == "maxLimitRequestRatio" and kind == "PersistentVolumeClaim":
            _require_storage(amounts, f"{path}.limits", errors)
        for name in sorted(values):
            validate_as(check, name, f"{path}.{field}[{name}]", errors)
        names.update(values)

    for name in sorted(names):
        amounts_of_resource = {
            field: values[name] for field, values in amounts.items() if name in values
        }
        _validate_order(amounts_of_resource, name, path, errors)


def _require_storage(amounts: dict[str, Object], path: str, errors: Errors) -> None:
    if "storage" not in amounts["min"] and "storage" not in amounts["max"]:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(path, detail))


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
        ratio = amounts["maxLimitRequestRatio"]
        _validate_ratio(ratio, sizes, f"{path}.maxLimitRequestRatio[{name}]", errors)

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


def _validate_ratio(ratio: str, sizes: dict[str, Quantity], path: str, errors: Errors) -> None:
    if sizes["maxLimitRequestRatio"] < Quantity.parse("1"):
        errors.append(invalid_value(path, ratio, f"ratio {ratio} is less than 1"))
    if "min" not in sizes or "max" not in sizes or not sizes["min"].nanos:
        return
    limit = sizes["max"].milli_value() / sizes["min"].milli_value()
    if sizes["maxLimitRequestRatio"].milli_value() / 1000 > limit:
        detail = f"ratio {ratio} is greater than max/min = {limit:f}"
        errors.append(invalid_value(path, ratio, detail))
