"""Whether a node takes a pod that names it: the scheduler was not asked (``pkg/kubelet/lifecycle/predicate.go``).

Pods of high priority are rejected like any other: upstream's kubelet would evict others for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kubepy.api.meta import Object, labels_of
from kubepy.api.objects.nodes import (
    NO_EXECUTE,
    find_untolerated_taint,
    required_node_affinity_matches,
    taints_of,
)
from kubepy.api.objects.pods import get_condition
from kubepy.apiserver.validation.resources import is_extended
from kubepy.scheduler.cache import NodeInfo, PodInfo, pod_info
from kubepy.scheduler.plugins.nodes import NodeAffinity, NodePorts
from kubepy.scheduler.plugins.resources import insufficient_resources

OS_LABEL = "kubernetes.io/os"
SYSTEM = "linux"


class Rejection(NamedTuple):
    """Why a node does not take a pod, as its status and an event say it."""

    reason: str
    message: str


def is_scheduled(pod: Mapping[str, Any]) -> bool:
    """Whether the scheduler has found that the pod fits, or its kubelet has."""
    condition = get_condition(pod, "PodScheduled")
    return condition is not None and condition.get("status") == "True"


def rejection(pod: Object, node: Object, others: Iterable[Object]) -> Rejection | None:
    """Why the node does not take the pod beside those that it has taken, or None. The first reason counts."""
    info = NodeInfo(node["metadata"]["name"])
    info.set_node(node)
    for other in others:
        info.add(pod_info(other))
    return next(_rejections(pod_info(pod), info), None)


def _rejections(pod: PodInfo, info: NodeInfo) -> Iterator[Rejection]:
    if labels_of(pod.pod).get(OS_LABEL, SYSTEM) != SYSTEM:
        yield Rejection("PodOSSelectorNodeLabelDoesNotMatch",
                        "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label")
    if pod.spec.get("os", {}).get("name", SYSTEM) != SYSTEM:
        yield Rejection("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    yield from _of_resources(pod, info)
    if not required_node_affinity_matches(pod.pod, info.node or {}):
        yield _predicate(NodeAffinity.name, NodeAffinity.REJECTION.reasons[0])
    if NodePorts().filter(pod, None, info) is not None:
        yield _predicate(NodePorts.name, NodePorts.REJECTION.reasons[0])
    if find_untolerated_taint(taints_of(info.node or {}), pod.spec.get("tolerations"), (NO_EXECUTE,)) is not None:
        yield _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")


def _of_resources(pod: PodInfo, info: NodeInfo) -> Iterator[Rejection]:
    """Extended resources that the node knows nothing of may be the cluster's, and count for nothing."""
    known = {name: one for name, one in pod.requests.items() if name in info.allocatable or not is_extended(name)}
    for short in insufficient_resources(known, info):
        yield Rejection(f"OutOf{short.resource}", (
            f"Node didn't have enough resource: {short.resource}, requested: {short.requested}, used: {short.used}, "
            f"capacity: {short.capacity}"))


def _predicate(name: str, reason: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {reason}")
