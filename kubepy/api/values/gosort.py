"""The order in which Go's ``sort.Sort`` leaves values, those that compare equal included: it is not stable.

Up to twelve values are sorted by insertion, which keeps equal ones in their order unless ``less`` contradicts itself;
more by pattern-defeating quicksort, as Go has it, so that what it does to equal ones comes out the same.
Upstream: Go's ``sort/zsortinterface.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")

_INSERTION = 12  # the longest range that is sorted by insertion
_NINTHER = 50  # the shortest whose pivot is a median of medians
_UNKNOWN, _INCREASING, _DECREASING = range(3)


def go_sorted(values: Iterable[T], less: Callable[[T, T], bool]) -> list[T]:
    """The values in the order that ``sort.Sort`` gives them."""
    items = list(values)
    _Sort(items, less).sort(0, len(items), len(items).bit_length())
    return items


class _Sort(Generic[T]):
    """Sorts ranges of ``items`` in place; all methods take and give positions."""

    def __init__(self, items: list[T], less: Callable[[T, T], bool]) -> None:
        self.items = items
        self._less = less

    def less(self, one: int, other: int) -> bool:
        return self._less(self.items[one], self.items[other])

    def swap(self, one: int, other: int) -> None:
        self.items[one], self.items[other] = self.items[other], self.items[one]

    def sort(self, start: int, end: int, limit: int) -> None:
        """``limit``: how many bad pivots are borne before it turns to a heap."""
        balanced = partitioned = True
        while end - start > _INSERTION:
            if limit == 0:
                self.heap(start, end)
                return
            if not balanced:
                self.shuffle(start, end)
                limit -= 1
            pivot, hint = self.pivot(start, end)
            if hint == _DECREASING:
                self.items[start:end] = self.items[start:end][::-1]
                pivot, hint = end - 1 - (pivot - start), _INCREASING
            if balanced and partitioned and hint == _INCREASING and self.nearly_sorted(start, end):
                return
            if start > 0 and not self.less(start - 1, pivot):
                start = self.split_off_equal(start, end, pivot)
                continue
            middle, partitioned = self.partition(start, end, pivot)
            left, right = middle - start, end - middle
            balanced = min(left, right) >= (end - start) // 8
            if left < right:
                self.sort(start, middle, limit)
                start = middle + 1
            else:
                self.sort(middle + 1, end, limit)
                end = middle
        self.insert(start, end)

    def insert(self, start: int, end: int) -> None:
        for at in range(start + 1, end):
            self.sink(at, start)

    def sink(self, at: int, least: int) -> None:
        """Move one down until what stands before it is not greater."""
        while at > least and self.less(at, at - 1):
            self.swap(at, at - 1)
            at -= 1

    def rise(self, at: int, end: int) -> None:
        while at < end and self.less(at, at - 1):
            self.swap(at, at - 1)
            at += 1

    def nearly_sorted(self, start: int, end: int) -> bool:
        """Put right up to five neighbours; whether that was all."""
        at = start + 1
        for _ in range(5):
            while at < end and not self.less(at, at - 1):
                at += 1
            if at == end:
                return True
            if end - start < _NINTHER:
                return False
            self.swap(at, at - 1)
            if at - start >= 2:
                self.sink(at - 1, 0)
            if end - at >= 2:
                self.rise(at + 1, end)
        return False

    # --- partitions

    def partition(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """Where the pivot ends up between what is less and what is not, and whether nothing had to be moved."""
        self.swap(start, pivot)
        low, high = self.misplaced(start, start + 1, end - 1)
        untouched = low > high
        while low <= high:
            self.swap(low, high)
            low, high = self.misplaced(start, low + 1, high - 1)
        self.swap(high, start)
        return high, untouched

    def misplaced(self, pivot: int, low: int, high: int) -> tuple[int, int]:
        while low <= high and self.less(low, pivot):
            low += 1
        while low <= high and not self.less(high, pivot):
            high -= 1
        return low, high

    def split_off_equal(self, start: int, end: int, pivot: int) -> int:
        """Where what is greater than the pivot begins, when nothing is less."""
        self.swap(start, pivot)
        low, high = start + 1, end - 1
        while True:
            while low <= high and not self.less(start, low):
                low += 1
            while low <= high and self.less(start, high):
                high -= 1
            if low > high:
                return low
            self.swap(low, high)
            low, high = low + 1, high - 1

    # --- pivots

    def pivot(self, start: int, end: int) -> tuple[int, int]:
        """A position near the middle of the order, and what it tells of the whole."""
        quarter = (end - start) // 4
        swaps = [0]
        one, two, three = (start + quarter * number for number in (1, 2, 3))
        if end - start >= _NINTHER:
            one, two, three = (self.median(at - 1, at, at + 1, swaps) for at in (one, two, three))
        middle = self.median(one, two, three, swaps)
        return middle, {0: _INCREASING, 12: _DECREASING}.get(swaps[0], _UNKNOWN)

    def median(self, one: int, two: int, three: int, swaps: list[int]) -> int:
        one, two = self.ordered(one, two, swaps)
        two, three = self.ordered(two, three, swaps)
        return self.ordered(one, two, swaps)[1]

    def ordered(self, one: int, other: int, swaps: list[int]) -> tuple[int, int]:
        if self.less(other, one):
            swaps[0] += 1
            return other, one
        return one, other

    def shuffle(self, start: int, end: int) -> None:
        """Break what made the last partition bad, by chance that is the same every time."""
        length = chance = end - start
        for number in range(3):
            chance ^= chance << 13 & 2**64 - 1
            chance ^= chance >> 7
            chance ^= chance << 17 & 2**64 - 1
            other = chance & (1 << length.bit_length()) - 1
            other -= length if other >= length else 0
            self.swap(start + length // 4 * 2 - 1 + number, start + other)

    # --- heap

    def heap(self, start: int, end: int) -> None:
        length = end - start
        for root in range((length - 1) // 2, -1, -1):
            self.sift(start, root, length)
        for last in range(length - 1, -1, -1):
            self.swap(start, start + last)
            self.sift(start, 0, last)

    def sift(self, start: int, root: int, length: int) -> None:
        while (child := 2 * root + 1) < length:
            if child + 1 < length and self.less(start + child, start + child + 1):
                child += 1
            if not self.less(start + root, start + child):
                return
            self.swap(start + root, start + child)
            root = child
