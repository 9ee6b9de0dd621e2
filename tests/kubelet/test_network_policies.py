"""NetworkPolicies of the simulated cluster."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubelet.networks import SmallCluster

Object = dict[str, Any]
ALLOWED, DENIED = "200 web", "timeout"
ALL: Object = {}


@pytest.fixture
def cluster() -> SmallCluster:
    """A pod ``web`` (10.244.0.1, port 80) and its clients: a friend, a stranger, one far away."""
    cluster = SmallCluster()
    cluster.namespace("far", team="blue")
    cluster.web("web")
    cluster.pod("friend", labels={"role": "friend"})
    cluster.pod("stranger")
    cluster.pod("away", namespace="far", labels={"role": "friend"})
    return cluster


CLIENTS = (("default", "friend"), ("default", "stranger"), ("far", "away"))


def reached(cluster: SmallCluster, url: str = "10.244.0.1") -> list[str]:
    """Return the clients that reach the pod; the others must time out."""
    clients = []
    for namespace, name in CLIENTS:
        answer = cluster.ask(cluster.objects["pods", namespace, name], url)
        assert answer in (ALLOWED, DENIED)
        if answer == ALLOWED:
            clients.append(name)
    return clients


def test_pods_are_open_without_policies(cluster: SmallCluster) -> None:
    assert reached(cluster) == ["friend", "stranger", "away"]


@pytest.mark.parametrize(
    ("ingress", "clients"),
    [
        (None, []),
        ([], []),
        ([ALL], ["friend", "stranger", "away"]),
        ([{"from": []}], ["friend", "stranger", "away"]),
        ([{"from": [{"podSelector": ALL}]}], ["friend", "stranger"]),
        ([{"from": [{"podSelector": {"matchLabels": {"role": "friend"}}}]}], ["friend"]),
        ([{"from": [{"namespaceSelector": ALL}]}], ["friend", "stranger", "away"]),
        ([{"from": [{"namespaceSelector": {"matchLabels": {"team": "blue"}}}]}], ["away"]),
        (
            [
                {
                    "from": [
                        {
                            "namespaceSelector": {
                                "matchLabels": {"kubernetes.io/metadata.name": "far"}
                            }
                        }
                    ]
                }
            ],
            ["away"],
        ),
        (
            [
                {
                    "from": [
                        {
                            "namespaceSelector": {"matchLabels": {"team": "blue"}},
                            "podSelector": {"matchLabels": {"role": "other"}},
                        }
                    ]
                }
            ],
            [],
        ),
        (
            [
                {
                    "from": [
                        {"namespaceSelector": {"matchLabels": {"team": "blue"}}},
                        {"podSelector": {"matchLabels": {"role": "friend"}}},
                    ]
                }
            ],
            ["friend", "away"],
        ),
        ([{"from": [{"ipBlock": {"cidr": "10.244.0.0/16"}}]}], ["friend", "stranger", "away"]),
        (
            [{"from": [{"ipBlock": {"cidr": "10.244.0.0/16", "except": ["10.244.0.3/32"]}}]}],
            ["friend", "away"],
        ),
        ([{"ports": [{"port": 80}]}], ["friend", "stranger", "away"]),
        ([{"ports": [{"port": 81}]}], []),
        ([{"ports": [{"port": 79, "endPort": 80}]}], ["friend", "stranger", "away"]),
        ([{"ports": [{"port": 70, "endPort": 79}]}], []),
        ([{"ports": [{"port": "http"}]}], ["friend", "stranger", "away"]),
        ([{"ports": [{"port": "other"}]}], []),
        ([{"ports": [{"port": 80, "protocol": "UDP"}]}], []),
        ([{"ports": [{"protocol": "TCP"}]}], ["friend", "stranger", "away"]),
        (
            [
                {"from": [{"podSelector": {"matchLabels": {"role": "friend"}}}], "ports": []},
                {"from": [{"namespaceSelector": ALL}], "ports": [{"port": 443}]},
            ],
            ["friend"],
        ),
    ],
)
def test_ingress_rules_say_who_reaches_a_pod(
    cluster: SmallCluster, ingress: list[Object] | None, clients: list[str]
) -> None:
    rules = {} if ingress is None else {"ingress": ingress}
    cluster.policy("web", podSelector={"matchLabels": {"app": "web"}}, **rules)
    assert reached(cluster) == clients


def test_policies_of_a_pod_add_up(cluster: SmallCluster) -> None:
    cluster.policy("deny-all", podSelector=ALL)
    peers = [{"podSelector": {"matchLabels": {"role": "friend"}}}]
    cluster.policy("allow", podSelector={"matchLabels": {"app": "web"}}, ingress=[{"from": peers}])
    assert reached(cluster) == ["friend"]


def test_policy_means_pods_of_its_namespace_that_it_selects(cluster: SmallCluster) -> None:
    cluster.policy("elsewhere", namespace="far", podSelector=ALL)
    expressions = [{"key": "app", "operator": "NotIn", "values": ["web"]}]
    cluster.policy("others", podSelector={"matchExpressions": expressions})
    assert reached(cluster) == ["friend", "stranger", "away"]


@pytest.mark.parametrize(
    ("spec", "clients"),
    [
        ({"policyTypes": ["Egress"]}, ["away"]),
        ({"policyTypes": ["Ingress", "Egress"]}, ["away"]),
        ({"policyTypes": ["Ingress"]}, ["friend", "stranger", "away"]),
        ({}, ["friend", "stranger", "away"]),
        ({"egress": [{"ports": [{"port": 53, "protocol": "UDP"}]}]}, ["away"]),
        (
            {"egress": [{"to": [{"podSelector": {"matchLabels": {"app": "web"}}}]}]},
            ["friend", "stranger", "away"],
        ),
        ({"egress": [{"to": [{"ipBlock": {"cidr": "10.96.0.0/12"}}]}]}, ["away"]),
        ({"egress": [{"ports": [{"port": "http"}]}]}, ["friend", "stranger", "away"]),
    ],
)
def test_egress_rules_say_what_a_pod_reaches(
    cluster: SmallCluster, spec: Object, clients: list[str]
) -> None:
    expressions = [{"key": "app", "operator": "DoesNotExist"}]
    cluster.policy("clients", podSelector={"matchExpressions": expressions}, **spec)
    assert reached(cluster) == clients


def test_policy_sees_the_pods_port_behind_a_service(cluster: SmallCluster) -> None:
    cluster.service("web", ports=[{"port": 8080, "targetPort": 80}])
    cluster.policy("web", podSelector=ALL, ingress=[{"ports": [{"port": 80}]}])
    assert reached(cluster, "10.96.1.1:8080") == ["friend", "stranger", "away"]
    cluster.policy("web", podSelector=ALL, ingress=[{"ports": [{"port": 8080}]}])
    assert reached(cluster, "10.96.1.1:8080") == []


def test_no_policy_keeps_a_pod_from_itself(cluster: SmallCluster) -> None:
    cluster.policy("deny", podSelector=ALL, policyTypes=["Ingress", "Egress"])
    web = cluster.objects["pods", "default", "web"]
    assert cluster.ask(web, "localhost") == ALLOWED
    assert cluster.ask(web, "10.244.0.1") == ALLOWED


def test_own_node_always_reaches_a_pod(cluster: SmallCluster) -> None:
    cluster.policy("deny", podSelector=ALL)
    nodes = [cluster.objects["nodes", "", name] for name in ("node-1", "node-2")]
    answers = [
        cluster.ask(cluster.network.from_node(node), "10.244.0.1")  # type: ignore[arg-type]
        for node in nodes
    ]
    assert answers == [ALLOWED, DENIED]
    block = {"ipBlock": {"cidr": "192.168.0.12/32"}}
    cluster.policy("node", podSelector=ALL, ingress=[{"from": [block]}])
    assert cluster.ask(cluster.network.from_node(nodes[1]), "10.244.0.1") == ALLOWED  # type: ignore[arg-type]


def test_pods_on_the_host_network_are_no_pods_to_policies(cluster: SmallCluster) -> None:
    cluster.policy("deny", podSelector=ALL, policyTypes=["Ingress", "Egress"])
    cluster.web("agent", hostNetwork=True, ports=[{"containerPort": 9100}], labels={})
    scraper = cluster.pod("scraper", hostNetwork=True, node="node-2")
    assert cluster.ask(scraper, "192.168.0.11:9100") == "200 agent"
    assert cluster.ask(scraper, "10.244.0.1") == DENIED
    peers = [{"podSelector": ALL}]
    cluster.policy("pods", podSelector=ALL, ingress=[{"from": peers}])
    assert cluster.ask(scraper, "10.244.0.1") == DENIED
    peers = [{"ipBlock": {"cidr": "192.168.0.0/24"}}]
    cluster.policy("nodes", podSelector=ALL, ingress=[{"from": peers}])
    assert cluster.ask(scraper, "10.244.0.1") == ALLOWED


def test_policy_of_the_api_server_needs_its_address(cluster: SmallCluster) -> None:
    client = cluster.objects["pods", "default", "friend"]
    cluster.policy("deny", podSelector=ALL, policyTypes=["Egress"])
    assert cluster.ask(client, "https://192.168.0.1:6443/healthz") == DENIED
    block = {"ipBlock": {"cidr": "192.168.0.1/32"}}
    rule = {"to": [block], "ports": [{"port": 6443}]}
    cluster.policy("api", podSelector=ALL, policyTypes=["Egress"], egress=[rule])
    assert cluster.ask(client, "https://192.168.0.1:6443/healthz") == "200 ok"
    assert cluster.ask(client, "10.244.0.1") == DENIED
