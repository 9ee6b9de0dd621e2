"""The schemas of CustomResourceDefinitions: OpenAPI, structure and defaults.

Upstream: ``apiextensions-apiserver/pkg/apis/apiextensions/validation``,
``pkg/apiserver/schema/validation.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kubepy.api.errors import FieldError, forbidden_field, invalid_value, not_supported, required
from kubepy.api.meta import Object, clone, nested_list, nested_map
from kubepy.api.schema.structural import EMBEDDED, INT_OR_STRING, PRESERVE, find_field, prune
from kubepy.api.schema.validating import rerooted, validate
from kubepy.api.values.goregex import GoRegexError, compile_go
from kubepy.apiserver.customresources.validation import validate_embedded
from kubepy.apiserver.validation.fields import Errors, json_view
from kubepy.lazy import lazy_imports

with lazy_imports():  # few schemas have rules
    from kubepy.api.cel import rules as cel_rules
    from kubepy.apiserver.kinds.apiextensions.validation import rules

SCHEMA_TYPE = "apiextensions/v1.JSONSchemaProps"
TYPES = ("array", "boolean", "integer", "number", "object", "string")
REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
LIST_TYPE = "x-kubernetes-list-type"
MAP_TYPE = "x-kubernetes-map-type"
MAP_KEYS = "x-kubernetes-list-map-keys"
RULES = "x-kubernetes-validations"
META_FIELDS = ("metadata", "kind", "apiVersion")
# With a status subresource only these may be at the root, in Go's names.
ALLOWED_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength "
    "MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
    "XPreserveUnknownFields "
    "XValidations"
)
_JSON_ALLOWED_AT_ROOT = {name[:1].lower() + name[1:] for name in ALLOWED_AT_ROOT.split()} | {
    PRESERVE,
    RULES,
}
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_LISTS_OF_SCHEMAS = ("allOf", "oneOf", "anyOf")


class _Place(NamedTuple):
    """The place of a schema: the reason why it may have no default ("": it may), and whether it is
    in metadata."""

    root: bool = False
    no_defaults: str = ""
    in_metadata: bool = False


def validate_schema(
    schema: Object, path: str, errors: Errors, *, with_status: bool, is_new: bool = True
) -> None:
    """Validate the schema of a version. ``is_new``: it differs from the old one, so the cost of
    each rule counts."""
    schema_errors: Errors = []
    if with_status:
        first = [key for key in ("id", "$schema", "$ref") if schema.get(key)]
        kind = schema.get("type")
        if not first and kind and kind != "object":
            detail = (
                'only "object" is allowed as the type at the root of the schema if the status '
                "subresource is "
                "enabled"
            )
            schema_errors.append(invalid_value(f"{path}.type", kind, detail))
        elif any(
            value not in (None, "")
            for key, value in schema.items()
            if key not in _JSON_ALLOWED_AT_ROOT
        ):
            detail = (
                f"only [{ALLOWED_AT_ROOT}] fields are allowed at the root of the schema if the "
                f"status "
                "subresource is enabled"
            )
            schema_errors.append(invalid_value(path, json_view(SCHEMA_TYPE, schema), detail))

    if schema.get("nullable"):
        schema_errors.append(
            forbidden_field(f"{path}.nullable", "nullable cannot be true at the root")
        )

    unsupported = unsupported_field(schema)
    if not unsupported:
        schema_errors.extend(validate_structure(schema, path) or validate_defaults(schema, path))
    _validate(schema, path, _Place(root=True), schema_errors)
    if unsupported and not schema_errors:
        schema_errors.append(invalid_value(path, "", unsupported))
    if not schema_errors and RULES in str(schema):
        schema_errors.extend(rules.validate_rules(schema, path, limits_each=is_new))
    errors.extend(schema_errors)


# --- a schema and its subschemas ------------------------------------------------------------------


def _validate(schema: Object, path: str, place: _Place, errors: Errors) -> None:
    kind = schema.get("type")
    items = schema.get("items")
    if kind and kind not in TYPES:
        errors.append(not_supported(f"{path}.type", kind, TYPES))
    if "default" in schema and place.no_defaults:
        errors.append(forbidden_field(f"{path}.default", f"must not be set {place.no_defaults}"))
    errors.extend(
        forbidden_field(f"{path}.{field}", f"{field} is not supported")
        for field in _UNSUPPORTED
        if schema.get(field)
    )
    if kind == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        errors.append(forbidden_field(f"{path}.type", detail))

    if isinstance(items, list) and items:
        errors.append(
            forbidden_field(f"{path}.items", "items must be a schema object and not an array")
        )

    if place.in_metadata and schema.get("x-kubernetes-embedded-resource"):
        detail = "must not be used inside of resource meta"
        errors.append(forbidden_field(f"{path}.x-kubernetes-embedded-resource", detail))
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(forbidden_field(f"{path}.uniqueItems", detail))
    others = schema.get("additionalProperties")
    if others is not None and schema.get("properties") and others is not True:
        detail = "additionalProperties and properties are mutual exclusive"
        errors.append(forbidden_field(f"{path}.additionalProperties", detail))
    for below, at, where in _below(schema, path, place):
        _validate(below, at, where, errors)
    if schema.get(PRESERVE) is False:
        errors.append(invalid_value(f"{path}.{PRESERVE}", False, "must be true or undefined"))

    if schema.get(MAP_TYPE) is not None:
        _validate_type_is("object", schema, path, MAP_TYPE, errors)
        if schema[MAP_TYPE] not in ("atomic", "granular"):
            errors.append(
                not_supported(f"{path}.{MAP_TYPE}", schema[MAP_TYPE], ("atomic", "granular"))
            )

    if schema.get(LIST_TYPE) is not None or schema.get(MAP_KEYS):
        _validate_list_type(schema, path, errors)
    for index, rule in enumerate(nested_list(schema, RULES)):
        _validate_rule(rule, schema, f"{path}.{RULES}[{index}]", errors)


def _below(schema: Object, path: str, place: _Place) -> Iterator[tuple[Object, str, _Place]]:
    """Yield the subschemas of a schema with their paths and places, in upstream's order."""
    inner = place._replace(root=False)
    others = schema.get("additionalProperties")
    items = schema.get("items")

    if isinstance(others, dict):
        in_metadata = (
            "inside additionalProperties applying to object metadata" if place.in_metadata else ""
        )
        yield (
            others,
            f"{path}.additionalProperties",
            inner._replace(no_defaults=in_metadata or place.no_defaults),
        )

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
        for index, subschema in enumerate(nested_list(schema, field)):
            yield subschema, f"{path}.{field}[{index}]", inner
    if isinstance(items, dict):
        yield items, f"{path}.items", inner


