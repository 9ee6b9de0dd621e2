"""Strategic merge patches: merge patches that merge some lists by a key, and that carry directives.

The directives are ``$patch: replace|delete``, ``$deleteFromPrimitiveList/<list>``,
``$setElementOrder/<list>`` and ``$retainKeys``. Results, and the places of new elements in lists,
are those of upstream's ``apimachinery/pkg/util/strategicpatch``. Used
through :mod:`kubepy.api.patches.documents`. Applying a patch and building a three-way one (in
``strategic_diff``) share one :func:`merge`.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from kubepy.api.meta import Object
from kubepy.api.patches import PatchError, bad_argument
from kubepy.api.patches.elements import (
    MARKER,
    SET_ORDER,
    List,
    check_order,
    deduplicate,
    element_type,
    interleave,
    is_directive,
    key_value,
    places,
    same,
)
from kubepy.api.schema.openapi import Schema
from kubepy.api.values.goformat import format_value
from kubepy.quoting import quote

RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList"
_SLICE = "[]interface {}"


class PatchMeta(NamedTuple):
    """The way to patch a field: its tags, and the schema below it (of a list: of the elements)."""

    schema: Schema
    strategy: str
    merge_key: str
    retain_keys: bool


def lookup(schema: Schema, key: str, of_list: bool) -> PatchMeta:
    """Return the patch tags of a field (``LookupPatchMetadataForStruct``, ``…ForSlice``). Raises
    PatchError."""
    field = schema.field(key)
    if field is not None:
        strategies = field.patch_strategies
        others = [strategy for strategy in strategies if strategy != "retainKeys"]
        below = (field.items() or field) if of_list else field
        return PatchMeta(
            below, others[0] if others else "", field.merge_key, "retainKeys" in strategies
        )

    name = schema.name
    in_v3 = f"unable to find api field {quote(key)}"
    if schema.values() is not None:
        raise PatchError(
            "merging an object in json but data type is not struct, instead is: map",
            500,
            f'LookupPatchMetaError({name}): invalid type for {name}: got "map", expected "kind"',
            in_v3,
        )

    raise PatchError(
        f"unable to find api field in struct {schema.go_name} for the json field {quote(key)}",
        500,
        f"LookupPatchMetaError({name}): {in_v3} in {name}",
        in_v3,
    )


# --- applying -------------------------------------------------------------------------------------


def apply(obj: Object, patch: Object, schema: Schema) -> Object:
    """Return the object with the patch applied (``StrategicMergeMapPatch``). Raises PatchError."""
    return merge(copy.deepcopy(obj), copy.deepcopy(patch), schema, applying=True)


def merge(original: Object, patch: Object, schema: Schema, applying: bool) -> Object:
    """Merge a patch into an object, or, if not ``applying``, into another patch, which keeps
    directives and nulls.

    Changes both, and returns parts of them. Raises PatchError.
    """
    if MARKER in patch:
        if patch[MARKER] == "replace":
            return {key: value for key, value in patch.items() if key != MARKER}
        if patch[MARKER] == "delete":
            return {}
        raise _unknown_directive(patch)

    _retain_keys(original, patch, applying)
    _merge_ordered_lists(original, patch, schema, applying)
    for key, value in patch.items():
        if key.startswith(DELETE_FROM):
            if applying:
                _delete_from_list(original, key, value, schema)
            else:
                original[key] = value
        elif value is None:
            original.pop(key, None)
            if not applying:
                original[key] = None
        elif type(original.get(key)) is not type(value):
            if applying:
                _discard_nulls(value)
            if is_directive(value):
                original.pop(key, None)
            else:
                original[key] = _without_directives(value)
        elif (
            isinstance(value, dict)
            and (meta := lookup(schema, key, of_list=False)).strategy != "replace"
        ):
            original[key] = merge(original[key], value, meta.schema, applying)
        elif (
            isinstance(value, list)
            and (meta := lookup(schema, key, of_list=True)).strategy == "merge"
        ):
            original[key] = merge_lists(original[key], value, meta, applying)
        else:
            original[key] = value

    return original


def _unknown_directive(patch: Object) -> PatchError:
    return PatchError(
        f"unknown patch type: {format_value(patch[MARKER])} in map: {format_value(patch)}"
    )


def _discard_nulls(value: Any) -> None:
    if isinstance(value, dict):
        for key in [key for key, item in value.items() if item is None]:
            del value[key]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _discard_nulls(item)


def _without_directives(value: Any) -> Any:
    """Return the value without the maps in it that hold a ``$patch`` directive."""
    if isinstance(value, dict):
        return {
            key: _without_directives(item) for key, item in value.items() if not is_directive(item)
        }
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not is_directive(item)]
    return value


def _delete_from_list(original: Object, key: str, value: Any, schema: Schema) -> None:
    """Delete the scalars that ``$deleteFromPrimitiveList/<list>`` names; maps cannot be named by
    their values."""
    name = _list_name(key, DELETE_FROM, "primitive list")
    current = original.get(name)
    if value is None:
        original.pop(name, None)
    elif isinstance(current, list) and isinstance(value, list):
        meta = lookup(schema, name, of_list=True)
        if not current and not value:
            return
        if element_type(current, value) is dict:
            original[name] = merge_lists(current, value, meta, applying=True)
        else:
            original[name] = [
                item for item in current if not any(same(item, other) for other in value)
            ]


def _list_name(key: str, prefix: str, subject: str) -> str:
    """Return the name of the list that ``$prefix/<list>`` is about."""
    directive, slash, name = key.partition("/")
    if directive != prefix or not slash:
        raise PatchError(f"invalid patch format of {subject}", 400)
    return name


def _retain_keys(original: Object, patch: Object, applying: bool) -> None:
    """Delete the keys that ``$retainKeys`` does not name, or move the directive into the patch
    being built."""
    if RETAIN_KEYS not in patch:
        return
    retained = patch.pop(RETAIN_KEYS)
    if not applying:
        if not same(original.setdefault(RETAIN_KEYS, retained), retained):
            raise PatchError(
                f"{format_value(original[RETAIN_KEYS])} and {format_value(retained)} are not deep "
                f"equal: "
                "this may happen when calculating the 3-way diff patch"
            )
        return

    set_keys = [
        key
        for key, value in patch.items()
        if value is not None and not key.startswith((DELETE_FROM, SET_ORDER))
    ]
    if not isinstance(retained, list) or any(key not in retained for key in set_keys):
        raise PatchError("invalid patch format of retainKeys", 400)
    for key in [key for key in original if key not in retained]:
        del original[key]


# --- lists ----------------------------------------------------------------------------------------


def merge_lists(original: List, patch: List, meta: PatchMeta, applying: bool) -> List:
    """Merge two lists with the merge strategy (``mergeSlice``): the patch's elements in its order,
    among the others."""
    if not original and not patch:
        return original
    key = meta.merge_key
    if element_type(original, patch) is not dict:
        merged = deduplicate([*original, *patch])
        return interleave(merged, patch, patch, original, key)
    if not key:
        kind = {"object": "map", "array": "slice"}.get(meta.schema.type, meta.schema.type)
        raise PatchError(
            f"cannot merge lists without merge key for {'struct' if meta.schema.name else kind}"
        )

    original, patch = _apply_element_directives(original, patch, key)
    merged = list(original)
    for element in patch:
        value = key_value(element, key)
        index = next(
            (index for index, other in enumerate(merged) if same(other.get(key), value)), -1
        )
        if index >= 0:
            merged[index] = merge(merged[index], element, meta.schema, applying)
        else:
            merged.append(element)

    return interleave(merged, patch, patch, original, key)


def _apply_element_directives(original: List, patch: List, merge_key: str) -> tuple[List, List]:
    """Delete or replace elements as those with ``$patch`` say; return both lists without
    directives."""
    plain: List = []
    replace = False
    for element in patch:
        if MARKER not in element:
            plain.append(element)
        elif element[MARKER] == "delete":
            value = key_value(element, merge_key)
            original = [
                other
                for other in original
                if merge_key not in other or not same(other[merge_key], value)
            ]
        elif element[MARKER] == "replace":
            replace = True
        elif element[MARKER] == "merge":
            raise PatchError("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(element)

    if replace:
        return (plain, [])
    return (original, plain)


def _merge_ordered_lists(original: Object, patch: Object, schema: Schema, applying: bool) -> None:
    """Merge the lists whose order ``$setElementOrder/<list>`` sets; takes both keys out of the
    patch."""
    for key in [key for key in patch if key.startswith(SET_ORDER)]:
        order = patch.pop(key)
        if not applying and not same(original.setdefault(key, order), order):
            raise PatchError("invalid patch format of setElementOrder list", 400)
        if not isinstance(order, list):
            raise bad_argument(_SLICE, order)
        name = _list_name(key, SET_ORDER, "setElementOrder list")
        live = _list_at(original, name)
        ours = _list_at(patch, name)
        meta = lookup(schema, name, of_list=True)
        if ours and order:
            check_order(ours, order, meta.merge_key)
        if live is None and ours is None:
            continue
        if ours is None:
            merged = live or []
        elif live is None:
            merged = _without_directives(ours)
        else:
            merged = merge_lists(live, ours, meta, applying) if meta.strategy == "merge" else ours
        element_type(live or [], ours or [])  # raises PatchError for a mixture
        patch.pop(name, None)
        live_order = places(live or [], merged, meta.merge_key)
        original[name] = interleave(merged, order, order, live_order, meta.merge_key)


def _list_at(obj: Object, name: str) -> List | None:
    value = obj.get(name, [])
    if not isinstance(value, list):
        raise bad_argument(_SLICE, value)
    if name in obj:
        return value
    return None
