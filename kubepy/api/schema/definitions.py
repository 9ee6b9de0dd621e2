"""The types of the API as OpenAPI documents define them, with descriptions where those are
installed.

Structure, defaults and enumerations are the facts of ``data``; descriptions come from the package
``kubernetes-validate``, which the extras ``explain`` and ``serve`` install.
Upstream: ``pkg/generated/openapi``, ``kube-openapi/pkg/builder3``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from kubepy.api.meta import Object
from kubepy.api.schema.openapi import enums, only_v3, parse_definition, served_kinds

DESCRIPTIONS_PACKAGE = (
    "kubernetes_validate"  # of the optional dependencies named "explain" in pyproject.toml
)
NEWEST = (1, 36)
SCHEMAS = "#/components/schemas/"
V2_DEFINITIONS = "#/definitions/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_ONE_OF: dict[str, Object] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {
        "oneOf": [{"type": "string"}, {"type": "number"}]
    },
}
_METRICS = "io.k8s.metrics.pkg.apis.metrics.v1beta1"


# --- descriptions ---------------------------------------------------------------------------------


def schemas_folder() -> Path | None:
    """Return the folder of the newest schemas that are not newer than v1.36; None if the package is
    not installed.

    It holds a small JSON file per type, and ``_definitions.json`` with all of them. Nothing of the
    package is imported.
    """
    spec = PathFinder.find_spec(DESCRIPTIONS_PACKAGE)
    for place in (spec and spec.submodule_search_locations) or ():
        folders = {
            tuple(map(int, path.name.removeprefix("v").partition("-")[0].split("."))): path
            for path in (Path(place) / "kubernetes-json-schema").glob("v*-local")
        }
        if usable := [version for version in folders if version[:2] <= NEWEST]:
            return folders[max(usable)]
    return None


class Descriptions:
    """The descriptions of built-in types and of their fields, "" where there is none.

    :param folder: the folder of their schemas; None: they are not installed, and all descriptions
        are "".
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._all: dict[str, dict[str, str]] | None = None

    def type(self, name: str) -> str:
        """Return the description of a type, by its full name."""
        return self._of(name).get("", "")

    def field(self, owner: str, name: str) -> str:
        """Return the description of a field, by the full name of the type that has it."""
        return self._of(owner).get(name, "")

    def _of(self, name: str) -> dict[str, str]:
        """Read ``io.k8s.api.apps.v1.DaemonSetSpec`` from ``daemonsetspec-apps-v1.json``, Pod from
        ``pod-v1.json``."""
        if self.folder is None:
            return {}
        if self._all is None:
            group, version, kind = name.split(".")[-3:]
            path = (
                self.folder
                / f"{kind.lower()}-{'' if group == 'core' else f'{group}-'}{version}.json"
            )
            if path.exists():
                return _descriptions_in(json.loads(path.read_bytes()))
            self.read_all()
        return (self._all or {}).get(name, {})

    def read_all(self) -> None:
        """Read the descriptions of all types at once."""
        if self.folder is not None and self._all is None:
            definitions = json.loads((self.folder / "_definitions.json").read_bytes())["$defs"]
            self._all = {name: _descriptions_in(node) for name, node in definitions.items()}


def _descriptions_in(definition: Object) -> dict[str, str]:
    fields = {
        name: str(node.get("description", ""))
        for name, node in definition.get("properties", {}).items()
    }
    return {**fields, "": str(definition.get("description", ""))}


@cache
def installed_descriptions() -> Descriptions:
    """Return the descriptions that are installed, all in memory."""
    descriptions = Descriptions(schemas_folder())
    descriptions.read_all()
    return descriptions


# --- definitions ----------------------------------------------------------------------------------


def with_references(
    names: Iterable[str], own: dict[str, Object], api_versions: Collection[str]
) -> dict[str, Object]:
    """Return types with all those that they refer to, as OpenAPI v3 defines them, by their full
    names.

    :param own: definitions that are no built-in types.
    :param api_versions: kinds that every group and version has are listed for these only; for all
        if there are none.
    """
    definitions: dict[str, Object] = {}
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in definitions:
            definition = own[name] if name in own else define(name, api_versions)
            definitions[name] = definition
            pending += references_in(definition)
    return dict(sorted(definitions.items()))


def references_in(part: Any) -> set[str]:
    """Return the full names of the types that a part of a document refers to."""
    names: set[str] = set()
    pending = [part]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str):
                names.add(reference.removeprefix(SCHEMAS))
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return names


def define(name: str, api_versions: Collection[str]) -> Object:
    """Return the definition of a built-in type in OpenAPI v3. Raises KeyError."""
    if name.startswith(_METRICS):
        return _metrics_definition(name.rpartition(".")[2])
    descriptions = installed_descriptions()
    extra = only_v3()
    parsed = parse_definition(name)
    definition: Object = {}
    if text := descriptions.type(name):
        definition["description"] = text
    if name in _ONE_OF:
        return {**definition, **_ONE_OF[name]}
    definition |= {
        key: value for key, value in parsed.items() if key not in ("properties", "required")
    }
    if required := parsed.get("required"):
        definition["required"] = required
    if fields := parsed.get("properties"):
        defaults = extra["defaults"].get(name, {})
        definition["properties"] = {
            field: _property(
                _with_values(node, f"{name}.{field}[]"),
                descriptions.field(name, field),
                defaults.get(field),
                enums().get(f"{name}.{field}", []),
            )
            for field, node in fields.items()
        }

    is_everywhere = name.startswith(META) and bool(api_versions)
    if kinds := [kind for kind in served_kinds(name) if not is_everywhere or kind in api_versions]:
        short_name = name.rpartition(".")[2]
        definition["x-kubernetes-group-version-kind"] = [
            {"group": group, "version": version, "kind": short_name}
            for group, _, version in sorted(kind.rpartition("/") for kind in kinds)
        ]

    if unions := extra["unions"].get(name):
        definition["x-kubernetes-unions"] = unions
    return definition


