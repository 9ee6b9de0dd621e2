"""Changing an object by a patch (``apiserver/pkg/endpoints/handlers/patch.go``).

``kubepy.api.patches.documents`` applies the patches; this module does what the server does before
and after.
"""

from __future__ import annotations

from typing import Any

from kubepy.api import errors
from kubepy.api.meta import Object
from kubepy.api.scheme import Resource
from kubepy.api.types import DecodeError, as_encoded, in_key_order
from kubepy.api.values.goformat import format_value, to_json
from kubepy.apiserver.request import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    Patch,
    StrictErrors,
)
from kubepy.apiserver.requests.decoding import (
    PatchErrorStyle,
    check_subresource,
    decode_patched,
    drop_duplicate_owners,
)
from kubepy.apiserver.requests.scaling import SCALE, update_scale
from kubepy.apiserver.requests.updating import replace
from kubepy.apiserver.server import RequestScope
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.patches import documents
    from kubepy.api.schema import openapi
    from kubepy.apiserver.managedfields import tracking
    from kubepy.apiserver.requests import serverside

_GO_KINDS = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "slice",
    dict: "map",
}
_CONVERTIBLE = (("int64", "string"),)  # Go converts these, JSON does not


def patch_object(scope: RequestScope, patch: Patch) -> Object:
    """Patch an object, its status or its scale, and return it as stored.

    Raises NotFound, BadRequest, Invalid, Conflict, UnsupportedMediaType.
    """
    check_subresource(scope)
    requested = scope.requested_resource
    if patch.type == APPLY_PATCH:
        config = dict(patch.data) if isinstance(patch.data, dict) else patch.data
        if requested.is_older and config.get("apiVersion") == requested.api_version:
            config = scope.strategy.to_stored_version(config)
        if scope.request.subresource == "scale":
            return serverside.apply_scale(scope, config)
        return serverside.apply_object(scope, config)

    if scope.request.subresource == "scale":
        return update_scale(scope, lambda scale: _patched(scope, SCALE, scale, patch))
    old = scope.require()
    shown = scope.strategy.in_version(old, requested.api_version) if requested.is_older else old
    new = _patched(scope, requested, shown, patch)
    drop_duplicate_owners(scope.context, new)
    return replace(scope, new, old)


def _patched(scope: RequestScope, resource: Resource, obj: Object, patch: Patch) -> Object:
    """Apply a patch and decode the result, in the version that is stored."""
    patched = apply(resource, obj, patch)
    if patch.type == JSON_PATCH and (unknown := documents.unknown_operation_fields(patch.data)):
        options = scope.request.write_options
        strict = StrictErrors(
            (*options.strict.repeated, *((0, error) for error in unknown)), options.strict.text
        )
        scope = scope._replace(
            request=scope.request._replace(options=options._replace(strict=strict))
        )
    if patch.type == STRATEGIC_MERGE_PATCH:  # errors show the patch, as Go prints a map
        style = PatchErrorStyle(lambda: format_value(patch.data), _converter_error)
    else:  # errors show the patched object, as JSON
        style = PatchErrorStyle(lambda: _text_of(scope, resource, obj, patched), str, is_json=True)
    return decode_patched(scope, resource, patched, style)


def _text_of(scope: RequestScope, resource: Resource, old: Object, patched: Object) -> str:
    """Return the JSON of a patched object: what the patch does not touch is as the server had
    encoded it."""
    schema = scope.server.strategy(resource).field_schema()
    shown = tracking.shown(resource, schema, old) if "metadata" in old else old

    def in_order(old: Any, encoded: Any, patched: Any) -> Any:
        if patched == old:
            return encoded
        if isinstance(old, dict) and isinstance(encoded, dict) and isinstance(patched, dict):
            return {
                key: in_order(old.get(key), encoded.get(key), patched[key])
                for key in sorted(patched)
            }
        return in_key_order(patched)

    return to_json(in_order(old, as_encoded(shown), patched), sort_keys=False)


def apply(resource: Resource, obj: Object, patch: Patch) -> Object:
    """Return the object with the patch applied; ``obj`` is not changed."""
    if patch.type == JSON_PATCH:
        return documents.json_patch(obj, patch.data)
    if patch.type == MERGE_PATCH:
        return documents.merge_patch(obj, patch.data)
    if patch.type == STRATEGIC_MERGE_PATCH:
        schema = (
            None if resource.custom else openapi.schema_for(resource.api_version, resource.kind)
        )
        return documents.strategic_merge_patch(obj, patch.data, schema)
    raise errors.UnsupportedMediaType(
        f"the body of the request was in an unknown format: {patch.type}"
    )


def _converter_error(error: DecodeError) -> str:
    """Word a decoding error as ``runtime.DefaultUnstructuredConverter``, which does not go through
    JSON."""
    go_type = error.go_type.lstrip("*")
    value_kind = _GO_KINDS.get(type(error.value), "")
    if not go_type or not value_kind:
        return str(error)
    if go_type.startswith("map["):
        return f"cannot restore map from {value_kind}"
    if go_type.startswith("[]"):
        return f"cannot restore slice from {value_kind}"
    if "." in go_type:  # a struct; named strings are not told apart
        return f"cannot restore struct from: {value_kind}"
    if (value_kind, go_type) in _CONVERTIBLE or (
        value_kind == "float64" and go_type.startswith(("int", "uint"))
    ):
        return f"cannot convert {value_kind} to {go_type}"

    return f"unrecognized type: {go_type}"
