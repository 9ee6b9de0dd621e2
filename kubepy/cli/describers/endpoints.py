"""Endpoints, EndpointSlice, and the endpoints of a Service or an Ingress's backend in a line."""

from __future__ import annotations

from collections.abc import Iterator

from kubepy.api.meta import Object
from kubepy.cli.describers.writer import Surroundings, Writer, events, go_value, heading, labels_and_annotations

SERVICE_NAME = "kubernetes.io/service-name"
MOST = 3  # addresses in a line, before "more"


def endpoints(writer: Writer, obj: Object, around: Surroundings) -> None:
    heading(writer, obj)
    labels_and_annotations(writer, obj)
    writer.line(0, "Subsets:")
    for subset in obj.get("subsets") or []:
        for label, key in (("Addresses", "addresses"), ("NotReadyAddresses", "notReadyAddresses")):
            writer.field(1, label, ",".join(one["ip"] for one in subset.get(key) or []) or "<none>")
        if subset.get("ports"):
            writer.line(1, "Ports:")
            writer.table(2, "Name\tPort\tProtocol", [
                [one.get("name") or "<unset>", one.get("port", 0), one.get("protocol", "")]
                for one in subset["ports"]])
        writer.line(0, "")
    events(writer, around)


def endpoint_slice(writer: Writer, obj: Object, around: Surroundings) -> None:
    heading(writer, obj)
    labels_and_annotations(writer, obj)
    writer.field(0, "AddressType", obj.get("addressType", ""))
    if not obj.get("ports"):
        writer.line(0, "Ports: <unset>")
    else:
        writer.line(0, "Ports:")
        writer.table(1, "Name\tPort\tProtocol", [
            [one.get("name") or "<unset>", one.get("port", "<unset>"), one.get("protocol", "")]
            for one in obj["ports"]])
    writer.line(0, "Endpoints:" if obj.get("endpoints") else "Endpoints: <none>")
    for one in obj.get("endpoints") or []:
        _endpoint(writer, one)
    events(writer, around)


def _endpoint(writer: Writer, one: Object) -> None:
    writer.field(1, "- Addresses", ", ".join(one.get("addresses") or []) or "<none>")
    writer.line(2, "Conditions:")
    writer.field(3, "Ready", go_value((one.get("conditions") or {}).get("ready", "<unset>")))
    writer.field(2, "Hostname", one.get("hostname", "<unset>"))
    if target := one.get("targetRef"):
        writer.field(2, "TargetRef", f"{target.get('kind', '')}/{target.get('name', '')}")
    writer.field(2, "NodeName", one.get("nodeName", "<unset>"))
    writer.field(2, "Zone", one.get("zone", "<unset>"))


# --- in a line ----------------------------------------------------------------------------------------------------


def endpoints_of(service: str, namespace: str, port: str, around: Surroundings) -> str:
    """``10.0.0.1:80,10.0.0.2:80 + 3 more...``: what is ready behind a port of a Service (``formatEndpointSlices``).

    What is not ready counts as more too, once three are shown.
    """
    slices = [one for one in around.list("endpointslices.discovery.k8s.io", namespace)
              if (one["metadata"].get("labels") or {}).get(SERVICE_NAME) == service]
    if not slices:
        return "<none>"
    shown: list[str] = []
    ready, more = 0, False
    for address, is_ready in _addresses(slices, port):
        more = more or len(shown) == MOST
        ready += is_ready
        if is_ready and not more:
            shown.append(address)
    return f"{','.join(shown)} + {ready - MOST} more..." if more else ",".join(shown)


def _addresses(slices: list[Object], port: str) -> Iterator[tuple[str, bool]]:
    """The first address of each endpoint with the number of the port, and whether it is ready."""
    for one in slices:
        for found in one.get("ports") or [None]:
            if found is None or found.get("name", "") == port:
                for endpoint in one.get("endpoints") or []:
                    number = "" if found is None else f":{found.get('port')}"
                    ready = (endpoint.get("conditions") or {}).get("ready")
                    yield _host(endpoint["addresses"][0], number) + number, ready is not False


def _host(address: str, port: str) -> str:
    return f"[{address}]" if port and ":" in address else address
