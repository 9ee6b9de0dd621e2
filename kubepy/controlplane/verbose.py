"""Log the handlers and syncs of reconcilers in upstream's words (``-v=4``), for whoever wants to
see them at work.

Without it nothing here is imported: :func:`logging` puts reconcilers that log in front of those
that work. What upstream logs of a change or a sync, and at which level, is in two tables;
controllers that upstream lets work in silence have lines of the same kind. Upstream: the calls of
``logger.V(4).Info`` in ``pkg/controller``, ``pkg/scheduler`` and ``pkg/kubelet``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kubepy.api.meta import labels_of
from kubepy.klog import Logger, Value, place_of
from kubepy.runtime.reconcile import Context, Handler, Key, Reconciler, Remembering, WatchEvent
from kubepy.runtime.workqueue import WorkQueue


class LogLine(NamedTuple):
    """A message with its values, and the verbosity from which on it is shown."""

    message: str
    values: Mapping[str, Value]
    level: int = 4


class SyncWords(NamedTuple):
    """The messages about a sync, and the keys of their values.

    :param label: the key of the object's name.
    :param elapsed: the key of the time that the sync took.
    :param values: further values of the message at the end.
    """

    label: str = "key"
    finished: str = "Finished syncing"
    elapsed: str = "duration"
    started: str = ""
    level: int = 4
    values: Mapping[str, Value] = {}


Describe = Callable[[WatchEvent], LogLine | None]


# --- changes --------------------------------------------------------------------------------------


def change(
    label: str, added: str = "", updated: str = "", deleted: str = "", *, owner: str = ""
) -> Describe:
    """Describe changes of one kind, without those for which there is no message.

    :param owner: only of objects that a controller of this kind owns.
    """

    def describe(event: WatchEvent) -> LogLine | None:
        if event.new is None:
            message = deleted
        elif event.old is None:
            message = added
        else:
            message = updated
        if not message or (owner and owner not in controllers_of(event)):
            return None
        return LogLine(message, {label: _reference(event.key)})

    return describe


def controllers_of(event: WatchEvent) -> list[str]:
    metadata = (event.new or event.old or {}).get("metadata", {})
    return [
        owner["kind"] for owner in metadata.get("ownerReferences") or () if owner.get("controller")
    ]


def _reference(key: Key) -> str:
    """Return an object as ``klog.KObj`` prints it."""
    if key.namespace:
        return f"{key.namespace}/{key.name}"
    return key.name


def replica_set_change(event: WatchEvent) -> LogLine | None:
    values: dict[str, Value] = {"replicaSet": _reference(event.key)}
    if event.new is not None and event.old is not None:
        old = event.old["spec"].get("replicas", 1)
        new = event.new["spec"].get("replicas", 1)
        if old == new:
            return None
        return LogLine(
            "replicaSet updated. Desired pod count change.",
            {**values, "oldReplicas": old, "newReplicas": new},
        )
    return LogLine("Deleting" if event.new is None else "Adding", values)


def stateful_set_change(event: WatchEvent) -> LogLine | None:
    values: dict[str, Value] = {"statefulSet": _reference(event.key)}
    if event.new is not None and event.old is not None:
        old, new = ((obj.get("status") or {}).get("replicas", 0) for obj in (event.old, event.new))
        if old == new:
            return LogLine("Updating stateful set", values)
        return LogLine(
            "Observed updated replica count for StatefulSet",
            {**values, "oldReplicas": old, "newReplicas": new},
        )
    return LogLine("Deleting stateful set" if event.new is None else "Adding stateful set", values)


_STATEFUL_POD = change(
    "pod", "Pod created with labels", "Pod objectMeta updated", "Pod deleted.", owner="StatefulSet"
)


def stateful_pod_change(event: WatchEvent) -> LogLine | None:
    line = _STATEFUL_POD(event)
    if line is None or event.new is None or event.old is not None:
        return line
    return line._replace(values={**line.values, "labels": str(dict(labels_of(event.new)))})


def scheduler_pod_change(event: WatchEvent) -> LogLine | None:
    """Describe a pod as the scheduler sees it: bound, without a node that fits, or one of its two
    kinds of pods."""
    pod = {"pod": _reference(event.key)}
    new = event.new
    node = (new or event.old or {}).get("spec", {}).get("nodeName", "")
    if new is not None and event.old is not None:
        if node and not event.old["spec"].get("nodeName"):
            return LogLine("Successfully bound pod to node", {**pod, "node": node}, 2)
        if not node and (message := _unschedulable(new)) and message != _unschedulable(event.old):
            return LogLine("Unable to schedule pod; no fit; waiting", {**pod, "err": message}, 2)
        return LogLine(f"Update event for {'' if node else 'un'}scheduled pod", pod)
    return LogLine(
        f"{'Delete' if new is None else 'Add'} event for {'' if node else 'un'}scheduled pod",
        pod,
        3,
    )


def _unschedulable(pod: Any) -> str:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next(
        (
            condition.get("message", "")
            for condition in conditions
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        ),
        "",
    )


def kubelet_pod_change(event: WatchEvent) -> LogLine | None:
    """Describe a pod as the kubelet of its node sees it."""
    was, is_now = (
        obj is not None and bool(obj["spec"].get("nodeName")) for obj in (event.old, event.new)
    )
    if not was and not is_now:
        return None
    stops = event.new is not None and "deletionTimestamp" in event.new["metadata"]
    if not is_now:
        verb = "REMOVE"
    elif not was:
        verb = "ADD"
    elif stops:
        verb = "DELETE"
    else:
        verb = "UPDATE"

    return LogLine(f"SyncLoop {verb}", {"source": "api", "pods": [_reference(event.key)]}, 2)


def node_change(event: WatchEvent) -> LogLine:
    if event.new is None:
        verb = "Delete"
    elif event.old is not None:
        verb = "Update"
    else:
        verb = "Add"
    return LogLine(f"{verb} event for node", {"node": event.key.name}, 4 if verb == "Update" else 3)


def any_change(event: WatchEvent) -> LogLine | None:
    """Describe a change of the resource that a controller syncs, where upstream says nothing of
    it."""
    if event.key.resource == "pods":  # which every other controller watches
        return None
    if event.new is None:
        verb = "Deleting"
    elif event.old is not None:
        verb = "Updating"
    else:
        verb = "Adding"
    return LogLine(verb, {event.key.resource.partition(".")[0]: _reference(event.key)})


_TAINTED_NODE = ("Noticed node update", "Noticed node update", "Noticed node deletion")
_TAINTED_POD = ("Noticed pod update", "Noticed pod update", "Noticed pod deletion")
_REPLICA_SET_POD = ("Pod created", "Pod objectMeta updated.", "Pod deleted")
_REVISION = (
    "Observed a ControllerRevision",
    "Observed an update to a ControllerRevision",
    "ControllerRevision deleted",
)
CHANGES: Mapping[tuple[str, str], Describe] = {
    ("kubelet", "pods"): kubelet_pod_change,
    ("kubelet", "nodes"): lambda event: None,
    ("node-lifecycle-controller", "nodes"): change(
        "node", "Controller observed a new Node", deleted="Controller observed a Node deletion"
    ),
    ("taint-eviction-controller", "nodes"): change("node", *_TAINTED_NODE),
    ("taint-eviction-controller", "pods"): change("pod", *_TAINTED_POD),
    ("daemonset-controller", "daemonsets.apps"): change(
        "daemonset", "Adding daemon set", "Updating daemon set", "Deleting daemon set"
    ),
    ("daemonset-controller", "pods"): change(
        "pod", "Pod added", "Pod updated", "Pod deleted", owner="DaemonSet"
    ),
    ("daemonset-controller", "nodes"): change(
        "node", "Queuing node addition", "Queuing node update"
    ),
    ("daemonset-controller", "controllerrevisions.apps"): change(
        "controllerRevision", *_REVISION, owner="DaemonSet"
    ),
    ("replicaset-controller", "replicasets.apps"): replica_set_change,
    ("replicaset-controller", "pods"): change("pod", *_REPLICA_SET_POD, owner="ReplicaSet"),
    ("replication-controller", "replicationcontrollers"): replica_set_change,
    ("replication-controller", "pods"): change(
        "pod", *_REPLICA_SET_POD, owner="ReplicationController"
    ),
    ("deployment-controller", "deployments.apps"): change(
        "deployment", "Adding deployment", "Updating deployment", "Deleting deployment"
    ),
    ("deployment-controller", "replicasets.apps"): change(
        "replicaSet",
        "ReplicaSet added",
        "ReplicaSet updated",
        "ReplicaSet deleted",
        owner="Deployment",
    ),
    ("deployment-controller", "pods"): change("pod", deleted="Pod deleted", owner="ReplicaSet"),
    ("statefulset-controller", "statefulsets.apps"): stateful_set_change,
    ("statefulset-controller", "pods"): stateful_pod_change,
    ("pv-protection-controller", "persistentvolumes"): change("PV", *("Got event on PV",) * 3),
    ("pvc-protection-controller", "persistentvolumeclaims"): change(
        "pvc", *("Got event on PVC",) * 3
    ),
    ("job-controller", "jobs.batch"): change("key", *("enqueueing job",) * 3),
    ("ttl-after-finished-controller", "jobs.batch"): change("job", "Adding job", "Updating job"),
    ("disruption-controller", "poddisruptionbudgets.policy"): change(
        "podDisruptionBudget", "Add DB", "Update DB", "Remove DB"
    ),
    ("disruption-controller", "pods"): change(
        "pod", "AddPod called on pod", "UpdatePod called on pod", "DeletePod called on pod"
    ),
    ("default-scheduler", "nodes"): node_change,
    ("default-scheduler", "pods"): scheduler_pod_change,
}

# --- syncs ----------------------------------------------------------------------------------------

SYNCS: Mapping[str, SyncWords] = {
    "kubelet": SyncWords("pod", "SyncPod exit", started="SyncPod enter"),
    "garbage-collector-controller": SyncWords("item", "Processed item", started="Processing item"),
    "namespace-controller": SyncWords("namespace", "Finished syncing namespace"),
    "resourcequota-controller": SyncWords("key", "Finished syncing resource quota"),
    "daemonset-controller": SyncWords("daemonset", "Finished syncing daemon set", "time"),
    "replicaset-controller": SyncWords(values={"kind": "ReplicaSet"}),
    "replication-controller": SyncWords(values={"kind": "ReplicationController"}),
    "deployment-controller": SyncWords(
        "deployment", "Finished syncing deployment", started="Started syncing deployment"
    ),
    "statefulset-controller": SyncWords("key", "Finished syncing statefulset", "time"),
    "persistentvolume-binder-controller": SyncWords(
        "volumeName", "Synchronized PersistentVolume", started="Synchronizing PersistentVolume"
    ),
    "persistentvolumeclaim-binder-controller": SyncWords(
        "PVC", "Synchronized PersistentVolumeClaim", started="Synchronizing PersistentVolumeClaim"
    ),
    "pv-protection-controller": SyncWords("PV", "Finished processing PV", "cost", "Processing PV"),
    "pvc-protection-controller": SyncWords(
        "PVC", "Finished processing PVC", started="Processing PVC"
    ),
    "job-controller": SyncWords("key", "Finished syncing job", "elapsed"),
    "cronjob-controller": SyncWords("cronjob", "Finished syncing cronjob"),
    "ttl-after-finished-controller": SyncWords(
        "job", "Checked Job", started="Checking if Job is ready for cleanup"
    ),
    "horizontal-pod-autoscaler-controller": SyncWords(
        "HPA", "Finished syncing horizontal pod autoscaler"
    ),
    "serviceaccount-controller": SyncWords("namespace", "Finished syncing namespace"),
    "root-ca-certificate-publisher-controller": SyncWords(
        "namespace", "Finished syncing namespace"
    ),
    "service-lb-controller": SyncWords("service", "Finished syncing service"),
    "disruption-controller": SyncWords("key", "Finished syncing PodDisruptionBudget"),
    "endpoint-slice-controller": SyncWords(
        "key", "Finished syncing service endpoint slices", "elapsedTime"
    ),
    "endpoint-controller": SyncWords("service", "Finished syncing service endpoints"),
    "endpoint-slice-mirroring-controller": SyncWords(
        "key", "Finished syncing EndpointSlices for Endpoints", "elapsedTime", "syncEndpoints"
    ),
    "default-scheduler": SyncWords(
        "pod", "Finished scheduling pod", started="Attempting to schedule pod", level=3
    ),
}


_NODE = SyncWords(
    "node", "Finished syncing node"
)  # of controllers that sync nodes beside their own objects


class LoggedReconciler:
    """A reconciler whose handlers and syncs are logged."""

    def __init__(self, reconciler: Reconciler, logger: Logger) -> None:
        self.name = reconciler.name
        self.reconciler = reconciler
        self._logger = logger
        self._words = SYNCS.get(self.name, SyncWords(values={"controller": self.name}))
        self._place = place_of(reconciler.sync.__code__)

    @property
    def queue(self) -> WorkQueue[Key]:
        return self.reconciler.queue

    def handlers(self) -> Mapping[str, Handler]:
        """Return the reconciler's handlers, each behind one that logs its changes, if there are
        words for them."""
        handlers = dict(self.reconciler.handlers())
        synced = next(iter(handlers), "")
        for resource, handler in handlers.items():
            describe = CHANGES.get(
                (self.name, resource), any_change if resource == synced != "*" else None
            )
            if describe is not None:
                handlers[resource] = self._logged(handler, describe)
        return handlers

    def _logged(self, handler: Handler, describe: Describe) -> Handler:
        code = getattr(handler, "__code__", None)
        own = self.reconciler.sync.__code__.co_filename
        if code is None or code.co_filename != own:  # a shared handler: say whose it is
            code = self.reconciler.handlers.__code__
        place = place_of(code)

        def handle(event: WatchEvent) -> object:
            line = describe(event)
            if line:
                self._logger.info(line.level, place, line.message, line.values)
            return handler(event)

        return handle

    def sync(self, key: Key) -> None:
        """Log the beginning and the end of a sync, and its error."""
        words = self._words if key.resource != "nodes" or self._words.label == "key" else _NODE
        start = self._logger.clock.now()
        label: dict[str, Value] = {words.label: _reference(key)}
        if self.name == "garbage-collector-controller":  # its keys are of all resources
            label = {"item": f"[{key.resource}, namespace: {key.namespace}, name: {key.name}]"}
        if words.started:
            started: dict[str, Value] = (
                {"startTime": start} if words.started.startswith("Started") else {}
            )
            self._logger.info(words.level, self._place, words.started, {**label, **started})

        try:
            self.reconciler.sync(key)
        except Exception as error:
            self._logger.info(
                2,
                self._place,
                "Error syncing",
                {"controller": self.name, **label, "err": str(error)},
            )
            raise
        finally:
            elapsed = self._logger.clock.now() - start
            self._logger.info(
                words.level,
                self._place,
                words.finished,
                {**words.values, **label, words.elapsed: elapsed},
            )


class LoggedRememberingReconciler(LoggedReconciler):
    """A reconciler with a memory (see ``Remembering``)."""

    reconciler: Any

    def remember(self) -> Any:
        return self.reconciler.remember()

    def recall(self, memory: Any) -> None:
        self.reconciler.recall(memory)


def logging(
    new_reconciler: Callable[[Context], Reconciler], logger: Logger
) -> Callable[[Context], Reconciler]:
    """Return what builds a reconciler that logs what the one does that ``new_reconciler``
    builds."""

    def build(context: Context) -> Reconciler:
        reconciler = new_reconciler(context)
        if isinstance(reconciler, Remembering):
            return LoggedRememberingReconciler(reconciler, logger)
        return LoggedReconciler(reconciler, logger)

    return build
