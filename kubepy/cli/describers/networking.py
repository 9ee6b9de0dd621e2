"""Describe Ingresses, IngressClasses, ServiceCIDRs, IPAddresses, Endpoints, EndpointSlices and
NetworkPolicies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kubepy.api.errors import not_found
from kubepy.api.meta import (
    AnyObject,
    labels_of,
    namespace_of,
    nested_list,
    nested_map,
    spec_of,
    status_of,
)
from kubepy.api.selectors import format_label_selector
from kubepy.apiserver.kinds.core.services.printers import load_balancer_addresses
from kubepy.cli.describers.writer import (
    DescribeContext,
    PrefixWriter,
    annotation_block,
    dated_conditions,
    events,
    format_time,
    go_value,
    heading,
    label_block,
    labels_and_annotations,
)


def ingress(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    spec = spec_of(obj)
    default: AnyObject | None = spec.get("defaultBackend")
    backend = _backend(obj, default, context) if default else "<default>"
    heading(writer, obj, namespaced=False)
    label_block(writer, "Labels", obj["metadata"].get("labels"))
    writer.field(0, "Namespace", namespace_of(obj))
    writer.field(0, "Address", ",".join(load_balancer_addresses(obj)))
    writer.field(0, "Ingress Class", spec.get("ingressClassName", "<none>"))
    writer.field(0, "Default backend", backend)
    if spec.get("tls"):
        writer.line(0, "TLS:")
        for tls in spec["tls"]:
            hosts = ",".join(nested_list(tls, "hosts"))
            secret = tls.get("secretName")
            writer.line(1, f"{secret} terminates {hosts}" if secret else f"SNI routes {hosts}")

    rules = [rule for rule in nested_list(obj["spec"], "rules") if rule.get("http") is not None]
    writer.line(0, "Rules:")
    writer.table(1, "Host\tPath\tBackends", [] if rules else [["*", "*", backend]])
    for rule in rules:
        writer.line(1, f"{rule.get('host') or '*'}\t")
        for path in nested_list(rule["http"], "paths"):
            writer.line(2, f"\t{path.get('path', '')} \t{_backend(obj, path['backend'], context)}")

    annotation_block(writer, "Annotations", obj["metadata"].get("annotations"))
    events(writer, context)


def _backend(obj: AnyObject, backend: AnyObject, context: DescribeContext) -> str:
    """Format a backend of an Ingress with the endpoints of its Service, or with its resource."""
    if reference := backend.get("service"):
        port = nested_map(reference, "port")
        title = f"{reference['name']}:{port.get('number') or port.get('name', '')}"
        service = next(
            (
                service
                for service in context.list("services", namespace_of(obj))
                if service["metadata"]["name"] == reference["name"]
            ),
            None,
        )
        if service is None:
            return f"{title} (<error: {not_found('services', reference['name'])}>)"
        # The last of the Service's ports with that number or name counts.
        port_names = [
            service_port.get("name", "")
            for service_port in nested_list(service["spec"], "ports")
            if (port.get("number") and port["number"] == service_port["port"])
            or (port.get("name") and port["name"] == service_port.get("name"))
        ]
        port_name = port_names[-1] if port_names else ""
        return f"{title} ({endpoints_of(reference['name'], namespace_of(obj), port_name, context)})"

    resource = backend.get("resource")
    if not resource:
        return ""
    group = "<none>" if resource.get("apiGroup") is None else resource["apiGroup"]
    return f"APIGroup: {group}, Kind: {resource.get('kind', '')}, Name: {resource.get('name', '')}"


def ingress_class(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    spec = spec_of(obj)
    heading(writer, obj, namespaced=False)
    labels_and_annotations(writer, obj)
    writer.field(0, "Controller", spec.get("controller", ""))
    if (parameters := spec.get("parameters")) is not None:
        writer.line(0, "Parameters:")
        if parameters.get("apiGroup") is not None:
            writer.field(1, "APIGroup", parameters["apiGroup"])
        writer.field(1, "Kind", parameters.get("kind", ""))
        writer.field(1, "Name", parameters.get("name", ""))
    events(writer, context)


def service_cidr(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj, namespaced=False)
    labels_and_annotations(writer, obj)
    writer.field(0, "CIDRs", ", ".join(nested_list(obj, "spec", "cidrs")))
    if conditions := status_of(obj).get("conditions"):
        writer.line(0, "Status:")
        dated_conditions(writer, conditions)
    events(writer, context)


def ip_address(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj, namespaced=False)
    labels_and_annotations(writer, obj)
    if (parent := spec_of(obj).get("parentRef")) is not None:
        writer.line(0, "Parent Reference:")
        for key in ("group", "resource", "namespace", "name"):
            writer.field(1, key.capitalize(), parent.get(key, ""))
    events(writer, context)


SERVICE_NAME = "kubernetes.io/service-name"
MAX_ADDRESSES = 3  # addresses in a line, before "more"


def endpoints(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj)
    labels_and_annotations(writer, obj)
    writer.line(0, "Subsets:")
    for subset in nested_list(obj, "subsets"):
        for label, key in (("Addresses", "addresses"), ("NotReadyAddresses", "notReadyAddresses")):
            writer.field(
                1, label, ",".join(address["ip"] for address in subset.get(key) or []) or "<none>"
            )
        if subset.get("ports"):
            writer.line(1, "Ports:")
            writer.table(
                2,
                "Name\tPort\tProtocol",
                [
                    [port.get("name") or "<unset>", port.get("port", 0), port.get("protocol", "")]
                    for port in subset["ports"]
                ],
            )
        writer.line(0, "")

    events(writer, context)


def endpoint_slice(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj)
    labels_and_annotations(writer, obj)
    writer.field(0, "AddressType", obj.get("addressType", ""))
    if not obj.get("ports"):
        writer.line(0, "Ports: <unset>")
    else:
        writer.line(0, "Ports:")
        writer.table(
            1,
            "Name\tPort\tProtocol",
            [
                [
                    port.get("name") or "<unset>",
                    port.get("port", "<unset>"),
                    port.get("protocol", ""),
                ]
                for port in obj["ports"]
            ],
        )

    writer.line(0, "Endpoints:" if obj.get("endpoints") else "Endpoints: <none>")
    for endpoint in nested_list(obj, "endpoints"):
        writer.field(1, "- Addresses", ", ".join(nested_list(endpoint, "addresses")) or "<none>")
        writer.line(2, "Conditions:")
        writer.field(
            3, "Ready", go_value(nested_map(endpoint, "conditions").get("ready", "<unset>"))
        )
        writer.field(2, "Hostname", endpoint.get("hostname", "<unset>"))
        if target := endpoint.get("targetRef"):
            writer.field(2, "TargetRef", f"{target.get('kind', '')}/{target.get('name', '')}")
        writer.field(2, "NodeName", endpoint.get("nodeName", "<unset>"))
        writer.field(2, "Zone", endpoint.get("zone", "<unset>"))

    events(writer, context)


# --- in a line ------------------------------------------------------------------------------------


def endpoints_of(service: str, namespace: str, port: str, context: DescribeContext) -> str:
    """Return the ready endpoints of a Service's port (``formatEndpointSlices``):
    ``10.0.0.1:80 + 3 more...``.

    Upstream writes "more" for endpoints that are not ready too, once three are shown.
    """
    slices = [
        endpoint_slice
        for endpoint_slice in context.list("endpointslices.discovery.k8s.io", namespace)
        if labels_of(endpoint_slice).get(SERVICE_NAME) == service
    ]
    if not slices:
        return "<none>"
    shown: list[str] = []
    ready = 0
    more = False
    for address, is_ready in _addresses(slices, port):
        more = more or len(shown) == MAX_ADDRESSES
        ready += is_ready
        if is_ready and not more:
            shown.append(address)

    if more:
        return f"{','.join(shown)} + {ready - MAX_ADDRESSES} more..."
    return ",".join(shown)


def _addresses(slices: list[AnyObject], port_name: str) -> Iterator[tuple[str, bool]]:
    """Yield the first address of each endpoint with the port's number, and whether it is ready."""
    for endpoint_slice in slices:
        for port in endpoint_slice.get("ports") or [None]:
            if port is not None and port.get("name", "") != port_name:
                continue
            for endpoint in nested_list(endpoint_slice, "endpoints"):
                address = endpoint["addresses"][0]
                if port is not None:
                    address = f"{f'[{address}]' if ':' in address else address}:{port.get('port')}"
                yield address, nested_map(endpoint, "conditions").get("ready") is not False


