"""The structural schemas of CustomResourceDefinitions: what they drop, fill in and refuse.

Upstream: ``apiextensions-apiserver/pkg/apiserver/schema/{pruning,defaulting}`` and ``kube-openapi/pkg/validation``,
whose words these are. CEL rules (``x-kubernetes-validations``) are not evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kubepy.cluster.errors import FieldError, invalid_value, not_supported, required, too_long, too_many, type_invalid
from kubepy.cluster.objects.meta import Object, clone

Schema = Mapping[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
_ALWAYS_THERE = frozenset(("apiVersion", "kind", "metadata"))


def prune(schema: Schema, obj: Object) -> list[str]:
    """Drop from an object what its schema does not know; returns the paths of what was dropped."""
    return list(_prune(schema, obj, "", is_resource=True))


def _prune(schema: Schema, value: Any, path: str, *, is_resource: bool) -> Iterator[str]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _prune(schema.get("items") or {}, item, f"{path}[{index}]", is_resource=False)
    elif isinstance(value, dict):
        yield from _prune_map(schema, value, path, is_resource or bool(schema.get(EMBEDDED)))


def _prune_map(schema: Schema, value: Object, path: str, is_resource: bool) -> Iterator[str]:
    fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for key in sorted(value):
        place = f"{path}.{key}" if path else key
        if is_resource and key in _ALWAYS_THERE:
            continue
        if key in fields:
            yield from _prune(fields[key], value[key], place, is_resource=False)
        elif isinstance(others, dict):
            yield from _prune(others, value[key], place, is_resource=False)
        elif not others and not schema.get(PRESERVE):
            del value[key]
            yield place


def fill_in(schema: Schema, value: Any) -> None:
    """Set the defaults of the schema in an object."""
    if isinstance(value, list):
        for item in value:
            fill_in(schema.get("items") or {}, item)
    if not isinstance(value, dict):
        return
    for key, field in (schema.get("properties") or {}).items():
        if "default" in field and (key not in value or (value[key] is None and not field.get("nullable"))):
            value[key] = clone(field["default"])
        if key in value:
            fill_in(field, value[key])
    if isinstance(others := schema.get("additionalProperties"), dict):
        for key in value.keys() - (schema.get("properties") or {}).keys():
            fill_in(others, value[key])


def validate(schema: Schema, value: Any, path: str = "") -> list[FieldError]:
    """All that the schema refuses in a value."""
    if value is None and schema.get("nullable"):
        return []
    if wrong := _validate_type(schema, value, path):
        return wrong
    return [*_validate_enum(schema, value, path), *_validate_kind(schema, value, path),
            *_validate_combined(schema, value, path)]


def _validate_type(schema: Schema, value: Any, path: str) -> list[FieldError]:
    found, wanted = _json_type(value), schema.get("type")
    if schema.get(INT_OR_STRING):
        return [] if found in ("integer", "string") else [_of_type(path, "integer,string", found)]
    if not wanted or found == wanted or (found, wanted) == ("integer", "number"):
        return []
    return [_of_type(path, wanted, found)]


def _of_type(path: str, wanted: str, found: str) -> FieldError:
    return type_invalid(path, found, f'{_in_body(path)} must be of type {wanted}: "{found}"')


def _json_type(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return "integer"
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _in_body(path: str) -> str:
    return f"{path} in body" if path else "body"


def _validate_enum(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    allowed = schema.get("enum")
    if allowed and value not in allowed:
        yield not_supported(path, value, [one if isinstance(one, str) else str(one) for one in allowed])


def _validate_kind(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    if isinstance(value, str):
        yield from _validate_text(schema, value, path)
    elif isinstance(value, list):
        yield from _validate_list(schema, value, path)
    elif isinstance(value, dict):
        yield from _validate_map(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _validate_number(schema, value, path)


def _validate_number(schema: Schema, value: float, path: str) -> Iterator[FieldError]:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if high is not None and (value >= high if schema.get("exclusiveMaximum") else value > high):
        word = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield invalid_value(path, value, f"{_in_body(path)} should be {word} {high}")
    if low is not None and (value <= low if schema.get("exclusiveMinimum") else value < low):
        word = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield invalid_value(path, value, f"{_in_body(path)} should be {word} {low}")
    if step and value % step:
        yield invalid_value(path, value, f"{_in_body(path)} should be a multiple of {step}")


def _validate_text(schema: Schema, value: str, path: str) -> Iterator[FieldError]:
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        yield too_long(path, schema["maxLength"])
    if len(value) < schema.get("minLength", 0):
        yield invalid_value(path, value, f"{_in_body(path)} should be at least {schema['minLength']} chars long")
    pattern = schema.get("pattern")
    if pattern and not re.search(pattern, value):
        yield invalid_value(path, value, f"{_in_body(path)} should match '{pattern}'")


def _validate_list(schema: Schema, value: list[Any], path: str) -> Iterator[FieldError]:
    if len(value) < schema.get("minItems", 0):
        yield invalid_value(path, len(value), f"{_in_body(path)} should have at least {schema['minItems']} items")
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        yield too_many(path, len(value), schema["maxItems"])
    for index, item in enumerate(value):
        yield from validate(schema.get("items") or {}, item, f"{path}[{index}]")


def _validate_map(schema: Schema, value: Object, path: str) -> Iterator[FieldError]:
    if len(value) < schema.get("minProperties", 0):
        why = f"{_in_body(path)} should have at least {schema['minProperties']} properties"
        yield invalid_value(path, len(value), why)
    if "maxProperties" in schema and len(value) > schema["maxProperties"]:
        yield too_many(path, len(value), schema["maxProperties"])
    fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
    prefix = f"{path}." if path else ""
    for key in sorted(value):
        if key in fields:
            yield from validate(fields[key], value[key], prefix + key)
        elif isinstance(others, dict):
            yield from validate(others, value[key], prefix + key)
    yield from (required(prefix + key) for key in schema.get("required") or () if key not in value)


def _validate_combined(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    """``allOf``, ``anyOf``, ``oneOf`` and ``not``."""
    for part in schema.get("allOf") or ():
        yield from validate(part, value, path)
    any_of, one_of = schema.get("anyOf") or (), schema.get("oneOf") or ()
    if any_of and not any(not validate(part, value, path) for part in any_of):
        yield invalid_value(path, "", f'"{path}" must validate at least one schema (anyOf)')
    if one_of and (valid := sum(not validate(part, value, path) for part in one_of)) != 1:
        found = f"Found {valid} valid alternatives" if valid else "Found none valid"
        yield invalid_value(path, "", f'"{path}" must validate one and only one schema (oneOf). {found}')
    if "not" in schema and not validate(schema["not"], value, path):
        yield invalid_value(path, "", f'"{path}" must not validate the schema (not)')
