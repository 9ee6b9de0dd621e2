"""When a server gives memory back."""

from __future__ import annotations

from itertools import pairwise

from kubepy.server.memory import MANY, TRIM_SECONDS, MemoryKeeper, find_trim


def test_trims_when_many_have_gone_and_no_more_go() -> None:
    trims: list[int] = []
    keeper = MemoryKeeper(lambda: trims.append(1))
    for now, connections in enumerate((10, 10 + MANY, 11 + MANY, 30, 5)):
        keeper.check(connections, float(now))
    assert not trims
    keeper.check(5, 5.0)
    assert len(trims) == 1
    keeper.check(5, 5.0 + 2 * TRIM_SECONDS)
    assert len(trims) == 1


def test_waits_between_two_trims() -> None:
    trims: list[float] = []
    now = 0.0
    keeper = MemoryKeeper(lambda: trims.append(now))
    for second in range(int(4 * TRIM_SECONDS)):
        now = float(second)
        keeper.check(2 * MANY if second % 3 == 0 else 0, now)
    assert 2 <= len(trims) <= 4
    assert all(later - earlier >= TRIM_SECONDS for earlier, later in pairwise(trims))


def test_trim_of_this_system_can_be_called() -> None:
    find_trim()()
