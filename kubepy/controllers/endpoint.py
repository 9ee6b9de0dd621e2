"""Keeps the Endpoints of Services, for clients that do not read EndpointSlices (``pkg/controller/endpoint``).

:func:`subsets_of` groups addresses by the ports that they share (``pkg/api/v1/endpoints/util.go``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kubepy.api.errors import Status
from kubepy.api.meta import Object, annotations_of, labels_of, name_of, namespace_of
from kubepy.api.objects.pods import is_pod_ready
from kubepy.api.objects.services import NONE
from kubepy.api.types.hashing import deep_hash
from kubepy.controllers.pod_control import is_namespace_terminating
from kubepy.controllers.service_endpoints import (
    HEADLESS,
    SERVICES,
    ServiceHandlers,
    addresses_of,
    endpoint_ports,
    has_endpoints,
    hostname_within,
    is_endpoint,
    pods_of,
    ready_pods_in_subsets,
    target_ref,
    trigger_time,
    with_trigger_time,
)
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

ENDPOINTS = "endpoints"
MANAGED_BY, CONTROLLER = "endpoints.kubernetes.io/managed-by", "endpoint-controller"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
MAX_CAPACITY = 1000  # addresses of one Endpoints object


class EndpointsController:
    """Reconciles Services: creates, updates and deletes their Endpoints."""

    name = "endpoint-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self.queue = context.new_queue()
        self._services = ServiceHandlers(context.informers, self.queue)

    def handlers(self) -> Mapping[str, Handler]:
        return {**self._services.handlers(), ENDPOINTS: self._endpoints_changed}

    def _endpoints_changed(self, event: WatchEvent) -> None:
        """Reconcile the Service of Endpoints that were deleted, or that this controller made."""
        if event.new is None or labels_of(event.new).get(MANAGED_BY) == CONTROLLER:
            self.queue.add(Key(SERVICES, event.key.namespace, event.key.name))

    def sync(self, key: Key) -> None:
        service = self._informers.get(*key)
        present = self._informers.get(ENDPOINTS, key.namespace, key.name)
        if service is None:
            if present is not None and labels_of(present).get(MANAGED_BY) == CONTROLLER:
                self._client.delete(ENDPOINTS, key.name, namespace=key.namespace)
            return
        if not has_endpoints(service):
            return
        pods = pods_of(self._informers, service)
        endpoints = endpoints_of(service, pods, present)
        if is_same(endpoints, present):
            return
        endpoints = with_trigger_time(endpoints, trigger_time(service, pods, ready_pods_in_subsets(present)))
        if present is not None:
            self._client.update(ENDPOINTS, endpoints, namespace=key.namespace)
            return
        try:
            self._client.create(ENDPOINTS, endpoints, namespace=key.namespace)
        except Status as error:
            if not is_namespace_terminating(error):
                raise


def endpoints_of(service: Object, pods: list[Object], present: Object | None) -> Object:
    """Return the Endpoints that a Service with these pods should have, as an update of the present ones."""
    subsets = subsets_of(service, pods)
    truncated_subsets = truncated(subsets)
    annotations = {key: value for key, value in annotations_of(present or {"metadata": {}}).items()
                   if key != OVER_CAPACITY}
    if truncated_subsets is not None:
        annotations[OVER_CAPACITY] = "truncated"
    labels = {key: value for key, value in labels_of(service).items() if key != HEADLESS}
    if service["spec"].get("clusterIP", NONE) in (NONE, ""):
        labels[HEADLESS] = ""
    labels[MANAGED_BY] = CONTROLLER
    metadata = (present or {}).get("metadata") or {"name": name_of(service), "namespace": namespace_of(service)}
    return {"apiVersion": "v1", "kind": "Endpoints",
            "subsets": subsets if truncated_subsets is None else truncated_subsets,
            "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def is_same(endpoints: Object, present: Object | None) -> bool:
    """Tell whether the present Endpoints need no update.

    The trigger time does not count, nor the order of ports and subsets, which another version of the controller may
    have hashed otherwise.
    """
    if present is None or labels_of(endpoints) != labels_of(present):
        return False
    if annotations_of(endpoints).get(OVER_CAPACITY) != annotations_of(present).get(OVER_CAPACITY):
        return False
    subsets = present.get("subsets") or []
    return bool(endpoints["subsets"] == subsets or endpoints["subsets"] == repacked(subsets))


# --- subsets ------------------------------------------------------------------------------------------------------


class AddressPort(NamedTuple):
    """One address with one port, or with none (of a headless Service without ports)."""

    address: Object
    port: Object | None
    ready: bool


AddressPortsByPort = list[tuple[Object | None, dict[str, AddressPort]]]


def subsets_of(service: Object, pods: Iterable[Object]) -> list[Object]:
    """Return the subsets in upstream's order. A port that two pods have at one address is ready if both are."""
    return _packed(_by_port(pair for pod in pods for pair in _address_ports(service, pod)))


