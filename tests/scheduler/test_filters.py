"""Each filter plugin by itself: resources of every kind, operators, ports and addresses, policies
of topology spread."""

from __future__ import annotations

from typing import Any

import pytest

from .objects import feasible, message, node, pod, reasons

Object = dict[str, Any]
NOT_HELPFUL = "1 Preemption is not helpful for scheduling"
NO_VICTIMS = "1 No preemption victims found for incoming pod"


def said(incoming: Object, *objects: Object) -> str:
    """Return the message of a pod that does not fit on one node: the reasons, and the result of
    preemption."""
    text = message(incoming, *objects).replace("0/1 nodes are available: ", "").removesuffix(".")
    return text.replace(". no new claims to deallocate, preemption: ", " | ")


def machine(**resources: str) -> Object:
    made = node("a")
    made["status"]["allocatable"] |= resources
    return made


# --- resources


@pytest.mark.parametrize(
    ("requests", "why"),
    [
        ({"ephemeral-storage": "2Gi"}, f"1 Insufficient ephemeral-storage | {NOT_HELPFUL}"),
        ({"ephemeral-storage": "600Mi"}, f"1 Insufficient ephemeral-storage | {NO_VICTIMS}"),
        ({"example.org/gpu": "3"}, f"1 Insufficient example.org/gpu | {NOT_HELPFUL}"),
        ({"example.org/gpu": "2"}, f"1 Insufficient example.org/gpu | {NO_VICTIMS}"),
        ({"example.org/other": "1"}, f"1 Insufficient example.org/other | {NOT_HELPFUL}"),
        ({"hugepages-2Mi": "4Mi", "memory": "1Gi"}, f"1 Insufficient hugepages-2Mi | {NO_VICTIMS}"),
        (
            {"memory": "7680Mi", "cpu": "3500m"},
            f"1 Insufficient cpu, 1 Insufficient memory | {NO_VICTIMS}",
        ),
        (
            {"memory": "7680Mi", "cpu": "5"},
            f"1 Insufficient cpu, 1 Insufficient memory | {NOT_HELPFUL}",
        ),
    ],
)
def test_insufficient_resources_are_named(requests: dict[str, str], why: str) -> None:
    big = machine(**{"ephemeral-storage": "1Gi", "example.org/gpu": "2", "hugepages-2Mi": "4Mi"})
    there = pod(
        "there",
        on="a",
        requests={
            "cpu": "1",
            "memory": "1Gi",
            "ephemeral-storage": "500Mi",
            "example.org/gpu": "1",
            "hugepages-2Mi": "2Mi",
        },
    )
    assert said(pod("new", requests=requests), big, there) == why


def test_request_for_nothing_fits_where_there_is_none_of_it() -> None:
    assert feasible(
        pod("new", requests={"example.org/gpu": "0", "cpu": "0"}), node("a", cpu="0")
    ) == ["a"]


def test_pod_overhead_counts() -> None:
    incoming = pod("new", requests={"cpu": "3"}, overhead={"cpu": "1500m"})
    assert said(incoming, node("a")) == f"1 Insufficient cpu | {NOT_HELPFUL}"


@pytest.mark.parametrize(("own", "fits"), [("3", True), ("5", False)])
def test_pod_level_requests_replace_those_of_containers(own: str, fits: bool) -> None:
    incoming = pod("new", requests={"cpu": "2"}, resources={"requests": {"cpu": own}})
    assert bool(feasible(incoming, node("a"))) is fits


def test_too_many_pods_can_be_helped_by_preemption() -> None:
    assert (
        said(pod("new"), node("a", pods="1"), pod("there", on="a"))
        == f"1 Too many pods | {NO_VICTIMS}"
    )


def test_terminating_pods_take_room_until_they_are_gone() -> None:
    there = pod("there", on="a", requests={"cpu": "4"})
    there["metadata"]["deletionTimestamp"] = "2026-11-20T10:00:00Z"
    assert feasible(pod("new", requests={"cpu": "1"}), node("a"), there) == []


# --- node affinity


def required(*terms: Object) -> Object:
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}
        }
    }


