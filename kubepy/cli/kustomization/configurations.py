"""Transformer configurations: the fields that each transformer changes, the defaults and what files
add to them.

``configurations`` names files of field specs, ``crds`` OpenAPI definitions whose extensions mark
such fields. Upstream: ``kustomize/api/internal/plugins/builtinconfig``,
``api/internal/accumulator/loadconfigfromcrds.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from kubepy.api.meta import Object, nested_list, nested_map
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization import fieldspecs
from kubepy.cli.kustomization.fieldspecs import FieldSpec, NameReference, merge_specs, spec_of
from kubepy.cli.kustomization.files import FileLoader, contents_of
from kubepy.cli.kustomization.settings import FIELD_SPECS, Struct, decode

# The fields of a configuration, and their names in Go.
NAMES = {
    "namePrefix": "NamePrefix",
    "nameSuffix": "NameSuffix",
    "namespace": "NameSpace",
    "commonAnnotations": "CommonAnnotations",
    "commonLabels": "CommonLabels",
    "labels": "Labels",
    "templateLabels": "TemplateLabels",
    "varReference": "VarReference",
    "nameReference": "NameReference",
    "images": "Images",
    "replicas": "Replicas",
}
_REFERENCE = Struct(
    "NameBackReferences", group="string", version="string", kind="string", fieldSpecs=FIELD_SPECS
)
_SHAPE = Struct(
    "TransformerConfig",
    **{name: [_REFERENCE] if name == "nameReference" else FIELD_SPECS for name in NAMES},
)


class TransformerConfig(NamedTuple):
    """Field specs by the name of their field, and the references to names."""

    specs: dict[str, list[FieldSpec]]
    references: list[NameReference]

    def merged(self, other: TransformerConfig) -> TransformerConfig:
        """Return both configurations as one. Raises CliError for field specs that contradict each
        other."""
        specs = {}
        references = self.references
        for name, go_name in NAMES.items():
            try:
                if name == "nameReference":
                    references = merge_references(references, other.references)
                else:
                    specs[name] = merge_specs(self.specs.get(name, []), other.specs.get(name, []))
                    if name != "templateLabels":
                        specs[name].sort(key=lambda spec: spec.order)
            except CliError as error:
                raise CliError(f"failed to merge {go_name} fieldSpec: {error}") from None
        return TransformerConfig(specs, sorted(references, key=lambda reference: reference.order))


EMPTY = TransformerConfig({}, [])


def merge_references(
    references: list[NameReference], more: list[NameReference]
) -> list[NameReference]:
    """Add references; those of one kind become one. Raises CliError for field specs that
    conflict."""
    merged = list(references)
    for reference in more:
        gvk = (reference.group, reference.version, reference.kind)
        same = [
            index for index, old in enumerate(merged) if (old.group, old.version, old.kind) == gvk
        ]
        for index in same:
            merged[index] = merged[index]._replace(
                fields=merge_specs(merged[index].fields, reference.fields)
            )
        if not same:
            merged.append(reference)
    return merged


@cache
def defaults() -> TransformerConfig:
    """Return the configuration of a kustomization that has none of its own."""
    specs = {
        "namePrefix": fieldspecs.NAMES,
        "nameSuffix": fieldspecs.NAMES,
        "namespace": fieldspecs.NAMESPACES,
        "commonAnnotations": fieldspecs.COMMON_ANNOTATIONS,
        "commonLabels": fieldspecs.COMMON_LABELS,
        "templateLabels": fieldspecs.TEMPLATE_LABELS,
        "varReference": fieldspecs.VARIABLES,
        "images": fieldspecs.IMAGES,
        "replicas": fieldspecs.REPLICAS,
    }
    return EMPTY.merged(TransformerConfig(specs, fieldspecs.NAME_REFERENCES))


def load_configurations(loader: FileLoader, paths: list[str]) -> TransformerConfig:
    """Return the defaults with what the files of ``configurations`` add. Raises CliError."""
    added = EMPTY
    for path in paths:
        settings = _decoded(loader.text(path))
        specs = {
            name: [spec_of(entry) for entry in settings.get(name) or ()]
            for name in NAMES
            if name != "nameReference"
        }
        references = [
            NameReference(
                entry.get("kind", ""),
                entry.get("group", ""),
                [spec_of(field) for field in nested_list(entry, "fieldSpecs")],
                entry.get("version", ""),
            )
            for entry in nested_list(settings, "nameReference")
        ]
        added = added.merged(TransformerConfig(specs, references))

    if paths:
        return defaults().merged(added)
    return defaults()


def _decoded(text: str) -> Object:
    """Return the fields of a configuration file. Raises CliError."""
    try:
        contents = contents_of(text, old_booleans=True)
    except CliError as error:
        raise CliError(f"error converting YAML to JSON: {error}") from None
    try:
        return decode(contents[0] if contents else None, _SHAPE, strict=True) or {}
    except CliError as error:
        raise CliError(f"error unmarshaling JSON: while decoding JSON: {error}") from None


# --- crds -----------------------------------------------------------------------------------------

_EXTENSIONS = {
    "x-kubernetes-annotation": "commonAnnotations",
    "x-kubernetes-label-selector": "commonLabels",
    "x-kubernetes-identity": "namePrefix",
}
_VERSION, _KIND, _NAME_KEY = (
    f"x-kubernetes-object-ref-{part}" for part in ("api-version", "kind", "name-key")
)


_DEFINITION = Struct(
    "OpenAPIDefinition", Schema=Struct("Schema", properties={"*": None}), Dependencies=None
)


def load_crds(loader: FileLoader, paths: list[str]) -> TransformerConfig:
    """Return the field specs that the OpenAPI definitions of ``crds`` mark. Raises CliError."""
    config = EMPTY
    for path in paths:
        try:
            contents = contents_of(loader.text(path), old_booleans=True)
            definitions = decode(contents[0] if contents else None, {"*": _DEFINITION}) or {}
        except CliError as error:
            raise CliError(f"unable to parse open API definition from '{path}': {error}") from None
        for name, definition in definitions.items():
            if {"kind", "apiVersion", "metadata"} <= set(_properties(definition)):
                for found in _marked(definitions, name, name.rpartition(".")[2], ()):
                    config = config.merged(found)
    return config


def _properties(definition: Object | None) -> dict[str, Any]:
    schema = nested_map(definition or {}, "Schema")
    return {
        name: node
        for name, node in nested_map(schema, "properties").items()
        if isinstance(node, dict)
    }


def _marked(
    definitions: dict[str, Any], name: str, kind: str, path: tuple[str, ...]
) -> Iterator[TransformerConfig]:
    """Yield a configuration for each mark on a definition and on those that it refers to. Raises
    CliError."""
    if len(path) > len(definitions) + 20:
        raise CliError(f"the definition {name} refers to itself")
    for field, node in sorted(_properties(definitions.get(name)).items()):
        inner = (*path, field)
        for extension, target in _EXTENSIONS.items():
            if isinstance(node.get(extension), str):
                yield TransformerConfig({target: [FieldSpec("/".join(inner), kind)]}, [])
        if isinstance(node.get(_VERSION), str) and isinstance(node.get(_KIND), str):
            key = node[_NAME_KEY] if isinstance(node.get(_NAME_KEY), str) else "name"
            fields = [FieldSpec("/".join((*inner, key)), kind)]
            yield TransformerConfig({}, [NameReference(node[_KIND], "", fields, node[_VERSION])])
        if isinstance(node.get("$ref"), str):
            yield from _marked(definitions, node["$ref"], kind, inner)
