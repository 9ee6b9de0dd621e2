"""Values of a schema as rules see them, converted once for all rules of an object."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.cel.rules import RULES, RuleSet
from kubepy.api.cel.schemas import ConvertedValues
from kubepy.api.cel.values import CelError, MapList, Record

TIME = {"type": "string", "format": "date-time"}
PART = {"type": "object", "properties": {"at": TIME, "size": {"type": "integer"}}}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"part": PART}}


def test_part_of_value_is_converted_once() -> None:
    values = ConvertedValues()
    obj = {"part": {"size": 1}}
    whole = values.value_of(obj, SCHEMA)
    assert whole == {"part": {"size": 1}}
    assert values.value_of(obj["part"], PART) is whole["part"]
    assert values.value_of({"size": 1}, PART) is not whole["part"]


def test_value_has_another_form_by_another_schema() -> None:
    values = ConvertedValues()
    items = [{"name": "a"}]
    plain: dict[str, Any] = {"type": "array", "items": {"type": "object"}}
    keyed = {
        **plain,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    assert type(values.value_of(items, plain)) is list
    assert type(values.value_of(items, keyed)) is MapList
    assert type(values.value_of(items[0], {"type": "object", "properties": {}})) is Record


def test_text_that_is_no_time_fails_each_time() -> None:
    values = ConvertedValues()
    obj = {"part": {"at": "yesterday"}}
    for _ in range(2):
        with pytest.raises(CelError):
            values.value_of(obj, SCHEMA)


def test_old_value_is_read_by_transition_rules_alone() -> None:
    old, new = {"at": "yesterday", "size": 1}, {"at": "2026-01-01T00:00:00Z", "size": 2}
    plain, transition = {"rule": "self.size > 0"}, {"rule": "self.size > oldSelf.size"}
    assert RuleSet({**PART, RULES: [plain]}).validate(new, old) == []
    [error] = RuleSet({**PART, RULES: [transition]}).validate(new, old)
    assert "type conversion error" in str(error)


def test_rules_deep_in_schema_are_found() -> None:
    small = {**PART, RULES: [{"rule": "self.size < 3", "message": "too large"}]}
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "list": {"type": "array", "items": small},
            "map": {"type": "object", "additionalProperties": small},
        },
    }
    large = {"size": 3}
    obj = {"name": "a", "list": [{"size": 1}, large], "map": {"x": large, "y": {"size": 2}}}
    errors = RuleSet(schema).validate(obj)
    assert [error.field for error in errors] == ["list[1]", "map[x]"]
