"""The way from the address of a Service to one of its endpoints (``pkg/proxy``, mode iptables).

kube-proxy draws an endpoint at random. Here they take turns: the next connection goes to the next
one, counted by :class:`Turns`, so that the same commands reach the same pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Any, NamedTuple
from zlib import crc32

from kubepy.api.meta import (
    AnyObject,
    labels_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
    spec_of,
    status_of,
)
from kubepy.kubelet.network.failures import refused, timeout
from kubepy.kubelet.network.view import SERVICES, Caller, ClusterView, slices_of

LOCAL = "Local"


class ServiceBackend(NamedTuple):
    """An endpoint's address and port.

    :ivar pod: the namespace and name of the pod that it names, or None.
    """

    address: str
    port: int
    node: str = ""
    pod: tuple[str, str] | None = None


class VirtualPort(NamedTuple):
    """A port of a Service at one of the Service's addresses.

    :ivar port: the entry of ``spec.ports``; None: the Service has no such port.
    :ivar via_node: the node whose node port it is, "" for another address.
    """

    service: AnyObject
    port: Mapping[str, Any] | None
    is_external: bool = False
    via_node: str = ""


class Turns:
    """Counts who is next of several that serve the same.

    :param counts: is changed, so that the caller can keep it: it is JSON.
    """

    def __init__(self, counts: MutableMapping[str, int]) -> None:
        self._counts = counts

    def rotated(self, purpose: str, choices: Sequence[Any]) -> list[Any]:
        """Return the choices, beginning with the one whose turn it is."""
        total = len(choices)
        if total < 2:
            return list(choices)

        count = self._counts.get(purpose, 0)
        self._counts[purpose] = count + 1
        start = count % total
        later = choices[start:]
        earlier = choices[:start]
        return [*later, *earlier]


# --- which Service ------------------------------------------------------------------------------


def target_ports(view: ClusterView, pod: AnyObject) -> Iterator[int]:
    """Yield the ports of a pod to which Services lead by their numbers."""
    labels = labels_of(pod)
    for service in view.list(SERVICES, namespace_of(pod)):
        selector = spec_of(service).get("selector")
        if not selector or not selector.items() <= labels.items():
            continue
        for port in nested_list(spec_of(service), "ports"):
            target = port.get("targetPort") or port["port"]
            if isinstance(target, int):
                yield target


def virtual_port(
    view: ClusterView, address: str, number: int, node: AnyObject | None, protocol: str = "TCP"
) -> VirtualPort | None:
    """Return the Service's port that an address and number mean; None: they mean no Service.

    :param node: the node that has the address.
    """
    for service in view.list(SERVICES):
        if node is not None:
            port = _entry(
                service,
                "nodePort",
                number,
                protocol,
            )
            if port is not None:
                return VirtualPort(
                    service,
                    port,
                    True,
                    name_of(node),
                )

        is_internal = address in nested_list(spec_of(service), "clusterIPs")
        is_external = address in external_addresses(service)
        if is_internal or is_external:
            port = _entry(
                service,
                "port",
                number,
                protocol,
            )
            return VirtualPort(service, port, not is_internal)
    return None


def external_addresses(service: AnyObject) -> list[str]:
    """Return the addresses of a Service besides its cluster IP."""
    addresses = list(nested_list(spec_of(service), "externalIPs"))
    balancers = nested_list(status_of(service), "loadBalancer", "ingress")
    for balancer in balancers:
        address = balancer.get("ip")
        if address:
            addresses.append(address)
    return addresses


def _entry(service: AnyObject, field: str, number: int, protocol: str) -> Mapping[str, Any] | None:
    ports: list[Mapping[str, Any]] = nested_list(spec_of(service), "ports")
    for port in ports:
        if port.get(field) != number:
            continue
        if protocol_of(port) == protocol:
            return port
    return None


def protocol_of(port: Mapping[str, Any]) -> str:
    return port.get("protocol") or "TCP"


# --- which endpoint -----------------------------------------------------------------------------


def choose_backend(
    view: ClusterView, virtual: VirtualPort, caller: Caller, turns: Turns
) -> ServiceBackend:
    """Return the endpoint that a connection to a Service reaches.

    Raises NetworkError: refused where the Service has no endpoint, timeout where kube-proxy drops
    what comes.
    """
    service = virtual.service
    port = virtual.port
    if port is None or not _admits(virtual, caller):
        raise timeout()

    backends = usable_backends(view, service, port)
    if not backends:
        raise refused()
    backends = _reachable(virtual, caller, backends)
    if not backends:
        raise timeout()

    if spec_of(service).get("sessionAffinity") == "ClientIP":
        return max(backends, key=partial(_affinity, caller))
    purpose = f"{namespace_of(service)}/{name_of(service)}:{port['port']}"
    in_turn: list[ServiceBackend] = turns.rotated(purpose, backends)
    return in_turn[0]


def _admits(virtual: VirtualPort, caller: Caller) -> bool:
    """Tell whether a load balancer takes connections from the caller."""
    if virtual.via_node or not caller.is_outside:
        return True
    spec = spec_of(virtual.service)
    ranges = nested_list(spec, "loadBalancerSourceRanges")
    if not ranges:
        return True
    return any(is_in_range(caller.address, cidr) for cidr in ranges)


def is_in_range(address: str, cidr: str) -> bool:
    """Tell whether a range of addresses has one."""
    network = ip_network(cidr, strict=False)
    return ip_address(address) in network


def _reachable(
    virtual: VirtualPort, caller: Caller, backends: list[ServiceBackend]
) -> list[ServiceBackend]:
    """Return the endpoints to which the Service's traffic policy lets the caller.

    Pods and nodes reach external addresses as if their policy were Cluster.
    """
    spec = spec_of(virtual.service)
    node = ""
    if not virtual.is_external:
        if spec.get("internalTrafficPolicy") == LOCAL:
            node = caller.node
    elif caller.is_outside and spec.get("externalTrafficPolicy") == LOCAL:
        node = virtual.via_node

    if not node:
        return backends
    return [backend for backend in backends if backend.node == node]


def _affinity(caller: Caller, backend: ServiceBackend) -> int:
    """Return how much an endpoint attracts a client: always the same for the same two."""
    endpoint = f"{backend.address}:{backend.port}"
    pair = f"{caller.address} {endpoint}"
    return crc32(pair.encode())


def usable_backends(
    view: ClusterView, service: AnyObject, port: Mapping[str, Any]
) -> list[ServiceBackend]:
    """Return the ready endpoints of a Service's port; without any, those that serve while they
    terminate."""
    ready = []
    serving = []
    for conditions, backend in _endpoints(view, service, port):
        if conditions.get("ready") is not False:
            ready.append(backend)
        elif conditions.get("serving") and conditions.get("terminating"):
            serving.append(backend)

    usable = ready or serving
    return list(dict.fromkeys(usable))


def _endpoints(
    view: ClusterView, service: AnyObject, port: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], ServiceBackend]]:
    """Yield each endpoint of a Service's port with its conditions."""
    wanted = port.get("name") or "", protocol_of(port)
    for slice_ in slices_of(view, service):
        for slice_port in nested_list(slice_, "ports"):
            key = slice_port.get("name") or "", protocol_of(slice_port)
            if key != wanted:
                continue

            number = slice_port.get("port") or port["port"]
            for endpoint in nested_list(slice_, "endpoints"):
                conditions = nested_map(endpoint, "conditions")
                yield conditions, backend_of(endpoint, number)


def backend_of(endpoint: Mapping[str, Any], port: int) -> ServiceBackend:
    """Return the way to an entry of an EndpointSlice; all its addresses are the same host."""
    address = endpoint["addresses"][0]
    node = endpoint.get("nodeName") or ""
    target = nested_map(endpoint, "targetRef")
    pod = None
    if target.get("kind") == "Pod":
        pod = target.get("namespace", ""), target["name"]
    return ServiceBackend(
        address,
        port,
        node,
        pod,
    )
