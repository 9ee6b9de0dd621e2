"""What runs where: nodes with the sum of their pods, kept from change to change (upstream: ``backend/cache``)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from kubepy.api.meta import Object, labels_of, name_of, namespace_of
from kubepy.api.objects.nodes import is_unschedulable, taints_of
from kubepy.api.objects.pods import HostPort, host_ports, is_pod_terminal, node_name, pod_requests, priority
from kubepy.api.values.quantity import Quantity
from kubepy.runtime.reconcile import Key
from kubepy.scheduler.affinity import NO_TERMS, PodTerms, pod_terms

Resources = dict[str, int]  # cpu in thousandths, everything else in whole units

# What a container without requests counts as when nodes are scored (pkg/scheduler/util/pod_resources.go).
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024


def measure(resource: str, quantity: Quantity) -> int:
    return quantity.milli_value() if resource == "cpu" else quantity.value()


@lru_cache(maxsize=4096)
def _measure_text(resource: str, text: str) -> int:
    return measure(resource, Quantity.parse(text))


def resource_list(quantities: Mapping[str, Any] | None) -> Resources:
    """A ``v1.ResourceList`` as whole numbers."""
    return {name: _measure_text(name, str(quantity)) for name, quantity in (quantities or {}).items()}


class PodInfo:
    """A pod as the plugins see it: what it asks for, worked out once."""

    __slots__ = (
        "_signature", "key", "labels", "nonzero_cpu", "nonzero_memory", "pod", "ports", "priority", "requests", "terms",
    )  # fmt: skip

    def __init__(self, key: Key, pod: Object) -> None:
        self._signature = ""
        self.key = key
        self.pod = pod
        self.labels = labels_of(pod)
        self.priority = priority(pod)
        self.ports: list[HostPort] = host_ports(pod)
        self.requests: Resources = {name: measure(name, one) for name, one in pod_requests(pod).items()}
        self.nonzero_cpu, self.nonzero_memory = _nonzero_requests(pod, self.requests)
        affinity = pod["spec"].get("affinity")
        self.terms: PodTerms = pod_terms(affinity, namespace_of(pod)) if affinity else NO_TERMS

    @property
    def namespace(self) -> str:
        return self.key.namespace

    @property
    def spec(self) -> Object:
        spec: Object = self.pod["spec"]
        return spec


    @property
    def signature(self) -> str:
        """The same for pods of one template: what a node has to say to one it has to say to all (``SignPod``)."""
        if not self._signature:
            self._signature = repr((self.namespace, self.labels, self.spec))
        return self._signature


def _nonzero_requests(pod: Object, requests: Resources) -> tuple[int, int]:
    """CPU and memory where a container that asks for none counts with a default (``calculateResource``)."""
    containers = pod["spec"]["containers"]
    missing = [container.get("resources", {}).get("requests") or {} for container in containers]
    cpu = sum("cpu" not in one for one in missing) * DEFAULT_MILLI_CPU
    memory = sum("memory" not in one for one in missing) * DEFAULT_MEMORY
    return requests.get("cpu", 0) + cpu, requests.get("memory", 0) + memory


class NodeInfo:
    """A node and the sum of the pods on it. ``node`` is None while pods name a node that is not there.

    ``memo`` is for whoever works out something of this node and its pods alone; any change of them clears it.
    """

    __slots__ = (
        "allocatable", "labels", "memo", "name", "node", "nonzero_cpu", "nonzero_memory", "pods", "ports", "requested",
        "taints", "unschedulable", "with_affinity", "with_anti_affinity",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.memo: dict[str, Any] = {}
        self.pods: dict[Key, PodInfo] = {}
        self.requested: Resources = {}
        self.nonzero_cpu = self.nonzero_memory = 0
        self.ports: dict[HostPort, int] = {}
        self.with_affinity: dict[Key, PodInfo] = {}
        self.with_anti_affinity: dict[Key, PodInfo] = {}
        self.set_node(None)

    def set_node(self, node: Object | None) -> None:
        self.memo.clear()
        self.node = node
        shown: Object = node if node is not None else {"metadata": {}}
        self.allocatable: Resources = resource_list((shown.get("status") or {}).get("allocatable"))
        self.labels: Mapping[str, str] = labels_of(shown)
        self.taints: list[Object] = taints_of(shown)
        self.unschedulable = is_unschedulable(shown)

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
        """A copy to try things on; pods and node are shared."""
        other = NodeInfo(self.name)
        other.set_node(self.node)
        other.pods, other.requested, other.ports = dict(self.pods), dict(self.requested), dict(self.ports)
        other.nonzero_cpu, other.nonzero_memory = self.nonzero_cpu, self.nonzero_memory
        other.with_affinity, other.with_anti_affinity = dict(self.with_affinity), dict(self.with_anti_affinity)
        return other


class Cache:
    """All nodes, the pods on them, and the pods that preemption has promised a node."""

    def __init__(self) -> None:
        self._infos: dict[str, NodeInfo] = {}
        self._assigned: dict[Key, str] = {}  # pod → node
        self._nominated: dict[str, dict[Key, PodInfo]] = {}  # node → pods that wait for it
        self._nominations: dict[Key, str] = {}
        self._sorted: list[NodeInfo] | None = None
        self.with_affinity: dict[str, NodeInfo] = {}
        self.with_anti_affinity: dict[str, NodeInfo] = {}

    # Reading.

    def nodes(self) -> list[NodeInfo]:
        """The nodes there are, by name."""
        if self._sorted is None:
            self._sorted = [self._infos[name] for name in sorted(self._infos) if self._infos[name].node is not None]
        return self._sorted

    def get(self, name: str) -> NodeInfo | None:
        info = self._infos.get(name)
        return info if info is not None and info.node is not None else None

    def has_nominations(self) -> bool:
        return bool(self._nominated)

    def nominated(self, node: str) -> Collection[PodInfo]:
        """The pods that wait for room on this node."""
        return self._nominated[node].values() if node in self._nominated else ()

    # Observing.

    def set_node(self, name: str, node: Object | None) -> None:
        info = self._infos.get(name)
        if info is None:
            if node is None:
                return
            info = self._infos[name] = NodeInfo(name)
        if (info.node is None) != (node is None):
            self._sorted = None
        info.set_node(node)
        self._forget_if_empty(info)

    def set_pod(self, key: Key, pod: Object | None) -> None:
        """Take in a pod's present state; None: it is gone."""
        if pod is not None and self._only_status_changed(key, pod):
            return
        self._unassign(key)
        self._unnominate(key)
        if pod is None or is_pod_terminal(pod):
            return
        if node := node_name(pod):
            self._assign(PodInfo(key, pod), node)
        elif nominated := (pod.get("status") or {}).get("nominatedNodeName"):
            self._nominations[key] = nominated
            self._nominated.setdefault(nominated, {})[key] = PodInfo(key, pod)

    def assume(self, key: Key, pod: Object, node: str) -> None:
        """Count a pod on the node that it is to be bound to, before it is."""
        self._unassign(key)
        self._unnominate(key)
        self._assign(PodInfo(key, pod), node)

    def withdraw(self, key: Key, pod: Object) -> str:
        """Take a pod that was assumed off its node again; the node, or ""."""
        if node := self._assigned.get(key, ""):
            self._unassign(key)
            self.set_pod(key, pod)
        return node

    def _only_status_changed(self, key: Key, pod: Object) -> bool:
        """Note the new state of a pod that goes on as before, without working out anew what it asks for."""
        node = self._assigned.get(key)
        if node is None or is_pod_terminal(pod):
            return False
        info = self._infos[node]
        known = info.pods[key]
        if known.pod["spec"] != pod["spec"] or known.labels != labels_of(pod):
            return False
        known.pod = pod
        info.memo.clear()
        return True

    def _assign(self, pod: PodInfo, node: str) -> None:
        self._assigned[pod.key] = node
        info = self._infos.get(node)
        if info is None:
            info = self._infos[node] = NodeInfo(node)
        info.add(pod)
        self._index(info)

    def _unassign(self, key: Key) -> None:
        if (node := self._assigned.pop(key, None)) is not None:
            info = self._infos[node]
            info.remove(key)
            self._index(info)
            self._forget_if_empty(info)

    def _unnominate(self, key: Key) -> None:
        if (node := self._nominations.pop(key, None)) is not None:
            del self._nominated[node][key]
            if not self._nominated[node]:
                del self._nominated[node]

    def _index(self, info: NodeInfo) -> None:
        for index, pods in ((self.with_affinity, info.with_affinity),
                            (self.with_anti_affinity, info.with_anti_affinity)):  # fmt: skip
            if pods:
                index[info.name] = info
            else:
                index.pop(info.name, None)

    def _forget_if_empty(self, info: NodeInfo) -> None:
        if info.node is None and not info.pods:
            del self._infos[info.name]


def pod_info(pod: Object) -> PodInfo:
    return PodInfo(Key("pods", namespace_of(pod), name_of(pod)), pod)
