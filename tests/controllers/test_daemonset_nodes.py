"""The facts about a DaemonSet's nodes, kept from sync to sync, are those that a look at all nodes
gives."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubepy.controllers.daemonset.decide import decide
from kubepy.controllers.daemonset.placement import HERE, NOWHERE, Placement
from kubepy.controllers.daemonset.pods import DaemonPod, oldest_first, read_daemon_pod
from kubepy.controllers.daemonset.rolling_update import nodes_to_update, replace
from kubepy.controllers.daemonset.state import Counts, DaemonNodes, DaemonSetState

from .daemonset_objects import HASH, OLD_HASH, daemon_set, pod, rolling, state_of

NODES = ("a", "b", "c", "d")
PLACEMENTS = (HERE, NOWHERE, Placement(False, True))
CHANGES = st.lists(
    st.one_of(
        st.tuples(
            st.just("pod"),
            st.integers(0, 5),
            st.fixed_dictionaries(
                {
                    "on": st.sampled_from(NODES),
                    "hash_": st.sampled_from([HASH, OLD_HASH]),
                    "ready_for": st.sampled_from([None, 0, 30, 90]),
                    "deleted": st.booleans(),
                    "bound": st.booleans(),
                    "phase": st.sampled_from(["Running", "Pending", "Failed", "Succeeded"]),
                }
            ),
        ),
        st.tuples(st.just("gone"), st.integers(0, 5), st.none()),
        st.tuples(st.just("node"), st.integers(0, 3), st.sampled_from([None, *PLACEMENTS])),
        st.tuples(st.just("template"), st.integers(0, 1), st.none()),
        st.tuples(st.just("time"), st.integers(1, 60), st.none()),
    ),
    max_size=25,
)


def whole_counts(state: DaemonSetState) -> Counts:
    """Count the nodes one by one."""
    pods_on = state.nodes.pods_on
    desired = [node for node, placement in state.placements.items() if placement.should_run]
    counted = [oldest_first(pods_on[node])[0] for node in desired if node in pods_on]
    return Counts(
        len(desired),
        len(counted),
        sum(
            node in pods_on
            for node, placement in state.placements.items()
            if not placement.should_run
        ),
        sum(pod.is_ready for pod in counted),
        sum(map(state.is_available, counted)),
        sum(map(state.is_updated, counted)),
    )


def whole_replacement(state: DaemonSetState, max_unavailable: int) -> list[str]:
    """Choose the old pods that give way, node by node."""
    unavailable, at_once, candidates = 0, [], []
    for node in nodes_to_update(state):
        new, old, has_surplus = state.updated_and_old_pod(node)
        if has_surplus or (new is None) == (old is None):
            unavailable += 1
        elif new is not None:
            unavailable += not state.is_available(new)
        elif old is not None:
            unavailable += not state.is_available(old)
            (candidates if state.is_available(old) else at_once).append(old.name)
    return [*at_once, *candidates[: max(max_unavailable - unavailable, 0)]]


@settings(max_examples=150, deadline=None)
@given(CHANGES, st.sampled_from([0, 60]))
def test_kept_facts_equal_those_of_look_at_all_nodes(
    changes: list[tuple[str, int, Any]], min_ready: int
) -> None:
    nodes = DaemonNodes()
    pods: dict[str, DaemonPod] = {}
    owner = daemon_set(strategy=rolling(2), min_ready_seconds=min_ready)
    state = state_of(owner, [], dict.fromkeys(NODES, HERE))
    for what, number, detail in changes:
        name = f"pod-{number}"
        if what in ("pod", "gone"):
            old = pods.pop(name, None)
            if detail is not None:
                pods[name] = read_daemon_pod(pod(name, age=90 - number, **detail))
            nodes.replace(old, None)
            nodes.replace(None, pods.get(name))
        elif what == "node":
            rest = {
                node: placement
                for node, placement in state.placements.items()
                if node != NODES[number]
            }
            added = {} if detail is None else {NODES[number]: detail}
            state = state._replace(placements=dict(sorted({**rest, **added}.items())))
        elif what == "template":
            state = state._replace(hash=(HASH, OLD_HASH)[number])
        else:
            state = state._replace(
                now=state.now + timedelta(seconds=number),
                latest_available=state.latest_available + timedelta(seconds=number),
            )
        state = state._replace(nodes=nodes, pods=pods.values())
        fresh = state._replace(nodes=DaemonNodes([pods[name] for name in sorted(pods)]))
        assert nodes.pods_on == fresh.nodes.pods_on
        assert {facts: sorted(names) for facts, names in state.nodes_by_facts().items()} == {
            facts: sorted(names) for facts, names in fresh.nodes_by_facts().items()
        }
        assert state.count_nodes() == whole_counts(state)
        assert replace(state, 2) == ([], whole_replacement(state, 2))
        assert decide(state) == decide(fresh)
