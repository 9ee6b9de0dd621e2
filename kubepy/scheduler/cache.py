"""The scheduler's cache: nodes with the sum of their pods, kept from change to change
(``backend/cache``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.meta import labels_of, name_of, namespace_of
from kubepy.api.objects.nodes import is_unschedulable, taints_of
from kubepy.api.objects.pods import (
    HostPort,
    allocated_spec,
    host_ports,
    is_pod_terminal,
    is_resize_infeasible,
    node_name,
    pod_requests,
    priority,
)
from kubepy.api.values.quantity import Quantity
from kubepy.runtime.informers import NODE, NODES, PODS, Informers, Query
from kubepy.runtime.reconcile import Key
from kubepy.scheduler.affinity import NO_TERMS, PodTerms, pod_terms

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod, PodSpec

Resources = dict[str, int]  # cpu in thousandths, everything else in whole units

# The requests of a container without any when nodes are scored
# (pkg/scheduler/util/pod_resources.go).
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024


def _whole_number(resource: str, quantity: Quantity) -> int:
    if resource == "cpu":
        return quantity.milli_value()
    return quantity.value()


@lru_cache(maxsize=4096)
def _parsed_number(resource: str, text: str) -> int:
    return _whole_number(resource, Quantity.parse(text))


def resource_list(quantities: Mapping[str, Any] | None) -> Resources:
    """Convert a ``v1.ResourceList`` to whole numbers."""
    resources: Resources = {}
    for name, quantity in (quantities or {}).items():
        resources[name] = _parsed_number(name, str(quantity))
    return resources


class PodInfo:
    """A pod with its requests, host ports and affinity terms, calculated once for the plugins."""

    __slots__ = (
        "_signature",
        "is_resize_infeasible",
        "key",
        "labels",
        "nonzero_cpu",
        "nonzero_memory",
        "pod",
        "ports",
        "priority",
        "requests",
        "terms",
    )

    def __init__(self, key: Key, pod: Pod) -> None:
        self._signature = ""
        self.key = key
        self.pod = pod
        self.labels = labels_of(pod)
        self.priority = priority(pod)
        self.ports: list[HostPort] = host_ports(pod)
        self.is_resize_infeasible = is_resize_infeasible(pod)
        spec = pod["spec"]
        if self.is_resize_infeasible:
            spec = cast("PodSpec", allocated_spec(pod))
        self.requests: Resources = {
            name: _whole_number(name, quantity)
            for name, quantity in pod_requests({"spec": spec}).items()
        }
        requests_of_containers = [
            (container.get("resources") or {}).get("requests") or {}
            for container in spec["containers"]
        ]
        without_cpu = sum("cpu" not in requests for requests in requests_of_containers)
        without_memory = sum("memory" not in requests for requests in requests_of_containers)
        self.nonzero_cpu = self.requests.get("cpu", 0) + without_cpu * DEFAULT_MILLI_CPU
        self.nonzero_memory = self.requests.get("memory", 0) + without_memory * DEFAULT_MEMORY
        affinity = pod["spec"].get("affinity")
        self.terms: PodTerms = pod_terms(affinity, namespace_of(pod)) if affinity else NO_TERMS

    @property
    def namespace(self) -> str:
        return self.key.namespace

    @property
    def spec(self) -> PodSpec:
        return self.pod["spec"]

    def has_template_of(self, pod: Pod) -> bool:
        """Return whether all but ``pod`` itself is the same for another state of the pod."""
        if self.is_resize_infeasible != is_resize_infeasible(pod):
            return False
        return self.labels == labels_of(pod) and self.spec == pod["spec"]

    @property
    def signature(self) -> str:
        """A text that is the same for pods of one template: filters answer alike for all of them
        (``SignPod``)."""
        if not self._signature:
            self._signature = repr((self.namespace, self.labels, self.spec))
        return self._signature


class NodeInfo:
    """A node and the sum of the pods on it. ``node`` is None while pods name a node that does not
    exist.

    ``memo`` keeps results that depend on this node and its pods alone; any change of them clears
    it.

    :param cache: adds the pods, when anything that depends on them is first asked for; None: there
        are none yet.
    """

    __slots__ = (
        "_cache",
        "allocatable",
        "labels",
        "memo",
        "name",
        "node",
        "nonzero_cpu",
        "nonzero_memory",
        "pods",
        "ports",
        "requested",
        "taints",
        "unschedulable",
        "with_affinity",
        "with_anti_affinity",
    )

    pods: dict[Key, PodInfo]
    requested: Resources
    nonzero_cpu: int
    nonzero_memory: int
    ports: dict[HostPort, int]
    with_affinity: dict[Key, PodInfo]
    with_anti_affinity: dict[Key, PodInfo]

    def __init__(self, name: str, cache: Cache | None = None) -> None:
        self.name = name
        self.memo: dict[str, Any] = {}
        self._cache = cache
        if cache is None:
            self.begin()
        self.set_node(None)

    def begin(self) -> None:
        """Begin to have pods, with none."""
        self._cache = None
        self.pods = {}
        self.requested = {}
        self.ports = {}
        self.nonzero_cpu = self.nonzero_memory = 0
        self.with_affinity = {}
        self.with_anti_affinity = {}

    @property
    def is_filled(self) -> bool:
        """Whether the pods have been added."""
        return self._cache is None

    def has_room(self) -> bool:
        """Return whether the node takes one more pod; where a count tells so, the pods need not be
        added."""
        most: int = self.allocatable.get("pods", 0)
        if self._cache is not None and self._cache.has_fewer_on(self.name, most):
            return True
        return len(self.pods) < most

    def __getattr__(self, name: str) -> Any:
        """Add the pods: what depends on them is not there before."""
        if name not in NodeInfo.__annotations__ or self._cache is None:
            raise AttributeError(name)
        self._cache.fill(self.name)
        return getattr(self, name)

    def set_node(self, node: Node | None) -> None:
        self.memo.clear()
        self.node = node
        present: Node = node if node is not None else {"metadata": {}}
        self.allocatable: Resources = resource_list(
            (present.get("status") or {}).get("allocatable")
        )
        self.labels: Mapping[str, str] = labels_of(present)
        self.taints = taints_of(present)
        self.unschedulable = is_unschedulable(present)

    def replace(self, old: Pod | None, new: Pod | None) -> None:
        """Take in another state of a pod, as an :class:`~kubepy.runtime.informers.Accumulator`.

        Where no more than its status has changed, its requests are not calculated again.
        """
        if new is None:
            key = pod_key(cast("Pod", old))
            if key in self.pods:
                self.remove(key)
            return
        key = pod_key(new)
        pod = self.pods.get(key)
        if pod is not None and pod.has_template_of(new):
            self.memo.clear()
            pod.pod = new
            return
        if pod is not None:
            self.remove(key)
        self.add(PodInfo(key, new))

    def add(self, pod: PodInfo) -> None:
        self.memo.clear()
        self.pods[pod.key] = pod
        for name, amount in pod.requests.items():
            self.requested[name] = self.requested.get(name, 0) + amount
        self.nonzero_cpu += pod.nonzero_cpu
        self.nonzero_memory += pod.nonzero_memory
        for port in pod.ports:
            self.ports[port] = self.ports.get(port, 0) + 1
        if pod.terms.any:
            self.with_affinity[pod.key] = pod
        if pod.terms.required_anti_affinity:
            self.with_anti_affinity[pod.key] = pod

    def remove(self, key: Key) -> None:
        self.memo.clear()
        pod = self.pods.pop(key)
        for name, amount in pod.requests.items():
            self.requested[name] -= amount
        self.nonzero_cpu -= pod.nonzero_cpu
        self.nonzero_memory -= pod.nonzero_memory
        for port in pod.ports:
            self.ports[port] -= 1
            if not self.ports[port]:
                del self.ports[port]
        self.with_affinity.pop(key, None)
        self.with_anti_affinity.pop(key, None)

    def copy(self) -> NodeInfo:
        """Copy for a trial; pods and node are shared."""
        other = NodeInfo(self.name)
        other.set_node(self.node)
        other.pods, other.requested, other.ports = (
            dict(self.pods),
            dict(self.requested),
            dict(self.ports),
        )
        other.nonzero_cpu = self.nonzero_cpu
        other.nonzero_memory = self.nonzero_memory
        other.with_affinity, other.with_anti_affinity = (
            dict(self.with_affinity),
            dict(self.with_anti_affinity),
        )
        return other


class Cache:
    """All nodes, the pods on them, and the pods that preemption has nominated for a node: a view of
    the informers, and the pods that are assumed to be on a node.

    What is read here is as the informers have it, so that nobody needs to tell of a change. A node
    is read when a pod is tried on it, its pods when more than their number matters.
    """

    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        self._nodes = informers.lister(NODES)
        self._pods = informers.lister(PODS)
        self._pods_on_nodes = informers.add_index(
            PODS, _pod_on_node, lambda node: (Query(PODS, None, NODE, node),)
        )
        self._filled = self._pods_on_nodes.accumulate(self._begin)
        self._near_others = informers.add_index(PODS, _pod_near_others, lambda _: NEAR_OTHERS)
        self._nominated = informers.add_index(PODS, _nominated_pod, lambda _: NOMINATED)
        self._assumed: dict[Key, tuple[str, PodInfo]] = {}  # pod → node
        self._infos: dict[str, NodeInfo] = {}
        self._listed: list[NodeInfo] = []
        self._changes = self._listings = -1  # of the informers, when nodes were listed, and now

    def nodes(self) -> list[NodeInfo]:
        """Return the nodes, by name."""
        self._update()
        changes = self._informers.changes(NODES)
        if self._changes != changes:
            self._changes = changes
            self._listed = [self._info(node) for node in self._nodes.list()]
            for name in self._infos.keys() - {node_info.name for node_info in self._listed}:
                del self._infos[name]
                self._filled.forget(name)
        return self._listed

    def get(self, name: str) -> NodeInfo | None:
        self._update()
        node = self._nodes.get("", name)
        if node is None:
            return None
        return self._info(node)

    def nodes_with_affinity(self) -> list[NodeInfo]:
        """Return the nodes with pods that may have affinity or anti-affinity to others."""
        self._update()
        self._informers.load(*NEAR_OTHERS)
        names = [*self._near_others.groups(), *(node for node, _ in self._assumed.values())]
        node_infos = [self.get(name) for name in dict.fromkeys(names)]
        return [node_info for node_info in node_infos if node_info is not None]

    def count(self) -> int:
        """Return the number of nodes."""
        return self._informers.count(NODES)

    def has_fewer_on(self, node: str, most: int) -> bool:
        """Return whether fewer pods than so many are on a node, without reading them for that."""
        return self._informers.has_fewer_on(node, most)

    def has_nominations(self) -> bool:
        self._informers.load(*NOMINATED)
        return bool(self._nominated.groups())

    def nominated(self, node: str) -> list[PodInfo]:
        """Return the pods that are nominated for this node."""
        pods = self._nominated.group(node).items()
        return [pod for key, pod in pods if key not in self._assumed]

    def assume(self, key: Key, pod: Pod, node: str) -> None:
        """Add a pod to the node that it is to be bound to, before it is."""
        node_info = self.get(node)
        if node_info is not None:
            node_info.replace(None, pod)
            self._assumed[key] = node, node_info.pods[key]

    def forget(self, key: Key) -> str:
        """Remove a pod that was assumed from its node again; return the node, or ""
        (``ForgetPod``)."""
        self._update()
        return self._forget(key)

    def _forget(self, key: Key) -> str:
        node, pod = self._assumed.pop(key, ("", None))
        node_info = self._infos.get(node)
        if node_info is not None and node_info.pods.get(key) is pod is not None:
            node_info.remove(key)
        return node

    def fill(self, node: str) -> None:
        """Add the pods of a node, which asks for them when they are needed."""
        node_info = self._filled.of(node)
        for assumed_node, pod in self._assumed.values():
            if assumed_node == node:
                node_info.add(pod)

    def _begin(self, name: str) -> NodeInfo:
        self._infos[name].begin()
        return self._infos[name]

    def _info(self, node: Node) -> NodeInfo:
        name = name_of(node)
        node_info = self._infos.get(name)
        if node_info is None:
            node_info = self._infos[name] = NodeInfo(name, self)
        if node_info.node is not node:
            node_info.set_node(node)
        return node_info

    def _update(self) -> None:
        """Let the nodes have what the informers have observed (``UpdateSnapshot``)."""
        if self._listings != self._informers.listings:
            self._listings = self._informers.listings
            self._infos.clear()
        self._pods_on_nodes.update()
        for key, (_, assumed) in list(self._assumed.items()):
            pod = self._pods.get(key.namespace, key.name)
            if pod is None or is_pod_terminal(pod) or not assumed.has_template_of(pod):
                self._forget(key)
            else:
                assumed.pod = pod


# how pods are found that are near others, or nominated
NEAR_OTHERS = (Query(PODS, None, "affinity"), Query(PODS, None, "anti_affinity"))
NOMINATED = (Query(PODS, None, "nominated"),)


def _pod_on_node(pod: Pod) -> tuple[str, Pod] | None:
    """Return a pod and its node, if it takes room there."""
    node = node_name(pod)
    if not node or is_pod_terminal(pod):
        return None
    return node, pod


def _pod_near_others(pod: Pod) -> tuple[str, None] | None:
    """Return the node of a pod that may have terms of affinity to other pods."""
    affinity = pod["spec"].get("affinity") or {}
    if not affinity.get("podAffinity") and not affinity.get("podAntiAffinity"):
        return None
    node = node_name(pod)
    if not node or is_pod_terminal(pod):
        return None
    return node, None


def _nominated_pod(pod: Pod) -> tuple[str, PodInfo] | None:
    """Return the node for which a pod is nominated, as long as it has none."""
    nominated = (pod.get("status") or {}).get("nominatedNodeName")
    if not nominated or node_name(pod) or is_pod_terminal(pod):
        return None
    return nominated, pod_info(pod)


def pod_key(pod: Pod) -> Key:
    return Key(PODS, namespace_of(pod), name_of(pod))


def pod_info(pod: Pod) -> PodInfo:
    return PodInfo(pod_key(pod), pod)
