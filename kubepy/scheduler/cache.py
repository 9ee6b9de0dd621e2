"""The scheduler's cache: nodes with the sum of their pods, kept from change to change
(``backend/cache``)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.meta import labels_of, name_of, namespace_of
from kubepy.api.objects.nodes import is_unschedulable, taints_of
from kubepy.api.objects.pods import (
    HostPort,
    host_ports,
    is_pod_terminal,
    node_name,
    pod_requests,
    priority,
)
from kubepy.api.values.quantity import Quantity
from kubepy.runtime.informers import NODES, PODS, Informers, Query
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
        self.requests: Resources = {
            name: _whole_number(name, quantity) for name, quantity in pod_requests(pod).items()
        }
        requests_of_containers = [
            (container.get("resources") or {}).get("requests") or {}
            for container in pod["spec"]["containers"]
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
            self._begin()
        self.set_node(None)

    def _begin(self) -> None:
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

    def fill(self) -> None:
        """Add the pods, unless they have been."""
        if self._cache is not None:
            cache = self._cache
            self._cache = None
            self._begin()
            cache.fill(self)

    def has_room(self) -> bool:
        """Return whether the node takes one more pod; where a count tells so, the pods need not be
        added."""
        most: int = self.allocatable.get("pods", 0)
        if self._cache is not None and self._cache.count_on(self.name) < most:
            return True
        return len(self.pods) < most

    def __getattr__(self, name: str) -> Any:
        """Add the pods: what depends on them is not there before."""
        if name not in NodeInfo.__annotations__ or self._cache is None:
            raise AttributeError(name)
        self.fill()
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
    """All nodes, the pods on them, and the pods that preemption has nominated for a node.

    :param informers: have the objects, which are taken when they are first needed: a node when a
        pod is tried on it, its pods when more than their number matters; pods with affinity to
        other pods, and nominated ones, at once.
    """

    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        self._nodes = informers.lister(NODES)
        self._has_all_nodes = False
        self._infos: dict[str, NodeInfo] = {}
        self._assigned: dict[Key, str] = {}  # pod → node
        self._nominated: dict[str, dict[Key, PodInfo]] = {}  # node → pods nominated for it
        self._nominations: dict[Key, str] = {}
        self._sorted: list[NodeInfo] | None = None
        self.with_affinity: dict[str, NodeInfo] = {}
        self.with_anti_affinity: dict[str, NodeInfo] = {}
        informers.load(
            *(Query(PODS, None, link) for link in ("affinity", "anti_affinity", "nominated"))
        )
        for key, obj in list(informers.known(PODS)):
            pod = cast("Pod", obj)
            if _is_near_others(pod) or (pod.get("status") or {}).get("nominatedNodeName"):
                self.set_pod(key, pod)

    # Reading.

    def nodes(self) -> list[NodeInfo]:
        """Return the nodes, by name; those that only pods name are left out."""
        if not self._has_all_nodes:
            self._has_all_nodes = True
            for node in self._nodes.list():
                self._info(name_of(node))
        if self._sorted is None:
            self._sorted = [
                self._infos[name]
                for name in sorted(self._infos)
                if self._infos[name].node is not None
            ]
        return self._sorted

    def get(self, name: str) -> NodeInfo | None:
        node_info = self._infos.get(name)
        if node_info is None and not self._has_all_nodes:
            node_info = self._info(name)
            self._forget_if_empty(node_info)
        if node_info is not None and node_info.node is not None:
            return node_info
        return None

    def count(self) -> int:
        """Return the number of nodes."""
        return self._informers.count(NODES)

    def count_on(self, node: str) -> int:
        """Return how many pods there are on a node at most."""
        return self._informers.count_on(node)

    def has_nominations(self) -> bool:
        return bool(self._nominated)

    def nominated(self, node: str) -> Collection[PodInfo]:
        """Return the pods that are nominated for this node."""
        if node in self._nominated:
            return self._nominated[node].values()
        return ()

    # Observing.

    def set_node(self, name: str, node: Node | None) -> None:
        node_info = self._infos.get(name)
        if node_info is not None:
            if (node_info.node is None) != (node is None):
                self._sorted = None
            node_info.set_node(node)
            self._forget_if_empty(node_info)
        elif node is not None and self._has_all_nodes:
            self._info(name)

    def set_pod(self, key: Key, pod: Pod | None) -> None:
        """Take in a pod's present state; None: it was deleted."""
        if pod is not None and self._only_status_changed(key, pod):
            return
        self._unassign(key)
        self._unnominate(key)
        if pod is None or is_pod_terminal(pod):
            return
        node = node_name(pod)
        if node:
            self._assign(key, pod, node)
        elif nominated := (pod.get("status") or {}).get("nominatedNodeName"):
            self._nominations[key] = nominated
            self._nominated.setdefault(nominated, {})[key] = PodInfo(key, pod)

    def assume(self, key: Key, pod: Pod, node: str) -> None:
        """Add a pod to the node that it is to be bound to, before it is."""
        self._unassign(key)
        self._unnominate(key)
        self._info(node).fill()  # the informers do not have this pod there
        self._assign(key, pod, node)

    def forget(self, key: Key, pod: Pod) -> str:
        """Remove a pod that was assumed from its node again; return the node, or ""
        (``ForgetPod``)."""
        node = self._assigned.get(key, "")
        if node:
            self._unassign(key)
            self.set_pod(key, pod)
        return node

    def _only_status_changed(self, key: Key, pod: Pod) -> bool:
        """Take in a pod of which only the status changed, without calculating its requests
        again."""
        node = self._assigned.get(key)
        if node is None or is_pod_terminal(pod):
            return False
        node_info = self._infos[node]
        known = node_info.pods[key]
        if known.pod["spec"] != pod["spec"] or known.labels != labels_of(pod):
            return False
        known.pod = pod
        node_info.memo.clear()
        return True

    def _info(self, name: str) -> NodeInfo:
        """Return what is known of a node; of one that is new here the node and its pods are with
        the informers."""
        node_info = self._infos.get(name)
        if node_info is None:
            node_info = self._infos[name] = NodeInfo(name, self)
            node = self._nodes.get("", name)
            if node is not None:
                node_info.set_node(node)
                self._sorted = None
        return node_info

    def fill(self, node_info: NodeInfo) -> None:
        """Add the pods of a node, which asks for them when they are needed."""
        for key in self._informers.pods_on(node_info.name):
            self.set_pod(key, cast("Pod | None", self._informers.get(*key)))

    def _assign(self, key: Key, pod: Pod, node: str) -> None:
        """Add a pod to its node, unless that has yet to take its pods from the informers, which
        have this one."""
        node_info = self._info(node)
        if _is_near_others(pod):  # all such pods are to be in the cache
            node_info.fill()
        if not node_info.is_filled:
            node_info.memo.clear()
        elif key not in self._assigned:  # else it came with the others
            self._assigned[key] = node
            node_info.add(PodInfo(key, pod))
            self._index(node_info)

    def _unassign(self, key: Key) -> None:
        node = self._assigned.pop(key, None)
        if node is not None:
            node_info = self._infos[node]
            node_info.remove(key)
            self._index(node_info)
            self._forget_if_empty(node_info)

    def _unnominate(self, key: Key) -> None:
        node = self._nominations.pop(key, None)
        if node is not None:
            del self._nominated[node][key]
            if not self._nominated[node]:
                del self._nominated[node]

    def _index(self, node_info: NodeInfo) -> None:
        for index, pods in ((self.with_affinity, node_info.with_affinity),
                            (self.with_anti_affinity, node_info.with_anti_affinity)):  # fmt: skip
            if pods:
                index[node_info.name] = node_info
            else:
                index.pop(node_info.name, None)

    def _forget_if_empty(self, node_info: NodeInfo) -> None:
        if node_info.node is None and not node_info.pods:
            del self._infos[node_info.name]


def _is_near_others(pod: Pod) -> bool:
    """Return whether a pod may have terms of affinity to other pods."""
    affinity = pod["spec"].get("affinity") or {}
    return bool(affinity.get("podAffinity") or affinity.get("podAntiAffinity"))


def pod_info(pod: Pod) -> PodInfo:
    return PodInfo(Key("pods", namespace_of(pod), name_of(pod)), pod)
