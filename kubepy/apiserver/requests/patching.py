"""Changing an object by a patch (``apiserver/pkg/endpoints/handlers/patch.go``).

The patches themselves are applied in ``kubepy.api.patches.documents``; here is what the server does before and
after.
"""

from __future__ import annotations

from typing import Any

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.api.types import DecodeError
from kubepy.api.values.goformat import format_value, to_json
from kubepy.apiserver.requests.decoding import PatchWords, decode_patched
from kubepy.apiserver.requests.options import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from kubepy.apiserver.requests.scaling import SCALE, update_scale
from kubepy.apiserver.requests.server import (
    Server,
    Target,
    drop_duplicate_owners,
    expect_subresource,
    match_name,
    match_namespace,
)
from kubepy.apiserver.requests.sessions import Session
from kubepy.apiserver.requests.updating import replace


def patch_object(server: Server, session: Session, target: Target, patch: Any, patch_type: str, subresource: str,
                 field_validation: str, manager: str = "", force: bool = False, version: str = "") -> Object:
    """Patch an object, its status or its scale; returns it as stored. ``manager`` as in ``updating.update``.

    ``version``: the one that the patch is about, if not the one that is stored.

    Raises NotFound, BadRequest, Invalid, Conflict, UnsupportedMediaType.
    """
    expect_subresource(target.resource, subresource)
    if patch_type == APPLY_PATCH:
        if version and patch.get("apiVersion") == target.resource.at(version).api_version:
            patch = server.strategy(target.resource).to_stored_version(patch)
        return _apply_on_server(server, session, target, patch, subresource, field_validation, manager, force)
    if subresource == "scale":
        return _patch_scale(server, session, target, patch, patch_type, field_validation, manager)
    old = session.require(target.key)
    asked = target.resource.at(version) if version else target.resource
    seen = server.strategy(asked).in_version(old, asked.api_version) if version else old
    patched = apply(asked, seen, patch, patch_type)
    new = _decoded(server, target._replace(resource=asked), patched, patch, patch_type, field_validation)
    drop_duplicate_owners(server, new)
    return replace(server, session, target, new, old, subresource, manager)


def _decoded(server: Server, target: Target, patched: Object, patch: Any, patch_type: str,
             field_validation: str) -> Object:
    if patch_type == JSON_PATCH and field_validation == "Warn":
        from kubepy.api.patches.documents import unknown_operation_fields

        server.warn_all(unknown_operation_fields(patch))
    result = _strategic_result(patch) if patch_type == STRATEGIC_MERGE_PATCH else _json_result(patched)
    new = decode_patched(server, target.resource, patched, field_validation, result)
    match_namespace(new, target)
    match_name(new, target)
    return new


def _apply_on_server(server: Server, session: Session, target: Target, config: Any, subresource: str,
                     field_validation: str, manager: str, force: bool) -> Object:
    from kubepy.apiserver.requests.serverside import Request, apply_object, apply_scale

    request = Request(config, manager, subresource, force, field_validation)
    return (apply_scale if subresource == "scale" else apply_object)(server, session, target, request)


def apply(resource: Resource, obj: Object, patch: Any, patch_type: str) -> Object:
    """The object with the patch applied; ``obj`` is not changed."""
    from kubepy.api.patches import documents as patches

    if patch_type == JSON_PATCH:
        return patches.json_patch(obj, patch)
    if patch_type == MERGE_PATCH:
        return patches.merge_patch(obj, patch)
    if patch_type == STRATEGIC_MERGE_PATCH:
        return _apply_strategically(resource, obj, patch)
    raise errors.UnsupportedMediaType(f"the body of the request was in an unknown format: {patch_type}")


def _apply_strategically(resource: Resource, obj: Object, patch: Any) -> Object:
    from kubepy.api.patches import documents as patches
    from kubepy.api.schema.openapi import schema_for

    schema = None if resource.custom else schema_for(resource.api_version, resource.kind)
    return patches.strategic_merge_patch(obj, patch, schema)


def _json_result(patched: Object) -> PatchWords:
    """An error about the result shows the patched object as JSON."""
    return PatchWords(lambda: to_json(patched), str)


def _strategic_result(patch: Any) -> PatchWords:
    """An error about the result shows the patch as Go prints a map."""
    return PatchWords(lambda: format_value(patch), _converter_words)


def _converter_words(error: DecodeError) -> str:
    """How ``runtime.DefaultUnstructuredConverter``, which does not go through JSON, says the same."""
    wanted = error.go_type.lstrip("*")
    found = _GO_KINDS.get(type(error.value), "")
    if not wanted or not found:
        return str(error)
    if wanted.startswith("map["):
        return f"cannot restore map from {found}"
    if wanted.startswith("[]"):
        return f"cannot restore slice from {found}"
    if "." in wanted:  # a struct; named strings are not told apart
        return f"cannot restore struct from: {found}"
    if (found, wanted) in _CONVERTIBLE or (found == "float64" and wanted.startswith(("int", "uint"))):
        return f"cannot convert {found} to {wanted}"
    return f"unrecognized type: {wanted}"


_GO_KINDS = {str: "string", bool: "bool", int: "int64", float: "float64", list: "slice", dict: "map"}
_CONVERTIBLE = (("int64", "string"),)  # Go converts these, JSON does not


def _patch_scale(server: Server, session: Session, target: Target, patch: Any, patch_type: str,
                 field_validation: str, manager: str) -> Object:
    def change(scale: Object) -> Object:
        patched = apply(SCALE, scale, patch, patch_type)
        return _decoded(server, target._replace(resource=SCALE), patched, patch, patch_type, field_validation)

    return update_scale(server, session, target, change, manager)
