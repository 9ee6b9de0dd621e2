"""OpenAPI documents in gnostic's protobuf, which kubectl and client-go ask for beside JSON.

The numbers of fields are those of ``gnostic-models/openapiv2/OpenAPIv2.proto`` and
``openapiv3/OpenAPIv3.proto``. Values of any form (vendor extensions, enumerations) are YAML there;
JSON is YAML.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubepy.api.protobuf import varint

Field = Callable[[int, Any], bytes]  # encodes a value as the field of a number
Message = dict[str, tuple[int, Field]]  # fields by their names in JSON


# --- values ---------------------------------------------------------------------------------------


def delimited(number: int, data: bytes) -> bytes:
    """Return a field of bytes: a string, or a message."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def string(number: int, value: Any) -> bytes:
    return delimited(number, str(value).encode())


def _integer(number: int, value: Any) -> bytes:
    """Return a number, or True; zero and False are left out."""
    return varint(number << 3) + varint(int(value)) if value else b""


def _double(number: int, value: Any) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value) if value else b""


def _any(number: int, value: Any) -> bytes:
    return delimited(number, string(2, json.dumps(value, ensure_ascii=False) + "\n"))


def _default(number: int, value: Any) -> bytes:
    """Return a DefaultType of v3, which is empty for what is no scalar."""
    if isinstance(value, bool):
        return delimited(number, _integer(2, value))
    if isinstance(value, str):
        return delimited(number, string(3, value))
    return delimited(
        number, b"\x09" + struct.pack("<d", value) if isinstance(value, (int, float)) else b""
    )


def _repeated(field: Field) -> Field:
    return lambda number, values: b"".join(field(number, value) for value in values)


def _in(inner: int, field: Field) -> Field:
    """Return the field of a message that holds a value in the field ``inner``: one of several
    kinds, a list."""
    return lambda number, value: delimited(number, field(inner, value))


def _map(field: Field) -> Field:
    """Return a repeated field of messages with ``name`` and ``value``."""
    return lambda number, values: b"".join(
        named(number, name, field(2, value)) for name, value in values.items()
    )


def named(number: int, name: str, value: bytes) -> bytes:
    """Return an entry of a map, whose encoded value is its field 2."""
    return delimited(number, string(1, name) + value)


def _choice(choose: Callable[[Any], tuple[int, Field]]) -> Field:
    """Return the field of a message that holds a value in one of several fields."""

    def encode_choice(number: int, value: Any) -> bytes:
        inner, field = choose(value)
        return delimited(number, field(inner, value))

    return encode_choice


def _message(messages: Mapping[str, tuple[int, Message]], name: str) -> Field:
    return lambda number, value: delimited(number, encode_message(messages, name, value))


def encode_message(
    messages: Mapping[str, tuple[int, Message]], name: str, value: Mapping[str, Any]
) -> bytes:
    """Return a message without its length; ``messages`` has the number of extensions and the fields
    of each."""
    extensions, fields = messages[name]
    parts = []
    for key, inner in value.items():
        if key in fields:
            number, field = fields[key]
            parts.append(field(number, inner))
        elif extensions and key.startswith("x-"):
            parts.append(named(extensions, key, _any(2, inner)))
    return b"".join(parts)


def _numbered(names: str, field: Field, first: int = 1) -> Message:
    return {name: (number, field) for number, name in enumerate(names.split(), first)}


_METHODS = "get put post delete options head patch"
_strings = _repeated(string)

# --- OpenAPI v2 -----------------------------------------------------------------------------------

V2: dict[str, tuple[int, Message]] = {}
_schema_v2 = _message(V2, "Schema")
_reference_v2 = _message(V2, "JsonReference")
_PLACES = {"header": 1, "formData": 2, "query": 3, "path": 4}


def _choose_parameter(value: Any) -> tuple[int, Field]:
    if value["in"] == "body":
        return 1, _message(V2, "BodyParameter")
    place = _PLACES[value["in"]]
    kind = "QueryParameter" if value["in"] == "query" else "PathParameter"
    return 2, _in(place, _message(V2, kind))


