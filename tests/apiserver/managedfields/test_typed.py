"""Sets of fields; comparing, merging and removing by a schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubepy.api.schema.openapi import Schema, schema_for
from kubepy.apiserver.managedfields.fieldpath import (
    from_fields_v1,
    in_order,
    path_text,
    to_fields_v1,
)
from kubepy.apiserver.managedfields.merging import merge, remove, with_named_fields
from kubepy.apiserver.managedfields.typed import TypedError, compare, field_set
from kubepy.apiserver.managedfields.validating import problems, text_of

TEXT = {"type": "string"}
SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
            "atoms": {"type": "array", "items": TEXT},
            "map": {"type": "object", "additionalProperties": TEXT},
            "whole": {
                "type": "object",
                "additionalProperties": TEXT,
                "x-kubernetes-map-type": "atomic",
            },
            "count": {"type": "integer"},
            "on": {"type": "boolean"},
            "inner": {"type": "object", "properties": {"value": TEXT, "free": {"type": "object"}}},
            "list": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name", "port"],
                "items": {
                    "type": "object",
                    "properties": {"name": TEXT, "port": {"type": "integer"}, "value": TEXT},
                },
            },
        },
    }
)


def fields(value: Any) -> dict[str, Any]:
    return to_fields_v1(field_set(value, SCHEMA))


# --- sets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "tree"),
    [
        ({"count": 1, "map": {"a": "b"}}, {"f:count": {}, "f:map": {"f:a": {}}}),
        ({"map": {}, "inner": {}}, {"f:map": {}, "f:inner": {}}),
        ({"whole": {"a": "b"}, "atoms": ["x"]}, {"f:whole": {}, "f:atoms": {}}),
        ({"set": ["b", "a"]}, {"f:set": {'v:"a"': {}, 'v:"b"': {}}}),
        (
            {"list": [{"port": 1, "name": "a", "value": "v"}]},
            {
                "f:list": {
                    'k:{"name":"a","port":1}': {".": {}, "f:name": {}, "f:port": {}, "f:value": {}}
                }
            },
        ),
        (
            {"inner": {"free": {"x": {"y": 1}, "z": [1]}}},
            {"f:inner": {"f:free": {"f:x": {".": {}, "f:y": {}}, "f:z": {}}}},
        ),
    ],
)
def test_fields_of_value(value: Any, tree: dict[str, Any]) -> None:
    assert fields(value) == tree
    assert to_fields_v1(from_fields_v1(tree)) == tree


def test_invalid_field_set_is_refused() -> None:
    for tree in ({"xa": {}}, {"f:a": 1}, []):
        with pytest.raises(ValueError, match=r"missing colon|must be an object"):
            from_fields_v1(tree)


def test_elements_of_later_versions_are_left_out() -> None:
    assert from_fields_v1({"x:a": {"f:b": {}}, "f:c": {}}) == {("f:c",)}


def test_members_come_before_what_is_below_them_and_keys_in_their_order() -> None:
    tree = {
        "f:a": {"f:x": {}},
        "f:b": {},
        "f:c": {".": {}, 'k:{"port":443}': {}, 'k:{"port":80}': {}, 'v:"z"': {}},
    }
    assert [path_text(path) for path in in_order(from_fields_v1(tree))] == [
        ".b",
        ".c",
        ".a.x",
        ".c[port=80]",
        ".c[port=443]",
        '.c[="z"]',
    ]


def test_names_on_way_to_member_belong_to_it_but_keys_of_maps_do_not() -> None:
    found = with_named_fields(
        from_fields_v1({"f:inner": {"f:value": {}}, "f:map": {"f:a": {}}}), SCHEMA
    )
    assert to_fields_v1(found) == {
        "f:inner": {".": {}, "f:value": {}},
        "f:map": {".": {}, "f:a": {}},
    }
    free = with_named_fields(from_fields_v1({"f:inner": {"f:free": {"f:x": {"f:y": {}}}}}), SCHEMA)
    assert to_fields_v1(free) == {"f:inner": {".": {}, "f:free": {".": {}, "f:x": {"f:y": {}}}}}


# --- comparing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "removed", "modified", "added"),
    [
        ({"count": 1}, {"count": 1.0}, {}, {}, {}),
        (
            {"count": 1},
            {"count": 2, "map": {"a": "b"}},
            {},
            {"f:count": {}},
            {"f:map": {".": {}, "f:a": {}}},
        ),
        ({"map": {"a": "b", "c": "d"}}, {"map": {"a": "b"}}, {"f:map": {"f:c": {}}}, {}, {}),
        ({"whole": {"a": "b"}}, {"whole": {"a": "c"}}, {}, {"f:whole": {}}, {}),
        ({"inner": {}}, {"inner": {"value": "x"}}, {}, {}, {"f:inner": {"f:value": {}}}),
        (
            {"set": ["a", "b"]},
            {"set": ["b", "c"]},
            {"f:set": {'v:"a"': {}}},
            {},
            {"f:set": {'v:"c"': {}}},
        ),
        (
            {"set": ["a", "a"]},
            {"set": ["a"]},
            {"f:set": {'v:"a"': {}}},
            {},
            {"f:set": {'v:"a"': {}}},
        ),
        (
            {"list": [{"name": "a", "value": "x"}]},
            {"list": [{"name": "a", "value": "y"}]},
            {},
            {"f:list": {'k:{"name":"a"}': {"f:value": {}}}},
            {},
        ),
        ({"atoms": None}, {"atoms": []}, {}, {"f:atoms": {}}, {}),
    ],
)
def test_compare_reports_changed_fields(
    old: Any, new: Any, removed: Any, modified: Any, added: Any
) -> None:
    assert tuple(map(to_fields_v1, compare(old, new, SCHEMA))) == (removed, modified, added)


# --- merging --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("live", "config", "merged"),
    [
        # Each letter is an item: a list keeps items that the configuration leaves out, and takes
        # its order.
        ("abc", "ab", "abc"),
        ("ab", "abc", "abc"),
        ("abc", "", "abc"),
        ("", "abc", "abc"),
        ("ab", "ba", "ba"),
        ("abc", "def", "abcdef"),
        ("abc", "cdef", "abcdef"),
        ("abcgf", "cdef", "abcgdef"),
        ("cdef", "ace", "acdef"),
        ("abcxyz", "def", "abcxyzdef"),
        ("abcxyz", "defxyz", "abcdefxyz"),
        ("cagf", "cfag", "cfag"),
        ("abcd", "defa", "bcdefa"),
        ("cdefghij", "2h3e4kl", "cdfg2hij3e4kl"),
        ("abcdefghij", "1b2h3e4kl", "a1bcdfg2hij3e4kl"),
        ("abb", "c", "abbc"),
        ("abb", "b", "ab"),
        ("abb", "a", "abb"),
        ("abcdec", "1b2ed", "a1bc2ecd"),
        ("abcdec", "1b2ced", "a1b2ced"),
        ("aabb", "bcd", "aabcd"),
        ("aabb", "", "aabb"),
        ("cagfca", "cfag", "cfag"),
    ],
)
def test_order_of_merged_sets(live: str, config: str, merged: str) -> None:
    assert merge({"set": list(live)}, {"set": list(config)}, SCHEMA) == {"set": list(merged)}


@pytest.mark.parametrize(
    ("live", "config", "merged"),
    [
        ({"map": {"a": "1"}}, {"map": {"b": "2"}}, {"map": {"a": "1", "b": "2"}}),
        ({"whole": {"a": "1"}}, {"whole": {"b": "2"}}, {"whole": {"b": "2"}}),
        ({"atoms": ["a", "b"]}, {"atoms": ["c"]}, {"atoms": ["c"]}),
        ({"map": None}, {"map": {}}, {"map": {}}),
        ({"map": {}}, {"map": None}, {"map": None}),
        ({"map": {"a": "1"}}, {"map": None}, {"map": {"a": "1"}}),
        ({"count": 1}, {"count": None}, {"count": None}),
        (
            {"list": [{"name": "a", "value": "x"}, {"name": "b"}]},
            {"list": [{"name": "b", "value": "y"}]},
            {"list": [{"name": "a", "value": "x"}, {"name": "b", "value": "y"}]},
        ),
    ],
)
def test_merged_values(live: Any, config: Any, merged: Any) -> None:
    assert merge(live, config, SCHEMA) == merged


def test_configuration_must_not_have_item_twice() -> None:
    with pytest.raises(TypedError, match=r'duplicate entries for key \[="a"\]'):
        merge({"set": ["b"]}, {"set": ["a", "a"]}, SCHEMA)


@pytest.mark.parametrize(
    ("tree", "left"),
    [
        ({"f:map": {"f:a": {}}}, {"map": {"b": "2"}, "list": [{"name": "x"}, {"name": "y"}]}),
        ({"f:map": {"f:a": {}, "f:b": {}}}, {"map": None, "list": [{"name": "x"}, {"name": "y"}]}),
        ({"f:map": {}, "f:list": {'k:{"name":"x"}': {}}}, {"list": [{"name": "y"}]}),
    ],
)
def test_remove_leaves_the_other_fields(tree: Any, left: Any) -> None:
    value = {"map": {"a": "1", "b": "2"}, "list": [{"name": "x"}, {"name": "y"}]}
    assert remove(value, from_fields_v1(tree), SCHEMA) == left


# --- the types of kubernetes ----------------------------------------------------------------------


def test_ports_without_protocol_are_told_apart_by_default_one() -> None:
    service = {"spec": {"ports": [{"port": 80}]}}
    assert json.dumps(to_fields_v1(field_set(service, schema_for("v1", "Service")))) == (
        '{"f:spec": {"f:ports": {"k:{\\"port\\":80,\\"protocol\\":\\"TCP\\"}": {".": {}, '
        '"f:port": {}}}}}'
    )


def test_items_that_leave_key_out_go_by_default_of_their_schema() -> None:
    fields = {
        "page": {"type": "integer", "default": 1},
        "protocol": {"type": "string"},
        "text": {"type": "string"},
    }
    notes = Schema(
        {
            "type": "array",
            "items": {"type": "object", "properties": fields},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["page", "protocol"],
        }
    )
    assert to_fields_v1(field_set([{"text": "x"}, {"page": 2}], notes)) == {
        'k:{"page":1}': {".": {}, "f:text": {}},
        'k:{"page":2}': {".": {}, "f:page": {}},
    }


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"colour": 1}, ".spec.colour: field not declared in schema"),
        ({"colour": 1, "replicas": "x", "shape": 2}, ".spec.colour: field not declared in schema"),
        (
            {"paused": "x", "shape": 2},
            'errors:\n  .spec.paused: expected boolean, got &value.valueUnstructured{Value:"x"}\n'
            "  .spec.shape: field not declared in schema",
        ),
        ({"replicas": "x"}, ".spec.replicas: expected numeric (int or float), got string"),
        (
            {"paused": "x"},
            '.spec.paused: expected boolean, got &value.valueUnstructured{Value:"x"}',
        ),
        ({"selector": []}, ".spec.selector: expected map, got &{[]}"),
        (
            {
                "template": {
                    "spec": {"containers": [{"name": "a"}, {"name": "a"}, {"image": "b"}, None]}
                }
            },
            'errors:\n  .spec.template.spec.containers: duplicate entries for key [name="a"]\n'
            "  .spec.template.spec.containers: element 3: associative list with keys may not have "
            "a null element",
        ),
    ],
)
def test_invalid_configuration_is_refused(change: Any, why: str) -> None:
    assert text_of(problems({"spec": change}, schema_for("apps/v1", "Deployment"))) == why
