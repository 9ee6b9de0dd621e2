"""Names of the cluster: what CoreDNS with kubeadm's configuration answers, and a pod's resolver.

A pod's ``/etc/hosts`` comes first, then the search path of its ``/etc/resolv.conf``. Names of
public hosts are in :mod:`~kubepy.kubelet.network.outside`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, NamedTuple

from kubepy.api.meta import AnyObject, name_of, namespace_of, nested_list, nested_map, spec_of
from kubepy.api.objects.services import NONE
from kubepy.kubelet.network.services import protocol_of
from kubepy.kubelet.network.view import (
    NAMESPACES,
    PODS,
    SERVICES,
    ClusterView,
    addresses_at_the_end,
    addresses_of,
    is_address,
    slices_of,
    uses_host_network,
)
from kubepy.runtime.reconcile import Key

HostEntry = tuple[str, Sequence[str]]  # an address and its names

DOMAIN = "cluster.local"
USUAL_NAME_SERVER = "10.96.0.10"
KUBE_SYSTEM, KUBE_DNS = "kube-system", "kube-dns"
LEAST_LABELS = 3  # before the domain: a Service or address, a namespace, "svc" or "pod"
MOST_ALIASES = 8  # CNAMEs that are followed
LONGEST_HOSTNAME = 63
HOSTS_HEADER = "# Kubernetes-managed hosts file.\n"
ALIASES_HEADER = "\n# Entries added by HostAliases.\n"
NODE_HOSTS_HEADER = "# Kubernetes-managed hosts file (host network).\n"
LOCAL_HOSTS: Sequence[HostEntry] = (
    ("127.0.0.1", ("localhost",)),
    ("::1", ("localhost", "ip6-localhost", "ip6-loopback")),
    ("fe00::0", ("ip6-localnet",)),
    ("fe00::0", ("ip6-mcastprefix",)),
    ("fe00::1", ("ip6-allnodes",)),
    ("fe00::2", ("ip6-allrouters",)),
)


class DnsRecord(NamedTuple):
    """A record of the zone.

    :ivar data: an address; a name; of SRV ``priority weight port target``.
    """

    name: str
    kind: str
    data: str


# --- the zone of the cluster ----------------------------------------------------------------------


class Zone:
    """The records of ``cluster.local`` and of the reverse zones."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def records(self, name: str, kind: str = "A") -> list[DnsRecord]:
        """Return the records of an absolute name, CNAMEs first followed to their end."""
        name = name.rstrip(".").lower()
        records: list[DnsRecord] = []
        for _ in range(MOST_ALIASES):
            answer = self._answer(name, kind)
            records += answer
            if not answer:
                break
            last = answer[-1]
            if last.kind != "CNAME":
                break
            name = last.data
        return records

    def _answer(self, name: str, kind: str) -> list[DnsRecord]:
        if kind == "PTR":
            address = reversed_address(name)
            return [DnsRecord(name, kind, target) for target in self._names_of(address)]

        owner, _, rest = name.rpartition(f".{DOMAIN}")
        labels = owner.split(".")
        if rest or len(labels) < LEAST_LABELS:
            return []

        *inner, first, namespace, sort = labels
        if sort == "svc":
            key = Key(SERVICES, namespace, first)
            return self._answer_of_service(
                name,
                key,
                inner,
                kind,
            )
        if sort == "pod" and not inner:
            return self._pod_records(
                name,
                first,
                namespace,
                kind,
            )
        return []

    def _answer_of_service(
        self, name: str, key: Key, inner: list[str], kind: str
    ) -> list[DnsRecord]:
        """Return the records of a name in a Service's domain.

        :param inner: the labels before the Service's name.
        """
        service = self._view.get(*key)
        if service is None:
            if (key.namespace, key.name) != (KUBE_SYSTEM, KUBE_DNS) or inner:
                return []
            return _address_records(name, [name_server(self._view)], kind)
        spec = spec_of(service)
        if spec.get("type") != "ExternalName":
            return self._service_records(
                name,
                service,
                inner,
                kind,
            )
        target = str(spec["externalName"]).lower()
        return [DnsRecord(name, "CNAME", target.rstrip("."))]

    def _pod_records(self, name: str, dashed: str, namespace: str, kind: str) -> list[DnsRecord]:
        """Return the address that the name of a pod spells, whether or not a pod has it."""
        separator = "." if dashed.count("-") == 3 else ":"
        address = dashed.replace("-", separator)
        if not is_address(address):
            return []
        if self._view.get(NAMESPACES, "", namespace) is None:
            return []
        return _address_records(name, [address], kind)

    def _service_records(
        self, name: str, service: AnyObject, owner: list[str], kind: str
    ) -> list[DnsRecord]:
        """Return the records of a Service, of one of its ports (``_http._tcp``) or endpoints."""
        port = _PortName("", "")
        host = ""
        match owner:
            case []:
                pass
            case [port_name, protocol] if port_name[:1] == protocol[:1] == "_":
                port = _PortName(port_name[1:], protocol[1:])
            case [hostname]:
                host = hostname
            case _:
                return []

        targets = list(self._targets(service, host, port))
        if kind == "SRV":
            return _srv_records(name, targets)
        addresses = [target.address for target in targets]
        return _address_records(name, dict.fromkeys(addresses), kind)

    def _targets(self, service: AnyObject, host: str, port: _PortName) -> Iterator[_Target]:
        """Yield what serves a Service's ports: its cluster IPs, or endpoints where it is headless
        or one is asked for."""
        spec = spec_of(service)
        addresses = nested_list(spec, "clusterIPs")
        if host or addresses == [NONE]:
            yield from self._endpoint_targets(service, host, port)
            return

        name = domain_of(service)
        for entry in nested_list(spec, "ports"):
            if port.matches(entry):
                for address in addresses:
                    yield _Target(name, address, entry["port"])

    def _endpoint_targets(
        self, service: AnyObject, host: str, port: _PortName
    ) -> Iterator[_Target]:
        """Yield the endpoints of a Service.

        :param host: the name of the endpoint that is asked for; "": all.
        """
        domain = domain_of(service)
        if host:
            for address in self._addresses_at_the_end(service, host):
                yield _Target(f"{host}.{domain}", address, 0)
        for endpoint, ports in self._ready_endpoints(service):
            for address in endpoint["addresses"]:
                hostname = endpoint_hostname(endpoint, address)
                if host not in ("", hostname):
                    continue

                name = f"{hostname}.{domain}"
                for entry in filter(port.matches, ports):
                    number = entry.get("port") or 0
                    yield _Target(name, address, number)

    def _addresses_at_the_end(self, service: AnyObject, host: str) -> Iterator[str]:
        """Yield the addresses of a pod with a name in a Service's domain that ends just now."""
        own_name = name_of(service)
        for pod in self._view.list(PODS, namespace_of(service)):
            spec = spec_of(pod)
            if spec.get("subdomain") == own_name and spec.get("hostname") == host:
                yield from addresses_at_the_end(pod, self._view.now)

    def _ready_endpoints(
        self, service: AnyObject
    ) -> Iterator[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
        """Yield the ready endpoints with the ports of their slice."""
        for slice_ in slices_of(self._view, service):
            endpoints = nested_list(slice_, "endpoints")
            ports = nested_list(slice_, "ports") or [{}]
            for endpoint in endpoints:
                conditions = nested_map(endpoint, "conditions")
                if conditions.get("ready") is not False:
                    yield endpoint, ports

    def _names_of(self, address: str) -> Iterator[str]:
        """Yield the names that an address has: a Service's, or those of endpoints with a
        hostname."""
        if not address:
            return
        services = self._view.list(SERVICES)
        for service in services:
            if address in nested_list(spec_of(service), "clusterIPs"):
                yield domain_of(service)
                return
        if address == name_server(self._view):
            yield f"{KUBE_DNS}.{KUBE_SYSTEM}.svc.{DOMAIN}"
            return

        for service in services:
            for endpoint, _ in self._ready_endpoints(service):
                hostname = endpoint.get("hostname")
                if hostname and address in endpoint["addresses"]:
                    yield f"{hostname}.{domain_of(service)}"


def domain_of(service: AnyObject) -> str:
    """Return the whole name of a Service."""
    return f"{name_of(service)}.{namespace_of(service)}.svc.{DOMAIN}"


class _Target(NamedTuple):
    name: str
    address: str
    port: int


class _PortName(NamedTuple):
    """A port as a name of SRV asks for it; "" means any."""

    name: str
    protocol: str

    def matches(self, port: Mapping[str, Any]) -> bool:
        protocol = protocol_of(port).lower()
        if self.protocol not in ("", protocol):
            return False
        name = port.get("name") or ""
        return self.name in ("", name)


def endpoint_hostname(endpoint: Mapping[str, Any], address: str) -> str:
    """Return the name of an endpoint in its Service's domain."""
    hostname = endpoint.get("hostname")
    if hostname:
        return str(hostname)
    dashed = address.replace(".", "-")
    return dashed.replace(":", "-")


def _srv_records(name: str, targets: list[_Target]) -> list[DnsRecord]:
    distinct: dict[str, None] = {}
    for target in targets:
        distinct[f"{target.port} {target.name}."] = None
    if not distinct:
        return []

    weight = 100 // len(distinct)
    return [DnsRecord(name, "SRV", f"0 {weight} {place}") for place in distinct]


def _address_records(name: str, addresses: Iterable[str], kind: str) -> list[DnsRecord]:
    version = 6 if kind == "AAAA" else 4
    records = []
    for address in addresses:
        if ip_address(address).version == version:
            records.append(DnsRecord(name, kind, address))
    return records


def reversed_address(name: str) -> str:
    """Return the address that a name below ``in-addr.arpa`` means; "" for another name."""
    owner, separator, _ = name.partition(".in-addr.arpa")
    labels = owner.split(".")
    labels.reverse()
    address = ".".join(labels)
    if not separator or not is_address(address):
        return ""
    return address


# --- the files of a pod ---------------------------------------------------------------------------


class ResolverConfig(NamedTuple):
    """The content of ``/etc/resolv.conf``."""

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def dots(self) -> int:
        """From how many dots on a name is first tried as it is."""
        dots = 1
        for option in self.options:
            name, _, value = option.partition(":")
            if name == "ndots" and value.isdigit():
                dots = int(value)
        return dots

    def candidates(self, name: str) -> list[str]:
        """Return the absolute names that a name may mean, in the order in which they are tried."""
        if name.endswith("."):
            return [name.rstrip(".")]

        searched = []
        for search in self.searches:
            candidate = f"{name}.{search}"
            searched.append(candidate.rstrip("."))
        if name.count(".") >= self.dots:
            return [name, *searched]
        return [*searched, name]

    def text(self) -> str:
        """Return the file."""
        text = ""
        if self.searches:
            searches = " ".join(self.searches)
            text += f"search {searches}\n"
        for server in self.servers:
            text += f"nameserver {server}\n"
        if self.options:
            options = " ".join(self.options)
            text += f"options {options}\n"
        return text


def resolver_config(pod: AnyObject, server: str) -> ResolverConfig:
    """Return a pod's resolver (``pkg/kubelet/network/dns``); a node's own resolver is empty.

    :param server: the address of the cluster's name server.
    """
    spec = spec_of(pod)
    config = ResolverConfig()
    if _asks_cluster(spec):
        zone = f"svc.{DOMAIN}"
        searches = f"{namespace_of(pod)}.{zone}", zone, DOMAIN
        config = ResolverConfig((server,), searches, ("ndots:5",))

    added = nested_map(spec, "dnsConfig")
    servers = nested_list(added, "nameservers")
    more_searches = nested_list(added, "searches")
    options = nested_list(added, "options")
    return ResolverConfig(
        _distinct(config.servers, servers),
        _distinct(config.searches, more_searches),
        _merged(config.options, options),
    )


def _asks_cluster(spec: Mapping[str, Any]) -> bool:
    """Tell whether a pod's policy sends its questions to the cluster's name server."""
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    if policy == "ClusterFirst":
        return not spec.get("hostNetwork")
    return bool(policy == "ClusterFirstWithHostNet")


def _distinct(values: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*values, *more)))


