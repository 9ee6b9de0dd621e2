"""``kubepy create service …``. Upstream: ``kubectl/pkg/cmd/create/create_service.go``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubepy.api.meta import Object
from kubepy.api.values.gonumbers import NumberError, int_or_none, parse_uint
from kubepy.cli.create.objects import Generate, generator, metadata
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import Command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import Flag
from kubepy.cli.runtime.flags import int_flag as integer
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flags import string_slice_flag as strings
from kubepy.cli.runtime.verbs import Invocation

KINDS = {"clusterip": "ClusterIP", "nodeport": "NodePort", "loadbalancer": "LoadBalancer",
         "externalname": "ExternalName"}
TCP = strings("tcp", help="Port pairs can be specified as '<port>:<targetPort>'.")
CLUSTER_IP: Flag = string("clusterip", help="Assign your own ClusterIP or set to 'None' for a 'headless' service.")


def service_generator(name: str, usage: str, **more: Any) -> Callable[[Generate], Command]:
    """kubectl takes --save-config for services and saves nothing."""
    return generator(name, usage, failure=f"failed to create {KINDS[name]} service: ", saves_config=False,
                     checks_name=False, **more)


@service_generator("clusterip", "clusterip NAME [--tcp=<port>:<targetPort>]", flags=[TCP, CLUSTER_IP], examples="""
# A service in front of the pods labelled app=web
kubepy create service clusterip web --tcp=80:8080

# A headless one
kubepy create service clusterip db --clusterip=None
""")
def clusterip(factory: Factory, given: Invocation, name: str) -> Object:
    """Create a ClusterIP service with the specified name."""
    if given.clusterip != "None":
        _require_ports(given)
    return _service(factory, given, name, "ClusterIP", cluster_ip=given.clusterip)


@service_generator("nodeport", "nodeport NAME [--tcp=port:targetPort]", flags=[
    TCP, integer("node-port", help="Port used to expose the service on each node in a cluster."),
], examples="""
# A service on a port of every node
kubepy create service nodeport web --tcp=80 --node-port=30080

# On a port that is chosen
kubepy create service nodeport web --tcp=80:http
""")
def nodeport(factory: Factory, given: Invocation, name: str) -> Object:
    """Create a NodePort service with the specified name."""
    _require_ports(given)
    return _service(factory, given, name, "NodePort", node_port=given.node_port)


@service_generator("loadbalancer", "loadbalancer NAME [--tcp=port:targetPort]", flags=[TCP], examples="""
# A service of type LoadBalancer
kubepy create service loadbalancer web --tcp=80

# With two ports
kubepy create service loadbalancer web --tcp=80 --tcp=443:https
""")
def loadbalancer(factory: Factory, given: Invocation, name: str) -> Object:
    """Create a LoadBalancer service with the specified name."""
    _require_ports(given)
    return _service(factory, given, name, "LoadBalancer")


@service_generator("externalname", "externalname NAME --external-name external.name", flags=[
    TCP, string("external-name", help="External name of service."),
], required=["external-name"], examples="""
# A name for something outside
kubepy create service externalname db --external-name=db.example.org

# Only show it
kubepy create service externalname db --external-name=db.example.org --dry-run=client -o yaml
""")
def externalname(factory: Factory, given: Invocation, name: str) -> Object:
    """Create an ExternalName service with the specified name."""
    from kubepy.api.values.names import dns1123_subdomain

    if dns1123_subdomain(given.external_name):
        raise CliError(f"invalid service external name {given.external_name}")
    return _service(factory, given, name, "ExternalName", external_name=given.external_name)


def _require_ports(given: Invocation) -> None:
    if not given.tcp:
        raise CliError("at least one tcp port specifier must be provided")


def _service(factory: Factory, given: Invocation, name: str, kind: str, *, cluster_ip: str = "",
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
    return {"kind": "Service", "apiVersion": "v1", "metadata": metadata(factory, name, labels=labels), "spec": spec,
            "status": {"loadBalancer": {}}}


def _port(text: str, node_port: int) -> Object:
    port_text, *targets = text.split(":")
    port = _number(port_text)
    made: Object = {"name": text.replace(":", "-"), "protocol": "TCP", "port": port,
                    "targetPort": _target(targets[0]) if targets else port}
    return {**made, "nodePort": node_port} if node_port else made


def _number(text: str) -> int:
    """``ParsePort``, which takes 0."""
    try:
        return parse_uint(text, 16)
    except NumberError as error:
        raise CliError(str(error)) from None


def _target(text: str) -> int | str:
    """The number of a container's port, or its name."""
    from kubepy.apiserver.validation.formats import port_number_or_name

    number = int_or_none(text)
    target = text if number is None else number
    if wrong := port_number_or_name(target):
        raise CliError(",".join(wrong))
    return target
