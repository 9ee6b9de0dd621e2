from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.schema.structural import drop_nulls, fill_in, prune, schema_of_lists, validate_lists
from kubepy.api.schema.validating import validate

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["length"],
            "properties": {
                "length": {"type": "integer", "minimum": 1, "maximum": 100},
                "flag": {"type": "string", "pattern": "^[a-z]{2}$"},
                "afloat": {"type": "boolean", "default": True},
                "hull": {"type": "string", "enum": ["wood", "steel"]},
                "crew": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 2,
                    "items": {
                        "type": "object",
                        "properties": {"name": {"type": "string", "default": "nobody"}},
                    },
                },
                "tags": {
                    "type": "object",
                    "additionalProperties": {"type": "string", "maxLength": 3},
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "port": {"x-kubernetes-int-or-string": True},
                "kind": {
                    "anyOf": [{"type": "string"}, {"type": "integer"}],
                    "not": {"enum": ["x"]},
                },
            },
        }
    },
}


def test_prune_drops_unknown_fields_and_returns_their_paths() -> None:
    obj = {
        "apiVersion": "v1",
        "kind": "Boat",
        "metadata": {"any": 1},
        "extra": 1,
        "spec": {
            "sails": 2,
            "crew": [{"name": "a", "age": 5}],
            "tags": {"a": "b"},
            "free": {"x": {"y": 1}},
        },
    }
    assert prune(SCHEMA, obj) == ["extra", "spec.crew[0].age", "spec.sails"]
    assert obj == {
        "apiVersion": "v1",
        "kind": "Boat",
        "metadata": {"any": 1},
        "spec": {"crew": [{"name": "a"}], "tags": {"a": "b"}, "free": {"x": {"y": 1}}},
    }


def test_fill_in_sets_defaults_at_every_depth() -> None:
    obj: dict[str, Any] = {"spec": {"afloat": None, "crew": [{}, {"name": "a"}]}}
    fill_in(SCHEMA, obj)
    assert obj == {"spec": {"afloat": True, "crew": [{"name": "nobody"}, {"name": "a"}]}}
    bare: dict[str, Any] = {}
    fill_in(SCHEMA, bare)
    assert bare == {}


PRESERVE = "x-kubernetes-preserve-unknown-fields"


def test_prune_preserves_unknown_fields_through_lists_but_not_in_described_fields() -> None:
    described = {"type": "object", "properties": {"size": {"type": "integer"}}}
    schema = {
        "type": "object",
        "properties": {
            "any": {PRESERVE: True},
            "half": {"type": "object", PRESERVE: True, "properties": {"known": described}},
            "rows": {"type": "array", "items": {"type": "object", PRESERVE: True}},
        },
    }
    obj: dict[str, Any] = {
        "any": [{"a": 1}, [{"b": 2}]],
        "rows": [{"c": 3}],
        "half": {"x": {"y": 1}, "known": {"size": 1, "z": 1}},
    }
    assert prune(schema, obj) == ["half.known.z"]
    assert obj == {
        "any": [{"a": 1}, [{"b": 2}]],
        "rows": [{"c": 3}],
        "half": {"x": {"y": 1}, "known": {"size": 1}},
    }


def test_drop_nulls_keeps_nullable_fields_and_those_with_default() -> None:
    text = {"type": "string"}
    fields = {"plain": text, "null": {**text, "nullable": True}, "filled": {**text, "default": "x"}}
    schema = {
        "type": "object",
        "properties": {
            **fields,
            "rows": {"type": "array", "items": {"type": "object", "properties": fields}},
            "tags": {"type": "object", "additionalProperties": text},
            "free": {"type": "object", PRESERVE: True},
        },
    }
    nulls = {"plain": None, "null": None, "filled": None}
    obj: dict[str, Any] = {
        **nulls,
        "rows": [dict(nulls)],
        "tags": {"a": None, "b": "c"},
        "free": {"a": None},
    }
    drop_nulls(schema, obj)
    fill_in(schema, obj)
    kept = {"null": None, "filled": "x"}
    assert obj == {**kept, "rows": [kept], "tags": {"b": "c"}, "free": {"a": None}}


