"""The work queue of a controller."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kubepy.cluster.workqueue import WorkQueue

START = datetime(2026, 11, 20, 10, tzinfo=UTC)


class Hands:
    """A queue, and a clock that moves when it is told to."""

    def __init__(self, delays: tuple[float, float] = (1, 4)) -> None:
        self.now = START
        self.queue: WorkQueue[str] = WorkQueue(lambda: self.now, delays)

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def ready(self) -> list[str]:
        found = []
        while (key := self.queue.get()) is not None:
            self.queue.done(key)
            found.append(key)
        return found


def test_a_delay_that_can_be_skipped_is_one_like_any_other_until_somebody_does():
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


def test_a_delay_that_is_over_cannot_be_skipped_any_more():
    hands = Hands()
    hands.queue.add_after("formal", 5, skippable=True)
    hands.pass_time(5)
    assert hands.ready() == ["formal"]
    assert not hands.queue.skip_waits()


def test_waits_are_skipped_in_the_order_in_which_they_would_have_ended():
    hands = Hands()
    for key, seconds in (("late", 9), ("soon", 1), ("between", 5)):
        hands.queue.add_after(key, seconds, skippable=True)
    hands.queue.skip_waits()
    assert hands.ready() == ["soon", "between", "late"]


def test_a_back_off_doubles_up_to_its_limit():
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
