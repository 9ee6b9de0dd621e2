"""Patches of a kustomization: strategic merge and JSON patches, inline or in files.

Upstream: ``kustomize/api/internal/builtins/{PatchTransformer,PatchStrategicMergeTransformer}.go``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kubepy.api.meta import Object, clone
from kubepy.api.schema.openapi import schema_for
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.files import FileLoader, parse
from kubepy.cli.kustomization.resources import KustomizedResource, ResMap
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote
from kubepy.storage.yaml import dump

with lazy_imports():
    from kubepy.api import errors as api_errors
    from kubepy.api.patches import documents


@dataclass
class PatchTransformer:
    """A patch: objects to merge, or JSON operations (then ``merges`` is empty).

    :param source: the patch as messages name it.
    :param target: selects the objects to patch; ``{}``: each patch selects the object of its own name.
    :param missing: begins the message for an object that is not there; ``{}`` in it stands for its id.
    """

    source: str
    merges: list[Object]
    operations: list[Any]
    target: dict[str, str]
    options: Object
    missing: str = 'no resource matches strategic merge patch "{}": '

    def transform(self, resources: ResMap) -> None:
        """Apply the patch to the objects that it selects. Raises CliError."""
        if self.operations:
            if not self.target:
                raise CliError(f"must specify a target for JSON patch {self.source}")
            for resource in resources.select(self.target):
                _apply_operations(resource, self.operations)
            return
        if self.target and len(self.merges) > 1:
            raise CliError("Multiple Strategic-Merge Patches in one `patches` entry is not allowed to set "
                           f"`patches.target` field: {self.source}")
        for change in self.merges:
            patch_id = KustomizedResource(change).id
            try:
                selected = resources.select(self.target) if self.target else [resources.named(patch_id)]
            except CliError as error:
                missing = "" if self.target else self.missing.format(patch_id)
                raise CliError(f"{missing}{error}") from None
            for resource in selected:
                if change.get("$patch") == "delete":
                    resources.all.remove(resource)
                else:
                    _merge(resource, change, self.options)


def strategic_patches(loader: FileLoader, settings: Object) -> Iterator[PatchTransformer]:
    """Read ``patchesStrategicMerge``: paths, or objects inline."""
    paths = settings.get("patchesStrategicMerge") or []
    for entry in paths:
        objects: list[Object] = []
        with suppress(CliError):  # then it is a path
            objects = parse(entry) if ":" in entry else []
        is_inline = all(obj.get("kind") and (obj.get("metadata") or {}).get("name") for obj in objects)
        try:
            merges = objects if objects and is_inline else loader.documents(entry)
        except CliError as error:
            raise _configuration_error("PatchStrategicMergeTransformer", {"paths": paths}, str(error)) from None
        yield PatchTransformer(entry, merges, [], {}, {}, missing="")


def _configuration_error(transformer: str, config: Object, problem: str) -> CliError:
    return CliError(f"trouble configuring builtin {transformer} with config: `\n{dump(config)}`: {problem}")


def json_patches(loader: FileLoader, entries: list[Object]) -> Iterator[PatchTransformer]:
    """Read ``patchesJson6902``."""
    for entry in entries:
        try:
            if entry.get("path"):
                loader.read(entry["path"])
            elif not entry.get("patch"):
                raise CliError("empty file path and empty jsonOp")
        except CliError as error:
            config = {key: entry[key] for key in ("path", "target") if entry.get(key)}
            raise _configuration_error("PatchJson6902Transformer", config, str(error)) from None
    return general_patches(loader, entries)


def general_patches(loader: FileLoader, entries: list[Object]) -> Iterator[PatchTransformer]:
    """Read ``patches``."""
    for entry in entries:
        try:
            text, source = _patch_text(loader, entry)
        except CliError as error:
            raise _configuration_error("PatchTransformer", entry, str(error)) from None
        try:
            contents = [json.loads(text)] if text.startswith("[") else parse(text)
        except (CliError, ValueError):
            raise CliError(f"unable to parse SM or JSON patch from {source}") from None
        operations = contents[0] if contents and isinstance(contents[0], list) else []
        merges = [] if operations else contents
        for change in merges:
            if not (isinstance(change, dict) and change.get("kind") and isinstance(change.get("metadata"), dict)):
                raise CliError(f"unable to parse SM or JSON patch from {source}")
        target = {key: str(value) for key, value in (entry.get("target") or {}).items()}
        yield PatchTransformer(source, merges, operations, target, entry.get("options") or {})


def _patch_text(loader: FileLoader, entry: Object) -> tuple[str, str]:
    """Return the text of a patch, and where it comes from as messages say it."""
    text, path = str(entry.get("patch") or "").strip(), entry.get("path") or ""
    if not text and not path:
        raise CliError(f"must specify one of patch and path in\n{dump(entry)}")
    if text and path:
        raise CliError(f"patch and path can't be set at the same time\n{dump(entry)}")
    if text:
        return text, f"[patch: {text!r}]"
    try:
        return loader.read(path).decode(errors="replace"), f"[path: {quote(path)}]"
    except CliError as error:
        raise CliError(f"failed to get the patch file from path({path}): {error}") from None


def _merge(resource: KustomizedResource, change: Object, options: Object) -> None:
    """Merge a patch into a resource: built-in kinds strategically, others as JSON. Name, kind and namespace stay."""
    before, obj = resource.id, resource.object
    if options.get("allowNameChange") or options.get("allowKindChange"):
        resource.remember()
    if change.get("$patch") == "replace":
        merged = {key: clone(value) for key, value in change.items() if key != "$patch"}
    else:
        schema = schema_for(obj["apiVersion"], obj["kind"])
        try:
            merged = (documents.merge_patch(obj, change) if schema is None
                      else documents.strategic_merge_patch(obj, change, schema))
        except Exception as error:
            raise _patch_error(error) from None
    merged["metadata"] = {**(merged.get("metadata") or {})}
    if not options.get("allowNameChange"):
        merged["metadata"]["name"] = before.name
    if not options.get("allowKindChange"):
        merged.update(kind=before.kind, apiVersion=obj["apiVersion"])
    if before.namespace:
        merged["metadata"]["namespace"] = before.namespace
    else:
        merged["metadata"].pop("namespace", None)
    resource.object = merged


def _apply_operations(resource: KustomizedResource, operations: list[Any]) -> None:
    """Apply a JSON patch. The object has annotations meanwhile, as kustomize keeps notes of its own there."""
    resource.remember()
    meta = resource.object["metadata"]
    annotated = {**resource.object, "metadata": {**meta, "annotations": meta.get("annotations") or {}}}
    try:
        patched = documents.json_patch(annotated, operations, strict=True)
    except Exception as error:
        raise _patch_error(error) from None
    patched_meta = patched.get("metadata")
    if isinstance(patched_meta, dict) and patched_meta.get("annotations") == {}:
        del patched_meta["annotations"]
    resource.object = patched


def _patch_error(error: Exception) -> Exception:
    """Return a CliError with the cause of an API error; other exceptions as they are."""
    if not isinstance(error, api_errors.Status):
        return error
    return CliError(str(error.__cause__ or f"a patch cannot be applied: {error}"))
