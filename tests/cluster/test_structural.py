from __future__ import annotations

from typing import Any

import pytest

from kubepy.cluster.schema.structural import fill_in, prune, validate

SCHEMA: dict[str, Any] = {
    "type": "object", "required": ["spec"],
    "properties": {"spec": {
        "type": "object", "required": ["length"],
        "properties": {
            "length": {"type": "integer", "minimum": 1, "maximum": 100},
            "flag": {"type": "string", "pattern": "^[a-z]{2}$"},
            "afloat": {"type": "boolean", "default": True},
            "hull": {"type": "string", "enum": ["wood", "steel"]},
            "crew": {"type": "array", "minItems": 1, "maxItems": 2,
                     "items": {"type": "object", "properties": {"name": {"type": "string", "default": "nobody"}}}},
            "tags": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "port": {"x-kubernetes-int-or-string": True},
            "kind": {"anyOf": [{"type": "string"}, {"type": "integer"}], "not": {"enum": ["x"]}},
        },
    }},
}


def test_what_the_schema_does_not_know_is_dropped_and_told() -> None:
    obj = {"apiVersion": "v1", "kind": "Boat", "metadata": {"any": 1}, "extra": 1,
           "spec": {"sails": 2, "crew": [{"name": "a", "age": 5}], "tags": {"a": "b"}, "free": {"x": {"y": 1}}}}
    assert prune(SCHEMA, obj) == ["extra", "spec.crew[0].age", "spec.sails"]
    assert obj == {"apiVersion": "v1", "kind": "Boat", "metadata": {"any": 1},
                   "spec": {"crew": [{"name": "a"}], "tags": {"a": "b"}, "free": {"x": {"y": 1}}}}


def test_defaults_are_filled_in_at_every_depth() -> None:
    obj: dict[str, Any] = {"spec": {"afloat": None, "crew": [{}, {"name": "a"}]}}
    fill_in(SCHEMA, obj)
    assert obj == {"spec": {"afloat": True, "crew": [{"name": "nobody"}, {"name": "a"}]}}
    bare: dict[str, Any] = {}
    fill_in(SCHEMA, bare)
    assert bare == {}


@pytest.mark.parametrize(("spec", "errors"), [
    ({"length": 7, "afloat": True, "port": "http", "kind": 5}, []),
    ({}, ["spec.length: Required value"]),
    ({"length": 0}, ["spec.length: Invalid value: 0: spec.length in body should be greater than or equal to 1"]),
    ({"length": 101}, ["spec.length: Invalid value: 101: spec.length in body should be less than or equal to 100"]),
    ({"length": 1, "afloat": "maybe"},
     ['spec.afloat: Invalid value: "string": spec.afloat in body must be of type boolean: "string"']),
    ({"length": 1, "flag": "NL1"}, ["spec.flag: Invalid value: \"NL1\": spec.flag in body should match '^[a-z]{2}$'"]),
    ({"length": 1, "hull": "paper"}, ['spec.hull: Unsupported value: "paper": supported values: "wood", "steel"']),
    ({"length": 1, "crew": [{}, {}, {}]}, ["spec.crew: Too many: 3: must have at most 2 items"]),
    ({"length": 1, "crew": [{"name": 5}]},
     ['spec.crew[0].name: Invalid value: "integer": spec.crew[0].name in body must be of type string: "integer"']),
    ({"length": 1, "tags": {"a": "long"}}, ["spec.tags.a: Too long: may not be more than 3 bytes"]),
    ({"length": 1, "port": 1.5},
     ['spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number"']),
    ({"length": 1, "kind": True},
     ['spec.kind: Invalid value: "": "spec.kind" must validate at least one schema (anyOf)']),
    ({"length": 1, "kind": "x"}, ['spec.kind: Invalid value: "": "spec.kind" must not validate the schema (not)']),
])
def test_what_the_schema_refuses_is_told_in_upstreams_words(spec: dict[str, Any], errors: list[str]) -> None:
    assert [str(error) for error in validate(SCHEMA, {"spec": spec})] == errors
