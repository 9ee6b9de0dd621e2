"""Validation of a value by the schema of a CustomResourceDefinition, in the words of
``kube-openapi/pkg/validation``.

An update tolerates unchanged values that were invalid before (``validation/ratcheting.go``). Where
upstream iterates over a Go map, keys come in order here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kubepy.api.errors import (
    FieldError,
    invalid_value,
    not_supported,
    required,
    too_long,
    too_many,
    type_invalid,
)
from kubepy.api.meta import Object, nested_list, nested_map
from kubepy.api.schema import formats
from kubepy.api.schema.structural import INT_OR_STRING, Schema
from kubepy.api.values.goformat import format_value
from kubepy.api.values.goregex import GoRegexError, compile_go
from kubepy.quoting import quote
from kubepy.storage.frozen import plain_type

NOWHERE = "<nil>"  # the path of errors about several schemas together
MAX_FLOAT32 = (2 - 2**-23) * 2.0**127
_UNKNOWN = object()  # there is no corresponding old value


class Outcome(NamedTuple):
    """The errors of a value. ``checks`` is the number of checks, which tells the nearest of several
    schemas."""

    errors: list[FieldError]
    checks: int


def validate(schema: Schema, value: Any, path: str = "", old: Any = _UNKNOWN) -> list[FieldError]:
    """Return all errors of a value; ``old`` is the value that it replaces, if there is one."""
    return _check(schema, value, path, old).errors


def validate_part(schema: Schema, value: Any, path: str, old: Any = _UNKNOWN) -> list[FieldError]:
    """Return all errors of a part of an object by a schema of its own.

    The errors are at the fields of the object. Their texts name a field as the schema sees it:
    ``status.phase: … phase in body must be …``.
    """
    return [rerooted(path, error) for error in validate(schema, value, old=old)]


def rerooted(path: str, error: FieldError) -> FieldError:
    """Return an error of a value at the path that the value has in an object."""
    if error.field in ("", NOWHERE):
        return error._replace(field=path)
    return error._replace(field=f"{path}.{error.field}")


def _check(schema: Schema, value: Any, path: str, old: Any) -> Outcome:
    outcome = _check_all(schema, value, path, old)
    if outcome.errors and old is not _UNKNOWN and value == old:
        return Outcome([], outcome.checks)
    return outcome


def _check_all(schema: Schema, value: Any, path: str, old: Any) -> Outcome:
    type_errors = _wrong_type(schema, value, path)
    enum_errors = []
    allowed = schema.get("enum")
    if allowed and not any(entry == value and type(entry) is type(value) for entry in allowed):
        shown = [entry if isinstance(entry, str) else json.dumps(entry) for entry in allowed]
        enum_errors = [not_supported(path, value, shown)]
    if value is None:
        return Outcome([*type_errors, *enum_errors], 1)
    combined = _check_combined(schema, value, path, old)
    errors = [*type_errors, *combined.errors]
    if isinstance(value, str):
        errors += _check_text(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        errors += _check_number(schema, value, path)

    parts = Outcome([], 0)
    if isinstance(value, list):
        parts = _check_list(schema, value, path, old)
    elif isinstance(value, dict):
        parts = _check_map(schema, value, path, old)

    errors += (
        [*enum_errors, *parts.errors] if isinstance(value, dict) else [*parts.errors, *enum_errors]
    )
    checks = combined.checks + parts.checks + (not type_errors) + 4
    return Outcome(list(dict.fromkeys(errors)), checks)


# --- types ----------------------------------------------------------------------------------------


def types_of(schema: Schema) -> tuple[str, ...]:
    if schema.get(INT_OR_STRING):
        return ("integer", "string")
    if schema.get("type"):
        return (schema["type"],)
    return ()


def _wrong_type(schema: Schema, value: Any, path: str) -> tuple[FieldError, ...]:
    expected = types_of(schema)
    actual = json_type(value)
    format_ = _format_of(schema)
    if value is None:
        if expected and not schema.get("nullable"):
            return (_of_type(path, ",".join(expected), "null"),)
        return ()

    is_number = "number" in expected or "integer" in expected
    fits = actual in expected or (actual == "integer" and "number" in expected)
    if format_ and not isinstance(value, str | list) and not fits:
        return (_of_type(path, format_, _FORMATS.get(type(value), "")),)
    if format_ and isinstance(value, str | list) and not is_number:
        return ()
    if expected and not fits:
        return (_of_type(path, ",".join(expected), actual),)
    return ()


_FORMATS = {int: "int64", float: "float64"}
_NUMBER_FORMATS = {"integer": ("int32", "int64"), "number": ("float", "double")}


def _format_of(schema: Schema) -> str:
    """Return the format of a schema, "" if it is unknown for the schema's type."""
    name: str = schema.get("format", "")
    types = types_of(schema)
    if types in ((), ("string",)):
        if formats.supports(name):
            return name
        return ""
    if name in _NUMBER_FORMATS.get(types[0], ()) and len(types) == 1:
        return name
    return ""


