"""The file of an object as git hands it over: its place, its kind, its text."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.apiserver.threeway.objects import Kind
from kubepy.storage.folder import MANAGED
from kubepy.storage.keys import CLUSTER, NAMESPACES, SUFFIX, Key, decode, path_of
from kubepy.storage.manifest import ContentError, parse

_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_SHAPES = {"annotations": dict, "finalizers": list, "labels": dict, "ownerReferences": list}


class Place(NamedTuple):
    """The place of a file: the state folder as the path names it, the resource, and if it is the file of managers
    beside an object's own."""

    state: str
    resource: str
    is_managers: bool


def place_of(path: str) -> Place | None:
    """The place of an object's file by its path; None for any other file."""
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
    return Place("/".join(parts), resource, is_managers) if resource else None


def read_object(text: bytes) -> Object:
    """The object in the text of a file. Raises ContentError for what is none."""
    content = parse(text)
    metadata = content.object.get("metadata")
    if not isinstance(metadata, dict):
        raise ContentError(content.line, "has no metadata")
    for name, shape in _SHAPES.items():
        if not isinstance(metadata.get(name) or shape(), shape):
            raise ContentError(content.line, f"has metadata.{name} of another type")
    if not all(isinstance(owner, dict) for owner in metadata.get("ownerReferences") or ()):
        raise ContentError(content.line, "has metadata.ownerReferences of another type")
    return content.object


def kind_of(obj: Object, place: Place | None) -> Kind:
    """The kind of an object; a custom one as its definition in the same state folder describes it."""
    from kubepy.api.schema.openapi import schema_for
    from kubepy.api.scheme import Scheme
    from kubepy.apiserver.strategies import strategy_for

    api_version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
    resource = Scheme().for_kind(api_version, kind)
    if resource is None:
        return _custom_kind(api_version.rpartition("/")[2], place)
    return Kind(strategy_for(resource, lambda resource: {}), schema_for(api_version, kind))


def _custom_kind(version: str, place: Place | None) -> Kind:
    from kubepy.api.schema.openapi import Schema
    from kubepy.apiserver.strategies.custom import with_metadata

    served = _served_version(version, place) if place else None
    if served is None:
        return Kind(None, Schema(with_metadata({})))
    node = _map_at(served, "schema", "openAPIV3Schema")
    return Kind(None, Schema(with_metadata(node)), has_status="status" in _map_at(served, "subresources"))


def _served_version(version: str, place: Place) -> Object | None:
    """The version of the CustomResourceDefinition in the working tree; None where it cannot be read."""
    path = os.path.join(place.state, path_of(Key(_DEFINITIONS, "", place.resource)))
    try:
        with open(path, "rb") as file:
            definition = parse(file.read()).object
    except (OSError, ContentError):  # then nothing is known of the kind, as where there is no definition
        return None
    versions = _map_at(definition, "spec").get("versions")
    entries = versions if isinstance(versions, list) else []
    return next((entry for entry in entries if isinstance(entry, dict) and entry.get("name") == version), None)


def _map_at(value: Any, *names: str) -> Object:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def render(text: bytes, obj: Object) -> bytes:
    """The text of an object's file, made from the text of another version of it; comments in that stay.

    Raises ContentError for a text that holds no object.
    """
    from kubepy.storage.yaml import dump

    if not is_handmade(text, read_object(text)):
        return dump(obj).encode()
    from kubepy.storage.yaml.roundtrip import merge

    return merge(text, obj)


def is_handmade(text: bytes, obj: Object) -> bool:
    """True if the text of an object is not as kubepy writes it: with comments, or in another order."""
    from kubepy.storage.yaml import dump

    return dump(obj).encode() != text
