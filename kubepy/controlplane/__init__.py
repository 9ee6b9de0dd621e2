"""A running cluster: the list of reconcilers, the manager that runs them, its lock.

``manager`` feeds the reconcilers from the change log, ``summary`` reports the changes of a run; the
manager's position is kept from process to process by :mod:`kubepy.runtime.checkpoint`. This module
puts them together for a cluster. Upstream:
``cmd/kube-controller-manager/app/controllermanager.go``, the manager of
``sigs.k8s.io/controller-runtime``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, cast

from kubepy.apiserver.settings import FULL, ClusterSettings
from kubepy.lazy import lazy_imports
from kubepy.runtime.checkpoint import MANAGER_LOCK as MANAGER_LOCK
from kubepy.runtime.checkpoint import identity, load, save
from kubepy.storage import LockTimeoutError
from kubepy.storage.view import RecordedView

with lazy_imports():
    from kubepy import scheduler
    from kubepy.controllers import (
        bootstrap,
        clusterroles,
        cronjob,
        customresources,
        daemonset,
        deployment,
        disruption,
        endpoint,
        endpointslice,
        endpointslicemirroring,
        ephemeralvolume,
        garbagecollector,
        job,
        namespace,
        nodelifecycle,
        persistentvolume,
        podautoscaler,
        podgc,
        replicaset,
        resourcequota,
        serviceaccounts,
        servicelb,
        statefulset,
        tainteviction,
        ttl,
        ttlafterfinished,
        volumeprotection,
    )
    from kubepy.controlplane import faults, users, verbose
    from kubepy.controlplane import manager as managers
    from kubepy.kubelet import controller as kubelets
    from kubepy.runtime import pacing, reconcile

if TYPE_CHECKING:
    from kubepy.apiserver.cluster import LocalCluster
    from kubepy.controlplane.functions import FunctionControllers
    from kubepy.controlplane.manager import Manager
    from kubepy.klog import Logger
    from kubepy.runtime.reconcile import Context, Reconciler

RBAC_BOOTSTRAPPED = "rbac.bootstrapped"  # in the store's meta values: bootstrap roles are there

# All reconcilers, in the order in which they take turns: first those that make nodes ready and
# clear the ground (a pod needs the ServiceAccount of its namespace), then those that create pods,
# last the scheduler, so that one round brings up a new workload's pods. ReplicaSets come before
# Deployments, which go by their status. The manager ends its batches after the first reconciler's
# turn. The names alone identify a checkpoint, without importing any controller.
RECONCILERS: tuple[tuple[str, Callable[[Context], Reconciler]], ...] = (
    ("kubelet", lambda context: kubelets.Kubelet(context)),
    ("node-faults", lambda context: faults.NodeFaultController(context)),
    ("node-lifecycle-controller", lambda context: nodelifecycle.NodeLifecycleController(context)),
    ("ttl-controller", lambda context: ttl.TTLController(context)),
    ("taint-eviction-controller", lambda context: tainteviction.TaintEvictionController(context)),
    ("pod-garbage-collector-controller", lambda context: podgc.PodGarbageCollector(context)),
    ("garbage-collector-controller", lambda context: garbagecollector.GarbageCollector(context)),
    ("namespace-controller", lambda context: namespace.NamespaceController(context)),
    (
        "serviceaccount-controller",
        lambda context: serviceaccounts.ServiceAccountsController(context),
    ),
    ("resourcequota-controller", lambda context: resourcequota.ResourceQuotaController(context)),
    (
        "clusterrole-aggregation-controller",
        lambda context: clusterroles.ClusterRoleAggregationController(context),
    ),
    ("crd-finalizer", lambda context: customresources.CustomResourceFinalizer(context)),
    ("daemonset-controller", lambda context: daemonset.DaemonSetController(context)),
    ("replicaset-controller", lambda context: replicaset.ReplicaSetController(context)),
    ("replication-controller", lambda context: replicaset.ReplicationManager(context)),
    ("deployment-controller", lambda context: deployment.DeploymentController(context)),
    ("statefulset-controller", lambda context: statefulset.StatefulSetController(context)),
    (
        "ephemeral-volume-controller",
        lambda context: ephemeralvolume.EphemeralVolumeController(context),
    ),
    (
        "persistentvolume-binder-controller",
        lambda context: persistentvolume.VolumeController(context),
    ),
    (
        "persistentvolumeclaim-binder-controller",
        lambda context: persistentvolume.ClaimController(context),
    ),
    ("kubepy.dev/simulated", lambda context: persistentvolume.SimulatedProvisioner(context)),
    (
        "persistentvolume-expander-controller",
        lambda context: persistentvolume.ExpandController(context),
    ),
    (
        "external-resizer simulated.kubepy.dev",
        lambda context: persistentvolume.SimulatedResizer(context),
    ),
    ("pv-protection-controller", lambda context: volumeprotection.PVProtectionController(context)),
    (
        "pvc-protection-controller",
        lambda context: volumeprotection.PVCProtectionController(context),
    ),
    ("job-controller", lambda context: job.JobController(context)),
    ("cronjob-controller", lambda context: cronjob.CronJobController(context)),
    (
        "ttl-after-finished-controller",
        lambda context: ttlafterfinished.TTLAfterFinishedController(context),
    ),
    (
        "horizontal-pod-autoscaler-controller",
        lambda context: podautoscaler.HorizontalController(context),
    ),
    ("disruption-controller", lambda context: disruption.DisruptionController(context)),
    ("endpoint-slice-controller", lambda context: endpointslice.EndpointSliceController(context)),
    ("endpoint-controller", lambda context: endpoint.EndpointsController(context)),
    (
        "endpoint-slice-mirroring-controller",
        lambda context: endpointslicemirroring.EndpointSliceMirroringController(context),
    ),
    ("serviceaccount-token-controller", lambda context: serviceaccounts.TokensController(context)),
    (
        "root-ca-certificate-publisher-controller",
        lambda context: bootstrap.RootCACertPublisher(context),
    ),
    (
        "kubernetes-service-controller",
        lambda context: bootstrap.KubernetesServiceController(context),
    ),
    ("service-lb-controller", lambda context: servicelb.ServiceLBController(context)),
    ("default-scheduler", lambda context: scheduler.Scheduler(context)),
)
NAMES = tuple(name for name, _ in RECONCILERS)
OF_FULL_BOOTSTRAP = (
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
    "kubernetes-service-controller",
)


def new_reconcilers(
    context: Context,
    logger: Logger | None = None,
    among: Collection[str] = NAMES,
    added: FunctionControllers | None = None,
) -> list[Reconciler]:
    """Build the reconcilers that run with the cluster's settings, in their order and with their
    faults; behind them those that a program has added."""
    settings = context.client.settings
    names = [name for name in reconciler_names(settings) if name in among]

    def build(name: str, new_reconciler: Callable[[Context], Reconciler]) -> Reconciler:
        requests = context.client.context._replace(user=users.user_of(name), component=name)
        own_context = context._replace(client=context.client.with_context(requests))
        if logger is not None:
            new_reconciler = verbose.logging(new_reconciler, logger)
        if settings.faults is not None and settings.faults.afflicts(name):
            return faults.FaultyReconciler(name, new_reconciler, own_context, settings.faults)
        if added is not None:
            return added.built_in(name, new_reconciler, own_context)
        return new_reconciler(own_context)

    built_in = [
        build(name, new_reconciler) for name, new_reconciler in RECONCILERS if name in names
    ]
    if added is None:
        return built_in
    return [*built_in, *added.reconcilers(context)]


def reconciler_names(settings: ClusterSettings) -> tuple[str, ...]:
    """Return the names of the reconcilers that run with these settings."""
    idle = {
        *(OF_FULL_BOOTSTRAP if settings.bootstrap != FULL else ()),
        *(("service-lb-controller",) if not settings.networking.load_balancer_pool else ()),
        *(("node-faults",) if settings.faults is None or not settings.faults.nodes else ()),
    }
    return tuple(name for name in NAMES if name not in idle)


def build_manager(cluster: LocalCluster, among: Collection[str] = NAMES) -> Manager:
    """Build the manager of a cluster. It must only work while its lock is held
    (:func:`manager_lock`).

    :param among: the names of the reconcilers that may run (:mod:`kubepy.controlplane.groups`).
    """
    added = cast("FunctionControllers | None", cluster.added)
    if added is not None and added.manager is not None:
        return added.manager
    store = cluster.store
    scheme = cluster.scheme
    if cluster.settings.bootstrap == FULL and store.meta(RBAC_BOOTSTRAPPED) is None:
        cluster.start()
        store.set_values({RBAC_BOOTSTRAPPED: "yes"})
    if cluster.settings.faults is not None:
        cluster = cluster.with_faults(cluster.settings.faults)
    # Warnings of the API are for the author of a manifest, not for controllers.
    client = cluster.controller_client.silenced()
    context = reconcile.Context(
        client, reconcile.Informers(), cluster.clock, pacing.Pacing(), scheme
    )
    names = [name for name in reconciler_names(cluster.settings) if name in among]
    if added is not None:
        names += added.names()
    checkpoints = managers.CheckpointStore(
        lambda: load(store),
        lambda text: save(store, text),
        identity(names, cluster.settings),
    )
    reconcilers = new_reconcilers(context, cluster.logger, among, added)
    return managers.Manager(
        context,
        reconcilers,
        source=managers.ListWatch(RecordedView(store), scheme.is_served),
        checkpoints=checkpoints,
    )


@contextmanager
def manager_lock(cluster: LocalCluster) -> Iterator[Callable[[], bool] | None]:
    """Hold the right to run the controllers of this folder.

    The block gets a function that tells whether the lock was lost, or None when another process
    holds it.
    """
    with ExitStack() as stack:
        try:
            is_lost = stack.enter_context(cluster.store.hold(MANAGER_LOCK))
        except LockTimeoutError:
            yield None
            return
        yield is_lost
