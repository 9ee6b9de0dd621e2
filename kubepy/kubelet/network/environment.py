"""The environment variables that name Services (``pkg/kubelet/envvars``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kubepy.api.meta import name_of

if TYPE_CHECKING:
    from kubepy.api.typed import Service, ServicePort


def service_environment(services: Iterable[Service]) -> dict[str, str]:
    """Return the variables of Services, in upstream's order. Those without a cluster IP have none.

    Which Services a pod is told of is the caller's: those of its namespace, unless
    ``enableServiceLinks`` is false, and in any case ``kubernetes`` of ``default``.
    """
    variables: dict[str, str] = {}
    for service in services:
        address = service["spec"].get("clusterIP")
        if address and address != "None":
            variables.update(_variables(service, address))
    return variables


def _variables(service: Service, address: str) -> Iterator[tuple[str, str]]:
    prefix = variable_name(name_of(service))
    ports = service["spec"].get("ports") or []
    yield f"{prefix}_SERVICE_HOST", address
    if not ports:
        return

    first = ports[0]
    yield f"{prefix}_SERVICE_PORT", str(first["port"])
    for port in ports:
        port_name = port.get("name")
        if port_name:
            suffix = variable_name(port_name)
            yield f"{prefix}_SERVICE_PORT_{suffix}", str(port["port"])

    yield f"{prefix}_PORT", _url(first, address)
    for port in ports:
        yield from _link_variables(prefix, port, address)


def _link_variables(prefix: str, port: ServicePort, address: str) -> Iterator[tuple[str, str]]:
    """Yield the variables that a Docker link had."""
    protocol = port.get("protocol") or "TCP"
    number = str(port["port"])
    name = f"{prefix}_PORT_{number}_{protocol.upper()}"

    yield name, _url(port, address)
    scheme = protocol.lower()
    yield f"{name}_PROTO", scheme
    yield f"{name}_PORT", number
    yield f"{name}_ADDR", address


def _url(port: ServicePort, address: str) -> str:
    protocol = port.get("protocol") or "TCP"
    scheme = protocol.lower()
    host = address
    if ":" in address:
        host = f"[{address}]"
    return f"{scheme}://{host}:{port['port']}"


def variable_name(name: str) -> str:
    """Return the name of a Service or port as it stands in names of variables."""
    return name.replace("-", "_").upper()
