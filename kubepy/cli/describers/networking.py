"""Ingress, IngressClass, ServiceCIDR and IPAddress."""

from __future__ import annotations

from kubepy.api.errors import not_found
from kubepy.api.meta import Object, namespace_of
from kubepy.apiserver.printers.networking import load_balancer_addresses
from kubepy.cli.describers.endpoints import endpoints_of
from kubepy.cli.describers.writer import (
    Surroundings,
    Writer,
    annotation_block,
    dated_conditions,
    events,
    heading,
    label_block,
    labels_and_annotations,
)


def ingress(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec = obj.get("spec") or {}
    default: Object | None = spec.get("defaultBackend")
    backend = _backend(obj, default, around) if default else "<default>"
    heading(writer, obj, namespaced=False)
    label_block(writer, "Labels", obj["metadata"].get("labels"))
    writer.field(0, "Namespace", namespace_of(obj))
    writer.field(0, "Address", ",".join(load_balancer_addresses(obj)))
    writer.field(0, "Ingress Class", spec.get("ingressClassName", "<none>"))
    writer.field(0, "Default backend", backend)
    if spec.get("tls"):
        writer.line(0, "TLS:")
        for one in spec["tls"]:
            hosts = ",".join(one.get("hosts") or [])
            secret = one.get("secretName")
            writer.line(1, f"{secret} terminates {hosts}" if secret else f"SNI routes {hosts}")
    _rules(writer, obj, backend, around)
    annotation_block(writer, "Annotations", obj["metadata"].get("annotations"))
    events(writer, around)


def _rules(writer: Writer, obj: Object, default: str, around: Surroundings) -> None:
    rules = [one for one in obj["spec"].get("rules") or [] if one.get("http") is not None]
    writer.line(0, "Rules:")
    writer.table(1, "Host\tPath\tBackends", [] if rules else [["*", "*", default]])
    for rule in rules:
        writer.line(1, f"{rule.get('host') or '*'}\t")
        for path in rule["http"].get("paths") or []:
            writer.line(2, f"\t{path.get('path', '')} \t{_backend(obj, path['backend'], around)}")


def _backend(obj: Object, backend: Object, around: Surroundings) -> str:
    if service := backend.get("service"):
        port = service.get("port") or {}
        named = f"{service['name']}:{port.get('number') or port.get('name', '')}"
        found = [one for one in around.list("services", namespace_of(obj))
                 if one["metadata"]["name"] == service["name"]]
        if not found:
            return f"{named} (<error: {not_found('services', service['name'])}>)"
        name = _port_name(found[0], port)
        return f"{named} ({endpoints_of(service['name'], namespace_of(obj), name, around)})"
    resource = backend.get("resource")
    if not resource:
        return ""
    group = "<none>" if resource.get("apiGroup") is None else resource["apiGroup"]
    return f"APIGroup: {group}, Kind: {resource.get('kind', '')}, Name: {resource.get('name', '')}"


def _port_name(service: Object, port: Object) -> str:
    """What the Service calls the port that a backend names or numbers; the last that fits."""
    fitting = [one.get("name", "") for one in service["spec"].get("ports") or []
               if (port.get("number") and port["number"] == one["port"])
               or (port.get("name") and port["name"] == one.get("name"))]
    return fitting[-1] if fitting else ""


def ingress_class(writer: Writer, obj: Object, around: Surroundings) -> None:
    spec = obj.get("spec") or {}
    heading(writer, obj, namespaced=False)
    labels_and_annotations(writer, obj)
    writer.field(0, "Controller", spec.get("controller", ""))
    if (parameters := spec.get("parameters")) is not None:
        writer.line(0, "Parameters:")
        if parameters.get("apiGroup") is not None:
            writer.field(1, "APIGroup", parameters["apiGroup"])
        writer.field(1, "Kind", parameters.get("kind", ""))
        writer.field(1, "Name", parameters.get("name", ""))
    events(writer, around)


def service_cidr(writer: Writer, obj: Object, around: Surroundings) -> None:
    heading(writer, obj, namespaced=False)
    labels_and_annotations(writer, obj)
    writer.field(0, "CIDRs", ", ".join((obj.get("spec") or {}).get("cidrs") or []))
    if conditions := (obj.get("status") or {}).get("conditions"):
        writer.line(0, "Status:")
        dated_conditions(writer, conditions)
    events(writer, around)


def ip_address(writer: Writer, obj: Object, around: Surroundings) -> None:
    heading(writer, obj, namespaced=False)
    labels_and_annotations(writer, obj)
    if (parent := (obj.get("spec") or {}).get("parentRef")) is not None:
        writer.line(0, "Parent Reference:")
        for key in ("group", "resource", "namespace", "name"):
            writer.field(1, key.capitalize(), parent.get(key, ""))
    events(writer, around)
