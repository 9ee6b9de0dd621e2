"""Nodes that fit a pod, and the message when none does."""

from __future__ import annotations

from typing import Any

import pytest

from kubepy.scheduler.schedule_one import num_feasible_nodes_to_find

from .objects import feasible, message, node, pod, reasons

HELPLESS = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"


def tail(text: str, nodes: int) -> str:
    return f"no new claims to deallocate, preemption: 0/{nodes} nodes are available: {text}."


def daemon_affinity(name: str) -> dict[str, Any]:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }


def test_plain_pod_fits_every_ready_node() -> None:
    assert feasible(pod("p"), node("b"), node("a")) == ["a", "b"]


def test_reasons_are_counted_and_sorted_as_text() -> None:
    cordoned = [node(f"c{number}", unschedulable=True) for number in range(2)]
    there = [node("full"), pod("other", on="full", requests={"cpu": "2"}), *cordoned]
    assert message(pod("p", requests={"cpu": "3"}), *there) == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. "
        + tail(f"1 {NO_VICTIMS}, 2 {HELPLESS}", 3)
    )  # fmt: skip


def test_request_beyond_node_capacity_is_not_resolvable() -> None:
    big = pod("p", requests={"cpu": "9", "memory": "64Gi"})
    assert message(big, node("a")) == (
        "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory. "
        + tail(f"1 {HELPLESS}", 1)
    )


def test_full_node_says_too_many_pods_before_what_it_lacks() -> None:
    here = [node("a", pods="1", cpu="1"), pod("other", on="a", requests={"cpu": "1"})]
    assert reasons(pod("p", requests={"cpu": "1", "example.org/sail": "1"}), *here) == {
        "a": "Too many pods, Insufficient cpu, Insufficient example.org/sail"
    }


def test_pods_that_have_ended_take_no_room() -> None:
    ended = pod("done", on="a", requests={"cpu": "4"})
    ended["status"]["phase"] = "Succeeded"
    assert feasible(pod("p", requests={"cpu": "4"}), node("a"), ended) == ["a"]


def test_init_containers_and_sidecars_count() -> None:
    wanting = pod("p", requests={"cpu": "100m"})
    wanting["spec"]["initContainers"] = [
        {"name": "i", "image": "i:1", "resources": {"requests": {"cpu": "600m"}}}
    ]
    assert feasible(wanting, node("a", cpu="1"), pod("o", on="a", requests={"cpu": "500m"})) == []
    assert feasible(wanting, node("a", cpu="1"), pod("o", on="a", requests={"cpu": "400m"})) == [
        "a"
    ]


def test_taint_keeps_away_who_does_not_tolerate_it() -> None:
    tainted = node("a", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    assert message(pod("p"), tainted) == (
        "0/1 nodes are available: 1 node(s) had untolerated taint(s). " + tail(f"1 {HELPLESS}", 1)
    )
    assert feasible(pod("p", tolerations=[{"key": "k", "operator": "Exists"}]), tainted) == ["a"]
    assert feasible(pod("p"), node("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}])) == [
        "a"
    ]


def test_pod_may_tolerate_cordoned_node() -> None:
    toleration = {
        "key": "node.kubernetes.io/unschedulable",
        "operator": "Exists",
        "effect": "NoSchedule",
    }
    assert feasible(pod("p", tolerations=[toleration]), node("a", unschedulable=True)) == ["a"]
    assert feasible(pod("p"), node("a", unschedulable=True)) == []


def test_node_selector_and_required_affinity() -> None:
    assert message(pod("p", nodeSelector={"zone": "b"}), node("a", labels={"zone": "a"})) == (
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. "
        + tail(f"1 {HELPLESS}", 1)
    )


def test_pod_for_one_node_looks_at_no_other() -> None:
    cluster = [node("a", cpu="1"), node("b"), node("c")]
    wanting = pod("p", requests={"cpu": "2"}, affinity=daemon_affinity("a"))
    assert reasons(wanting, *cluster) == {"a": "Insufficient cpu"}
    assert message(wanting, *cluster) == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) "
        "[NodeAffinity]. " + tail(f"3 {HELPLESS}", 3)
    )


