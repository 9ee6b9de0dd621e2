"""An object of each built-in kind with every field, made of the tables of types."""

from __future__ import annotations

from typing import Any

from kubepy.api import types
from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.api.types import table

_VALUES: dict[str, Any] = {
    "string": "text",
    "bool": True,
    "float64": 0.5,
    "[]byte": "/wA=",
    "[]uint8": "/wA=",
    "meta/v1.Time": "2026-11-20T10:13:48Z",
    "meta/v1.MicroTime": "2026-11-20T10:13:48.000001Z",
    "meta/v1.Duration": "1m30s",
    "meta/v1.FieldsV1": {"f:spec": {".": {}}},
    "runtime.RawExtension": {"kind": "A", "n": [1, None, "<&>"]},
    "resource.Quantity": "1536Mi",
    "intstr.IntOrString": "25%",
    "apiextensions/v1.JSON": {"a": [1.5, False]},
    "apiextensions/v1.JSONSchemaPropsOrBool": {"type": "string"},
    "apiextensions/v1.JSONSchemaPropsOrArray": [{"type": "string"}],
    "apiextensions/v1.JSONSchemaPropsOrStringArray": ["a", "b"],
}
_DEEPEST = 8  # schemas hold schemas


def full_object(resource: Resource) -> Object:
    """Return an object of a resource, without what no value has."""
    api_version = f"{resource.group}/{resource.version}".lstrip("/")
    type_name = f"{table.package_of(api_version)}.{resource.kind}"
    filled = types.decode_as(type_name, _struct(type_name, 0)).object
    metadata = {**filled["metadata"], "name": "full"}
    del metadata["resourceVersion"], metadata["selfLink"]
    if not resource.namespaced:
        del metadata["namespace"]
    if resource.kind == "StatefulSet":
        for claim in filled["spec"]["volumeClaimTemplates"]:
            claim.update(apiVersion="v1", kind="PersistentVolumeClaim")
    return {**filled, "apiVersion": api_version, "kind": resource.kind, "metadata": metadata}


def _struct(type_name: str, depth: int) -> Object:
    return {
        field.json: _value(field.type, depth + 1)
        for field in table.flat_fields(type_name)
        if field.number
    }


def _value(type_name: str, depth: int) -> Any:
    type_name = type_name.removeprefix("*")
    if type_name in _VALUES:
        return _VALUES[type_name]
    if type_name.startswith("[]"):
        return [_value(type_name[2:], depth)]
    if type_name.startswith("map["):
        value = _value(table.map_parts(type_name)[1], depth)
        return {"b": value, "a": value}
    under = table.underlying(type_name)
    if under is not None:
        return _value(under, depth)
    if table.is_struct(type_name):
        return _struct(type_name, depth) if depth < _DEEPEST else {}
    return 7 if "int" in type_name else {}  # a struct without fields has no table
