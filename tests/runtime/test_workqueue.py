"""The work queue of a controller."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from kubepy.runtime.workqueue import WorkQueue

START = datetime(2026, 11, 20, 10, tzinfo=UTC)


class Hands:
    """A queue, and a clock that the test moves."""

    def __init__(self, delays: tuple[float, float] = (1, 4), burst: float = math.inf) -> None:
        self.now = START
        self.queue: WorkQueue[str] = WorkQueue(lambda: self.now, delays, burst)

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def ready(self) -> list[str]:
        found = []
        while (key := self.queue.get()) is not None:
            self.queue.done(key)
            found.append(key)
        return found


def test_delay_that_can_be_skipped_is_one_like_any_other_until_somebody_does():
    hands = Hands()
    hands.queue.add_after("formal", 5, skippable=True)
    hands.queue.add_after("real", 4)
    assert hands.ready() == []
    assert hands.queue.can_skip("formal")
    assert not hands.queue.can_skip("real")
    assert hands.queue.skip_waits()
    assert hands.ready() == ["formal"]
    assert not hands.queue.skip_waits()
    hands.pass_time(5)
    assert hands.ready() == ["real"]


def test_delay_that_is_over_cannot_be_skipped_any_more():
    hands = Hands()
    hands.queue.add_after("formal", 5, skippable=True)
    hands.pass_time(5)
    assert hands.ready() == ["formal"]
    assert not hands.queue.skip_waits()


def test_waits_are_skipped_in_order_in_which_they_would_have_ended():
    hands = Hands()
    for key, seconds in (("late", 9), ("soon", 1), ("between", 5)):
        hands.queue.add_after(key, seconds, skippable=True)
    hands.queue.skip_waits()
    assert hands.ready() == ["soon", "between", "late"]


def test_back_off_doubles_up_to_its_limit():
    hands = Hands()
    waits = []
    for _ in range(4):
        hands.queue.add_rate_limited("x")
        due = hands.queue.next_due()
        assert due is not None
        waits.append((due - hands.now).total_seconds())
        hands.now = due
        hands.ready()
    assert waits == [1, 2, 4, 4]


def test_key_that_comes_too_often_waits_for_a_second():
    hands = Hands(burst=3)
    handed_out = []
    for _ in range(5):
        hands.queue.add("again")
        hands.queue.add("other") if not handed_out else None
        handed_out += hands.ready()
    assert handed_out == ["again", "other", "again", "again"]
    assert hands.queue.next_single_due() == START + timedelta(seconds=1)
    hands.pass_time(1)
    hands.queue.add("again")
    assert hands.ready() == ["again"]
    hands.queue.add("again")
    assert hands.ready() == []
    hands.pass_time(3)
    assert hands.ready() == ["again"]


def test_key_that_was_put_off_cancelled_and_put_off_again_waits_once():
    hands = Hands()
    hands.queue.add_after("a", 5)
    hands.queue.cancel("a")
    hands.queue.add_after("a", 5)
    assert hands.queue.pending() == [("a", START + timedelta(seconds=5))]
    hands.pass_time(5)
    assert hands.ready() == ["a"]
    assert hands.queue.pending() == []


@pytest.mark.parametrize("seed", range(20))
def test_workqueue_equals_a_simple_list_of_times(seed):
    random, hands = Random(seed), Hands()
    due: dict[str, datetime] = {}
    ready: list[str] = []
    for _ in range(200):
        key = random.choice("abcde")
        match random.choice(["after", "after", "cancel", "pass", "add", "take"]):
            case "after":
                seconds = random.choice([1, 2, 3])
                hands.queue.add_after(key, seconds)
                due[key] = min(
                    due.get(key, hands.now + timedelta(9)), hands.now + timedelta(seconds=seconds)
                )
            case "cancel":
                hands.queue.cancel(key)
                due.pop(key, None)
            case "pass":
                hands.pass_time(1)
                len(hands.queue)  # moves keys that have fallen due into the queue
                over = [one for one in due if due[one] <= hands.now]
                ready += [one for one in over if one not in ready]
                due = {one: time for one, time in due.items() if one not in over}
            case "add":
                hands.queue.add(key)
                ready += [key] if key not in ready else []
            case "take":
                assert sorted(hands.ready()) == sorted(ready)
                due = {one: time for one, time in due.items() if one not in ready}
                ready.clear()
        waiting = hands.queue.pending()
        assert sorted(waiting, key=str) == sorted(
            [*((one, None) for one in ready), *due.items()], key=str
        )
        assert hands.queue.next_due() == min(due.values(), default=None)
        assert hands.queue.next_single_due() == min(due.values(), default=None)


def test_repeating_delay_is_left_out_of_what_is_waited_for():
    hands = Hands()
    hands.queue.add_after("again", 5, repeating=True)
    assert (hands.queue.next_single_due(), hands.queue.next_due()) == (
        None,
        START + timedelta(seconds=5),
    )
    hands.queue.add_after("once", 9)
    assert hands.queue.next_single_due() == START + timedelta(seconds=9)
    hands.pass_time(5)
    assert hands.ready() == ["again"]
    hands.queue.add_after("again", 3)
    assert not hands.queue.is_repeating("again")
    assert hands.queue.next_single_due() == START + timedelta(seconds=8)


def test_delay_of_key_that_is_handed_out_is_over():
    hands = Hands()
    hands.queue.add_after("a", 5)
    hands.queue.add("a")
    assert hands.ready() == ["a"]
    assert hands.queue.pending() == []


@pytest.mark.parametrize(
    ("first", "second"), [((5, True), (9, False)), ((9, False), (5, True)), ((5, False), (9, True))]
)
def test_repeating_delay_beside_single_one_is_waited_for(first, second):
    hands = Hands()
    for seconds, repeating in (first, second):
        hands.queue.add_after("a", seconds, repeating=repeating)
    assert hands.queue.next_single_due() == START + timedelta(seconds=5)


def test_back_off_at_its_limit_is_repeating():
    hands = Hands()
    for is_at_limit in (False, False, True, True):
        hands.queue.add_rate_limited("x")
        assert hands.queue.is_repeating("x") == is_at_limit
        hands.pass_time(4)
        hands.ready()


def test_moments_that_were_replaced_do_not_pile_up():
    hands = Hands()
    hands.queue.add_after("late", 900)
    for seconds in range(500, 0, -1):
        hands.queue.add_after("a", seconds)
    assert len(hands.queue._delayed) < 100
    assert [key for key, _ in hands.queue.pending()] == ["a", "late"]
    assert hands.queue.next_due() == START + timedelta(seconds=1)


def test_moment_that_no_clock_reaches_is_never_due():
    hands = Hands()
    hands.queue.add_after("late", 1e18)
    hands.queue.add_at("later", datetime(2262, 1, 1, tzinfo=UTC))
    hands.queue.add_at("in time", datetime(2261, 12, 31, tzinfo=UTC))
    assert [key for key, _ in hands.queue.pending()] == ["in time"]


def test_held_key_is_handed_out_at_its_moment_whoever_adds_it():
    hands = Hands()
    hands.queue.hold("a", START + timedelta(seconds=5), repeating=True)
    hands.queue.add("a")
    hands.queue.add("b")
    assert hands.ready() == ["b"]
    assert hands.queue.pending() == [("a", START + timedelta(seconds=5))]
    assert hands.queue.is_repeating("a")
    hands.pass_time(4)
    hands.queue.add("a")
    assert hands.ready() == []
    hands.pass_time(1)
    assert hands.ready() == ["a"]
    hands.queue.add("a")
    assert hands.ready() == ["a"]


def test_released_key_is_handed_out_now_if_it_had_been_put_off():
    hands = Hands()
    for key in ("waits", "later"):
        hands.queue.hold(key, START + timedelta(seconds=9))
    hands.queue.add("waits")
    hands.queue.add_after("later", 2)
    assert hands.ready() == []
    for key in ("waits", "later", "unknown"):
        hands.queue.release(key)
    assert hands.ready() == ["waits"]
    hands.pass_time(2)
    assert hands.ready() == ["later"]


def test_resting_key_is_handed_out_after_so_many_periods_in_any_case() -> None:
    hands = Hands()
    hands.queue.rest("a", 15, periods=3)
    assert [due for _, due in hands.queue.pending()] == [START + timedelta(seconds=15)]
    hands.pass_time(44)
    assert hands.ready() == []
    hands.pass_time(1)
    assert hands.ready() == ["a"]


def test_key_with_a_bounded_rest_comes_at_the_end_of_the_period_in_which_it_is_added() -> None:
    hands = Hands()
    hands.queue.rest("a", 15, periods=3)
    hands.pass_time(16)
    hands.queue.add_after("a", 20)
    assert hands.queue.next_due() == START + timedelta(seconds=30)