def test_fill_in_replaces_nulls_of_list_by_default_of_items() -> None:
    obj: dict[str, Any] = {"rows": [None, "b"]}
    fill_in(
        {
            "type": "object",
            "properties": {"rows": {"type": "array", "items": {"type": "string", "default": "a"}}},
        },
        obj,
    )
    assert obj == {"rows": ["a", "b"]}


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({"length": 7, "afloat": True, "port": "http", "kind": 5}, []),
        ({}, ["spec.length: Required value"]),
        (
            {"length": 0},
            [
                "spec.length: Invalid value: 0: spec.length in body should be greater than or "
                "equal to 1"
            ],
        ),
        (
            {"length": 101},
            [
                "spec.length: Invalid value: 101: spec.length in body should be less than or "
                "equal to 100"
            ],
        ),
        (
            {"length": 1, "afloat": "maybe"},
            [
                'spec.afloat: Invalid value: "string": spec.afloat in body must be of type '
                'boolean: "string"'
            ],
        ),
        (
            {"length": 1, "flag": "NL1"},
            ["spec.flag: Invalid value: \"NL1\": spec.flag in body should match '^[a-z]{2}$'"],
        ),
        (
            {"length": 1, "hull": "paper"},
            ['spec.hull: Unsupported value: "paper": supported values: "wood", "steel"'],
        ),
        (
            {"length": 1, "crew": [{}, {}, {}]},
            ["spec.crew: Too many: 3: must have at most 2 items"],
        ),
        (
            {"length": 1, "crew": [{"name": 5}]},
            [
                'spec.crew[0].name: Invalid value: "integer": spec.crew[0].name in body must be '
                'of type string: "integer"'
            ],
        ),
        (
            {"length": 1, "tags": {"a": "long"}},
            ["spec.tags.a: Too long: may not be more than 3 bytes"],
        ),
        (
            {"length": 1, "port": 1.5},
            [
                'spec.port: Invalid value: "number": spec.port in body must be of type '
                'integer,string: "number"'
            ],
        ),
        (
            {"length": 1, "kind": True},
            [
                '<nil>: Invalid value: "": "spec.kind" must validate at least one schema (anyOf)',
                'spec.kind: Invalid value: "boolean": spec.kind in body must be of type string: '
                '"boolean"',
            ],
        ),
        (
            {"length": 1, "kind": "x"},
            ['<nil>: Invalid value: "": "spec.kind" must not validate the schema (not)'],
        ),
        (
            {"length": 1.5},
            [
                'spec.length: Invalid value: "number": spec.length in body must be of type '
                'integer: "number"',
                '<nil>: Invalid value: "": Checked value must be of type integer (default format) '
                "in spec.length",
            ],
        ),
        (
            {"length": 1, "hull": 5},
            [
                'spec.hull: Invalid value: "integer": spec.hull in body must be of type string: '
                '"integer"',
                'spec.hull: Unsupported value: 5: supported values: "wood", "steel"',
            ],
        ),
    ],
)
def test_validate_invalid_value_reports_upstream_errors(
    spec: dict[str, Any], errors: list[str]
) -> None:
    assert [str(error) for error in validate(SCHEMA, {"spec": spec})] == errors


def test_validate_invalid_pattern_refuses_value_with_reason() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=x)"}}}
    assert [str(error) for error in validate(schema, {"a": "x"})] == [
        'a: Invalid value: "x": a in body should match \'(?=x), but pattern is invalid: error '
        "parsing regexp: "
        "invalid or unsupported Perl syntax: `(?=`'"
    ]


# --- formats --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2026-11-20T10:00:00Z", "2026-11-20 10:00"),
        ("date", "2026-11-20", "2026-13-20"),
        ("duration", "1h30m", "soon"),
        ("duration", "22 ns", "h1"),
        ("byte", "eHg=", "e"),
        ("ipv4", "10.0.0.1", "fd00::1"),
        ("ipv6", "fd00::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("hostname", "a.example.com", "-a"),
        ("uuid", "2265B100-0007-7000-a168-0b3190184728", "2265"),
        ("email", "a@example.com", "a"),
        ("uri", "/a", "a"),
        ("mac", "00:1b:44:11:3a:b7", "00"),
        ("hexcolor", "#fff", "#ff"),
        ("k8s-short-name", "a-b", "a.b"),
        ("k8s-long-name", "a.b", "a.-"),
        ("unheard-of", "anything", None),
    ],
)
def test_validate_format_of_string(name: str, good: str, bad: str | None) -> None:
    schema = {"type": "string", "format": name}
    assert validate(schema, good, "x") == []
    if bad is not None:
        assert [str(error) for error in validate(schema, bad, "x")] == [
            f'x: Invalid value: "{bad}": x in body must be of type {name}: "{bad}"'
        ]


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        (
            {"type": "integer", "format": "int32"},
            2**31,
            [
                '<nil>: Invalid value: "": Checked value must be of type integer with format '
                "int32 in x"
            ],
        ),
        (
            {"type": "integer", "format": "int64"},
            1.5,
            [
                'x: Invalid value: "float64": x in body must be of type int64: "float64"',
                '<nil>: Invalid value: "": Checked value must be of type integer with format '
                "int64 in x",
            ],
        ),
        (
            {"type": "string", "format": "date"},
            5,
            ['x: Invalid value: "int64": x in body must be of type date: "int64"'],
        ),
        (
            {"type": "number", "maximum": 2000000},
            3e6,
            ["x: Invalid value: 3e+06: x in body should be less than or equal to 2e+06"],
        ),
    ],
)
def test_validate_format_of_number(schema: dict[str, Any], value: Any, errors: list[str]) -> None:
    assert [str(error) for error in validate(schema, value, "x")] == errors