def _of_type(path: str, expected: str, actual: str) -> FieldError:
    return type_invalid(
        path, actual, f"{_in_body(path)} must be of type {expected}: {quote(actual)}"
    )


def json_type(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return "integer"
    names = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
    }
    return names.get(plain_type(value), "null")


def _in_body(path: str) -> str:
    return f"{path} in body"


# --- texts and numbers ----------------------------------------------------------------------------


def _check_text(schema: Schema, value: str, path: str) -> list[FieldError]:
    errors = []
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        errors.append(too_long(path, schema["maxLength"]))
    elif len(value) < schema.get("minLength", 0):
        detail = f"{_in_body(path)} should be at least {schema['minLength']} chars long"
        errors.append(invalid_value(path, value, detail))
    elif (pattern := schema.get("pattern")) and (unmatched := _unmatched(pattern, value)):
        errors.append(invalid_value(path, value, f"{_in_body(path)} should match '{unmatched}'"))

    format_ = _format_of(schema)
    if formats.supports(format_) and not formats.fits(format_, value):
        errors.append(
            type_invalid(
                path, value, f"{_in_body(path)} must be of type {format_}: {json.dumps(value)}"
            )
        )

    return errors


def _unmatched(pattern: str, value: str) -> str:
    """Return the pattern if the value does not match it, else "".

    A definition that was written by hand may have an invalid pattern, which no value matches; then
    the reason follows (``kube-openapi/pkg/validation/validate/values.go``).
    """
    try:
        if compile_go(pattern).search(value):
            return ""
        return pattern
    except GoRegexError as error:
        return f"{pattern}, but pattern is invalid: {error}"


def _check_number(schema: Schema, value: float, path: str) -> Iterable[FieldError]:
    expected = types_of(schema)
    format_ = _format_of(schema)
    if expected == ("integer",):
        bits = 31 if format_ == "int32" else 63
        fits = float(value).is_integer() and -(2**bits) <= value < 2**bits
    else:
        fits = expected != ("number",) or format_ != "float" or abs(value) <= MAX_FLOAT32

    if not fits:  # too large or too precise
        type_and_format = (
            f"{expected[0]} {f'with format {format_}' if format_ else '(default format)'}"
        )
        yield invalid_value(
            NOWHERE, "", f"Checked value must be of type {type_and_format} in {path}"
        )

    low = schema.get("minimum")
    high = schema.get("maximum")
    step = schema.get("multipleOf")
    if step and value % step:
        yield invalid_value(
            path, value, f"{_in_body(path)} should be a multiple of {_number(step)}"
        )

    if low is not None and (value <= low if schema.get("exclusiveMinimum") else value < low):
        word = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield invalid_value(path, value, f"{_in_body(path)} should be {word} {_number(low)}")
    if high is not None and (value >= high if schema.get("exclusiveMaximum") else value > high):
        word = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield invalid_value(path, value, f"{_in_body(path)} should be {word} {_number(high)}")


def _number(value: float) -> str:
    """Return a limit as Go prints it: upstream holds all limits as floats."""
    return format_value(float(value))


# --- lists and maps -------------------------------------------------------------------------------


def _check_list(schema: Schema, value: list[Any], path: str, old: Any) -> Outcome:
    items = schema.get("items")
    partners = _partners(schema, value, old)
    if isinstance(items, Mapping):
        outcomes = [
            _check(items, item, f"{path}[{index}]", partners[index])
            for index, item in enumerate(value)
        ]
    else:
        outcomes = []

    errors = [error for outcome in outcomes for error in outcome.errors]
    if len(value) < schema.get("minItems", 0):
        detail = f"{_in_body(path)} should have at least {schema['minItems']} items"
        errors.append(invalid_value(path, len(value), detail))
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        errors.append(too_many(path, len(value), schema["maxItems"]))
    if schema.get("uniqueItems") and (
        len({json.dumps(item, sort_keys=True) for item in value}) < len(value)
    ):
        errors.append(invalid_value(path, "", f"{_in_body(path)} shouldn't contain duplicates"))

    return Outcome(errors, 1 + sum(outcome.checks for outcome in outcomes))


