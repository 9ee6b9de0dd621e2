"""Nodes that pods run on, where the source does not hold the nodes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, cast

from kubepy.api.meta import Object, nested_map, owner_references
from kubepy.api.objects.pods import Amounts, is_pod_terminal, pod_requests
from kubepy.api.values.quantity import Quantity, parse_quantity
from kubepy.kubelet.nodes import DEFAULT_CAPACITY, register

if TYPE_CHECKING:
    from kubepy.api.typed import Node

NONE = Quantity(0)
# What kubelets and controllers give to every node.
_LABELS = {
    "beta.kubernetes.io/arch": "amd64",
    "beta.kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/os": "linux",
}
_ANNOTATIONS = {"node.alpha.kubernetes.io/ttl": "0"}


def node_of_pods(name: str, pods: Iterable[Object], now: datetime) -> Object:
    """Return a Ready node with the address and the labels that its pods tell of, and with room for
    twice what they request."""
    pods = list(pods)
    labels = {**_LABELS, "kubernetes.io/hostname": name}
    address = ""
    for pod in pods:
        labels.update(nested_map(pod, "spec", "nodeSelector"))
        address = address or nested_map(pod, "status").get("hostIP") or ""
    capacity = _capacity([pod for pod in pods if not is_pod_terminal(pod)])
    addresses = [{"address": name, "type": "Hostname"}]
    if address:
        addresses.insert(0, {"address": address, "type": "InternalIP"})
    node: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": dict(_ANNOTATIONS)},
        "status": {"capacity": capacity, "addresses": addresses},
    }
    return cast("Object", register(cast("Node", node), now))


def uid_in_references(name: str, pods: Iterable[Object]) -> str:
    """Return the uid by which mirror pods name a node as their owner; "" where there is none."""
    for pod in pods:
        for reference in owner_references(pod):
            if reference["kind"] == "Node" and reference["name"] == name:
                return reference["uid"]
    return ""


def _capacity(pods: Iterable[Object]) -> dict[str, str]:
    """Return a capacity that holds pods twice: the default one at least."""
    requested: Amounts = {}
    count = 0
    for pod in pods:
        count += 1
        for resource, quantity in pod_requests(pod).items():
            requested[resource] = requested.get(resource, NONE) + quantity
    capacity = {**DEFAULT_CAPACITY, "ephemeral-storage": "100Gi"}
    requested["pods"] = Quantity.of(count)
    for resource in sorted(requested):
        doubled = requested[resource] + requested[resource]
        if parse_quantity(capacity.get(resource, "0")) < doubled:
            capacity[resource] = str(doubled)
    return capacity
