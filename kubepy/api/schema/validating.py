"""A value against the schema of a CustomResourceDefinition.

The words are those of ``kube-openapi/pkg/validation/validate``. At an update what was wrong before and has not changed
is let pass (``validation/ratcheting.go``). Where upstream goes through a Go map, here keys are in order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kubepy.api.errors import FieldError, invalid_value, not_supported, required, too_long, too_many, type_invalid
from kubepy.api.meta import Object
from kubepy.api.schema import formats
from kubepy.api.schema.structural import INT_OR_STRING, Schema
from kubepy.api.values.goformat import format_value
from kubepy.api.values.goregex import GoRegexError, compile_go
from kubepy.quoting import quote

NOWHERE = "<nil>"  # the path of what is said of several schemas together
MAX_FLOAT32 = (2 - 2**-23) * 2.0**127
_UNKNOWN = object()  # an old value that corresponds to none


class Outcome(NamedTuple):
    """What is wrong with a value. ``checks``: how much was looked at, which tells the nearest of several schemas."""

    errors: list[FieldError]
    checks: int


def validate(schema: Schema, value: Any, path: str = "", old: Any = _UNKNOWN) -> list[FieldError]:
    """All that the schema refuses in a value; ``old`` is the value that it replaces, if there is one."""
    return _check(schema, value, path, old).errors


def _check(schema: Schema, value: Any, path: str, old: Any) -> Outcome:
    outcome = _check_all(schema, value, path, old)
    if outcome.errors and old is not _UNKNOWN and value == old:
        return Outcome([], outcome.checks)
    return outcome


def _check_all(schema: Schema, value: Any, path: str, old: Any) -> Outcome:
    found: list[FieldError] = list(_wrong_type(schema, value, path))
    checks = 1
    if value is None:
        return Outcome([*found, *_not_in_enum(schema, value, path)], checks)
    combined = _check_combined(schema, value, path, old)
    found += combined.errors
    found += _check_kind(schema, value, path)
    if isinstance(value, list):
        parts = _check_list(schema, value, path, old)
    elif isinstance(value, dict):
        parts = _check_map(schema, value, path, old)
    else:
        parts = Outcome([], 0)
    in_enum = list(_not_in_enum(schema, value, path))
    found += [*in_enum, *parts.errors] if isinstance(value, dict) else [*parts.errors, *in_enum]
    checks += combined.checks + parts.checks + (not _wrong_type(schema, value, path)) + 3
    return Outcome(list(dict.fromkeys(found)), checks)


# --- types ----------------------------------------------------------------------------------------------------------


def types_of(schema: Schema) -> tuple[str, ...]:
    if schema.get(INT_OR_STRING):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _wrong_type(schema: Schema, value: Any, path: str) -> tuple[FieldError, ...]:
    wanted, found = types_of(schema), json_type(value)
    named = _format_of(schema)
    if value is None:
        return (_of_type(path, ",".join(wanted), "null"),) if wanted and not schema.get("nullable") else ()
    is_number = "number" in wanted or "integer" in wanted
    fits = found in wanted or (found == "integer" and "number" in wanted)
    if named and not isinstance(value, str | list) and not fits:
        return (_of_type(path, named, _FORMATS.get(type(value), "")),)
    if named and isinstance(value, str | list) and not is_number:
        return ()
    return (_of_type(path, ",".join(wanted), found),) if wanted and not fits else ()


_FORMATS = {int: "int64", float: "float64"}
_NUMBER_FORMATS = {"integer": ("int32", "int64"), "number": ("float", "double")}


def _format_of(schema: Schema) -> str:
    """The format that a schema asks for, "" if it is none that is known for its type."""
    name, types = schema.get("format", ""), types_of(schema)
    if types in ((), ("string",)):
        return name if formats.supports(name) else ""
    return name if name in _NUMBER_FORMATS.get(types[0], ()) and len(types) == 1 else ""


def _of_type(path: str, wanted: str, found: str) -> FieldError:
    return type_invalid(path, found, f"{_in_body(path)} must be of type {wanted}: {quote(found)}")


def json_type(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return "integer"
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _in_body(path: str) -> str:
    return f"{path} in body"


def _not_in_enum(schema: Schema, value: Any, path: str) -> Iterable[FieldError]:
    allowed = schema.get("enum")
    if allowed and not any(one == value and type(one) is type(value) for one in allowed):
        yield not_supported(path, value, [one if isinstance(one, str) else json.dumps(one) for one in allowed])


# --- texts and numbers ----------------------------------------------------------------------------------------------


def _check_kind(schema: Schema, value: Any, path: str) -> list[FieldError]:
    if isinstance(value, str):
        return _check_text(schema, value, path)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return list(_check_number(schema, value, path))
    return []


def _check_text(schema: Schema, value: str, path: str) -> list[FieldError]:
    found = []
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        found.append(too_long(path, schema["maxLength"]))
    elif len(value) < schema.get("minLength", 0):
        why = f"{_in_body(path)} should be at least {schema['minLength']} chars long"
        found.append(invalid_value(path, value, why))
    elif (pattern := schema.get("pattern")) and (unmatched := _unmatched(pattern, value)):
        found.append(invalid_value(path, value, f"{_in_body(path)} should match '{unmatched}'"))
    named = _format_of(schema)
    if formats.supports(named) and not formats.fits(named, value):
        found.append(type_invalid(path, value, f"{_in_body(path)} must be of type {named}: {json.dumps(value)}"))
    return found


def _unmatched(pattern: str, value: str) -> str:
    """The pattern if the value does not match it, with the reason if nothing can: a definition that was written by hand
    may have a pattern that is none (``kube-openapi/pkg/validation/validate/values.go``). "" if it matches."""
    try:
        return "" if compile_go(pattern).search(value) else pattern
    except GoRegexError as error:
        return f"{pattern}, but pattern is invalid: {error}"


def _check_number(schema: Schema, value: float, path: str) -> Iterable[FieldError]:
    if why := _out_of_range(schema, value):
        yield invalid_value(NOWHERE, "", f"Checked value must be of type {why} in {path}")
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if step and value % step:
        yield invalid_value(path, value, f"{_in_body(path)} should be a multiple of {_number(step)}")
    if low is not None and (value <= low if schema.get("exclusiveMinimum") else value < low):
        word = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield invalid_value(path, value, f"{_in_body(path)} should be {word} {_number(low)}")
    if high is not None and (value >= high if schema.get("exclusiveMaximum") else value > high):
        word = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield invalid_value(path, value, f"{_in_body(path)} should be {word} {_number(high)}")


def _out_of_range(schema: Schema, value: float) -> str:
    """The type and format that a number is too large or too precise for, "" if it is neither."""
    wanted, named = types_of(schema), _format_of(schema)
    if wanted == ("integer",):
        bits = 31 if named == "int32" else 63
        fits = float(value).is_integer() and -(2**bits) <= value < 2**bits
    else:
        fits = wanted != ("number",) or named != "float" or abs(value) <= MAX_FLOAT32
    return "" if fits else f"{wanted[0]} {f'with format {named}' if named else '(default format)'}"


def _number(value: float) -> str:
    """A limit as Go prints it: upstream holds all of them as floats."""
    return format_value(float(value))


# --- lists and maps -------------------------------------------------------------------------------------------------


def _check_list(schema: Schema, value: list[Any], path: str, old: Any) -> Outcome:
    items = schema.get("items")
    partners = _partners(schema, value, old)
    outcomes = [_check(items, item, f"{path}[{index}]", partners[index])
                for index, item in enumerate(value)] if isinstance(items, Mapping) else []
    found = [error for outcome in outcomes for error in outcome.errors]
    if len(value) < schema.get("minItems", 0):
        why = f"{_in_body(path)} should have at least {schema['minItems']} items"
        found.append(invalid_value(path, len(value), why))
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        found.append(too_many(path, len(value), schema["maxItems"]))
    if schema.get("uniqueItems") and _has_repeats(value):
        found.append(invalid_value(path, "", f"{_in_body(path)} shouldn't contain duplicates"))
    return Outcome(found, 1 + sum(outcome.checks for outcome in outcomes))


def _partners(schema: Schema, value: list[Any], old: Any) -> Sequence[Any]:
    """The old item of each item: only lists of type map tell which it is."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return [_UNKNOWN] * len(value)
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    known = {_key_of(item, keys): item for item in old if isinstance(item, dict)}
    return [known.get(_key_of(item, keys), _UNKNOWN) if isinstance(item, dict) else _UNKNOWN for item in value]


