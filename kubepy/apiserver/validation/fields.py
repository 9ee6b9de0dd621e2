"""The checks that many fields share: numbers, words, labels, selectors; and Go's view of a value in
an error.

Upstream: ``apimachinery/pkg/api/validation``, ``apimachinery/pkg/apis/meta/v1/validation``. A
validator takes a value, its path (``spec.template.spec``) and the list ``errors``, to which it
appends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from kubepy.api.errors import FieldError, forbidden_field, invalid_value, not_supported, required
from kubepy.api.values import names
from kubepy.api.values.goformat import Ordered
from kubepy.lazy import lazy_imports

with lazy_imports():  # only for the values and differences that errors show
    from kubepy.api.types import goview

Errors = list[FieldError]

NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than zero"
IMMUTABLE = "field is immutable"
FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def between(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def validate_nonnegative(value: int | None, path: str, errors: Errors) -> None:
    if value is not None and value < 0:
        errors.append(invalid_value(path, value, NEGATIVE))


def validate_positive(value: int, path: str, errors: Errors) -> None:
    if value <= 0:
        errors.append(invalid_value(path, value, NOT_POSITIVE))


def validate_immutable(new: Any, old: Any, path: str, errors: Errors) -> None:
    """Refuse a change (``ValidateImmutableField``); empty and absent are the same."""
    if new != old and not (is_empty(new) and is_empty(old)):
        errors.append(invalid_value(path, new, IMMUTABLE))


def is_empty(value: Any) -> bool:
    """Return whether Go's semantic equality takes a value for nil: null, or a list or map without
    entries."""
    return value is None or (isinstance(value, dict | list) and not value)


def semantically_equal(new: Any, old: Any) -> bool:
    """Compare as ``equality.Semantic.DeepEqual``: an empty list or map equals an absent one, at any
    depth.

    JSON does not tell an empty struct behind a pointer, which is not nil, from an empty map. So
    ``emptyDir: {}`` counts as no emptyDir here; callers for whom that matters look at the key.
    """
    if new == old:
        return True
    if isinstance(new, dict) and isinstance(old, dict):
        return all(
            semantically_equal(new.get(key), old.get(key)) for key in new.keys() | old.keys()
        )
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return all(
            semantically_equal(item, old_item) for item, old_item in zip(new, old, strict=True)
        )
    return is_empty(new) and is_empty(old)


def validate_choice(value: str, supported: Iterable[str], path: str, errors: Errors) -> None:
    """Require one of a set of words: none is Required, another is Unsupported (the words are listed
    in their order)."""
    if not value:
        errors.append(required(path))
    elif value not in supported:
        errors.append(not_supported(path, value, supported))


def validate_optional_choice(
    value: str | None, supported: Iterable[str], path: str, errors: Errors
) -> None:
    if value is not None and value not in supported:
        errors.append(not_supported(path, value, supported))


def validate_required(obj: dict[str, Any], names: Iterable[str], path: str, errors: Errors) -> None:
    """Require fields to be set and not empty."""
    for name in names:
        if not obj.get(name):
            errors.append(required(f"{path}.{name}"))


def validate_format(value: object, complaints: Iterable[str], path: str, errors: Errors) -> None:
    """Append an error for every complaint of a format check about a value."""
    for complaint in complaints:
        errors.append(invalid_value(path, value, complaint))


def validate_as(
    rule: Callable[[Any], Iterable[str]], value: Any, path: str, errors: Errors
) -> None:
    """Append an error for every complaint that a rule (``dns1123_label``) has about a value."""
    validate_format(value, rule(value), path, errors)


def validate_required_as(
    rule: Callable[[Any], Iterable[str]], value: Any, path: str, errors: Errors
) -> None:
    """Require a value, and one that a rule has no complaints about."""
    if not value:
        errors.append(required(path))
    else:
        validate_as(rule, value, path, errors)


def validate_range(value: int | None, low: int, high: int, path: str, errors: Errors) -> None:
    if value is not None and not low <= value <= high:
        errors.append(invalid_value(path, value, between(low, high)))


def validate_file_mode(mode: int | None, path: str, errors: Errors) -> None:
    if mode is not None and not 0 <= mode <= 0o777:
        errors.append(invalid_value(path, mode, FILE_MODE))


def validate_no_backsteps(target: str, path: str, errors: Errors) -> None:
    if ".." in target and ".." in target.split("/"):
        errors.append(invalid_value(path, target, "must not contain '..'"))


def validate_local_descending_path(target: str, path: str, errors: Errors) -> None:
    if target.startswith("/"):
        errors.append(invalid_value(path, target, "must be a relative path"))
    validate_no_backsteps(target, path, errors)


def validate_local_non_reserved_path(target: str, path: str, errors: Errors) -> None:
    validate_local_descending_path(target, path, errors)
    if target.startswith("..") and not target.startswith("../"):
        errors.append(invalid_value(path, target, "must not start with '..'"))


# --- labels and selectors -------------------------------------------------------------------------


# The same few label keys and values come with every pod of a workload.
label_key = lru_cache(maxsize=4096)(names.qualified_name)
label_value = lru_cache(maxsize=4096)(names.label_value)

NOT_AN_OPERATOR = "not a valid selector operator"


def validate_label_name(key: str, path: str, errors: Errors) -> None:
    validate_as(label_key, key, path, errors)


def validate_labels(labels: Mapping[str, str] | None, path: str, errors: Errors) -> None:
    for key in sorted(labels or ()):
        validate_label_name(key, path, errors)
        value = labels[key]  # type: ignore[index]  # the loop runs only over labels that are there
        validate_as(label_value, value, path, errors)


def validate_label_selector(
    selector: Mapping[str, Any] | None,
    path: str,
    errors: Errors,
    *,
    allow_invalid_values: bool = False,
) -> None:
    """Validate a selector; ``allow_invalid_values`` tolerates values that are no label values, as
    in updates."""
    if selector is None:
        return
    validate_labels(selector.get("matchLabels"), f"{path}.matchLabels", errors)
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        validate_operator(expression, at, errors)
        validate_label_name(expression.get("key", ""), f"{at}.key", errors)
        if not allow_invalid_values:
            validate_label_values(expression.get("values"), f"{at}.values", errors)


def validate_operator(expression: Mapping[str, Any], path: str, errors: Errors) -> None:
    """Validate the operator of a requirement, and that there are values exactly if it takes
    some."""
    operator = expression.get("operator", "")
    values = expression.get("values")
    match operator:
        case "In" | "NotIn":
            if not values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                errors.append(required(f"{path}.values", detail))
        case "Exists" | "DoesNotExist":
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(forbidden_field(f"{path}.values", detail))
        case _:
            errors.append(invalid_value(f"{path}.operator", operator, NOT_AN_OPERATOR))


def validate_label_values(values: list[str] | None, path: str, errors: Errors) -> None:
    for index, value in enumerate(values or ()):
        validate_as(label_value, value, f"{path}[{index}]", errors)


def is_empty_selector(selector: Mapping[str, Any]) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def has_invalid_label_value(selector: Mapping[str, Any] | None) -> bool:
    for expression in (selector or {}).get("matchExpressions") or ():
        if any(map(label_value, expression.get("values") or ())):
            return True
    return False


# --- Go's view of a value -------------------------------------------------------------------------


def go_view(type_name: str, value: Any) -> Any:
    """Return a value as ``json.Marshal`` prints the internal type ``type_name``
    (``apps.DaemonSetUpdateStrategy``)."""
    return _ordered(goview.go_fields(type_name, value))


def json_view(type_name: str, value: Any) -> Any:
    """Return a value as ``json.Marshal`` prints a type with JSON names
    (``meta/v1.OwnerReference``)."""
    return _ordered(goview.go_order(type_name, value))


def selector_view(selector: Any) -> Any:
    """Return a label selector as ``json.Marshal`` prints it."""
    return json_view("meta/v1.LabelSelector", selector)


def _ordered(value: Any) -> Any:
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if isinstance(value, dict):
        return Ordered(value)
    return value


# --- the difference of two objects (apimachinery/pkg/util/diff) -----------------------------------


def go_diff(type_name: str, old: Any, new: Any) -> str:
    """Return the unified diff of two internal structs printed as indented JSON, without file
    names."""
    import difflib

    old_text = json.dumps(go_view(type_name, old), indent=1, ensure_ascii=False)
    new_text = json.dumps(go_view(type_name, new), indent=1, ensure_ascii=False)
    lines = difflib.unified_diff(old_text.split("\n"), new_text.split("\n"), n=3, lineterm="")
    return "".join(f"{line}\n" for line in list(lines)[2:])
