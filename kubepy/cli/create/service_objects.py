"""The service that ``expose`` and ``run --expose`` make. Upstream: ``kubectl/pkg/cmd/expose/expose.go``."""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.values.gonumbers import NumberError, atoi, int_or_none
from kubepy.cli.errors import CliError

DNS1035_LENGTH = 63


class Service(NamedTuple):
    """What is known of a service; ``protocols``: those of each port of the object that is exposed."""

    name: str
    selector: dict[str, str]
    ports: list[str]
    labels: dict[str, str]
    protocols: dict[str, list[str]]
    protocol: str = ""
    target_port: str = ""
    external_ip: str = ""
    load_balancer_ip: str = ""
    type: str = ""
    session_affinity: str = ""
    cluster_ip: str = ""


def parse_pairs(text: str) -> dict[str, str]:
    """``a=1,b=2`` as labels, sorted. Raises CliError."""
    pairs = {}
    for one in text.split(","):
        key, equals, value = one.partition("=")
        if not equals or "=" in value:
            raise CliError(f"unexpected label spec: {one}")
        if not key:
            raise CliError("unexpected empty label key")
        pairs[key] = value
    return dict(sorted(pairs.items()))


def service(wanted: Service, metadata: Object) -> Object:
    """The object, its fields in Go's order; ``metadata`` is its metadata. Raises CliError."""
    if wanted.session_affinity not in ("", "None", "ClientIP"):
        raise CliError(f"unknown session affinity: {wanted.session_affinity}")
    is_load_balancer = wanted.type == "LoadBalancer"
    fields = {
        "ports": service_ports(wanted),
        "selector": wanted.selector,
        "clusterIP": wanted.cluster_ip,
        "type": wanted.type,
        "externalIPs": [wanted.external_ip] if wanted.external_ip else [],
        "sessionAffinity": wanted.session_affinity,
        "loadBalancerIP": wanted.load_balancer_ip if is_load_balancer else "",
    }
    return {"kind": "Service", "apiVersion": "v1", "metadata": metadata,
            "spec": {key: value for key, value in fields.items() if value}, "status": {"loadBalancer": {}}}


def service_ports(wanted: Service) -> list[Object]:
    """A port for each port and protocol; several are told apart by their names."""
    made: list[Object] = []
    for index, text in enumerate(wanted.ports, 1):
        number = _number(text)
        name = f"port-{index}" if len(wanted.ports) > 1 else ""
        protocols = _protocols(wanted, text)
        for protocol in protocols:
            own = f"port-{index}-{protocol.lower()}" if len(protocols) > 1 else name
            made.append({**({"name": own} if own else {}), "protocol": protocol, "port": number,
                         "targetPort": _target(wanted.target_port) or number})
    return made


def _protocols(wanted: Service, port: str) -> list[str]:
    if wanted.protocol:
        return [wanted.protocol]
    return wanted.protocols.get(port) or ["TCP"]


def _number(text: str) -> int:
    try:
        return atoi(text)
    except NumberError as error:
        raise CliError(str(error)) from None


def _target(text: str) -> int | str:
    number = int_or_none(text, 32)
    return text if number is None else number
