"""Strategic merge patches: merge patches that know which lists are merged by a key, and that carry directives.

``$patch: replace|delete``, ``$deleteFromPrimitiveList/<list>``, ``$setElementOrder/<list>`` and ``$retainKeys``.
Upstream: ``apimachinery/pkg/util/strategicpatch``; which patch comes out, and where a new element of a list goes, is
its. Used through :mod:`kubepy.api.patches.documents`. Applying a patch and building a three-way one (in
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
    """How a field is patched: the schema below it (of a list: of its elements) and its tags."""

    schema: Schema
    strategy: str
    merge_key: str
    retain_keys: bool


def lookup(schema: Schema, key: str, of_list: bool) -> PatchMeta:
    """The patch tags of a field (``LookupPatchMetadataForStruct`` and ``…ForSlice``). Raises PatchError."""
    field = schema.field(key)
    if field is None:
        raise _no_such_field(schema, key)
    strategies = field.patch_strategies
    others = [one for one in strategies if one != "retainKeys"]
    below = (field.items() or field) if of_list else field
    return PatchMeta(below, others[0] if others else "", field.merge_key, "retainKeys" in strategies)


def _no_such_field(schema: Schema, key: str) -> PatchError:
    name, in_v3 = schema.name, f"unable to find api field {quote(key)}"
    if schema.values() is not None:
        return PatchError("merging an object in json but data type is not struct, instead is: map", 500,
                          f'LookupPatchMetaError({name}): invalid type for {name}: got "map", expected "kind"', in_v3)
    return PatchError(f"unable to find api field in struct {schema.go_name} for the json field {quote(key)}", 500,
                      f"LookupPatchMetaError({name}): {in_v3} in {name}", in_v3)


# --- applying -----------------------------------------------------------------------------------------------------


def apply(obj: Object, patch: Object, schema: Schema) -> Object:
    """The object with the patch applied (``StrategicMergeMapPatch``). Raises PatchError."""
    return merge(copy.deepcopy(obj), copy.deepcopy(patch), schema, applying=True)


def merge(original: Object, patch: Object, schema: Schema, applying: bool) -> Object:
    """Merge a patch into an object, or, with ``applying`` off, into another patch, where directives and nulls stay.

    Changes both, and gives back parts of them. Raises PatchError.
    """
    if MARKER in patch:
        return _directed(patch)
    _retain_keys(original, patch, applying)
    _merge_ordered_lists(original, patch, schema, applying)
    for key, value in patch.items():
        if key.startswith(DELETE_FROM):
            _merge_deletions(original, key, value, schema, applying)
        elif value is None:
            original.pop(key, None)
            if not applying:
                original[key] = None
        elif type(original.get(key)) is not type(value):
            _take(original, key, value, applying)
        else:
            original[key] = _merge_values(original[key], value, schema, key, applying)
    return original


def _directed(patch: Object) -> Object:
    """What a map with a ``$patch`` directive becomes."""
    directive = patch[MARKER]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != MARKER}
    if directive == "delete":
        return {}
    raise _bad_directive(directive, patch)


def _bad_directive(directive: Any, patch: Object) -> PatchError:
    return PatchError(f"unknown patch type: {format_value(directive)} in map: {format_value(patch)}")


def _take(original: Object, key: str, value: Any, applying: bool) -> None:
    """Set a field to the patch's value, without its directives (and its nulls, when applying)."""
    if applying:
        _discard_nulls(value)
    if isinstance(value, dict) and MARKER in value:
        original.pop(key, None)
    else:
        original[key] = _without_directives(value)


def _discard_nulls(value: Any) -> None:
    if isinstance(value, dict):
        for key in [key for key, one in value.items() if one is None]:
            del value[key]
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            _discard_nulls(one)


def _without_directives(value: Any) -> Any:
    """The value less the maps in it that hold a ``$patch`` directive."""
    if isinstance(value, dict):
        return {key: _without_directives(one) for key, one in value.items() if not is_directive(one)}
    if isinstance(value, list):
        return [_without_directives(one) for one in value if not is_directive(one)]
    return value


def _merge_values(original: Any, value: Any, schema: Schema, key: str, applying: bool) -> Any:
    """Merge two values of one type."""
    if isinstance(value, dict):
        meta = lookup(schema, key, of_list=False)
        return value if meta.strategy == "replace" else merge(original, value, meta.schema, applying)
    if isinstance(value, list):
        meta = lookup(schema, key, of_list=True)
        return merge_lists(original, value, meta, applying) if meta.strategy == "merge" else value
    return value


def _merge_deletions(original: Object, key: str, value: Any, schema: Schema, applying: bool) -> None:
    """``$deleteFromPrimitiveList/<list>``: delete the values from the list, or keep the directive in a patch."""
    if not applying:
        original[key] = value
        return
    name = _directed_list(key, DELETE_FROM, "primitive list")
    current = original.get(name)
    if value is None:
        original.pop(name, None)
    elif isinstance(current, list) and isinstance(value, list):
        meta = lookup(schema, name, of_list=True)
        original[name] = _without_values(current, value, meta) if current or value else current


