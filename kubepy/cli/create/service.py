"""``kubepy create service …``. Upstream: ``kubectl/pkg/cmd/create/create_service.go``."""

from __future__ import annotations

from kubepy.cli.create.objects import generator, metadata
from kubepy.cli.runtime.command import Invocation
from kubepy.cli.runtime.errors import CliError
from kubepy.cli.runtime.flags import Flag, integer, string, strings
from kubepy.cli.runtime.session import Session
from kubepy.cluster.objects.meta import Object

TCP = strings("tcp", help="Port pairs can be specified as '<port>:<targetPort>'.")
CLUSTER_IP: Flag = string("clusterip", help="Assign your own ClusterIP or set to 'None' for a 'headless' service.")


@generator("clusterip", "clusterip NAME [--tcp=<port>:<targetPort>]", flags=[TCP, CLUSTER_IP],
           failure="failed to create ClusterIP service: ", examples="""
# A service in front of the pods labelled app=web
kubepy create service clusterip web --tcp=80:8080
""")
def clusterip(session: Session, given: Invocation, name: str) -> Object:
    """Create a ClusterIP service with the specified name."""
    if given.clusterip != "None":
        _require_ports(given)
    return _service(session, given, name, "ClusterIP", cluster_ip=given.clusterip)


@generator("nodeport", "nodeport NAME [--tcp=port:targetPort]", flags=[
    TCP, integer("node-port", help="Port used to expose the service on each node in a cluster."),
], failure="failed to create NodePort service: ", examples="""
# A service on a port of every node
kubepy create service nodeport web --tcp=80 --node-port=30080
""")
def nodeport(session: Session, given: Invocation, name: str) -> Object:
    """Create a NodePort service with the specified name."""
    _require_ports(given)
    return _service(session, given, name, "NodePort", node_port=given.node_port)


@generator("loadbalancer", "loadbalancer NAME [--tcp=port:targetPort]", flags=[TCP],
           failure="failed to create LoadBalancer service: ", examples="""
# A service of type LoadBalancer
kubepy create service loadbalancer web --tcp=80
""")
def loadbalancer(session: Session, given: Invocation, name: str) -> Object:
    """Create a LoadBalancer service with the specified name."""
    _require_ports(given)
    return _service(session, given, name, "LoadBalancer")


@generator("externalname", "externalname NAME --external-name external.name", flags=[
    TCP, string("external-name", help="External name of service."),
], required=["external-name"], failure="failed to create ExternalName service: ", examples="""
# A name for something outside
kubepy create service externalname db --external-name=db.example.org
""")
def externalname(session: Session, given: Invocation, name: str) -> Object:
    """Create an ExternalName service with the specified name."""
    from kubepy.cluster.validation.names import dns1123_subdomain

    if dns1123_subdomain(given.external_name):
        raise CliError(f"invalid service external name {given.external_name}")
    return _service(session, given, name, "ExternalName", external_name=given.external_name)


def _require_ports(given: Invocation) -> None:
    if not given.tcp:
        raise CliError("at least one tcp port specifier must be provided")


def _service(session: Session, given: Invocation, name: str, kind: str, *, cluster_ip: str = "",
             external_name: str = "", node_port: int = 0) -> Object:
    labels = {"app": name}
    spec: Object = {}
    if given.tcp:
        spec["ports"] = [_port(text, node_port) for text in given.tcp]
    spec["selector"] = labels
    if cluster_ip:
        spec["clusterIP"] = cluster_ip
    spec["type"] = kind
    if external_name:
        spec["externalName"] = external_name
    return {"kind": "Service", "apiVersion": "v1", "metadata": metadata(session, name, labels=labels), "spec": spec,
            "status": {"loadBalancer": {}}}


def _port(text: str, node_port: int) -> Object:
    port_text, colon, target_text = text.partition(":")
    port = _number(port_text)
    target: int | str = port
    if colon:
        target = int(target_text) if target_text.isdigit() else _port_name(target_text)
    made: Object = {"name": text.replace(":", "-"), "protocol": "TCP", "port": port, "targetPort": target}
    return {**made, "nodePort": node_port} if node_port else made


def _number(text: str) -> int:
    """``strconv.ParseUint(text, 0, 16)`` and a port that there can be."""
    if not text.isdigit():
        raise CliError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if int(text) > 65535:
        raise CliError(f'strconv.ParseUint: parsing "{text}": value out of range')
    if int(text) < 1:
        raise CliError("must be between 1 and 65535, inclusive")
    return int(text)


def _port_name(text: str) -> str:
    """The name of a container's port (``IsValidPortName``)."""
    import re

    if not text or len(text) > 15 or not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", text) or "--" in text:
        raise CliError(f'"{text}" is not a valid port name: it must hold lower case letters, digits and single "-"')
    return text
