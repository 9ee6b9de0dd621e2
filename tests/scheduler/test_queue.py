"""Order of the scheduling queue, and the events that wake waiting pods."""

from __future__ import annotations

from datetime import UTC, datetime

from kubepy.runtime.reconcile import Key
from kubepy.scheduler.queue import QueuedPodInfo, SchedulingQueue, UnschedulablePods

NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)


def key(name: str) -> Key:
    return Key("pods", "default", name)


def drained(queue: SchedulingQueue) -> list[str]:
    names = []
    while (found := queue.get()) is not None:
        names.append(found.name)
        queue.done(found)
    return names


def test_lowest_rank_comes_first_and_key_comes_once() -> None:
    ranks = {"a": 2, "b": 1, "c": 3}
    queue = SchedulingQueue(lambda: NOW, lambda one: (ranks[one.name],))
    for name in "abcab":
        queue.add(key(name))
    assert len(queue) == 3
    assert drained(queue) == ["b", "a", "c"]
    assert (queue.get(), len(queue)) == (None, 0)


def test_key_added_while_it_is_worked_on_comes_again() -> None:
    queue = SchedulingQueue(lambda: NOW, lambda one: (one.name,))
    queue.add(key("a"))
    taken = queue.get()
    assert taken == key("a")
    queue.add(taken)
    assert queue.get() is None
    queue.done(taken)
    assert drained(queue) == ["a"]


def waiting_pods() -> UnschedulablePods:
    pods = UnschedulablePods(
        {"Ports": frozenset({"deleted"}), "Fit": frozenset({"deleted", "grown"})}
    )
    pods.add(key("ports"), QueuedPodInfo(frozenset({"Ports"}), frozenset({"node-1"})))
    pods.add(key("fit"), QueuedPodInfo(frozenset({"Fit", "Ports"}), None))
    pods.add(key("no-nodes"), QueuedPodInfo(frozenset(), None))
    return pods


def test_unschedulable_pods_are_found_by_action() -> None:
    pods = waiting_pods()
    assert {one.name for one in pods.registered_for({"grown"})} == {"fit", "no-nodes"}
    assert {one.name for one in pods.registered_for({"deleted"})} == {"ports", "fit", "no-nodes"}
    pods.discard(key("fit"))
    pods.discard(key("no-nodes"))
    assert {one.name for one in pods.registered_for({"grown", "deleted"})} == {"ports"}


def test_unschedulable_pods_survive_process() -> None:
    memory = waiting_pods().remember()
    pods = UnschedulablePods(
        {"Ports": frozenset({"deleted"}), "Fit": frozenset({"deleted", "grown"})}
    )
    pods.add(key("stale"), QueuedPodInfo(frozenset({"Fit"}), None))
    pods.recall(memory)
    assert pods.remember() == memory
    assert pods.get(key("ports")) == QueuedPodInfo(frozenset({"Ports"}), frozenset({"node-1"}))
    assert {one.name for one in pods.registered_for({"grown"})} == {"fit", "no-nodes"}