def test_pod_for_node_that_is_not_there() -> None:
    assert message(pod("p", affinity=daemon_affinity("gone")), node("a"), node("b")) == (
        "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
        + tail(f"2 {HELPLESS}", 2)
    )


def test_terms_that_name_two_nodes_at_once_conflict() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]
    terms = [{"matchFields": fields}]
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }
    assert message(pod("p", affinity=affinity), node("a")) == (
        "0/1 nodes are available: pod affinity terms conflict. not found"
    )


def with_port(name: str, port: int, on: str = "", **rest: Any) -> dict[str, Any]:
    made = pod(name, on=on)
    made["spec"]["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port, **rest}]
    return made


def test_host_port_is_taken_once_node() -> None:
    squatter = with_port("squatter", 80, on="a")
    assert feasible(with_port("p", 80), node("a"), node("b"), squatter) == ["b"]
    assert feasible(with_port("p", 80, protocol="UDP"), node("a"), squatter) == ["a"]
    assert message(with_port("p", 80), node("a"), squatter) == (
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports. "
        + tail(f"1 {NO_VICTIMS}", 1)
    )


# --- pods beside pods -----------------------------------------------------------------------------


def affinity(kind: str, app: str, key: str = "host", **term: Any) -> dict[str, Any]:
    one = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **term}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [one]}}


ZONES = [
    node("a1", labels={"host": "a1", "zone": "a"}),
    node("b1", labels={"host": "b1", "zone": "b"}),
    node("b2", labels={"host": "b2", "zone": "b"}),
]


def test_anti_affinity_keeps_pod_from_its_like() -> None:
    lone = {"labels": {"app": "lone"}, "affinity": affinity("podAntiAffinity", "lone")}
    taken = [pod(f"l{name}", on=name, **lone) for name in ("a1", "b1")]
    assert feasible(pod("p", **lone), *ZONES, *taken) == ["b2"]
    assert message(pod("p", **lone), *ZONES, *taken, pod("l3", on="b2", **lone)) == (
        "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules. "
        + tail(f"3 {NO_VICTIMS}", 3)
    )


def test_pods_that_are_there_can_refuse_newcomer() -> None:
    hermit = pod("hermit", on="a1", affinity=affinity("podAntiAffinity", "web", "zone"))
    assert reasons(pod("p", labels={"app": "web"}), *ZONES, hermit) == {
        "a1": "node(s) didn't satisfy existing pods anti-affinity rules"
    }


def test_affinity_wants_domain_where_its_like_is() -> None:
    follower = pod("p", affinity=affinity("podAffinity", "leader", "zone"))
    assert feasible(follower, *ZONES, pod("l", on="b1", labels={"app": "leader"})) == ["b1", "b2"]
    assert message(follower, *ZONES) == (
        "0/3 nodes are available: 3 node(s) didn't match pod affinity rules. "
        + tail(f"3 {HELPLESS}", 3)
    )


def test_first_of_group_that_wants_to_be_together_may_go_anywhere() -> None:
    together = {"labels": {"app": "web"}, "affinity": affinity("podAffinity", "web", "zone")}
    assert feasible(pod("p", **together), *ZONES) == ["a1", "b1", "b2"]
    assert feasible(pod("q", **together), *ZONES, pod("p", on="a1", **together)) == ["a1"]


def test_affinity_stays_in_its_namespace_unless_it_names_others() -> None:
    leader = pod("l", on="b1", labels={"app": "leader"}, namespace="other")
    other = {"kind": "Namespace", "metadata": {"name": "other", "labels": {"team": "x"}}}
    by_name = affinity("podAffinity", "leader", "zone", namespaces=["other"])
    by_label = affinity(
        "podAffinity", "leader", "zone", namespaceSelector={"matchLabels": {"team": "x"}}
    )
    assert (
        feasible(
            pod("p", affinity=affinity("podAffinity", "leader", "zone")), *ZONES, leader, other
        )
        == []
    )
    assert feasible(pod("p", affinity=by_name), *ZONES, leader, other) == ["b1", "b2"]
    assert feasible(pod("p", affinity=by_label), *ZONES, leader, other) == ["b1", "b2"]


