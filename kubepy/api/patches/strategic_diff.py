"""Computing strategic merge patches: the difference of two objects, and of the three that ``apply``
compares.

The patches are the same as upstream's (``apimachinery/pkg/util/strategicpatch``),
``$setElementOrder`` and ``$retainKeys`` included. Used through :mod:`kubepy.api.patches.documents`.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from kubepy.api.meta import AnyObject, Object
from kubepy.api.patches import PatchError, conflict
from kubepy.api.patches.elements import (
    MARKER,
    SET_ORDER,
    List,
    deduplicate,
    element_type,
    index_of,
    key_value,
    same,
)
from kubepy.api.patches.strategic import DELETE_FROM, RETAIN_KEYS, PatchMeta, lookup, merge
from kubepy.api.schema.openapi import Schema
from kubepy.api.values.goformat import format_value
from kubepy.storage.frozen import plain_type


class DiffOptions(NamedTuple):
    """The parts that a difference is to have."""

    changes: bool = True
    deletions: bool = True
    order: bool = True
    retain_keys: bool = False


def two_way(original: AnyObject, modified: AnyObject, schema: Schema) -> Object:
    """Return the patch from one object to another (``CreateTwoWayMergePatch``). Raises
    PatchError."""
    return diff(original, modified, schema, DiffOptions())


def three_way(
    original: AnyObject,
    modified: AnyObject,
    current: AnyObject,
    schema: Schema,
    *,
    overwrite: bool = True,
) -> Object:
    """Return the patch of ``apply`` (``CreateThreeWayMergePatch``). Raises PatchError."""
    delta = diff(current, modified, schema, DiffOptions(deletions=False))
    deletions = diff(original, modified, schema, DiffOptions(changes=False))
    patch = merge(deletions, delta, schema, applying=False)
    if not overwrite:
        changed = diff(original, current, schema, DiffOptions(order=False))
        if _maps_conflict(patch, changed, schema):
            raise conflict(patch, changed)
    return patch


def diff(original: AnyObject, modified: AnyObject, schema: Schema, options: DiffOptions) -> Object:
    """Return the patch from one map to another (``diffMaps``): a new object that shares nothing
    with the two."""
    patch: Object = {}
    for key, value in modified.items():
        if key in original:
            _diff_field(patch, key, original[key], value, schema, options)
        elif options.changes:
            patch[key] = copy.deepcopy(value)
    if options.deletions:
        patch.update({key: None for key in original if key not in modified})
    kept = sorted(key for key, value in modified.items() if value is not None)
    lost = any(value is not None and key not in modified for key, value in original.items())
    if options.retain_keys and kept and (patch or lost):
        patch[RETAIN_KEYS] = kept
    return patch


def _diff_field(
    patch: Object, key: str, old: Any, new: Any, schema: Schema, options: DiffOptions
) -> None:
    """Put the difference of a field that both objects have into the patch."""
    if key == MARKER:
        if not isinstance(old, str) or not isinstance(new, str):
            raise PatchError(f"invalid value for special key: {MARKER}")
        if old != new:
            patch[MARKER] = new
        return

    if plain_type(old) is not plain_type(new) or not isinstance(new, dict | list):
        if options.changes and not same(old, new):
            patch[key] = copy.deepcopy(new)
        return

    try:
        meta = lookup(schema, key, of_list=isinstance(new, list))
    except PatchError:
        if same(old, new):
            return
        raise

    below = options._replace(retain_keys=meta.retain_keys)
    if isinstance(new, list) and meta.strategy == "merge":
        lists = _diff_lists(old, new, meta, below)
        parts = {
            key: lists.patch,
            f"{DELETE_FROM}/{key}": lists.deletions,
            f"{SET_ORDER}/{key}": lists.order,
        }
        patch.update({name: copy.deepcopy(part) for name, part in parts.items() if part})
    elif isinstance(new, dict) and meta.strategy != "replace":
        if inner := diff(old, new, meta.schema, below):
            patch[key] = inner
    elif options.changes and (isinstance(new, dict) or not same(old, new)):
        patch[key] = copy.deepcopy(new)


class _ListDiff(NamedTuple):
    patch: List
    deletions: List
    order: List


def _diff_lists(old: List, new: List, meta: PatchMeta, options: DiffOptions) -> _ListDiff:
    """Return the difference of two lists with the merge strategy."""
    if not old:
        return _ListDiff(new if options.changes else [], [], [])
    if element_type(old, new) is not dict:
        return _diff_scalars(old, new, options)
    patch = _diff_elements(old, new, meta, options)
    ordered = [{meta.merge_key: key_value(element, meta.merge_key)} for element in new]
    moved = [key_value(element, meta.merge_key) for element in old] != [
        key[meta.merge_key] for key in ordered
    ]
    needed = (options.changes and (patch or moved)) or (options.deletions and patch)
    return _ListDiff(patch, [], ordered if options.order and needed else [])


def _diff_elements(old: List, new: List, meta: PatchMeta, options: DiffOptions) -> List:
    """Return changed and added elements in the order of ``new``, then a deletion for each removed
    one, by key.

    Elements are paired off in the order of their keys, which tells lists with repeated keys apart
    as upstream does.
    """
    key = meta.merge_key
    olds = _by_key(old, key)
    news = _by_key(new, key)
    changed: List = []
    deletions: List = []
    while olds or news:
        left, right = (format_value(side[0][key]) if side else None for side in (olds, news))
        if left is not None and left == right:
            before = olds.pop(0)
            after = news.pop(0)
            if inner := diff(before, after, meta.schema, options):
                changed.append({**inner, key: after[key]})
        elif right is not None and (left is None or left > right):
            added = news.pop(0)
            changed += [added] if options.changes else []
        else:
            removed = olds.pop(0)
            deletions += [{MARKER: "delete", key: removed[key]}] if options.deletions else []

    changed.sort(key=lambda element: index_of(new, element, key))
    return changed + deletions


def _by_key(elements: List, merge_key: str) -> List:
    """Sort elements by the text of their key; as in upstream's sort, those with the same key are
    reversed."""
    for element in elements:
        key_value(element, merge_key)  # raises PatchError if the key is missing
    return sorted(elements, key=lambda element: format_value(element[merge_key]), reverse=True)[
        ::-1
    ]


def _diff_scalars(old: List, new: List, options: DiffOptions) -> _ListDiff:
    before = sorted(old, key=format_value)
    after = sorted(new, key=format_value)
    added = _only_left(after, before)
    removed = _only_left(before, after)
    added.sort(key=lambda value: index_of(new, value, ""))
    # Upstream has sorted the old list in place by now, so that an unsorted one always counts as
    # changed.
    needed = (options.deletions and removed) or (options.changes and not same(before, new))
    return _ListDiff(
        added if options.changes else [],
        deduplicate(removed) if options.deletions else [],
        new if options.order and needed else [],
    )


def _only_left(left: List, right: List) -> List:
    """Return the values of ``left`` that ``right`` does not have, each occurrence for itself."""
    unmatched = [format_value(value) for value in right]
    only_left = []
    for value in left:
        if (text := format_value(value)) in unmatched:
            unmatched.remove(text)
        else:
            only_left.append(value)
    return only_left


# --- conflicts ------------------------------------------------------------------------------------


def _maps_conflict(left: AnyObject, right: AnyObject, schema: Schema) -> bool:
    """Return whether two patches change a field differently (``MergingMapsHaveConflicts``)."""
    for key in sorted((left.keys() & right.keys()) - {MARKER, RETAIN_KEYS}):
        value = left[key]
        if isinstance(value, (dict, list)):
            meta = lookup(schema, key, isinstance(value, list))
        else:
            meta = None
        if _values_conflict(value, right[key], meta):
            return True
    return False


def _values_conflict(left: Any, right: Any, meta: PatchMeta | None) -> bool:
    if plain_type(left) is not plain_type(right):
        return True
    if isinstance(left, dict) and meta:
        if left.get(MARKER) != right.get(MARKER):
            return True
        return meta.strategy != "replace" and _maps_conflict(left, right, meta.schema)
    if isinstance(left, list) and meta:
        return _lists_conflict(left, right, meta)
    return not same(left, right)


def _lists_conflict(left: List, right: List, meta: PatchMeta) -> bool:
    of_maps = element_type(left, right) is dict
    below = meta._replace(strategy="", merge_key="")
    if meta.strategy == "merge":
        if not of_maps:
            return False
        by_key = {format_value(key_value(element, meta.merge_key)): element for element in right}
        pairs = [
            (element, by_key.get(format_value(key_value(element, meta.merge_key))))
            for element in left
        ]
        return any(
            other is not None and _values_conflict(element, other, below)
            for element, other in pairs
        )

    if len(left) != len(right):
        return True
    if not of_maps:
        left, right = (sorted(deduplicate(side), key=format_value) for side in (left, right))
    return any(
        _values_conflict(element, other, below) for element, other in zip(left, right, strict=False)
    )
