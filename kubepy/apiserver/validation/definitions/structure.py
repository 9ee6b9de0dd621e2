"""Whether a schema is structural (``apiextensions-apiserver/pkg/apiserver/schema/{validation,complete}.go``).

A structural schema says of every field what it is; what stands under ``allOf``, ``anyOf``, ``oneOf`` and ``not`` only
narrows that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubepy.api.errors import FieldError, forbidden_field, invalid_value, required
from kubepy.api.meta import Object
from kubepy.api.schema.structural import EMBEDDED, INT_OR_STRING, PRESERVE
from kubepy.api.values.goregex import GoRegexError, compile_go

_JUNCTORS = ("anyOf", "allOf", "oneOf")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
# What may not stand under a junctor: field → what upstream says of it.
_FORBIDDEN_BELOW = {
    "type": "must be empty", "additionalProperties": "must be undefined", "default": "must be undefined",
    "title": "must be empty", "description": "must be empty", "nullable": "must be false", PRESERVE: "must be false",
    EMBEDDED: "must be false", INT_OR_STRING: "must be false", "x-kubernetes-list-map-keys": "must be empty",
    "x-kubernetes-list-type": "must be undefined", "x-kubernetes-map-type": "must be undefined",
    "x-kubernetes-validations": "must be empty",
}
_TYPE_WANTED = {
    "root": "must not be empty at the root", "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


def unsupported_field(schema: Any) -> str:
    """Why a schema cannot be read as a structural one at all, "" if it can (``NewStructural``)."""
    if isinstance(schema, list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array" if schema else ""
    if not isinstance(schema, dict):
        return ""
    for key, shown in (("id", "id"), ("$schema", "schema"), ("$ref", "$ref"), ("patternProperties",) * 2,
                       ("dependencies",) * 2, ("additionalItems",) * 2, ("definitions",) * 2):
        if schema.get(key):
            return f"OpenAPIV3Schema '{shown}' is not supported"
    if schema.get(PRESERVE) is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    below = [schema.get("not"), schema.get("items"), schema.get("additionalProperties"),
             *(schema.get("properties") or {}).values()]
    for junctor in _JUNCTORS:
        below += schema.get(junctor) or ()
    return next((wrong for one in below if (wrong := unsupported_field(one))), "")


def validate_structure(schema: Object, path: str) -> list[FieldError]:
    """What keeps a schema from being structural, in order of the texts (``ValidateStructural``)."""
    found = [*_invariants(schema, "root", path), *_completeness(schema, schema, path, path)]
    return sorted(found, key=str)


# --- invariants ---------------------------------------------------------------------------------------------------


def _invariants(schema: Object, level: str, path: str) -> Iterator[FieldError]:
    items, others, kind = schema.get("items"), schema.get("additionalProperties"), schema.get("type", "")
    if kind == "array" and items is None:
        yield required(f"{path}.items", "must be specified")
    if items is not None:
        yield from _invariants(items, "item", f"{path}.items")
    properties = schema.get("properties") or {}
    for name, property_ in properties.items():
        yield from _invariants(property_, "field", f"{path}.properties[{name}]")
    if others is not None and level == "root":
        yield forbidden_field(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(others, dict):
        yield from _invariants(others, "field", f"{path}.additionalProperties")
    yield from _extensions(schema, path)
    yield from _value_validation(schema, path)
    yield from _type(schema, level, path)
    if level == "root" or schema.get(EMBEDDED):
        for name in ("kind", "apiVersion"):
            if name in properties and properties[name].get("type", "") != "string":
                at = f"{path}.properties[{name}].type"
                yield invalid_value(at, properties[name].get("type", ""), "must be string")
    if "metadata" in properties:
        yield from _metadata(properties["metadata"], level, bool(schema.get(EMBEDDED)), f"{path}.properties[metadata]")
    if schema.get(EMBEDDED) and not schema.get(PRESERVE) and not properties:
        why = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        yield required(f"{path}.properties", why)


def _extensions(schema: Object, path: str) -> Iterator[FieldError]:
    for field in (PRESERVE, EMBEDDED):
        if schema.get(INT_OR_STRING) and schema.get(field):
            yield invalid_value(f"{path}.{field}", True, f"must be false if {INT_OR_STRING} is true")
    if schema.get(EMBEDDED) and schema.get("additionalProperties") is not None:
        yield forbidden_field(f"{path}.additionalProperties", f"must not be used if {EMBEDDED} is set")


def _type(schema: Object, level: str, path: str) -> Iterator[FieldError]:
    kind, at = schema.get("type", ""), f"{path}.type"
    if schema.get(EMBEDDED) and kind != "object":
        why = f"must be object if {EMBEDDED} is true"
        yield invalid_value(at, kind, why) if kind else required(at, why)
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        yield required(at, _TYPE_WANTED[level])
    if level == "root" and kind and kind != "object":
        yield invalid_value(at, kind, "must be object at the root")


def _metadata(metadata: Object, level: str, embedded: bool, path: str) -> Iterator[FieldError]:
    """At the root the schema of metadata may only restrict the names."""
    if (level == "root" or embedded) and metadata.get("type", "") != "object":
        yield invalid_value(f"{path}.type", metadata.get("type", ""), "must be object")
    if level != "root":
        return
    rest = {key: value for key, value in metadata.items() if key not in ("type", "default") and value not in ("", None)}
    if rest.get("properties", {}).keys() <= {"name", "generateName"}:
        rest.pop("properties", None)
    if rest:
        yield forbidden_field(path, "must not specify anything other than name and generateName, but metadata is "
                                    "implicitly specified")


def _value_validation(schema: Object, path: str) -> Iterator[FieldError]:
    """The junctors and the pattern of a schema. ``anyOf`` integer or string is what an int-or-string may say."""
    for index, one in enumerate(schema.get("anyOf") or ()):
        if schema["anyOf"] != _INT_OR_STRING:
            yield from _narrowing(one, f"{path}.anyOf[{index}]")
    for index, one in enumerate(schema.get("allOf") or ()):
        plain = {key: value for key, value in one.items() if key != "anyOf"}
        known = index == 0 and one.get("anyOf") == _INT_OR_STRING
        yield from _narrowing(plain if known else one, f"{path}.allOf[{index}]")
    for index, one in enumerate(schema.get("oneOf") or ()):
        yield from _narrowing(one, f"{path}.oneOf[{index}]")
    if schema.get("not") is not None:
        yield from _narrowing(schema["not"], f"{path}.not")
    if pattern := schema.get("pattern"):
        try:
            compile_go(pattern)
        except GoRegexError as error:
            yield invalid_value(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}")


def _narrowing(schema: Object, path: str) -> Iterator[FieldError]:
    """What stands under a junctor (``validateNestedValueValidation``)."""
    for index, one in enumerate(schema.get("anyOf") or ()):
        yield from _narrowing(one, f"{path}.anyOf[{index}]")
    yield from _value_validation({key: value for key, value in schema.items() if key != "anyOf"}, path)
    if schema.get("items") is not None:
        yield from _narrowing(schema["items"], f"{path}.items")
    for name, property_ in (schema.get("properties") or {}).items():
        yield from _narrowing(property_, f"{path}.properties[{name}]")
    for field, why in _FORBIDDEN_BELOW.items():
        value = schema.get(field)
        if value or (field == "default" and value is not None) or (field == "additionalProperties" and value == {}):
            yield forbidden_field(f"{path}.{field}", f"{why} to be structural")
    if "metadata" in (schema.get("properties") or {}):
        yield forbidden_field(f"{path}.properties[metadata]", "must not be specified in a nested context")


# --- completeness -------------------------------------------------------------------------------------------------


def _completeness(narrowing: Object, schema: Object, path: str, at: str) -> Iterator[FieldError]:
    """What a junctor speaks of is defined outside of it too. ``path``: of the schema, ``at``: of the narrowing."""
    if narrowing.get("not") is not None:
        yield from _nested_completeness(narrowing["not"], schema, path, f"{at}.not")
    for junctor in ("allOf", "anyOf", "oneOf"):
        for index, one in enumerate(narrowing.get(junctor) or ()):
            yield from _nested_completeness(one, schema, path, f"{at}.{junctor}[{index}]")


def _nested_completeness(narrowing: Object, schema: Object | None, path: str, at: str) -> Iterator[FieldError]:
    if schema is None:
        yield required(path, f"because it is defined in {at}")
        return
    yield from _completeness(narrowing, schema, path, at)
    if narrowing.get("items") is not None:
        yield from _nested_completeness(narrowing["items"], schema.get("items"), f"{path}.items", f"{at}.items")
    properties = schema.get("properties") or {}
    for name, property_ in (narrowing.get("properties") or {}).items():
        below, where = f"{path}.properties[{name}]", f"{at}.properties[{name}]"
        yield from _nested_completeness(property_, properties.get(name), below, where)
