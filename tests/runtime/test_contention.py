"""Controllers that undo each other's work are noticed, and those that get on are not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kubepy.api.clock import format_time
from kubepy.api.meta import Object
from kubepy.api.watch import WatchEvent
from kubepy.runtime.contention import (
    FEWEST_ROUNDS,
    LONGEST_WAIT,
    MANY_UNDONE,
    MOST_ROUNDS,
    Contention,
    Party,
    cycles_of,
    first_difference,
    waits_of,
)
from kubepy.storage import Key

START = datetime(2026, 1, 1, tzinfo=UTC)
OWNER = Key("replicasets.apps", "default", "web")
MAKER = Party("replicaset-controller", OWNER)
DEPLOYMENT = Key("deployments.apps", "default", "web")
AUTOSCALERS = tuple(
    Party(
        "horizontal-pod-autoscaler-controller",
        Key("horizontalpodautoscalers.autoscaling", "default", name),
    )
    for name in ("a", "b")
)


class Ring:
    """A contention, and a clock that the test moves."""

    def __init__(self) -> None:
        self.now = START
        self.held: dict[Party, tuple[datetime, bool]] = {}
        self.released: list[Party] = []
        self.contention = Contention(lambda: self.now, self._hold, self.released.append)

    def _hold(self, party: Party, until: datetime, is_longest: bool) -> None:
        self.held[party] = until, is_longest

    def pod(
        self,
        name: str = "web-1",
        phase: str = "Pending",
        kind: str = "ReplicaSet",
        **metadata: object,
    ) -> Object:
        owner = {"kind": kind, "name": "web", "uid": "u", "controller": True}
        return {
            "kind": "Pod",
            "metadata": {
                "name": name,
                "ownerReferences": [owner],
                "uid": name,
                "creationTimestamp": format_time(self.now),
                **metadata,
            },
            "status": {"phase": phase},
        }

    def make(self, pod: Object, maker: Party = MAKER) -> None:
        self.contention.note(
            WatchEvent(Key("pods", "default", pod["metadata"]["name"]), None, pod), maker
        )

    def end(
        self, pod: Object, ended: Object | None = None, by: str = "taint-eviction-controller"
    ) -> None:
        key = Key("pods", "default", pod["metadata"]["name"])
        self.contention.note(WatchEvent(key, pod, ended), Party(by, key))

    def round(self, pods: int = 1, kind: str = "ReplicaSet") -> None:
        made = [self.pod(f"web-{number}", kind=kind) for number in range(pods)]
        for pod in made:
            self.make(pod)
        for pod in made:
            self.end(pod)

    def scale(self, replicas: int, before: int, by: Party) -> None:
        old, new = (
            {"kind": "Deployment", "metadata": {"generation": number}, "spec": {"replicas": number}}
            for number in (before, replicas)
        )
        self.contention.note(WatchEvent(DEPLOYMENT, old, new), by)

    def waits(self) -> list[float]:
        return [(until - self.now).total_seconds() for until, _ in self.held.values()]


def test_maker_of_pods_that_another_controller_deletes_waits_after_most_rounds() -> None:
    ring = Ring()
    for _ in range(MOST_ROUNDS - 1):
        ring.round()
    assert not ring.held
    ring.round()
    assert ring.held == {MAKER: (START + timedelta(seconds=1), False)}
    [contest] = ring.contention.noticed.values()
    assert contest.sentence == (
        "two controllers undo each other's work on replicasets.apps/web in default, 100 times by "
        "now: "
        "replicaset-controller creates pods, taint-eviction-controller deletes them; they wait "
        "longer after each "
        "further round"
    )


def test_wait_doubles_with_each_further_round_up_to_the_longest() -> None:
    ring = Ring()
    for _ in range(MOST_ROUNDS):
        ring.round()
    waits = []
    for _ in range(13):
        waits += ring.waits()
        ring.now = ring.held[MAKER][0]
        ring.round()
    assert waits == [
        1,
        2,
        4,
        8,
        16,
        32,
        64,
        128,
        256,
        512,
        LONGEST_WAIT,
        LONGEST_WAIT,
        LONGEST_WAIT,
    ]
    assert ring.held[MAKER][1]


def test_rounds_of_owner_with_several_pods_count_once_for_all_of_them() -> None:
    ring = Ring()
    for _ in range(MOST_ROUNDS - 1):
        ring.round(pods=4)
    assert not ring.held
    ring.round(pods=4)
    assert MAKER in ring.held


def test_owner_with_many_pods_waits_after_fewer_rounds() -> None:
    ring = Ring()
    for _ in range(FEWEST_ROUNDS - 1):
        ring.round(pods=MANY_UNDONE)
    assert not ring.held
    ring.round(pods=MANY_UNDONE)
    assert MAKER in ring.held


@pytest.mark.parametrize("by", ["replicaset-controller"])
def test_pods_that_their_own_controller_replaces_are_no_contest(by: str) -> None:
    ring = Ring()
    for number in range(20 * MOST_ROUNDS):
        pod = ring.pod(f"web-{number}")
        ring.make(pod)
        ring.end(pod, by=by)
    assert not ring.held


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_of_job_that_end_are_no_contest(phase: str) -> None:
    ring = Ring()
    for number in range(20 * MOST_ROUNDS):
        pod = ring.pod(f"job-{number}", kind="Job")
        ring.make(pod)
        ring.end(pod, {**pod, "status": {"phase": phase}}, by="kubelet")
    assert not ring.held


def test_pods_that_fail_at_once_are_ended_by_the_kubelet() -> None:
    ring = Ring()
    for number in range(MOST_ROUNDS):
        pod = ring.pod(f"web-{number}")
        ring.make(pod)
        ring.end(pod, {**pod, "status": {"phase": "Failed", "reason": "OutOfcpu"}}, by="kubelet")
    [contest] = ring.contention.noticed.values()
    assert (
        contest.deeds == "replicaset-controller creates pods, kubelet ends them: Failed, OutOfcpu"
    )


def test_pods_that_have_lived_for_a_moment_are_no_contest() -> None:
    ring = Ring()
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    for number in range(20 * MOST_ROUNDS):
        pod = {**ring.pod(f"web-{number}"), "status": ready}
        ring.make(pod)
        ring.now += timedelta(milliseconds=1)
    made = [{**ring.pod(f"web-{number}"), "status": ready} for number in range(20 * MOST_ROUNDS)]
    ring.now += timedelta(seconds=10)
    for pod in made:
        ring.end(pod)
    assert not ring.held


def test_round_a_second_goes_on() -> None:
    ring = Ring()
    for _ in range(20 * MOST_ROUNDS):
        ring.round()
        ring.now += timedelta(seconds=1)
    assert not ring.held


def test_two_controllers_that_set_a_field_back_and_forth_wait() -> None:
    ring = Ring()
    for _ in range(MOST_ROUNDS + 1):
        ring.scale(3, 5, by=AUTOSCALERS[0])
        ring.now += timedelta(seconds=5)
        ring.scale(5, 3, by=AUTOSCALERS[1])
        ring.now += timedelta(seconds=10)
    [contest] = ring.contention.noticed.values()
    assert (contest.subject, contest.rounds) == (DEPLOYMENT, MOST_ROUNDS)
    assert contest.deeds == (
        "horizontal-pod-autoscaler-controller for horizontalpodautoscalers.autoscaling/a sets "
        "spec.replicas to 3, "
        "horizontal-pod-autoscaler-controller for horizontalpodautoscalers.autoscaling/b to 5"
    )
    assert set(ring.held) == set(AUTOSCALERS)


def test_spec_that_moves_on_is_no_contest() -> None:
    ring = Ring()
    for number in range(20 * MOST_ROUNDS):
        ring.scale(number + 1, number, by=AUTOSCALERS[number % 2])
    assert not ring.held


def test_change_from_outside_releases_the_maker_for_one_round() -> None:
    ring = Ring()
    for _ in range(MOST_ROUNDS):
        ring.round()
    ring.contention.change_outside()
    assert ring.released == [MAKER]
    assert waits_of(ring.contention.remember())[0].is_released
    ring.round()
    assert ring.waits() == [2]
    assert not waits_of(ring.contention.remember())[0].is_released


@pytest.mark.parametrize(
    ("spec", "released"), [({"taints": []}, [MAKER]), ({"unschedulable": True}, [])]
)
def test_change_of_what_nodes_are_to_be_releases_the_maker(
    spec: Object, released: list[Party]
) -> None:
    ring = Ring()
    for _ in range(MOST_ROUNDS):
        ring.round()
    old = {"kind": "Node", "metadata": {}, "spec": {"unschedulable": True}}
    ring.contention.note(
        WatchEvent(Key("nodes", "", "n"), old, {**old, "spec": spec}), Party("x", OWNER)
    )
    assert ring.released == released


def test_what_happens_long_after_a_wait_is_another_matter() -> None:
    ring = Ring()
    for _ in range(MOST_ROUNDS):
        ring.round()
    ring.now += timedelta(minutes=5)
    ring.held.clear()
    ring.round()
    assert not ring.held


@pytest.mark.parametrize("rounds", [MOST_ROUNDS - 1, MOST_ROUNDS, MOST_ROUNDS + 1])
def test_memory_goes_on_in_another_process(rounds: int) -> None:
    one, other = Ring(), Ring()
    for _ in range(rounds):
        one.round()
    other.contention.recall(one.contention.remember())
    assert other.held == one.held
    for ring in (one, other):
        ring.round()
    assert other.held == one.held
    assert other.contention.remember() == one.contention.remember()


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ({"replicas": 1}, {"replicas": 2}, ("spec.replicas", "1", "2")),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ("spec.a.b[1]", "2", "3")),
        ({"a": [1]}, {"a": [1, 2]}, ("spec.a", "something else", "something else")),
        ({}, {"paused": True}, ("spec.paused", "nothing", "True")),
    ],
)
def test_first_difference_of_specs_names_field_and_values(
    old: Object, new: Object, difference: object
) -> None:
    assert first_difference(old, new) == difference


def test_pods_that_are_ended_at_intervals_are_contest_without_wait() -> None:
    ring = Ring()
    for number in range(MOST_ROUNDS + 1):
        pod = ring.pod(f"web-{number}", "Running")
        ring.contention.note(WatchEvent(Key("pods", "default", f"web-{number}"), None, pod), MAKER)
        ring.now += timedelta(seconds=20)
        ring.contention.note(
            WatchEvent(Key("pods", "default", f"web-{number}"), pod, None),
            Party("taint-eviction-controller", Key("pods", "default", f"web-{number}")),
        )
    assert ring.held == {}
    [cycle] = cycles_of(ring.contention.remember())
    assert (cycle.contest.subject, cycle.contest.interval) == (OWNER, 20.0)
    assert not cycle.is_over(ring.now + timedelta(seconds=30))
    assert cycle.is_over(ring.now + timedelta(seconds=200))
    ring.contention.change_outside()
    assert cycles_of(ring.contention.remember() or {}) == []
