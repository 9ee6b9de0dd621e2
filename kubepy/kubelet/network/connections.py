"""Connections and lookups, from pods, nodes and the outside."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kubepy.api.meta import AnyObject, name_of, spec_of, status_of
from kubepy.apiserver.bootstrap import API_SERVER_ADDRESS, API_SERVER_PORT
from kubepy.kubelet.network import apiserver, names, outside
from kubepy.kubelet.network.failures import no_name_server, no_such_host, refused, timeout
from kubepy.kubelet.network.listeners import FindListener, Listener
from kubepy.kubelet.network.names import DnsRecord, Zone
from kubepy.kubelet.network.policies import Peer, Policies, Port
from kubepy.kubelet.network.services import (
    ServiceBackend,
    Turns,
    choose_backend,
    virtual_port,
)
from kubepy.kubelet.network.view import (
    NAMESPACES,
    PODS,
    Caller,
    ClusterView,
    addresses_at_the_end,
    addresses_of,
    declared_ports,
    is_address,
    is_loopback,
    is_node_down,
    node_addresses,
    node_at,
    pod_at,
    pods_of_node,
    uses_host_network,
)
from kubepy.shell.surroundings import HttpAnswer, NetworkError, NetworkRequest, Surroundings

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod

OUTSIDE = "203.0.113.1"  # the address of somebody outside of the cluster (RFC 5737)
DEFAULT_PORTS = {"http": 80, "https": 443}
DNS_PORT = 53
DNS_POD = {
    "metadata": {
        "name": "coredns",
        "namespace": names.KUBE_SYSTEM,
        "labels": {"k8s-app": names.KUBE_DNS},
    }
}  # the name server of a cluster that has no object of it
API_SERVER = Listener("kube-apiserver", apiserver.answer)
OUTSIDE_HOST = Listener("", outside.answer)


class Network:
    """The network of a cluster.

    :param listener: finds what listens on a port of a pod that runs.
    :param turns: says how often each Service was asked, and is changed; keep it, so that the
        endpoints of a Service take turns in later commands too.
    """

    def __init__(
        self,
        view: ClusterView,
        listener: FindListener,
        turns: MutableMapping[str, int] | None = None,
    ) -> None:
        self._view = view
        self._listener = listener
        self._turns = Turns({} if turns is None else turns)
        self._policies = Policies(view)
        self._zone = Zone(view)

    def from_pod(self, pod: Pod, running_pod: Callable[[], AnyObject] | None = None) -> Connections:
        """Return the network as the processes of a pod see it.

        :param running_pod: returns the pod with the containers that run, which its status may not
            show yet.
        """
        addresses = addresses_of(pod)
        address = addresses[0] if addresses else ""
        node = pod["spec"].get("nodeName") or ""
        caller = Caller(
            address,
            node,
            pod,
            running_pod,
        )
        return Connections(self, caller)

    def from_node(self, node: Node) -> Connections:
        """Return the network as a process of a node sees it, such as its kubelet."""
        addresses = node_addresses(node)
        address = addresses[0] if addresses else API_SERVER_ADDRESS
        return Connections(self, Caller(address, name_of(node)))

    def from_outside(self, address: str = OUTSIDE) -> Connections:
        """Return the network as somebody outside of the cluster sees it."""
        return Connections(self, Caller(address))

    def http_to_pod(
        self, pod: Pod, port: int, request: NetworkRequest, now: datetime | None = None
    ) -> HttpAnswer:
        """Ask a pod itself, as its kubelet does for probes and ``port-forward``: no NetworkPolicy
        keeps that.

        Raises NetworkError.

        :param now: the moment; None: now.
        """
        now = now or self._view.now
        listener = self._listening(pod, port, now)
        return listener.http(request, now)

    def connect_to_pod(self, pod: Pod, port: int, now: datetime | None = None) -> None:
        """Connect to a pod itself, now or at a moment. Raises NetworkError."""
        self._listening(pod, port, now or self._view.now)

    def resolver_file(self, pod: Pod) -> str:
        """Return a pod's ``/etc/resolv.conf``."""
        return self._resolver(pod).text()

    def hosts_file(self, pod: Pod) -> str:
        """Return a pod's ``/etc/hosts``."""
        return names.hosts_file(pod)

    def _resolver(self, pod: AnyObject) -> names.ResolverConfig:
        return names.resolver_config(pod, names.name_server(self._view))

    # --- lookups ----------------------------------------------------------------------------------

    def lookup(self, caller: Caller, name: str, kind: str) -> list[DnsRecord]:
        """Return the records of a name; a relative one is searched for. Raises NetworkError where
        there are none."""
        if caller.pod is None:
            return _outside_records(name, kind)
        config = self._resolver(caller.pod)
        if names.name_server(self._view) not in config.servers:
            return _outside_records(name, kind)  # other servers are outside of the cluster
        self._check_name_server(caller)
        for candidate in config.candidates(name):
            records = self._zone.records(candidate, kind)
            if records and records[-1].kind == kind:
                return records
            target = records[-1].data if records else candidate
            if kind == "A" and self._is_outside(target):
                return [*records, *_outside_records(target, kind)]
        raise no_such_host()

    def _is_outside(self, name: str) -> bool:
        """Tell whether an absolute name is that of a public host, and not of a namespace."""
        last = name.rpartition(".")[2]
        if self._view.get(NAMESPACES, "", last) is not None:
            return False
        return bool(outside.outside_address(name))

    def resolve(self, caller: Caller, name: str) -> list[str]:
        """Return the addresses of a name, as ``getaddrinfo`` does. Raises NetworkError where there
        are none."""
        if is_address(name):
            return [name]

        entries = names.LOCAL_HOSTS
        if caller.pod is not None:
            entries = names.host_entries(caller.pod)
        addresses = names.addresses_in_hosts(entries, name)
        if addresses:
            return addresses

        records = self.lookup(caller, name, "A")
        return [record.data for record in records if record.kind == "A"]

    def _check_name_server(self, caller: Caller) -> None:
        """Raise NetworkError if the cluster's name server does not answer this pod."""
        server = names.name_server(self._view)
        port = Port(DNS_PORT, "UDP")
        destination = Peer(server, DNS_POD)
        try:
            backend = self._backend(
                caller,
                server,
                port,
                Turns({}),
            )
        except NetworkError:
            raise no_name_server() from None
        if backend is not None:
            pod = self._pod_of(backend)
            destination = Peer(backend.address, pod)
            port = Port(backend.port, port.protocol)

        source = _peer(caller)
        if not self._policies.allow(source, destination, port):
            raise no_name_server()

    # --- connections ------------------------------------------------------------------------------

    def reach(self, caller: Caller, host: str, number: int, now: datetime) -> Listener:
        """Return what answers on a port of a host. Raises NetworkError.

        Of several addresses the first that answers is taken, beginning with another one each time.
        """
        addresses = self.resolve(caller, host)
        failure = refused()
        for address in self._turns.rotated(f"name {host}", addresses):
            try:
                return self._reach_address(
                    caller,
                    address,
                    number,
                    now,
                )
            except NetworkError as error:
                failure = error
        raise failure

    def _reach_address(self, caller: Caller, address: str, number: int, now: datetime) -> Listener:
        if is_loopback(address):
            return self._on_own_host(caller, number, now)

        port = Port(number)
        backend = self._backend(
            caller,
            address,
            port,
            self._turns,
        )
        if backend is not None:
            pod = self._pod_of(backend)
            destination = Peer(backend.address, pod)
            return self._at(
                caller,
                destination,
                backend.port,
                now,
            )

        pod = pod_at(self._view, address)
        if caller.is_outside and pod is not None:
            raise timeout()  # nobody outside has a way to the address of a pod
        destination = Peer(address, pod)
        return self._at(
            caller,
            destination,
            number,
            now,
        )

    def _backend(
        self, caller: Caller, address: str, port: Port, turns: Turns
    ) -> ServiceBackend | None:
        """Return the endpoint where an address and port are a Service's."""
        node = node_at(self._view, address)
        virtual = virtual_port(
            self._view,
            address,
            port.number,
            node,
            port.protocol,
        )
        if virtual is None:
            return None
        if caller.is_outside and not virtual.is_external:
            raise timeout()
        return choose_backend(
            self._view,
            virtual,
            caller,
            turns,
        )

    def _pod_of(self, backend: ServiceBackend) -> Pod | None:
        """Return the pod behind an endpoint; None where it has gone, and another has its name."""
        if backend.pod is None:
            return pod_at(self._view, backend.address)

        namespace, name = backend.pod
        pod: Pod | None = self._view.get(PODS, namespace, name)
        if pod is None:
            return None
        if backend.address not in addresses_of(pod):
            return None
        return pod

    def _at(self, caller: Caller, destination: Peer, number: int, now: datetime) -> Listener:
        """Return what listens at an address that is no Service's."""
        if not self._is_allowed(caller, destination, Port(number)):
            raise timeout()
        pod = destination.pod
        if pod is not None:
            return self._listening(pod, number, now)

        address = destination.address
        if address == API_SERVER_ADDRESS and number == API_SERVER_PORT:
            return API_SERVER
        node = node_at(self._view, address)
        if node is not None:
            return self._on_node(name_of(node), number, now)
        if any(address in addresses_at_the_end(each, now) for each in self._view.list(PODS)):
            raise refused()
        if not outside.is_outside_address(address):
            raise timeout()
        if number not in outside.PORTS:
            raise refused()
        return OUTSIDE_HOST

    def _is_allowed(self, caller: Caller, destination: Peer, port: Port) -> bool:
        """Tell whether policies let a connection through; a pod's own node always reaches it."""
        pod = destination.pod
        is_node = caller.pod is None and not caller.is_outside
        if pod is not None and is_node:
            own_node = spec_of(pod).get("nodeName")
            if caller.node == own_node:
                return True

        source = _peer(caller)
        return self._policies.allow(source, destination, port)

    def _on_own_host(self, caller: Caller, number: int, now: datetime) -> Listener:
        """Return what listens on the loopback address."""
        pod = caller.pod
        if pod is not None and not uses_host_network(pod):
            if caller.running_pod is not None:
                pod = caller.running_pod()
            listener = self._find_listener(pod, number)
            if listener is None:
                raise refused()
            return listener
        if caller.is_outside:
            raise refused()
        return self._on_node(caller.node, number, now)

    def _on_node(self, node: str, number: int, now: datetime) -> Listener:
        """Return what listens on a port of a node: a pod on its network, or behind a host port."""
        if is_node_down(self._view, node, now):
            raise timeout()
        for pod in pods_of_node(self._view, node):
            if uses_host_network(pod):
                listener = self._find_listener(pod, number)
                if listener is not None:
                    return listener
                continue
            for port in declared_ports(pod):
                if port.get("hostPort") == number:
                    return self._listening(pod, port["containerPort"], now)
        raise refused()

    def _listening(self, pod: AnyObject, number: int, now: datetime) -> Listener:
        """Return what listens on a port of a pod. Raises NetworkError."""
        node = spec_of(pod).get("nodeName") or ""
        if not addresses_of(pod) or is_node_down(self._view, node, now):
            raise timeout()
        listener = self._find_listener(pod, number)
        if listener is None:
            raise refused()
        return listener

    def _find_listener(self, pod: AnyObject, number: int) -> Listener | None:
        if status_of(pod).get("phase") != "Running":
            return None
        return self._listener(pod, number)


