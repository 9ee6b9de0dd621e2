"""A sorted map that never changes: a change makes another map, which shares with the first all that
did not change.

So a copy costs nothing, and a change of one entry in ten thousand copies a few hundred references.
It is a tree of two levels: chunks of neighbouring entries, and the list of chunks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# entries of a chunk that was split, or of a new map; one that grows beyond twice as many is split
CHUNK = 128


class SortedMap(Generic[K, V]):
    """An immutable map in the order of its keys."""

    __slots__ = ("_chunks", "_firsts")

    def __init__(self, entries: Iterable[tuple[K, V]] = ()) -> None:
        """Make a map of entries that are sorted by their keys, each key once."""
        pairs = list(entries)
        parts = [pairs[start : start + CHUNK] for start in range(0, len(pairs), CHUNK)]
        self._chunks: list[tuple[list[Any], list[V]]] = [
            ([key for key, _ in part], [value for _, value in part]) for part in parts
        ]
        self._firsts: list[Any] = [keys[0] for keys, _ in self._chunks]

    def __len__(self) -> int:
        return sum(len(keys) for keys, _ in self._chunks)

    def __bool__(self) -> bool:
        return bool(self._chunks)

    def get(self, key: K) -> V | None:
        """Return the value of a key, None where there is none."""
        number = bisect_right(self._firsts, key) - 1
        if number < 0:
            return None
        keys, values = self._chunks[number]
        place = bisect_left(keys, key)
        return values[place] if place < len(keys) and keys[place] == key else None

    def values(self) -> list[V]:
        """Return all values in the order of their keys."""
        return [value for _, values in self._chunks for value in values]

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield all entries in order."""
        for keys, values in self._chunks:
            yield from zip(keys, values, strict=True)

    def after(self, key: K) -> Iterator[tuple[K, V]]:
        """Yield the entries whose keys are greater than one."""
        first = max(bisect_right(self._firsts, key) - 1, 0)
        for number in range(first, len(self._chunks)):
            keys, values = self._chunks[number]
            start = bisect_right(keys, key) if number == first else 0
            yield from zip(keys[start:], values[start:], strict=True)

    def between(self, first: K, last: K) -> list[V]:
        """Return the values of the keys that are greater than one, and less than another."""
        values: list[V] = []
        number = max(bisect_right(self._firsts, first) - 1, 0)
        for keys, of_keys in self._chunks[number : bisect_left(self._firsts, last)]:
            values += of_keys[bisect_right(keys, first) : bisect_left(keys, last)]
        return values

    def changed(self, changes: Iterable[tuple[K, V | None]]) -> SortedMap[K, V]:
        """Return a map with entries replaced or added, or removed where the value is None."""
        changes = list(changes)
        if len(changes) > CHUNK and len(changes) > len(self) // 4:  # faster than one by one
            values: dict[Any, V | None] = {**dict(self.items()), **dict(changes)}
            pairs = ((key, values[key]) for key in sorted(values))
            return SortedMap((key, value) for key, value in pairs if value is not None)
        copy: SortedMap[K, V] = SortedMap.__new__(SortedMap)
        copy._chunks, copy._firsts = self._chunks[:], self._firsts[:]
        own: set[int] = set()  # the chunks that are the copy's own, by identity
        for key, value in changes:
            copy._change(key, value, own)
        return copy

    def _change(self, key: K, value: V | None, own: set[int]) -> None:
        if not self._chunks:
            if value is not None:
                self._insert_chunks(0, 0, [([key], [value])], own)
            return

        number = (bisect_right(self._firsts, key) or 1) - 1
        keys, values = self._chunks[number]
        if id(keys) not in own:
            keys, values = keys[:], values[:]
            self._chunks[number] = keys, values
            own.add(id(keys))

        place = bisect_left(keys, key)
        is_present = place < len(keys) and keys[place] == key
        if value is None:
            if is_present:
                del keys[place], values[place]
        elif is_present:
            values[place] = value
        else:
            keys.insert(place, key)
            values.insert(place, value)

        if not keys:
            self._insert_chunks(number, 1, [], own)
        elif len(keys) > 2 * CHUNK:
            # An entry at the end is mostly followed by others there, so the full chunk stays full.
            half = 2 * CHUNK if place == len(keys) - 1 else CHUNK
            self._insert_chunks(
                number, 1, [(keys[:half], values[:half]), (keys[half:], values[half:])], own
            )
        else:
            self._firsts[number] = keys[0]

    def _insert_chunks(
        self, number: int, count: int, chunks: list[tuple[list[Any], list[V]]], own: set[int]
    ) -> None:
        """Put new chunks in place of some."""
        self._chunks[number : number + count] = chunks
        self._firsts[number : number + count] = [keys[0] for keys, _ in chunks]
        own.update(id(keys) for keys, _ in chunks)