PAD = "    "


class Direction(NamedTuple):
    """The wording of a direction of traffic, and the field with the peers of its rules."""

    name: str
    peers: str
    word: str
    end: str


INGRESS = Direction("ingress", "from", "From", "source")
EGRESS = Direction("egress", "to", "To", "destination")


def network_policy(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    spec = spec_of(obj)
    heading(writer, obj)
    writer.field(0, "Created on", format_time(obj["metadata"].get("creationTimestamp")))
    labels_and_annotations(writer, obj)
    writer.line(0, "Spec:")
    selector = nested_map(spec, "podSelector")
    writer.line(
        1,
        f"PodSelector: {PAD}"
        + (
            format_label_selector(selector)
            if selector.get("matchLabels") or selector.get("matchExpressions")
            else "<none> (Allowing the specific traffic to all pods in this namespace)"
        ),
    )
    types = nested_list(spec, "policyTypes")
    for direction in (INGRESS, EGRESS):
        if direction.name.capitalize() in types:
            writer.line(1, f"Allowing {direction.name} traffic:")
            _policy_rules(
                lambda text: writer.line(0, PAD + text), spec.get(direction.name) or [], direction
            )
        else:
            writer.line(1, f"Not affecting {direction.name} traffic")

    writer.line(1, f"Policy Types: {', '.join(types) or '<none>'}")


def _policy_rules(
    line: Callable[[str], None], rules: list[AnyObject], direction: Direction
) -> None:
    if not rules:
        line(f"<none> (Selected pods are isolated for {direction.name} connectivity)")
    for index, rule in enumerate(rules):
        if index:
            line("----------")
        if not rule.get("ports"):
            line("To Port: <any> (traffic allowed to all ports)")
        for port in nested_list(rule, "ports"):
            protocol = port.get("protocol", "TCP")
            first = port.get("port", "<nil>")
            line(
                f"To Port Range: {first}-{port['endPort']}/{protocol}"
                if "endPort" in port
                else f"To Port: {first}/{protocol}"
            )
        peers = rule.get(direction.peers)
        if not peers:
            line(f"{direction.word}: <any> (traffic not restricted by {direction.end})")
        for peer in peers or []:
            line(f"{direction.word}:")
            selectors = (("NamespaceSelector", "namespaceSelector"), ("PodSelector", "podSelector"))
            present = [(label, peer[key]) for label, key in selectors if peer.get(key) is not None]
            for label, selector in present:
                line(f"  {label}: {format_label_selector(selector)}")
            if "ipBlock" in peer and not present:
                line("  IPBlock:")
                line(f"    CIDR: {peer['ipBlock'].get('cidr', '')}")
                line(f"    Except: {', '.join(peer['ipBlock'].get('except') or [])}")
