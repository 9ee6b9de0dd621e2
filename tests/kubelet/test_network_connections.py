"""Connections in the simulated cluster."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from kubepy.kubelet.behaviours import Behaviour
from kubepy.kubelet.network.connections import Connections
from kubepy.kubelet.network.failures import CONNECT_LIMIT
from kubepy.shell.surroundings import NetworkError, NetworkRequest
from tests.kubelet.networks import NOW, SmallCluster, schedule


@pytest.fixture
def cluster() -> SmallCluster:
    return SmallCluster()


def answers(cluster: SmallCluster, who: object, url: str, count: int) -> Counter[str]:
    return Counter(cluster.ask(who, url) for _ in range(count))  # type: ignore[arg-type]


# --- pods -----------------------------------------------------------------------------------------


def test_pod_answers_on_a_declared_port(cluster: SmallCluster) -> None:
    cluster.web("web-0")
    client = cluster.pod("client")
    assert cluster.ask(client, "http://10.244.0.1") == "200 web-0"
    assert cluster.ask(client, "https://10.244.0.1:80/any?x=1") == "200 web-0"
    assert cluster.ask(client, "10.244.0.1:80/") == "200 web-0"
    assert cluster.ask(client, "10.244.0.1:81/") == "refused"
    cluster.inside(client).connect("10.244.0.1", 80, NOW)


def test_failure_says_how_long_it_takes(cluster: SmallCluster) -> None:
    client = cluster.web("client")
    failures = []
    for host, port in (("10.244.0.1", 81), ("10.244.9.9", 80), ("nobody", 80)):
        with pytest.raises(NetworkError) as caught:
            cluster.inside(client).connect(host, port, NOW)
        failures.append((caught.value.kind, caught.value.seconds))
    assert failures == [("refused", 0), ("timeout", CONNECT_LIMIT), ("no such host", 0)]


@pytest.mark.parametrize(
    ("phase", "answer"),
    [("Pending", "refused"), ("Succeeded", "timeout"), ("Failed", "timeout")],
)
def test_pod_that_does_not_run_does_not_answer(
    cluster: SmallCluster, phase: str, answer: str
) -> None:
    cluster.web("web-0", phase=phase)
    assert cluster.ask(cluster.pod("client"), "10.244.0.1") == answer


def test_pod_on_a_down_node_does_not_answer(cluster: SmallCluster) -> None:
    pod = cluster.web("web-0", node="node-2")
    client = cluster.pod("client")
    cluster.node("node-2", "192.168.0.12", **{"kubepy.dev/down-until": "2026-01-01T13:00:00Z"})
    assert cluster.ask(client, "10.244.0.1") == "timeout"
    with pytest.raises(NetworkError, match="timeout"):
        cluster.network.connect_to_pod(pod, 80)  # type: ignore[arg-type]
    assert cluster.ask(client, "10.244.0.1", seconds=3600) == "200 web-0"


def test_loopback_reaches_the_other_containers_of_the_pod(cluster: SmallCluster) -> None:
    containers = [
        {"name": "app", "image": "app"},
        {"name": "sidecar", "image": "s", "ports": [{"containerPort": 9090}]},
    ]
    pod = cluster.pod("both", containers=containers)
    for host in ("localhost", "127.0.0.1", "0.0.0.0", "both"):
        assert cluster.ask(pod, f"{host}:9090") == "200 both"
    assert cluster.ask(pod, "localhost:80") == "refused"
    assert cluster.ask(cluster.pod("other"), "localhost:9090") == "refused"


def test_container_that_does_not_run_does_not_listen(cluster: SmallCluster) -> None:
    pod = cluster.web("web-0")
    pod["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    assert cluster.ask(pod, "localhost") == "refused"


def test_sidecar_listens(cluster: SmallCluster) -> None:
    ports = [{"containerPort": 15000}]
    sidecar = {"name": "s", "image": "s", "restartPolicy": "Always", "ports": ports}
    pod = cluster.web("web-0", initContainers=[sidecar])
    running = {"running": {"startedAt": "2026-01-01T12:00:00Z"}}
    pod["status"]["initContainerStatuses"] = [{"name": "s", "state": running}]
    assert cluster.ask(pod, "localhost:15000") == "200 web-0"


# --- what listens ---------------------------------------------------------------------------------


def test_behaviour_says_on_which_ports_a_container_listens(cluster: SmallCluster) -> None:
    cluster.behaviours["own"] = Behaviour(listens=(8080,))
    pod = cluster.web("web-0")
    assert cluster.ask(pod, "localhost:8080") == "200 web-0"
    assert cluster.ask(pod, "localhost:80") == "refused"


def test_known_image_that_listens_nowhere_refuses(cluster: SmallCluster) -> None:
    cluster.behaviours["own"] = Behaviour(listens=())
    assert cluster.ask(cluster.web("web-0"), "localhost") == "refused"


def test_unknown_image_without_ports_listens_where_its_probes_ask(cluster: SmallCluster) -> None:
    probe = {"httpGet": {"path": "/", "port": 8080}}
    container = {"name": "c", "image": "own", "livenessProbe": probe}
    pod = cluster.pod("web-0", containers=[container])
    assert cluster.ask(pod, "localhost:8080") == "200 web-0"
    container["ports"] = [{"containerPort": 80}]
    assert cluster.ask(pod, "localhost:8080") == "refused"


def test_paths_answer_as_their_schedules_say(cluster: SmallCluster) -> None:
    http = (("/", schedule(200, 0, 200)), ("/healthz", schedule(200, 10, 500)))
    cluster.behaviours["own"] = Behaviour(listens=(80,), http=http)
    pod = cluster.pod("web-0")
    assert cluster.ask(pod, "localhost") == "200 web-0"
    assert cluster.ask(pod, "localhost/healthz?verbose", seconds=9) == "200 web-0"
    assert cluster.ask(pod, "localhost/healthz", seconds=10) == "500 Internal Server Error"
    assert cluster.ask(pod, "localhost/other") == "404 404 page not found"


def test_rule_says_body_and_headers(cluster: SmallCluster) -> None:
    http = (("/", schedule(200, 0, 200, "hello\n")),)
    cluster.behaviours["own"] = Behaviour(listens=(80,), http=http)
    pod = cluster.pod("web-0")
    answer = cluster.inside(pod).http(NetworkRequest("GET", "http://localhost"), NOW)
    assert (answer.status, answer.body) == (200, b"hello\n")
    assert ("X-Served-By", "rule") in answer.headers


def test_probe_asks_a_pod_whatever_its_policies_say(cluster: SmallCluster) -> None:
    pod = cluster.web("web-0")
    cluster.policy("deny", podSelector={}, policyTypes=["Ingress", "Egress"])
    request = NetworkRequest("GET", "/")
    answer = cluster.network.http_to_pod(pod, 80, request)  # type: ignore[arg-type]
    assert (answer.status, answer.reason, answer.body) == (200, "OK", b"web-0\n")
    with pytest.raises(NetworkError, match="refused"):
        cluster.network.http_to_pod(pod, 81, request)  # type: ignore[arg-type]


# --- Services -------------------------------------------------------------------------------------


def test_endpoints_of_a_service_take_turns(cluster: SmallCluster) -> None:
    for name in ("web-0", "web-1", "web-2"):
        cluster.web(name)
    cluster.service("web")
    client = cluster.pod("client")
    asked = [cluster.ask(client, "web") for _ in range(4)]
    assert asked == ["200 web-0", "200 web-1", "200 web-2", "200 web-0"]
    assert cluster.turns == json.loads(json.dumps(cluster.turns)) == {"default/web:80": 4}


def test_unready_pod_gets_no_request_of_its_service(cluster: SmallCluster) -> None:
    cluster.web("web-0", is_ready=False)
    cluster.web("web-1")
    cluster.service("web")
    client = cluster.pod("client")
    assert answers(cluster, client, "web", 4) == {"200 web-1": 4}
    assert cluster.ask(client, "10.244.0.1") == "200 web-0"  # asked itself, it answers


def test_service_without_endpoints_refuses(cluster: SmallCluster) -> None:
    cluster.service("web")
    assert cluster.ask(cluster.pod("client"), "web") == "refused"


def test_service_has_no_other_ports(cluster: SmallCluster) -> None:
    cluster.web("web-0")
    cluster.service("web", ports=[{"port": 8000, "targetPort": 80}])
    client = cluster.pod("client")
    assert cluster.ask(client, "web:8000") == "200 web-0"
    assert cluster.ask(client, "web:80") == "timeout"


def test_service_with_a_wrong_target_port_is_refused_by_the_pod(cluster: SmallCluster) -> None:
    cluster.web("web-0")
    cluster.service("web", ports=[{"port": 80, "targetPort": 8080}])
    assert cluster.ask(cluster.pod("client"), "web") == "refused"


def test_named_target_port_is_the_pods(cluster: SmallCluster) -> None:
    cluster.web("web-0", ports=[{"containerPort": 8080, "name": "http"}])
    ports = [{"name": "main", "port": 80, "targetPort": "http"}]
    cluster.service("web", ports=ports)
    assert cluster.ask(cluster.pod("client"), "web") == "200 web-0"


def test_port_of_another_protocol_is_not_reached(cluster: SmallCluster) -> None:
    cluster.web("web-0")
    cluster.service("web", ports=[{"port": 80, "protocol": "UDP"}])
    assert cluster.ask(cluster.pod("client"), "web") == "timeout"


def test_last_endpoints_that_terminate_are_used(cluster: SmallCluster) -> None:
    cluster.web("web-0", metadata={"deletionTimestamp": "2026-01-01T12:00:00Z"})
    cluster.service("web")
    client = cluster.pod("client")
    assert cluster.ask(client, "web") == "200 web-0"
    cluster.web("web-1")
    assert answers(cluster, client, "web", 3) == {"200 web-1": 3}


def test_session_affinity_keeps_a_client_at_its_endpoint(cluster: SmallCluster) -> None:
    for name in ("web-0", "web-1", "web-2"):
        cluster.web(name)
    cluster.service("web", sessionAffinity="ClientIP")
    clients = [cluster.pod(f"client-{number}") for number in range(12)]
    for client in clients:
        assert len(answers(cluster, client, "web", 4)) == 1
    assert len({cluster.ask(client, "web") for client in clients}) == 3


def test_internal_traffic_policy_local_stays_on_the_node(cluster: SmallCluster) -> None:
    cluster.web("web-0", node="node-1")
    cluster.web("web-1", node="node-2")
    cluster.service("web", internalTrafficPolicy="Local")
    client = cluster.pod("client", node="node-2")
    assert answers(cluster, client, "web", 3) == {"200 web-1": 3}
    cluster.node("node-3", "192.168.0.13")
    assert cluster.ask(cluster.pod("far", node="node-3"), "web") == "timeout"


def test_headless_service_is_its_pods(cluster: SmallCluster) -> None:
    cluster.web("web-0")
    cluster.web("web-1")
    cluster.service("web", "None")
    client = cluster.pod("client")
    assert answers(cluster, client, "web", 4) == {"200 web-0": 2, "200 web-1": 2}
    assert cluster.ask(client, "web:8080") == "refused"


def test_second_address_is_tried_where_the_first_fails(cluster: SmallCluster) -> None:
    cluster.web("web-0", ports=[{"containerPort": 81}])
    cluster.web("web-1")
    cluster.service("web", "None")
    assert answers(cluster, cluster.pod("client"), "web", 4) == {"200 web-1": 4}


def test_service_without_a_selector_leads_to_its_slices(cluster: SmallCluster) -> None:
    cluster.web("web-0")
    cluster.service("own", selector=None)
    labels = {"kubernetes.io/service-name": "own"}
    slice_ = cluster.put(
        "endpointslices.discovery.k8s.io",
        "default",
        "own-1",
        metadata={"labels": labels},
        ports=[{"port": 80}],
        endpoints=[{"addresses": ["10.244.0.1"]}],
    )
    client = cluster.pod("client")
    assert cluster.ask(client, "own") == "200 web-0"
    slice_["endpoints"] = [{"addresses": ["192.0.2.9"]}]
    assert cluster.ask(client, "own") == "timeout"


def test_endpoint_of_a_pod_that_was_made_anew_is_dead(cluster: SmallCluster) -> None:
    pod = cluster.web("web-0")
    cluster.service("own", selector=None)
    target = {"kind": "Pod", "name": "web-0", "namespace": "default"}
    cluster.put(
        "endpointslices.discovery.k8s.io",
        "default",
        "own-1",
        metadata={"labels": {"kubernetes.io/service-name": "own"}},
        ports=[{"port": 80}],
        endpoints=[{"addresses": ["10.244.0.1"], "targetRef": target}],
    )
    client = cluster.pod("client")
    assert cluster.ask(client, "own") == "200 web-0"
    pod["status"]["podIPs"] = [{"ip": "10.244.0.99"}]
    assert cluster.ask(client, "own") == "timeout"


# --- nodes and the outside ------------------------------------------------------------------------


def balanced(cluster: SmallCluster, **spec: object) -> Connections:
    """Make a load balancer with pods on node-1 only, and return the network outside."""
    cluster.web("web-0", node="node-1")
    ports = [{"port": 80, "targetPort": 80, "nodePort": 30080}]
    service = cluster.service("web", type="LoadBalancer", ports=ports, **spec)
    service["status"] = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    return cluster.network.from_outside("198.51.100.7")


def test_outside_reaches_node_ports_and_load_balancers_only(cluster: SmallCluster) -> None:
    outside = balanced(cluster, externalIPs=["198.51.100.80"])
    reached = {
        address: cluster.ask(outside, address)
        for address in (
            "192.168.0.11:30080",
            "192.168.0.12:30080",
            "192.0.2.1",
            "198.51.100.80",
            "192.168.0.11:30081",
            "192.0.2.1:81",
            "10.96.1.1",
            "10.244.0.1",
            "localhost:30080",
            "web",
        )
    }
    assert reached == {
        "192.168.0.11:30080": "200 web-0",
        "192.168.0.12:30080": "200 web-0",
        "192.0.2.1": "200 web-0",
        "198.51.100.80": "200 web-0",
        "192.168.0.11:30081": "refused",
        "192.0.2.1:81": "timeout",
        "10.96.1.1": "timeout",
        "10.244.0.1": "timeout",
        "localhost:30080": "refused",
        "web": "no such host",
    }


def test_external_traffic_policy_local_drops_at_nodes_without_pods(cluster: SmallCluster) -> None:
    outside = balanced(cluster, externalTrafficPolicy="Local")
    assert cluster.ask(outside, "192.168.0.11:30080") == "200 web-0"
    assert cluster.ask(outside, "192.168.0.12:30080") == "timeout"
    assert cluster.ask(outside, "192.0.2.1") == "200 web-0"
    inside = cluster.pod("client", node="node-2")
    assert cluster.ask(inside, "192.168.0.12:30080") == "200 web-0"


def test_load_balancer_admits_its_source_ranges(cluster: SmallCluster) -> None:
    outside = balanced(cluster, loadBalancerSourceRanges=["203.0.113.0/24"])
    assert cluster.ask(outside, "192.0.2.1") == "timeout"
    assert cluster.ask(cluster.network.from_outside("203.0.113.9"), "192.0.2.1") == "200 web-0"


def test_node_reaches_services_and_pods_but_no_names(cluster: SmallCluster) -> None:
    cluster.web("web-0")
    cluster.service("web")
    node = cluster.network.from_node(cluster.objects["nodes", "", "node-2"])  # type: ignore[arg-type]
    assert cluster.ask(node, "10.96.1.1") == "200 web-0"
    assert cluster.ask(node, "10.244.0.1") == "200 web-0"
    assert cluster.ask(node, "web") == "no such host"


def test_pod_on_the_host_network_listens_at_its_node(cluster: SmallCluster) -> None:
    proxy = cluster.web("proxy", hostNetwork=True, ports=[{"containerPort": 8080}])
    client = cluster.pod("client")
    assert cluster.ask(client, "192.168.0.11:8080") == "200 proxy"
    assert cluster.ask(client, "192.168.0.12:8080") == "refused"
    agent = cluster.pod("agent", hostNetwork=True)
    assert cluster.ask(agent, "localhost:8080") == "200 proxy"
    cluster.service("web", ports=[{"port": 80, "targetPort": 8080}])
    assert cluster.ask(client, "web") == "200 proxy"
    proxy["status"]["phase"] = "Failed"
    assert cluster.ask(client, "192.168.0.11:8080") == "refused"


def test_host_port_leads_to_the_pods_port(cluster: SmallCluster) -> None:
    cluster.pod("web-0", ports=[{"containerPort": 80, "hostPort": 8080}])
    outside = cluster.network.from_outside()
    assert cluster.ask(outside, "192.168.0.11:8080") == "200 web-0"
    assert cluster.ask(outside, "192.168.0.12:8080") == "refused"


def test_down_node_does_not_answer(cluster: SmallCluster) -> None:
    cluster.node("node-2", "192.168.0.12", **{"kubepy.dev/down-until": "2026-01-01T13:00:00Z"})
    assert cluster.ask(cluster.pod("client"), "192.168.0.12:30080") == "timeout"


# --- the API server -------------------------------------------------------------------------------


def test_api_server_answers_as_to_a_stranger(cluster: SmallCluster) -> None:
    cluster.service(
        "kubernetes", "10.96.0.1", selector=None, ports=[{"name": "https", "port": 443}]
    )
    cluster.put(
        "endpointslices.discovery.k8s.io",
        "default",
        "kubernetes",
        metadata={"labels": {"kubernetes.io/service-name": "kubernetes"}},
        ports=[{"name": "https", "port": 6443}],
        endpoints=[{"addresses": ["192.168.0.1"], "conditions": {"ready": True}}],
    )
    client = cluster.pod("client")
    server = "https://kubernetes.default.svc"
    assert cluster.ask(client, f"{server}/healthz") == "200 ok"
    assert cluster.ask(client, "https://10.96.0.1:443/readyz?verbose") == "200 ok"
    version = cluster.ask(client, f"{server}/version")
    assert version.startswith("200 ")
    assert json.loads(version[4:])["gitVersion"].startswith("v1.36")
    denied = cluster.ask(client, f"{server}/api/v1/namespaces")
    assert denied.startswith("401 ")
    assert json.loads(denied[4:])["message"] == "Unauthorized"
    assert cluster.ask(client, f"{server}/api").startswith("401 ")
    headers = (("Authorization", "Bearer abc"),)
    request = NetworkRequest("GET", f"{server}/api", headers)
    answer = cluster.inside(client).http(request, NOW)
    assert json.loads(answer.body)["versions"] == ["v1"]
    plain = cluster.ask(client, "http://192.168.0.1:6443/healthz")
    assert plain == "400 Client sent an HTTP request to an HTTPS server."
    assert cluster.ask(client, "192.168.0.1:6444") == "timeout"


def test_host_outside_answers_web_requests_only(cluster: SmallCluster) -> None:
    network = cluster.network.from_pod(cluster.pod("client"))
    answer = cluster.ask(network, "kubernetes.io:80")
    assert answer.startswith("200 <html><head><title>http://kubernetes.io</title>")
    assert cluster.ask(network, "kubernetes.io:25") == "refused"


def test_policy_keeps_a_pod_from_hosts_outside(cluster: SmallCluster) -> None:
    allowed = [{"ports": [{"protocol": "UDP", "port": 53}]}]
    cluster.policy("deny", podSelector={}, policyTypes=["Egress"], egress=allowed)
    network = cluster.network.from_pod(cluster.pod("client"))
    assert cluster.ask(network, "kubernetes.io:80") == "timeout"
