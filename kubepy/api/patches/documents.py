"""Patches: applying one to an object, and computing the one that leads from one object to another.

Applying (the server's side) raises :class:`~kubepy.api.errors.Status`; computing (kubectl's side) raises
:class:`PatchError`. Nothing given is changed. Upstream: ``apiserver/pkg/endpoints/handlers/patch.go``,
``evanphx/json-patch`` v4, ``apimachinery/pkg/util/{strategicpatch,jsonmergepatch}``.
"""

from __future__ import annotations

import copy
from typing import Any, cast

from kubepy.api.errors import BadRequest, Invalid, RequestEntityTooLarge, Status, UnsupportedMediaType
from kubepy.api.meta import Object
from kubepy.api.patches import PatchError, conflict
from kubepy.api.schema.openapi import Schema

MAX_JSON_PATCH_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024  # what the copy operations of one patch may add up to
_UNSUPPORTED = "strategic merge patch format is not supported"
_JSON_WORDS = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number",
               type(None): "null"}


# --- applying -----------------------------------------------------------------------------------------------------


def json_patch(obj: Object, operations: Any, *, strict: bool = False) -> Object:
    """Apply an RFC 6902 patch. Raises Status: BadRequest for what is no patch, Invalid when an operation fails.

    ``strict``: also when it replaces, moves or copies what is not there."""
    from kubepy.api.patches.json_patch import OperationError, Patcher, StrictPatcher

    _check_operations(operations)
    operations = operations or []
    patcher = (StrictPatcher if strict else Patcher)(copy.deepcopy(obj), MAX_COPIED_BYTES)
    try:
        for operation in operations:
            patcher.apply(operation)
    except OperationError as error:
        raise _rejected() from error
    return cast(Object, patcher.document)


def _check_operations(operations: Any) -> None:
    if not isinstance(operations, list | None):
        raise _undecodable(operations, "[]handlers.jsonPatchOp")
    if operations and len(operations) > MAX_JSON_PATCH_OPERATIONS:
        why = f"The allowed maximum operations in a JSON patch is {MAX_JSON_PATCH_OPERATIONS}, got {len(operations)}"
        raise RequestEntityTooLarge(f"Request entity too large: {why}")
    for operation in operations or ():
        if not isinstance(operation, dict):
            raise _undecodable(operation, "handlers.jsonPatchOp")
        for key in ("op", "path", "from"):
            if not isinstance(operation.get(key, ""), str):
                raise BadRequest(f"error decoding patch: json: cannot unmarshal {_json_word(operation[key])} into "
                                 f"Go struct field jsonPatchOp.{key} of type string")


def unknown_operation_fields(operations: Any) -> list[str]:
    """What strict decoding says of the fields of operations."""
    return [f'json patch unknown field "[{index}].{key}"' for index, operation in enumerate(operations or ())
            for key in operation if key not in ("op", "path", "from", "value")]


def _undecodable(value: Any, go_type: str) -> Status:
    return BadRequest(f"error decoding patch: json: cannot unmarshal {_json_word(value)} into Go value of type "
                      f"{go_type}")


def _json_word(value: Any) -> str:
    return _JSON_WORDS[type(value)]


def _rejected() -> Status:
    """The server does not say which operation failed, and why."""
    return Invalid("the server rejected our request due to an error in our request")