# --- the types of lists and maps ------------------------------------------------------------------


def _validate_type_is(
    expected: str, schema: Object, path: str, because: str, errors: Errors
) -> None:
    """Require a type; ``because`` is the field that needs it."""
    kind = schema.get("type")
    detail = f"must be {expected} if {because} is specified"
    if not kind:
        errors.append(required(f"{path}.type", detail))
    elif kind != expected:
        errors.append(invalid_value(f"{path}.type", kind, detail))


def _validate_list_type(schema: Object, path: str, errors: Errors) -> None:
    list_type = schema.get(LIST_TYPE)
    keys = nested_list(schema, MAP_KEYS)
    items = schema.get("items")
    at = f"{path}.{LIST_TYPE}"

    if list_type is not None and schema.get("type") != "array":
        _validate_type_is("array", schema, path, LIST_TYPE, errors)
    elif list_type == "set" and isinstance(items, dict):
        _validate_set_items(items, f"{path}.items", errors)

    if list_type is not None and list_type not in ("atomic", "set", "map"):
        errors.append(not_supported(at, list_type, ("atomic", "set", "map")))

    if keys and list_type != "map":
        detail = f"must be map if {MAP_KEYS} is non-empty"
        if list_type is None:
            errors.append(required(at, detail))
        else:
            errors.append(invalid_value(at, list_type, detail))

    if list_type == "map":
        _validate_map_list(keys, items, path, errors)

    if list_type in ("set", "map") and isinstance(items, dict):
        if items.get("nullable"):
            detail = f"cannot be nullable when {LIST_TYPE} is {list_type}"
            errors.append(forbidden_field(f"{path}.items.nullable", detail))
        _validate_map_keys(keys if list_type == "map" else [], items, f"{path}.items", errors)


