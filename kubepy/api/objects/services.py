"""Questions about Services (``pkg/api/service/util.go``)."""

from __future__ import annotations

from kubepy.api.meta import AnyObject, nested_list

NONE = "None"


def is_headless(service: AnyObject) -> bool:
    ips: list[str] = nested_list(service["spec"], "clusterIPs")
    return ips == [NONE]


def needs_node_ports(service: AnyObject) -> bool:
    return service["spec"].get("type") in ("NodePort", "LoadBalancer")


def needs_health_check(service: AnyObject) -> bool:
    spec = service["spec"]
    return (spec.get("type"), spec.get("externalTrafficPolicy")) == ("LoadBalancer", "Local")