def spread(**rest: Any) -> dict[str, Any]:
    one = {
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}, **rest,
    }  # fmt: skip
    return {"labels": {"app": "web"}, "topologySpreadConstraints": [one]}


def test_spread_constraint_keeps_domains_within_max_skew() -> None:
    there = pod("w1", on="a1", labels={"app": "web"})
    assert feasible(pod("p", **spread()), *ZONES, there) == ["b1", "b2"]
    assert feasible(pod("p", **spread(maxSkew=2)), *ZONES, there) == ["a1", "b1", "b2"]
    nodes = [
        ZONES[0],
        {**ZONES[1], "spec": {"unschedulable": True}},
        {**ZONES[2], "spec": {"unschedulable": True}},
    ]
    assert message(pod("p", **spread()), *nodes, there) == (
        "0/3 nodes are available: 1 node(s) didn't match pod topology spread constraints, "
        "2 node(s) were unschedulable. " + tail(f"1 {NO_VICTIMS}, 2 {HELPLESS}", 3)
    )


def test_node_without_topology_key_does_not_count() -> None:
    assert reasons(pod("p", **spread()), ZONES[0], node("bare")) == {
        "bare": "node(s) didn't match pod topology spread constraints (missing required label)"
    }


def test_spread_with_too_few_domains_counts_the_minimum_as_zero() -> None:
    there = pod("w1", on="a1", labels={"app": "web"})
    assert feasible(pod("p", **spread(minDomains=2)), ZONES[0], there) == []
    assert feasible(pod("p", **spread()), ZONES[0], there) == ["a1"]


# --- volumes --------------------------------------------------------------------------------------


def claim(name: str, *, bound_to: str = "", storage_class: str = "", **rest: Any) -> dict[str, Any]:
    bound = {"pv.kubernetes.io/bind-completed": "yes"} if bound_to else {}
    meta = {"name": name, "namespace": "default", "annotations": bound, **rest}
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": resources, "volumeName": bound_to}
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": meta,
        "spec": spec | ({"storageClassName": storage_class} if storage_class else {}),
    }


def volume(name: str, zone: str, storage_class: str = "") -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": storage_class,
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    status = {"phase": "Available"}
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec, "status": status}


def mounting(name: str) -> dict[str, Any]:
    return pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        (
            [claim("data", deletionTimestamp="2026-11-20T12:00:00Z")],
            'persistentvolumeclaim "data" is being deleted',
        ),
        ([claim("data")], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim("data", storage_class="gone")], "pod has unbound immediate PersistentVolumeClaims"),
    ],
)
def test_pod_whose_claim_cannot_be_used_is_turned_away_at_once(
    objects: list[dict[str, Any]], why: str
) -> None:
    assert (
        message(mounting("data"), node("a"), *objects)
        == f"0/1 nodes are available: {why}. not found"
    )


