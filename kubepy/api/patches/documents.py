"""Patches: applying one to an object, and computing the one that leads from one object to another.

Applying (the server's side) raises :class:`~kubepy.api.errors.Status`; computing (kubectl's side)
raises :class:`PatchError`. Arguments are not changed. Upstream:
``apiserver/pkg/endpoints/handlers/patch.go``, ``evanphx/json-patch`` v4,
``apimachinery/pkg/util/{strategicpatch,jsonmergepatch}``.
"""

from __future__ import annotations

import copy
from typing import Any, cast

from kubepy.api.errors import (
    BadRequest,
    Invalid,
    RequestEntityTooLarge,
    Status,
    UnsupportedMediaType,
)
from kubepy.api.meta import AnyObject, Object, nested_map
from kubepy.api.patches import PatchError, conflict
from kubepy.api.schema.openapi import Schema
from kubepy.lazy import lazy_imports
from kubepy.storage.frozen import plain_type

with lazy_imports():
    from kubepy.api.patches import json_patch as jsonpatch
    from kubepy.api.patches import strategic, strategic_diff

MAX_JSON_PATCH_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024  # what the copy operations of one patch may add up to
_UNSUPPORTED = "strategic merge patch format is not supported"
_JSON_WORDS = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    type(None): "null",
}


# --- applying -------------------------------------------------------------------------------------


def json_patch(obj: Object, operations: Any, *, strict: bool = False) -> Object:
    """Apply an RFC 6902 patch. Raises Status: BadRequest if it is not a patch, Invalid if an
    operation fails.

    ``strict``: replacing, moving or copying a missing key fails.
    """
    _check_operations(operations)
    patcher = jsonpatch.Patcher(copy.deepcopy(obj), MAX_COPIED_BYTES, strict=strict)
    try:
        for operation in operations or ():
            patcher.apply(operation)
    except jsonpatch.OperationError as error:
        raise _rejected() from error
    return cast(Object, patcher.document)


def _check_operations(operations: Any) -> None:
    if not isinstance(operations, list | None):
        raise _undecodable(operations, "[]handlers.jsonPatchOp")
    if operations and len(operations) > MAX_JSON_PATCH_OPERATIONS:
        raise RequestEntityTooLarge(
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_JSON_PATCH_OPERATIONS}, got {len(operations)}"
        )

    for operation in operations or ():
        if not isinstance(operation, dict):
            raise _undecodable(operation, "handlers.jsonPatchOp")
        for key in ("op", "path", "from"):
            if not isinstance(operation.get(key, ""), str):
                raise BadRequest(
                    f"error decoding patch: json: cannot unmarshal {_json_word(operation[key])} "
                    f"into "
                    f"Go struct field jsonPatchOp.{key} of type string"
                )


def unknown_operation_fields(operations: Any) -> list[str]:
    """Return the errors of strict decoding about fields of operations."""
    return [
        f'json patch unknown field "[{index}].{key}"'
        for index, operation in enumerate(operations or ())
        for key in operation
        if key not in ("op", "path", "from", "value")
    ]


def _undecodable(value: Any, go_type: str) -> Status:
    return BadRequest(
        f"error decoding patch: json: cannot unmarshal {_json_word(value)} into Go value of type "
        f"{go_type}"
    )


def _json_word(value: Any) -> str:
    return _JSON_WORDS[plain_type(value)]


def _rejected() -> Status:
    """Return the server's error, which names neither the failed operation nor the reason."""
    return Invalid("the server rejected our request due to an error in our request")


def merge_patch(obj: Object, patch: Any) -> Object:
    """Apply an RFC 7386 patch. Raises Status: BadRequest if it is not a JSON object."""
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
    """Return a new value without the nulls in its maps; those in lists stay."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def strategic_merge_patch(obj: Object, patch: Any, schema: Schema | None) -> Object:
    """Apply a strategic merge patch. Raises Status; ``schema`` None (a custom resource) is
    UnsupportedMediaType."""
    if schema is None:
        raise unsupported_strategic_merge_patch()
    if not isinstance(patch, dict | None):
        raise BadRequest(
            f"json: cannot unmarshal {_json_word(patch)} into Go value of type "
            f"map[string]interface {{}}"
        )
    try:
        return strategic.apply(obj, patch or {}, schema)
    except PatchError as error:
        # as interpretStrategicMergePatchError has it
        if error.code == 400:
            raise BadRequest(str(error)) from error
        raise (_rejected() if error.code == 422 else Status(str(error))) from error


def unsupported_strategic_merge_patch() -> Status:
    """Return the error of custom resources: they take JSON patches, merge patches and server-side
    apply."""
    types = (
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    message = (
        f"the body of the request was in an unknown format - accepted media types include: {types}"
    )
    return UnsupportedMediaType(message)


# --- computing ------------------------------------------------------------------------------------


def two_way_strategic(original: AnyObject, modified: AnyObject, schema: Schema) -> Object:
    """Return the strategic merge patch from ``original`` to ``modified`` (edit, set, label…).
    Raises PatchError."""
    return strategic_diff.two_way(original, modified, schema)


def three_way_strategic(
    original: AnyObject | None,
    modified: AnyObject,
    current: AnyObject,
    schema: Schema,
    *,
    overwrite: bool = True,
) -> Object:
    """Return the patch of ``apply``: changes from ``current`` to ``modified``, deletions from
    ``original``.

    ``original`` is the last applied configuration. Without ``overwrite``, a field that ``current``
    has changed to something else is an error. Raises PatchError.
    """
    return strategic_diff.three_way(original or {}, modified, current, schema, overwrite=overwrite)


def three_way_json_merge(
    original: AnyObject | None, modified: AnyObject, current: AnyObject
) -> Object:
    """Return the patch of ``apply`` for a custom resource, as a JSON merge patch. Raises
    PatchError.

    A change of apiVersion, kind or name is an error too.
    """
    changes = _only_values(create_merge_patch(current, modified))
    deletions = _only_nulls(create_merge_patch(original or {}, modified))
    if _conflict(changes, deletions):
        raise conflict(changes, deletions)
    patch = _merged(copy.deepcopy(deletions), copy.deepcopy(changes))
    if "apiVersion" in patch or "kind" in patch or "name" in nested_map(patch, "metadata"):
        raise PatchError("At least one of apiVersion, kind and name was changed")
    return patch


def create_merge_patch(original: AnyObject, modified: AnyObject) -> Object:
    """Return the JSON merge patch from ``original`` to ``modified``
    (``jsonpatch.CreateMergePatch``)."""
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
    """Compare as JSON: 1 and 1.0 are the same number, true is not a number."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal_json, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            _equal_json(left[key], right[key]) for key in left
        )
    return bool(left == right)


def _only_values(patch: AnyObject) -> Object:
    """Return a merge patch without its deletions. An empty map is a value."""
    return {
        key: _only_values(value) if isinstance(value, dict) else value
        for key, value in patch.items()
        if value is not None and (not isinstance(value, dict) or not value or _only_values(value))
    }


def _only_nulls(patch: AnyObject) -> Object:
    """Return a merge patch with its deletions only."""
    deletions = {
        key: _only_nulls(value) if isinstance(value, dict) else None
        for key, value in patch.items()
        if value is None or isinstance(value, dict)
    }
    return {key: value for key, value in deletions.items() if value != {}}


def _conflict(left: Any, right: Any) -> bool:
    """Return whether two merge patches set a field to different values
    (``mergepatch.HasConflicts``)."""
    if isinstance(left, dict) and isinstance(right, dict):
        return any(_conflict(left[key], right[key]) for key in left.keys() & right.keys())
    return not _equal_json(left, right)
