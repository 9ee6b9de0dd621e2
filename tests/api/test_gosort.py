"""Go's ``sort.Sort``, also of values that compare equal."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kubepy.api.values.gosort import go_sorted


def by_key(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[0]


@given(st.lists(st.integers(0, 5), max_size=300))
def test_every_value_is_there_and_in_order(keys: list[int]) -> None:
    values = [(key, at) for at, key in enumerate(keys)]
    found = go_sorted(values, by_key)
    assert sorted(found) == sorted(values)
    assert all(one[0] <= other[0] for one, other in pairwise(found))


@given(st.lists(st.integers(), max_size=12))
def test_few_equal_values_keep_their_order(keys: list[int]) -> None:
    values = [(key % 3, at) for at, key in enumerate(keys)]
    assert go_sorted(values, by_key) == sorted(values)


def test_many_equal_values_come_out_as_go_leaves_them() -> None:
    """18 values whose first partition is as bad as can be, so that three are swapped by chance."""
    keys = [4, 2, 6, 6, 0, 9, 6, 8, 0, 2, 7, 0, 2, 2, 3, 7, 4, 0]
    found = go_sorted(list(zip(keys, range(18), strict=True)), by_key)
    assert [at for _, at in found] == [8, 4, 11, 17, 9, 1, 12, 13, 14, 16, 0, 3, 6, 2, 10, 15, 7, 5]


def test_values_that_are_all_equal_stay() -> None:
    values = [(0, at) for at in range(60)]
    assert go_sorted(values, by_key) == values


def test_values_in_falling_order_are_turned_around() -> None:
    assert go_sorted(range(100, 0, -1), lambda one, other: one < other) == list(range(1, 101))


def test_a_less_that_always_says_yes_turns_few_values_around() -> None:
    assert go_sorted("abc", lambda one, other: True) == ["c", "b", "a"]
