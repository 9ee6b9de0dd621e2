"""The elements of lists in strategic merge patches: which are one and the same, and in which order they stand.

Upstream: ``apimachinery/pkg/util/strategicpatch/patch.go``. ``merge_key`` is the field by which a list of maps is
merged, "" for a list of scalars.
"""

from __future__ import annotations

from typing import Any

from kubepy.api.patches import PatchError, bad_argument
from kubepy.api.values.goformat import format_value

MARKER = "$patch"
SET_ORDER = "$setElementOrder"

List = list[Any]
MAP = "map[string]interface {}"


def same(left: Any, right: Any) -> bool:
    """``reflect.DeepEqual`` on JSON: 1, 1.0 and true are three different values."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def element_type(*lists: List) -> type:
    """The one type of all elements. Raises PatchError for a mixture, for lists of lists and for none at all."""
    found: type | None = None
    for one in (element for elements in lists for element in elements):
        if found is None and isinstance(one, list):
            raise PatchError("lists of lists are not supported", 422)
        if found not in (None, type(one)):
            raise PatchError(f"list element types are not identical: {format_value(list(lists))}")
        found = type(one)
    if found is None:
        raise PatchError("no elements in any of the given slices")
    return found


def is_directive(value: Any) -> bool:
    return isinstance(value, dict) and MARKER in value


def key_value(element: Any, merge_key: str) -> Any:
    """The element's merge key. Raises PatchError."""
    if not isinstance(element, dict):
        raise bad_argument(MAP, element)
    if merge_key not in element:
        raise PatchError(f"map: {format_value(element)} does not contain declared merge key: {merge_key}")
    return element[merge_key]


def is_same_element(left: Any, right: Any, merge_key: str) -> bool:
    if not merge_key:
        return same(left, right)
    return same(key_value(left, merge_key), key_value(right, merge_key))


def index_of(elements: List, wanted: Any, merge_key: str) -> int:
    """Where an element with the same key (of scalars: the same value) stands, or -1. Raises PatchError."""
    value = key_value(wanted, merge_key) if merge_key else wanted
    for index, one in enumerate(elements):
        if same(key_value(one, merge_key) if merge_key else one, value):
            return index
    return -1


def deduplicate(values: List) -> List:
    """Scalars without repeats: the last takes the place of a repeated one, as upstream does it."""
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


# --- order ------------------------------------------------------------------------------------------------------------


def interleave(merged: List, named: List, order: List, live: List, merge_key: str) -> List:
    """Put the elements in place: those that the patch names in ``order``, the others as in ``live``.

    An element of the live object alone goes before the first named one that comes after it in ``live``; named ones
    that are new come first (``normalizeElementOrder``, ``mergeSortedSlice``).
    """
    ours = [one for one in merged if index_of(named, one, merge_key) >= 0]
    theirs = [one for one in merged if index_of(named, one, merge_key) < 0]
    ours, theirs = _sorted(ours, order, merge_key), _sorted(theirs, live, merge_key)
    placed: List = []
    while ours and theirs:
        left, right = index_of(live, theirs[0], merge_key), index_of(live, ours[0], merge_key)
        placed.append(theirs.pop(0) if 0 <= left < right else ours.pop(0))
    return placed + theirs + ours


def _sorted(elements: List, order: List, merge_key: str) -> List:
    """Elements in that order; the deletions among them (in a patch) come last.

    Insertion by insertion, as Go sorts: where one that the order does not name ends up follows from that.
    """
    gone = [one for one in elements if is_directive(one)]
    found: List = []
    for one in (one for one in elements if not is_directive(one)):
        place = len(found)
        while place and _is_before(one, found[place - 1], order, merge_key):
            place -= 1
        found.insert(place, one)
    return found + gone


def _is_before(left: Any, right: Any, order: List, merge_key: str) -> bool:
    """Whether the order has one before the other; what it does not name is before anything, and behind it too."""
    first, second = index_of(order, left, merge_key), index_of(order, right, merge_key)
    return first < second if first >= 0 and second >= 0 else True


def places(live: List, merged: List, merge_key: str) -> List:
    """The live list to order by. Upstream's merge reuses its memory: where elements were deleted, the tail of the
    live list holds the ones that were appended, which therefore count as the last ones there."""
    if not merge_key:
        return live
    kept = [one for one in live if any(is_same_element(one, other, merge_key) for other in merged)]
    new = [one for one in merged if not any(is_same_element(one, other, merge_key) for other in live)]
    return kept + new[:len(live) - len(kept)]


def check_order(ours: List, order: List, merge_key: str) -> None:
    """The elements of the patch must stand in the order that it sets (``validatePatchWithSetOrderList``)."""
    rest = iter(order)
    for element in ours:
        if merge_key and not isinstance(element, dict):
            raise bad_argument(MAP, element)
        if is_directive(element) or any(is_same_element(element, other, merge_key) for other in rest):
            continue
        raise PatchError(f"The order in patch list:\n{format_value(ours)}\n doesn't match {SET_ORDER} list:\n"
                         f"{format_value(order)}\n")