def test_bound_claim_draws_pod_to_its_volume() -> None:
    assert feasible(mounting("data"), *ZONES, claim("data", bound_to="pv"), volume("pv", "b")) == [
        "b1",
        "b2",
    ]
    assert reasons(mounting("data"), ZONES[0], claim("data", bound_to="pv"), volume("pv", "b")) == {
        "a1": "node(s) didn't match PersistentVolume's node affinity"
    }
    assert reasons(mounting("data"), ZONES[0], claim("data", bound_to="pv")) == {
        "a1": "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    }


def test_claim_that_waits_for_its_pod_needs_volume_or_provisioner() -> None:
    def storage_class(provisioner: str) -> dict[str, Any]:
        mode = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": provisioner}
        return {"kind": "StorageClass", "metadata": {"name": "late"}, **mode}

    late = claim("data", storage_class="late")
    local = storage_class("kubernetes.io/no-provisioner")
    assert feasible(mounting("data"), *ZONES, late, storage_class("example.org/disks")) == [
        "a1",
        "b1",
        "b2",
    ]
    assert feasible(mounting("data"), *ZONES, late, local, volume("pv", "a", "late")) == ["a1"]
    assert reasons(mounting("data"), ZONES[0], late, local) == {
        "a1": "node(s) didn't find available persistent volumes to bind"
    }


def test_volume_with_zone_labels_is_used_there_only() -> None:
    labelled = {
        "kind": "PersistentVolume",
        "status": {"phase": "Bound"},
        "metadata": {"name": "pv", "labels": {"topology.kubernetes.io/zone": "x__y"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}},
    }
    nodes = [node(name, labels={"topology.kubernetes.io/zone": name}) for name in "xyz"]
    there = [claim("data", bound_to="pv"), labelled]
    assert feasible(mounting("data"), *nodes, *there) == ["x", "y"]
    assert reasons(mounting("data"), *nodes, *there) == {
        "z": "node(s) had no available volume zone"
    }


def test_claim_for_one_pod_at_time_is_in_use() -> None:
    single = claim("data", bound_to="pv")
    single["spec"]["accessModes"] = ["ReadWriteOncePod"]
    there = {
        **mounting("data"),
        "metadata": {"name": "there", "namespace": "default", "uid": "uid-there"},
    }
    there["spec"] = {**there["spec"], "nodeName": "a1"}
    objects = [*ZONES, single, volume("pv", "a")]
    assert feasible(mounting("data"), *objects) == ["a1"]
    assert reasons(mounting("data"), *objects, there)["a1"] == (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another "
        "pod"
    )


def csi_volume(name: str, driver: str = "disks") -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
            "csi": {"driver": driver, "volumeHandle": f"handle-{name}"}}  # fmt: skip
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"phase": "Bound"},
    }


def csi_node(name: str, **limits: int | None) -> dict[str, Any]:
    drivers = [
        {
            "name": driver,
            "nodeID": name,
            **({"allocatable": {"count": count}} if count is not None else {}),
        }
        for driver, count in limits.items()
    ]
    return {"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": drivers}}


def using(name: str, *claims: str, on: str = "") -> dict[str, Any]:
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return pod(name, on=on, volumes=volumes)


@pytest.mark.parametrize(("limits", "fits"), [
    ({"disks": 2}, False),
    ({"disks": 3}, True),
    ({"disks": None}, True),
    ({"files": 0}, True),
    ({}, True),
])  # fmt: skip
def test_node_attaches_only_so_many_volumes_of_driver(
    limits: dict[str, int | None], fits: bool
) -> None:
    objects = [claim(name, bound_to=f"pv-{name}") for name in "xyz"] + [
        csi_volume(f"pv-{name}") for name in "xyz"
    ]
    there = [using("p1", "x", on="a"), using("p2", "x", "y", on="a")]
    incoming = using("new", "y", "z")
    assert bool(feasible(incoming, node("a"), csi_node("a", **limits), *objects, *there)) is fits
    if not fits:
        assert reasons(incoming, node("a"), csi_node("a", **limits), *objects, *there) == {
            "a": "node(s) exceed max volume count"}  # fmt: skip
        assert message(incoming, node("a"), csi_node("a", **limits), *objects, *there).endswith(
            "0/1 nodes are available: 1 No preemption victims found for incoming pod."
        )


def test_volumes_that_are_still_to_be_made_count_for_their_provisioner() -> None:
    late = {"kind": "StorageClass", "metadata": {"name": "late"}, "provisioner": "disks",
            "volumeBindingMode": "WaitForFirstConsumer"}  # fmt: skip
    objects = [late, claim("x", storage_class="late"), csi_node("a", disks=0), node("a")]
    assert feasible(using("new", "x"), *objects) == []
    assert feasible(pod("plain"), *objects) == ["a"]


def test_large_cluster_scores_a_sample_of_nodes() -> None:
    assert [num_feasible_nodes_to_find(number) for number in (5, 99, 100, 1000, 6000)] == [
        5,
        99,
        100,
        420,
        300,
    ]
