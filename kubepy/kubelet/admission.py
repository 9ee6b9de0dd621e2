"""Admission of a pod that names its node, past the scheduler
(``pkg/kubelet/lifecycle/predicate.go``).

Pods of high priority are rejected like any other: upstream's kubelet would evict others for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import labels_of
from kubepy.api.objects.nodes import (
    NO_EXECUTE,
    find_untolerated_taint,
    required_node_affinity_matches,
)
from kubepy.api.objects.pods import get_condition
from kubepy.apiserver.validation.resources import is_extended
from kubepy.scheduler.cache import NodeInfo, PodInfo, pod_info
from kubepy.scheduler.plugins.nodes import NodeAffinity, NodePorts
from kubepy.scheduler.plugins.resources import insufficient_resources

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod

OS_LABEL = "kubernetes.io/os"
SYSTEM = "linux"


class Rejection(NamedTuple):
    """The reason why a node does not admit a pod, as the pod's status and an event say it."""

    reason: str
    message: str


def is_scheduled(pod: Pod) -> bool:
    """Tell whether the scheduler has found that the pod fits, or its kubelet has admitted it."""
    condition = get_condition(pod, "PodScheduled")
    if condition is None:
        return False
    return condition.get("status") == "True"


def rejection(pod: Pod, node: Node, others: Iterable[Pod]) -> Rejection | None:
    """Return the first reason why the node does not admit the pod beside those that it has
    admitted, or None."""
    node_info = NodeInfo(node["metadata"]["name"])
    node_info.set_node(node)
    for other in others:
        node_info.add(pod_info(other))
    return next(_rejections(pod_info(pod), node_info), None)


def _rejections(pod: PodInfo, node_info: NodeInfo) -> Iterator[Rejection]:
    if labels_of(pod.pod).get(OS_LABEL, SYSTEM) != SYSTEM:
        yield Rejection(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        )

    if pod.spec.get("os", {}).get("name", SYSTEM) != SYSTEM:
        yield Rejection(
            "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
        )

    # Extended resources that the node does not list may be cluster-level ones: they count for
    # nothing here.
    requests = {
        name: quantity
        for name, quantity in pod.requests.items()
        if name in node_info.allocatable or not is_extended(name)
    }
    for short in insufficient_resources(requests, node_info):
        yield Rejection(
            f"OutOf{short.resource}",
            (
                f"Node didn't have enough resource: {short.resource}, requested: "
                f"{short.requested}, used: {short.used}, "
                f"capacity: {short.capacity}"
            ),
        )

    if not required_node_affinity_matches(pod.pod, node_info.node or {}):
        yield _failed_predicate(NodeAffinity.name, NodeAffinity.REJECTION.reasons[0])
    if NodePorts().filter(pod, None, node_info) is not None:
        yield _failed_predicate(NodePorts.name, NodePorts.REJECTION.reasons[0])
    if (
        find_untolerated_taint(node_info.taints, pod.spec.get("tolerations"), (NO_EXECUTE,))
        is not None
    ):
        yield _failed_predicate(
            "TaintToleration", "node(s) had taints that the pod didn't tolerate"
        )


def _failed_predicate(name: str, reason: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {reason}")