def _merged(options: Sequence[str], added: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return options with those of ``dnsConfig``, which replace others of the same name."""
    merged = {}
    for option in options:
        name, _, _ = option.partition(":")
        merged[name] = option
    for entry in added:
        name = entry["name"]
        value = entry.get("value")
        merged[name] = f"{name}:{value}" if value else name
    return tuple(merged.values())


def name_server(view: ClusterView) -> str:
    """Return the address of the cluster's name server: the tenth of the range of cluster IPs, by
    convention."""
    service = view.get(SERVICES, KUBE_SYSTEM, KUBE_DNS)
    if service is not None:
        return cluster_ip(service)
    kubernetes = view.get(SERVICES, "default", "kubernetes")
    if kubernetes is None:
        return USUAL_NAME_SERVER
    first = ip_address(cluster_ip(kubernetes))
    return str(first + 9)


def cluster_ip(service: AnyObject) -> str:
    return str(spec_of(service)["clusterIP"])


def hostname_of(pod: AnyObject) -> str:
    """Return the hostname of a pod's containers."""
    spec = spec_of(pod)
    if uses_host_network(pod):
        return str(spec.get("nodeName") or "")
    hostname = _short_hostname(pod)
    subdomain = _subdomain(pod)
    if subdomain and spec.get("setHostnameAsFQDN"):
        return f"{hostname}.{subdomain}"
    return hostname


def _short_hostname(pod: AnyObject) -> str:
    spec = spec_of(pod)
    hostname: str = spec.get("hostname") or name_of(pod)
    hostname = spec.get("hostnameOverride") or hostname
    kept = hostname[:LONGEST_HOSTNAME]
    return kept.rstrip("-.")


def _subdomain(pod: AnyObject) -> str:
    """Return the domain of a pod; "" where it has none."""
    spec = spec_of(pod)
    subdomain = spec.get("subdomain")
    if not subdomain or spec.get("hostnameOverride"):
        return ""
    return f"{subdomain}.{namespace_of(pod)}.svc.{DOMAIN}"


def host_entries(pod: AnyObject) -> list[HostEntry]:
    """Return the entries of a pod's ``/etc/hosts``."""
    entries = list(_local_entries(pod))
    entries += _own_entries(pod)
    entries += _alias_entries(pod)
    return entries


def _local_entries(pod: AnyObject) -> Sequence[HostEntry]:
    if uses_host_network(pod):
        return LOCAL_HOSTS[:2]
    return LOCAL_HOSTS


def _own_entries(pod: AnyObject) -> list[HostEntry]:
    """Return the names of the pod itself; on its node's network it has none."""
    if uses_host_network(pod):
        return []
    hostname = _short_hostname(pod)
    subdomain = _subdomain(pod)
    names = [hostname]
    if subdomain:
        names = [f"{hostname}.{subdomain}", hostname]
    return [(address, names) for address in addresses_of(pod)]


def _alias_entries(pod: AnyObject) -> list[HostEntry]:
    """Return the entries of ``hostAliases``."""
    entries: list[HostEntry] = []
    for alias in nested_list(spec_of(pod), "hostAliases"):
        hostnames = alias.get("hostnames") or []
        entries.append((alias["ip"], hostnames))
    return entries


def hosts_file(pod: AnyObject) -> str:
    """Return a pod's ``/etc/hosts``."""
    text = HOSTS_HEADER
    if uses_host_network(pod):
        text = NODE_HOSTS_HEADER
    for entry in _local_entries(pod):
        text += _line(entry, " ")
    for entry in _own_entries(pod):
        text += _line(entry, "\t")

    aliases = _alias_entries(pod)
    if aliases:
        text += ALIASES_HEADER
    for entry in aliases:
        text += _line(entry, "\t")
    return text


def _line(entry: HostEntry, separator: str) -> str:
    address, names = entry
    return f"{address}\t{separator.join(names)}\n"


def addresses_in_hosts(entries: Sequence[HostEntry], name: str) -> list[str]:
    """Return the addresses that ``/etc/hosts`` has for a name; IPv4 ones where there are any."""
    addresses = []
    wanted = name.lower()
    for address, names in entries:
        known = [entry.lower() for entry in names]
        if wanted.rstrip(".") in known:
            addresses.append(address)

    preferred = [address for address in addresses if ":" not in address]
    return preferred or addresses
