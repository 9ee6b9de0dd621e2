"""What the API says of its own types: the OpenAPI of v1.36, out of the ``kubernetes-validate`` package.

The package holds one small JSON file per type beside one of 1.6 MB with all of them; a walk from a kind reads only the
files of the types on its way. Nothing of the package is imported.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, cast

NEWEST = (1, 36)
_REFERENCE = "#/$defs/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
# Groups whose types are not in io.k8s.api.<first part of the group>.
_PACKAGES = {
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
    "flowcontrol.apiserver.k8s.io": "io.k8s.api.flowcontrol",
    "internal.apiserver.k8s.io": "io.k8s.api.apiserverinternal",
}
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
# Types of any JSON, which their own files call objects.
_UNTYPED = {f"{_EXTENSIONS}{name}" for name in (
    "JSON", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray")}


class Schema:
    """The schema of a type or field. ``name`` is the full name of its type (``io.k8s.api.core.v1.PodSpec``), or ""."""

    __slots__ = ("_definition", "_node", "name")

    def __init__(self, node: dict[str, Any]) -> None:
        """``node`` is OpenAPI, parsed: of a built-in type or of a CustomResourceDefinition's ``openAPIV3Schema``."""
        self._node = node
        self.name = _referenced(node)
        self._definition = definition(self.name) if self.name else node

    def field(self, name: str) -> Schema | None:
        """The field of that name, or None."""
        node = (self._definition.get("properties") or {}).get(name)
        return None if node is None else Schema(node)

    def fields(self) -> dict[str, Schema]:
        """All fields by name, in the order of the file (alphabetical for built-in types)."""
        return {name: Schema(node) for name, node in (self._definition.get("properties") or {}).items()}

    def items(self) -> Schema | None:
        """What a list holds, or None where this is not a list."""
        node = self._definition.get("items")
        return None if node is None else Schema(node)

    def values(self) -> Schema | None:
        """What a map with free keys holds, or None where this is not one."""
        node = self._definition.get("additionalProperties")
        return Schema(node) if isinstance(node, dict) else None

    @property
    def go_name(self) -> str:
        """The name of the Go struct, without its package: ``PodSpec``."""
        return self.name.rpartition(".")[2]

    @property
    def type(self) -> str:
        """``object``, ``array``, ``string``, ``integer``, ``number``, ``boolean``, or "" where anything goes."""
        found = self._definition.get("type", "")
        if isinstance(found, list):
            return next((one for one in found if one != "null"), "")
        return str(found)

    @property
    def format(self) -> str:
        return str(self._definition.get("format", ""))

    @property
    def enum(self) -> list[Any]:
        return [value for value in self._definition.get("enum") or () if value is not None]

    @property
    def required(self) -> list[str]:
        return self._definition.get("required") or []

    @property
    def description(self) -> str:
        """What the field is for; where the field says nothing, what its type is."""
        return str(self._node.get("description") or self._definition.get("description") or "")

    @property
    def own_description(self) -> str:
        """What the field itself says it is for, or ""."""
        return str(self._node.get("description", ""))

    @property
    def type_description(self) -> str:
        """What the type says of itself, or ""."""
        return str(self._definition.get("description", ""))

    @property
    def default(self) -> Any:
        return self._node.get("default", self._definition.get("default"))

    @property
    def patch_strategies(self) -> list[str]:
        """``merge``, ``replace`` and ``retainKeys``, as the field is tagged."""
        return [one for one in str(self._node.get("x-kubernetes-patch-strategy", "")).split(",") if one]

    @property
    def merge_key(self) -> str:
        """The key that the elements of this list are merged by in strategic merge patches, or ""."""
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
        """Whether it takes a number or a string; the package has rewritten the format of such built-in types."""
        return bool(self._extension("x-kubernetes-int-or-string")) or self.go_name == "IntOrString"

    @property
    def preserves_unknown_fields(self) -> bool:
        return bool(self._extension("x-kubernetes-preserve-unknown-fields"))

    def _extension(self, key: str) -> Any:
        found = self._node.get(key)
        return self._definition.get(key, "") if found is None else found


@cache
def enums() -> dict[str, list[str]]:
    """The values of fields of built-in types, by the full name of the type and the field; see tools/generate_enums."""
    return cast(dict[str, list[str]], json.loads(Path(__file__).with_name("enums.json").read_bytes()))


@cache
def schema_for(api_version: str, kind: str) -> Schema | None:
    """The schema of a built-in kind, or None (a custom resource, a kind that does not exist)."""
    group, _, version = api_version.rpartition("/")
    package = _PACKAGES.get(group) or f"io.k8s.api.{group.partition('.')[0] or 'core'}"
    for name in (f"{package}.{version}.{kind}", _META + kind):
        if _is_kind(name, group, version, kind):
            return Schema({"$ref": _REFERENCE + name})
    return None


def _is_kind(name: str, group: str, version: str, kind: str) -> bool:
    kinds = (_read(name) or {}).get("x-kubernetes-group-version-kind") or ()
    return {"group": group, "kind": kind, "version": version} in kinds


def definition(name: str) -> dict[str, Any]:
    """The OpenAPI of a type by its full name. Raises KeyError."""
    if name in _UNTYPED:
        return _all_definitions()[name]
    return _read(name) or _all_definitions()[name]


@cache
def _read(name: str) -> dict[str, Any] | None:
    path = _folder() / _file_name(name)
    return cast(dict[str, Any], json.loads(path.read_bytes())) if path.exists() else None


@cache
def _all_definitions() -> dict[str, dict[str, Any]]:
    """Everything at once (7 ms), for the few types without a file of their own."""
    return cast(dict[str, dict[str, Any]], json.loads((_folder() / "_definitions.json").read_bytes())["$defs"])


def _file_name(name: str) -> str:
    """``io.k8s.api.apps.v1.DaemonSetSpec`` is in ``daemonsetspec-apps-v1.json``, core's ``Pod`` in ``pod-v1.json``."""
    group, version, kind = name.split(".")[-3:]
    middle = "" if group == "core" else f"{group}-"
    return f"{kind.lower()}-{middle}{version}.json"


def _referenced(node: dict[str, Any]) -> str:
    reference = node.get("$ref") or next((one["$ref"] for one in node.get("allOf") or () if "$ref" in one), "")
    return str(reference).rpartition(_REFERENCE)[2]


@cache
def _folder() -> Path:
    """The folder of the newest schemas that are not newer than v1.36. Raises RuntimeError."""
    spec = PathFinder.find_spec("kubernetes_validate")
    for place in (spec and spec.submodule_search_locations) or ():
        folders = {_version(one.name): one for one in (Path(place) / "kubernetes-json-schema").glob("v*-local")}
        if usable := [version for version in folders if version[:2] <= NEWEST]:
            return folders[max(usable)]
    raise RuntimeError("the package kubernetes-validate is not installed, or has no schemas up to v1.36")


def _version(name: str) -> tuple[int, ...]:
    """``v1.36.0-local`` → (1, 36, 0)."""
    return tuple(int(part) for part in name.removeprefix("v").partition("-")[0].split("."))
