import pytest

from kubepy.controllers.daemonset.placement import (
    HERE,
    NOWHERE,
    Placement,
    daemon_tolerations,
    node_should_run_daemon_pod,
)
from tests.controllers.daemonset_objects import daemon_set, node, taint

LEAVES_RUNNING = Placement(should_run=False, should_continue=True)

ADDED = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
]


def where(spec, on):
    return node_should_run_daemon_pod(daemon_set(template_spec=spec))(on)


@pytest.mark.parametrize(
    ("spec", "on", "expected"),
    [
        pytest.param({}, node("n"), HERE, id="a plain node"),
        pytest.param({"nodeName": "n"}, node("n"), HERE, id="the template names this node"),
        pytest.param({"nodeName": "m"}, node("n"), NOWHERE, id="the template names another node"),
        pytest.param(
            {"nodeSelector": {"disk": "ssd"}},
            node("n", labels={"disk": "ssd"}),
            HERE,
            id="selected",
        ),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, node("n"), NOWHERE, id="not selected"),
        pytest.param(
            {}, node("n", taints=[taint("a", "NoSchedule")]), LEAVES_RUNNING, id="NoSchedule"
        ),
        pytest.param({}, node("n", taints=[taint("a", "NoExecute")]), NOWHERE, id="NoExecute"),
        pytest.param(
            {}, node("n", taints=[taint("a", "PreferNoSchedule")]), HERE, id="PreferNoSchedule"
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Exists"}]},
            node("n", taints=[taint("a", "NoExecute")]),
            HERE,
            id="tolerated",
        ),
        pytest.param(
            {},
            node("n", taints=[taint(*one) for one in ADDED]),
            HERE,
            id="what every daemon pod tolerates",
        ),
        pytest.param(
            {},
            node("n", taints=[taint("node.kubernetes.io/network-unavailable", "NoSchedule")]),
            LEAVES_RUNNING,
            id="no network",
        ),
        pytest.param(
            {"hostNetwork": True},
            node("n", taints=[taint("node.kubernetes.io/network-unavailable", "NoSchedule")]),
            HERE,
            id="no network needed",
        ),
        pytest.param(
            {"nodeSelector": {"disk": "ssd"}},
            node("n", taints=[taint("a", "NoSchedule")]),
            NOWHERE,
            id="not selected and tainted",
        ),
    ],
)
def test_pod_belongs_on(spec, on, expected):
    assert where(spec, on) == expected


def test_daemon_tolerations_follow_pods_own_in_upstreams_order():
    own = {"key": "team", "operator": "Equal", "value": "storage", "effect": "NoSchedule"}
    found = daemon_tolerations({"tolerations": [own]})
    assert found[0] == own
    assert [(one["key"], one["effect"]) for one in found[1:]] == ADDED


def test_own_toleration_of_not_ready_keeps_its_place_and_loses_its_seconds():
    own = {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 60,
    }
    other = {"key": "team", "operator": "Exists"}
    found = daemon_tolerations({"tolerations": [own, other]})
    assert found[:2] == [{key: own[key] for key in ("effect", "key", "operator")}, other]
    assert [one["key"] for one in found].count("node.kubernetes.io/not-ready") == 1


def test_template_is_left_as_it_is():
    spec = {"tolerations": [{"operator": "Exists"}]}
    daemon_tolerations(spec)
    assert spec == {"tolerations": [{"operator": "Exists"}]}
