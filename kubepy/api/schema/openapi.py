"""The OpenAPI of the built-in types, v1.36: their fields, types, required fields, and the keys that
they merge by.

The facts are in ``data``, a JSON file a package of types (``io.k8s.api.apps.v1.json``), generated
by ``tools/generate_schemas.py``, which describes their form. A walk from a kind reads only the
packages on its way, and makes nodes only of the fields that it visits. Descriptions and whole
documents are in ``definitions``.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, cast

from kubepy.api.meta import nested_list, nested_map

_DATA = Path(__file__).with_name("data")
_REFERENCE = "#/$defs/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
# Groups whose types are not in io.k8s.api.<first part of the group>.
_PACKAGES = {
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
    "flowcontrol.apiserver.k8s.io": "io.k8s.api.flowcontrol",
    "internal.apiserver.k8s.io": "io.k8s.api.apiserverinternal",
}
_JSON_TYPES = frozenset(("object", "string", "integer", "number", "boolean"))
_EXTENSIONS = {
    "list": "x-kubernetes-list-type",
    "keys": "x-kubernetes-list-map-keys",
    "map": "x-kubernetes-map-type",
    "strategy": "x-kubernetes-patch-strategy",
    "key": "x-kubernetes-patch-merge-key",
}


class Schema:
    """The schema of a type or field. ``name`` is the full name of its type
    (``io.k8s.api.core.v1.PodSpec``), or ""."""

    __slots__ = ("_definition", "_fields", "_items", "_node", "_values", "name")

    def __init__(self, node: dict[str, Any]) -> None:
        """``node`` is OpenAPI, parsed: of a built-in type or of a CustomResourceDefinition's
        ``openAPIV3Schema``."""
        self._node = node
        reference = node.get("$ref") or next(
            (part["$ref"] for part in nested_list(node, "allOf") if "$ref" in part), ""
        )
        self.name = str(reference).rpartition("/")[2]
        self._definition = definition(self.name) if self.name else node
        self._fields: dict[str, Schema] = {}  # and the next two: those that were asked for
        self._items: Schema | None = None
        self._values: Schema | None = None

    def field(self, name: str) -> Schema | None:
        """Return the field of that name, or None."""
        field = self._fields.get(name)
        if field is None:
            node = nested_map(self._definition, "properties").get(name)
            if node is None:
                return None
            field = self._fields[name] = Schema(node)
        return field

    def fields(self) -> dict[str, Schema]:
        """Return all fields by name, in the order of the definition (alphabetical for built-in
        types)."""
        return {
            name: Schema(node) for name, node in nested_map(self._definition, "properties").items()
        }

    def items(self) -> Schema | None:
        """Return the schema of the items of a list, or None for a type that is no list."""
        if self._items is None and (node := self._definition.get("items")) is not None:
            self._items = Schema(node)
        return self._items

    def values(self) -> Schema | None:
        """Return the schema of the values of a map with free keys, or None for a type that is no
        such map."""
        if self._values is None and isinstance(
            node := self._definition.get("additionalProperties"), dict
        ):
            self._values = Schema(node)
        return self._values

    @property
    def go_name(self) -> str:
        """The name of the Go struct, without its package: ``PodSpec``."""
        return self.name.rpartition(".")[2]

    @property
    def type(self) -> str:
        """``object``, ``array``, ``string``, ``integer``, ``number``, ``boolean``, or "" where
        anything goes."""
        type_ = self._definition.get("type", "")
        if isinstance(type_, list):
            return next((name for name in type_ if name != "null"), "")
        return str(type_)

    @property
    def enum(self) -> list[Any]:
        """The values that a field of a custom resource can have; those of built-in types are
        in :func:`enums`."""
        return [value for value in nested_list(self._definition, "enum") if value is not None]

    @property
    def required(self) -> list[str]:
        return nested_list(self._definition, "required")

    @property
    def description(self) -> str:
        """The description of a field of a custom resource; built-in types come without theirs."""
        return str(self._node.get("description", ""))

    @property
    def default(self) -> Any:
        """The default of a field of a custom resource; built-in types come without theirs."""
        return self._node.get("default", self._definition.get("default"))

    @property
    def patch_strategies(self) -> list[str]:
        """``merge``, ``replace`` and ``retainKeys``, as the field is tagged."""
        return [
            name
            for name in str(self._node.get("x-kubernetes-patch-strategy", "")).split(",")
            if name
        ]

    @property
    def merge_key(self) -> str:
        """The key that the elements of this list are merged by in strategic merge patches, or
        ""."""
        return str(self._node.get("x-kubernetes-patch-merge-key", ""))

    @property
    def list_type(self) -> str:
        """``map``, ``set`` or ``atomic`` for server-side apply; "" means atomic."""
        return str(self._extension("x-kubernetes-list-type"))

    @property
    def list_map_keys(self) -> list[str]:
        return cast(list[str], self._extension("x-kubernetes-list-map-keys") or [])

    @property
    def map_type(self) -> str:
        """``atomic`` or ``granular`` for server-side apply; "" means granular."""
        return str(self._extension("x-kubernetes-map-type"))

    @property
    def int_or_string(self) -> bool:
        """True for a field that takes a number or a string."""
        return bool(self._extension("x-kubernetes-int-or-string")) or self.go_name == "IntOrString"

    @property
    def preserves_unknown_fields(self) -> bool:
        return bool(self._extension("x-kubernetes-preserve-unknown-fields"))

    def _extension(self, key: str) -> Any:
        value = self._node.get(key)
        if value is None:
            return self._definition.get(key, "")
        return value


@cache
def enums() -> dict[str, list[str]]:
    """Return the values of fields of built-in types, by the full name of the type and the field;
    ``[]`` follows the name of a list whose items have these values.

    The file is written by ``tools/generate_enums.py``.
    """
    return cast(dict[str, list[str]], json.loads((_DATA / "enums.json").read_bytes()))


@cache
def only_v3() -> dict[str, dict[str, Any]]:
    """Return what only OpenAPI v3 says of built-in types: ``defaults`` of fields and ``unions``, by
    full names.

    The file is written by ``tools/generate_openapi.py``.
    """
    return cast(dict[str, dict[str, Any]], json.loads((_DATA / "defaults.json").read_bytes()))


@cache
def schema_for(api_version: str, kind: str) -> Schema | None:
    """Return the schema of a built-in kind, or None (a custom resource, a kind that does not
    exist)."""
    group, _, version = api_version.rpartition("/")
    package = _PACKAGES.get(group) or f"io.k8s.api.{group.partition('.')[0] or 'core'}"
    for place in (f"{package}.{version}", _META):
        if kind in _package(place)["kinds"].get(api_version, ()):
            return Schema({"$ref": f"{_REFERENCE}{place}.{kind}"})
    return None


def served_kinds(name: str) -> list[str]:
    """Return the groups and versions of which a type, by its full name, is a kind; [] for one that
    is no kind."""
    package, _, kind = name.rpartition(".")
    return [
        api_version for api_version, kinds in _package(package)["kinds"].items() if kind in kinds
    ]


@cache
def definition(name: str) -> dict[str, Any]:
    """Return the OpenAPI of a type by its full name. Raises KeyError."""
    return parse_definition(name)


def parse_definition(name: str) -> dict[str, Any]:
    """Return the OpenAPI of a type as :func:`definition` does, as an object of the caller's own."""
    package, _, kind = name.rpartition(".")
    facts = _package(package)["types"][kind]
    if "type" in facts:
        return _node(facts["type"], package)
    node = {
        "type": "object",
        "properties": {name: _node(text, package) for name, text in facts["fields"].items()},
        "required": facts.get("required", []),
    }
    if "map" in facts:
        return {**node, _EXTENSIONS["map"]: facts["map"]}
    return node


@cache
def _package(name: str) -> dict[str, Any]:
    path = _DATA / f"{name}.json"
    if path.exists():
        return cast(dict[str, Any], json.loads(path.read_bytes()))
    return {"kinds": {}, "types": {}}


def _node(text: str, package: str) -> dict[str, Any]:
    """Read a type as the table writes it, ``[]Container list=map keys=name``, into a node of
    OpenAPI."""
    type_, *words = text.split(" ")
    node = _typed(type_, package)
    for word in words:
        name, _, value = word.partition("=")
        node[_EXTENSIONS[name]] = value.split(",") if name == "keys" else value
    return node


def _typed(type_: str, package: str) -> dict[str, Any]:
    if type_.startswith("[]"):
        return {"type": "array", "items": _typed(type_[2:], package)}
    if type_.startswith("map[string]"):
        return {
            "type": "object",
            "additionalProperties": _typed(type_[len("map[string]") :], package),
        }

    if type_ == "any":
        return {}
    name, _, format_ = type_.partition(":")
    if name in _JSON_TYPES:
        if format_:
            return {"type": name, "format": format_}
        return {"type": name}

    return {"$ref": f"{_REFERENCE}{name if '.' in name else f'{package}.{name}'}"}
