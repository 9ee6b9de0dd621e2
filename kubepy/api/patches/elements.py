"""The elements of lists in strategic merge patches: their identity and their order.

Upstream: ``apimachinery/pkg/util/strategicpatch/patch.go``. ``merge_key`` is the field by which a
list of maps is merged, "" for a list of scalars.
"""

from __future__ import annotations

from typing import Any

from kubepy.api.patches import PatchError, bad_argument
from kubepy.api.values.goformat import format_value
from kubepy.storage.frozen import plain_type

MARKER = "$patch"
SET_ORDER = "$setElementOrder"

List = list[Any]
MAP = "map[string]interface {}"


def same(left: Any, right: Any) -> bool:
    """Compare JSON values as ``reflect.DeepEqual`` does: 1, 1.0 and true are three different
    values."""
    if plain_type(left) is not plain_type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def element_type(*lists: List) -> type:
    """Return the one type of all elements. Raises PatchError for a mixture, lists of lists, and no
    elements at all."""
    common: type | None = None
    for element in (element for elements in lists for element in elements):
        if common is None and isinstance(element, list):
            raise PatchError("lists of lists are not supported", 422)
        if common not in (None, plain_type(element)):
            raise PatchError(f"list element types are not identical: {format_value(list(lists))}")
        common = plain_type(element)
    if common is None:
        raise PatchError("no elements in any of the given slices")
    return common


def is_directive(value: Any) -> bool:
    return isinstance(value, dict) and MARKER in value


def key_value(element: Any, merge_key: str) -> Any:
    """Return the value of an element's merge key. Raises PatchError."""
    if not isinstance(element, dict):
        raise bad_argument(MAP, element)
    if merge_key not in element:
        raise PatchError(
            f"map: {format_value(element)} does not contain declared merge key: {merge_key}"
        )
    return element[merge_key]


def is_same_element(left: Any, right: Any, merge_key: str) -> bool:
    if not merge_key:
        return same(left, right)
    return same(key_value(left, merge_key), key_value(right, merge_key))


def index_of(elements: List, element: Any, merge_key: str) -> int:
    """Return the index of an element with the same key (of scalars: the same value), or -1. Raises
    PatchError."""
    value = key_value(element, merge_key) if merge_key else element
    for index, other in enumerate(elements):
        if same(key_value(other, merge_key) if merge_key else other, value):
            return index
    return -1


def deduplicate(values: List) -> List:
    """Return scalars without repeats; the last value takes the place of a repeated one, as upstream
    has it."""
    values = list(values)
    first = 0
    while first < len(values) - 1:
        second = first + 1
        while second < len(values):
            if same(values[first], values[second]):
                values[second] = values[-1]
                values.pop()
            else:
                second += 1
        first += 1
    return values


# --- order ----------------------------------------------------------------------------------------


def interleave(merged: List, named: List, order: List, live: List, merge_key: str) -> List:
    """Put the elements in place: those that the patch names in ``order``, the others as in
    ``live``.

    An element of the live object alone goes before the first named one that comes after it in
    ``live``; named ones that are new come first (``normalizeElementOrder``, ``mergeSortedSlice``).
    """
    of_patch = [element for element in merged if index_of(named, element, merge_key) >= 0]
    unnamed = [element for element in merged if index_of(named, element, merge_key) < 0]
    of_patch = _sorted(of_patch, order, merge_key)
    unnamed = _sorted(unnamed, live, merge_key)
    placed: List = []
    while of_patch and unnamed:
        left = index_of(live, unnamed[0], merge_key)
        right = index_of(live, of_patch[0], merge_key)
        placed.append(unnamed.pop(0) if 0 <= left < right else of_patch.pop(0))
    return placed + unnamed + of_patch


def _sorted(elements: List, order: List, merge_key: str) -> List:
    """Sort elements into the order; the deletions among them (in a patch) come last.

    Elements are inserted one by one, as Go's sort does it. An element that the order does not name
    counts as less than any other, so that its place follows from the insertions.
    """
    in_order: List = []
    for element in elements:
        if is_directive(element):
            continue
        index = index_of(order, element, merge_key) if in_order else -1
        place = len(in_order)
        while place:
            before = index_of(order, in_order[place - 1], merge_key)
            if 0 <= before <= index:
                break
            place -= 1
        in_order.insert(place, element)
    return in_order + [element for element in elements if is_directive(element)]


def places(live: List, merged: List, merge_key: str) -> List:
    """Return the live list to order by.

    Upstream's merge reuses the live list's memory: if elements were deleted, its tail holds
    elements that were appended, which therefore count as the last ones of the live list.
    """
    if not merge_key:
        return live
    kept = [
        element
        for element in live
        if any(is_same_element(element, other, merge_key) for other in merged)
    ]
    new = [
        element
        for element in merged
        if not any(is_same_element(element, other, merge_key) for other in live)
    ]
    return kept + new[: len(live) - len(kept)]


def check_order(ours: List, order: List, merge_key: str) -> None:
    """Raise PatchError if the patch's elements are not in the order that it sets.

    Upstream: ``validatePatchWithSetOrderList``.
    """
    rest = iter(order)
    for element in ours:
        if merge_key and not isinstance(element, dict):
            raise bad_argument(MAP, element)
        if is_directive(element) or any(
            is_same_element(element, other, merge_key) for other in rest
        ):
            continue
        raise PatchError(
            f"The order in patch list:\n{format_value(ours)}\n doesn't match {SET_ORDER} list:\n"
            f"{format_value(order)}\n"
        )
