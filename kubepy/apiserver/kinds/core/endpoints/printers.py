"""Tables of Endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kubepy.api.meta import Object, nested_list
from kubepy.apiserver.printers import Cell, age, printer

MOST = 3  # of a list, before "more"


def some_of(values: Sequence[str], empty: str) -> str:
    """Return ``a,b,c + 2 more...``."""
    if len(values) > MOST:
        return f"{','.join(values[:MOST])} + {len(values) - MOST} more..."
    return ",".join(values) or empty


@printer("Name", "Endpoints", "Age")
def print_endpoints(obj: Object, now: datetime) -> list[Cell]:
    subsets = nested_list(obj, "subsets")
    addresses: list[str] = []
    for subset in subsets:
        ips = [address["ip"] for address in nested_list(subset, "addresses")]
        ports = nested_list(subset, "ports")
        for port in ports:
            addresses += [_host_and_port(ip, port["port"]) for ip in ips]
        if not ports:
            addresses += ips
    shown = some_of(addresses, "") if subsets else "<none>"
    return [obj["metadata"]["name"], shown, age(obj, now)]


def _host_and_port(ip: str, port: int) -> str:
    host = f"[{ip}]" if ":" in ip else ip
    return f"{host}:{port}"
