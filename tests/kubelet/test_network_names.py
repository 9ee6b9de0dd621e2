"""Names of the simulated cluster."""

from __future__ import annotations

import pytest

from kubepy.kubelet.network.names import Zone, hostname_of
from kubepy.shell.surroundings import NetworkError
from tests.kubelet.networks import NOW, SmallCluster


@pytest.fixture
def cluster() -> SmallCluster:
    cluster = SmallCluster()
    cluster.namespace("shop")
    cluster.service("web")
    cluster.service("db", "10.96.1.2", "shop")
    return cluster


@pytest.mark.parametrize(
    ("name", "addresses"),
    [
        ("web", "10.96.1.1"),
        ("WEB", "10.96.1.1"),
        ("web.default", "10.96.1.1"),
        ("web.default.svc", "10.96.1.1"),
        ("web.default.svc.cluster.local", "10.96.1.1"),
        ("web.default.svc.cluster.local.", "10.96.1.1"),
        ("web.", "no such host"),
        ("db", "no such host"),
        ("db.shop", "10.96.1.2"),
        ("db.svc.cluster.local", "no such host"),
        ("nothing.shop", "no such host"),
        ("shop.svc.cluster.local", "no such host"),
        ("example.com", "no such host"),
        ("localhost", "127.0.0.1"),
        ("10.1.2.3", "10.1.2.3"),
        ("10-244-0-7.shop.pod.cluster.local", "10.244.0.7"),
        ("10-244-0-7.shop.pod", "10.244.0.7"),
        ("10-244-0-7.nowhere.pod.cluster.local", "no such host"),
        ("ten.shop.pod.cluster.local", "no such host"),
    ],
)
def test_name_resolves_as_in_a_pod(cluster: SmallCluster, name: str, addresses: str) -> None:
    assert cluster.resolve(cluster.pod("client"), name) == addresses


def test_pod_of_another_namespace_searches_its_own(cluster: SmallCluster) -> None:
    client = cluster.pod("client", namespace="shop")
    assert cluster.resolve(client, "db") == "10.96.1.2"
    assert cluster.resolve(client, "web") == "no such host"
    assert cluster.resolve(client, "web.default") == "10.96.1.1"


def test_headless_service_has_the_addresses_of_its_ready_pods(cluster: SmallCluster) -> None:
    cluster.service("all", "None")
    ready = cluster.web("web-0")
    cluster.web("web-1", is_ready=False)
    assert cluster.resolve(ready, "all") == "10.244.0.1"
    cluster.service("all", "None", publishNotReadyAddresses=True)
    assert cluster.resolve(ready, "all") == "10.244.0.1 10.244.0.2"


def test_headless_service_without_ready_pods_has_no_name(cluster: SmallCluster) -> None:
    cluster.service("all", "None")
    pod = cluster.web("web-0", is_ready=False)
    assert cluster.resolve(pod, "all") == "no such host"


def test_pod_of_a_stateful_set_has_a_name_in_its_service(cluster: SmallCluster) -> None:
    cluster.service("db", "None", selector={"app": "db"})
    spec = {"labels": {"app": "db"}, "subdomain": "db"}
    cluster.pod("db-0", hostname="db-0", **spec)
    second = cluster.pod("db-1", hostname="db-1", **spec)
    assert cluster.resolve(second, "db-0.db") == "10.244.0.1"
    assert cluster.resolve(second, "db-0.db.default.svc.cluster.local") == "10.244.0.1"
    assert cluster.resolve(second, "db-2.db") == "no such host"
    assert cluster.resolve(second, "db-1") == "10.244.0.2"  # of /etc/hosts
    assert cluster.resolve(second, "db-0") == "no such host"