def _validate_set_items(items: Object, path: str, errors: Errors) -> None:
    """Require that the items of a set are compared as a whole."""
    detail = f"must be atomic as item of a list with {LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(LIST_TYPE, "atomic") != "atomic":
        errors.append(invalid_value(f"{path}.{LIST_TYPE}", items[LIST_TYPE], detail))
    elif items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        errors.append(invalid_value(f"{path}.{MAP_TYPE}", items.get(LIST_TYPE), detail))


def _validate_map_keys(keys: list[str], items: Object, path: str, errors: Errors) -> None:
    """Require that the keys of the items are always set, and never null."""
    for key in keys:
        property_ = (items.get("properties") or {}).get(key)
        if property_ is None:
            continue
        at = f"{path}.properties[{key}]"
        if key not in nested_list(items, "required") and "default" not in property_:
            detail = (
                f"this property is in {MAP_KEYS}, so it must have a default or be a required "
                f"property"
            )
            errors.append(required(f"{at}.default", detail))
        if property_.get("nullable"):
            detail = f"this property is in {MAP_KEYS}, so it cannot be nullable"
            errors.append(forbidden_field(f"{at}.nullable", detail))


def _validate_map_list(keys: list[str], items: Any, path: str, errors: Errors) -> None:
    if not keys:
        errors.append(required(f"{path}.{MAP_KEYS}", f"must not be empty if {LIST_TYPE} is map"))

    if items is None:
        errors.append(required(f"{path}.items", f"must have a schema if {LIST_TYPE} is map"))
    elif not isinstance(items, dict):
        shown = json_view(f"[]{SCHEMA_TYPE}", items)
        errors.append(
            invalid_value(
                f"{path}.items", shown, f"must only have a single schema if {LIST_TYPE} is map"
            )
        )
    elif items.get("type") != "object":
        detail = f"must be object if parent array's {LIST_TYPE} is map"
        errors.append(invalid_value(f"{path}.items.type", items.get("type", ""), detail))
    else:
        properties = items.get("properties") or {}
        at = f"{path}.{MAP_KEYS}"
        for index, key in enumerate(keys):
            if key not in properties:
                errors.append(
                    invalid_value(at, keys, "entries must all be names of item properties")
                )
            elif properties[key].get("type") in ("array", "object"):
                detail = f"must be a scalar type if parent array's {LIST_TYPE} is map"
                errors.append(
                    invalid_value(f"{path}.items.properties[{key}].type", "object", detail)
                )
            if key in keys[:index]:
                errors.append(invalid_value(at, keys, "must not contain duplicate entries"))


# --- rules ----------------------------------------------------------------------------------------


def _has_newlines(text: str) -> bool:
    return "\n" in text or "\r" in text


def _validate_rule(rule: Object, schema: Object, path: str, errors: Errors) -> None:
    """Validate the fields of a CEL rule; its expression is compiled in :mod:`definition_rules`."""
    expression = rule.get("rule", "").strip()
    message = rule.get("message", "")
    if not expression:
        errors.append(required(f"{path}.rule", "rule is not specified"))
    elif message and not message.strip():
        errors.append(invalid_value(f"{path}.message", message, "must be non-empty if specified"))
    elif _has_newlines(message.strip()):
        errors.append(invalid_value(f"{path}.message", message, "must not contain line breaks"))
    elif _has_newlines(expression) and not message:
        errors.append(
            required(f"{path}.message", "message must be specified if rule contains line breaks")
        )

    if rule.get("messageExpression") and not rule["messageExpression"].strip():
        detail = "messageExpression must be non-empty if specified"
        errors.append(required(f"{path}.messageExpression", detail))
    if rule.get("reason") is not None and rule["reason"] not in REASONS:
        errors.append(not_supported(f"{path}.reason", rule["reason"], REASONS))

    if field := rule.get("fieldPath"):
        at = f"{path}.fieldPath"
        if not field.strip():
            errors.append(invalid_value(at, field, "must be non-empty if specified"))
        if _has_newlines(field):
            errors.append(invalid_value(at, field, "must not contain line breaks"))
        try:
            if not unsupported_field(schema):
                find_field(schema, field)
        except ValueError:
            errors.append(invalid_value(at, field, "must be a valid path"))


