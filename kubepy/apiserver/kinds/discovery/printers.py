"""Tables of EndpointSlices."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object
from kubepy.apiserver.kinds.core.endpoints.printers import some_of
from kubepy.apiserver.printers import Cell, age, printer


@printer("Name", "AddressType", "Ports", "Endpoints", "Age")
def print_endpoint_slice(obj: Object, now: datetime) -> list[Cell]:
    ports = [str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or []]
    addresses = [
        address
        for endpoint in obj.get("endpoints") or []
        for address in endpoint.get("addresses") or []
    ]
    return [
        obj["metadata"]["name"],
        obj.get("addressType", ""),
        some_of(ports, "<unset>"),
        some_of(addresses, "<unset>"),
        age(obj, now),
    ]
