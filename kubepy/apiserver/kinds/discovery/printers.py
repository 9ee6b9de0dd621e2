"""Tables of EndpointSlices."""

from __future__ import annotations

from datetime import datetime

from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.kinds.core.endpoints.printers import some_of
from kubepy.apiserver.printers import Cell, age, printer


@printer("Name", "AddressType", "Ports", "Endpoints", "Age")
def print_endpoint_slice(obj: Object, now: datetime) -> list[Cell]:
    ports = [str(port.get("port", port.get("name", "*"))) for port in nested_list(obj, "ports")]
    addresses: list[str] = []
    for endpoint in nested_list(obj, "endpoints"):
        addresses += nested_list(endpoint, "addresses")
    return [
        obj["metadata"]["name"],
        obj.get("addressType", ""),
        some_of(ports, "<unset>"),
        some_of(addresses, "<unset>"),
        age(obj, now),
    ]
