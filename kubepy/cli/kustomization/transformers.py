"""Transform names, namespaces, labels, annotations, replicas, images and single values.

Each function takes the loader of the kustomization and the configuration of the transformer, as a
kustomization makes it from its fields or as a file in ``transformers`` gives it, and returns what
transforms. Upstream: ``kustomize/api/internal/builtins``, ``api/filters``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from kubepy.api.meta import Object, annotations_of, nested_list, nested_map
from kubepy.api.values.goregex import GoRegexError, compile_go
from kubepy.cli.errors import CliError
from kubepy.cli.kustomization.fieldspecs import FieldFunction, FieldSpec, apply, spec_of, split_path
from kubepy.cli.kustomization.files import FileLoader, contents_of
from kubepy.cli.kustomization.generators import content_hash
from kubepy.cli.kustomization.merges import node_kind, text_of
from kubepy.cli.kustomization.resources import KustomizedResource, ResMap
from kubepy.cli.kustomization.settings import (
    FIELD_SPECS,
    IMAGE,
    META,
    PAIRS,
    REPLICA,
    SELECTOR,
    Struct,
    decode,
)
from kubepy.quoting import quote
from kubepy.storage.yaml import dump
from kubepy.storage.yaml.scalars import resolve_v3

Transformer = Callable[[ResMap], None]

# Kinds that get neither prefix nor suffix, because other objects refer to their names.
UNRENAMED = (
    ("CustomResourceDefinition", None),
    ("APIService", "apiregistration.k8s.io"),
    ("Namespace", None),
)


def untagged(old: Any, text: str) -> Any:
    """Return the value of a text that takes the place of another as a plain scalar, unless that one
    was quoted."""
    was_quoted = isinstance(old, str) and old != "" and not isinstance(resolve_v3(old), str)
    if was_quoted or not text:
        return text
    return resolve_v3(text)


def _specs(config: Object) -> list[FieldSpec]:
    return [spec_of(entry) for entry in nested_list(config, "fieldSpecs")]


# --- names and namespaces -------------------------------------------------------------------------

HELM_GENERATED = "internal.config.kubernetes.io/helm-generated"
SUBJECT_MODES = ("defaultOnly", "none", "allServiceAccounts")
_NAMESPACE = Struct(
    "NamespaceTransformerPlugin",
    metadata=META,
    fieldSpecs=FIELD_SPECS,
    unsetOnly="bool",
    setRoleBindingSubjects="string",
)


def namespace_transformer(_: FileLoader, config: Object) -> Transformer:
    """Put all objects that can be in a namespace into this one."""
    config = decode(config, _NAMESPACE)
    namespace = nested_map(config, "metadata").get("namespace") or ""
    mode = config.get("setRoleBindingSubjects") or SUBJECT_MODES[0]
    if mode not in SUBJECT_MODES:
        modes = ", ".join(map(quote, SUBJECT_MODES[:2]))
        raise CliError(
            f"invalid value {quote(mode)} for setRoleBindingSubjects: must be one of {modes} or "
            f"{quote(SUBJECT_MODES[2])}"
        )

    def change(holder: Any, key: Any) -> None:
        value = holder[key]
        if isinstance(value, dict | list):
            raise CliError(_wrong_node(value))
        if not (config.get("unsetOnly") and value not in (None, "")):
            holder[key] = namespace

    def transform(resources: ResMap) -> None:
        for resource in resources if namespace else ():
            if annotations_of(resource.object).get(HELM_GENERATED) == "true":
                continue
            resource.remember()
            is_binding = resource.id.kind in ("RoleBinding", "ClusterRoleBinding")
            if not resource.id.is_cluster_scoped:
                apply(resource, [FieldSpec("metadata/namespace", create=True)], change, new=str)
            subjects = resource.object.get("subjects") if is_binding else None
            for subject in subjects if isinstance(subjects, list) else ():
                if not isinstance(subject, dict):
                    raise CliError(_wrong_node(subject, "MappingNode"))
                # Other accounts follow their objects, see `references`; the one named default has
                # no object.
                if (mode == "defaultOnly" and subject.get("name") == "default") or (
                    mode == "allServiceAccounts" and subject.get("kind") == "ServiceAccount"
                ):
                    subject.setdefault("namespace", None)
                    change(subject, "namespace")
            is_core = resource.object.get("apiVersion") == "v1"
            try:
                apply(
                    resource,
                    [
                        spec
                        for spec in _specs(config)
                        if spec.path != "metadata/namespace"
                        and (is_core or spec.path != "metadata/name")
                        and not (
                            is_binding
                            and spec.path == "subjects/namespace"
                            and spec.kind in ("RoleBinding", "ClusterRoleBinding")
                        )
                    ],
                    change,
                    new=str,
                )
            except CliError as error:
                if "expected ScalarNode" in str(error):
                    problem = "namespace field specs must target scalar nodes"
                else:
                    problem = "namespace transformation failed"
                raise CliError(f"{problem}: {error}") from None
            same = resources.with_id(resource.id)
            if len(same) > 1:
                listed = " ".join(other.json for other in same)
                raise CliError(f"namespace transformation produces ID conflict: [{listed}]")

    return transform


_AFFIX = Struct("AffixTransformerPlugin", prefix="string", suffix="string", fieldSpecs=FIELD_SPECS)


def prefix_transformer(_: FileLoader, config: Object) -> Transformer:
    """Put a prefix before names."""
    return _affix_transformer(config, is_prefix=True)


def suffix_transformer(_: FileLoader, config: Object) -> Transformer:
    """Put a suffix behind names."""
    return _affix_transformer(config, is_prefix=False)


def _affix_transformer(config: Object, *, is_prefix: bool) -> Transformer:
    config = decode(config, _AFFIX)
    affix = config.get("prefix" if is_prefix else "suffix") or ""
    specs = _specs(config)
    if config.get("fieldSpecs") is None:
        raise CliError("fieldSpecs is not expected to be nil")

    def change(holder: Any, key: Any) -> None:
        if isinstance(holder[key], dict | list):
            raise CliError(_wrong_node(holder[key]))
        text = text_of(holder[key])
        holder[key] = untagged(holder[key], affix + text if is_prefix else text + affix)

    def transform(resources: ResMap) -> None:
        for resource in resources:
            original = resource.original
            if any(
                original.kind == kind and group in (None, original.group)
                for kind, group in UNRENAMED
            ):
                continue
            for spec in specs:
                if not spec.is_for(original):
                    continue
                if spec.path == "metadata/name" and affix:
                    (resource.prefixes if is_prefix else resource.suffixes).append(affix)
                    resource.remember()
                apply(resource, [spec], change, new=str)

    return transform


def affixes_transformer(loader: FileLoader, config: Object) -> Transformer:
    """Put a prefix before names and a suffix behind them."""
    steps = [prefix_transformer(loader, config), suffix_transformer(loader, config)]

    def transform(resources: ResMap) -> None:
        for step in steps:
            step(resources)

    return transform


def hash_transformer(_: FileLoader, __: Object) -> Transformer:
    """Put a hash of its content behind the name of each generated object."""

    def transform(resources: ResMap) -> None:
        for resource in resources:
            if resource.needs_hash:
                resource.remember()
                resource.object["metadata"]["name"] = f"{resource.id.name}-{_hash(resource.object)}"

    return transform


def _hash(obj: Object) -> str:
    """Return ten characters that depend on the content of a generated object but not on its name
    (``hasher.go``)."""
    if obj["kind"] not in ("ConfigMap", "Secret"):
        return content_hash(obj)
    content = {"kind": obj["kind"], "name": "", "data": obj.get("data", "")}
    if obj["kind"] == "Secret":
        content["type"] = obj.get("type", "")
    for name in ("binaryData", "stringData"):
        if obj.get(name):
            content[name] = obj[name]
    return content_hash(content)


# --- labels, annotations, replicas ----------------------------------------------------------------

_PAIRS = Struct("PairsTransformerPlugin", labels=PAIRS, annotations=PAIRS, fieldSpecs=FIELD_SPECS)


def label_transformer(_: FileLoader, config: Object) -> Transformer:
    """Set labels in all maps that the field specs name."""
    config = decode(config, _PAIRS)
    return pairs_transformer(nested_map(config, "labels"), _specs(config))


def annotations_transformer(_: FileLoader, config: Object) -> Transformer:
    """Set annotations in all maps that the field specs name."""
    config = decode(config, _PAIRS)
    return pairs_transformer(nested_map(config, "annotations"), _specs(config))


def pairs_transformer(pairs: dict[str, str], specs: list[FieldSpec]) -> Transformer:
    def transform(resources: ResMap) -> None:
        for resource in resources:
            for name, text in sorted(pairs.items()):
                holders: list[Object] = []
                apply(resource, specs, _setter(name, text, holders), new=dict)
                resource.share(name, holders)

    return transform


def _setter(name: str, text: str, holders: list[Object]) -> FieldFunction:
    """Return the function that sets a key of a map, and adds maps that did not have it to
    ``holders``."""

    def change(holder: Any, key: Any) -> None:
        if holder[key] is None:
            return
        if not isinstance(holder[key], dict):
            raise CliError(_wrong_node(holder[key], "MappingNode"))
        if name not in holder[key]:
            holders.append(holder[key])
        holder[key][name] = text

    return change


def _wrong_node(value: Any, expected: str = "ScalarNode") -> str:
    contents = dump(value) if isinstance(value, dict | list) else f"{text_of(value)}\n"
    return (
        f"wrong node kind: expected {expected} but got {node_kind(value)}: node "
        f"contents:\n{contents}"
    )


_REPLICA = Struct("ReplicaCountTransformerPlugin", replica=REPLICA, fieldSpecs=FIELD_SPECS)


def replica_count_transformer(_: FileLoader, config: Object) -> Transformer:
    """Set the replicas of all objects of a name."""
    config = decode(config, _REPLICA)
    replica = nested_map(config, "replica")
    specs = _specs(config)
    name = replica.get("name", "")
    count = replica.get("count", 0)

    def change(holder: Any, key: Any) -> None:
        if isinstance(holder[key], dict | list):
            raise CliError(_wrong_node(holder[key]))
        holder[key] = count

    def transform(resources: ResMap) -> None:
        is_found = False
        for spec in specs:
            for resource in resources:
                if any(
                    known_id.name == name and spec.is_for(known_id) for known_id in resource.ids
                ):
                    is_found = True
                    apply(resource, [spec], change, new=int)
        if not is_found:
            kinds = " ".join(spec.gvk_text for spec in specs)
            raise CliError(
                f"resource with name {name} does not match a config with the following GVK "
                f"[{kinds}]"
            )

    return transform


# --- images ---------------------------------------------------------------------------------------


class ImageName(NamedTuple):
    """The parts of ``name[:tag][@digest]``; a part that is missing is ""."""

    name: str
    tag: str
    digest: str

    def __str__(self) -> str:
        return (
            f"{self.name}{f':{self.tag}' if self.tag else ''}"
            f"{f'@{self.digest}' if self.digest else ''}"
        )


def split_image(text: str) -> ImageName:
    """Split an image; the host before the first slash may have a port."""
    slash = max(text.find("/"), 0)
    at, colon = (text.find(mark, slash) for mark in "@:")
    if at >= 0 and (at < colon or colon < 0):
        return ImageName(text[:at], "", text[at:].removeprefix("@"))
    if colon < 0:
        return ImageName(text, "", "")
    end = len(text) if at < 0 else at
    return ImageName(text[:colon], text[colon:end].removeprefix(":"), text[end:].removeprefix("@"))


_IMAGE = Struct("ImageTagTransformerPlugin", imageTag=IMAGE, fieldSpecs=FIELD_SPECS)


def image_tag_transformer(_: FileLoader, config: Object) -> Transformer:
    """Change an image in all containers, at any depth, and then again in the fields of the specs.

    The second time matters only for ``tagSuffix``, which is then added twice, as kustomize does.
    """
    config = decode(config, _IMAGE)
    image = nested_map(config, "imageTag")
    specs = _specs(config)

    def change(holder: Any, key: Any) -> None:
        if isinstance(holder[key], dict | list):
            raise CliError(_wrong_node(holder[key]))
        if holder[key] is not None:
            holder[key] = untagged(holder[key], changed_image(text_of(holder[key]), image))

    def transform(resources: ResMap) -> None:
        for resource in resources:
            if resource.id.kind != "CustomResourceDefinition":
                _visit_containers(resource.object, change)
        for resource in resources:
            apply(resource, specs, change)

    return transform


def _visit_containers(node: Any, change: FieldFunction) -> None:
    if isinstance(node, list):
        for value in node:
            _visit_containers(value, change)
    elif isinstance(node, dict):
        for value in node.values():
            _visit_containers(value, change)
        for name in ("containers", "initContainers"):
            for container in node[name] if isinstance(node.get(name), list) else ():
                if isinstance(container, dict) and "image" in container:
                    change(container, "image")


def changed_image(text: str, image: Object) -> str:
    """Return an image with the new name, tag or digest, if the entry of ``images`` is for it."""
    try:
        pattern = f"^{image.get('name', '')}(:[a-zA-Z0-9_.{{}}-]*)?(@sha256:[a-zA-Z0-9_.{{}}-]*)?$"
        matches = compile_go(pattern).search(text)
    except GoRegexError:
        matches = False
    if not matches:
        return text
    parts = split_image(text)
    parts = parts._replace(name=image.get("newName") or parts.name)
    if image.get("newTag") or image.get("digest"):
        return str(parts._replace(tag=image.get("newTag") or "", digest=image.get("digest") or ""))
    if suffix := image.get("tagSuffix"):
        return str(parts._replace(tag=parts.tag + suffix, digest=""))
    return str(parts)


# --- single values --------------------------------------------------------------------------------

_TARGETS = [Struct("Target", selector=SELECTOR, fieldPath="string", filePathPosition="int")]
_VALUE_ADD = Struct(
    "ValueAddTransformerPlugin", value="string", targets=_TARGETS, targetFilePath="string"
)


def value_add_transformer(loader: FileLoader, config: Object) -> Transformer:
    """Put a value, or the name of the kustomization's folder, into fields, or into the paths that
    they hold."""
    config = decode(config, _VALUE_ADD)
    value = str(config.get("value") or "").strip() or os.path.basename(loader.root)
    targets = list(nested_list(config, "targets"))
    if path := config.get("targetFilePath"):
        contents = contents_of(loader.text(path), old_booleans=True)
        targets += nested_list(
            decode(contents[0] if contents else None, _VALUE_ADD) or {}, "targets"
        )

    if not targets:
        raise CliError("must specify at least one target")
    for target in targets:
        if not target.get("fieldPath"):
            raise CliError("fieldPath cannot be empty")
        if (position := target.get("filePathPosition", 0)) < 0:
            raise CliError(f"value of FilePathPosition ({position}) cannot be negative")

    def transform(resources: ResMap) -> None:
        for target in targets:
            selector = target.get("selector")
            for resource in resources.all if selector is None else resources.select(selector):
                _add_value(resource, value, target["fieldPath"], target.get("filePathPosition", 0))

    return transform


def _add_value(resource: KustomizedResource, value: str, path: str, position: int) -> None:
    """Set the field of a path, creating the maps that lead there. Raises CliError."""
    if path == "metadata/namespace" and resource.id.is_cluster_scoped:
        return
    holder: Any = resource.object
    *parts, last = split_path(path)
    for part in parts:
        if not isinstance(holder, dict):
            raise CliError(_wrong_node(holder, "MappingNode"))
        if holder.get(part) is None:
            holder[part] = {}
        holder = holder[part]

    if not isinstance(holder, dict):
        raise CliError(_wrong_node(holder, "MappingNode"))
    old = holder.get(last)
    if isinstance(old, dict | list):
        raise CliError(_wrong_node(old))
    text = insert_path_part(text_of(old), position - 1, value) if position > 0 else value
    holder[last] = text if path == "metadata/namespace" else untagged(old, text)


def insert_path_part(path: str, index: int, part: str) -> str:
    """Insert a part into a path; one that starts at the root still does
    (``filesys.InsertPathPart``)."""
    parts = [name for name in path.split("/") if name]
    parts.insert(index, part)
    return ("/" if path.startswith("/") else "") + "/".join(parts)