_parameter_v2 = _choice(_choose_parameter)
_parameters_v2 = _repeated(
    _choice(lambda value: (2, _reference_v2) if "$ref" in value else (1, _parameter_v2))
)
_VALUES_V2 = (
    "type format items collectionFormat default maximum exclusiveMaximum minimum exclusiveMinimum"
)
V2 |= {
    "Info": (7, _numbered("title version description", string)),
    "JsonReference": (0, {"$ref": (1, string), "description": (2, string)}),
    "PathItem": (
        10,
        {**_numbered(_METHODS, _message(V2, "Operation"), 2), "parameters": (9, _parameters_v2)},
    ),
    "Operation": (
        13,
        {
            "tags": (1, _strings),
            "summary": (2, string),
            "description": (3, string),
            "operationId": (5, string),
            "produces": (6, _strings),
            "consumes": (7, _strings),
            "parameters": (8, _parameters_v2),
            "responses": (9, _in(1, _map(_in(1, _message(V2, "Response"))))),
            "schemes": (10, _strings),
            "deprecated": (11, _integer),
        },
    ),
    "Response": (5, {"description": (1, string), "schema": (2, _in(1, _schema_v2))}),
    "BodyParameter": (
        6,
        {
            "description": (1, string),
            "name": (2, string),
            "in": (3, string),
            "required": (4, _integer),
            "schema": (5, _schema_v2),
        },
    ),
    "QueryParameter": (
        23,
        {
            "required": (1, _integer),
            **_numbered("in description name", string, 2),
            **_numbered("type format", string, 6),
            "uniqueItems": (20, _integer),
        },
    ),
    "PathParameter": (
        22,
        {
            "required": (1, _integer),
            **_numbered("in description name type format", string, 2),
            "uniqueItems": (19, _integer),
        },
    ),
    "ApiKey": (5, _numbered("type name in description", string)),
    "Schema": (
        31,
        {
            **_numbered("$ref format title description", string),
            "default": (5, _any),
            "multipleOf": (6, _double),
            "maximum": (7, _double),
            "exclusiveMaximum": (8, _integer),
            "minimum": (9, _double),
            "exclusiveMinimum": (10, _integer),
            "maxLength": (11, _integer),
            "minLength": (12, _integer),
            "pattern": (13, string),
            "maxItems": (14, _integer),
            "minItems": (15, _integer),
            "uniqueItems": (16, _integer),
            "maxProperties": (17, _integer),
            "minProperties": (18, _integer),
            "required": (19, _strings),
            "enum": (20, _repeated(_any)),
            "additionalProperties": (
                21,
                _choice(
                    lambda value: (2, _integer) if isinstance(value, bool) else (1, _schema_v2)
                ),
            ),
            "type": (22, _in(1, string)),
            "items": (23, _in(1, _schema_v2)),
            "allOf": (24, _repeated(_schema_v2)),
            "properties": (25, _in(1, _map(_schema_v2))),
            "example": (30, _any),
        },
    ),
}


def encode_v2(
    info: Mapping[str, str],
    paths: Iterable[tuple[str, Any]],
    definitions: Iterable[tuple[str, Any]],
    parameters: Iterable[tuple[str, Any]],
    security: Mapping[str, Any],
) -> bytes:
    """Return an OpenAPI v2 document. Paths, then definitions, then parameters are asked for one at
    a time."""
    encoded_paths = b"".join(
        named(2, path, _message(V2, "PathItem")(2, item)) for path, item in paths
    )
    encoded_definitions = b"".join(
        named(1, name, _schema_v2(2, schema)) for name, schema in definitions
    )
    encoded_parameters = b"".join(
        named(1, name, _parameter_v2(2, parameter)) for name, parameter in parameters
    )
    schemes = b"".join(
        named(1, name, _in(2, _message(V2, "ApiKey"))(2, scheme))
        for name, scheme in security.items()
    )
    required = b"".join(named(1, name, delimited(2, b"")) for name in security)
    return b"".join(
        (
            string(1, "2.0"),
            _message(V2, "Info")(2, info),
            delimited(8, encoded_paths),
            delimited(9, encoded_definitions),
            delimited(10, encoded_parameters),
            delimited(12, required),
            delimited(13, schemes),
        )
    )


