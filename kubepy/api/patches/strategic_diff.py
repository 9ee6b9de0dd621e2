"""Computing strategic merge patches: the difference of two objects, and of the three that ``apply`` compares.

Upstream: ``apimachinery/pkg/util/strategicpatch``. The same patch comes out, ``$setElementOrder`` and ``$retainKeys``
included. Used through :mod:`kubepy.api.patches.documents`.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from kubepy.api.meta import Object
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


class Wanted(NamedTuple):
    """What a difference is to hold (``DiffOptions``)."""

    changes: bool = True
    deletions: bool = True
    order: bool = True
    retain_keys: bool = False


def two_way(original: Object, modified: Object, schema: Schema) -> Object:
    """The patch from one object to another (``CreateTwoWayMergePatch``). Raises PatchError."""
    return diff(original, modified, schema, Wanted())


def three_way(original: Object, modified: Object, current: Object, schema: Schema, *, overwrite: bool = True) -> Object:
    """``CreateThreeWayMergePatch``. Raises PatchError."""
    delta = diff(current, modified, schema, Wanted(deletions=False))
    deletions = diff(original, modified, schema, Wanted(changes=False))
    patch = merge(deletions, delta, schema, applying=False)
    if not overwrite:
        changed = diff(original, current, schema, Wanted(order=False))
        if _maps_conflict(patch, changed, schema):
            raise conflict(patch, changed)
    return patch


def diff(original: Object, modified: Object, schema: Schema, wanted: Wanted) -> Object:
    """The patch from one map to another (``diffMaps``): a new object, nothing in it shared with the two."""
    patch: Object = {}
    for key, value in modified.items():
        if key in original:
            _diff_field(patch, key, original[key], value, schema, wanted)
        elif wanted.changes:
            patch[key] = copy.deepcopy(value)
    if wanted.deletions:
        patch.update({key: None for key in original if key not in modified})
    kept = sorted(key for key, value in modified.items() if value is not None)
    lost = any(value is not None and key not in modified for key, value in original.items())
    if wanted.retain_keys and kept and (patch or lost):
        patch[RETAIN_KEYS] = kept
    return patch


def _diff_field(patch: Object, key: str, old: Any, new: Any, schema: Schema, wanted: Wanted) -> None:
    if key == MARKER:
        _diff_directive(patch, old, new)
    elif type(old) is type(new) and isinstance(new, (dict, list)):
        try:
            meta = lookup(schema, key, of_list=isinstance(new, list))
        except PatchError:
            if same(old, new):
                return
            raise
        differ = _diff_map if isinstance(new, dict) else _diff_list
        differ(patch, key, old, new, meta, wanted)
    elif wanted.changes and not same(old, new):
        patch[key] = copy.deepcopy(new)


def _diff_directive(patch: Object, old: Any, new: Any) -> None:
    if not isinstance(old, str) or not isinstance(new, str):
        raise PatchError(f"invalid value for special key: {MARKER}")
    if old != new:
        patch[MARKER] = new


def _diff_map(patch: Object, key: str, old: Any, new: Any, meta: PatchMeta, wanted: Wanted) -> None:
    if meta.strategy == "replace":
        if wanted.changes:
            patch[key] = copy.deepcopy(new)
    elif inner := diff(old, new, meta.schema, wanted._replace(retain_keys=meta.retain_keys)):
        patch[key] = inner


def _diff_list(patch: Object, key: str, old: Any, new: Any, meta: PatchMeta, wanted: Wanted) -> None:
    if meta.strategy != "merge":
        if wanted.changes and not same(old, new):
            patch[key] = copy.deepcopy(new)
        return
    found = _diff_merged_lists(old, new, meta, wanted._replace(retain_keys=meta.retain_keys))
    parts = {key: found.patch, f"{DELETE_FROM}/{key}": found.deletions, f"{SET_ORDER}/{key}": found.order}
    patch.update({name: copy.deepcopy(part) for name, part in parts.items() if part})


class _ListDiff(NamedTuple):
    patch: List
    deletions: List
    order: List


def _diff_merged_lists(old: List, new: List, meta: PatchMeta, wanted: Wanted) -> _ListDiff:
    if not old:
        return _ListDiff(new if wanted.changes else [], [], [])
    if element_type(old, new) is not dict:
        return _diff_scalars(old, new, wanted)
    patch = _diff_elements(old, new, meta, wanted)
    ordered = [{meta.merge_key: key_value(one, meta.merge_key)} for one in new]
    moved = [key_value(one, meta.merge_key) for one in old] != [one[meta.merge_key] for one in ordered]
    needed = (wanted.changes and (patch or moved)) or (wanted.deletions and patch)
    return _ListDiff(patch, [], ordered if wanted.order and needed else [])


def _diff_elements(old: List, new: List, meta: PatchMeta, wanted: Wanted) -> List:
    """Changed and added elements in the order of ``new``, then a deletion for each lost one, by key.

    Elements are paired off in the order of their keys, which tells lists with repeated keys apart as upstream does.
    """
    key = meta.merge_key
    olds, news = _by_key(old, key), _by_key(new, key)
    changed: List = []
    gone: List = []
    while olds or news:
        left, right = (format_value(side[0][key]) if side else None for side in (olds, news))
        if left is not None and left == right:
            before, after = olds.pop(0), news.pop(0)
            if inner := diff(before, after, meta.schema, wanted):
                changed.append({**inner, key: after[key]})
        elif right is not None and (left is None or left > right):
            added = news.pop(0)
            changed += [added] if wanted.changes else []
        else:
            lost = olds.pop(0)
            gone += [{MARKER: "delete", key: lost[key]}] if wanted.deletions else []
    changed.sort(key=lambda one: index_of(new, one, key))
    return changed + gone


def _by_key(elements: List, merge_key: str) -> List:
    """Elements by the text of their key; upstream's sort turns those with one key around."""
    for one in elements:
        key_value(one, merge_key)
    return sorted(elements, key=lambda one: format_value(one[merge_key]), reverse=True)[::-1]