# --- formats --------------------------------------------------------------------------------------

_FORMATS = {
    "string": frozenset(
        (
            "bsonobjectid",
            "uri",
            "email",
            "hostname",
            "ipv4",
            "ipv6",
            "cidr",
            "mac",
            "uuid",
            "uuid3",
            "uuid4",
            "uuid5",
            "isbn",
            "isbn10",
            "isbn13",
            "creditcard",
            "ssn",
            "hexcolor",
            "rgbcolor",
            "byte",
            "password",
            "date",
            "duration",
            "datetime",
            "k8sshortname",
            "k8slongname",
        )
    ),
    "integer": frozenset(("int32", "int64")),
    "number": frozenset(("float", "double")),
}


def unrecognized_formats(definition: Object) -> list[str]:
    """Return the formats in the schemas of a definition that are unknown; upstream warns of
    each."""
    formats: list[str] = []
    for version in nested_list(definition["spec"], "versions"):
        formats += _unrecognized(nested_map(version, "schema", "openAPIV3Schema"))
    return formats


def _unrecognized(schema: Object) -> Iterator[str]:
    name = schema.get("format")
    kind = schema.get("type") or "string"
    if name and (name.replace("-", "") if kind == "string" else name) not in _FORMATS.get(kind, ()):
        yield name
    for below, _, _ in _below(schema, "", _Place()):
        yield from _unrecognized(below)


# --- structure (apiextensions-apiserver/pkg/apiserver/schema/{validation,complete}.go) ------------


_JUNCTORS = ("anyOf", "allOf", "oneOf")
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
# Fields that are forbidden below a junctor, with upstream's errors.
_FORBIDDEN_BELOW = {
    "type": "must be empty",
    "additionalProperties": "must be undefined",
    "default": "must be undefined",
    "title": "must be empty",
    "description": "must be empty",
    "nullable": "must be false",
    PRESERVE: "must be false",
    EMBEDDED: "must be false",
    INT_OR_STRING: "must be false",
    "x-kubernetes-list-map-keys": "must be empty",
    "x-kubernetes-list-type": "must be undefined",
    "x-kubernetes-map-type": "must be undefined",
    "x-kubernetes-validations": "must be empty",
}
_TYPE_REQUIRED = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


def unsupported_field(schema: Any) -> str:
    """Return why a schema cannot be parsed as a structural one, "" if it can
    (``NewStructural``)."""
    if isinstance(schema, list):
        if schema:
            return "OpenAPIV3Schema 'items' must be a schema, but is an array"
        return ""

    if not isinstance(schema, dict):
        return ""

    for key, shown in (
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties",) * 2,
        ("dependencies",) * 2,
        ("additionalItems",) * 2,
        ("definitions",) * 2,
    ):
        if schema.get(key):
            return f"OpenAPIV3Schema '{shown}' is not supported"

    if schema.get(PRESERVE) is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    below = [
        schema.get("not"),
        schema.get("items"),
        schema.get("additionalProperties"),
        *(schema.get("properties") or {}).values(),
    ]
    for junctor in _JUNCTORS:
        below += nested_list(schema, junctor)
    return next((reason for subschema in below if (reason := unsupported_field(subschema))), "")


def validate_structure(schema: Object, path: str) -> list[FieldError]:
    """Return the errors of a schema that is not structural, sorted by their texts
    (``ValidateStructural``)."""
    return sorted(
        [*_invariants(schema, "root", path), *_completeness(schema, schema, path, path)], key=str
    )


# --- invariants -----------------------------------------------------------------------------------


