"""Tables of Services (``printService``)."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import AnyObject, Object, nested_list, spec_of
from kubepy.api.selectors import format_labels
from kubepy.apiserver.printers import Cell, age, printer


@printer("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "+Selector")
def print_service(obj: Object, now: datetime) -> list[Cell]:
    spec = spec_of(obj)
    cluster_ips = spec.get("clusterIPs") or [spec.get("clusterIP")]
    ports = []
    for port in nested_list(spec, "ports"):
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
    spec = spec_of(service)
    own = nested_list(spec, "externalIPs")
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
    addresses: set[str] = set()
    for point in nested_list(obj, "status", "loadBalancer", "ingress"):
        addresses.add(point.get("ip") or point.get("hostname") or "")
    return sorted(addresses - {""})
