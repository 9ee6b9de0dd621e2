"""What an Endpoints object holds: addresses grouped by the ports that they share (``pkg/api/v1/endpoints/util.go``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kubepy.api.meta import Object
from kubepy.api.objects.pods import is_pod_ready
from kubepy.api.types.hashing import deep_hash
from kubepy.controllers.endpoints.membership import addresses_of, hostname_within, is_endpoint, target_ref
from kubepy.controllers.endpoints.ports import endpoint_ports

MAX_CAPACITY = 1000  # addresses of one Endpoints object


class Offer(NamedTuple):
    """One address with one port, or with none (of a headless Service without ports)."""

    address: Object
    port: Object | None
    ready: bool


def subsets_of(service: Object, pods: Iterable[Object]) -> list[Object]:
    """The subsets in the order upstream gives them. A port that two pods offer at one address is ready if both are."""
    return _packed(_by_port(one for pod in pods for one in _offers(service, pod)))


def repacked(subsets: Iterable[Object]) -> list[Object]:
    """The same offers with as few subsets as can be, and no address twice in one (``RepackSubsets``)."""
    return _packed(_by_port(
        Offer(address, port, ready) for subset in subsets for port in subset.get("ports") or [None]
        for field, ready in (("addresses", True), ("notReadyAddresses", False)) for address in subset.get(field) or ()))


def _by_port(offered: Iterable[Offer]) -> list[tuple[Object | None, dict[str, Offer]]]:
    by_port: dict[str, tuple[Object | None, dict[str, Offer]]] = {}
    for offer in offered:
        key = _port_hash(offer.port)
        offers = by_port.setdefault(key, (offer.port, {}))[1]
        known = offers.get(_address_key(offer.address))
        if known is None or known.ready:
            offers[_address_key(offer.address)] = offer
    return list(by_port.values())


def _offers(service: Object, pod: Object) -> Iterator[Offer]:
    publishes_all = bool(service["spec"].get("publishNotReadyAddresses"))
    if not is_endpoint(pod, terminating=publishes_all):
        return
    address = _address(service, pod)
    if address is None:
        return
    ready = publishes_all or is_pod_ready(pod)
    if not service["spec"].get("ports"):
        yield Offer(address, None, ready)
    for port in endpoint_ports(service, pod):
        yield Offer(address, {key: value for key, value in port.items() if value != ""}, ready)


def _address(service: Object, pod: Object) -> Object | None:
    """The pod's address of the Service's first family (``podToEndpointAddressForService``)."""
    families = service["spec"].get("ipFamilies") or []
    wants_ipv6 = bool(families) and families[0] == "IPv6"
    ip = next((one for one in addresses_of(pod) if (":" in one) == wants_ipv6), None)
    if ip is None:
        return None
    address: Object = {"ip": ip, "nodeName": pod["spec"].get("nodeName", ""), "targetRef": target_ref(pod)}
    if hostname := hostname_within(pod, service):
        address["hostname"] = hostname
    return address


def _packed(offered: Iterable[tuple[Object | None, dict[str, Offer]]]) -> list[Object]:
    """Ports that the same addresses offer, in the same state, are one subset."""
    groups: dict[tuple[tuple[str, bool], ...], tuple[list[Object], list[Offer]]] = {}
    for port, offers in offered:
        key = tuple(sorted((name, one.ready) for name, one in offers.items()))
        ports = groups.setdefault(key, ([], list(offers.values())))[0]
        if port is not None:
            ports.append(port)
    return sorted((_subset(ports, offers) for ports, offers in groups.values()),
                  key=lambda subset: deep_hash("core/v1.EndpointSubset", subset))


def _subset(ports: list[Object], offers: list[Offer]) -> Object:
    subset: Object = {}
    for field, ready in (("addresses", True), ("notReadyAddresses", False)):
        if found := sorted((one.address for one in offers if one.ready is ready), key=_address_key):
            subset[field] = found
    if ports:
        subset["ports"] = sorted(ports, key=_port_hash)
    return subset


def _address_key(address: Object) -> str:
    return f"{address['ip']} {(address.get('targetRef') or {}).get('uid', '')}"


def _port_hash(port: Object | None) -> str:
    return deep_hash("core/v1.EndpointPort", port) if port is not None else ""


def truncated(subsets: list[Object]) -> list[Object] | None:
    """The subsets cut to what one object holds, ready addresses first; None if they fit (``truncateEndpoints``)."""
    ready = sum(len(one.get("addresses") or ()) for one in subsets)
    unready = sum(len(one.get("notReadyAddresses") or ()) for one in subsets)
    if ready + unready <= MAX_CAPACITY:
        return None
    if ready > MAX_CAPACITY:
        cut = _shares(subsets, "addresses", ready, MAX_CAPACITY)
        return [{key: value for key, value in one.items() if key != "notReadyAddresses"} for one in cut]
    return _shares(subsets, "notReadyAddresses", unready, MAX_CAPACITY - ready)


def _shares(subsets: list[Object], field: str, total: int, room: int) -> list[Object]:
    """Each subset keeps its share of the room, rounded up, as long as there is any."""
    left, found = room, []
    for one in subsets:
        addresses = one.get(field) or []
        share = min(-(-len(addresses) * room // total), left)
        left -= min(share, len(addresses))
        found.append({**one, field: addresses[:share]} if addresses[:share] else
                     {key: value for key, value in one.items() if key != field})
    return found
