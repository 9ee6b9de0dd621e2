"""Patches of a kustomization: strategic merge and JSON ones, inline or in files.

Upstream: ``kustomize/api/internal/builtins/{PatchTransformer,PatchStrategicMergeTransformer}.go``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from kubepy.api.meta import Object, clone
from kubepy.api.schema.openapi import schema_for
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.files import Folder, parse
from kubepy.cli.kustomization.resources import Resource, Resources
from kubepy.lazy import lazy_imports
from kubepy.quoting import quote
from kubepy.storage.yaml import dump

with lazy_imports():
    from kubepy.api import errors as api_errors


class Patch(NamedTuple):
    """One patch: objects to merge, or JSON operations (then ``merges`` is empty); ``target`` {}: by its own name.

    ``missing`` goes before what is told when there is no object of that name; it may hold that name as ``{}``.
    """

    source: str
    merges: list[Object]
    operations: list[Any]
    target: dict[str, str]
    options: Object
    missing: str = 'no resource matches strategic merge patch "{}": '


def apply_patches(resources: Resources, patches: Iterator[Patch]) -> None:
    """Raises CliError."""
    for patch in patches:
        if patch.operations:
            _apply_operations(resources, patch)
        else:
            _apply_merges(resources, patch)


# --- reading ------------------------------------------------------------------------------------------------------


def strategic_patches(folder: Folder, settings: Object) -> Iterator[Patch]:
    """``patchesStrategicMerge``: paths, or objects inline."""
    paths = settings.get("patchesStrategicMerge") or []
    for entry in paths:
        try:
            yield Patch(entry, _inline(entry) or folder.documents(entry), [], {}, {}, missing="")
        except CliError as error:
            raise _trouble("PatchStrategicMergeTransformer", {"paths": paths}, str(error)) from None


def _inline(entry: str) -> list[Object]:
    """The objects that a text holds; none if it is a path."""
    try:
        found = parse(entry) if ":" in entry else []
    except CliError:
        return []
    return found if all(one.get("kind") and (one.get("metadata") or {}).get("name") for one in found) else []


def _trouble(transformer: str, config: Object, why: str) -> CliError:
    return CliError(f"trouble configuring builtin {transformer} with config: `\n{dump(config)}`: {why}")


def json_patches(folder: Folder, entries: list[Object]) -> Iterator[Patch]:
    """``patchesJson6902``."""
    for entry in entries:
        try:
            if entry.get("path"):
                folder.read(entry["path"])
            elif not entry.get("patch"):
                raise CliError("empty file path and empty jsonOp")
        except CliError as error:
            config = {key: entry[key] for key in ("path", "target") if entry.get(key)}
            raise _trouble("PatchJson6902Transformer", config, str(error)) from None
    return general_patches(folder, entries)


def general_patches(folder: Folder, entries: list[Object]) -> Iterator[Patch]:
    """``patches``."""
    for entry in entries:
        try:
            text, source = _text_of(folder, entry)
        except CliError as error:
            raise _trouble("PatchTransformer", entry, str(error)) from None
        contents = _contents(text, source)
        target = {key: str(value) for key, value in (entry.get("target") or {}).items()}
        operations = contents[0] if contents and isinstance(contents[0], list) else []
        merges = [] if operations else [_named(content, source) for content in contents]
        yield Patch(source, merges, operations, target, entry.get("options") or {})


def _text_of(folder: Folder, entry: Object) -> tuple[str, str]:
    text, path = str(entry.get("patch") or "").strip(), entry.get("path") or ""
    if not text and not path:
        raise CliError(f"must specify one of patch and path in\n{dump(entry)}")
    if text and path:
        raise CliError(f"patch and path can't be set at the same time\n{dump(entry)}")
    if text:
        return text, f"[patch: {text!r}]"
    try:
        return folder.read(path).decode(errors="replace"), f"[path: {quote(path)}]"
    except CliError as error:
        raise CliError(f"failed to get the patch file from path({path}): {error}") from None


def _contents(text: str, source: str) -> list[Any]:
    try:
        return [json.loads(text)] if text.startswith("[") else parse(text)
    except (CliError, ValueError):
        raise CliError(f"unable to parse SM or JSON patch from {source}") from None


def _named(content: Any, source: str) -> Object:
    if not isinstance(content, dict) or not content.get("kind") or not isinstance(content.get("metadata"), dict):
        raise CliError(f"unable to parse SM or JSON patch from {source}")
    return content


# --- applying -----------------------------------------------------------------------------------------------------


def _apply_merges(resources: Resources, patch: Patch) -> None:
    if patch.target and len(patch.merges) > 1:
        raise CliError("Multiple Strategic-Merge Patches in one `patches` entry is not allowed to set `patches.target` "
                       f"field: {patch.source}")
    for change in patch.merges:
        for resource in resources.select(patch.target) if patch.target else [_meant(resources, change, patch)]:
            if not _merge(resource, change, patch.options):
                resources.all.remove(resource)


def _meant(resources: Resources, change: Object, patch: Patch) -> Resource:
    wanted = Resource(change).id
    try:
        return resources.named(wanted)
    except CliError as error:
        raise CliError(f"{patch.missing.format(wanted)}{error}") from None


def _merge(resource: Resource, change: Object, options: Object) -> bool:
    """Merge a patch into a resource; whether anything is left of it. Name, kind and namespace stay."""
    before = resource.id
    if change.get("$patch") == "delete":
        return False
    if options.get("allowNameChange") or options.get("allowKindChange"):
        resource.remember()
    merged = _merged(resource.object, change)
    merged["metadata"] = {**(merged.get("metadata") or {})}
    if not options.get("allowNameChange"):
        merged["metadata"]["name"] = before.name
    if not options.get("allowKindChange"):
        merged.update(kind=before.kind, apiVersion=resource.object["apiVersion"])
    if before.namespace:
        merged["metadata"]["namespace"] = before.namespace
    else:
        merged["metadata"].pop("namespace", None)
    resource.object = merged
    return True


def _merged(obj: Object, change: Object) -> Object:
    """The kinds of Kubernetes are merged strategically, others as JSON."""
    from kubepy.api.patches.documents import merge_patch, strategic_merge_patch

    if change.get("$patch") == "replace":
        return {key: clone(value) for key, value in change.items() if key != "$patch"}
    schema = schema_for(obj["apiVersion"], obj["kind"])
    try:
        return merge_patch(obj, change) if schema is None else strategic_merge_patch(obj, change, schema)
    except Exception as error:
        raise _worded(error) from None


def _apply_operations(resources: Resources, patch: Patch) -> None:
    from kubepy.api.patches.documents import json_patch

    if not patch.target:
        raise CliError(f"must specify a target for JSON patch {patch.source}")
    for resource in resources.select(patch.target):
        resource.remember()
        try:
            patched = json_patch(_with_annotations(resource), patch.operations, strict=True)
            resource.object = _without_empty_annotations(patched)
        except Exception as error:
            raise _worded(error) from None


def _with_annotations(resource: Resource) -> Object:
    """While it is patched, an object always has annotations: kustomize keeps notes of its own there."""
    meta = resource.object["metadata"]
    return {**resource.object, "metadata": {**meta, "annotations": meta.get("annotations") or {}}}


def _without_empty_annotations(obj: Object) -> Object:
    meta = obj.get("metadata")
    if isinstance(meta, dict) and meta.get("annotations") == {}:
        del meta["annotations"]
    return obj


def _worded(error: Exception) -> Exception:
    if not isinstance(error, api_errors.Status):
        return error
    return CliError(str(error.__cause__ or f"a patch cannot be applied: {error}"))
