"""Three-way merge of JSON values by their schema: maps by key, lists by the keys of their items, sets by value.

Which lists are merged, and by which keys, is what server-side apply and strategic merge patch know of the type.
Everything else (scalars, atomic lists and maps) counts as a whole: changed on both sides to different values, it is a
conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from kubepy.api.patches.elements import same
from kubepy.api.schema.openapi import Schema
from kubepy.apiserver.managedfields.fieldpath import Path, field, keys
from kubepy.apiserver.managedfields.typed import ABSENT, TypedError, child, elements, is_atomic

Side = Literal["base", "ours", "theirs"]
UNSETTLED: Any = object()
# Takes a path and the three values there (ABSENT for none), which all differ; gives the merged value, or UNSETTLED.
Settle = Callable[[Path, Any, Any, Any], Any]
# Takes the three values of a conflict and gives the one that stands for it.
Choose = Callable[[Any, Any, Any], Any]

# Types of which only one form is valid: the fields that tell the form. None: all but the name.
_FORMS: dict[str, frozenset[str] | None] = {
    "DaemonSetUpdateStrategy": frozenset({"rollingUpdate"}),
    "DeploymentStrategy": frozenset({"rollingUpdate"}),
    "EnvFromSource": frozenset({"configMapRef", "secretRef"}),
    "EnvVar": frozenset({"value", "valueFrom"}),
    "EnvVarSource": None,
    "LifecycleHandler": None,
    "Probe": frozenset({"exec", "grpc", "httpGet", "tcpSocket"}),
    "StatefulSetUpdateStrategy": frozenset({"rollingUpdate"}),
    "Volume": None,
}
# Atomic lists whose items the API tells apart all the same (``Taint.MatchTaint``).
_IDENTITIES = {"Taint": ("key", "effect")}


class Merge:
    """One merge. ``conflicts`` are the paths of fields that both sides changed to different values and that ``settle``
    does not settle; each of them gets the value that ``choose`` gives."""

    def __init__(self, settle: Settle, choose: Choose) -> None:
        self.conflicts: list[Path] = []
        self._settle = settle
        self._choose = choose

    def merge(self, base: Any, ours: Any, theirs: Any, schema: Schema | None, path: Path = ()) -> Any:
        """The merged value. ABSENT stands for a value that is not there, as argument and as result."""
        if same(ours, theirs) or same(base, theirs):
            return ours
        if same(base, ours):
            return theirs
        if maps := _as_maps(base, ours, theirs, schema):
            return _or_absent(self._merge_maps(maps, schema, path), ours, theirs)
        lists = _as_lists(base, ours, theirs)
        if lists and (items := _items_by_element(lists, schema, path)):
            return _or_absent(self._merge_lists(items, schema, path), ours, theirs)
        return self._conflict(path, base, ours, theirs)

    def _conflict(self, path: Path, base: Any, ours: Any, theirs: Any) -> Any:
        settled = self._settle(path, base, ours, theirs)
        if settled is not UNSETTLED:
            return settled
        self.conflicts.append(path)
        return self._choose(base, ours, theirs)

    def _merge_maps(self, maps: Sequence[dict[str, Any]], schema: Schema | None, path: Path) -> Any:
        base, ours, theirs = maps
        before = len(self.conflicts)
        merged = {}
        for name in [*ours, *(name for name in theirs if name not in ours)]:
            value = self.merge(base.get(name, ABSENT), ours.get(name, ABSENT), theirs.get(name, ABSENT),
                               child(schema, name), (*path, field(name)))
            if value is not ABSENT:
                merged[name] = value
        if _is_mixed(schema, merged, ours, theirs):
            del self.conflicts[before:]
            return self._conflict(path, base, ours, theirs)
        return merged

    def _merge_lists(self, items: list[dict[str, Any]], schema: Schema | None, path: Path) -> list[Any]:
        base, ours, theirs = items
        merged = []
        for element in _order(list(base), list(ours), list(theirs)):
            value = self.merge(base.get(element, ABSENT), ours.get(element, ABSENT), theirs.get(element, ABSENT),
                               schema and schema.items(), (*path, element))
            if value is not ABSENT:
                merged.append(value)
        return merged


def _as_maps(base: Any, ours: Any, theirs: Any, schema: Schema | None) -> tuple[Any, Any, Any] | None:
    """The three values as maps to be merged by key, None if they are not.

    A map with free keys (labels, data) that is not there is an empty one; a struct that is not there was taken away.
    """
    if schema is not None and schema.map_type == "atomic":
        return None
    has_free_keys = schema is not None and schema.values() is not None
    if all(isinstance(side, dict) or (has_free_keys and _is_nothing(side)) for side in (ours, theirs)):
        base, ours, theirs = (side if isinstance(side, dict) else {} for side in (base, ours, theirs))
        return base, ours, theirs
    return None


def _as_lists(base: Any, ours: Any, theirs: Any) -> tuple[list[Any], list[Any], list[Any]] | None:
    """The three values as lists, None if they are not; a list that is not there is an empty one."""
    if all(isinstance(side, list) or _is_nothing(side) for side in (ours, theirs)):
        base, ours, theirs = (side if isinstance(side, list) else [] for side in (base, ours, theirs))
        return base, ours, theirs
    return None


def _is_nothing(value: Any) -> bool:
    return value is ABSENT or value is None


def _items_by_element(lists: tuple[list[Any], list[Any], list[Any]], schema: Schema | None,
                      path: Path) -> list[dict[str, Any]] | None:
    """Each list's items by their keys; None where the list is atomic, or its items cannot be told apart."""
    indexed = []
    for values in lists:
        names = _elements(schema, values, path)
        if names is None or len(set(names)) < len(names):
            return None
        indexed.append(dict(zip(names, values, strict=True)))
    return indexed


def _elements(schema: Schema | None, values: list[Any], path: Path) -> list[str] | None:
    if schema is None:
        return None
    items = schema.items()
    if items is not None and (identity := _IDENTITIES.get(items.go_name)) and all(map(_is_map, values)):
        return [keys({name: value.get(name, "") for name in identity}) for value in values]
    if is_atomic(schema, values):
        return None
    try:
        return elements(schema, values, path)
    except TypedError:
        return None


def _order(base: list[str], ours: list[str], theirs: list[str]) -> list[str]:
    """All elements in the order of the side that moved some (ours if both did), each element of the other side alone
    behind the one it follows there."""
    known = set(base)
    is_ours_moved = [name for name in base if name in set(ours)] != [name for name in ours if name in known]
    first, second = (ours, theirs) if is_ours_moved else (theirs, ours)
    merged = list(first)
    for position, name in enumerate(second):
        if name not in first:
            merged.insert(merged.index(second[position - 1]) + 1 if position else 0, name)
    return merged


def _is_map(value: Any) -> bool:
    return isinstance(value, dict)


def _is_mixed(schema: Schema | None, merged: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Detect a merged value in a form that neither side has: a volume of two sources, a probe of two kinds."""
    if schema is None or schema.go_name not in _FORMS:
        return False
    members = _FORMS[schema.go_name]
    return _form(merged, members) not in (_form(ours, members), _form(theirs, members))


def _form(value: dict[str, Any], members: frozenset[str] | None) -> tuple[set[str], Any]:
    present = value.keys() - {"name"} if members is None else value.keys() & members
    return present, value.get("type")


def _or_absent(merged: Any, ours: Any, theirs: Any) -> Any:
    """A map or list that became empty by the merge is written by neither side, and so is not there."""
    return ABSENT if not merged and merged not in (ours, theirs) else merged
