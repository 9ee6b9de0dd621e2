"""Generators and transformers by kind: those that a kustomization's fields make, and those
configured in files.

All are built in. What needs a program (``exec``, containers, Starlark, Go plugins) is refused.
Upstream: ``kustomize/api/internal/target/kusttarget_configplugin.go``,
``api/internal/plugins/loader``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from kubepy.api.meta import Object, nested_list, nested_map
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization import generators, patches, replacements, transformers
from kubepy.cli.kustomization.configurations import TransformerConfig
from kubepy.cli.kustomization.fieldspecs import METADATA_LABELS, FieldSpec, merge_specs, spec_of
from kubepy.cli.kustomization.files import FileLoader
from kubepy.cli.kustomization.generators import Generator, merged_options
from kubepy.cli.kustomization.resources import KustomizedResource
from kubepy.cli.kustomization.transformers import Transformer
from kubepy.storage.yaml import dump

P = TypeVar("P")
Configure = Callable[[FileLoader, Object], P]

GENERATORS: dict[str, Configure[Generator]] = {
    "ConfigMapGenerator": generators.config_map_generator,
    "SecretGenerator": generators.secret_generator,
    "IAMPolicyGenerator": generators.iam_policy_generator,
}
TRANSFORMERS: dict[str, Configure[Transformer]] = {
    "PatchStrategicMergeTransformer": patches.strategic_merge_transformer,
    "PatchTransformer": patches.patch_transformer,
    "NamespaceTransformer": transformers.namespace_transformer,
    "PrefixTransformer": transformers.prefix_transformer,
    "SuffixTransformer": transformers.suffix_transformer,
    "PrefixSuffixTransformer": transformers.affixes_transformer,
    "LabelTransformer": transformers.label_transformer,
    "AnnotationsTransformer": transformers.annotations_transformer,
    "PatchJson6902Transformer": patches.json_transformer,
    "ReplicaCountTransformer": transformers.replica_count_transformer,
    "ImageTagTransformer": transformers.image_tag_transformer,
    "ReplacementTransformer": replacements.replacement_transformer,
    "ValueAddTransformer": transformers.value_add_transformer,
    "HashTransformer": transformers.hash_transformer,
}


# --- from the fields of a kustomization -----------------------------------------------------------


def built_in_generators(loader: FileLoader, settings: Object) -> Iterator[tuple[str, Generator]]:
    """Yield the kind and the generator of each ConfigMap and Secret to generate. Raises
    CliError."""
    general = settings.get("generatorOptions")
    for kind, field in (
        ("ConfigMapGenerator", "configMapGenerator"),
        ("SecretGenerator", "secretGenerator"),
    ):
        for args in settings.get(field) or ():
            if general is not None:
                args = {**args, "options": merged_options(general, args.get("options"))}
            yield kind, _configured(GENERATORS, kind, loader, args)


def built_in_transformers(
    loader: FileLoader, settings: Object, config: TransformerConfig
) -> Iterator[tuple[str, Transformer]]:
    """Yield the kind and the transformer of each field of a kustomization, in the order of use.
    Raises CliError."""
    for kind, fields in transformer_configs(settings, config):
        yield kind, _configured(TRANSFORMERS, kind, loader, fields)


def _configured(
    plugins: dict[str, Configure[P]], kind: str, loader: FileLoader, fields: Object
) -> P:
    try:
        return plugins[kind](loader, fields)
    except CliError as error:
        shown = {key: value for key, value in fields.items() if value not in (None, "")}
        raise CliError(
            f"trouble configuring builtin {kind} with config: `\n{dump(shown)}`: {error}"
        ) from None


def transformer_configs(
    settings: Object, config: TransformerConfig
) -> Iterator[tuple[str, Object]]:
    """Yield the kinds of transformers and their configurations."""

    def specs(name: str) -> list[Object]:
        return _entries(config.specs.get(name, []))

    if paths := settings.get("patchesStrategicMerge"):
        yield "PatchStrategicMergeTransformer", {"paths": paths}
    for entry in nested_list(settings, "patches"):
        yield "PatchTransformer", entry
    if namespace := settings.get("namespace"):
        yield (
            "NamespaceTransformer",
            {"metadata": {"namespace": namespace}, "fieldSpecs": specs("namespace")},
        )

    for name, field in (("Prefix", "namePrefix"), ("Suffix", "nameSuffix")):
        if affix := settings.get(field):
            yield f"{name}Transformer", {name.lower(): affix, "fieldSpecs": specs(field)}
    yield from label_configs(settings, config)
    if pairs := settings.get("commonAnnotations"):
        yield (
            "AnnotationsTransformer",
            {"annotations": pairs, "fieldSpecs": specs("commonAnnotations")},
        )

    for entry in nested_list(settings, "patchesJson6902"):
        fields = {
            "target": entry.get("target"),
            "path": entry.get("path"),
            "jsonOp": entry.get("patch"),
        }
        yield "PatchJson6902Transformer", fields

    for entry in nested_list(settings, "replicas"):
        yield "ReplicaCountTransformer", {"replica": entry, "fieldSpecs": specs("replicas")}
    for entry in nested_list(settings, "images"):
        yield "ImageTagTransformer", {"imageTag": entry, "fieldSpecs": specs("images")}
    if entries := settings.get("replacements"):
        yield "ReplacementTransformer", {"replacements": entries}


def label_configs(settings: Object, config: TransformerConfig) -> Iterator[tuple[str, Object]]:
    """Yield the configurations for ``labels`` and ``commonLabels``. Raises CliError for specs that
    conflict."""
    labels = nested_list(settings, "labels")
    for label in labels:
        specs = [spec_of(entry) for entry in nested_list(label, "fields")]
        try:
            specs = merge_specs(specs, config.specs.get("labels", []))
            if label.get("includeSelectors"):
                specs = merge_specs(specs, config.specs.get("commonLabels", []))
            else:
                if label.get("includeTemplates"):
                    try:
                        specs = merge_specs(specs, config.specs.get("templateLabels", []))
                    except CliError as error:
                        raise CliError(f"failed to merge template fieldSpec: {error}") from None
                specs = merge_specs(specs, METADATA_LABELS)
        except CliError as error:
            is_template = str(error).startswith("failed to merge template")
            raise error if is_template else CliError(f"failed to merge labels: {error}") from None
        yield (
            "LabelTransformer",
            {"labels": nested_map(label, "pairs"), "fieldSpecs": _entries(specs)},
        )

    if labels or settings.get("commonLabels"):
        yield (
            "LabelTransformer",
            {
                "labels": nested_map(settings, "commonLabels"),
                "fieldSpecs": _entries(config.specs.get("commonLabels", [])),
            },
        )


def _entries(specs: list[FieldSpec]) -> list[Object]:
    return [{name: value for name, value in spec._asdict().items() if value} for spec in specs]


# --- configured in files --------------------------------------------------------------------------


def external_generator(loader: FileLoader, resource: KustomizedResource) -> Generator:
    """Return the generator that a resource configures. Raises CliError."""
    try:
        if is_built_in(resource) and resource.id.kind in TRANSFORMERS:
            _external(TRANSFORMERS, loader, resource)
            raise CliError(f"plugin {resource.original} not a generator")
        return _external(GENERATORS, loader, resource)
    except CliError as error:
        raise CliError(f"failed to load generator: {error}") from None


def external_transformer(loader: FileLoader, resource: KustomizedResource) -> Transformer:
    """Return the transformer that a resource configures. Raises CliError."""
    if is_built_in(resource) and resource.id.kind in GENERATORS:
        _external(GENERATORS, loader, resource)
        raise CliError(f"plugin {resource.original} not a transformer")
    return _external(TRANSFORMERS, loader, resource)


def is_built_in(resource: KustomizedResource) -> bool:
    """Return whether a resource configures a plugin of kustomize itself."""
    return resource.id.group == "" and resource.id.version == "builtin"


def _external(
    plugins: dict[str, Configure[P]], loader: FileLoader, resource: KustomizedResource
) -> P:
    kind = resource.id.kind
    if not is_built_in(resource):
        raise CliError(
            f"external plugins disabled; unable to load external plugin '{resource.original.kind}'"
        )
    if kind == "HelmChartInflationGenerator":
        raise CliError(f"plugin {resource.original} is not supported: no charts are inflated")
    if kind not in plugins:
        raise CliError(f"unable to load builtin {kind}.builtin.[noGrp]")
    try:
        return plugins[kind](loader, resource.object)
    except CliError as error:
        raise CliError(f"plugin {resource.original} fails configuration: {error}") from None