def merge_patch(obj: Object, patch: Any) -> Object:
    """Apply an RFC 7386 patch. Raises Status: BadRequest for what is no JSON object."""
    if patch is None:
        raise BadRequest("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise _undecodable(patch, "map[string]interface {}")
    return _merged(copy.deepcopy(obj), copy.deepcopy(patch))


def _merged(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    for key, value in patch.items():
        current = target.get(key)
        if value is None:
            target.pop(key, None)
        elif not isinstance(current, dict):
            target[key] = _without_nulls(value)
        else:
            target[key] = _merged(current, value) if isinstance(value, dict) else value
    return target


def _without_nulls(value: Any) -> Any:
    """What a new value keeps: all but the nulls in its maps (those in lists stay)."""
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def strategic_merge_patch(obj: Object, patch: Any, schema: Schema | None) -> Object:
    """Apply a strategic merge patch. Raises Status; ``schema`` None (a custom resource) is UnsupportedMediaType."""
    from kubepy.api.patches import strategic

    if schema is None:
        raise unsupported_strategic_merge_patch()
    if not isinstance(patch, dict | None):
        raise BadRequest(f"json: cannot unmarshal {_json_word(patch)} into Go value of type map[string]interface {{}}")
    try:
        return strategic.apply(obj, patch or {}, schema)
    except PatchError as error:
        raise _as_status(error) from error


def _as_status(error: PatchError) -> Status:
    """``interpretStrategicMergePatchError``."""
    match error.code:
        case 400:
            return BadRequest(str(error))
        case 422:
            return _rejected()
    return Status(str(error))


def unsupported_strategic_merge_patch() -> Status:
    """What a custom resource answers: it takes JSON and merge patches, and server-side apply."""
    types = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    message = f"the body of the request was in an unknown format - accepted media types include: {types}"
    return UnsupportedMediaType(message)


# --- computing ----------------------------------------------------------------------------------------------------


def two_way_strategic(original: Object, modified: Object, schema: Schema) -> Object:
    """The strategic merge patch that makes ``modified`` of ``original`` (edit, set, label…). Raises PatchError."""
    from kubepy.api.patches import strategic_diff

    return strategic_diff.two_way(original, modified, schema)


def three_way_strategic(original: Object | None, modified: Object, current: Object, schema: Schema, *,
                        overwrite: bool = True) -> Object:
    """Apply's patch: what differs from ``current`` to ``modified``, and deletions from ``original`` to ``modified``.

    ``original`` is the last applied configuration. Without ``overwrite``, a change that ``current`` has made otherwise
    is an error. Raises PatchError.
    """
    from kubepy.api.patches import strategic_diff

    return strategic_diff.three_way(original or {}, modified, current, schema, overwrite=overwrite)


def three_way_json_merge(original: Object | None, modified: Object, current: Object) -> Object:
    """Apply's patch for a custom resource, as a JSON merge patch. Raises PatchError.

    That includes a change of apiVersion, kind or name, which apply does not do.
    """
    changes = _only_values(create_merge_patch(current, modified))
    deletions = _only_nulls(create_merge_patch(original or {}, modified))
    if _conflict(changes, deletions):
        raise conflict(changes, deletions)
    patch = _merged(copy.deepcopy(deletions), copy.deepcopy(changes))
    if "apiVersion" in patch or "kind" in patch or "name" in (patch.get("metadata") or {}):
        raise PatchError("At least one of apiVersion, kind and name was changed")
    return patch


def create_merge_patch(original: Object, modified: Object) -> Object:
    """The JSON merge patch from ``original`` to ``modified`` (``jsonpatch.CreateMergePatch``)."""
    patch: Object = {key: None for key in original if key not in modified}
    for key, value in modified.items():
        old = original.get(key)
        if key in original and isinstance(old, dict) and isinstance(value, dict):
            if inner := create_merge_patch(old, value):
                patch[key] = inner
        elif key not in original or not _equal_json(old, value):
            patch[key] = copy.deepcopy(value)
    return patch


def _equal_json(left: Any, right: Any) -> bool:
    """Equal as JSON: 1 and 1.0 are the same number, true is none."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal_json, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal_json(left[key], right[key]) for key in left)
    return bool(left == right)


def _only_values(patch: Object) -> Object:
    """A merge patch without its deletions. An empty map written out is a value."""
    return {key: _only_values(value) if isinstance(value, dict) else value for key, value in patch.items()
            if value is not None and (not isinstance(value, dict) or not value or _only_values(value))}


def _only_nulls(patch: Object) -> Object:
    """A merge patch with nothing but its deletions."""
    found = {key: _only_nulls(value) if isinstance(value, dict) else None for key, value in patch.items()
             if value is None or isinstance(value, dict)}
    return {key: value for key, value in found.items() if value != {}}


def _conflict(left: Any, right: Any) -> bool:
    """Whether two merge patches set a field to different values (``mergepatch.HasConflicts``)."""
    if isinstance(left, dict) and isinstance(right, dict):
        return any(_conflict(left[key], right[key]) for key in left.keys() & right.keys())
    return not _equal_json(left, right)