def _invariants(schema: Object, level: str, path: str) -> Iterator[FieldError]:
    items = schema.get("items")
    others = schema.get("additionalProperties")
    kind = schema.get("type", "")
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

    for field in (PRESERVE, EMBEDDED):
        if schema.get(INT_OR_STRING) and schema.get(field):
            yield invalid_value(
                f"{path}.{field}", True, f"must be false if {INT_OR_STRING} is true"
            )

    if schema.get(EMBEDDED) and schema.get("additionalProperties") is not None:
        yield forbidden_field(
            f"{path}.additionalProperties", f"must not be used if {EMBEDDED} is set"
        )

    yield from _value_validation(schema, path)
    yield from _type_invariants(schema, level, f"{path}.type")

    if level == "root" or schema.get(EMBEDDED):
        for name in ("kind", "apiVersion"):
            type_of_property = properties.get(name, {}).get("type", "")
            if name in properties and type_of_property != "string":
                at = f"{path}.properties[{name}].type"
                yield invalid_value(at, type_of_property, "must be string")

    if "metadata" in properties:
        yield from _metadata(
            properties["metadata"],
            level,
            bool(schema.get(EMBEDDED)),
            f"{path}.properties[metadata]",
        )

    if schema.get(EMBEDDED) and not schema.get(PRESERVE) and not properties:
        detail = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        yield required(f"{path}.properties", detail)


def _type_invariants(schema: Object, level: str, path: str) -> Iterator[FieldError]:
    """Require a type, which at the root and in embedded resources is ``object``."""
    kind = schema.get("type", "")
    if schema.get(EMBEDDED) and kind != "object":
        detail = f"must be object if {EMBEDDED} is true"
        if kind:
            yield invalid_value(path, kind, detail)
        else:
            yield required(path, detail)
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        yield required(path, _TYPE_REQUIRED[level])
    if level == "root" and kind and kind != "object":
        yield invalid_value(path, kind, "must be object at the root")


def _metadata(metadata: Object, level: str, embedded: bool, path: str) -> Iterator[FieldError]:
    """Validate the schema of metadata, which at the root may only restrict the names."""
    if (level == "root" or embedded) and metadata.get("type", "") != "object":
        yield invalid_value(f"{path}.type", metadata.get("type", ""), "must be object")
    if level != "root":
        return
    rest = {
        key: value
        for key, value in metadata.items()
        if key not in ("type", "default") and value not in ("", None)
    }
    if rest.get("properties", {}).keys() <= {"name", "generateName"}:
        rest.pop("properties", None)
    if rest:
        yield forbidden_field(
            path,
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified",
        )


def _value_validation(schema: Object, path: str) -> Iterator[FieldError]:
    """Validate the junctors and the pattern of a schema. An int-or-string may have ``anyOf``
    integer and string."""
    for index, subschema in enumerate(nested_list(schema, "anyOf")):
        if schema["anyOf"] != _INT_OR_STRING:
            yield from _narrowing(subschema, f"{path}.anyOf[{index}]")

    for index, subschema in enumerate(nested_list(schema, "allOf")):
        if index == 0 and subschema.get("anyOf") == _INT_OR_STRING:
            subschema = {key: value for key, value in subschema.items() if key != "anyOf"}
        yield from _narrowing(subschema, f"{path}.allOf[{index}]")

    for index, subschema in enumerate(nested_list(schema, "oneOf")):
        yield from _narrowing(subschema, f"{path}.oneOf[{index}]")
    if schema.get("not") is not None:
        yield from _narrowing(schema["not"], f"{path}.not")

    if pattern := schema.get("pattern"):
        try:
            compile_go(pattern)
        except GoRegexError as error:
            yield invalid_value(
                f"{path}.pattern",
                pattern,
                f"must be a valid regular expression, but isn't: {error}",
            )


def _narrowing(schema: Object, path: str) -> Iterator[FieldError]:
    """Validate a schema below a junctor (``validateNestedValueValidation``)."""
    for index, subschema in enumerate(nested_list(schema, "anyOf")):
        yield from _narrowing(subschema, f"{path}.anyOf[{index}]")
    yield from _value_validation(
        {key: value for key, value in schema.items() if key != "anyOf"}, path
    )
    if schema.get("items") is not None:
        yield from _narrowing(schema["items"], f"{path}.items")
    for name, property_ in (schema.get("properties") or {}).items():
        yield from _narrowing(property_, f"{path}.properties[{name}]")

    for field, detail in _FORBIDDEN_BELOW.items():
        value = schema.get(field)
        is_empty_but_set = (field == "default" and value is not None) or (
            field == "additionalProperties" and value == {}
        )
        if value or is_empty_but_set:
            yield forbidden_field(f"{path}.{field}", f"{detail} to be structural")

    if "metadata" in (schema.get("properties") or {}):
        yield forbidden_field(
            f"{path}.properties[metadata]", "must not be specified in a nested context"
        )