def _partners(schema: Schema, value: list[Any], old: Any) -> Sequence[Any]:
    """Return the old item of each item, which only lists of type map have."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return [_UNKNOWN] * len(value)
    keys = nested_list(schema, "x-kubernetes-list-map-keys")
    known = {_key_of(item, keys): item for item in old if isinstance(item, dict)}
    return [
        known.get(_key_of(item, keys), _UNKNOWN) if isinstance(item, dict) else _UNKNOWN
        for item in value
    ]


def _key_of(item: Object, keys: Iterable[str]) -> str:
    return json.dumps([item.get(key) for key in keys])


def _check_map(schema: Schema, value: Object, path: str, old: Any) -> Outcome:
    errors: list[FieldError] = []
    if len(value) < schema.get("minProperties", 0):
        detail = f"{_in_body(path)} should have at least {schema['minProperties']} properties"
        errors.append(invalid_value(path, len(value), detail))
    if "maxProperties" in schema and len(value) > schema["maxProperties"]:
        errors.append(too_many(path, len(value), schema["maxProperties"]))
    fields = nested_map(schema, "properties")
    others = schema.get("additionalProperties")
    prefix = f"{path}." if path else ""
    schemas = {
        key: others for key in sorted(value) if key not in fields and isinstance(others, Mapping)
    }
    schemas |= {key: fields[key] for key in sorted(value) if key in fields}
    old_map = old if isinstance(old, dict) else {}
    outcomes = [
        _check(own, value[key], prefix + key, old_map.get(key, _UNKNOWN))
        for key, own in schemas.items()
    ]
    errors += [error for outcome in outcomes for error in outcome.errors]
    errors += [
        required(prefix + key) for key in nested_list(schema, "required") if key not in value
    ]
    return Outcome(errors, sum(outcome.checks for outcome in outcomes))


# --- several schemas together ---------------------------------------------------------------------


def _check_combined(schema: Schema, value: Any, path: str, old: Any) -> Outcome:
    """Validate by ``anyOf``, ``oneOf``, ``allOf`` and ``not``. If all of several fail, the nearest
    adds its errors."""
    errors: list[FieldError] = []
    checks = 1
    if any_of := schema.get("anyOf"):
        outcomes = [_check(part, value, path, old) for part in any_of]
        if all(outcome.errors for outcome in outcomes):
            errors.append(_composite(f"{quote(path)} must validate at least one schema (anyOf)"))
            errors += _nearest(outcomes).errors
        checks += _nearest(outcomes).checks

    if one_of := schema.get("oneOf"):
        outcomes = [_check(part, value, path, old) for part in one_of]
        valid = sum(not outcome.errors for outcome in outcomes)
        if valid != 1:
            how = f"Found {valid} valid alternatives" if valid else "Found none valid"
            errors.append(
                _composite(f"{quote(path)} must validate one and only one schema (oneOf). {how}")
            )
            errors += [] if valid else _nearest(outcomes).errors
        checks += _nearest(outcomes).checks

    if all_of := schema.get("allOf"):
        outcomes = [_check(part, value, path, old) for part in all_of]
        errors += [error for outcome in outcomes for error in outcome.errors]
        if failed := sum(bool(outcome.errors) for outcome in outcomes):
            none = ". None validated" if failed == len(outcomes) else ""
            errors.append(_composite(f"{quote(path)} must validate all the schemas (allOf){none}"))
        checks += sum(outcome.checks for outcome in outcomes)

    if (forbidden := schema.get("not")) is not None and not _check(
        forbidden, value, path, old
    ).errors:
        errors.append(_composite(f"{quote(path)} must not validate the schema (not)"))

    return Outcome(errors, checks)


def _composite(detail: str) -> FieldError:
    return invalid_value(NOWHERE, "", detail)


def _nearest(outcomes: list[Outcome]) -> Outcome:
    """Return the first outcome without errors, or the one that failed after most checks."""
    fitting = next((outcome for outcome in outcomes if not outcome.errors), None)
    return fitting or max(outcomes, key=lambda outcome: outcome.checks)
