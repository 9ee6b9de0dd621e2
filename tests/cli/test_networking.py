"""``networking:`` in ``kubepy.yaml``: the range of Services, and the pool of load balancers."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from tests.cli.conftest import Kubepy


def settings(text: str) -> None:
    Path("state/kubepy.yaml").write_text(f"formatVersion: 1\nnetworking: {text}\n")


def field(kubepy: Kubepy, path: str, *words: str) -> str:
    return kubepy("get", *words, "-o", f"jsonpath={{{path}}}").out


def ingress(kubepy: Kubepy, name: str) -> str:
    return field(kubepy, ".status.loadBalancer.ingress[*].ip", "svc", name)


def balance(kubepy: Kubepy, name: str, **spec: str) -> None:
    text = "".join(f"  {key}: {value}\n" for key, value in spec.items())
    kubepy(
        "apply",
        "-f",
        "-",
        stdin=f"""
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec:
  type: LoadBalancer
  ports: [{{port: 80}}]
{text}""",
    )


@pytest.mark.parametrize(
    ("subnet", "first"), [("172.20.0.0/16", "172.20.0.1"), ("10.3.4.5/28", "10.3.4.1")]
)
def test_services_have_addresses_of_subnet(subnet: str, first: str, kubepy: Kubepy) -> None:
    settings(f"{{serviceSubnet: {subnet}}}")
    kubepy("create", "svc", "clusterip", "a", "--tcp=80")
    address = field(kubepy, ".spec.clusterIP", "svc", "a")
    assert ip_address(address) in ip_network(subnet, strict=False)
    assert field(kubepy, ".spec.clusterIP", "svc", "kubernetes") == first
    refused = (
        'failed to create ClusterIP service: Service "b" is invalid: spec.clusterIPs: '
        "Invalid value: "
    )
    for taken in (first, address):
        assert kubepy(
            "create", "svc", "clusterip", "b", "--tcp=80", f"--clusterip={taken}"
        ).err == (
            f'error: {refused}["{taken}"]: failed to allocate IP {taken}: provided IP is already '
            f"allocated\n"
        )
    assert kubepy("create", "svc", "clusterip", "b", "--tcp=80", "--clusterip=10.96.0.9").err == (
        f'error: {refused}["10.96.0.9"]: failed to allocate IP 10.96.0.9: the provided network '
        f"does not match the "
        "current range\n"
    )


def test_full_range_is_an_error_and_each_address_is_given_once(kubepy: Kubepy) -> None:
    settings("{serviceSubnet: 10.3.4.0/28}")
    for number in range(13):
        assert kubepy("create", "svc", "clusterip", f"s{number}", "--tcp=80").status == 0
    assert len(set(field(kubepy, ".items[*].spec.clusterIP", "svc").split())) == 14
    assert (
        'failed to allocate a serviceIP for Service "t": range is full'
        in kubepy("create", "svc", "clusterip", "t", "--tcp=80").err
    )


def test_low_addresses_are_kept_for_services_that_ask(kubepy: Kubepy) -> None:
    for number in range(20):
        kubepy("create", "svc", "clusterip", f"s{number}", "--tcp=80")
    given = [
        ip_address(address) for address in field(kubepy, ".items[*].spec.clusterIP", "svc").split()
    ]
    assert sorted(given)[1] > ip_address("10.96.1.0")
    assert (
        kubepy("create", "svc", "clusterip", "dns", "--tcp=53", "--clusterip=10.96.0.10").status
        == 0
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "networking: must be a map of serviceSubnet and loadBalancerPool"),
        (
            "{podSubnet: 10.0.0.0/8}",
            "networking.podSubnet: unknown setting: must be one of serviceSubnet, loadBalancerPool",
        ),
        (
            "{serviceSubnet: 10.96.0.0}",
            'networking.serviceSubnet: "10.96.0.0" is not a network of IPv4 such as 10.96.0.0/12',
        ),
        (
            "{serviceSubnet: 'fd00::/108'}",
            'networking.serviceSubnet: "fd00::/108" is not a network of IPv4 such as 10.96.0.0/12',
        ),
        (
            "{serviceSubnet: 10.96.0.0/30}",
            "networking.serviceSubnet: 10.96.0.0/30 has too few addresses: must contain at "
            "least 10",
        ),
        (
            "{loadBalancerPool: 192.0.2.0/28}",
            "networking.loadBalancerPool: must be a list of networks (192.0.2.0/28) and "
            "ranges (192.0.2.16-192.0.2.31)",
        ),
        (
            "{loadBalancerPool: [192.0.2.0/28, 7]}",
            'networking.loadBalancerPool[1]: "7" is not a network of IPv4 such as 10.96.0.0/12',
        ),
        (
            "{loadBalancerPool: [192.0.2.9-192.0.2.1]}",
            'networking.loadBalancerPool[0]: "192.0.2.9-192.0.2.1" ends before it begins',
        ),
        (
            "{loadBalancerPool: [192.0.2.9-x]}",
            'networking.loadBalancerPool[0]: "192.0.2.9-x" is not a range of IPv4 '
            "addresses such as 192.0.2.16-192.0.2.31",
        ),
    ],
)
def test_bad_setting_is_error_with_its_path(text: str, message: str, kubepy: Kubepy) -> None:
    settings(text)
    assert kubepy("get", "svc").err == f"error: kubepy.yaml: {message}\n"


def test_load_balancer_without_pool_stays_pending(kubepy: Kubepy) -> None:
    balance(kubepy, "web")
    kubepy("controller", "--once", "-q")
    assert "<pending>" in kubepy("get", "svc", "web").out
    settings("{loadBalancerPool: [192.0.2.5-192.0.2.6]}")
    assert "192.0.2.5" in kubepy("get", "svc", "web").out
    assert "LoadBalancer Ingress:     192.0.2.5 (VIP)" in kubepy("describe", "svc", "web").out
    assert 'Assigned IP ["192.0.2.5"]' in kubepy("get", "events").out


def test_address_is_freed_by_deletion_and_by_another_type(kubepy: Kubepy) -> None:
    settings("{loadBalancerPool: [192.0.2.5-192.0.2.6]}")
    for name in ("a", "b", "c"):
        balance(kubepy, name)
    assert [ingress(kubepy, name) for name in ("a", "b", "c")] == ["192.0.2.5", "192.0.2.6", ""]
    assert 'Failed to allocate IP for "default/c": no available IPs' in kubepy("get", "events").out
    kubepy("delete", "svc", "a")
    assert ingress(kubepy, "c") == "192.0.2.5"
    balance(kubepy, "d")
    kubepy("patch", "svc", "b", "-p", '{"spec":{"type":"ClusterIP"}}')
    assert (ingress(kubepy, "b"), ingress(kubepy, "d")) == ("", "192.0.2.6")


def test_larger_pool_serves_services_that_wait(kubepy: Kubepy) -> None:
    settings("{loadBalancerPool: [192.0.2.5/32]}")
    balance(kubepy, "a")
    balance(kubepy, "b")
    assert ingress(kubepy, "b") == ""
    settings("{loadBalancerPool: [192.0.2.5/32, 198.51.100.0/30]}")
    assert ingress(kubepy, "b") == "198.51.100.0"


def test_requested_address_is_honoured_if_it_is_in_pool_and_free(kubepy: Kubepy) -> None:
    settings("{loadBalancerPool: [192.0.2.0/28]}")
    balance(kubepy, "a", loadBalancerIP="192.0.2.7")
    balance(kubepy, "b", loadBalancerIP="192.0.2.7")
    balance(kubepy, "c", loadBalancerIP="203.0.113.1")
    balance(kubepy, "d", loadBalancerClass="example.com/lb")
    assert [ingress(kubepy, name) for name in ("a", "b", "c", "d")] == ["192.0.2.7", "", "", ""]
    events = kubepy("get", "events").out
    assert '["203.0.113.1"] is not allowed in config' in events
    assert "address also in use by default/a" in events
    kubepy("patch", "svc", "a", "-p", '{"spec":{"loadBalancerIP":"192.0.2.8"}}')
    assert [ingress(kubepy, name) for name in ("a", "b")] == ["192.0.2.8", "192.0.2.7"]


def test_node_of_init_has_ephemeral_storage(bare: Kubepy) -> None:
    assert bare("init").out.endswith("node/node-1 created\n")
    for part in ("capacity", "allocatable"):
        assert field(bare, f".status.{part}.ephemeral-storage", "node", "node-1") == "100Gi"
    assert bare("describe", "node", "node-1").out.count("ephemeral-storage:  100Gi") == 2
