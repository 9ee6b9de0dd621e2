"""``kubepy expose``. Upstream: ``kubectl/pkg/cmd/expose/expose.go``."""

from __future__ import annotations

from kubepy.api.meta import Object, labels_of, nested_list
from kubepy.apiserver.request import CreateOptions
from kubepy.cli.create.objects import metadata
from kubepy.cli.create.service_objects import DNS1035_LENGTH, ServiceSettings, parse_pairs, service
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.builder import Builder
from kubepy.cli.runtime.command import command
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import string_flag
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import record, save_last_applied, type_name
from kubepy.cli.runtime.options import (
    CLIENT,
    SERVER,
    DryRunOptions,
    FieldManagerOptions,
    KustomizeOptions,
    PrintFlags,
    RecordOptions,
    SaveConfigOptions,
    field_manager_flag,
    filename_flag,
)
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.overrides import OverrideOptions, overridden


class ExposeOptions(
    OverrideOptions,
    KustomizeOptions,
    PrintFlags,
    DryRunOptions,
    SaveConfigOptions,
    FieldManagerOptions,
    RecordOptions,
):
    """The flags of ``expose``."""

    port: str = string_flag(
        "port",
        help="The port that the service should serve on. Copied from the resource, if unspecified.",
    )
    protocol: str = string_flag(
        "protocol", help="The network protocol for the service to be created. Default: TCP."
    )
    target_port: str = string_flag(
        "target-port", help="Name or number of the port on the container. Default: as --port."
    )
    name: str = string_flag(
        "name", help="The name for the newly created object. Default: that of the resource."
    )
    type: str = string_flag(
        "type",
        help="Type for this service: ClusterIP, NodePort, LoadBalancer, or ExternalName. "
        "Default: ClusterIP.",
    )
    selector: str = string_flag(
        "selector",
        help="A label selector of equalities for this service. Default: as the resource has it.",
    )
    labels: str = string_flag(
        "labels", "l", help="Labels to apply to the service. Default: those of the resource."
    )
    external_ip: str = string_flag(
        "external-ip", help="Additional external IP address to accept for the service."
    )
    load_balancer_ip: str = string_flag(
        "load-balancer-ip", help="IP to assign to the LoadBalancer."
    )
    session_affinity: str = string_flag(
        "session-affinity", help="Session affinity of the service: None or ClientIP."
    )
    cluster_ip: str = string_flag(
        "cluster-ip", help="ClusterIP to be assigned to the service; None for a headless service."
    )
    filename: list[str] = filename_flag("identifying the resource to expose a service")
    field_manager: str = field_manager_flag("kubectl-expose")


EXPOSABLE = ("ReplicationController", "Service", "Pod", "Deployment.apps", "ReplicaSet.apps")


@command(
    "expose (-f FILENAME | TYPE NAME) [--port=port] [--protocol=TCP|UDP|SCTP] "
    "[--target-port=number-or-name] [--name=name] [--external-ip=external-ip-of-service] "
    "[--type=type]",
    ExposeOptions,
    examples="""
# A service in front of the pods of a Deployment, whose containers listen on port 8080
kubepy expose deploy web --port=80 --target-port=8080

# Under a name of its own, and without an address: DNS has those of the pods
kubepy expose deploy web --name=web-pods --port=80 --cluster-ip=None

# For the workload of a file
kubepy expose -f web.yaml --name=web-of-file --port=8000

# For a single pod
kubepy expose pod task --port=9000 --name=task

# A second service for the pods of another, on another port
kubepy expose service web --name=web-secure --port=443 --target-port=8443

# For UDP
kubepy expose deploy web --name=video --port=4000 --protocol=UDP

# On a port of every node
kubepy expose rs batch --name=batch --port=80 --type=NodePort
""",
)
def expose(factory: Factory, options: ExposeOptions) -> None:
    """Expose a resource as a new Kubernetes service.

    A deployment, service, replica set or pod is looked up by name, and its selector and ports become those of a new
    service."""  # noqa: E501
    strategy = factory.dry_run_strategy(options)
    printer = printer_for(factory, options, "exposed", strategy, typed=True)

    def expose_one(info: Info) -> None:
        # The kind alone decides, before the object is read: what a cluster has of its own accord
        # may not be here.
        if not info.resource.custom and info.resource.qualified_kind not in EXPOSABLE:
            raise CliError(f"cannot expose a {info.resource.qualified_kind}")
        if info.object is None:
            info.get(factory)
        type_name(info.content)
        obj = overridden(options, exposed(factory, options, info))
        if options.record:
            record(obj, options)
        if strategy != CLIENT:
            save_last_applied(obj, create=options.save_config)
            obj = factory.client.create(
                "services",
                obj,
                namespace=factory.namespace,
                options=CreateOptions(
                    dry_run=strategy == SERVER, field_manager=options.field_manager
                ),
            )

        printer(obj)

    Builder(factory, options, selector="", retrieve=False).do().visit(expose_one)