def expression(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(("requirement", "expected"), [
    (expression("zone", "In", "x", "y"), ["a", "b"]),
    (expression("zone", "NotIn", "x"), ["b", "c"]),
    (expression("zone", "Exists"), ["a", "b"]),
    (expression("zone", "DoesNotExist"), ["c"]),
    (expression("size", "Gt", "5"), ["b"]),
    (expression("size", "Lt", "5"), ["a"]),
    (expression("size", "Gt", "five"), []),
    (expression("zone", "Gt", "5"), []),
])  # fmt: skip
def test_operators_of_node_affinity(requirement: Object, expected: list[str]) -> None:
    nodes = [
        node("a", labels={"zone": "x", "size": "3"}),
        node("b", labels={"zone": "y", "size": "10"}),
        node("c"),
    ]
    assert (
        feasible(pod("new", affinity=required({"matchExpressions": [requirement]})), *nodes)
        == expected
    )


def test_node_affinity_one_term_must_match_completely() -> None:
    nodes = [
        node("a", labels={"zone": "x", "disk": "ssd"}),
        node("b", labels={"zone": "x"}),
        node("c"),
    ]
    both = {"matchExpressions": [expression("zone", "In", "x"), expression("disk", "Exists")]}
    named = {"matchFields": [expression("metadata.name", "In", "c")]}
    assert feasible(pod("new", affinity=required(both, named)), *nodes) == ["a", "c"]
    assert feasible(pod("new", affinity=required({}, named)), *nodes) == ["c"], (
        "an empty term fits no node"
    )


def test_name_can_be_excluded() -> None:
    term = {"matchFields": [expression("metadata.name", "NotIn", "a")]}
    assert feasible(pod("new", affinity=required(term)), node("a"), node("b")) == ["b"]


def test_node_selector_and_affinity_must_both_hold() -> None:
    term = {"matchExpressions": [expression("zone", "In", "x")]}
    incoming = pod("new", nodeSelector={"disk": "ssd"}, affinity=required(term))
    nodes = [node("a", labels={"zone": "x"}), node("b", labels={"disk": "ssd"}),
             node("c", labels={"zone": "x", "disk": "ssd"})]  # fmt: skip
    assert feasible(incoming, *nodes) == ["c"]
    assert reasons(incoming, *nodes) == dict.fromkeys(
        "ab", "node(s) didn't match Pod's node affinity/selector"
    )


# --- ports


def port(number: int, protocol: str | None = None, ip: str | None = None) -> Object:
    found: Object = {"hostPort": number, "containerPort": number}
    return found | ({"protocol": protocol} if protocol else {}) | ({"hostIP": ip} if ip else {})


def listening(name: str, *ports: Object, on: str = "") -> Object:
    made = pod(name, on=on)
    made["spec"]["containers"][0]["ports"] = list(ports)
    return made


@pytest.mark.parametrize(("wanted", "fits"), [
    (port(80), False),
    (port(80, "UDP"), True),
    (port(81), True),
    (port(80, ip="10.0.0.1"), False),
    (port(80, ip="0.0.0.0"), False),
    (port(443, ip="10.0.0.1"), False),
    (port(443, ip="10.0.0.2"), True),
    (port(443), False),
])  # fmt: skip
def test_ports_clash_by_address_and_protocol(wanted: Object, fits: bool) -> None:
    there = listening("there", port(80), port(443, ip="10.0.0.1"), on="a")
    assert bool(feasible(listening("new", wanted), node("a"), there)) is fits


def test_ports_of_sidecars_count_and_those_of_other_init_containers_do_not() -> None:
    there = pod("there", on="a")
    there["spec"]["initContainers"] = [
        {"name": "mesh", "image": "m", "restartPolicy": "Always", "ports": [port(80)]},
        {"name": "prepare", "image": "p", "ports": [port(81)]},
    ]  # fmt: skip
    assert said(listening("new", port(80)), node("a"), there) == (
        f"1 node(s) didn't have free ports for the requested pod ports | {NO_VICTIMS}")  # fmt: skip
    assert feasible(listening("new", port(81)), node("a"), there) == ["a"]


# --- pod affinity


def term(kind: str, **more: Any) -> Object:
    one = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}, **more}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [one]}}


def in_shop(name: str, on: str) -> Object:
    return pod(name, on=on, labels={"app": "web"}, namespace="shop")


SHOP = {"kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "x"}}}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ["a", "b"]),
        ({"namespaces": ["shop"]}, ["b"]),
        ({"namespaces": ["other"]}, ["a", "b"]),
        ({"namespaceSelector": {}}, ["b"]),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, ["b"]),
        ({"namespaceSelector": {"matchLabels": {"team": "y"}}}, ["a", "b"]),
        ({"namespaces": ["shop"], "namespaceSelector": {"matchLabels": {"team": "y"}}}, ["b"]),
        ({"namespaces": ["default"], "namespaceSelector": {}}, ["b"]),
        (
            {"labelSelector": None, "namespaces": ["shop"]},
            ["a", "b"],
        ),  # no labelSelector selects no pod, {} every pod
        ({"labelSelector": {}, "namespaces": ["shop"]}, ["b"]),
    ],
)
def test_anti_affinity_term_namespaces(more: Object, expected: list[str]) -> None:
    nodes = [node("a", labels={"host": "a"}), node("b", labels={"host": "b"})]
    incoming = pod("new", affinity=term("podAntiAffinity", **more))
    assert feasible(incoming, SHOP, *nodes, in_shop("there", "a")) == expected


