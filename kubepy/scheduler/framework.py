"""What a plugin is and what it may answer (upstream: ``kube-scheduler/framework/interface.go``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from kubepy.api.meta import Object
from kubepy.runtime.reconcile import Informers
from kubepy.scheduler.cache import Cache, NodeInfo, PodInfo

# What happened in the cluster, as plugins ask to be told of it.
NODE_ADD = "node added"
NODE_LABEL = "node labels changed"
NODE_TAINT = "node taints changed"  # spec.unschedulable falling back to false as well
NODE_ALLOCATABLE = "node allocatable changed"
NODE_DELETE = "node deleted"
POD_ADD = "pod assigned"
POD_LABEL = "labels of an assigned pod changed"
POD_SCALE_DOWN = "requests of an assigned pod fell"
POD_DELETE = "assigned pod deleted"
POD_TERMINATING = "deletion of an assigned pod began"
NAMESPACE = "namespace labels changed"
SELF_UPDATE = "the waiting pod itself changed"
VOLUME = "claim, volume, storage class or CSINode changed"


class ClusterEvent(NamedTuple):
    """One change and what it means: the object before and after; ``node`` is where it happened, or "".

    ``unknown``: what the object was before is not known; it may help anybody who waits for such an action.
    """

    actions: frozenset[str]
    old: Object | None
    new: Object | None
    node: str = ""
    unknown: bool = False


class Rejection(NamedTuple):
    """A plugin's no. ``resolvable``: removing other pods from the node could help (``Unschedulable`` upstream,
    where the other kind is ``UnschedulableAndUnresolvable``)."""

    reasons: tuple[str, ...]
    resolvable: bool
    plugin: str = ""


class Skip(NamedTuple):
    """The plugin has nothing to say about this pod."""


SKIP = Skip()


class Admit(NamedTuple):
    """The pod may go on. ``state`` is handed to ``filter``; ``nodes``: only these can fit."""

    state: Any = None
    nodes: frozenset[str] | None = None


class View(NamedTuple):
    """What plugins look at: what runs where, and the other objects (namespaces, claims, volumes …)."""

    cache: Cache
    informers: Informers

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        found = self.informers.get("namespaces", "", namespace)
        return (found["metadata"].get("labels") or {}) if found is not None else {}


class Plugin:
    """One rule of where pods may run. Has no state of its own: everything is in its arguments."""

    name: ClassVar[str]
    looks_at_node_only: ClassVar[bool] = False  # ``filter`` depends on the pod's template and this node's pods alone
    wakes_on: ClassVar[frozenset[str]] = frozenset()

    def pre_filter(self, pod: PodInfo, view: View) -> Admit | Skip | Rejection:
        """Look at the pod once, before the nodes."""
        return Admit()

    def filter(self, pod: PodInfo, state: Any, info: NodeInfo) -> Rejection | None:
        """Whether the pod can run on this node; None: yes."""
        raise NotImplementedError

    def clone(self, state: Any) -> Any:
        """A copy of the state, for trying out."""
        return state

    def update(self, pod: PodInfo, state: Any, other: PodInfo, info: NodeInfo, count: int) -> None:
        """Another pod was put on (1) or taken off (-1) this node, on trial: correct the state."""

    def may_help(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Whether a change could make a pod fit that this plugin has rejected (``QueueingHintFn``)."""
        return True