def exposed(factory: Factory, options: ExposeOptions, info: Info) -> Object:
    """Return the service for an object. Raises CliError."""
    obj = info.content
    name = options.name or info.name[:DNS1035_LENGTH]
    selector = parse_pairs(options.selector) if options.selector else selector_of(obj)
    labels = parse_pairs(options.labels) if options.labels else dict(sorted(labels_of(obj).items()))
    ports = options.port.split(",") if options.port else list(protocols_of(obj))
    if not ports and options.cluster_ip != "None":
        raise CliError("couldn't find port via --port flag or introspection")
    settings = ServiceSettings(
        name,
        selector,
        ports,
        labels,
        protocols_of(obj),
        options.protocol,
        options.target_port,
        options.external_ip,
        options.load_balancer_ip,
        options.type,
        options.session_affinity,
        options.cluster_ip,
    )
    return service(settings, metadata(factory, name, labels=labels))


def selector_of(obj: Object) -> dict[str, str]:
    """Return the labels that select an object's pods. Raises CliError if there are none, or the
    selector has more."""
    try:
        return dict(sorted(_match_labels(obj).items()))
    except CliError as error:
        raise CliError(
            f"couldn't retrieve selectors via --selector flag or introspection: {error}"
        ) from None


def _match_labels(obj: Object) -> dict[str, str]:
    kind = obj["kind"]
    selector = obj["spec"].get("selector")
    if kind == "Pod":
        if not labels_of(obj):
            raise CliError("the pod has no labels and cannot be exposed")
        return labels_of(obj)

    if kind in ("Service", "ReplicationController"):
        if not selector:
            raise CliError("the service has no pod selector set")
        return dict(selector)

    if not selector or not selector.get("matchLabels"):
        raise CliError(f"invalid {kind.lower()}: no selectors, therefore cannot be exposed")
    if expressions := selector.get("matchExpressions"):
        shown = " ".join(
            "{{Key:{} Operator:{} Values:[{}]}}".format(
                entry["key"], entry["operator"], " ".join(nested_list(entry, "values"))
            )
            for entry in expressions
        )
        raise CliError(f'couldn\'t convert expressions - "[{shown}]" to map-based selector format')

    return dict(selector["matchLabels"])


def protocols_of(obj: Object) -> dict[str, list[str]]:
    """Return the ports of an object, in its order, each with its protocols."""
    spec = obj["spec"]
    if obj["kind"] == "Service":
        pairs = [(port["port"], port.get("protocol")) for port in nested_list(spec, "ports")]
    else:
        pod = spec if obj["kind"] == "Pod" else spec["template"]["spec"]
        pairs = [
            (port["containerPort"], port.get("protocol"))
            for container in nested_list(pod, "containers")
            for port in nested_list(container, "ports")
        ]
    protocols: dict[str, list[str]] = {}
    for port, protocol in pairs:
        protocols.setdefault(str(port), []).append(protocol or "TCP")
    return protocols
