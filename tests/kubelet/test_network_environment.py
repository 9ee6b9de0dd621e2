"""The environment variables that name Services."""

from __future__ import annotations

from typing import Any

from kubepy.kubelet.network import service_environment


def service(name: str, address: str, *ports: dict[str, Any]) -> Any:
    return {"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": list(ports)}}


def test_variables_name_a_service_and_its_ports_in_order() -> None:
    web = service(
        "web-front",
        "10.96.1.1",
        {"name": "http-alt", "port": 8080},
        {"name": "dns", "port": 53, "protocol": "UDP"},
    )
    assert list(service_environment([web]).items()) == [
        ("WEB_FRONT_SERVICE_HOST", "10.96.1.1"),
        ("WEB_FRONT_SERVICE_PORT", "8080"),
        ("WEB_FRONT_SERVICE_PORT_HTTP_ALT", "8080"),
        ("WEB_FRONT_SERVICE_PORT_DNS", "53"),
        ("WEB_FRONT_PORT", "tcp://10.96.1.1:8080"),
        ("WEB_FRONT_PORT_8080_TCP", "tcp://10.96.1.1:8080"),
        ("WEB_FRONT_PORT_8080_TCP_PROTO", "tcp"),
        ("WEB_FRONT_PORT_8080_TCP_PORT", "8080"),
        ("WEB_FRONT_PORT_8080_TCP_ADDR", "10.96.1.1"),
        ("WEB_FRONT_PORT_53_UDP", "udp://10.96.1.1:53"),
        ("WEB_FRONT_PORT_53_UDP_PROTO", "udp"),
        ("WEB_FRONT_PORT_53_UDP_PORT", "53"),
        ("WEB_FRONT_PORT_53_UDP_ADDR", "10.96.1.1"),
    ]


def test_services_without_a_cluster_ip_have_no_variables() -> None:
    headless, external = service("db", "None", {"port": 80}), service("away", "")
    assert service_environment([headless, external]) == {}


def test_address_of_the_sixth_version_stands_in_brackets_in_urls() -> None:
    variables = service_environment([service("web", "fd00::1", {"port": 80})])
    assert variables["WEB_PORT"] == "tcp://[fd00::1]:80"
    assert variables["WEB_SERVICE_HOST"] == "fd00::1"
