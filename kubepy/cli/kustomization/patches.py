"""Patches of a kustomization: strategic merge and JSON patches, inline or in files.

Upstream: ``kustomize/api/internal/builtins/Patch*Transformer.go``, ``api/filters/patch*``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubepy.api.meta import Object, nested_list, nested_map
from kubepy.api.values.goformat import json_type_name, to_json
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.files import FileLoader, contents_of
from kubepy.cli.kustomization.merges import merge
from kubepy.cli.kustomization.resources import (
    KustomizedResource,
    ResMap,
    load_resources,
    read_resources,
)
from kubepy.cli.kustomization.settings import PATCH, SELECTOR, TEXTS, Struct, decode
from kubepy.cli.kustomization.transformers import Transformer
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote
from kubepy.storage.yaml import dump

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.api.patches import documents
    from kubepy.storage import yaml

_PATCH = Struct("PatchTransformerPlugin", **PATCH)
_MERGE = Struct("PatchStrategicMergeTransformerPlugin", paths=TEXTS, patches="string")
_JSON = Struct("PatchJson6902TransformerPlugin", target=SELECTOR, path="string", jsonOp="string")


def patch_transformer(loader: FileLoader, config: Object) -> Transformer:
    """Apply a patch of either form to the objects that its target selects, or that it names."""
    shown = {name: value for name, value in config.items() if value is not None}
    config = decode(config, _PATCH)
    text, source = _patch_text(loader, config, shown)
    target = config.get("target")
    options = nested_map(config, "options")
    merges: list[KustomizedResource] | None = None
    operations: list[Any] | None = None
    try:
        merges = read_resources(text)
    except CliError:
        try:
            operations = _operations(text)
        except CliError:
            raise CliError(f"unable to parse SM or JSON patch from {source}") from None

    def transform(resources: ResMap) -> None:
        if operations is not None:
            if target is None:
                raise CliError(f"must specify a target for JSON patch {source}")
            for resource in resources.select(target):
                resource.remember()
                _apply_operations(resource, operations)
        elif target is not None and merges:
            if len(merges) > 1:
                raise CliError(
                    "Multiple Strategic-Merge Patches in one `patches` entry is not allowed to set "
                    f"`patches.target` field: {source}"
                )
            _merge_selected(resources, resources.select(target), merges[0], options)

        for patch in merges or () if target is None else ():
            try:
                resource = resources.named(patch.id)
            except CliError as error:
                raise CliError(
                    f'no resource matches strategic merge patch "{patch.id}": {error}'
                ) from None
            _merge(resource, patch.object, options)

    return transform


def _patch_text(loader: FileLoader, config: Object, shown: Object) -> tuple[str, str]:
    """Return the text of a patch, and where it comes from as messages say it."""
    text = str(config.get("patch") or "").strip()
    path = config.get("path") or ""
    if not text and not path:
        raise CliError(f"must specify one of patch and path in\n{dump(shown)}")
    if text and path:
        raise CliError(f"patch and path can't be set at the same time\n{dump(shown)}")
    if text:
        return text, f"[patch: {quote(text)}]"
    try:
        return loader.text(path), f"[path: {quote(path)}]"
    except CliError as error:
        raise CliError(f"failed to get the patch file from path({path}): {error}") from None


def _operations(text: str) -> list[Any]:
    """Return the operations of a JSON patch. Raises CliError for what is none."""
    if text.startswith("["):
        try:
            operations = yaml.read_json(text)
        except yaml.YamlError as error:
            raise CliError(f"decoding {text}: {error}") from None
    else:
        contents = contents_of(text, old_booleans=True)
        operations = contents[0] if contents else None

    if not isinstance(operations, list) or not all(
        isinstance(operation, dict) for operation in operations
    ):
        kind = json_type_name(operations[0] if isinstance(operations, list) else operations)
        go_type = "jsonpatch.Operation" if isinstance(operations, list) else "jsonpatch.Patch"
        raise CliError(
            f"decoding {to_json(operations)}: json: cannot unmarshal {kind} into Go value of type "
            f"{go_type}"
        )

    return operations


def strategic_merge_transformer(loader: FileLoader, config: Object) -> Transformer:
    """Apply strategic merge patches, in files or inline, each to the object that it names."""
    config = decode(config, _MERGE)
    paths = nested_list(config, "paths")
    inline = config.get("patches") or ""
    if not paths and not inline:
        raise CliError("empty file path and empty patch content")
    patches: list[KustomizedResource] = []
    for path in paths:
        try:  # the text of a patch may stand in the place of its path
            patches += read_resources(path)
        except CliError:
            patches += load_resources(loader, path)

    if inline:
        patches += read_resources(inline)
    if not patches:
        raise CliError(f"patch appears to be empty; files=[{' '.join(paths)}], Patch={inline}")

    def transform(resources: ResMap) -> None:
        for patch in patches:
            _merge_selected(resources, [resources.named(patch.id)], patch, {})

    return transform


def json_transformer(loader: FileLoader, config: Object) -> Transformer:
    """Apply a JSON patch to the objects that its target selects."""
    config = decode(config, _JSON)
    path = config.get("path") or ""
    text = config.get("jsonOp") or ""
    if not nested_map(config, "target").get("name"):
        raise CliError("must specify the target name")
    if not path and not text:
        raise CliError("empty file path and empty jsonOp")
    if path and text:
        raise CliError("must specify a file path or jsonOp, not both")
    if path and not (text := loader.text(path)):
        raise CliError(f"patch file '{path}' empty seems to be empty")
    if not (operations := _operations(text)):
        raise CliError(f"patch appears to be empty; file={path}, JsonOp={to_json(operations)}")

    def transform(resources: ResMap) -> None:
        for resource in resources.select(config["target"]):
            _apply_operations(resource, operations)

    return transform


def _merge_selected(
    resources: ResMap,
    selected: Sequence[KustomizedResource],
    patch: KustomizedResource,
    options: Object,
) -> None:
    """Merge a patch into resources; those that it deletes are left out. Raises CliError for ids
    that become one."""
    change = patch.object
    meta = {**nested_map(change, "metadata")}
    for name in ("labels", "annotations"):  # upstream reads and writes them as texts
        if isinstance(meta.get(name), dict):
            meta[name] = {
                key: patch.text_at(("metadata", name, key), value)
                for key, value in meta[name].items()
            }

    for resource in selected:
        _merge(
            resource,
            {**change, "apiVersion": resource.object["apiVersion"], "metadata": meta},
            options,
        )

    kept = [resource for resource in resources if resource.object]
    resources.all = []
    for resource in kept:
        resources.append(resource)


def _merge(resource: KustomizedResource, change: Object, options: Object) -> None:
    """Merge a patch into a resource, whose name, kind and namespace stay unless the options say
    otherwise."""
    before = resource.id
    if options.get("allowNameChange") or options.get("allowKindChange"):
        resource.remember()
    resource.drop_blanks()
    merged = merge(resource.object, change)
    if not merged:
        resource.object = {}
        return
    merged["metadata"] = {**nested_map(merged, "metadata")}
    if not options.get("allowKindChange"):
        merged["kind"] = before.kind
    if not options.get("allowNameChange"):
        merged["metadata"]["name"] = before.name
    if before.namespace:
        merged["metadata"]["namespace"] = before.namespace
    else:
        merged["metadata"].pop("namespace", None)

    resource.object = merged


def _apply_operations(resource: KustomizedResource, operations: list[Any]) -> None:
    """Apply a JSON patch. The object has annotations meanwhile, as kustomize keeps notes of its own
    there."""
    meta = resource.object["metadata"]
    annotated = {
        **resource.object,
        "metadata": {**meta, "annotations": nested_map(meta, "annotations")},
    }
    try:
        patched = documents.json_patch(annotated, operations, strict=True)
    except Exception as error:
        if not isinstance(error, api_errors.Status):
            raise
        raise CliError(str(error.__cause__ or f"a patch cannot be applied: {error}")) from None

    patched_meta = patched.get("metadata")
    if isinstance(patched_meta, dict) and patched_meta.get("annotations") == {}:
        del patched_meta["annotations"]
    resource.object = patched
