"""Invariants of a rolling update, over random clusters whose pods become ready and disappear at
random."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubepy.api.meta import Object, labels_of, name_of
from kubepy.api.objects.pods import is_pod_available
from kubepy.controllers.daemonset.decide import DaemonSetActions, update_daemon_set
from kubepy.controllers.daemonset.placement import HERE, NOWHERE, Placement
from kubepy.controllers.daemonset.rolling_update import rolling_update, updated_desired_node_counts
from tests.controllers.daemonset_objects import (
    HASH,
    NOW,
    OLD_HASH,
    daemon_set,
    pod,
    rolling,
    state_of,
)

LEAVES_RUNNING = Placement(should_run=False, should_continue=True)


def decision(strategy, pods, placements=None):
    owner = daemon_set(strategy=strategy)
    nodes = sorted({one["spec"]["nodeName"] for one in pods})
    return rolling_update(state_of(owner, pods, placements or dict.fromkeys(nodes, HERE)))


def old(name, on, **more):
    return pod(name, on, hash_=OLD_HASH, **more)


@pytest.mark.parametrize(
    ("unavailable", "pods", "deleted"),
    [
        pytest.param(1, [old("a", "n-1"), old("b", "n-2")], ["a"], id="one at a time"),
        pytest.param(
            2, [old("a", "n-1"), old("b", "n-2"), old("c", "n-3")], ["a", "b"], id="two at a time"
        ),
        pytest.param(
            "50%",
            [old("a", "n-1"), old("b", "n-2"), old("c", "n-3")],
            ["a", "b"],
            id="percent rounds up",
        ),
        pytest.param(
            1,
            [old("a", "n-1", ready_for=None), old("b", "n-2", ready_for=None), old("c", "n-3")],
            ["a", "b"],
            id="unavailable ones all at once, and they use the allowance up",
        ),
        pytest.param(
            1,
            [pod("a", "n-1", ready_for=None), old("b", "n-2")],
            [],
            id="a new one that is not available yet",
        ),
        pytest.param(
            1, [pod("a", "n-1", deleted=True), old("b", "n-2")], [], id="a pod that is going"
        ),
        pytest.param(
            1, [pod("a", "n-1"), old("b", "n-1"), old("c", "n-2")], [], id="a node with one of each"
        ),
        pytest.param(1, [pod("a", "n-1"), pod("b", "n-2")], [], id="all new"),
    ],
)
def test_rolling_update_without_surge_deletes(unavailable, pods, deleted):
    assert decision(rolling(unavailable), pods) == ([], deleted)


@pytest.mark.parametrize(
    ("surge", "pods", "created", "deleted"),
    [
        pytest.param(1, [old("a", "n-1"), old("b", "n-2")], ["n-1"], [], id="one node at a time"),
        pytest.param(
            "60%",
            [old("a", "n-1"), old("b", "n-2"), old("c", "n-3")],
            ["n-1", "n-2"],
            [],
            id="percent",
        ),
        pytest.param(
            1,
            [old("a", "n-1", ready_for=None), old("b", "n-2"), old("c", "n-3")],
            ["n-1", "n-2"],
            [],
            id="beside an unavailable one at once, beyond maxSurge",
        ),
        pytest.param(
            1,
            [old("a", "n-1"), pod("new", "n-1", ready_for=None), old("b", "n-2")],
            [],
            [],
            id="the new one is not available yet",
        ),
        pytest.param(
            1,
            [old("a", "n-1"), pod("new", "n-1"), old("b", "n-2")],
            ["n-2"],
            ["a"],
            id="the new one is available: the old one goes, the next node's turn",
        ),
    ],
)
def test_rolling_update_with_surge_creates(surge, pods, created, deleted):
    assert decision(rolling(0, surge), pods) == (created, deleted)


def test_node_that_should_not_run_pod_gives_it_up_only_as_availability_elsewhere_allows():
    placements = {"n-1": LEAVES_RUNNING, "n-2": HERE}
    waiting = [old("a", "n-1"), pod("b", "n-2", ready_for=None)]
    replaced = [old("a", "n-1"), pod("b", "n-2")]
    assert decision(rolling(0, 1), waiting, placements) == ([], [])
    assert decision(rolling(0, 1), replaced, placements) == ([], ["a"])


def test_node_without_pod_counts_as_unavailable():
    assert decision(rolling(1), [old("a", "n-1")], {"n-1": HERE, "n-2": HERE}) == ([], [])


def test_rolling_update_with_no_surge_and_no_unavailability_allows_one_unavailable():
    assert updated_desired_node_counts(daemon_set(strategy=rolling(0, 0)), 1) == (0, 1)


# --- generated scenarios


@dataclass
class World:
    """Nodes with pods, and a controller that takes one decision per step."""

    daemon_set: Object
    nodes: list[str]
    chance: random.Random
    pods: dict[str, Object] = field(default_factory=dict)
    made: int = 0

    def placements(self) -> dict[str, Placement]:
        return dict.fromkeys(self.nodes, HERE)

    def by_node(self) -> dict[str, list[Object]]:
        found: dict[str, list[Object]] = {}
        for one in self.pods.values():
            found.setdefault(one["spec"]["nodeName"], []).append(one)
        return found

    def add(self, on: str, hash_: str, ready: bool) -> None:
        self.made += 1
        name = f"pod-{self.made}"
        self.pods[name] = pod(
            name, on, hash_=hash_, ready_for=60 if ready else None, age=1000 - self.made
        )

    def available(self) -> int:
        return sum(
            any(is_pod_available(one, 0, NOW) for one in pods) for pods in self.by_node().values()
        )

    def apply(self, actions: DaemonSetActions) -> None:
        for name in actions.pods_to_delete:
            metadata = {**self.pods[name]["metadata"], "deletionTimestamp": "2026-11-20T11:59:00Z"}
            self.pods[name] = {**self.pods[name], "metadata": metadata}
        for node in actions.nodes_needing_daemon_pods:
            self.add(node, HASH, ready=False)

    def live(self) -> None:
        """Remove some of the pods being deleted, and make some of the others ready."""
        for name, one in list(self.pods.items()):
            if self.chance.random() < 0.5:
                continue
            if one["metadata"].get("deletionTimestamp"):
                del self.pods[name]
            else:
                self.pods[name] = pod(
                    name,
                    one["spec"]["nodeName"],
                    hash_=labels_of(one)["controller-revision-hash"],
                    age=1000 - int(name.removeprefix("pod-")),
                )

    def step(self) -> None:
        self.apply(
            update_daemon_set(state_of(self.daemon_set, self.pods.values(), self.placements()))
        )

    def is_updated(self) -> bool:
        return all(
            len(pods) == 1 and labels_of(pods[0])["controller-revision-hash"] == HASH
            for pods in self.by_node().values()
        ) and len(self.pods) == len(self.nodes)


def world(seed: int, size: int, strategy: Object) -> World:
    made = World(
        daemon_set(strategy=strategy),
        [f"n-{number}" for number in range(size)],
        random.Random(seed),
    )
    for name in made.nodes:
        made.add(name, OLD_HASH, ready=True)
    return made


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 9),
    unavailable=st.sampled_from([1, 2, 4, "30%", "100%"]),
)
def test_rolling_update_without_surge_keeps_max_unavailable_and_ends_new(seed, size, unavailable):
    scene = world(seed, size, rolling(unavailable))
    limit = updated_desired_node_counts(scene.daemon_set, size)[1]
    for _ in range(40 * size):
        scene.step()
        alive = [one for one in scene.pods.values() if not one["metadata"].get("deletionTimestamp")]
        assert len({one["spec"]["nodeName"] for one in alive}) == len(alive), (
            "two pods on a node without surge"
        )
        gone = size - sum(is_pod_available(one, 0, NOW) for one in alive)
        assert gone <= limit
        scene.live()
        if scene.is_updated():
            return
    raise AssertionError(f"not updated: {sorted(map(name_of, scene.pods.values()))}")


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 9),
    surge=st.sampled_from([1, 2, 4, "30%", "100%"]),
)
def test_rolling_update_with_surge_keeps_a_pod_per_node_and_ends_new(seed, size, surge):
    scene = world(seed, size, rolling(0, surge))
    limit = updated_desired_node_counts(scene.daemon_set, size)[0]
    for _ in range(40 * size):
        scene.step()
        assert scene.available() == size
        alive = [one for one in scene.pods.values() if not one["metadata"].get("deletionTimestamp")]
        assert len(alive) <= size + limit
        scene.live()
        if scene.is_updated():
            return
    raise AssertionError(f"not updated: {sorted(map(name_of, scene.pods.values()))}")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.booleans(), st.booleans(), st.booleans()), max_size=10
    ),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_decision_never_touches_new_pods_nor_those_that_are_going(specs, unavailable, surge):
    pods = [
        pod(
            f"p-{index}",
            f"n-{on}",
            hash_=HASH if new else OLD_HASH,
            ready_for=60 if ready else None,
            deleted=going,
        )
        for index, (on, new, ready, going) in enumerate(specs)
    ]
    placements = {f"n-{number}": HERE if number else NOWHERE for number in range(5)}
    created, deleted = decision(rolling(unavailable, surge), pods, placements)
    by_name = {name_of(one): one for one in pods}
    assert len(set(deleted)) == len(deleted)
    assert len(set(created)) == len(created)
    for name in deleted:
        assert labels_of(by_name[name])["controller-revision-hash"] == OLD_HASH
        assert "deletionTimestamp" not in by_name[name]["metadata"]
    assert "n-0" not in created
