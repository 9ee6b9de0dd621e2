"""Time and chance."""

from __future__ import annotations

import uuid

import pytest

from kubepy.cluster.clock import Ids


@pytest.mark.parametrize("seed", [None, 7, "lab"])
def test_uids_sort_by_when_they_were_made(seed: int | str | None) -> None:
    ids = Ids(seed)
    made = [uuid.UUID(ids.uid()) for _ in range(300)]
    assert made == sorted(made)
    assert {(one.version, one.variant) for one in made} == {(7, uuid.RFC_4122)}


def test_uids_repeat_with_their_seed_and_position() -> None:
    first, again, later, other = Ids(7), Ids(7), Ids(7, position=2), Ids(8)
    uids = [first.uid() for _ in range(3)]
    assert [again.uid() for _ in range(3)] == uids
    assert later.uid() == uids[2]
    assert other.uid() != uids[0]