def _property(node: Object, description: str, default: Any, values: list[str]) -> Object:
    """Return a field. A reference stands in ``allOf`` if there is anything else to say."""
    schema = _of_document(node)
    extra: Object = {"description": description} if description else {}
    if default is not None:
        extra["default"] = default
    if values:
        extra["enum"] = values
    if "$ref" in schema and (extra or len(schema) > 1):
        return {**extra, "allOf": [{"$ref": schema.pop("$ref")}], **schema}
    return {**extra, **schema}


def _with_values(node: Object, key: str) -> Object:
    """Return a list or map whose items have their enumeration, if they have one."""
    if key not in enums():
        return node
    inner = "items" if "items" in node else "additionalProperties"
    return {**node, inner: {**node[inner], "enum": enums()[key]}}


def _of_document(node: Object) -> Object:
    """Return a node of a built-in type with the references of a document."""
    schema = dict(node)
    if "$ref" in schema:
        schema["$ref"] = SCHEMAS + schema["$ref"].rpartition("/")[2]
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            schema[inner] = _of_document(schema[inner])
    return schema


def reference(name: str, description: str = "") -> Object:
    """Return a reference to a type by its full name."""
    node = {"$ref": f"{SCHEMAS}{name}"}
    if description:
        return {"description": description, "allOf": [node]}
    return node


def type_meta() -> Object:
    """Return the fields ``apiVersion`` and ``kind`` as every kind has them."""
    descriptions = installed_descriptions()
    every_kind = "io.k8s.api.core.v1.ConfigMap"
    return {
        field: _property({"type": "string"}, descriptions.field(every_kind, field), None, [])
        for field in ("apiVersion", "kind")
    }


def object_meta() -> Object:
    """Return the field ``metadata`` as kinds have it."""
    return reference(
        f"{META}.ObjectMeta", installed_descriptions().field("io.k8s.api.core.v1.Pod", "metadata")
    )


def list_meta() -> Object:
    """Return the field ``metadata`` as kinds of lists have it."""
    return reference(
        f"{META}.ListMeta", installed_descriptions().field("io.k8s.api.core.v1.PodList", "metadata")
    )


def _metrics_definition(kind: str) -> Object:
    """Return a type of metrics-server's API, which is not among upstream's schemas."""
    usage = {
        "type": "object",
        "additionalProperties": reference("io.k8s.apimachinery.pkg.api.resource.Quantity"),
    }
    by_kind: Object = {
        "NodeMetrics": {"usage": usage},
        "PodMetrics": {
            "containers": {"type": "array", "items": reference(f"{_METRICS}.ContainerMetrics")}
        },
        "ContainerMetrics": {"name": {"type": "string", "default": ""}, "usage": usage},
    }
    own: Object = by_kind.get(kind) or {
        "items": {"type": "array", "items": reference(f"{_METRICS}.{kind.removesuffix('List')}")}
    }
    if kind == "ContainerMetrics":
        return {"type": "object", "required": ["name", "usage"], "properties": own}
    head = {
        **type_meta(),
        "metadata": reference(f"{META}.{'ListMeta' if 'items' in own else 'ObjectMeta'}"),
    }
    if "items" not in own:
        own |= {"timestamp": reference(f"{META}.Time"), "window": {"type": "string"}}
    return {
        "type": "object",
        "required": [field for field in own if field != "metadata"],
        "properties": {**head, **own},
        "x-kubernetes-group-version-kind": [
            {"group": "metrics.k8s.io", "version": "v1beta1", "kind": kind}
        ],
    }


# --- OpenAPI v2 -----------------------------------------------------------------------------------


def to_v2(name: str, definition: Object) -> Object:
    """Return a definition of OpenAPI v3 as v2 has it: without defaults and alternatives."""
    if name in _ONE_OF:
        kept = {key: value for key, value in definition.items() if key != "oneOf"}
        return {**kept, "type": "string"}
    converted: Object = v2_schema(definition)
    return converted


def v2_schema(node: Any) -> Any:
    """Return a schema of v3 as v2 has it."""
    if not isinstance(node, dict):
        return node
    schema: Object = {}
    for key, value in node.items():
        if key == "$ref":
            schema[key] = V2_DEFINITIONS + value.removeprefix(SCHEMAS)
        elif key == "allOf" and len(value) == 1 and "$ref" in value[0]:
            schema["$ref"] = V2_DEFINITIONS + value[0]["$ref"].removeprefix(SCHEMAS)
        elif key == "properties":
            schema[key] = {field: v2_schema(inner) for field, inner in value.items()}
        elif key in ("items", "additionalProperties"):
            schema[key] = v2_schema(value)
        elif key not in ("allOf", "oneOf", "anyOf", "not", "default", "nullable"):
            schema[key] = value

    return schema