def _key_of(item: Object, keys: Iterable[str]) -> str:
    return json.dumps([item.get(key) for key in keys])


def _has_repeats(value: list[Any]) -> bool:
    return len({json.dumps(item, sort_keys=True) for item in value}) < len(value)


def _check_map(schema: Schema, value: Object, path: str, old: Any) -> Outcome:
    found: list[FieldError] = []
    if len(value) < schema.get("minProperties", 0):
        why = f"{_in_body(path)} should have at least {schema['minProperties']} properties"
        found.append(invalid_value(path, len(value), why))
    if "maxProperties" in schema and len(value) > schema["maxProperties"]:
        found.append(too_many(path, len(value), schema["maxProperties"]))
    fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
    prefix = f"{path}." if path else ""
    schemas = {key: others for key in sorted(value) if key not in fields and isinstance(others, Mapping)}
    schemas |= {key: fields[key] for key in sorted(value) if key in fields}
    before = old if isinstance(old, dict) else {}
    outcomes = [_check(own, value[key], prefix + key, before.get(key, _UNKNOWN)) for key, own in schemas.items()]
    found += [error for outcome in outcomes for error in outcome.errors]
    found += [required(prefix + key) for key in schema.get("required") or () if key not in value]
    return Outcome(found, sum(outcome.checks for outcome in outcomes))


