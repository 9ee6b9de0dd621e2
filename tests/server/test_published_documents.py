"""Discovery and OpenAPI beside the documents that upstream publishes for v1.36.

``KUBERNETES_SOURCE`` names a checkout (its ``api/discovery`` and ``api/openapi-spec``); without it,
digests of what was found equal to them are compared.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from kubepy.api.schema.definitions import references_in, with_references
from kubepy.api.scheme import Resource, Scheme
from kubepy.server.discovery import aggregated_list, resource_list, served_groups
from kubepy.server.operations import paths_of

SOURCE = Path(os.environ.get("KUBERNETES_SOURCE", "/nonexistent"))
METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
needs_source = pytest.mark.skipif(
    not (SOURCE / "api").exists(), reason="KUBERNETES_SOURCE names no checkout"
)
VERSIONS = {
    (group, version): resources
    for group, versions in served_groups(Scheme()).items()
    for version, resources in versions.items()
    if group != "metrics.k8s.io"
}


def schemas_of(group: str, version: str, resources: list[Resource]) -> dict[str, Any]:
    names = references_in(paths_of(group, version, resources))
    return with_references(names, {}, ("v1", f"{group}/{version}".lstrip("/")))


def operations_in(paths: dict[str, Any]) -> list[Any]:
    """Return what clients go by of each operation, in order; CBOR, which is not on by default, is
    left out."""
    facts = []
    for path, item in sorted(paths.items()):
        common = {parameter["name"] for parameter in item.get("parameters", ())}
        for method in METHODS:
            if (operation := item.get(method)) is None:
                continue
            own = {parameter["name"] for parameter in operation.get("parameters", ())}
            content = operation.get("requestBody", {}).get("content", {})
            bodies = sorted(type_ for type_ in content if "cbor" not in type_)
            answers = {
                code: sorted(type_ for type_ in answer.get("content", {}) if "cbor" not in type_)
                for code, answer in sorted(operation["responses"].items())
            }
            facts.append(
                [
                    path,
                    method,
                    operation["operationId"],
                    operation["description"],
                    operation.get("x-kubernetes-action"),
                    operation.get("x-kubernetes-group-version-kind"),
                    sorted(common),
                    sorted(own),
                    bodies,
                    answers,
                    sorted(set(references_in(operation))),
                ]
            )
    return facts


def fields_in(schemas: dict[str, Any]) -> list[Any]:
    """Return the fields of each type, without descriptions and enumerations, which upstream does
    not publish."""

    def shape(node: Any) -> Any:
        if isinstance(node, dict):
            return {
                key: shape(value)
                for key, value in node.items()
                if key != "enum" and not (key == "description" and isinstance(value, str))
            }
        return [shape(value) for value in node] if isinstance(node, list) else node

    return [[name, shape(schema)] for name, schema in sorted(schemas.items())]


def digest(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def test_documents_are_those_that_were_compared_with_upstream() -> None:
    operations = [operations_in(paths_of(*key, resources)) for key, resources in VERSIONS.items()]
    fields = [fields_in(schemas_of(*key, resources)) for key, resources in VERSIONS.items()]
    legacy = [resource_list(Scheme(), *key) for key in VERSIONS]
    assert (sum(map(len, operations)), digest(operations)) == (OPERATIONS, OPERATIONS_DIGEST)
    assert (len({name for listed in fields for name, _ in listed}), digest(fields)) == (
        TYPES,
        TYPES_DIGEST,
    )
    assert digest(legacy) == DISCOVERY_DIGEST


OPERATIONS, OPERATIONS_DIGEST = 789, "cc218287d863fa14"
TYPES, TYPES_DIGEST = 578, "d0106139557119bb"
DISCOVERY_DIGEST = "0ea0c1d09c75ada7"


@needs_source
@pytest.mark.parametrize(("group", "version"), VERSIONS)
def test_openapi_equals_the_published_document(group: str, version: str) -> None:
    name = f"apis__{group}__{version}" if group else f"api__{version}"
    published = json.loads((SOURCE / "api/openapi-spec/v3" / f"{name}_openapi.json").read_bytes())
    resources = VERSIONS[group, version]
    assert operations_in(paths_of(group, version, resources)) == operations_in(published["paths"])
    assert fields_in(schemas_of(group, version, resources)) == fields_in(
        published["components"]["schemas"]
    )


@needs_source
@pytest.mark.parametrize(("group", "version"), VERSIONS)
def test_discovery_equals_the_published_document(group: str, version: str) -> None:
    name = f"apis__{group}__{version}" if group else f"api__{version}"
    published = json.loads((SOURCE / "api/discovery" / f"{name}.json").read_bytes())
    assert resource_list(Scheme(), group, version) == published
    aggregated = json.loads((SOURCE / "api/discovery/aggregated_v2.json").read_bytes())["items"]
    served = aggregated_list({group: {version: VERSIONS[group, version]}}, "v2")["items"][0]
    for item in aggregated:
        if item["metadata"]["name"] == group:
            assert served["versions"][0] in item["versions"]


@needs_source
def test_groups_are_in_the_published_order() -> None:
    aggregated = json.loads((SOURCE / "api/discovery/aggregated_v2.json").read_bytes())["items"]
    names = [item["metadata"]["name"] for item in aggregated]
    served = [group for group, _ in VERSIONS if group]
    assert list(dict.fromkeys(served)) == [name for name in names if name in served]