# --- several schemas, updates, lists --------------------------------------------------------------


def test_validate_one_of_reports_errors_of_nearest_schema() -> None:
    nearer = {"required": ["b"], "properties": {"c": {"type": "string"}}}
    schema = {
        "type": "object",
        "oneOf": [{"required": ["a"]}, nearer],
        "allOf": [{"required": ["d"]}],
    }
    assert [str(error) for error in validate(schema, {"c": "x"}, "spec")] == [
        '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found '
        "none valid",
        "spec.b: Required value",
        "spec.d: Required value",
        '<nil>: Invalid value: "": "spec" must validate all the schemas (allOf). None validated',
    ]


def test_validate_update_tolerates_unchanged_invalid_values() -> None:
    item = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "size": {"type": "integer", "maximum": 3}},
    }
    schema = {
        "type": "object",
        "properties": {
            "length": {"type": "integer", "maximum": 5},
            "crew": {
                "type": "array",
                "items": item,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "boats": {"type": "array", "items": item},
        },
    }
    old = {"length": 9, "crew": [{"name": "a", "size": 4}], "boats": [{"size": 4}]}
    assert (
        validate(schema, {**old, "crew": [{"name": "b"}, {"name": "a", "size": 4}]}, old=old) == []
    )
    changed = {"length": 8, "crew": [{"name": "a", "size": 5}], "boats": [{"size": 4}, {}]}
    assert [str(error).partition(":")[0] for error in validate(schema, changed, old=old)] == [
        "boats[0].size",
        "crew[0].size",
        "length",
    ]


def test_validate_lists_duplicate_items_are_refused() -> None:
    schema = {
        "type": "object",
        "properties": {
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "ports": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port"],
                "items": {"type": "object"},
            },
        },
    }
    obj = {"tags": ["a", "b", "a", "a"], "ports": [{"port": 1}, {"port": 1, "name": "x"}, {}]}
    for part in (schema, schema_of_lists(schema)):
        assert [str(error) for error in validate_lists(part, obj)] == [
            'ports[1]: Duplicate value: {"port":1}',
            'tags[2]: Duplicate value: "a"',
        ]


def test_schema_of_lists_has_only_what_leads_to_sets_and_maps() -> None:
    tags = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    group = {"type": "object", "properties": {"tags": tags, "name": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {
            "groups": {"type": "array", "items": group},
            "teams": {"type": "object", "additionalProperties": group},
            "words": {"type": "array", "items": {"type": "string"}},
        },
    }
    left = schema_of_lists(schema)
    assert left["properties"].keys() == {"groups", "teams"}
    assert left["properties"]["groups"]["items"]["properties"].keys() == {"tags"}
    twice = {"name": "x", "tags": ["a", "a"]}
    obj = {"groups": [{}, twice], "teams": {"red": twice}, "words": ["a", "a"]}
    assert [error.field for error in validate_lists(left, obj)] == [
        "groups[1].tags[1]",
        "teams[red].tags[1]",
    ]
    assert not schema_of_lists({"type": "object", "properties": {"name": {"type": "string"}}})


def test_limit_of_one_is_named_in_the_singular() -> None:
    schema = {
        "type": "object",
        "maxProperties": 1,
        "properties": {
            "crew": {"type": "array", "maxItems": 1, "items": {"type": "string"}},
            "flag": {"type": "string", "maxLength": 1},
        },
    }
    assert [str(error) for error in validate(schema, {"crew": ["a", "b"], "flag": "no"})] == [
        ": Too many: 2: must have at most 1 item",
        "crew: Too many: 2: must have at most 1 item",
        "flag: Too long: may not be more than 1 byte",
    ]
