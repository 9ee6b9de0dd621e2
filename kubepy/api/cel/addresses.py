"""Functions of IP addresses and networks (``apiserver/pkg/cel/library/{ip,cidr}.go``)."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv6Address,
    IPv6Interface,
    ip_address,
    ip_interface,
)

from kubepy.api.cel.types import overload
from kubepy.api.cel.values import CelError
from kubepy.quoting import quote

Address = IPv4Address | IPv6Address
Network = IPv4Interface | IPv6Interface  # an address with the length of its prefix


def _address(text: str) -> Address | None:
    """Read an address, without zones and IPv4 in IPv6; None for all else."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if "%" in text or (isinstance(address, IPv6Address) and address.ipv4_mapped):
        return None
    return address


def _network(text: str) -> Network | None:
    try:
        if "/" in text and "%" not in text:
            return ip_interface(text)
        return None
    except ValueError:
        return None


@overload("isIP(string) -> bool")
def _is_ip(text: str) -> bool:
    return _address(text) is not None


@overload("ip(string) -> ip")
def _ip(text: str) -> Address:
    address = _address(text)
    if address is None:
        raise CelError(
            f"IP Address {quote(text)} parse error during conversion from string: "
            f"ParseAddr({quote(text)}): "
            "unable to parse IP"
        )
    return address


@overload("ip.isCanonical(string) -> bool", namespace=True)
def _is_canonical(text: str) -> bool:
    return str(_ip(text)) == text


@overload("string(ip) -> string")
def _shown(address: Address) -> str:
    return str(address)


@overload("ip.family() -> int")
def _family(address: Address) -> int:
    return int(address.version)


def _property(name: str, holds: Callable[[Address], bool]) -> None:
    overload(f"ip.{name}() -> bool")(holds)


_property("isUnspecified", lambda address: address.is_unspecified)
_property("isLoopback", lambda address: address.is_loopback)
_property(
    "isLinkLocalMulticast",
    lambda address: (
        str(address).startswith("224.0.0.")
        or (address.version == 6 and address.packed[0] == 0xFF and address.packed[1] & 0xF == 2)
    ),
)
_property("isLinkLocalUnicast", lambda address: address.is_link_local)
_property(
    "isGlobalUnicast",
    lambda address: (
        not (
            address.is_unspecified
            or address.is_loopback
            or address.is_multicast
            or address.is_link_local
            or str(address) == "255.255.255.255"
        )
    ),
)


# --- networks -------------------------------------------------------------------------------------


@overload("isCIDR(string) -> bool")
def _is_cidr(text: str) -> bool:
    return _network(text) is not None


@overload("cidr(string) -> cidr")
def _cidr(text: str) -> Network:
    network = _network(text)
    if network is None:
        raise CelError(
            f"network address parse error during conversion from string: network address "
            f"{quote(text)} "
            "is not valid"
        )
    return network


@overload("string(cidr) -> string")
def _shown_network(network: Network) -> str:
    return str(network)


@overload("cidr.containsIP(ip) -> bool")
def _contains(network: Network, address: Address) -> bool:
    return bool(address.version == network.version and address in network.network)


@overload("cidr.containsIP(string) -> bool")
def _contains_text(network: Network, text: str) -> bool:
    return _contains(network, _ip(text))


@overload("cidr.containsCIDR(cidr) -> bool")
def _contains_network(network: Network, other: Network) -> bool:
    return bool(
        network.version == other.version
        and other.network.prefixlen >= network.network.prefixlen
        and other.network.network_address in network.network
    )


@overload("cidr.containsCIDR(string) -> bool")
def _contains_network_text(network: Network, text: str) -> bool:
    return _contains_network(network, _cidr(text))


@overload("cidr.ip() -> ip")
def _ip_of(network: Network) -> Address:
    return network.ip


@overload("cidr.masked() -> cidr")
def _masked(network: Network) -> Network:
    return ip_interface(network.network)


@overload("cidr.prefixLength() -> int")
def _prefix_length(network: Network) -> int:
    return network.network.prefixlen
