"""Eight processes that increment one counter, each write on the condition that nobody else has
written since it was read: the sum is exact."""

from __future__ import annotations

import pytest

from tests.etcd import require_long_tests

from .counters import SUM, make_counter, read_counter, start_authors, wait_for_authors

PROCESSES = 8
SECONDS = 900.0  # within which all must have counted


@pytest.mark.parametrize("number", [15, 1250])
def test_increments_of_eight_processes_are_exact(etcd_address: str, number: int) -> None:
    if number > 100:
        require_long_tests()
    make_counter(etcd_address).close()
    met = wait_for_authors(start_authors(etcd_address, PROCESSES, number), SECONDS)
    counted = read_counter(etcd_address, met)
    total = PROCESSES * number
    print(f"{total} increments, {met}")  # for -s
    own = {f"author-{process}": str(number) for process in range(PROCESSES)}
    assert counted.data == {SUM: str(total), **own}
    assert counted.sums == list(range(total + 1))
    assert met["conflicts"] > 0
