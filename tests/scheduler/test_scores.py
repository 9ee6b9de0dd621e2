"""Scores of nodes that fit a pod."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.scheduler.cache import NodeInfo
from kubepy.scheduler.plugins import FILTER_PLUGINS
from kubepy.scheduler.schedule_one import find_nodes_that_fit_pod
from kubepy.scheduler.scores import (
    balanced_allocation,
    default_selector,
    least_allocated,
    select_host,
)

from .objects import handle, info, node, pod

SERVICE = {
    "kind": "Service",
    "metadata": {"name": "s", "namespace": "default"},
    "spec": {"selector": {"app": "web"}},
}


def chosen(incoming: dict[str, Any], *objects: dict[str, Any]) -> str:
    cluster = handle(*objects)
    one = info(incoming)
    return select_host(
        one, find_nodes_that_fit_pod(one, cluster, FILTER_PLUGINS).feasible, cluster
    ).name


def test_equal_scores_first_node_by_name_wins() -> None:
    assert chosen(pod("p"), node("b"), node("a"), node("c")) == "a"


def test_emptier_node_is_better() -> None:
    assert chosen(pod("p"), node("a"), node("b"), pod("o", on="a", requests={"cpu": "1"})) == "b"
    assert chosen(pod("p"), node("a"), node("b"), pod("o", on="a")) == "b", (
        "a pod that asks for nothing counts too"
    )


def test_preferred_term_outweighs_emptiness() -> None:
    term = {
        "weight": 1,
        "preference": {"matchExpressions": [{"key": "z", "operator": "In", "values": ["x"]}]},
    }
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    there = pod("o", on="b", requests={"cpu": "1"})
    assert (
        chosen(pod("p", affinity=affinity), node("a"), node("b", labels={"z": "x"}), there) == "b"
    )


def test_soft_taint_is_avoided() -> None:
    soft = node("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}])
    assert chosen(pod("p"), soft, node("b"), pod("o", on="b", requests={"cpu": "3"})) == "b"
    assert chosen(pod("p", tolerations=[{"operator": "Exists"}]), soft, node("b")) == "a"


def test_pods_like_to_be_near_and_far() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
    preferred = {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": term}]
    }
    nodes = [
        node("a", labels={"zone": "a"}),
        node("b", labels={"zone": "b"}),
        node("c", labels={"zone": "b"}),
    ]
    database = pod("db", on="b", labels={"app": "db"})
    assert chosen(pod("p", affinity={"podAffinity": preferred}), *nodes, database) == "c"
    assert chosen(pod("p", affinity={"podAntiAffinity": preferred}), *nodes, database) == "a"
    fan = pod("fan", on="b", affinity={"podAffinity": preferred})
    assert chosen(pod("db", labels={"app": "db"}), *nodes, fan) == "c", (
        "pods that are there have wishes as well"
    )


def test_soft_spread_constraints_and_pods_of_one_service_spread() -> None:
    nodes = [
        node("a", labels={"kubernetes.io/hostname": "a"}),
        node("b", labels={"kubernetes.io/hostname": "b"}),
    ]
    there = [
        pod("w1", on="a", labels={"app": "web"}),
        pod("o", on="b", requests={"cpu": "1", "memory": "1Gi"}),
    ]
    web = pod("w2", labels={"app": "web"})
    assert chosen(web, *nodes, *there) == "a"
    assert chosen(web, *nodes, *there, SERVICE) == "b"
    soft = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    assert (
        chosen(pod("w2", labels={"app": "web"}, topologySpreadConstraints=[soft]), *nodes, *there)
        == "b"
    )


def test_pod_is_known_by_its_services_and_its_controller() -> None:
    owner = {"kind": "ReplicaSet", "metadata": {"name": "rs", "namespace": "default"},
             "spec": {"selector": {"matchLabels": {"hash": "1"}}}}  # fmt: skip
    own = pod("p", labels={"app": "web", "hash": "1"})
    own["metadata"]["ownerReferences"] = [
        {"kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": True}
    ]
    assert str(default_selector(info(own), handle(owner, SERVICE))) == "app=web,hash=1"


def test_pod_is_known_by_its_replication_controller_too() -> None:
    owner = {"kind": "ReplicationController", "metadata": {"name": "rc", "namespace": "default"},
             "spec": {"selector": {"tier": "back"}}}  # fmt: skip
    own = pod("p", labels={"app": "web", "tier": "back"})
    own["metadata"]["ownerReferences"] = [
        {"kind": "ReplicationController", "name": "rc", "uid": "u", "controller": True}
    ]
    assert str(default_selector(info(own), handle(owner, SERVICE))) == "app=web,tier=back"


def test_soft_taint_outweighs_all_that_resources_say() -> None:
    soft = [{"key": "k", "effect": "PreferNoSchedule"}]
    full = pod("o", on="b", requests={"cpu": "3500m"})
    assert (
        chosen(pod("p", requests={"cpu": "100m"}), node("a", taints=soft), node("b"), full) == "b"
    )


@pytest.mark.parametrize(("there", "asked", "score"), [
    ({}, {"cpu": "1", "memory": "2Gi"}, 75),  # a quarter of each: as balanced as before
    ({}, {"cpu": "2"}, 62),
    ({"cpu": "2"}, {"memory": "4Gi"}, 87),  # balances an unbalanced node
    ({"cpu": "2"}, {"cpu": "1"}, 68),
    ({"cpu": "2"}, {}, 0),
])  # fmt: skip
def test_balanced_allocation_score(
    there: dict[str, str], asked: dict[str, str], score: int
) -> None:
    made = NodeInfo("a")
    made.set_node(node("a"))
    made.add(info(pod("o", on="a", requests=there)))
    assert balanced_allocation(info(pod("p", requests=asked)), made) == score


@pytest.mark.parametrize(
    ("there", "score"), [({}, 97), ({"cpu": "2"}, 72), ({"cpu": "4", "memory": "8Gi"}, 0)]
)
def test_least_allocated_score(there: dict[str, str], score: int) -> None:
    """Score a pod without requests, which counts as 100m and 200Mi."""
    made = NodeInfo("a")
    made.set_node(node("a"))
    if there:
        made.add(info(pod("o", on="a", requests={"memory": "0", "cpu": "0"} | there)))
    assert least_allocated(info(pod("p")), made) == score


def test_wishes_count_by_their_weight() -> None:
    def wish(app: str, weight: int) -> dict[str, Any]:
        return {"weight": weight, "podAffinityTerm": {
            "topologyKey": "host", "labelSelector": {"matchLabels": {"app": app}}}}  # fmt: skip

    nodes = [node("a", labels={"host": "a"}), node("b", labels={"host": "b"})]
    there = [pod("w", on="a", labels={"app": "web"}), pod("d", on="b", labels={"app": "db"})]
    for weights, expected in (((10, 20), "b"), ((20, 10), "a")):
        wishes = [wish("web", weights[0]), wish("db", weights[1])]
        near = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}
        assert chosen(pod("p", affinity=near), *nodes, *there) == expected