def repacked(subsets: Iterable[Object]) -> list[Object]:
    """Return the same in as few subsets as possible, with no address twice in one (``RepackSubsets``)."""
    return _packed(_by_port(
        AddressPort(address, port, ready) for subset in subsets for port in subset.get("ports") or [None]
        for field, ready in (("addresses", True), ("notReadyAddresses", False)) for address in subset.get(field) or ()))


def _by_port(pairs: Iterable[AddressPort]) -> AddressPortsByPort:
    by_port: dict[str, tuple[Object | None, dict[str, AddressPort]]] = {}
    for pair in pairs:
        same_port = by_port.setdefault(_port_hash(pair.port), (pair.port, {}))[1]
        known = same_port.get(_address_key(pair.address))
        if known is None or known.ready:
            same_port[_address_key(pair.address)] = pair
    return list(by_port.values())


def _address_ports(service: Object, pod: Object) -> Iterator[AddressPort]:
    """Yield the pod's address of the Service's first family with each port (``podToEndpointAddressForService``)."""
    publishes_all = bool(service["spec"].get("publishNotReadyAddresses"))
    if not is_endpoint(pod, terminating=publishes_all):
        return
    families = service["spec"].get("ipFamilies") or []
    is_ipv6 = bool(families) and families[0] == "IPv6"
    ip = next((ip for ip in addresses_of(pod) if (":" in ip) == is_ipv6), None)
    if ip is None:
        return
    address: Object = {"ip": ip, "nodeName": pod["spec"].get("nodeName", ""), "targetRef": target_ref(pod)}
    if hostname := hostname_within(pod, service):
        address["hostname"] = hostname
    ready = publishes_all or is_pod_ready(pod)
    if not service["spec"].get("ports"):
        yield AddressPort(address, None, ready)
    for port in endpoint_ports(service, pod):
        yield AddressPort(address, {key: value for key, value in port.items() if value != ""}, ready)


def _packed(by_port: AddressPortsByPort) -> list[Object]:
    """Make one subset of ports with the same addresses in the same state."""
    groups: dict[tuple[tuple[str, bool], ...], tuple[list[Object], list[AddressPort]]] = {}
    for port, pairs in by_port:
        key = tuple(sorted((address, pair.ready) for address, pair in pairs.items()))
        ports = groups.setdefault(key, ([], list(pairs.values())))[0]
        if port is not None:
            ports.append(port)
    return sorted((_subset(ports, pairs) for ports, pairs in groups.values()),
                  key=lambda subset: deep_hash("core/v1.EndpointSubset", subset))


def _subset(ports: list[Object], pairs: list[AddressPort]) -> Object:
    subset: Object = {}
    for field, ready in (("addresses", True), ("notReadyAddresses", False)):
        if addresses := sorted((pair.address for pair in pairs if pair.ready is ready), key=_address_key):
            subset[field] = addresses
    if ports:
        subset["ports"] = sorted(ports, key=_port_hash)
    return subset


def _address_key(address: Object) -> str:
    return f"{address['ip']} {(address.get('targetRef') or {}).get('uid', '')}"


def _port_hash(port: Object | None) -> str:
    return deep_hash("core/v1.EndpointPort", port) if port is not None else ""


def truncated(subsets: list[Object]) -> list[Object] | None:
    """Return the subsets cut to the capacity of one object, ready addresses first; None if they fit.

    Upstream: ``truncateEndpoints``.
    """
    ready = sum(len(subset.get("addresses") or ()) for subset in subsets)
    unready = sum(len(subset.get("notReadyAddresses") or ()) for subset in subsets)
    if ready + unready <= MAX_CAPACITY:
        return None
    if ready > MAX_CAPACITY:
        ready_only = [{key: value for key, value in subset.items() if key != "notReadyAddresses"} for subset in subsets]
        return _shares(ready_only, "addresses", ready, MAX_CAPACITY)
    return _shares(subsets, "notReadyAddresses", unready, MAX_CAPACITY - ready)


def _shares(subsets: list[Object], field: str, total: int, room: int) -> list[Object]:
    """Cut each subset to its share of the room, rounded up, as long as there is any."""
    left, cut = room, []
    for subset in subsets:
        addresses = subset.get(field) or []
        share = min(-(-len(addresses) * room // total), left)
        left -= min(share, len(addresses))
        cut.append({**subset, field: addresses[:share]} if addresses[:share] else
                   {key: value for key, value in subset.items() if key != field})
    return cut
