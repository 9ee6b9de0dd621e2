"""Describe ConfigMaps, Secrets, Services, Namespaces and ServiceAccounts."""

from __future__ import annotations

from base64 import b64decode

from kubepy.api.meta import AnyObject, name_of, namespace_of, nested_list, nested_map
from kubepy.api.selectors import format_labels
from kubepy.cli.describers.networking import endpoints_of
from kubepy.cli.describers.policy import limits_of_namespace, quotas_of_namespace
from kubepy.cli.describers.writer import (
    DescribeContext,
    PrefixWriter,
    dated_conditions,
    events,
    heading,
    labels_and_annotations,
)


def config_map(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj)
    labels_and_annotations(writer, obj)
    writer.line(0, "\nData\n====")
    for key, value in sorted(nested_map(obj, "data").items()):
        writer.line(0, f"{key}:\n----\n{value}\n")
    writer.line(0, "\nBinaryData\n====")
    for key, value in sorted(nested_map(obj, "binaryData").items()):
        writer.line(0, f"{key}: {len(b64decode(value))} bytes")
    writer.line(0, "")
    events(writer, context)


def secret(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj)
    labels_and_annotations(writer, obj)
    writer.line(0, f"\nType:\t{obj.get('type', '')}")
    writer.line(0, "\nData\n====")
    for key, value in sorted(nested_map(obj, "data").items()):
        data = b64decode(value)
        is_token = key == "token" and obj.get("type") == "kubernetes.io/service-account-token"
        writer.field(0, key, data.decode(errors="replace") if is_token else f"{len(data)} bytes")


def service_account(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj)
    labels_and_annotations(writer, obj)
    title = "Image pull secrets:"
    names = [reference["name"] for reference in nested_list(obj, "imagePullSecrets")] or ["<none>"]
    for index, name in enumerate(names):
        writer.line(0, f"{title if index == 0 else ' ' * len(title)}\t{name}")
    events(writer, context)


def namespace(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    heading(writer, obj, namespaced=False)
    labels_and_annotations(writer, obj)
    status = obj.get("status", {})
    writer.field(0, "Status", status.get("phase", ""))
    if conditions := status.get("conditions"):
        dated_conditions(writer, conditions)
    quotas_of_namespace(writer, context.list("resourcequotas", name_of(obj)))
    limits_of_namespace(writer, context.list("limitranges", name_of(obj)))


def service(writer: PrefixWriter, obj: AnyObject, context: DescribeContext) -> None:
    spec = obj["spec"]
    heading(writer, obj)
    labels_and_annotations(writer, obj)
    writer.field(0, "Selector", format_labels(spec.get("selector")))
    writer.field(0, "Type", spec.get("type", ""))
    _addresses(writer, obj)
    for port in nested_list(spec, "ports"):
        name = port.get("name") or "<unset>"
        protocol = port.get("protocol", "TCP")
        writer.line(0, f"Port:\t{name}\t{port['port']}/{protocol}")
        writer.line(0, f"TargetPort:\t{port.get('targetPort', port['port'])}/{protocol}")
        if port.get("appProtocol"):
            writer.field(0, "AppProtocol", port["appProtocol"])
        if port.get("nodePort"):
            writer.line(0, f"NodePort:\t{name}\t{port['nodePort']}/{protocol}")
        writer.field(
            0,
            "Endpoints",
            endpoints_of(name_of(obj), namespace_of(obj), port.get("name", ""), context),
        )

    writer.field(0, "Session Affinity", spec.get("sessionAffinity", ""))
    for name, key in (
        ("External Traffic Policy", "externalTrafficPolicy"),
        ("Internal Traffic Policy", "internalTrafficPolicy"),
        ("HealthCheck NodePort", "healthCheckNodePort"),
    ):
        if spec.get(key):
            writer.field(0, name, spec[key])

    if spec.get("loadBalancerSourceRanges"):
        writer.field(0, "LoadBalancer Source Ranges", ",".join(spec["loadBalancerSourceRanges"]))
    if spec.get("trafficDistribution"):
        writer.field(0, "Traffic Distribution", spec["trafficDistribution"])
    events(writer, context)


def _addresses(writer: PrefixWriter, obj: AnyObject) -> None:
    spec = obj["spec"]
    if "ipFamilyPolicy" in spec:
        writer.field(0, "IP Family Policy", spec["ipFamilyPolicy"])
    writer.field(0, "IP Families", ",".join(nested_list(spec, "ipFamilies")) or "<none>")
    writer.field(0, "IP", spec.get("clusterIP", ""))
    writer.field(0, "IPs", ",".join(nested_list(spec, "clusterIPs")) or "<none>")
    if spec.get("externalIPs"):
        writer.field(0, "External IPs", ",".join(spec["externalIPs"]))
    for name, key in (
        ("Desired LoadBalancer IP", "loadBalancerIP"),
        ("External Name", "externalName"),
    ):
        if spec.get(key):
            writer.field(0, name, spec[key])

    load_balancer = obj.get("status", {}).get("loadBalancer", {})
    addresses = [_ingress_address(ingress) for ingress in nested_list(load_balancer, "ingress")]
    if addresses:
        writer.field(0, "LoadBalancer Ingress", ", ".join(addresses))


def _ingress_address(ingress: AnyObject) -> str:
    """Return the address of a load balancer, with its mode, or else its host name."""
    ip = ingress.get("ip")
    if not ip:
        return str(ingress.get("hostname", ""))
    mode = ingress.get("ipMode")
    if mode:
        return f"{ip} ({mode})"
    return str(ip)
