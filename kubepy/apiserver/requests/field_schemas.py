"""The schema that fields of a resource are tracked by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubepy.api.schema.openapi import Schema, definition, schema_for
from kubepy.api.scheme import Resource
from kubepy.apiserver.requests.server import Server

_METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def field_schema(server: Server, resource: Resource) -> Schema | None:
    """None where nothing is known of the kind."""
    if not resource.custom:
        return schema_for(resource.api_version, resource.kind)
    from kubepy.apiserver.strategies.custom import CustomStrategy

    strategy = server.strategy(resource)
    assert isinstance(strategy, CustomStrategy)
    return Schema(with_metadata(strategy.schema))


def with_metadata(node: Mapping[str, Any]) -> dict[str, Any]:
    """A custom resource's schema with the fields that every object has."""
    always = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": definition(_METADATA)}
    return {"type": "object", **node, "properties": {**(node.get("properties") or {}), **always}}