# --- completeness ---------------------------------------------------------------------------------


def _completeness(narrowing: Object, schema: Object, path: str, at: str) -> Iterator[FieldError]:
    """Require that fields in junctors are defined outside of them too.

    :param path: the path of the schema.
    :param at: the path of the narrowing, which is the schema itself or a part of its junctors.
    """
    if narrowing.get("not") is not None:
        yield from _nested_completeness(narrowing["not"], schema, path, f"{at}.not")
    for junctor in ("allOf", "anyOf", "oneOf"):
        for index, subschema in enumerate(nested_list(narrowing, junctor)):
            yield from _nested_completeness(subschema, schema, path, f"{at}.{junctor}[{index}]")


def _nested_completeness(
    narrowing: Object, schema: Object | None, path: str, at: str
) -> Iterator[FieldError]:
    if schema is None:
        yield required(path, f"because it is defined in {at}")
        return
    yield from _completeness(narrowing, schema, path, at)
    if narrowing.get("items") is not None:
        yield from _nested_completeness(
            narrowing["items"], schema.get("items"), f"{path}.items", f"{at}.items"
        )
    properties = schema.get("properties") or {}
    for name, property_ in (narrowing.get("properties") or {}).items():
        below = f"{path}.properties[{name}]"
        where = f"{at}.properties[{name}]"
        yield from _nested_completeness(property_, properties.get(name), below, where)


# --- defaults (apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go) -------------


_OBJECT: Object = {"apiVersion": "validation/v1", "kind": "Validation"}
_STANDARD = ("apiVersion", "kind", "metadata")


class _Context(NamedTuple):
    """The object around a value: ``build`` makes it from the value; ``in_meta``: the value is in
    its metadata."""

    build: Callable[[Any], Any]
    in_meta: bool = False

    def at(self, name: str, *, standard: bool) -> _Context:
        return _Context(lambda value: self.build({name: value}), self.in_meta or standard)

    def item(self) -> _Context:
        return _Context(lambda value: self.build([value]), self.in_meta)


_ROOT = _Context(lambda value: value)


def validate_defaults(schema: Object, path: str) -> list[FieldError]:
    """Require defaults without unknown fields, valid by their schema and its rules, that make valid
    metadata."""
    return list(_walk({**schema, EMBEDDED: True}, path, _ROOT))


def _walk(schema: Object, path: str, context: _Context) -> Iterator[FieldError]:
    embedded = bool(schema.get(EMBEDDED))

    here = _ROOT if embedded else context
    default = schema.get("default")
    if default is not None:
        default_path = f"{path}.default"
        if not here.in_meta:
            pruned = clone(default)
            prune(schema, pruned, is_resource=bool(schema.get(EMBEDDED)))
            if pruned != default:
                yield invalid_value(default_path, default, "must not have unknown fields")
        errors = list(_validate_metadata(schema, default, default_path, here))
        if not errors:
            errors = [rerooted(default_path, error) for error in validate(schema, default)]
        if not errors and RULES in str(schema):
            rules = cel_rules.RuleSet(schema)
            errors = [rerooted(default_path, error) for error in rules.validate(default)]
        yield from errors

    if schema.get("items") is not None:
        yield from _walk(schema["items"], f"{path}.items", here.item())
    for name, property_ in (schema.get("properties") or {}).items():
        below = here.at(name, standard=embedded and name in _STANDARD)
        yield from _walk(property_, f"{path}.properties[{name}]", below)


def _validate_metadata(
    schema: Object, default: Any, path: str, context: _Context
) -> Iterator[FieldError]:
    """Validate the metadata that a default makes, or objects embedded in it."""
    if not context.in_meta:
        yield from validate_embedded(schema, default, path)
    elif metadata_errors := validate_embedded(
        {EMBEDDED: True}, {**_OBJECT, **context.build(default)}
    ):
        detail = "; ".join(str(error).removeprefix(".") for error in metadata_errors)
        yield invalid_value(path, default, f"must result in valid metadata: {detail}")
