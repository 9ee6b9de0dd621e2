"""The files of a container beside its volumes: directories that images have, devices, and the
files that kubelet and runtime write.

Upstream: ``makeHostsMount`` in ``pkg/kubelet/kubelet_pods.go``, ``pkg/kubelet/network/dns``;
containerd's ``parseDNSOptions``. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import AnyObject, name_of, namespace_of, nested_list, nested_map
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
STREAMS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
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
    top = Node(FOLDER, 0o755, now)
    root = Tree(top)
    for path in DIRECTORIES:
        directory = Node(FOLDER, 0o755, now)
        root.put(path, directory)
    for path, mode in MODES.items():
        directory = Node(FOLDER, mode, now)
        root.put(path, directory)
    for name in DEVICES:
        device = Node(DEVICE, 0o666, now)
        root.put(f"dev/{name}", device)
    for name, target in STREAMS.items():
        link = Node(
            LINK,
            0o777,
            now,
            target=target,
        )
        root.put(f"dev/{name}", link)

    texts = {"/etc/passwd": PASSWD, "/etc/group": GROUP}
    texts.update(files)
    for path, text in texts.items():
        data = text.encode()
        file = Node(
            REGULAR,
            0o644,
            now,
            data=data,
        )
        root.put(path, file)
    message = Node(REGULAR, 0o666, now)
    message.user = user_of(pod, container)
    message_path = container.get("terminationMessagePath")
    root.put(message_path or TERMINATION_LOG, message)
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
    """Return ``/etc/hosts`` of a pod."""
    spec = pod["spec"]
    aliases = _aliases(nested_list(spec, "hostAliases"))
    if spec.get("hostNetwork"):
        return NODE_HOSTS_HEADER + node_hosts_file(node) + aliases
    names, domain = hostname_and_domain(pod)
    if domain:
        names = f"{names}.{domain}\t{names}"
    status = pod.get("status") or {}
    own_lines = ""
    for entry in status.get("podIPs") or ():
        address = entry["ip"]
        own_lines += f"{address}\t{names}\n"
    return HOSTS_HEADER + LOCAL_HOSTS + own_lines + aliases


def node_hosts_file(node: ClusterNode) -> str:
    """Return ``/etc/hosts`` of a node, as most have it: with its own name."""
    return f"{LOCAL_HOSTS}{internal_ip(node)}\t{name_of(node)}\n"


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
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    base = _of_policy(pod, policy, dns)
    own = nested_map(spec, "dnsConfig")
    own_servers = nested_list(own, "nameservers")
    own_searches = nested_list(own, "searches")
    own_options = nested_list(own, "options")
    config = DNSConfig(
        _once([*base.servers, *own_servers]),
        _once([*base.searches, *own_searches]),
        _merged(base.options, own_options),
    )
    return _within_limits(config)


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
        name = entry.get("name") or ""
        values[name] = entry.get("value") or ""
    texts = []
    for name, value in values.items():
        text = f"{name}:{value}"
        texts.append(text.removesuffix(":"))
    return texts


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
    return DNSConfig(
        servers,
        searches,
        config.options,
        tuple(problems),
    )
