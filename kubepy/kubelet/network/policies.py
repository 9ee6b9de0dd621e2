"""NetworkPolicies: whether a connection may be made (``k8s.io/api/networking/v1``).

A pod that no policy selects for a direction is open in it. Otherwise a connection needs one rule of
one policy that allows it, at both ends. What runs on a node's own network is no pod to policies:
it is never restricted, and only an ``ipBlock`` can mean it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from kubepy.api.meta import (
    AnyObject,
    labels_of,
    name_of,
    namespace_of,
    nested_list,
    nested_map,
    spec_of,
)
from kubepy.api.selectors import from_label_selector
from kubepy.kubelet.network.services import is_in_range, protocol_of
from kubepy.kubelet.network.view import (
    NAMESPACES,
    NETWORK_POLICIES,
    ClusterView,
    declared_ports,
    uses_host_network,
)

INGRESS, EGRESS = "Ingress", "Egress"
NAMESPACE_NAME = "kubernetes.io/metadata.name"  # the label of each namespace that names it
_RULES = {INGRESS: ("ingress", "from"), EGRESS: ("egress", "to")}


class Peer(NamedTuple):
    """One end of a connection.

    :ivar pod: None for what is outside of the pods' network: a node, somebody outside.
    """

    address: str
    pod: AnyObject | None = None

    @property
    def selectable_pod(self) -> AnyObject | None:
        """The pod, as far as policies know it as one."""
        if self.pod is None or uses_host_network(self.pod):
            return None
        return self.pod


class Port(NamedTuple):
    """The port of the destination, after the translation of a Service's."""

    number: int
    protocol: str = "TCP"


class Policies:
    """The NetworkPolicies of a cluster."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def allow(self, source: Peer, destination: Peer, port: Port) -> bool:
        """Tell whether a connection may be made."""
        if _is_same(source.pod, destination.pod):
            return True  # no policy keeps a pod from itself
        return self._allows(
            EGRESS,
            source,
            destination,
            destination,
            port,
        ) and self._allows(INGRESS, destination, source, destination, port)

    def _allows(
        self, direction: str, end: Peer, other: Peer, destination: Peer, port: Port
    ) -> bool:
        """Tell whether the policies of one end allow the other one."""
        pod = end.selectable_pod
        if pod is None:
            return True

        policies = []
        for policy in self._view.list(NETWORK_POLICIES, namespace_of(pod)):
            if _restricts(policy, direction, pod):
                policies.append(policy)
        if not policies:
            return True

        is_allowed = partial(
            self._is_allowed,
            direction,
            other,
            destination,
            port,
        )
        return any(map(is_allowed, policies))

    def _is_allowed(
        self, direction: str, other: Peer, destination: Peer, port: Port, policy: AnyObject
    ) -> bool:
        rules_field, peers_field = _RULES[direction]
        rules = nested_list(spec_of(policy), rules_field)
        is_peer = partial(self._is_peer, other, namespace_of(policy))
        is_port = partial(_is_port, port, destination)

        for rule in rules:
            peers = nested_list(rule, peers_field)
            ports = nested_list(rule, "ports")
            if peers and not any(map(is_peer, peers)):
                continue
            if not ports or any(map(is_port, ports)):
                return True
        return False

    def _is_peer(self, other: Peer, namespace: str, peer: Mapping[str, Any]) -> bool:
        """Tell whether an entry of ``from`` or ``to`` means the other end."""
        block = peer.get("ipBlock")
        if block:
            return is_in_block(other.address, block)
        pod = other.selectable_pod
        if pod is None:
            return False

        pod_namespace = namespace_of(pod)
        namespaces = peer.get("namespaceSelector")
        if namespaces is None:
            is_namespace = pod_namespace == namespace
        else:
            labels = self._namespace_labels(pod_namespace)
            is_namespace = from_label_selector(namespaces).matches(labels)

        pods = peer.get("podSelector")
        if not is_namespace or pods is None:
            return is_namespace
        return from_label_selector(pods).matches(labels_of(pod))

    def _namespace_labels(self, name: str) -> dict[str, str]:
        labels = {NAMESPACE_NAME: name}
        namespace = self._view.get(NAMESPACES, "", name)
        if namespace is not None:
            labels.update(labels_of(namespace))
        return labels


def is_in_block(address: str, block: Mapping[str, Any]) -> bool:
    """Tell whether an ``ipBlock`` has an address."""
    if not is_in_range(address, block["cidr"]):
        return False
    exceptions = block.get("except") or ()
    return not any(is_in_range(address, cidr) for cidr in exceptions)


def _is_same(pod: AnyObject | None, other: AnyObject | None) -> bool:
    if pod is None or other is None:
        return False
    if name_of(pod) != name_of(other):
        return False
    return namespace_of(pod) == namespace_of(other)


def _restricts(policy: AnyObject, direction: str, pod: AnyObject) -> bool:
    """Tell whether a policy says what may be done with a pod in a direction."""
    spec = spec_of(policy)
    if direction not in _policy_types(spec):
        return False
    selector = from_label_selector(nested_map(spec, "podSelector"))
    return selector.matches(labels_of(pod))


def _policy_types(spec: Mapping[str, Any]) -> list[str]:
    """Return the directions of a policy; a handwritten one may leave them out."""
    types: list[str] = spec.get("policyTypes") or []
    if types:
        return types
    return [INGRESS, EGRESS] if spec.get("egress") else [INGRESS]


def _is_port(port: Port, destination: Peer, rule: Mapping[str, Any]) -> bool:
    """Tell whether an entry of ``ports`` means a port of the destination."""
    if protocol_of(rule) != port.protocol:
        return False
    first = rule.get("port")
    if first is None:
        return True
    if isinstance(first, str):
        return _has_named_port(destination.selectable_pod, first, port)
    last = rule.get("endPort") or first
    return bool(first <= port.number <= last)


def _has_named_port(pod: AnyObject | None, name: str, port: Port) -> bool:
    if pod is None:
        return False
    for container_port in declared_ports(pod):
        if container_port.get("name") != name:
            continue
        number = container_port["containerPort"]
        if Port(number, protocol_of(container_port)) == port:
            return True
    return False
