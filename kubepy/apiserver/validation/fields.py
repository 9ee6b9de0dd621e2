"""The checks that many fields share; each appends what it finds to ``errors`` (``apimachinery/pkg/api/validation``).

A validator takes the value, the path of the value (``spec.template.spec``) and the list of errors found so far.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubepy.api.errors import FieldError, forbidden_field, invalid_value, not_supported, required

Errors = list[FieldError]

NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than zero"
IMMUTABLE = "field is immutable"
FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
MAX_INT32 = 2**31 - 1


def between(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def validate_nonnegative(value: int | None, path: str, errors: Errors) -> None:
    if value is not None and value < 0:
        errors.append(invalid_value(path, value, NEGATIVE))


def validate_positive(value: int, path: str, errors: Errors) -> None:
    if value <= 0:
        errors.append(invalid_value(path, value, NOT_POSITIVE))


def validate_immutable(new: Any, old: Any, path: str, errors: Errors) -> None:
    """``ValidateImmutableField``: empty and absent are the same."""
    if new != old and not (is_empty(new) and is_empty(old)):
        errors.append(invalid_value(path, new, IMMUTABLE))


def is_empty(value: Any) -> bool:
    """Whether Go's semantic equality takes a value for nil: nothing, or a list or map without entries."""
    return value is None or (isinstance(value, dict | list) and not value)


def semantically_equal(new: Any, old: Any) -> bool:
    """``equality.Semantic.DeepEqual``: an empty list or map equals an absent one, at any depth.

    An empty struct behind a pointer is not nil; it is told from an empty map by nothing in JSON, so
    ``emptyDir: {}`` and no emptyDir differ only where the key itself is what matters.
    """
    if new == old:
        return True
    if isinstance(new, dict) and isinstance(old, dict):
        return all(semantically_equal(new.get(key), old.get(key)) for key in new.keys() | old.keys())
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return all(semantically_equal(one, other) for one, other in zip(new, old, strict=True))
    return is_empty(new) and is_empty(old)


def validate_choice(value: str, supported: Iterable[str], path: str, errors: Errors) -> None:
    """One of a set of words: absent is Required, another is Unsupported (listed in the order given)."""
    if not value:
        errors.append(required(path))
    elif value not in supported:
        errors.append(not_supported(path, value, supported))


def validate_optional_choice(value: str | None, supported: Iterable[str], path: str, errors: Errors) -> None:
    if value is not None and value not in supported:
        errors.append(not_supported(path, value, supported))


def validate_required(obj: dict[str, Any], names: Iterable[str], path: str, errors: Errors) -> None:
    """Fields that must not be empty, in the order given."""
    for name in names:
        if not obj.get(name):
            errors.append(required(f"{path}.{name}"))


def validate_format(value: object, complaints: Iterable[str], path: str, errors: Errors) -> None:
    """Every complaint of a format check about a value becomes an error."""
    for complaint in complaints:
        errors.append(invalid_value(path, value, complaint))


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


def forbid(obj: dict[str, Any], names: Iterable[str], why: str, path: str, errors: Errors) -> None:
    """Fields that must not be there, in the order given."""
    for name in names:
        if obj.get(name) is not None:
            errors.append(forbidden_field(f"{path}.{name}", why))