# --- several schemas together ---------------------------------------------------------------------------------------


def _check_combined(schema: Schema, value: Any, path: str, old: Any) -> Outcome:
    """``anyOf``, ``oneOf``, ``allOf`` and ``not``. Of several that all fail, the nearest complains too."""
    found: list[FieldError] = []
    checks = 1
    if any_of := schema.get("anyOf"):
        outcomes = [_check(part, value, path, old) for part in any_of]
        if all(outcome.errors for outcome in outcomes):
            found.append(_composite(f"{quote(path)} must validate at least one schema (anyOf)"))
            found += _nearest(outcomes).errors
        checks += _nearest(outcomes).checks
    if one_of := schema.get("oneOf"):
        outcomes = [_check(part, value, path, old) for part in one_of]
        valid = sum(not outcome.errors for outcome in outcomes)
        if valid != 1:
            how = f"Found {valid} valid alternatives" if valid else "Found none valid"
            found.append(_composite(f"{quote(path)} must validate one and only one schema (oneOf). {how}"))
            found += [] if valid else _nearest(outcomes).errors
        checks += _nearest(outcomes).checks
    if all_of := schema.get("allOf"):
        outcomes = [_check(part, value, path, old) for part in all_of]
        found += [error for outcome in outcomes for error in outcome.errors]
        if failed := sum(bool(outcome.errors) for outcome in outcomes):
            none = ". None validated" if failed == len(outcomes) else ""
            found.append(_composite(f"{quote(path)} must validate all the schemas (allOf){none}"))
        checks += sum(outcome.checks for outcome in outcomes)
    if (forbidden := schema.get("not")) is not None and not _check(forbidden, value, path, old).errors:
        found.append(_composite(f"{quote(path)} must not validate the schema (not)"))
    return Outcome(found, checks)


def _composite(why: str) -> FieldError:
    return invalid_value(NOWHERE, "", why)


def _nearest(outcomes: list[Outcome]) -> Outcome:
    """The first that fits, or the one that failed after most checks."""
    fitting = next((outcome for outcome in outcomes if not outcome.errors), None)
    return fitting or max(outcomes, key=lambda outcome: outcome.checks)
