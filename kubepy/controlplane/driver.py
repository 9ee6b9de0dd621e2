"""The composition root of what runs a cluster: which reconcilers there are, and running them while a command waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from kubepy.api.errors import Expired
from kubepy.controlplane.checkpoint import Checkpoint, CheckpointStore, latest, parse
from kubepy.controlplane.manager import POLL_SECONDS, UNWATCHED, Manager
from kubepy.runtime.reconcile import Context, Informers, Reconciler
from kubepy.storage import LockTimeoutError

if TYPE_CHECKING:
    from kubepy.api.meta import Object
    from kubepy.apiserver.cluster import Cluster
    from kubepy.cli.runtime.progress import Progress
    from kubepy.controlplane.summary import Summary

MANAGER_LOCK = "manager.lock"
CHECKPOINT = "manager.checkpoint"
NOTE_SECONDS = 2  # after which somebody at a terminal is told that there are no nodes to run on
TAKE_OVER_SECONDS = 1.0  # how soon a waiting command notices that the process that ran the controllers is gone


# Everything that runs, in the order in which it takes turns: its name, and where it is. First what makes nodes ready
# and clears the ground, then what makes pods, last what places them: a round brings a new workload's pods up without a
# detour. ReplicaSets come before Deployments, which go by their status. The manager ends its batches after the first
# one's turn.
RECONCILERS = (
    ("kubelet", "kubepy.kubelet:Kubelet"),
    ("node-lifecycle-controller", "kubepy.controllers.nodelifecycle:NodeLifecycleController"),
    ("ttl-controller", "kubepy.controllers.ttl:TTLController"),
    ("taint-eviction-controller", "kubepy.controllers.tainteviction:TaintEvictionController"),
    ("pod-garbage-collector-controller", "kubepy.controllers.podgc:PodGarbageCollector"),
    ("garbage-collector-controller", "kubepy.controllers.garbagecollector:GarbageCollector"),
    ("namespace-controller", "kubepy.controllers.namespace:NamespaceController"),
    ("resourcequota-controller", "kubepy.controllers.resourcequota:ResourceQuotaController"),
    ("clusterrole-aggregation-controller", "kubepy.controllers.clusterroles:ClusterRoleAggregationController"),
    ("crd-finalizer", "kubepy.controllers.customresources:CustomResourceFinalizer"),
    ("daemonset-controller", "kubepy.controllers.daemonset:DaemonSetController"),
    ("replicaset-controller", "kubepy.controllers.replicaset:ReplicaSetController"),
    ("replication-controller", "kubepy.controllers.replicaset:ReplicationManager"),
    ("deployment-controller", "kubepy.controllers.deployment:DeploymentController"),
    ("statefulset-controller", "kubepy.controllers.statefulset:StatefulSetController"),
    ("ephemeral-volume-controller", "kubepy.controllers.ephemeralvolume:EphemeralVolumeController"),
    ("persistentvolume-binder-controller", "kubepy.controllers.persistentvolume:VolumeController"),
    ("persistentvolumeclaim-binder-controller", "kubepy.controllers.persistentvolume:ClaimController"),
    ("kubepy.dev/simulated", "kubepy.controllers.persistentvolume:SimulatedProvisioner"),
    ("persistentvolume-expander-controller", "kubepy.controllers.persistentvolume:ExpandController"),
    ("external-resizer simulated.kubepy.dev", "kubepy.controllers.persistentvolume:SimulatedResizer"),
    ("pv-protection-controller", "kubepy.controllers.persistentvolume:PVProtectionController"),
    ("pvc-protection-controller", "kubepy.controllers.pvcprotection:PVCProtectionController"),
    ("job-controller", "kubepy.controllers.job:JobController"),
    ("cronjob-controller", "kubepy.controllers.cronjob:CronJobController"),
    ("ttl-after-finished-controller", "kubepy.controllers.ttlafterfinished:TTLAfterFinishedController"),
    ("disruption-controller", "kubepy.controllers.disruption:DisruptionController"),
    ("endpoint-slice-controller", "kubepy.controllers.endpoints:EndpointSliceController"),
    ("endpoint-controller", "kubepy.controllers.endpoints:EndpointsController"),
    ("endpoint-slice-mirroring-controller", "kubepy.controllers.endpoints:EndpointSliceMirroringController"),
    ("default-scheduler", "kubepy.scheduler:Scheduler"),
)
NAMES = tuple(name for name, _ in RECONCILERS)


def reconcilers(context: Context) -> list[Reconciler]:
    from importlib import import_module

    made = []
    for _, place in RECONCILERS:
        module, _, attribute = place.partition(":")
        made.append(getattr(import_module(module), attribute)(context))
    return made


def build_manager(cluster: Cluster) -> Manager:
    """The manager of a cluster. It must only work while its lock is held (:func:`holding`)."""
    informers = Informers()
    context = Context(cluster.client, informers, cluster.clock, cluster.scheme)
    store = cluster.store
    checkpoints = CheckpointStore(lambda: store.meta(CHECKPOINT), lambda text: store.set_meta(CHECKPOINT, text))
    return Manager(cluster.client, informers, cluster.clock, reconcilers(context),
                   resources=lambda: _served(cluster), checkpoints=checkpoints)


def _served(cluster: Cluster) -> list[str]:
    """The resources of which there are objects; files of a kind that nothing defines any more are left alone."""
    return [resource for resource in cluster.store.resources() if cluster.scheme.is_served(resource)]


def settled_checkpoint(cluster: Cluster, within: float, *, of_this_version: bool = True) -> Checkpoint | None:
    """Where the controllers got to, if nothing has changed since and nothing falls due within so many seconds.

    Without ``of_this_version`` whatever another version of kubepy wrote counts as well.
    """
    text = cluster.store.meta(CHECKPOINT)
    checkpoint = parse(text, NAMES) if of_this_version else latest(text)
    if checkpoint is None or not checkpoint.is_settled(cluster.clock.now(), within):
        return None
    try:
        _, changes = cluster.client.changes(checkpoint.revision)
    except Expired:
        return None  # the index was made anew
    return checkpoint if all(change.key.resource in UNWATCHED for change in changes) else None


@contextmanager
def holding(cluster: Cluster) -> Iterator[Callable[[], bool] | None]:
    """Hold the right to run the controllers of this folder; the block is given what tells whether it was lost, or None
    when another process has it."""
    with ExitStack() as stack:
        try:
            is_lost = stack.enter_context(cluster.store.hold(MANAGER_LOCK))
        except LockTimeoutError:
            yield None
        else:
            stack.enter_context(_without_warnings(cluster))
            yield is_lost


@contextmanager
def _without_warnings(cluster: Cluster) -> Iterator[None]:
    """What the API warns of is for whoever wrote a manifest, not for controllers."""
    warn = cluster.client.warn
    cluster.client.warn = lambda _: None
    try:
        yield
    finally:
        cluster.client.warn = warn


def settle(progress: Progress, manager: Manager, quiet_for: float = 0.0, stop: Callable[[], bool] = lambda: False, *,
           skip_waits: bool = False) -> Summary:
    """:meth:`Manager.run_until_settled`, which on a terminal shows how far it is."""
    def is_over() -> bool:
        changed, waiting = manager.workload()
        progress.show(f"{changed} objects changed, {waiting} to do")
        return stop()

    return manager.run_until_settled(quiet_for, is_over, skip_waits=skip_waits)


class Driver:
    """Lets a command wait for something that the controllers bring about.

    It runs them itself, a burst of work at a time, and lets go of the lock between: other commands may wait as well,
    and ``kubepy controller`` may start.
    """

    def __init__(self, cluster: Cluster, progress: Progress, say: Callable[[str], None], *, reconciles: bool) -> None:
        """``reconciles``: whether it may run them; if not, it waits for another process to."""
        self._cluster = cluster
        self._progress = progress
        self._say = say
        self._reconciles = reconciles
        self._manager: Manager | None = None
        self._warned = False
        self._noted = False
        self._has_settled = False
        self._others_run_until = 0.0  # when to look again whether another process runs the controllers

    def wait_until(self, done: Callable[[], bool], timeout: float | None = None, about: str = "") -> bool:
        """Wait until ``done()`` holds, at most ``timeout`` seconds of real time (None: for ever); whether it does.

        ``done`` is asked after every batch of the controllers, and whenever something changed. ``about`` is what is
        waited for, to be shown on a terminal.
        """
        clock, progress = self._cluster.clock, self._progress
        deadline = None if timeout is None else clock.monotonic() + timeout

        def is_over() -> bool:
            progress.show(f"waiting {progress.seconds()}s", about=about)
            return deadline is not None and clock.monotonic() >= deadline

        pause = POLL_SECONDS
        while not done():
            if is_over():
                self._note_missing_nodes()
                return False
            if self._reconciles and self._run(lambda: done() or is_over()):
                continue
            self._note_missing_nodes()
            if not self._reconciles:
                self._say_that_nothing_runs()
            left = pause if deadline is None else max(min(pause, deadline - clock.monotonic()), 0.0)
            pause = self._pause(left)
        return True

    def has_observed(self, obj: Object) -> bool:
        """Tell whether controllers have seen an object as it is, in this process or before it."""
        if self._has_settled:
            return True
        checkpoint = latest(self._cluster.store.meta(CHECKPOINT))
        return checkpoint is not None and int(obj["metadata"]["resourceVersion"]) <= checkpoint.revision

    def _run(self, stop: Callable[[], bool]) -> bool:
        """A burst of work, if there is any and nobody else does it; whether something was done."""
        manager, clock = self._manager, self._cluster.clock
        if clock.monotonic() < self._others_run_until or (manager is not None and not manager.has_work()):
            return False
        with holding(self._cluster) as ours:
            if not ours:
                self._others_run_until = clock.monotonic() + TAKE_OVER_SECONDS
                return False
            if manager is None:
                manager = self._manager = build_manager(self._cluster)
            manager.run_until_settled(done=stop, skip_waits=True)
            self._has_settled = True
            return True

    def _pause(self, seconds: float) -> float:
        """Wait; returns how long the next pause should be."""
        if self._manager is not None:
            return self._manager.wait_for_work(seconds)
        self._cluster.clock.sleep(seconds)
        return POLL_SECONDS

    def _note_missing_nodes(self) -> None:
        """Once, and not before the controllers have come to rest: they may have pods to make yet."""
        if self._noted or not self._progress.is_watched or self._progress.seconds() < NOTE_SECONDS:
            return
        from kubepy.cli.missing_nodes import note_missing_nodes

        note_missing_nodes(self._cluster.client, self._say)
        self._noted = True

    def _say_that_nothing_runs(self) -> None:
        if not self._warned and self._cluster.store.holder(MANAGER_LOCK) is None:
            self._say("no controller is running (--reconcile=never): waiting for another process to run one")
        self._warned = True