def test_srv_of_a_service_is_its_name_and_port(cluster: SmallCluster) -> None:
    ports = [{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    cluster.service("web", ports=ports)
    client = cluster.pod("client")
    name = "_http._tcp.web.default.svc.cluster.local"
    assert cluster.records(client, name, "SRV") == ["0 100 80 web.default.svc.cluster.local."]
    assert cluster.records(client, "_dns._udp.web", "SRV") == [
        "0 100 53 web.default.svc.cluster.local."
    ]
    assert cluster.records(client, "_http._udp.web", "SRV") == ["no such host"]
    assert len(cluster.records(client, "web", "SRV")) == 2


def test_srv_of_a_headless_service_lists_its_pods(cluster: SmallCluster) -> None:
    cluster.service("all", "None", ports=[{"name": "http", "port": 80, "targetPort": "http"}])
    ports = [{"name": "http", "containerPort": 8080}]
    client = cluster.web("web-0", ports=ports, hostname="web-0", subdomain="all")
    cluster.web("web-1", ports=ports)
    assert cluster.records(client, "_http._tcp.all", "SRV") == [
        "0 50 8080 web-0.all.default.svc.cluster.local.",
        "0 50 8080 10-244-0-2.all.default.svc.cluster.local.",
    ]
    assert cluster.resolve(client, "10-244-0-2.all") == "10.244.0.2"


def test_external_name_is_an_alias(cluster: SmallCluster) -> None:
    alias = {"type": "ExternalName", "externalName": "db.shop.svc.cluster.local"}
    cluster.put("services", "default", "data", spec=alias)
    alias = {"type": "ExternalName", "externalName": "my.database.example.com"}
    cluster.put("services", "default", "away", spec=alias)
    client = cluster.pod("client")
    assert cluster.resolve(client, "data") == "10.96.1.2"
    assert cluster.records(client, "data", "A") == ["db.shop.svc.cluster.local", "10.96.1.2"]
    assert cluster.resolve(client, "away") == "no such host"
    assert cluster.records(client, "away", "CNAME") == ["my.database.example.com"]


def test_external_names_in_a_circle_end(cluster: SmallCluster) -> None:
    for name, target in (("a", "b"), ("b", "a")):
        external_name = f"{target}.default.svc.cluster.local"
        alias = {"type": "ExternalName", "externalName": external_name}
        cluster.put("services", "default", name, spec=alias)
    assert cluster.resolve(cluster.pod("client"), "a") == "no such host"


def test_reverse_lookup_names_services_and_pods_with_a_hostname(cluster: SmallCluster) -> None:
    cluster.service("all", "None")
    client = cluster.web("web-0", hostname="web-0", subdomain="all")
    cluster.web("web-1")
    names = [
        cluster.records(client, f"{address}.in-addr.arpa", "PTR")
        for address in ("1.1.96.10", "1.0.244.10", "2.0.244.10")
    ]
    assert names == [
        ["web.default.svc.cluster.local"],
        ["web-0.all.default.svc.cluster.local"],
        ["no such host"],
    ]


def test_name_server_has_its_name_also_where_it_is_no_service(cluster: SmallCluster) -> None:
    client = cluster.pod("client")
    name = "kube-dns.kube-system.svc.cluster.local"
    assert cluster.resolve(client, name) == "10.96.0.10"
    assert cluster.resolve(client, f"dns.{name}") == "no such host"
    assert cluster.records(client, "10.0.96.10.in-addr.arpa", "PTR") == [name]


def test_host_aliases_come_before_names_of_the_cluster(cluster: SmallCluster) -> None:
    aliases = [{"ip": "127.0.0.1", "hostnames": ["foo.local", "web"]}]
    client = cluster.pod("client", hostAliases=aliases)
    assert cluster.resolve(client, "foo.local") == "127.0.0.1"
    assert cluster.resolve(client, "web") == "127.0.0.1"
    assert cluster.resolve(client, "web.default") == "10.96.1.1"
    assert cluster.network.hosts_file(client) == (
        "# Kubernetes-managed hosts file.\n"
        "127.0.0.1\tlocalhost\n"
        "::1\tlocalhost ip6-localhost ip6-loopback\n"
        "fe00::0\tip6-localnet\n"
        "fe00::0\tip6-mcastprefix\n"
        "fe00::1\tip6-allnodes\n"
        "fe00::2\tip6-allrouters\n"
        "10.244.0.1\tclient\n"
        "\n"
        "# Entries added by HostAliases.\n"
        "127.0.0.1\tfoo.local\tweb\n"
    )


def test_pod_with_a_subdomain_knows_its_whole_name(cluster: SmallCluster) -> None:
    pod = cluster.pod("client", hostname="c", subdomain="all")
    assert "10.244.0.1\tc.all.default.svc.cluster.local\tc\n" in cluster.network.hosts_file(pod)
    assert hostname_of(pod) == "c"
    pod["spec"]["setHostnameAsFQDN"] = True
    assert hostname_of(pod) == "c.all.default.svc.cluster.local"


def test_hostname_of_a_long_pod_is_cut(cluster: SmallCluster) -> None:
    assert hostname_of(cluster.pod(f"{'a' * 62}-b")) == "a" * 62


def test_resolver_file_has_the_search_path(cluster: SmallCluster) -> None:
    assert cluster.network.resolver_file(cluster.pod("client", namespace="shop")) == (
        "search shop.svc.cluster.local svc.cluster.local cluster.local\n"
        "nameserver 10.96.0.10\n"
        "options ndots:5\n"
    )


def test_name_server_is_the_tenth_of_the_cluster_range(cluster: SmallCluster) -> None:
    cluster.service("kubernetes", "172.20.0.1")
    assert "nameserver 172.20.0.10\n" in cluster.network.resolver_file(cluster.pod("client"))


def test_dns_config_adds_to_the_policy(cluster: SmallCluster) -> None:
    options = [{"name": "ndots", "value": "1"}, {"name": "edns0"}]
    config = {"nameservers": ["192.0.2.1"], "searches": ["my.dns.search"], "options": options}
    pod = cluster.pod("client", dnsConfig=config)
    assert cluster.network.resolver_file(pod) == (
        "search default.svc.cluster.local svc.cluster.local cluster.local my.dns.search\n"
        "nameserver 10.96.0.10\n"
        "nameserver 192.0.2.1\n"
        "options ndots:1 edns0\n"
    )
    assert cluster.resolve(pod, "web.default") == "10.96.1.1"


def test_dns_policy_none_has_only_its_own_config(cluster: SmallCluster) -> None:
    config = {"nameservers": ["192.0.2.1"], "searches": ["ns1.svc.cluster-domain.example"]}
    pod = cluster.pod("client", dnsPolicy="None", dnsConfig=config)
    assert cluster.network.resolver_file(pod) == (
        "search ns1.svc.cluster-domain.example\nnameserver 192.0.2.1\n"
    )
    assert cluster.resolve(pod, "web.default.svc.cluster.local") == "no such host"
    config = {"nameservers": ["10.96.0.10"], "searches": ["shop.svc.cluster.local"]}
    pod = cluster.pod("other", dnsPolicy="None", dnsConfig=config)
    assert cluster.resolve(pod, "db") == "10.96.1.2"


@pytest.mark.parametrize(
    ("spec", "addresses"),
    [
        ({"dnsPolicy": "Default"}, "no such host"),
        ({"dnsPolicy": "ClusterFirst"}, "10.96.1.1"),
        ({"dnsPolicy": "ClusterFirst", "hostNetwork": True}, "no such host"),
        ({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True}, "10.96.1.1"),
    ],
)
def test_dns_policy_says_whom_a_pod_asks(
    cluster: SmallCluster, spec: dict[str, object], addresses: str
) -> None:
    assert cluster.resolve(cluster.pod("client", **spec), "web") == addresses


def test_name_with_enough_dots_is_tried_as_it_is_first(cluster: SmallCluster) -> None:
    options = [{"name": "ndots", "value": "1"}]
    pod = cluster.pod("client", dnsConfig={"options": options, "searches": ["a.test"]})
    config = cluster.network._resolver(pod)
    assert config.candidates("web.default")[0] == "web.default"
    assert config.candidates("web")[-1] == "web"


def test_names_are_not_found_while_the_name_server_has_no_endpoint(cluster: SmallCluster) -> None:
    selector = {"k8s-app": "kube-dns"}
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}]
    cluster.service("kube-dns", "10.96.0.10", "kube-system", selector=selector, ports=ports)
    client = cluster.pod("client")
    with pytest.raises(NetworkError) as caught:
        cluster.inside(client).resolve("web", NOW)
    assert (caught.value.kind, caught.value.seconds) == ("no such host", 10.0)
    assert cluster.resolve(client, "localhost") == "127.0.0.1"
    cluster.pod("coredns", namespace="kube-system", labels=selector)
    assert cluster.resolve(client, "web") == "10.96.1.1"


