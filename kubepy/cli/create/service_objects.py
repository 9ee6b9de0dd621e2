"""The service that ``expose`` and ``run --expose`` make. Upstream:
``kubectl/pkg/cmd/expose/expose.go``."""

from __future__ import annotations

from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.values.gonumbers import NumberError, atoi, int_or_none
from kubepy.cli.errors import CliError

DNS1035_LENGTH = 63


class ServiceSettings(NamedTuple):
    """The settings of a service; ``protocols``: those of each port of the object that is
    exposed."""

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
    """Read ``a=1,b=2`` as labels, sorted. Raises CliError."""
    pairs = {}
    for pair in text.split(","):
        key, equals, value = pair.partition("=")
        if not equals or "=" in value:
            raise CliError(f"unexpected label spec: {pair}")
        if not key:
            raise CliError("unexpected empty label key")
        pairs[key] = value
    return dict(sorted(pairs.items()))


def service(settings: ServiceSettings, metadata: Object) -> Object:
    """Return the service, its fields in Go's order. Raises CliError."""
    if settings.session_affinity not in ("", "None", "ClientIP"):
        raise CliError(f"unknown session affinity: {settings.session_affinity}")
    is_load_balancer = settings.type == "LoadBalancer"
    fields = {
        "ports": service_ports(settings),
        "selector": settings.selector,
        "clusterIP": settings.cluster_ip,
        "type": settings.type,
        "externalIPs": [settings.external_ip] if settings.external_ip else [],
        "sessionAffinity": settings.session_affinity,
        "loadBalancerIP": settings.load_balancer_ip if is_load_balancer else "",
    }
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": metadata,
        "spec": {key: value for key, value in fields.items() if value},
        "status": {"loadBalancer": {}},
    }


def service_ports(settings: ServiceSettings) -> list[Object]:
    """Return an entry for each port and protocol; several have different names."""
    entries: list[Object] = []
    target = int_or_none(settings.target_port, 32)
    for index, text in enumerate(settings.ports, 1):
        try:
            number = atoi(text)
        except NumberError as error:
            raise CliError(str(error)) from None
        name = f"port-{index}" if len(settings.ports) > 1 else ""
        protocols = (
            [settings.protocol] if settings.protocol else settings.protocols.get(text) or ["TCP"]
        )
        for protocol in protocols:
            own = f"port-{index}-{protocol.lower()}" if len(protocols) > 1 else name
            entries.append(
                {
                    **({"name": own} if own else {}),
                    "protocol": protocol,
                    "port": number,
                    "targetPort": (settings.target_port if target is None else target) or number,
                }
            )

    return entries
