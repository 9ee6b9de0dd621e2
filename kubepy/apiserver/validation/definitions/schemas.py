"""The schemas in CustomResourceDefinitions (``ValidateCustomResourceDefinitionOpenAPISchema``).

Upstream goes through properties in any order; here it is that of their names. What CEL rules cost is not estimated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kubepy.api.errors import FieldError, forbidden_field, invalid_value, not_supported, required
from kubepy.api.meta import Object
from kubepy.api.schema.fieldpaths import find_field
from kubepy.apiserver.validation.definitions.defaults import validate_defaults
from kubepy.apiserver.validation.definitions.structure import unsupported_field, validate_structure
from kubepy.apiserver.validation.fields import Errors
from kubepy.apiserver.validation.goview import json_view

SCHEMA_TYPE = "apiextensions/v1.JSONSchemaProps"
TYPES = ("array", "boolean", "integer", "number", "object", "string")
REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
LIST_TYPE, MAP_TYPE, MAP_KEYS = "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-list-map-keys"
RULES, PRESERVE = "x-kubernetes-validations", "x-kubernetes-preserve-unknown-fields"
META_FIELDS = ("metadata", "kind", "apiVersion")
# With a status subresource only these may be at the root, in Go's names.
ALLOWED_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations")
_JSON_ALLOWED_AT_ROOT = {name[:1].lower() + name[1:] for name in ALLOWED_AT_ROOT.split()} | {PRESERVE, RULES}
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_LISTS_OF_SCHEMAS = ("allOf", "oneOf", "anyOf")


class _Place(NamedTuple):
    """Where a schema stands: why it may hold no default, and whether it is that of an object's metadata."""

    root: bool = False
    no_defaults: str = ""
    in_metadata: bool = False


def validate_schema(schema: Object, path: str, errors: Errors, *, with_status: bool, is_new: bool = True) -> None:
    """The whole schema of a version, which has a status subresource or not, and was another before or not."""
    found: Errors = []
    if with_status:
        _validate_status_root(schema, path, found)
    if schema.get("nullable"):
        found.append(forbidden_field(f"{path}.nullable", "nullable cannot be true at the root"))
    unsupported = unsupported_field(schema)
    if not unsupported:
        found.extend(validate_structure(schema, path) or validate_defaults(schema, path))
    _validate(schema, path, _Place(root=True), found)
    if unsupported and not found:
        found.append(invalid_value(path, "", unsupported))
    if not found:
        found.extend(_validate_rules(schema, path, is_new=is_new))
    errors.extend(found)


def _validate_status_root(schema: Object, path: str, errors: Errors) -> None:
    first = [key for key in ("id", "$schema", "$ref") if schema.get(key)]
    kind = schema.get("type")
    if not first and kind and kind != "object":
        why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        errors.append(invalid_value(f"{path}.type", kind, why))
    elif any(value not in (None, "") for key, value in schema.items() if key not in _JSON_ALLOWED_AT_ROOT):
        why = (f"only [{ALLOWED_AT_ROOT}] fields are allowed at the root of the schema if the status subresource is "
               "enabled")
        errors.append(invalid_value(path, json_view(SCHEMA_TYPE, schema), why))


def _validate_rules(schema: Object, path: str, *, is_new: bool) -> list[FieldError]:
    """Rules that do not compile or cost too much. The language is only loaded for schemas that have rules."""
    if RULES not in str(schema):
        return []
    from kubepy.apiserver.validation.definitions.rules import validate_rules

    return validate_rules(schema, path, limits_each=is_new)


# --- one schema and those below it --------------------------------------------------------------------------------


def _validate(schema: Object, path: str, place: _Place, errors: Errors) -> None:
    _validate_fields(schema, path, place, errors)
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(forbidden_field(f"{path}.uniqueItems", why))
    others = schema.get("additionalProperties")
    if others is not None and schema.get("properties") and others is not True:
        why = "additionalProperties and properties are mutual exclusive"
        errors.append(forbidden_field(f"{path}.additionalProperties", why))
    for below, at, where in _below(schema, path, place):
        _validate(below, at, where, errors)
    if schema.get(PRESERVE) is False:
        errors.append(invalid_value(f"{path}.{PRESERVE}", False, "must be true or undefined"))
    if schema.get(MAP_TYPE) is not None:
        _validate_map_type(schema, path, errors)
    if schema.get(LIST_TYPE) is not None or schema.get(MAP_KEYS):
        _validate_list_type(schema, path, errors)
    for index, rule in enumerate(schema.get(RULES) or ()):
        _validate_rule(rule, schema, f"{path}.{RULES}[{index}]", errors)