def test_policy_that_denies_egress_denies_names_too(cluster: SmallCluster) -> None:
    cluster.policy("deny", podSelector={}, policyTypes=["Egress"])
    client = cluster.pod("client")
    assert cluster.resolve(client, "web") == "no such host"
    peers = [{"podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}, "namespaceSelector": {}}]
    rule = {"to": peers, "ports": [{"port": 53, "protocol": "UDP"}]}
    cluster.policy("dns", podSelector={}, policyTypes=["Egress"], egress=[rule])
    assert cluster.resolve(client, "web") == "10.96.1.1"


def test_zone_has_no_address_of_the_other_family(cluster: SmallCluster) -> None:
    zone = Zone(cluster)
    assert zone.records("web.default.svc.cluster.local", "AAAA") == []
    cluster.service("web", "fd00::1")
    assert zone.records("web.default.svc.cluster.local", "AAAA")[0].data == "fd00::1"


@pytest.mark.parametrize(
    "name", ["web.com", "nothing.test", "db.example.org", "a.internal", "192.0.2", "com"]
)
def test_name_that_is_no_public_host_is_none(cluster: SmallCluster, name: str) -> None:
    cluster.put("namespaces", "", "com")
    assert cluster.resolve(cluster.pod("client"), name) == "no such host"


def test_name_outside_has_the_same_address_from_everywhere(cluster: SmallCluster) -> None:
    names = ("client", {}), ("other", {"dnsPolicy": "Default"})
    found = {cluster.resolve(cluster.pod(name, **spec), "info.cern.ch") for name, spec in names}
    assert len(found) == 1
    assert found.pop().startswith("198.1")


def test_external_name_of_a_public_host_has_its_address(cluster: SmallCluster) -> None:
    alias = {"type": "ExternalName", "externalName": "www.kubernetes.io"}
    cluster.put("services", "default", "away", spec=alias)
    client = cluster.pod("client")
    assert cluster.resolve(client, "away") == cluster.resolve(client, "www.kubernetes.io")