def _without_values(current: List, gone: List, meta: PatchMeta) -> List:
    """Scalars without those; of maps, which cannot be named by their values, nothing goes."""
    if element_type(current, gone) is dict:
        return merge_lists(current, gone, meta, applying=True)
    return [one for one in current if not any(same(one, other) for other in gone)]


def _directed_list(key: str, prefix: str, what: str) -> str:
    """The list that ``$prefix/<list>`` is about."""
    found, slash, name = key.partition("/")
    if found != prefix or not slash:
        raise PatchError(f"invalid patch format of {what}", 400)
    return name


# --- $retainKeys --------------------------------------------------------------------------------------------------


def _retain_keys(original: Object, patch: Object, applying: bool) -> None:
    """Clear what ``$retainKeys`` does not name, or move the directive into the patch being built."""
    if RETAIN_KEYS not in patch:
        return
    retained = patch.pop(RETAIN_KEYS)
    if not applying:
        if not same(original.setdefault(RETAIN_KEYS, retained), retained):
            raise PatchError(f"{format_value(original[RETAIN_KEYS])} and {format_value(retained)} are not deep equal: "
                             "this may happen when calculating the 3-way diff patch")
        return
    if not isinstance(retained, list) or any(key not in retained for key in patch if _is_kept(key, patch)):
        raise PatchError("invalid patch format of retainKeys", 400)
    for key in [key for key in original if key not in retained]:
        del original[key]


def _is_kept(key: str, patch: Object) -> bool:
    return patch[key] is not None and not key.startswith((DELETE_FROM, SET_ORDER))


# --- lists --------------------------------------------------------------------------------------------------------


def merge_lists(original: List, patch: List, meta: PatchMeta, applying: bool) -> List:
    """Merge two lists with the merge strategy (``mergeSlice``): the patch's elements in its order, among the others."""
    if not original and not patch:
        return original
    if element_type(original, patch) is dict:
        if not meta.merge_key:
            raise PatchError(f"cannot merge lists without merge key for {_kind_name(meta.schema)}")
        original, patch = _apply_element_directives(original, patch, meta.merge_key)
        merged = _merge_elements(list(original), patch, meta, applying)
    else:
        merged = deduplicate([*original, *patch])
    return interleave(merged, patch, patch, original, meta.merge_key)


def _kind_name(schema: Schema) -> str:
    """A Go kind, as ``PatchMetaFromStruct.Name`` gives it."""
    return "struct" if schema.name else {"object": "map", "array": "slice"}.get(schema.type, schema.type)


def _apply_element_directives(original: List, patch: List, merge_key: str) -> tuple[List, List]:
    """Delete or replace what elements with ``$patch`` say; returns both lists without them."""
    plain: List = []
    replace = False
    for element in patch:
        match element.get(MARKER, plain):
            case found if found is plain:
                plain.append(element)
            case "delete":
                original = _without(original, merge_key, key_value(element, merge_key))
            case "replace":
                replace = True
            case "merge":
                raise PatchError("merging lists cannot yet be specified in the patch")
            case directive:
                raise _bad_directive(directive, element)
    return (plain, []) if replace else (original, plain)


def _without(elements: List, merge_key: str, value: Any) -> List:
    return [one for one in elements if merge_key not in one or not same(one[merge_key], value)]


def _merge_elements(original: List, patch: List, meta: PatchMeta, applying: bool) -> List:
    """Merge each element of the patch into the one with its key, or append it. Changes ``original``."""
    for element in patch:
        value = key_value(element, meta.merge_key)
        place = next((index for index, one in enumerate(original) if same(one.get(meta.merge_key), value)), -1)
        if place >= 0:
            original[place] = merge(original[place], element, meta.schema, applying)
        else:
            original.append(element)
    return original


# --- $setElementOrder ---------------------------------------------------------------------------------------------


def _merge_ordered_lists(original: Object, patch: Object, schema: Schema, applying: bool) -> None:
    """Merge the lists whose order ``$setElementOrder/<list>`` gives; takes both keys out of the patch."""
    for key in [key for key in patch if key.startswith(SET_ORDER)]:
        order = patch.pop(key)
        if not applying and not same(original.setdefault(key, order), order):
            raise PatchError("invalid patch format of setElementOrder list", 400)
        if not isinstance(order, list):
            raise bad_argument(_SLICE, order)
        _merge_ordered_list(original, patch, _directed_list(key, SET_ORDER, "setElementOrder list"), order, schema,
                            applying)


def _merge_ordered_list(original: Object, patch: Object, name: str, order: List, schema: Schema,
                        applying: bool) -> None:
    live, ours = _list_at(original, name), _list_at(patch, name)
    meta = lookup(schema, name, of_list=True)
    if ours and order:
        check_order(ours, order, meta.merge_key)
    if live is None and ours is None:
        return
    if ours is None:
        merged = live or []
    elif live is None:
        merged = _without_directives(ours)
    else:
        merged = merge_lists(live, ours, meta, applying) if meta.strategy == "merge" else ours
    element_type(live or [], ours or [])
    patch.pop(name, None)
    original[name] = interleave(merged, order, order, places(live or [], merged, meta.merge_key), meta.merge_key)


def _list_at(obj: Object, name: str) -> List | None:
    value = obj.get(name, [])
    if not isinstance(value, list):
        raise bad_argument(_SLICE, value)
    return value if name in obj else None


