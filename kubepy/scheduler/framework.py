"""The scheduling framework: plugins, their input and their answers
(``kube-scheduler/framework/interface.go``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from kubepy.api.meta import AnyObject, labels_of
from kubepy.runtime.informers import (
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    Informers,
    Lister,
)
from kubepy.scheduler.cache import Cache, NodeInfo, PodInfo

if TYPE_CHECKING:
    from kubepy.api.typed import PersistentVolume, PersistentVolumeClaim, StorageClass
    from kubepy.apiserver.absence import AbsentObjects

# The actions of a cluster event, for which plugins register.
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
    """One change and its actions: the object before and after; ``node`` is where it happened, or
    "".

    ``unknown``: the state before the change is not known; it may help any pod that waits for such
    an action.
    """

    actions: frozenset[str]
    old: AnyObject | None
    new: AnyObject | None
    node: str = ""
    unknown: bool = False


class PluginStatus(NamedTuple):
    """The rejection of a pod by a plugin (``Status``).

    ``resolvable``: removing other pods from the node could help (``Unschedulable``; the other kind
    is ``UnschedulableAndUnresolvable``).
    """

    reasons: tuple[str, ...]
    resolvable: bool
    plugin: str = ""


class Skip(NamedTuple):
    """The answer of a ``pre_filter`` whose plugin has nothing to say about this pod."""


SKIP = Skip()


class PreFilterResult(NamedTuple):
    """The answer of a ``pre_filter`` that lets a pod go on.

    ``state`` is handed to ``filter``; only the nodes in ``node_names`` can fit (None: all).
    """

    state: Any = None
    node_names: frozenset[str] | None = None


class Handle(NamedTuple):
    """The data that plugins read: nodes with their pods, and all other objects (namespaces, claims,
    volumes …)."""

    cache: Cache
    informers: Informers
    absent: AbsentObjects | None = None  # claims that an imported source names and does not hold

    @property
    def claims(self) -> Lister[PersistentVolumeClaim]:
        return self.informers.lister(PERSISTENT_VOLUME_CLAIMS)

    @property
    def volumes(self) -> Lister[PersistentVolume]:
        return self.informers.lister(PERSISTENT_VOLUMES)

    @property
    def classes(self) -> Lister[StorageClass]:
        return self.informers.lister(STORAGE_CLASSES)

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        obj = self.informers.lister(NAMESPACES).get("", namespace)
        if obj is not None:
            return labels_of(obj)
        return {}


class FilterPlugin:
    """One rule that says on which nodes a pod may run. It has no state of its own: everything is in
    its arguments."""

    name: ClassVar[str]
    looks_at_node_only: ClassVar[bool] = (
        False  # ``filter`` depends on the pod's template and this node's pods alone
    )
    events_to_register: ClassVar[frozenset[str]] = (
        frozenset()
    )  # actions that could make a rejected pod schedulable

    def pre_filter(self, pod: PodInfo, handle: Handle) -> PreFilterResult | Skip | PluginStatus:
        """Look at the pod once, before the nodes."""
        return PreFilterResult()

    def filter(self, pod: PodInfo, state: Any, node_info: NodeInfo) -> PluginStatus | None:
        """Return why the pod cannot run on this node; None when it can."""
        raise NotImplementedError

    def clone(self, state: Any) -> Any:
        """Copy the state, for a trial."""
        return state

    def update(
        self, pod: PodInfo, state: Any, other: PodInfo, node_info: NodeInfo, count: int
    ) -> None:
        """Correct the state: another pod was added to (1) or removed from (-1) this node, on
        trial."""

    def queueing_hint(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Tell whether an event could make a pod schedulable that this plugin has rejected
        (``QueueingHintFn``)."""
        return True