# --- OpenAPI v3 -----------------------------------------------------------------------------------

V3: dict[str, tuple[int, Message]] = {}
_reference_v3 = _message(V3, "Reference")


def _or_reference(name: str) -> Field:
    own = _message(V3, name)
    return _choice(lambda value: (2, _reference_v3) if "$ref" in value else (1, own))


_schema_v3 = _or_reference("Schema")
_content = _in(1, _map(_message(V3, "MediaType")))
_parameters_v3 = _repeated(_or_reference("Parameter"))
V3 |= {
    "Document": (
        9,
        {
            "openapi": (1, string),
            "info": (2, _message(V3, "Info")),
            "paths": (4, _in(1, _map(_message(V3, "PathItem")))),
            "components": (5, _message(V3, "Components")),
        },
    ),
    "Info": (7, {"title": (1, string), "description": (2, string), "version": (6, string)}),
    "Reference": (0, {"$ref": (1, string)}),
    "Components": (
        10,
        {
            "schemas": (1, _in(1, _map(_schema_v3))),
            "securitySchemes": (7, _in(1, _map(_or_reference("SecurityScheme")))),
        },
    ),
    "SecurityScheme": (9, _numbered("type description name in", string)),
    "PathItem": (
        14,
        {**_numbered(_METHODS, _message(V3, "Operation"), 4), "parameters": (13, _parameters_v3)},
    ),
    "Operation": (
        13,
        {
            "tags": (1, _strings),
            "summary": (2, string),
            "description": (3, string),
            "operationId": (5, string),
            "parameters": (6, _parameters_v3),
            "requestBody": (7, _or_reference("RequestBody")),
            "responses": (8, _in(2, _map(_or_reference("Response")))),
            "deprecated": (10, _integer),
        },
    ),
    "Parameter": (
        14,
        {
            **_numbered("name in description", string),
            "required": (4, _integer),
            "schema": (10, _schema_v3),
        },
    ),
    "RequestBody": (
        4,
        {"description": (1, string), "content": (2, _content), "required": (3, _integer)},
    ),
    "Response": (5, {"description": (1, string), "content": (3, _content)}),
    "MediaType": (5, {"schema": (1, _schema_v3)}),
    "Schema": (
        36,
        {
            "nullable": (1, _integer),
            "example": (7, _any),
            "title": (9, string),
            "multipleOf": (10, _double),
            "maximum": (11, _double),
            "exclusiveMaximum": (12, _integer),
            "minimum": (13, _double),
            "exclusiveMinimum": (14, _integer),
            "maxLength": (15, _integer),
            "minLength": (16, _integer),
            "pattern": (17, string),
            "maxItems": (18, _integer),
            "minItems": (19, _integer),
            "uniqueItems": (20, _integer),
            "maxProperties": (21, _integer),
            "minProperties": (22, _integer),
            "required": (23, _strings),
            "enum": (24, _repeated(_any)),
            "type": (25, string),
            **_numbered("allOf oneOf anyOf", _repeated(_schema_v3), 26),
            "not": (29, _message(V3, "Schema")),
            "items": (30, _in(1, _schema_v3)),
            "properties": (31, _in(1, _map(_schema_v3))),
            "additionalProperties": (
                32,
                _choice(
                    lambda value: (2, _integer) if isinstance(value, bool) else (1, _schema_v3)
                ),
            ),
            "default": (33, _default),
            "description": (34, string),
            "format": (35, string),
        },
    ),
}


def encode_v3(document: Mapping[str, Any]) -> bytes:
    """Return an OpenAPI v3 document in protobuf."""
    return encode_message(V3, "Document", document)
