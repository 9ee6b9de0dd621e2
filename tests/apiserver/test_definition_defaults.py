"""Defaults that the schema of a CustomResourceDefinition may hold."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.api.errors import Status
from kubepy.apiserver.client import Client
from kubepy.apiserver.kinds.apiextensions.validation.schemas import validate_defaults
from tests.apiserver.test_custom_rules import CRDS, definition

Object = dict[str, Any]
RULES = "x-kubernetes-validations"
EMBEDDED = "x-kubernetes-embedded-resource"


def complaints(**properties: Object) -> list[str]:
    return [
        str(error) for error in validate_defaults({"type": "object", "properties": properties}, "s")
    ]


def embedded(metadata: Object) -> Object:
    """Return a field that holds an object of any kind, whose metadata has this schema."""
    return {
        "type": "object",
        EMBEDDED: True,
        "properties": {
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": metadata}},
        },
    }


def test_default_with_unknown_field_is_refused() -> None:
    crew = {
        "type": "array",
        "items": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    assert complaints(crew={**crew, "default": [{"name": "ada"}]}) == []
    assert complaints(crew={**crew, "default": [{"name": "ada", "age": 3}]}) == [
        's.properties[crew].default: Invalid value: [{"age":3,"name":"ada"}]: must not have '
        "unknown fields"
    ]


def test_default_against_rules_is_refused() -> None:
    size = {"type": "integer", RULES: [{"rule": "self > 2", "message": "too small"}]}
    assert complaints(size={**size, "default": 3}) == []
    assert complaints(size={**size, "default": 1}) == [
        "s.properties[size].default: Invalid value: 1: too small"
    ]


def test_default_of_metadata_must_be_valid_and_embedded() -> None:
    assert complaints(pod=embedded({"type": "string", "default": "ada"})) == []
    assert complaints(pod=embedded({"type": "string", "default": "a/b"})) == [
        's.properties[pod].properties[metadata].properties[name].default: Invalid value: "a/b": '
        "must result in valid "
        "metadata: metadata.name: Invalid value: \"a/b\": may not contain '/'"
    ]


@pytest.mark.parametrize(("default", "wrong"), [
    ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ada"}}, []),
    ({"apiVersion": "v1"}, [".kind: Required value"]),
    ({"apiVersion": "v1", "kind": 5}, [".kind: Invalid value: 5: must be a string"]),
    ({"kind": "Pod", "metadata": {"name": 5}}, [
        '.metadata: Invalid value: {"name":5}: json: cannot unmarshal number into Go struct field '
        "ObjectMeta.name of type string"]),
])  # fmt: skip
def test_default_embedded_object_without_kind_is_refused(default: Object, wrong: list[str]) -> None:
    pod = {"type": "object", EMBEDDED: True, "default": default}
    assert complaints(pod=pod) == [f"s.properties[pod].default{one}" for one in wrong]


def test_embedded_object_with_invalid_name_is_refused(client: Client) -> None:
    client.create(
        CRDS, definition({"type": "object", "properties": {"pod": embedded({"type": "string"})}})
    )
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ["ada"]}}
    boat = {
        "apiVersion": "example.org/v1",
        "kind": "Boat",
        "metadata": {"name": "ada"},
        "spec": {"pod": pod},
    }
    with pytest.raises(Status) as error:
        client.create("boats.example.org", boat, namespace="default")
    assert "spec.pod.metadata: Invalid value: " in error.value.message
