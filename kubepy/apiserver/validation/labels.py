"""Labels and label selectors inside objects (``apimachinery/pkg/apis/meta/v1/validation``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kubepy.api.errors import forbidden_field, invalid_value, required
from kubepy.api.values import names
from kubepy.apiserver.validation.fields import Errors, validate_format

# The same few label keys and values come with every pod of a workload.
label_key = lru_cache(maxsize=4096)(names.qualified_name)
label_value = lru_cache(maxsize=4096)(names.label_value)

NOT_AN_OPERATOR = "not a valid selector operator"


def validate_label_name(key: str, path: str, errors: Errors) -> None:
    validate_format(key, label_key(key), path, errors)


def validate_labels(labels: Mapping[str, str] | None, path: str, errors: Errors) -> None:
    for key in sorted(labels or ()):
        validate_label_name(key, path, errors)
        value = labels[key]  # type: ignore[index]  # the loop runs only over labels that are there
        validate_format(value, label_value(value), path, errors)


def validate_label_selector(selector: Mapping[str, Any] | None, path: str, errors: Errors, *,
                            allow_invalid_values: bool = False) -> None:
    """``allow_invalid_values``: tolerate values that are no label values, as an update of an old object does."""
    if selector is None:
        return
    validate_labels(selector.get("matchLabels"), f"{path}.matchLabels", errors)
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        _validate_requirement(expression, at, errors)
        if not allow_invalid_values:
            validate_label_values(expression.get("values"), f"{at}.values", errors)


def _validate_requirement(expression: Mapping[str, Any], path: str, errors: Errors) -> None:
    validate_operator(expression, path, errors)
    validate_label_name(expression.get("key", ""), f"{path}.key", errors)


def validate_operator(expression: Mapping[str, Any], path: str, errors: Errors) -> None:
    """How many values the operator of a requirement takes."""
    operator, values = expression.get("operator", ""), expression.get("values")
    match operator:
        case "In" | "NotIn":
            if not values:
                errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        case "Exists" | "DoesNotExist":
            if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden_field(f"{path}.values", why))
        case _:
            errors.append(invalid_value(f"{path}.operator", operator, NOT_AN_OPERATOR))


def validate_label_values(values: list[str] | None, path: str, errors: Errors) -> None:
    for index, value in enumerate(values or ()):
        validate_format(value, label_value(value), f"{path}[{index}]", errors)


def is_empty_selector(selector: Mapping[str, Any]) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def has_invalid_label_value(selector: Mapping[str, Any] | None) -> bool:
    expressions = (selector or {}).get("matchExpressions") or ()
    return any(label_value(value) for one in expressions for value in one.get("values") or ())