def _validate_fields(schema: Object, path: str, place: _Place, errors: Errors) -> None:
    kind, items = schema.get("type"), schema.get("items")
    if kind and kind not in TYPES:
        errors.append(not_supported(f"{path}.type", kind, TYPES))
    if "default" in schema and place.no_defaults:
        errors.append(forbidden_field(f"{path}.default", f"must not be set {place.no_defaults}"))
    errors.extend(forbidden_field(f"{path}.{field}", f"{field} is not supported")
                  for field in _UNSUPPORTED if schema.get(field))
    if kind == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        errors.append(forbidden_field(f"{path}.type", why))
    if isinstance(items, list) and items:
        errors.append(forbidden_field(f"{path}.items", "items must be a schema object and not an array"))
    if place.in_metadata and schema.get("x-kubernetes-embedded-resource"):
        why = "must not be used inside of resource meta"
        errors.append(forbidden_field(f"{path}.x-kubernetes-embedded-resource", why))


def _below(schema: Object, path: str, place: _Place) -> Iterator[tuple[Object, str, _Place]]:
    """The schemas right below one, in upstream's order: themselves, their paths and places."""
    inner = place._replace(root=False)
    others, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(others, dict):
        in_metadata = "inside additionalProperties applying to object metadata" if place.in_metadata else ""
        yield others, f"{path}.additionalProperties", inner._replace(no_defaults=in_metadata or place.no_defaults)
    is_resource = place.root or bool(schema.get("x-kubernetes-embedded-resource"))
    for name, property_ in sorted((schema.get("properties") or {}).items()):
        where = inner
        if is_resource and name in META_FIELDS:
            top = f"in top-level {name}" if place.root else ""
            where = inner._replace(in_metadata=True, no_defaults=top or place.no_defaults)
        yield property_, f"{path}.properties[{name}]", where
    if schema.get("not") is not None:
        yield schema["not"], f"{path}.not", inner
    for field in _LISTS_OF_SCHEMAS:
        for index, one in enumerate(schema.get(field) or ()):
            yield one, f"{path}.{field}[{index}]", inner
    if isinstance(items, dict):
        yield items, f"{path}.items", inner


# --- the types of lists and maps ----------------------------------------------------------------------------------


def _validate_type_is(wanted: str, schema: Object, path: str, because: str, errors: Errors) -> None:
    kind, why = schema.get("type"), f"must be {wanted} if {because} is specified"
    if not kind:
        errors.append(required(f"{path}.type", why))
    elif kind != wanted:
        errors.append(invalid_value(f"{path}.type", kind, why))


def _validate_map_type(schema: Object, path: str, errors: Errors) -> None:
    _validate_type_is("object", schema, path, MAP_TYPE, errors)
    if schema[MAP_TYPE] not in ("atomic", "granular"):
        errors.append(not_supported(f"{path}.{MAP_TYPE}", schema[MAP_TYPE], ("atomic", "granular")))


def _validate_list_type(schema: Object, path: str, errors: Errors) -> None:
    list_type, keys, items = schema.get(LIST_TYPE), schema.get(MAP_KEYS) or [], schema.get("items")
    if list_type is not None and schema.get("type") != "array":
        _validate_type_is("array", schema, path, LIST_TYPE, errors)
    elif list_type == "set" and isinstance(items, dict):
        _validate_set_items(items, path, errors)
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        errors.append(not_supported(f"{path}.{LIST_TYPE}", list_type, ("atomic", "set", "map")))
    if keys and list_type != "map":
        why = f"must be map if {MAP_KEYS} is non-empty"
        at = f"{path}.{LIST_TYPE}"
        errors.append(required(at, why) if list_type is None else invalid_value(at, list_type, why))
    if list_type == "map":
        _validate_map_list(keys, items, path, errors)
    if list_type in ("set", "map") and isinstance(items, dict):
        _validate_items_there(list_type, keys, items, path, errors)


def _validate_set_items(items: Object, path: str, errors: Errors) -> None:
    """The items of a set are compared whole."""
    why = f"must be atomic as item of a list with {LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(LIST_TYPE, "atomic") != "atomic":
        errors.append(invalid_value(f"{path}.items.{LIST_TYPE}", items[LIST_TYPE], why))
    elif items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        errors.append(invalid_value(f"{path}.items.{MAP_TYPE}", items.get(LIST_TYPE), why))


