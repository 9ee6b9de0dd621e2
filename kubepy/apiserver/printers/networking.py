"""Tables of Services, Endpoints, Ingresses and network policies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from kubepy.api.meta import AnyObject, Object, annotations_of
from kubepy.api.selectors import format_label_selector, format_labels
from kubepy.apiserver.printers import Cell, age, printer

MOST = 3  # of a list, before "more"


def some_of(values: Sequence[str], empty: str) -> str:
    """Return ``a,b,c + 2 more...``."""
    if len(values) > MOST:
        return f"{','.join(values[:MOST])} + {len(values) - MOST} more..."
    return ",".join(values) or empty


# --- services -------------------------------------------------------------------------------------


@printer("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "+Selector")
def print_service(obj: Object, now: datetime) -> list[Cell]:
    spec = obj.get("spec") or {}
    cluster_ips = spec.get("clusterIPs") or [spec.get("clusterIP")]
    ports = []
    for port in spec.get("ports") or []:
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port['port']}{node_port}/{port.get('protocol', '')}")
    return [
        obj["metadata"]["name"],
        spec.get("type", ""),
        cluster_ips[0] or "<none>",
        external_ip(obj),
        ",".join(ports) or "<none>",
        age(obj, now),
        format_labels(spec.get("selector")),
    ]


def external_ip(service: Object) -> str:
    """Return EXTERNAL-IP of a Service (``getServiceExternalIP``)."""
    spec = service.get("spec") or {}
    own = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(own) or "<none>"
        case "LoadBalancer":
            return ",".join([*load_balancer_addresses(service), *own]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return "<unknown>"


def load_balancer_addresses(obj: AnyObject) -> list[str]:
    """Return the addresses of the load balancer of a Service or an Ingress, sorted."""
    points = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    return sorted({point.get("ip") or point.get("hostname") or "" for point in points} - {""})


# --- endpoints ------------------------------------------------------------------------------------


@printer("Name", "Endpoints", "Age")
def print_endpoints(obj: Object, now: datetime) -> list[Cell]:
    subsets = obj.get("subsets") or []
    addresses: list[str] = []
    for subset in subsets:
        ips = [address["ip"] for address in subset.get("addresses") or []]
        ports = subset.get("ports") or []
        addresses += (
            [
                f"[{ip}]:{port['port']}" if ":" in ip else f"{ip}:{port['port']}"
                for port in ports
                for ip in ips
            ]
            if ports
            else ips
        )
    return [obj["metadata"]["name"], some_of(addresses, "") if subsets else "<none>", age(obj, now)]


@printer("Name", "AddressType", "Ports", "Endpoints", "Age")
def print_endpoint_slice(obj: Object, now: datetime) -> list[Cell]:
    ports = [str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or []]
    addresses = [
        address
        for endpoint in obj.get("endpoints") or []
        for address in endpoint.get("addresses") or []
    ]
    return [
        obj["metadata"]["name"],
        obj.get("addressType", ""),
        some_of(ports, "<unset>"),
        some_of(addresses, "<unset>"),
        age(obj, now),
    ]


# --- ingresses ------------------------------------------------------------------------------------


@printer("Name", "Class", "Hosts", "Address", "Ports", "Age")
def print_ingress(obj: Object, now: datetime) -> list[Cell]:
    spec = obj.get("spec") or {}
    return [
        obj["metadata"]["name"],
        spec.get("ingressClassName", "<none>"),
        _hosts(spec.get("rules") or []),
        ",".join(load_balancer_addresses(obj)),
        "80, 443" if spec.get("tls") else "80",
        age(obj, now),
    ]


def _hosts(rules: list[dict[str, Any]]) -> str:
    """Return the hosts of the rules; from the third on, rules without a host count as more, too."""
    hosts: list[str] = []
    more = False
    for rule in rules:
        more = more or len(hosts) == MOST
        if rule.get("host") and not more:
            hosts.append(rule["host"])
    shown = ",".join(hosts) or "*"
    return f"{shown} + {len(rules) - MOST} more..." if more else shown


@printer("Name", "Controller", "Parameters", "Age")
def print_ingress_class(obj: Object, now: datetime) -> list[Cell]:
    spec = obj.get("spec") or {}
    parameters = spec.get("parameters")
    reference = "<none>"
    if parameters:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
        reference = f"{parameters['kind']}{group}/{parameters['name']}"
    default = annotations_of(obj).get("ingressclass.kubernetes.io/is-default-class") == "true"
    return [
        obj["metadata"]["name"] + (" (default)" if default else ""),
        spec.get("controller", ""),
        reference,
        age(obj, now),
    ]


# --- the others -----------------------------------------------------------------------------------


@printer("Name", "Pod-Selector", "Age")
def print_network_policy(obj: Object, now: datetime) -> list[Cell]:
    selector = (obj.get("spec") or {}).get("podSelector") or {}
    return [obj["metadata"]["name"], format_label_selector(selector), age(obj, now)]


@printer("Name", "ParentRef")
def print_ip_address(obj: Object, _now: datetime) -> list[Cell]:
    parent = (obj.get("spec") or {}).get("parentRef")
    reference = "<none>"
    if parent:
        resource = ".".join(
            part for part in (parent.get("resource", ""), parent.get("group", "")) if part
        ).lower()
        reference = "/".join(
            [resource, *([parent["namespace"]] if parent.get("namespace") else []), parent["name"]]
        )
    return [obj["metadata"]["name"], reference]


@printer("Name", "CIDRs", "Age")
def print_service_cidr(obj: Object, now: datetime) -> list[Cell]:
    return [
        obj["metadata"]["name"],
        ",".join((obj.get("spec") or {}).get("cidrs") or []),
        age(obj, now),
    ]
