"""``kubepy create service …``. Upstream: ``kubectl/pkg/cmd/create/create_service.go``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kubepy.api.meta import Object
from kubepy.api.values.gonumbers import NumberError, int_or_none, parse_uint
from kubepy.cli.create.objects import Generate, GeneratorOptions, generator, metadata
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.command import Command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import int_flag, string_flag, string_slice_flag
from kubepy.lazy import lazy_imports

with lazy_imports():
    from kubepy.api.values import names
    from kubepy.apiserver.validation import formats

KINDS = {
    "clusterip": "ClusterIP",
    "nodeport": "NodePort",
    "loadbalancer": "LoadBalancer",
    "externalname": "ExternalName",
}


class ServiceOptions(GeneratorOptions):
    """The flags of every ``create service …``. kubectl takes --save-config for services and saves
    nothing."""

    checks_name = False
    saves_config = False

    tcp: list[str] = string_slice_flag(
        "tcp", help="Port pairs can be specified as '<port>:<targetPort>'."
    )


ServiceOptionsT = TypeVar("ServiceOptionsT", bound=ServiceOptions)


def service_generator(
    usage: str, options_class: type[ServiceOptionsT], *, examples: str
) -> Callable[[Generate[ServiceOptionsT]], Command]:
    kind = KINDS[usage.partition(" ")[0]]
    return generator(
        usage, options_class, failure=f"failed to create {kind} service: ", examples=examples
    )


class CreateClusteripOptions(ServiceOptions):
    """The flags of ``create service clusterip``."""

    clusterip: str = string_flag(
        "clusterip", help="Assign your own ClusterIP or set to 'None' for a 'headless' service."
    )


@service_generator(
    "clusterip NAME [--tcp=<port>:<targetPort>]",
    CreateClusteripOptions,
    examples="""
# A service in front of the pods labelled app=web
kubepy create service clusterip web --tcp=80:8080

# A headless one
kubepy create service clusterip db --clusterip=None
""",
)
def clusterip(factory: Factory, options: CreateClusteripOptions, name: str) -> Object:
    """Create a ClusterIP service with the specified name."""
    if options.clusterip != "None":
        _require_ports(options)
    return _service(factory, options, name, clusterIP=options.clusterip, type="ClusterIP")


class CreateNodeportOptions(ServiceOptions):
    """The flags of ``create service nodeport``."""

    node_port: int = int_flag(
        "node-port", help="Port used to expose the service on each node in a cluster."
    )


@service_generator(
    "nodeport NAME [--tcp=port:targetPort]",
    CreateNodeportOptions,
    examples="""
# A service on a port of every node
kubepy create service nodeport web --tcp=80 --node-port=30080

# On a port that is chosen
kubepy create service nodeport web --tcp=80:http
""",
)
def nodeport(factory: Factory, options: CreateNodeportOptions, name: str) -> Object:
    """Create a NodePort service with the specified name."""
    _require_ports(options)
    return _service(factory, options, name, type="NodePort", node_port=options.node_port)


@service_generator(
    "loadbalancer NAME [--tcp=port:targetPort]",
    ServiceOptions,
    examples="""
# A service of type LoadBalancer
kubepy create service loadbalancer web --tcp=80

# With two ports
kubepy create service loadbalancer web --tcp=80 --tcp=443:https
""",
)
def loadbalancer(factory: Factory, options: ServiceOptions, name: str) -> Object:
    """Create a LoadBalancer service with the specified name."""
    _require_ports(options)
    return _service(factory, options, name, type="LoadBalancer")


class CreateExternalnameOptions(ServiceOptions):
    """The flags of ``create service externalname``."""

    external_name: str = string_flag("external-name", help="External name of service.")
    required = ("external-name",)


@service_generator(
    "externalname NAME --external-name external.name",
    CreateExternalnameOptions,
    examples="""
# A name for something outside
kubepy create service externalname db --external-name=db.example.org

# Only show it
kubepy create service externalname db --external-name=db.example.org --dry-run=client -o yaml
""",
)
def externalname(factory: Factory, options: CreateExternalnameOptions, name: str) -> Object:
    """Create an ExternalName service with the specified name."""
    if names.dns1123_subdomain(options.external_name):
        raise CliError(f"invalid service external name {options.external_name}")
    return _service(factory, options, name, type="ExternalName", externalName=options.external_name)


def _require_ports(options: ServiceOptions) -> None:
    if not options.tcp:
        raise CliError("at least one tcp port specifier must be provided")


def _service(
    factory: Factory, options: ServiceOptions, name: str, *, node_port: int = 0, **fields: str
) -> Object:
    """Return a service with these fields of its spec, without empty ones."""
    labels = {"app": name}
    spec: Object = {}
    if options.tcp:
        spec["ports"] = [_port(text, node_port) for text in options.tcp]
    spec["selector"] = labels
    spec |= {field: value for field, value in fields.items() if value}
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": metadata(factory, name, labels=labels),
        "spec": spec,
        "status": {"loadBalancer": {}},
    }


def _port(text: str, node_port: int) -> Object:
    port_text, *targets = text.split(":")
    try:
        port = parse_uint(port_text, 16)  # as ParsePort, which takes 0
    except NumberError as error:
        raise CliError(str(error)) from None

    target: int | str = port
    if targets:  # the number of a container's port, or its name
        number = int_or_none(targets[0])
        target = targets[0] if number is None else number
        if problems := formats.port_number_or_name(target):
            raise CliError(",".join(problems))

    entry: Object = {
        "name": text.replace(":", "-"),
        "protocol": "TCP",
        "port": port,
        "targetPort": target,
    }
    if node_port:
        return {**entry, "nodePort": node_port}
    return entry