def _validate_map_list(keys: list[str], items: Any, path: str, errors: Errors) -> None:
    if not keys:
        errors.append(required(f"{path}.{MAP_KEYS}", f"must not be empty if {LIST_TYPE} is map"))
    if items is None:
        errors.append(required(f"{path}.items", f"must have a schema if {LIST_TYPE} is map"))
    elif not isinstance(items, dict):
        shown = json_view(f"[]{SCHEMA_TYPE}", items)
        errors.append(invalid_value(f"{path}.items", shown, f"must only have a single schema if {LIST_TYPE} is map"))
    elif items.get("type") != "object":
        why = f"must be object if parent array's {LIST_TYPE} is map"
        errors.append(invalid_value(f"{path}.items.type", items.get("type", ""), why))
    else:
        _validate_map_keys(keys, items.get("properties") or {}, path, errors)


def _validate_map_keys(keys: list[str], properties: Object, path: str, errors: Errors) -> None:
    at = f"{path}.{MAP_KEYS}"
    for index, key in enumerate(keys):
        if key not in properties:
            errors.append(invalid_value(at, keys, "entries must all be names of item properties"))
        elif properties[key].get("type") in ("array", "object"):
            why = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            errors.append(invalid_value(f"{path}.items.properties[{key}].type", "object", why))
        if key in keys[:index]:
            errors.append(invalid_value(at, keys, "must not contain duplicate entries"))


def _validate_items_there(list_type: str, keys: list[str], items: Object, path: str, errors: Errors) -> None:
    """Items and keys of sets and maps cannot be null; keys are always there."""
    if items.get("nullable"):
        errors.append(forbidden_field(f"{path}.items.nullable", f"cannot be nullable when {LIST_TYPE} is {list_type}"))
    for key in keys if list_type == "map" else ():
        property_ = (items.get("properties") or {}).get(key)
        if property_ is None:
            continue
        at = f"{path}.items.properties[{key}]"
        if key not in (items.get("required") or ()) and "default" not in property_:
            why = f"this property is in {MAP_KEYS}, so it must have a default or be a required property"
            errors.append(required(f"{at}.default", why))
        if property_.get("nullable"):
            why = f"this property is in {MAP_KEYS}, so it cannot be nullable"
            errors.append(forbidden_field(f"{at}.nullable", why))


# --- rules --------------------------------------------------------------------------------------------------------


def _has_newlines(text: str) -> bool:
    return "\n" in text or "\r" in text


def _validate_rule(rule: Object, schema: Object, path: str, errors: Errors) -> None:
    """What can be said of a CEL rule without reading its expression."""
    expression, message = rule.get("rule", "").strip(), rule.get("message", "")
    if not expression:
        errors.append(required(f"{path}.rule", "rule is not specified"))
    elif message and not message.strip():
        errors.append(invalid_value(f"{path}.message", message, "must be non-empty if specified"))
    elif _has_newlines(message.strip()):
        errors.append(invalid_value(f"{path}.message", message, "must not contain line breaks"))
    elif _has_newlines(expression) and not message:
        errors.append(required(f"{path}.message", "message must be specified if rule contains line breaks"))
    if rule.get("messageExpression") and not rule["messageExpression"].strip():
        why = "messageExpression must be non-empty if specified"
        errors.append(required(f"{path}.messageExpression", why))
    if rule.get("reason") is not None and rule["reason"] not in REASONS:
        errors.append(not_supported(f"{path}.reason", rule["reason"], REASONS))
    if field := rule.get("fieldPath"):
        errors.extend(invalid_value(f"{path}.fieldPath", field, why) for why in _wrong_with_field(field, schema))


def _wrong_with_field(field: str, schema: Object) -> Iterator[str]:
    if not field.strip():
        yield "must be non-empty if specified"
    if _has_newlines(field):
        yield "must not contain line breaks"
    try:
        if not unsupported_field(schema):
            find_field(schema, field)
    except ValueError:
        yield "must be a valid path"


# --- formats ------------------------------------------------------------------------------------------------------

_FORMATS = {
    "string": frozenset((
        "bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5",
        "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date",
        "duration", "datetime", "k8sshortname", "k8slongname")),
    "integer": frozenset(("int32", "int64")),
    "number": frozenset(("float", "double")),
}


def unrecognized_formats(definition: Object) -> list[str]:
    """The formats in the schemas of a definition that mean nothing; upstream warns of each."""
    return [name for version in definition["spec"].get("versions") or ()
            for name in _unrecognized((version.get("schema") or {}).get("openAPIV3Schema") or {})]


def _unrecognized(schema: Object) -> Iterator[str]:
    name, kind = schema.get("format"), schema.get("type") or "string"
    if name and (name.replace("-", "") if kind == "string" else name) not in _FORMATS.get(kind, ()):
        yield name
    for below, _, _ in _below(schema, "", _Place()):
        yield from _unrecognized(below)
