"""Read and write the file of an object as git hands it over."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.threeway import Kind
from kubepy.lazy import lazy_imports
from kubepy.storage import Key
from kubepy.storage.manifests import (
    CLUSTER,
    MANAGED,
    NAMESPACES,
    SUFFIX,
    ContentError,
    decode,
    parse,
    path_of,
)

with lazy_imports():
    from kubepy.api import scheme
    from kubepy.api.schema import openapi
    from kubepy.apiserver import kinds
    from kubepy.apiserver.customresources import strategy as custom_strategy
    from kubepy.storage import yaml
    from kubepy.storage.yaml import roundtrip

_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_SHAPES = {"annotations": dict, "finalizers": list, "labels": dict, "ownerReferences": list}


class StateFile(NamedTuple):
    """The place of an object's file.

    :param state: the state folder, as the path names it.
    :param is_managers: whether it is the file of managers beside the object's own.
    """

    state: str
    resource: str
    is_managers: bool


def state_file_at(path: str) -> StateFile | None:
    """Return the place of an object's file by its path; None for any other file."""
    parts = path.split("/")
    if not parts.pop().endswith(SUFFIX):
        return None
    if is_managers := parts[-1:] == [MANAGED]:
        parts.pop()
    resource = decode(parts.pop()) if parts else None
    if parts[-2:-1] == [NAMESPACES]:
        parts = parts[:-2]
    elif parts[-1:] == [CLUSTER]:
        parts = parts[:-1]
    else:
        return None

    if resource:
        return StateFile("/".join(parts), resource, is_managers)
    return None


def read_object(text: bytes) -> Object:
    """Read the object in the text of a file. Raises ContentError for a text that holds none."""
    content = parse(text)
    metadata = content.object.get("metadata")
    if not isinstance(metadata, dict):
        raise ContentError(content.line, "has no metadata")
    for name, shape in _SHAPES.items():
        if not isinstance(metadata.get(name) or shape(), shape):
            raise ContentError(content.line, f"has metadata.{name} of another type")
    if not all(isinstance(owner, dict) for owner in nested_list(metadata, "ownerReferences")):
        raise ContentError(content.line, "has metadata.ownerReferences of another type")
    return content.object


def kind_of(obj: Object, file: StateFile | None) -> Kind:
    """Return the kind of an object; a custom one as its definition in the same state folder
    describes it."""
    api_version = str(obj.get("apiVersion", ""))
    kind = str(obj.get("kind", ""))
    resource = scheme.Scheme().for_kind(api_version, kind)
    if resource is not None:
        return Kind(
            kinds.new_strategy(resource, lambda resource: {}), openapi.schema_for(api_version, kind)
        )
    served = _served_version(api_version.rpartition("/")[2], file) if file else None
    if served is None:
        return Kind(None, openapi.Schema(custom_strategy.with_metadata({})))
    node = _map_at(served, "schema", "openAPIV3Schema")
    has_status = "status" in _map_at(served, "subresources")
    return Kind(None, openapi.Schema(custom_strategy.with_metadata(node)), has_status=has_status)


def _served_version(version: str, object_file: StateFile) -> Object | None:
    """Return the version in the CustomResourceDefinition of the working tree; None when that cannot
    be read."""
    path = os.path.join(object_file.state, path_of(Key(_DEFINITIONS, "", object_file.resource)))
    try:
        with open(path, "rb") as file:
            definition = parse(file.read()).object
    except (OSError, ContentError):  # the kind is unknown then, as if it had no definition
        return None
    versions = _map_at(definition, "spec").get("versions")
    entries = versions if isinstance(versions, list) else []
    return next(
        (entry for entry in entries if isinstance(entry, dict) and entry.get("name") == version),
        None,
    )


def _map_at(value: Any, *names: str) -> Object:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, dict):
        return value
    return {}


def render(text: bytes, obj: Object) -> bytes:
    """Return the text of an object's file, made from the text of another version, whose comments it
    keeps.

    Raises ContentError for a text that holds no object.
    """
    if is_handmade(text, read_object(text)):
        return roundtrip.merge(text, obj)
    return yaml.dump(obj).encode()


def is_handmade(text: bytes, obj: Object) -> bool:
    """Return whether the text of an object differs from what kubepy writes: it has comments, or
    another order."""
    return yaml.dump(obj).encode() != text
