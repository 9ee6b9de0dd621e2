"""A sorted map answers as a dict does, and a change leaves the map before it as it was."""

from __future__ import annotations

import random

import pytest

from kubepy.storage.sortedmap import CHUNK, SortedMap


def draw_changes(draw: random.Random, count: int) -> list[tuple[int, str | None]]:
    values = [draw.choice(["a", "b", None]) for _ in range(count)]
    return [(draw.randrange(5 * CHUNK), value) for value in values]


@pytest.mark.parametrize("seed", range(20))
def test_map_after_few_and_many_changes_has_what_a_dict_has(seed: int) -> None:
    draw = random.Random(seed)
    present: SortedMap[int, str] = SortedMap()
    expected: dict[int, str] = {}
    for count in (1, 3 * CHUNK, 2, 40, 5, 8 * CHUNK, 3):
        before, entries_before = present, list(present.items())
        changes = draw_changes(draw, count)
        present = present.changed(changes)
        expected.update(changes)  # type: ignore[arg-type]
        expected = {key: value for key, value in expected.items() if value is not None}

        assert list(before.items()) == entries_before
        assert list(present.items()) == sorted(expected.items())
        assert len(present) == len(expected)
        first, last = sorted((draw.randrange(-1, 5 * CHUNK), draw.randrange(5 * CHUNK + 1)))
        within = [key for key in sorted(expected) if first < key < last]
        assert present.between(first, last) == [expected[key] for key in within]
        assert all(present.get(key) == expected.get(key) for key in range(5 * CHUNK))


def test_empty_map_has_nothing_between_two_keys() -> None:
    assert SortedMap[int, str]().between(1, 3) == []
