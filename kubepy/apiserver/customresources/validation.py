"""Custom resources: objects embedded in them, their finalizers, and their scale subresource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubepy.api.errors import FieldError, invalid_value, required
from kubepy.api.meta import FOREGROUND, ORPHAN, Object
from kubepy.api.schema.structural import EMBEDDED, Schema
from kubepy.api.types.decoder import decode_as
from kubepy.api.types.special import DecodeError
from kubepy.api.values.goformat import format_value, type_name
from kubepy.api.values.names import dns1035_label, path_segment
from kubepy.apiserver.validation.fields import label_key
from kubepy.apiserver.validation.metadata import validate_object_meta
from kubepy.quoting import quote

_STANDARD_FINALIZERS = ("kubernetes", ORPHAN, FOREGROUND)
_METADATA = "meta/v1.ObjectMeta"
_PREFER = "prefer a domain-qualified finalizer name"
_CONFLICTS = "to avoid accidental conflicts with other finalizer writers"


def finalizer_warnings(finalizers: Iterable[str]) -> list[str]:
    warnings = []
    for name in sorted(set(finalizers)):
        complaints = list(label_key(name))
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            how = "including a path (/) " if "." in name else ""
            complaints.append(f"{_PREFER} {how}{_CONFLICTS}")
        warnings += [f"metadata.finalizers: {quote(name)}: {detail}" for detail in complaints]
    return warnings


# --- embedded objects -----------------------------------------------------------------------------


def validate_embedded(schema: Schema, value: Any, path: str = "") -> list[FieldError]:
    """Require kind, version and valid metadata of every object of
    ``x-kubernetes-embedded-resource``.

    If fields have the wrong type, only the error of the first is returned.
    """
    for embedded, at in _embedded(schema, value, path):
        for field in ("apiVersion", "kind"):
            if field in embedded and not isinstance(embedded[field], str):
                return [invalid_value(f"{at}.{field}", embedded[field], "must be a string")]
        try:
            decode_as(_METADATA, embedded.get("metadata"))
        except DecodeError as error:
            return [invalid_value(f"{at}.metadata", embedded["metadata"], str(error))]
    errors: list[FieldError] = []
    for embedded, at in _embedded(schema, value, path):
        errors += _invalid_fields(embedded, at)
    return errors


def _embedded(schema: Schema, value: Any, path: str) -> Iterator[tuple[Object, str]]:
    """Yield the embedded objects in a value, and their paths."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _embedded(schema.get("items") or {}, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        if schema.get(EMBEDDED):
            yield value, path
        fields = schema.get("properties") or {}
        others = schema.get("additionalProperties")
        for key in sorted(value):
            if key in fields:
                at = f"{path}.{key}" if path else key
                yield from _embedded(fields[key], value[key], at)
            elif isinstance(others, Mapping):
                yield from _embedded(others, value[key], f"{path}[{key}]")


def _invalid_fields(value: Object, path: str) -> Iterator[FieldError]:
    for field in ("apiVersion", "kind"):
        if field not in value:
            yield required(f"{path}.{field}")
        elif not value[field]:
            yield invalid_value(f"{path}.{field}", "", "must not be empty")

    version = value.get("apiVersion", "")
    kind = value.get("kind", "")
    if version.count("/") > 1:
        yield invalid_value(
            f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"
        )

    if kind and (complaints := dns1035_label(kind.lower())):
        detail = f"may have mixed case, but should otherwise match: {','.join(complaints)}"
        yield invalid_value(f"{path}.kind", kind, detail)
    if "metadata" in value:
        metadata = decode_as(_METADATA, value["metadata"]).object
        named = {**metadata, "name": metadata.get("name") or "fakename"}
        yield from validate_object_meta(
            named,
            namespaced=bool(metadata.get("namespace")),
            name_rule=path_segment,
            path=f"{path}.metadata",
        )


# --- scale subresource (apiextensions-apiserver/pkg/registry/customresource/validator.go) ---------


MAX_REPLICAS = 2**31 - 1
FieldPath = tuple[str, ...]


def validate_count(obj: Object, path: FieldPath) -> list[FieldError]:
    """Validate the number of replicas at a path."""
    count = value_at(obj, path)
    if count is None:
        return []
    if problem := _accessor_problem(path, count, int, "int64"):
        return [invalid_value(dotted(path), 0, problem)]
    if count < 0:
        return [invalid_value(dotted(path), count, "should be a non-negative integer")]
    if count > MAX_REPLICAS:
        return [
            invalid_value(dotted(path), count, f"should be less than or equal to {MAX_REPLICAS}")
        ]
    return []


def validate_selector(obj: Object, path: FieldPath) -> list[FieldError]:
    """Validate that the selector at a path is a string; an empty path means no selector."""
    selector = value_at(obj, path)
    problem = "" if selector is None else _accessor_problem(path, selector, str, "string")
    if problem:
        return [invalid_value(dotted(path), "", problem)]
    return []


def _accessor_problem(path: FieldPath, value: Any, expected: type, go_type: str) -> str:
    """Return the error of Go's accessors of unstructured objects for a value of another type, ""
    for none."""
    if type(value) is expected:
        return ""
    return (
        f"{dotted(path)} accessor error: {format_value(value)} is of the type {type_name(value)}, "
        f"expected "
        f"{go_type}"
    )


def dotted(path: FieldPath) -> str:
    """Return a path as errors write it: ``.spec.replicas``."""
    return "".join(f".{name}" for name in path)


def value_at(obj: Object, path: FieldPath) -> Any:
    """Return the value at a path; None if it is absent, or the path is empty."""
    value: Any = obj if path else None
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
