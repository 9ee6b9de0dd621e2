"""Values as error messages of Go's server show them: ``json.Marshal`` of the struct that they were
decoded into."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from kubepy.api.meta import nested_map
from kubepy.api.types import table
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.types import decoder

# The versioned package that the JSON of an internal one follows.
_VERSIONED = {"autoscaling": "autoscaling/v2"}

_FREE_FORM = frozenset(("meta/v1.FieldsV1", "runtime.RawExtension", "apiextensions/v1.JSON"))
_SCHEMA_OR = re.compile(
    "(?<=JSONSchemaProps)Or(Bool|Array|StringArray)$"
)  # holds a schema, or what is none


def go_order(type_name: str, value: Any) -> Any:
    """Return a value with the keys of its structs in Go's order. ``type_name``:
    ``meta/v1.LabelSelector``."""
    if isinstance(value, list):
        element = _element(type_name)
        return [
            go_order(element, item) if isinstance(item, (dict, list)) else item for item in value
        ]

    if not isinstance(value, dict):
        return value
    name, fields = _map_form(type_name)
    if fields is not None:
        return {
            key: go_order(type_, entry) if isinstance(entry := value[key], (dict, list)) else entry
            for key, type_ in fields
            if key in value
        }

    if name.startswith("map["):
        inner = table.map_parts(name)[1]
        return {key: go_order(inner, value[key]) for key in sorted(value)}
    if name == "meta/v1.FieldsV1":  # in the order of its fields, which is no matter of names alone
        return value
    return {key: in_key_order(value[key]) for key in sorted(value)}


@lru_cache(maxsize=4096)
def _element(type_name: str) -> str:
    """Return the type of a list's items."""
    return type_name.removeprefix("*").removeprefix("[]")


@lru_cache(maxsize=4096)
def _map_form(type_name: str) -> tuple[str, tuple[tuple[str, str], ...] | None]:
    """Return the type without its pointer, and the keys and types of a struct's fields; None for
    what is none."""
    name = _SCHEMA_OR.sub("", type_name.removeprefix("*"))
    if name.startswith("map[") or name in _FREE_FORM or not table.is_struct(name):
        return name, None
    return name, tuple((field.json, field.type) for field in table.flat_fields(name))


def in_key_order(value: Any) -> Any:
    """Return a value without a type with the keys of all its objects sorted, as those of Go's maps
    are."""
    if isinstance(value, list):
        return [in_key_order(item) if isinstance(item, (dict, list)) else item for item in value]
    if isinstance(value, dict):
        return {
            key: in_key_order(item) if isinstance(item := value[key], (dict, list)) else item
            for key in sorted(value)
        }
    return value


def as_encoded(obj: dict[str, Any]) -> dict[str, Any]:
    """Return an object with its fields in the order in which an API server writes them: that of
    Go's type, or sorted where the kind has none."""
    name = decoder.type_of(obj)
    ordered: dict[str, Any] = go_order(name, obj) if name else in_key_order(obj)
    return ordered


def go_fields(type_name: str, value: Any) -> Any:
    """Return a value as Go prints the internal type it becomes, with Go's field names and all
    fields.

    Internal types have no JSON names:
    ``{"Type":"Recreate","RollingUpdate":{"MaxUnavailable":1,"MaxSurge":0}}``. ``type_name``:
    ``apps.DaemonSetUpdateStrategy``; ``value``: the JSON of its versioned form, or None for nil.
    """
    if type_name.startswith("*"):
        if value is None:
            return None
        return go_fields(type_name[1:], value)

    if type_name == "[]byte":
        return value
    if type_name.startswith("[]"):
        if isinstance(value, list) and value:
            return [go_fields(type_name[2:], item) for item in value]
        return None

    if type_name.startswith("map["):
        inner = table.map_parts(type_name)[1]
        if value:
            return {key: go_fields(inner, value[key]) for key in sorted(value)}
        return None

    if type_name.startswith("meta/"):
        return _meta(type_name, value)
    if table.is_struct(type_name):
        return _struct(type_name, value or {})
    return _scalar(type_name, value)


def _meta(type_name: str, value: Any) -> Any:
    """Return a value of meta/v1, whose types have JSON names inside internal types too."""
    if type_name == "meta/v1.Time" or not table.is_struct(type_name):
        return _scalar(type_name, value)
    return go_order(type_name, decoder.decode_as(type_name, value).object)


def _struct(type_name: str, value: dict[str, Any]) -> dict[str, Any]:
    # Go field name → JSON name, from the versioned type of the same name.
    package, _, name = type_name.rpartition(".")
    versioned = f"{_VERSIONED.get(package, package + '/v1')}.{name}"
    if table.is_struct(versioned):
        names = {field.go: field.json for field in table.flat_fields(versioned)}
    else:
        names = {}

    value = _moved(type_name, value)
    shown: dict[str, Any] = {}
    for field in table.fields(type_name):
        if not field.inline:
            shown[field.go] = go_fields(field.type, value.get(names.get(field.go, field.go)))
        elif field.type == "meta/v1.ObjectMeta":
            shown |= _meta(field.type, nested_map(value, "metadata"))
        elif field.type != "meta/v1.TypeMeta":
            shown |= _struct(field.type, value)

    return shown


# Fields of PodSpec that the internal type keeps in its SecurityContext: JSON name → Go name there.
_IN_SECURITY_CONTEXT = {
    "hostNetwork": "HostNetwork",
    "hostPID": "HostPID",
    "hostIPC": "HostIPC",
    "shareProcessNamespace": "ShareProcessNamespace",
    "hostUsers": "HostUsers",
}


def _moved(type_name: str, value: dict[str, Any]) -> dict[str, Any]:
    if type_name != "core.PodSpec":
        return value
    moved = {go: value[key] for key, go in _IN_SECURITY_CONTEXT.items() if key in value}
    if not moved and value.get("securityContext") is None:
        return value
    return {**value, "securityContext": {**nested_map(value, "securityContext"), **moved}}


def _scalar(type_name: str, value: Any) -> Any:
    if value is not None:
        return value
    if type_name in ("meta/v1.Time", "meta/v1.MicroTime", "interface{}"):
        return None
    if type_name == "resource.Quantity":
        return "0"
    under = table.underlying(type_name)
    if under is not None:
        return go_fields(under, None)
    return {"string": "", "bool": False}.get(type_name, 0)