def _outside_records(name: str, kind: str) -> list[DnsRecord]:
    """Return the address of a name outside of the cluster. Raises NetworkError for none."""
    address = outside.outside_address(name)
    if not address or kind != "A":
        raise no_such_host()
    return [DnsRecord(name.rstrip("."), kind, address)]


def _peer(caller: Caller) -> Peer:
    return Peer(caller.address, caller.pod)


class Connections(Surroundings):
    """The network as one source sees it."""

    def __init__(self, network: Network, caller: Caller) -> None:
        self._network = network
        self._caller = caller

    def http(self, request: NetworkRequest, now: datetime) -> HttpAnswer:
        """Return the answer to a request. HTTPS is answered as HTTP: certificates are not
        modelled. Raises NetworkError."""
        host, port = _host_and_port(request.url)
        listener = self._network.reach(
            self._caller,
            host,
            port,
            now,
        )
        sent = request._replace(client=self._caller.address)
        return listener.http(sent, now)

    def connect(self, host: str, port: int, now: datetime) -> None:
        """Connect to a port. Raises NetworkError where nothing answers."""
        self._network.reach(
            self._caller,
            host,
            port,
            now,
        )

    def resolve(self, name: str, now: datetime) -> tuple[str, ...]:
        """Return the addresses of a name. Raises NetworkError where there are none."""
        addresses = self._network.resolve(self._caller, name)
        return tuple(addresses)

    def lookup(self, name: str, kind: str, now: datetime) -> tuple[DnsRecord, ...]:
        """Return the records that the cluster's name server has (A, AAAA, CNAME, SRV, PTR).
        Raises NetworkError where there are none."""
        records = self._network.lookup(self._caller, name, kind)
        return tuple(records)


def _host_and_port(url: str) -> tuple[str, int]:
    """Return where a URL leads, whose scheme may be left out."""
    if "://" not in url:
        url = f"http://{url}"
    parts = urlsplit(url)
    host = parts.hostname or ""
    usual = DEFAULT_PORTS.get(parts.scheme, 80)
    return host, parts.port or usual
