"""What a DaemonSet's nodes add to its status and rolling update, kept from sync to sync, is what a
look at all nodes gives."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubepy.controllers.daemonset.decide import update_daemon_set
from kubepy.controllers.daemonset.nodes import DaemonSetNodes
from kubepy.controllers.daemonset.placement import HERE, NOWHERE, Placement
from kubepy.controllers.daemonset.pods import (
    DaemonPod,
    PodCriteria,
    find_updated_pods_on_node,
    oldest_first,
    read_daemon_pod,
)
from kubepy.controllers.daemonset.rolling_update import old_pods_to_delete
from kubepy.controllers.daemonset.status import Counts

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


def whole_counts(nodes: DaemonSetNodes, criteria: PodCriteria) -> Counts:
    """Count the nodes one by one."""
    pods_on = nodes.nodes_to_daemon_pods
    desired = [node for node, placement in nodes.placements.items() if placement.should_run]
    others = [node for node, placement in nodes.placements.items() if not placement.should_run]
    counted = [oldest_first(pods_on[node])[0] for node in desired if node in pods_on]
    return Counts(
        len(desired),
        len(counted),
        sum(node in pods_on for node in others),
        sum(pod.is_ready for pod in counted),
        sum(map(criteria.is_available, counted)),
        sum(map(criteria.is_updated, counted)),
    )


def whole_replacement(
    nodes: DaemonSetNodes, criteria: PodCriteria, max_unavailable: int
) -> list[str]:
    """Choose the old pods that give way, node by node."""
    unavailable, at_once, candidates = 0, [], []
    for node in nodes.nodes_to_update():
        new, old, has_surplus = find_updated_pods_on_node(nodes.pods_on(node), criteria)
        if has_surplus or (new is None) == (old is None):
            unavailable += 1
        elif new is not None:
            unavailable += not criteria.is_available(new)
        elif old is not None:
            unavailable += not criteria.is_available(old)
            (candidates if criteria.is_available(old) else at_once).append(old.name)
    return [*at_once, *candidates[: max(max_unavailable - unavailable, 0)]]


@settings(max_examples=150, deadline=None)
@given(CHANGES, st.sampled_from([0, 60]))
def test_kept_statuses_equal_those_of_look_at_all_nodes(
    changes: list[tuple[str, int, Any]], min_ready: int
) -> None:
    nodes = DaemonSetNodes()
    nodes.set_placements(dict.fromkeys(NODES, HERE))
    pods: dict[str, DaemonPod] = {}
    owner = daemon_set(strategy=rolling(2), min_ready_seconds=min_ready)
    state = state_of(owner, [], {})
    criteria = state.criteria
    for what, number, detail in changes:
        name = f"pod-{number}"
        if what in ("pod", "gone"):
            old = pods.pop(name, None)
            if detail is not None:
                pods[name] = read_daemon_pod(pod(name, age=90 - number, **detail))
            nodes.replace(old, None)
            nodes.replace(None, pods.get(name))
        elif what == "node":
            placements = dict(nodes.placements)
            placements.pop(NODES[number], None)
            if detail is not None:
                placements[NODES[number]] = detail
            nodes.set_placements(dict(sorted(placements.items())))
        elif what == "template":
            criteria = criteria._replace(hash=(HASH, OLD_HASH)[number])
        else:
            state = state._replace(now=state.now + timedelta(seconds=number))
            if criteria.ready_by is not None:
                ready_by = criteria.ready_by + timedelta(seconds=number)
                criteria = criteria._replace(ready_by=ready_by)
        fresh = DaemonSetNodes([pods[name] for name in sorted(pods)])
        fresh.set_placements(nodes.placements)
        for observed in (nodes, fresh):
            observed.observe(criteria)
        state = state._replace(nodes=nodes, criteria=criteria, pods=pods.values())
        assert nodes.nodes_to_daemon_pods == fresh.nodes_to_daemon_pods
        assert nodes.unsettled == fresh.unsettled
        assert nodes.num_unavailable == fresh.num_unavailable
        assert nodes.allowed_replacement_pods == fresh.allowed_replacement_pods
        assert nodes.candidate_pods == fresh.candidate_pods
        assert nodes.counts() == whole_counts(nodes, criteria)
        assert old_pods_to_delete(state, 2) == whole_replacement(nodes, criteria, 2)
        assert update_daemon_set(state) == update_daemon_set(state._replace(nodes=fresh))
