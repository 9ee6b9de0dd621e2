"""A cheap look at all objects of a cluster whose controllers have done what is due: which of them
are not done, and which workloads are stuck.

No fork runs forward, as for ``why``. A workload that is not done is stuck where nothing that is due
later can bring it on; where that cannot be told without trying, it is not called stuck.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from kubepy.api.meta import Object, controller_of, is_being_deleted
from kubepy.api.objects.pods import node_name
from kubepy.api.objects.usage import AnnotationError
from kubepy.apiserver.cluster import LocalCluster
from kubepy.insight.why import goals
from kubepy.insight.why.remedies import top_owner
from kubepy.insight.why.scene import Diagnoses, Scene
from kubepy.kubelet.lifetimes import Rules, lifetime_of
from kubepy.runtime.checkpoint import CHECKPOINT, Pending, latest
from kubepy.storage import Key

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod

WORKLOADS = (
    "deployments.apps",
    "daemonsets.apps",
    "statefulsets.apps",
    "replicasets.apps",
    "replicationcontrollers",
    "jobs.batch",
)
# What is asked about as a whole: nodes and namespaces first, which may hold up all others.
FIRST = ("nodes", "namespaces", *WORKLOADS, "cronjobs.batch", "pods")
ASKED = tuple(dict.fromkeys([*FIRST, *goals.GOALS]))
DEADLINES = (
    "deployment-controller",
)  # what a controller does later to the workload itself is only to give it up


def stuck_workloads(cluster: LocalCluster) -> list[Object]:
    """Return the workloads that do not come on by themselves, as far as a look shows it, in the
    order of their kinds.

    With faults, whatever is due may be what was missing.
    """
    checkpoint = latest(cluster.store.meta(CHECKPOINT))
    due = [entry for entry in checkpoint.pending if not entry.repeating] if checkpoint else []
    if checkpoint is None or (due and cluster.settings.faults is not None):
        return []
    scene = Scene(cluster, Diagnoses({}))
    return [
        obj
        for resource in WORKLOADS
        for obj in scene.list(resource)
        if controller_of(obj) is None
        and not goals.is_done(scene, obj, obj)
        and not goals.goes_on(scene, obj)
        and not Outlook(scene, obj).improves(due)
    ]


def unfinished(cluster: LocalCluster) -> list[Key]:
    """Return the keys of the objects that are not done, in the order of their kinds; those that an
    object of a built-in kind owns are left out, as its answer is about them."""
    scene = Scene(cluster, Diagnoses({}))
    return [
        scene.key(obj)
        for resource in ASKED
        for obj in scene.list(resource)
        if not goals.is_done(scene, obj, obj) and scene.key(top_owner(scene, obj)) == scene.key(obj)
    ]


class Outlook:
    """What may become of one workload by what is due later."""

    def __init__(self, scene: Scene, workload: Object) -> None:
        self._scene, self._key = scene, scene.key(workload)
        replica_sets = scene.owned(workload, "replicasets.apps")
        self._replica_sets = {scene.key(replica_set) for replica_set in replica_sets}
        pods = [pod for owner in (workload, *replica_sets) for pod in scene.owned(owner, "pods")]
        self._pods = {scene.key(pod): pod for pod in pods}
        staying = [pod for pod in pods if not is_being_deleted(pod)]
        self._lacks_room = len(staying) < goals.desired_replicas(workload) or any(
            not node_name(pod) for pod in staying
        )
        self._is_job = self._key.resource == "jobs.batch"

    def improves(self, due: Iterable[Pending]) -> bool:
        """Return whether anything that is due may bring the workload on."""
        return any(self._may_help(entry) for entry in due)

    def _may_help(self, entry: Pending) -> bool:
        key = entry.key
        if key in self._pods:
            return entry.failures == 0 and (
                self._is_job or may_become_ready(self._scene, self._pods[key])
            )
        if key == self._key:
            return entry.failures == 0 and entry.reconciler not in DEADLINES
        if key in self._replica_sets:
            return entry.failures == 0
        if key.resource in ("nodes", "namespaces") or not key.namespace:
            return key.resource != "namespaces" or key.name == self._key.namespace
        if key.resource == "pods":  # it may make room, or let a quota go
            return self._lacks_room
        return key.namespace == self._key.namespace and key.resource not in WORKLOADS


def may_become_ready(scene: Scene, pod: Object) -> bool:
    """Return whether time alone may make a pod ready, or let it go: whether its outcome is to be
    ready some day."""
    if is_being_deleted(pod):
        return True
    node = scene.get("nodes", "", node_name(pod))
    if node is None:
        return True
    rules = Rules(defaults=scene.settings.kubelet.annotations())
    try:
        lifetime = lifetime_of(cast("Pod", pod), cast("Node", node), rules)
    except (AnnotationError, ValueError):
        return False
    init_fails = lifetime.init is not None and (
        lifetime.init.outcome != "ready" or bool(lifetime.init.end.exit_code)
    )
    return lifetime.outcome == "ready" and not init_fails
