"""Victims of preemption, and the message when there are none."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.scheduler.plugins import FILTER_PLUGINS
from kubepy.scheduler.preemption import Candidate, preempt
from kubepy.scheduler.schedule_one import find_nodes_that_fit_pod

from .objects import handle, info, look, message, names, node, pod


def holding(
    name: str, priority: int, cpu: str = "1", on: str = "a", start: str = "", **rest: Any
) -> dict[str, Any]:
    made = pod(name, on=on, requests={"cpu": cpu}, priority=priority, **rest)
    if start:
        made["status"]["startTime"] = start
    return made


def candidate(incoming: dict[str, Any], *objects: dict[str, Any]) -> Candidate:
    found = look(incoming, *objects)
    decided = preempt(found.cycle, found.diagnosis)
    assert decided.message == ""
    assert decided.candidate is not None
    return decided.candidate


def urgent(cpu: str = "1", **rest: Any) -> dict[str, Any]:
    return pod("urgent", requests={"cpu": cpu}, priority=1000, **rest)


def test_least_important_pods_go_and_no_more_than_must() -> None:
    there = [node("a", cpu="3"), holding("low", 10), holding("lower", 5), holding("lowest", 0)]
    assert names(candidate(urgent(), *there).victims) == ["lowest"]
    assert names(candidate(urgent("2"), *there).victims) == ["lower", "lowest"]


def test_victims_of_equal_priority_newest_is_deleted() -> None:
    there = [node("a", cpu="2"), holding("old", 0, start="2026-11-20T10:00:00Z"),
             holding("new", 0, start="2026-11-20T11:00:00Z")]  # fmt: skip
    assert names(candidate(urgent(), *there).victims) == ["new"]


def test_node_with_least_important_victims_is_taken() -> None:
    nodes = [node("a", cpu="1"), node("b", cpu="1"), node("c", cpu="1")]
    there = [holding("x", 10, on="a"), holding("y", 5, on="b"), holding("z", 7, on="c")]
    assert candidate(urgent(), *nodes, *there).node == "b"


def test_disruption_budget_is_broken_only_where_nothing_else_helps() -> None:
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "guarded"}}},
        "status": {"disruptionsAllowed": 0},
    }
    guarded = holding("guarded", 0, on="a", labels={"app": "guarded"})
    free = holding("free", 10, on="b")
    assert (
        candidate(urgent(), node("a", cpu="1"), node("b", cpu="1"), guarded, free, budget).node
        == "b"
    )
    assert candidate(urgent(), node("a", cpu="1"), guarded, budget).violations == 1


def test_pod_that_must_not_preempt_says_so() -> None:
    assert message(urgent(preemptionPolicy="Never"), node("a", cpu="1"), holding("low", 0)) == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: not eligible due to preemptionPolicy=Never."
    )


def test_equal_priority_is_not_preempted() -> None:
    assert message(holding("p", 5, on=""), node("a", cpu="1"), holding("low", 5)) == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_preemption_that_is_not_enough_names_what_is_missing() -> None:
    there = [node("a", cpu="2"), holding("low", 0), holding("equal", 1000)]
    assert message(urgent("2"), *there) == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 Insufficient cpu."
    )


def test_pod_waits_for_victims_on_node_it_was_promised() -> None:
    leaving = holding("low", 0)
    leaving["metadata"]["deletionTimestamp"] = "2026-11-20T12:00:00Z"
    leaving["status"]["conditions"] = [
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    ]
    assert message(urgent(nominated="a"), node("a", cpu="1"), leaving).endswith(
        "preemption: not eligible due to a terminating pod on the nominated node."
    )


def test_room_that_was_made_for_one_pod_is_not_taken_by_lesser_one() -> None:
    promised = pod("urgent", requests={"cpu": "1"}, priority=1000, nominated="a")
    cluster = handle(node("a", cpu="1"), promised)
    assert (
        find_nodes_that_fit_pod(info(holding("p", 5, on="")), cluster, FILTER_PLUGINS).feasible
        == []
    )
    urgent_result = find_nodes_that_fit_pod(
        info(holding("p", 2000, on="")), cluster, FILTER_PLUGINS
    )
    assert [one.name for one in urgent_result.feasible] == ["a"]
    assert [
        one.name
        for one in find_nodes_that_fit_pod(info(promised), cluster, FILTER_PLUGINS).feasible
    ] == ["a"]


def test_preemption_can_make_room_beside_pods_that_refuse_each_other() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "lone"}}, "topologyKey": "host"}
    lone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    there = pod("there", on="a", labels={"app": "lone"}, affinity=lone, priority=0)
    incoming = pod("urgent", labels={"app": "lone"}, affinity=lone, priority=9)
    assert names(candidate(incoming, node("a", labels={"host": "a"}), there).victims) == ["there"]


def test_equal_candidates_newest_victims_win() -> None:
    nodes = [node("a", cpu="1"), node("b", cpu="1")]
    there = [holding("old", 0, on="a", start="2026-11-20T10:00:00Z"),
             holding("new", 0, on="b", start="2026-11-20T11:00:00Z")]  # fmt: skip
    assert candidate(urgent(), *nodes, *there).node == "b"


@pytest.mark.parametrize(
    ("victims", "taken"),
    [
        ({"a": [(9, "2")], "b": [(5, "1"), (5, "1")]}, "b"),  # the least important first victim
        ({"a": [(5, "1"), (1, "1")], "b": [(5, "1"), (2, "1")]}, "a"),  # then the smallest sum
        (
            {"a": [(-5, "1"), (-5, "1")], "b": [(-5, "2")]},
            "b",
        ),  # each priority counts, negative ones as well
    ],
)
def test_candidate_preference(victims: dict[str, list[tuple[int, str]]], taken: str) -> None:
    there = [
        holding(f"{name}{index}", priority, cpu, on=name)
        for name, several in victims.items()
        for index, (priority, cpu) in enumerate(several)
    ]
    assert candidate(urgent("2"), node("a", cpu="2"), node("b", cpu="2"), *there).node == taken


@pytest.mark.parametrize(("priority", "waits"), [(1001, True), (1000, True), (999, False)])
def test_room_that_was_promised_to_one_as_important_counts_as_taken(
    priority: int, waits: bool
) -> None:
    promised = pod("promised", requests={"cpu": "1"}, priority=priority, nominated="a")
    assert bool(look(urgent(), node("a", cpu="1"), promised).feasible) is not waits
