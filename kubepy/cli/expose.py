"""``kubepy expose``. Upstream: ``kubectl/pkg/cmd/expose/expose.go``."""

from __future__ import annotations

from kubepy.api.meta import Object, labels_of
from kubepy.apiserver.request import CreateOptions
from kubepy.cli.create.objects import metadata
from kubepy.cli.create.service_objects import DNS1035_LENGTH, Service, parse_pairs, service
from kubepy.cli.errors import CliError
from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.flags import string_flag as string
from kubepy.cli.runtime.flagsets import (
    CLIENT,
    SERVER,
    dry_run,
    dry_run_flag,
    field_manager_flag,
    filename_flags,
    output_flags,
    record_flag,
    save_config_flag,
)
from kubepy.cli.runtime.infos import Info
from kubepy.cli.runtime.objects import record, save_last_applied, type_name
from kubepy.cli.runtime.output import printer_for
from kubepy.cli.runtime.overrides import overridden, override_flags
from kubepy.cli.runtime.verbs import Invocation, find, verb

FLAGS = [
    string("port", help="The port that the service should serve on. Copied from the resource, if unspecified."),
    string("protocol", help="The network protocol for the service to be created. Default: TCP."),
    string("target-port", help="Name or number of the port on the container. Default: as --port."),
    string("name", help="The name for the newly created object. Default: that of the resource."),
    string("type", help="Type for this service: ClusterIP, NodePort, LoadBalancer, or ExternalName. Default: "
           "ClusterIP."),
    string("selector", help="A label selector of equalities for this service. Default: as the resource has it."),
    string("labels", "l", help="Labels to apply to the service. Default: those of the resource."),
    string("external-ip", help="Additional external IP address to accept for the service."),
    string("load-balancer-ip", help="IP to assign to the LoadBalancer."),
    string("session-affinity", help="Session affinity of the service: None or ClientIP."),
    string("cluster-ip", help="ClusterIP to be assigned to the service; None for a headless service."),
    *override_flags(),
    *filename_flags("identifying the resource to expose a service"),
    *output_flags(),
    dry_run_flag(),
    save_config_flag(),
    field_manager_flag("kubectl-expose"),
    record_flag(),
]
EXPOSABLE = ("ReplicationController", "Service", "Pod", "Deployment.apps", "ReplicaSet.apps")


@verb("expose", "expose (-f FILENAME | TYPE NAME) [--port=port] [--protocol=TCP|UDP|SCTP] "
      "[--target-port=number-or-name] [--name=name] [--external-ip=external-ip-of-service] [--type=type]",
      flags=FLAGS, examples="""
# A service for the pods of a deployment
kubepy expose deploy web --port=80 --target-port=8080

# The same without a cluster IP, under another name
kubepy expose deploy web --name=web-pods --port=80 --cluster-ip=None
""")
def expose(factory: Factory, given: Invocation) -> None:
    """Expose a resource as a new Kubernetes service.

    A deployment, service, replica set or pod is looked up by name, and its selector and ports become those of a new
    service."""
    strategy = dry_run(factory, given)
    printer = printer_for(factory, given, "exposed", strategy, typed=True)

    def expose_one(info: Info) -> None:
        # The kind alone decides, before the object is read: what a cluster has of its own accord may not be here.
        if not info.resource.custom and info.resource.qualified_kind not in EXPOSABLE:
            raise CliError(f"cannot expose a {info.resource.qualified_kind}")
        if info.object is None:
            info.get(factory)
        type_name(info.content)
        obj = overridden(given, exposed(factory, given, info))
        if given.record:
            record(obj, given)
        if strategy != CLIENT:
            save_last_applied(obj, create=given.save_config)
            obj = factory.client.create("services", obj, namespace=factory.namespace,
                                        options=CreateOptions(dry_run=strategy == SERVER,
                                                              field_manager=given.field_manager))
        printer(obj)

    find(factory, given, selector="", retrieve=False).visit(expose_one)


def exposed(factory: Factory, given: Invocation, info: Info) -> Object:
    """The service for an object. Raises CliError."""
    obj = info.content
    name = given.flag("name") or info.name[:DNS1035_LENGTH]
    selector = parse_pairs(given.selector) if given.selector else selector_of(obj)
    labels = parse_pairs(given.labels) if given.labels else dict(sorted(labels_of(obj).items()))
    wanted = Service(name, selector, _ports(given, obj), labels, protocols_of(obj), given.protocol, given.target_port,
                     given.external_ip, given.load_balancer_ip, given.type, given.session_affinity, given.cluster_ip)
    return service(wanted, metadata(factory, name, labels=labels))


def selector_of(obj: Object) -> dict[str, str]:
    """The labels that choose an object's pods. Raises CliError where there are none, or more than labels."""
    try:
        return dict(sorted(_selector_of(obj).items()))
    except CliError as error:
        raise CliError(f"couldn't retrieve selectors via --selector flag or introspection: {error}") from None


def _selector_of(obj: Object) -> dict[str, str]:
    kind, found = obj["kind"], obj["spec"].get("selector")
    if kind == "Pod":
        if not labels_of(obj):
            raise CliError("the pod has no labels and cannot be exposed")
        return labels_of(obj)
    if kind in ("Service", "ReplicationController"):
        if not found:
            raise CliError("the service has no pod selector set")
        return dict(found)
    if not found or not found.get("matchLabels"):
        raise CliError(f"invalid {kind.lower()}: no selectors, therefore cannot be exposed")
    if expressions := found.get("matchExpressions"):
        shown = " ".join("{{Key:{} Operator:{} Values:[{}]}}".format(
            one["key"], one["operator"], " ".join(one.get("values") or ())) for one in expressions)
        raise CliError(f'couldn\'t convert expressions - "[{shown}]" to map-based selector format')
    return dict(found["matchLabels"])


def _ports(given: Invocation, obj: Object) -> list[str]:
    ports: list[str] = given.port.split(",") if given.port else list(protocols_of(obj))
    if not ports and given.cluster_ip != "None":
        raise CliError("couldn't find port via --port flag or introspection")
    return ports


def protocols_of(obj: Object) -> dict[str, list[str]]:
    """The ports of an object, in its order, each with its protocols."""
    spec = obj["spec"]
    if obj["kind"] == "Service":
        pairs = [(one["port"], one.get("protocol")) for one in spec.get("ports") or ()]
    else:
        pod = spec if obj["kind"] == "Pod" else spec["template"]["spec"]
        pairs = [(one["containerPort"], one.get("protocol")) for container in pod.get("containers") or ()
                 for one in container.get("ports") or ()]
    found: dict[str, list[str]] = {}
    for port, protocol in pairs:
        found.setdefault(str(port), []).append(protocol or "TCP")
    return found
