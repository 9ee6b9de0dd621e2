"""The objects that the network reads, and the questions that several of its parts ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kubepy.api.clock import parse_time
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
from kubepy.api.objects.nodes import is_down
from kubepy.api.objects.pods import TERMINAL_PHASES, is_restartable_init_container

if TYPE_CHECKING:
    from kubepy.api.typed import Pod

NAMESPACES = "namespaces"
NETWORK_POLICIES = "networkpolicies.networking.k8s.io"
NODES = "nodes"
PODS = "pods"
SERVICES = "services"
ENDPOINT_SLICES = "endpointslices.discovery.k8s.io"

SERVICE_NAME = "kubernetes.io/service-name"  # the label of a slice that names its Service
ADDRESS_TYPES = ("InternalIP", "ExternalIP")


class ClusterView(Protocol):
    """The objects of the cluster at one moment, implied ones included (``Client.list_implied``):
    informers alone do not hold the Service ``kubernetes`` of a cluster with few files."""

    @property
    def now(self) -> datetime: ...

    def get(self, resource: str, namespace: str, name: str) -> Any | None: ...

    def list(self, resource: str, namespace: str | None = None) -> Sequence[Any]: ...


class Caller(NamedTuple):
    """The maker of a connection: a pod; a node (without a pod); somebody outside (neither).

    :ivar node: the node on which it is made; "" outside of the cluster.
    :ivar running_pod: returns the pod with the containers that run, which its status may not show
        yet.
    """

    address: str
    node: str = ""
    pod: AnyObject | None = None
    running_pod: Callable[[], AnyObject] | None = None

    @property
    def is_outside(self) -> bool:
        return not self.node


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(address: str) -> bool:
    """Tell whether an address means the own host; 0.0.0.0 and :: do, too."""
    ip = ip_address(address)
    return ip.is_loopback or ip.is_unspecified


def uses_host_network(pod: AnyObject) -> bool:
    return bool(spec_of(pod).get("hostNetwork"))


def addresses_of(pod: AnyObject) -> list[str]:
    """Return the addresses of a pod. A pod that has ended has none: its network is gone."""
    status = status_of(pod)
    if status.get("phase") in TERMINAL_PHASES:
        return []

    addresses = []
    for pod_ip in nested_list(status, "podIPs"):
        if pod_ip.get("ip"):
            addresses.append(pod_ip["ip"])
    if addresses:
        return addresses

    address = status.get("podIP")
    return [address] if address else []


def addresses_at_the_end(pod: AnyObject, now: datetime) -> list[str]:
    """Return the addresses of a pod that has ended in this very second; none of another one.

    What happens at one moment happens at once: a peer that works as long as the pod finds it.
    """
    status = status_of(pod)
    if status.get("phase") not in TERMINAL_PHASES:
        return []
    second = now.replace(microsecond=0)
    for entry in nested_list(status, "containerStatuses"):
        finished = nested_map(entry, "state", "terminated").get("finishedAt")
        if finished and parse_time(finished) >= second:
            return [pod_ip["ip"] for pod_ip in nested_list(status, "podIPs")]
    return []


def node_addresses(node: AnyObject) -> list[str]:
    """Return the internal and external addresses of a node."""
    reported = nested_list(status_of(node), "addresses")
    addresses = []
    for entry in reported:
        if entry.get("type") in ADDRESS_TYPES:
            addresses.append(entry["address"])
    return addresses


def is_node_down(view: ClusterView, name: str, now: datetime) -> bool:
    """Tell whether nothing answers on a node: it does not exist, or it is down."""
    node = view.get(NODES, "", name)
    return node is None or is_down(node, now)


def pod_at(view: ClusterView, address: str) -> Pod | None:
    """Return the pod that has an address of its own."""
    for pod in view.list(PODS):
        if uses_host_network(pod):
            continue
        if address in addresses_of(pod):
            own: Pod = pod
            return own
    return None


def node_at(view: ClusterView, address: str) -> AnyObject | None:
    """Return the node that has an address."""
    for node in view.list(NODES):
        if address in node_addresses(node):
            own: AnyObject = node
            return own
    return None


def declared_ports(pod: AnyObject) -> Iterator[Mapping[str, Any]]:
    """Yield the ports that the containers of a pod declare."""
    spec = spec_of(pod)
    containers = nested_list(spec, "containers")
    sidecars = filter(is_restartable_init_container, nested_list(spec, "initContainers"))
    for container in (*containers, *sidecars):
        yield from nested_list(container, "ports")


def pods_of_node(view: ClusterView, name: str) -> Iterator[Pod]:
    """Yield the pods that live on a node."""
    for pod in view.list(PODS):
        if pod["spec"].get("nodeName") == name and addresses_of(pod):
            yield pod


def slices_of(view: ClusterView, service: AnyObject) -> list[AnyObject]:
    """Return the EndpointSlices of a Service, by name."""
    name = name_of(service)
    slices: list[AnyObject] = []
    for slice_ in view.list(ENDPOINT_SLICES, namespace_of(service)):
        if labels_of(slice_).get(SERVICE_NAME) == name:
            slices.append(slice_)

    slices.sort(key=name_of)
    return slices