def test_pod_that_is_there_refuses_others_by_their_namespace() -> None:
    nodes = [node("a", labels={"host": "a"}), node("b", labels={"host": "b"})]
    there = pod(
        "there",
        on="a",
        affinity=term("podAntiAffinity", namespaceSelector={"matchLabels": {"team": "x"}}),
    )
    incoming = pod("new", labels={"app": "web"}, namespace="shop")
    assert feasible(incoming, SHOP, *nodes, there) == ["b"]
    assert feasible(pod("new", labels={"app": "web"}), SHOP, *nodes, there) == ["a", "b"]


def test_affinity_is_for_nodes_that_are_in_domain() -> None:
    nodes = [node("a", labels={"host": "a"}), node("b")]
    there = [pod("p1", on="a", labels={"app": "web"}), pod("p2", on="b", labels={"app": "web"})]
    incoming = pod("new", affinity=term("podAffinity"))
    assert feasible(incoming, *nodes, *there) == ["a"]
    assert reasons(incoming, *nodes, *there) == {"b": "node(s) didn't match pod affinity rules"}
    first = pod("new", labels={"app": "web"}, affinity=term("podAffinity"))
    assert feasible(first, *nodes) == ["a"], "the first of a group, too"


# --- topology spread


def spread(**more: Any) -> Object:
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}}, **more}  # fmt: skip


def web(name: str, on: str = "", *constraints: Object, **more: Any) -> Object:
    return pod(
        name, on=on, labels={"app": "web"}, topologySpreadConstraints=list(constraints), **more
    )


NODES = (
    node("x1", labels={"zone": "x"}),
    node("y1", labels={"zone": "y"}),
    node("z1", labels={"zone": "z", "spare": "yes"}, taints=[{"key": "k", "effect": "NoSchedule"}]),
)
THERE = (web("p1", "x1"), web("p2", "y1"))


@pytest.mark.parametrize(("more", "expected"), [
    ({}, []),  # zone z is empty, and tainted
    ({"maxSkew": 2}, ["x1", "y1"]),
    ({"nodeTaintsPolicy": "Honor"}, ["x1", "y1"]),
    ({"nodeTaintsPolicy": "Honor", "minDomains": 3}, []),
    ({"minDomains": 3}, []),
    ({"whenUnsatisfiable": "ScheduleAnyway"}, ["x1", "y1"]),
])  # fmt: skip
def test_spread_constraint_counted_domains(more: Object, expected: list[str]) -> None:
    assert feasible(web("new", "", spread(**more)), *NODES, *THERE) == expected


@pytest.mark.parametrize(("policy", "expected"), [("Honor", ["x1"]), ("Ignore", [])])
def test_nodes_that_affinity_excludes_count_only_if_told_to(
    policy: str, expected: list[str]
) -> None:
    only_x = required({"matchExpressions": [expression("zone", "In", "x")]})
    incoming = web("new", "", spread(nodeAffinityPolicy=policy), affinity=only_x)
    assert feasible(incoming, *NODES, *THERE) == expected


def test_labels_of_pod_narrow_whom_constraint_means() -> None:
    incoming = web("new", "", spread(matchLabelKeys=["version", "absent"]))
    incoming["metadata"]["labels"]["version"] = "2"
    assert feasible(incoming, *NODES[:2], web("old", "x1")) == ["x1", "y1"]
    same = web("same", "x1")
    same["metadata"]["labels"]["version"] = "2"
    assert feasible(incoming, *NODES[:2], same) == ["y1"]


def test_spread_constraints_must_all_hold() -> None:
    zone, host = spread(), spread(topologyKey="host")
    nodes = [
        node("x1", labels={"zone": "x", "host": "x1"}),
        node("x2", labels={"zone": "x", "host": "x2"}),
        node("y1", labels={"zone": "y", "host": "y1"}),
    ]
    there = [web("p1", "x1"), web("p2", "y1")]
    assert feasible(web("new", "", zone, host), *nodes, *there) == ["x2"]
    assert reasons(web("new", "", zone, host), *nodes, *there) == dict.fromkeys(
        ("x1", "y1"), "node(s) didn't match pod topology spread constraints")  # fmt: skip


def test_constraint_that_does_not_mean_pod_itself_counts_others_only() -> None:
    incoming = pod("new", labels={"app": "other"}, topologySpreadConstraints=[spread()])
    assert feasible(incoming, *NODES[:2], web("p1", "x1")) == ["x1", "y1"]
    assert feasible(incoming, *NODES[:2], web("p1", "x1"), web("p2", "x1")) == ["y1"]


def test_pods_of_other_namespaces_do_not_count() -> None:
    assert feasible(web("new", "", spread()), *NODES[:2], in_shop("there", "x1")) == ["x1", "y1"]