def _diff_scalars(old: List, new: List, wanted: Wanted) -> _ListDiff:
    before, after = sorted(old, key=format_value), sorted(new, key=format_value)
    added, gone = _only_left(after, before), _only_left(before, after)
    added.sort(key=lambda one: index_of(new, one, ""))
    # Upstream has sorted the old list in place by now, so that one that is not in order always counts as changed.
    needed = (wanted.deletions and gone) or (wanted.changes and not same(before, new))
    return _ListDiff(added if wanted.changes else [], deduplicate(gone) if wanted.deletions else [],
                     new if wanted.order and needed else [])


def _only_left(left: List, right: List) -> List:
    """The values of ``left`` that ``right`` has not, one for one."""
    rest = [format_value(one) for one in right]
    found = []
    for one in left:
        if (text := format_value(one)) in rest:
            rest.remove(text)
        else:
            found.append(one)
    return found


# --- conflicts ----------------------------------------------------------------------------------------------------


def _maps_conflict(left: Object, right: Object, schema: Schema) -> bool:
    """Whether two patches change a field differently (``MergingMapsHaveConflicts``)."""
    for key in sorted((left.keys() & right.keys()) - {MARKER, RETAIN_KEYS}):
        value = left[key]
        meta = lookup(schema, key, isinstance(value, list)) if isinstance(value, (dict, list)) else None
        if _values_conflict(value, right[key], meta):
            return True
    return False


def _values_conflict(left: Any, right: Any, meta: PatchMeta | None) -> bool:
    if type(left) is not type(right):
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
        theirs = {format_value(key_value(one, meta.merge_key)): one for one in right} if of_maps else {}
        pairs = [(one, theirs.get(format_value(key_value(one, meta.merge_key)))) for one in left] if of_maps else []
        return any(other is not None and _values_conflict(one, other, below) for one, other in pairs)
    if len(left) != len(right):
        return True
    if not of_maps:
        left, right = (sorted(deduplicate(side), key=format_value) for side in (left, right))
    return any(_values_conflict(one, other, below) for one, other in zip(left, right, strict=False))
