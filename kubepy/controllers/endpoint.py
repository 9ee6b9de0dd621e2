"""Keeps the Endpoints of Services, for clients that do not read EndpointSlices
(``pkg/controller/endpoint``).

:func:`subsets_of` groups addresses by the ports that they share (``pkg/api/v1/endpoints/util.go``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from kubepy.api.errors import Status
from kubepy.api.meta import annotations_of, labels_of, name_of, namespace_of
from kubepy.api.objects.pods import is_pod_ready
from kubepy.api.objects.services import NONE
from kubepy.api.types.hashing import deep_hash
from kubepy.controllers.pod_control import is_namespace_terminating
from kubepy.controllers.service_endpoints import (
    HEADLESS,
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
from kubepy.runtime.informers import ENDPOINTS, SERVICES, ResourceClient
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

if TYPE_CHECKING:
    from kubepy.api.typed import (
        EndpointAddress,
        EndpointPort,
        Endpoints,
        EndpointSubset,
        ObjectMeta,
        Pod,
        Service,
    )

MANAGED_BY, CONTROLLER = "endpoints.kubernetes.io/managed-by", "endpoint-controller"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
MAX_CAPACITY = 1000  # addresses of one Endpoints object


class EndpointsController:
    """Reconciles Services: creates, updates and deletes their Endpoints."""

    name = "endpoint-controller"

    def __init__(self, context: Context) -> None:
        self._informers = context.informers
        self._service_lister = context.informers.lister(SERVICES)
        self._endpoints = context.informers.lister(ENDPOINTS)
        self._endpoints_client = ResourceClient(context.client, ENDPOINTS)
        self.queue = context.new_queue()
        self._services = ServiceHandlers(context.informers, self.queue)

    def handlers(self) -> Mapping[str, Handler]:
        return {**self._services.handlers(), ENDPOINTS: self._endpoints_changed}

    def _endpoints_changed(self, event: WatchEvent) -> None:
        """Reconcile the Service of Endpoints that were deleted, or that this controller made."""
        if event.new is None or labels_of(event.new).get(MANAGED_BY) == CONTROLLER:
            self.queue.add(Key(SERVICES, event.key.namespace, event.key.name))

    def sync(self, key: Key) -> None:
        service = self._service_lister.get(key.namespace, key.name)
        present = self._endpoints.get(key.namespace, key.name)
        if service is None:
            if present is not None and labels_of(present).get(MANAGED_BY) == CONTROLLER:
                self._endpoints_client.delete(present)
            return

        if not has_endpoints(service):
            return
        pods = pods_of(self._informers, service)
        endpoints = endpoints_of(service, pods, present)
        if is_same(endpoints, present):
            return
        endpoints = with_trigger_time(
            endpoints, trigger_time(service, pods, ready_pods_in_subsets(present))
        )
        if present is not None:
            self._endpoints_client.update(endpoints)
            return
        try:
            self._endpoints_client.create(endpoints, key.namespace)
        except Status as error:
            if not is_namespace_terminating(error):
                raise


def endpoints_of(service: Service, pods: list[Pod], present: Endpoints | None) -> Endpoints:
    """Return the Endpoints that a Service with these pods should have, as an update of the present
    ones."""
    subsets = subsets_of(service, pods)
    truncated_subsets = truncated(subsets)
    annotations = dict(annotations_of(present)) if present is not None else {}
    annotations.pop(OVER_CAPACITY, None)
    if truncated_subsets is not None:
        annotations[OVER_CAPACITY] = "truncated"
    labels = {key: value for key, value in labels_of(service).items() if key != HEADLESS}
    if service["spec"].get("clusterIP", NONE) in (NONE, ""):
        labels[HEADLESS] = ""
    labels[MANAGED_BY] = CONTROLLER
    metadata: ObjectMeta = {"name": name_of(service), "namespace": namespace_of(service)}
    if present is not None:
        metadata = present["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "subsets": subsets if truncated_subsets is None else truncated_subsets,
        "metadata": {**metadata, "labels": labels, "annotations": annotations},
    }


def is_same(endpoints: Endpoints, present: Endpoints | None) -> bool:
    """Tell whether the present Endpoints need no update.

    The trigger time does not count, nor the order of ports and subsets, which another version of
    the controller may have hashed otherwise.
    """
    if present is None or labels_of(endpoints) != labels_of(present):
        return False
    if annotations_of(endpoints).get(OVER_CAPACITY) != annotations_of(present).get(OVER_CAPACITY):
        return False
    subsets = present.get("subsets") or []
    return bool(endpoints["subsets"] == subsets or endpoints["subsets"] == repacked(subsets))


# --- subsets --------------------------------------------------------------------------------------


class AddressPort(NamedTuple):
    """One address with one port, or with none (of a headless Service without ports)."""

    address: EndpointAddress
    port: EndpointPort | None
    ready: bool


if TYPE_CHECKING:
    AddressPortsByPort = list[tuple[EndpointPort | None, dict[str, AddressPort]]]
AddressList = Literal["addresses", "notReadyAddresses"]
ADDRESS_LISTS: tuple[tuple[AddressList, bool], ...] = (
    ("addresses", True),
    ("notReadyAddresses", False),
)


def subsets_of(service: Service, pods: Iterable[Pod]) -> list[EndpointSubset]:
    """Return the subsets in upstream's order. A port that two pods have at one address is ready if
    both are."""
    pairs: list[AddressPort] = []
    for pod in pods:
        pairs += _address_ports(service, pod)
    return _packed(_by_port(pairs))


def repacked(subsets: Iterable[EndpointSubset]) -> list[EndpointSubset]:
    """Return the same in as few subsets as possible, with no address twice in one
    (``RepackSubsets``)."""
    return _packed(
        _by_port(
            AddressPort(address, port, ready)
            for subset in subsets
            for port in subset.get("ports") or (None,)
            for field, ready in ADDRESS_LISTS
            for address in subset.get(field) or ()
        )
    )


def _by_port(pairs: Iterable[AddressPort]) -> AddressPortsByPort:
    by_port: dict[str, tuple[EndpointPort | None, dict[str, AddressPort]]] = {}
    for pair in pairs:
        same_port = by_port.setdefault(_port_hash(pair.port), (pair.port, {}))[1]
        known = same_port.get(_address_key(pair.address))
        if known is None or known.ready:
            same_port[_address_key(pair.address)] = pair
    return list(by_port.values())


def _address_ports(service: Service, pod: Pod) -> Iterator[AddressPort]:
    """Yield the pod's address of the Service's first family with each port
    (``podToEndpointAddressForService``)."""
    publishes_all = bool(service["spec"].get("publishNotReadyAddresses"))
    if not is_endpoint(pod, terminating=publishes_all):
        return
    families = service["spec"].get("ipFamilies") or []
    is_ipv6 = bool(families) and families[0] == "IPv6"
    ip = next((ip for ip in addresses_of(pod) if (":" in ip) == is_ipv6), None)
    if ip is None:
        return
    address: EndpointAddress = {
        "ip": ip,
        "nodeName": pod["spec"].get("nodeName", ""),
        "targetRef": target_ref(pod),
    }
    hostname = hostname_within(pod, service)
    if hostname:
        address["hostname"] = hostname
    ready = publishes_all or is_pod_ready(pod)
    if not service["spec"].get("ports"):
        yield AddressPort(address, None, ready)
    for port in endpoint_ports(service, pod):
        if port["name"] == "":
            del port["name"]
        yield AddressPort(address, port, ready)


def _packed(by_port: AddressPortsByPort) -> list[EndpointSubset]:
    """Make one subset of ports with the same addresses in the same state."""
    groups: dict[tuple[tuple[str, bool], ...], tuple[list[EndpointPort], list[AddressPort]]] = {}
    for port, pairs in by_port:
        key = tuple(sorted((address, pair.ready) for address, pair in pairs.items()))
        ports = groups.setdefault(key, ([], list(pairs.values())))[0]
        if port is not None:
            ports.append(port)
    return sorted(
        (_subset(ports, pairs) for ports, pairs in groups.values()),
        key=lambda subset: deep_hash("core/v1.EndpointSubset", subset),
    )


def _subset(ports: list[EndpointPort], pairs: list[AddressPort]) -> EndpointSubset:
    subset: EndpointSubset = {}
    for field, ready in ADDRESS_LISTS:
        addresses = sorted(
            (pair.address for pair in pairs if pair.ready is ready), key=_address_key
        )
        if addresses:
            subset[field] = addresses
    if ports:
        subset["ports"] = sorted(ports, key=_port_hash)
    return subset


def _address_key(address: EndpointAddress) -> str:
    target = address.get("targetRef") or {}
    return f"{address['ip']} {target.get('uid', '')}"


def _port_hash(port: EndpointPort | None) -> str:
    if port is not None:
        return deep_hash("core/v1.EndpointPort", port)
    return ""


def truncated(subsets: list[EndpointSubset]) -> list[EndpointSubset] | None:
    """Return the subsets cut to the capacity of one object, ready addresses first; None if they
    fit.

    Upstream: ``truncateEndpoints``.
    """
    ready = sum(len(subset.get("addresses") or ()) for subset in subsets)
    unready = sum(len(subset.get("notReadyAddresses") or ()) for subset in subsets)
    if ready + unready <= MAX_CAPACITY:
        return None
    if ready > MAX_CAPACITY:
        ready_only: list[EndpointSubset] = [{**subset} for subset in subsets]
        for subset in ready_only:
            subset.pop("notReadyAddresses", None)
        return _shares(ready_only, "addresses", ready, MAX_CAPACITY)
    return _shares(subsets, "notReadyAddresses", unready, MAX_CAPACITY - ready)


def _shares(
    subsets: list[EndpointSubset], field: AddressList, total: int, room: int
) -> list[EndpointSubset]:
    """Cut each subset to its share of the room, rounded up, as long as there is any."""
    left = room
    cut = [subset.copy() for subset in subsets]
    for subset in cut:
        addresses = subset.get(field) or []
        share = min(-(-len(addresses) * room // total), left)
        left -= min(share, len(addresses))
        if addresses[:share]:
            subset[field] = addresses[:share]
        else:
            subset.pop(field, None)
    return cut
