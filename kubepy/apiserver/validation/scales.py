"""What the scale of a custom resource needs (``apiextensions-apiserver/pkg/registry/customresource/validator.go``)."""

from __future__ import annotations

from typing import Any

from kubepy.api.errors import FieldError, invalid_value
from kubepy.api.meta import Object
from kubepy.api.values.goformat import format_value, type_name

MAX_REPLICAS = 2**31 - 1
FieldPath = tuple[str, ...]


def validate_count(obj: Object, path: FieldPath) -> list[FieldError]:
    """What is wrong with a number of replicas."""
    count = value_at(obj, path)
    if count is None:
        return []
    if problem := _accessor_problem(path, count, int, "int64"):
        return [invalid_value(dotted(path), 0, problem)]
    if count < 0:
        return [invalid_value(dotted(path), count, "should be a non-negative integer")]
    if count > MAX_REPLICAS:
        return [invalid_value(dotted(path), count, f"should be less than or equal to {MAX_REPLICAS}")]
    return []


def validate_selector(obj: Object, path: FieldPath) -> list[FieldError]:
    """What is wrong with a selector, which has to be a string; no path, no selector."""
    selector = value_at(obj, path)
    problem = "" if selector is None else _accessor_problem(path, selector, str, "string")
    return [invalid_value(dotted(path), "", problem)] if problem else []


def _accessor_problem(path: FieldPath, value: Any, wanted: type, go_type: str) -> str:
    """How Go's accessors of unstructured objects say that a value is of another type."""
    if type(value) is wanted:
        return ""
    return (f"{dotted(path)} accessor error: {format_value(value)} is of the type {type_name(value)}, expected "
            f"{go_type}")


def dotted(path: FieldPath) -> str:
    """``.spec.replicas``."""
    return "".join(f".{name}" for name in path)


def value_at(obj: Object, path: FieldPath) -> Any:
    """None where there is nothing, and for no path at all."""
    found: Any = obj if path else None
    for name in path:
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found
