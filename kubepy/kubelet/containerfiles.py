"""What a container finds beside its volumes: the directories that images have, the devices, and the
files that kubelet and runtime write.

Upstream: ``makeHostsMount`` in ``pkg/kubelet/kubelet_pods.go``, ``pkg/kubelet/network/dns``;
containerd's ``parseDNSOptions``. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import AnyObject, namespace_of, nested_list, nested_map
from kubepy.kubelet.environment import (
    CLUSTER_DOMAIN,
    hostname_and_domain,
    hostname_in_container,
    user_of,
)
from kubepy.kubelet.nodes import internal_ip
from kubepy.shell.files import DEVICE, FOLDER, LINK, REGULAR, Node, Tree

if TYPE_CHECKING:
    from kubepy.api.typed import Container, Pod
    from kubepy.api.typed import Node as ClusterNode

HOSTS, HOSTNAME, RESOLV_CONF = "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"
TERMINATION_LOG = "/dev/termination-log"
CLUSTER_DNS = "10.96.0.10"  # the tenth address of the Services' default range
HOST_RESOLVER = "127.0.0.1"
MAX_NAMESERVERS, MAX_SEARCHES, MAX_SEARCH_CHARACTERS = 3, 32, 2048
LONGEST_SEARCH = 253

DIRECTORIES = (
    "bin",
    "etc",
    "home",
    "lib",
    "media",
    "mnt",
    "opt",
    "proc",
    "run",
    "sbin",
    "srv",
    "sys",
    "usr/bin",
    "usr/lib",
    "usr/local/bin",
    "usr/local/lib",
    "usr/sbin",
    "usr/share",
    "var/cache",
    "var/lib",
    "var/log",
    "var/run",
    "var/spool",
)
MODES = {"root": 0o700, "tmp": 0o1777, "var/tmp": 0o1777, "dev/shm": 0o1777}
DEVICES = ("full", "null", "random", "tty", "urandom", "zero")
STREAMS = {"stdin": 0, "stdout": 1, "stderr": 2}
PASSWD = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
GROUP = "root:x:0:\nnogroup:x:65534:\n"

HOSTS_HEADER = "# Kubernetes-managed hosts file.\n"
NODE_HOSTS_HEADER = "# Kubernetes-managed hosts file (host network).\n"
LOCAL_HOSTS = (
    "127.0.0.1\tlocalhost\n"
    "::1\tlocalhost ip6-localhost ip6-loopback\n"
    "fe00::0\tip6-localnet\n"
    "fe00::0\tip6-mcastprefix\n"
    "fe00::1\tip6-allnodes\n"
    "fe00::2\tip6-allrouters\n"
)


def image_tree(pod: Pod, container: Container, files: Mapping[str, str], now: datetime) -> Tree:
    """Return the layer of a new container: the directories that every image has, devices, the
    file for its termination message, and the files that rules give the image."""
    root = Tree(Node(FOLDER, 0o755, now))
    for path in DIRECTORIES:
        root.put(path, Node(FOLDER, 0o755, now))
    for path, mode in MODES.items():
        root.put(path, Node(FOLDER, mode, now))
    for name in DEVICES:
        root.put(f"dev/{name}", Node(DEVICE, 0o666, now))
    root.put("dev/fd", Node(LINK, 0o777, now, target="/proc/self/fd"))
    for name, number in STREAMS.items():
        root.put(f"dev/{name}", Node(LINK, 0o777, now, target=f"/proc/self/fd/{number}"))

    for path, text in {"/etc/passwd": PASSWD, "/etc/group": GROUP, **files}.items():
        root.put(path, Node(REGULAR, 0o644, now, data=text.encode()))
    message = Node(REGULAR, 0o666, now)
    message.user = user_of(pod, container)
    root.put(container.get("terminationMessagePath") or TERMINATION_LOG, message)
    return root


def written_files(pod: Pod, node: ClusterNode, dns: str = CLUSTER_DNS) -> dict[str, str]:
    """Return the files that kubelet and runtime write for every container of a pod, by path.

    :param dns: the address of the cluster's DNS.
    """
    return {
        HOSTS: hosts_file(pod, node),
        HOSTNAME: f"{hostname_in_container(pod)}\n",
        RESOLV_CONF: dns_config(pod, dns).file(),
    }


# --- /etc/hosts -----------------------------------------------------------------------------------


def hosts_file(pod: Pod, node: ClusterNode) -> str:
    """Return ``/etc/hosts`` of a pod. A node's own file is not known: it has the node's name."""
    aliases = _aliases(nested_list(pod["spec"], "hostAliases"))
    if pod["spec"].get("hostNetwork"):
        name = pod["spec"].get("nodeName") or ""
        return f"{NODE_HOSTS_HEADER}{LOCAL_HOSTS}{internal_ip(node)}\t{name}\n{aliases}"
    hostname, domain = hostname_and_domain(pod)
    names = f"{hostname}.{domain}\t{hostname}" if domain else hostname
    status = pod.get("status") or {}
    own = [f"{address['ip']}\t{names}\n" for address in status.get("podIPs") or ()]
    return f"{HOSTS_HEADER}{LOCAL_HOSTS}{''.join(own)}{aliases}"


def _aliases(aliases: Sequence[AnyObject]) -> str:
    if not aliases:
        return ""
    lines = []
    for alias in aliases:
        names = "\t".join(alias.get("hostnames") or ())
        lines.append(f"{alias['ip']}\t{names}\n")
    return f"\n# Entries added by HostAliases.\n{''.join(lines)}"


# --- /etc/resolv.conf -----------------------------------------------------------------------------


class DNSConfig(NamedTuple):
    """The resolver of a pod.

    :ivar problems: messages of events ``DNSConfigForming``: what was left out.
    """

    servers: list[str]
    searches: list[str]
    options: list[str]
    problems: tuple[str, ...] = ()

    def file(self) -> str:
        """Return it as ``/etc/resolv.conf``."""
        lines = []
        if self.searches:
            lines.append(f"search {' '.join(self.searches)}\n")
        lines += [f"nameserver {server}\n" for server in self.servers]
        if self.options:
            lines.append(f"options {' '.join(self.options)}\n")
        return "".join(lines)


def dns_config(pod: Pod, dns: str = CLUSTER_DNS) -> DNSConfig:
    """Return the resolver of a pod (``GetPodDNS``)."""
    spec = pod["spec"]
    base = _of_policy(pod, spec.get("dnsPolicy") or "ClusterFirst", dns)
    own = nested_map(spec, "dnsConfig")
    servers = _once([*base.servers, *nested_list(own, "nameservers")])
    searches = _once([*base.searches, *nested_list(own, "searches")])
    options = _merged(base.options, nested_list(own, "options"))
    return _within_limits(DNSConfig(servers, searches, options))


def _of_policy(pod: Pod, policy: str, dns: str) -> DNSConfig:
    if policy == "None":
        return DNSConfig([], [], [])
    is_of_host = policy == "ClusterFirst" and pod["spec"].get("hostNetwork")
    if is_of_host or policy == "Default":
        return DNSConfig([HOST_RESOLVER], ["."], [])
    services = f"svc.{CLUSTER_DOMAIN}"
    searches = [f"{namespace_of(pod)}.{services}", services, CLUSTER_DOMAIN]
    return DNSConfig([dns], searches, ["ndots:5"])


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _merged(options: Iterable[str], own: Sequence[AnyObject]) -> list[str]:
    """Return options with those of the pod, which replace others of their name."""
    values = {}
    for option in options:
        name, _, value = option.partition(":")
        values[name] = value
    for entry in own:
        values[entry.get("name") or ""] = entry.get("value") or ""
    return [f"{name}:{value}" if value else name for name, value in values.items()]


def _within_limits(config: DNSConfig) -> DNSConfig:
    """Leave out what resolvers do not take (``formDNSConfigFitsLimits``)."""
    problems = []
    servers = config.servers[:MAX_NAMESERVERS]
    if servers != config.servers:
        problems.append(
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied "
            f"nameserver line is: {' '.join(servers)}"
        )
    searches = config.searches[:MAX_SEARCHES]
    searches = [search for search in searches if len(search) <= LONGEST_SEARCH]
    while len(" ".join(searches)) > MAX_SEARCH_CHARACTERS:
        searches.pop()
    if searches != config.searches:
        problems.append(
            "Search Line limits were exceeded, some search paths have been omitted, the applied "
            f"search line is: {' '.join(searches)}"
        )
    return DNSConfig(servers, searches, config.options, tuple(problems))
