import re
import subprocess
import sys
from pathlib import Path

import pytest

from kubepy.api.schema.openapi import Schema, schema_for
from kubepy.api.scheme import BUILT_IN
from kubepy.api.types import table

PROJECT = Path(__file__).parents[2]


def walk(api_version: str, kind: str, *fields: str) -> Schema:
    schema = schema_for(api_version, kind)
    for name in fields:
        schema = schema.items() if name == "[]" else schema.field(name)
    return schema


@pytest.mark.parametrize("resource", BUILT_IN, ids=lambda resource: resource.key)
def test_schema_exists_for_every_built_in_kind(resource):
    assert schema_for(resource.api_version, resource.kind).go_name == resource.kind


def test_unknown_kind_has_no_schema():
    assert schema_for("harbour.example.org/v1", "Boat") is None
    assert schema_for("apps/v1", "Pod") is None


@pytest.mark.parametrize(
    ("path", "key", "strategies", "list_type", "map_keys"),
    [
        (("v1", "Pod", "spec", "containers"), "name", ["merge"], "map", ["name"]),
        (("v1", "Pod", "spec", "volumes"), "name", ["merge", "retainKeys"], "map", ["name"]),
        (
            ("v1", "Pod", "spec", "containers", "[]", "ports"),
            "containerPort",
            ["merge"],
            "map",
            ["containerPort", "protocol"],
        ),
        (("v1", "Service", "spec", "ports"), "port", ["merge"], "map", ["port", "protocol"]),
        (("v1", "Pod", "metadata", "finalizers"), "", ["merge"], "set", []),
        (("apps/v1", "Deployment", "spec", "strategy"), "", ["retainKeys"], "", []),
        (("v1", "Pod", "spec", "containers", "[]", "args"), "", [], "atomic", []),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
def test_fields_have_merge_keys_and_strategies(path, key, strategies, list_type, map_keys):
    found = walk(*path)
    assert (found.merge_key, found.patch_strategies, found.list_type, found.list_map_keys) == (
        key,
        strategies,
        list_type,
        map_keys,
    )


def test_types_are_those_of_api():
    assert walk("v1", "Pod", "spec", "nodeName").type == "string"
    assert (
        walk("v1", "Pod", "spec", "containers", "[]", "resources", "limits").values().go_name
        == "Quantity"
    )
    assert walk("v1", "Service", "spec", "ports", "[]", "targetPort").int_or_string
    assert walk("apps/v1", "DaemonSet", "spec").required == ["selector", "template"]


def test_custom_resource_schema_has_same_interface():
    schema = Schema(
        {"type": "object", "properties": {"crew": {"type": "array", "items": {"type": "string"}}}}
    )
    assert schema.field("crew").items().type == "string"
    assert list(schema.fields()) == ["crew"]
    assert schema.field("mast") is None


def test_generated_facts_are_those_of_installed_schemas(tmp_path):
    subprocess.run(
        [sys.executable, PROJECT / "tools" / "generate_schemas.py", tmp_path], check=True
    )
    committed = PROJECT / "kubepy" / "api" / "schema" / "data"
    for path in tmp_path.iterdir():
        assert (committed / path.name).read_text() == path.read_text()


def differences(
    schema: Schema, go_type: str, path: str, above: frozenset[str] = frozenset()
) -> list[str]:
    """Compare the fields of a schema, and of the types below it, with those of a Go type."""
    go_type = re.sub(r"map\[[\w./]+\]|\[\]|\*", "", go_type)
    go_type = (table.underlying(go_type) or go_type).removeprefix("[]")
    while (inner := schema.items() or schema.values()) is not None:
        schema = inner
    fields = schema.fields()
    if not fields or schema.name in above:
        return []
    go_fields = {field.json: field.type for field in table.flat_fields(go_type)}
    if fields.keys() != go_fields.keys():
        return [f"{path}: {sorted(fields.keys() ^ go_fields.keys())}"]
    return [
        difference
        for name, field in fields.items()
        for difference in differences(
            field, go_fields[name], f"{path}.{name}", above | {schema.name}
        )
    ]


@pytest.mark.parametrize("resource", BUILT_IN, ids=lambda resource: resource.key)
def test_schemas_and_go_types_have_same_fields(resource):
    package = table.package_of(resource.api_version)
    if package is not None:
        schema = schema_for(resource.api_version, resource.kind)
        assert differences(schema, f"{package}.{resource.kind}", resource.kind) == []
