"""The scheduler as a reconciler: a key is a pod without a node. This module alone writes to the
cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.errors import Conflict, NotFound, Status
from kubepy.api.meta import Object, annotations_of, is_being_deleted, uid_of
from kubepy.api.objects.pods import is_pod_terminal, node_name, priority, set_condition
from kubepy.api.objects.volumes import SELECTED_NODE, with_claim
from kubepy.runtime.event_series import SeriesRecorder
from kubepy.runtime.informers import (
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    ResourceClient,
)
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent
from kubepy.scheduler.cache import Cache, NodeInfo, PodInfo, pod_info
from kubepy.scheduler.cluster_events import (
    namespace_event,
    node_event,
    pod_event,
    unscheduled_pod_event,
    volume_event,
)
from kubepy.scheduler.framework import ClusterEvent, Handle
from kubepy.scheduler.plugins import FILTER_PLUGINS
from kubepy.scheduler.plugins.volumelimits import CSI_NODES
from kubepy.scheduler.plugins.volumes import (
    PodVolumeClaims,
    PodVolumes,
    VolumeBinding,
    find_pod_volumes,
)
from kubepy.scheduler.preemption import BUDGETS, PREEMPTED, Candidate, PostFilterResult, preempt
from kubepy.scheduler.queue import QueuedPodInfo, Rank, SchedulingQueue, UnschedulablePods
from kubepy.scheduler.schedule_one import (
    Diagnosis,
    FitResult,
    find_nodes_that_fit_pod,
    fit_error_message,
)
from kubepy.scheduler.scores import select_host

if TYPE_CHECKING:
    from kubepy.api.typed import Pod

NO_NODES = "no nodes available to schedule pods"
READ_ONLY = (
    "services",
    "replicasets.apps",
    "statefulsets.apps",
    BUDGETS,
)  # read by plugins; their changes help no pod

BY_NAME = {plugin.name: plugin for plugin in FILTER_PLUGINS}


class Scheduler:
    """kube-scheduler with the default profile; pods that name another scheduler are left alone."""

    name = "default-scheduler"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._nodes = context.informers.lister(NODES)
        self._pods = context.informers.lister(PODS)
        self._pod_client = ResourceClient(context.client, PODS)
        self._claim_client = ResourceClient(context.client, PERSISTENT_VOLUME_CLAIMS)
        self._volume_client = ResourceClient(context.client, PERSISTENT_VOLUMES)
        self._clock = context.clock
        self._recorder = SeriesRecorder(context.client, self.name)
        self.queue = SchedulingQueue(context.clock.now, self._rank)
        self._unschedulable = UnschedulablePods(
            {plugin.name: plugin.events_to_register for plugin in FILTER_PLUGINS}
        )
        self._shared_handle: Handle | None = None
        self._next_start_node_index = 0  # so that a large cluster is used evenly

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        def volume_changed(event: WatchEvent) -> None:
            self._move_to_queue(volume_event(event))

        return {
            NODES: self._node_changed,
            PODS: self._pod_changed,
            NAMESPACES: lambda event: self._move_to_queue(namespace_event(event)),
            **dict.fromkeys(
                (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, CSI_NODES),
                volume_changed,
            ),
            **dict.fromkeys(READ_ONLY, lambda event: None),  # so that informers hold them
        }

    def _rank(self, key: Key) -> Rank:
        """Rank by priority, then age (``PrioritySort``); of pods of the same second the one that
        has waited longest since it changed comes first."""
        pod = self._pods.get(key.namespace, key.name)
        if pod is None:
            return (0, "", 0)
        return (
            -priority(pod),
            pod["metadata"].get("creationTimestamp") or "",
            int(pod["metadata"].get("resourceVersion") or 0),
        )

    def _node_changed(self, event: WatchEvent) -> None:
        self._move_to_queue(node_event(event))

    def _pod_changed(self, event: WatchEvent) -> None:
        key = event.key
        old = cast("Pod | None", event.old)
        new = cast("Pod | None", event.new)
        if new is None or not self._is_responsible_for(new):
            self._unschedulable.discard(key)
        elif old is None or (queued := self._unschedulable.get(key)) is None:
            if old is None or old["spec"] != new["spec"]:
                self._enqueue(key)
        elif self._is_worth_requeuing(new, queued, unscheduled_pod_event(old, new)):
            self._enqueue(key)
        if self._unschedulable:
            self._move_to_queue(pod_event(event))

    def _is_responsible_for(self, pod: Pod) -> bool:
        """Tell whether this scheduler is to schedule the pod, now or later."""
        spec = pod["spec"]
        if node_name(pod) or is_being_deleted(pod) or is_pod_terminal(pod):
            return False
        if spec.get("schedulerName", self.name) != self.name:
            return False
        return not spec.get("schedulingGates")

    def _enqueue(self, key: Key) -> None:
        self._unschedulable.discard(key)
        self.queue.add(key)

    def _move_to_queue(self, event: ClusterEvent) -> None:
        """Try those unschedulable pods again that an event could help
        (``MoveAllToActiveOrBackoffQueue``)."""
        if not event.actions:
            return
        for key in self._unschedulable.registered_for(event.actions):
            pod = self._pods.get(key.namespace, key.name)
            queued = self._unschedulable.get(key)
            if pod is None or queued is None:
                self._unschedulable.discard(key)
            elif self._is_worth_requeuing(pod, queued, event):
                self._enqueue(key)

    def _is_worth_requeuing(self, pod: Pod, queued: QueuedPodInfo, event: ClusterEvent) -> bool:
        """Tell whether an event could make the pod schedulable (``isPodWorthRequeuing``)."""
        if not event.actions:
            return False
        if not queued.unschedulable_plugins:
            return True
        plugins = [
            BY_NAME[name]
            for name in queued.unschedulable_plugins
            if BY_NAME[name].events_to_register & event.actions
        ]
        is_pod = (event.new or event.old or {}).get("kind") == "Pod"
        if (
            is_pod
            and event.node
            and queued.node_names is not None
            and event.node not in queued.node_names
        ):
            # This pod, of a DaemonSet, cannot run on the other pod's node anyway: what happened
            # there does not matter.
            plugins = [plugin for plugin in plugins if not plugin.looks_at_node_only]

        if not plugins or event.unknown:
            return bool(plugins)
        info = pod_info(pod)
        return any(plugin.queueing_hint(info, event) for plugin in plugins)

    # --- memory

    def remember(self) -> list[list[Any]]:
        """Return the unschedulable pods as JSON."""
        return self._unschedulable.remember()

    def recall(self, memory: list[list[Any]]) -> None:
        """Take over the unschedulable pods of another process."""
        self._unschedulable.recall(memory)

    # --- one pod

    def sync(self, key: Key) -> None:
        pod = self._pods.get(key.namespace, key.name)
        if pod is None or not self._is_responsible_for(pod):
            return
        handle = self._handle()
        number = handle.cache.count()
        if not number:
            self._handle_scheduling_failure(
                key, pod, Diagnosis(), PostFilterResult(NO_NODES, nominate=True)
            )
            return

        info = PodInfo(key, pod)
        assumed = handle.cache.forget(key)
        result = find_nodes_that_fit_pod(
            info, handle, FILTER_PLUGINS, self._next_start_node_index % number
        )
        self._next_start_node_index += len(result.feasible) + len(result.diagnosis.node_to_status)
        if result.feasible:
            assumed_node = next(
                (node_info for node_info in result.feasible if node_info.name == assumed), None
            )
            self._bind(result, assumed_node or select_host(info, result.feasible, handle))
            return

        post_filter = preempt(result.cycle, result.diagnosis)
        message = fit_error_message(number, result.diagnosis, post_filter.message)
        self._handle_scheduling_failure(
            key, pod, result.diagnosis, post_filter._replace(message=message)
        )
        if post_filter.candidate is not None:
            self._prepare_candidate(info, post_filter.candidate)

    def _handle(self) -> Handle:
        """Return what plugins read; made when it is first needed."""
        if self._shared_handle is None:
            self._shared_handle = Handle(
                Cache(self._informers), self._informers, self._client.settings.absent
            )
        return self._shared_handle

    def _bind(self, result: FitResult, node_info: NodeInfo) -> None:
        """Bind the pod to the node, or first its volumes; the pod is tried again when those are
        bound."""
        pod = result.cycle.pod
        key = result.cycle.pod.key
        delayed = (
            state
            for _, state in result.cycle.states
            if isinstance(state, PodVolumeClaims) and state.delayed
        )
        volumes = next((find_pod_volumes(claims, node_info.node or {}) for claims in delayed), None)
        if volumes is not None:
            self._handle().cache.assume(key, pod.pod, node_info.name)
            self._bind_volumes(key, volumes, node_info.name)
            return

        try:
            self._client.bind(key.name, node_info.name, namespace=key.namespace)
        except (Conflict, NotFound):
            raise
        except Status as error:  # a webhook has refused the binding, or could not be asked
            self._note_failure(
                pod.pod, f'running Bind plugin "DefaultBinder": {error}', "SchedulerError", None
            )
            raise

        message = f"Successfully assigned {key.namespace}/{key.name} to {node_info.name}"
        self._recorder.event(pod.pod, "Normal", "Scheduled", "Binding", message)

    def _bind_volumes(self, key: Key, volumes: PodVolumes, node: str) -> None:
        """Reserve the volumes that there are and ask for the others (``BindPodVolumes``).

        The pod is tried again, on its node first, when all are bound.
        """
        self._unschedulable.add(key, QueuedPodInfo(frozenset({VolumeBinding.name}), None))
        for volume, claim in volumes.static_bindings:
            bound = with_claim(volume, claim)
            if bound is not volume:
                self._volume_client.update(bound)
        for claim in volumes.dynamic_provisions:
            if annotations_of(claim).get(SELECTED_NODE) != node:
                annotations = {**annotations_of(claim), SELECTED_NODE: node}
                self._claim_client.update(
                    {**claim, "metadata": {**claim["metadata"], "annotations": annotations}}
                )

    def _handle_scheduling_failure(
        self, key: Key, pod: Pod, diagnosis: Diagnosis, result: PostFilterResult
    ) -> None:
        """Let the pod wait, and say why: ``result.message`` (``handleSchedulingFailure``)."""
        self._unschedulable.add(
            key, QueuedPodInfo(diagnosis.unschedulable_plugins, diagnosis.node_names)
        )
        nominated = result.candidate.node if result.candidate is not None else ""
        self._note_failure(
            pod, result.message, "Unschedulable", nominated if result.nominate else None
        )

    def _note_failure(self, pod: Pod, message: str, reason: str, nominated: str | None) -> None:
        """Say in an event and in a condition why a pod is not bound."""
        self._recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", message)
        condition = {"lastProbeTime": None, "message": message, "reason": reason, "status": "False",
                     "type": "PodScheduled"}  # fmt: skip
        self._update_pod_condition(pod, condition, nominated)

    def _update_pod_condition(self, pod: Pod, condition: Object, nominated: str | None) -> None:
        """Set a condition and, unless None, the nominated node; a status that stays the same is not
        written."""
        status: Object = {**(pod.get("status") or {})}
        status["conditions"] = list(status.get("conditions") or ())
        generation = pod["metadata"].get("generation")
        if generation:
            condition = {**condition, "observedGeneration": generation}
        changed = set_condition(status["conditions"], condition, self._clock.now())
        if nominated is not None and nominated != status.pop("nominatedNodeName", ""):
            changed = True
        if nominated:
            status["nominatedNodeName"] = nominated
        if changed:
            self._pod_client.update_status(pod, status)

    # --- preemption

    def _prepare_candidate(self, preemptor: PodInfo, candidate: Candidate) -> None:
        """Delete the victims, and clear the nomination of pods of lower priority for this node."""
        for other in list(self._handle().cache.nominated(candidate.node)):
            if other.priority < preemptor.priority:
                status = {
                    key: value
                    for key, value in other.pod["status"].items()
                    if key != "nominatedNodeName"
                }
                self._pod_client.update_status(other.pod, status)
        for victim in candidate.victims:
            if not is_being_deleted(victim.pod):
                self._preempt_pod(preemptor, victim, candidate.node)

    def _preempt_pod(self, preemptor: PodInfo, victim: PodInfo, node: str) -> None:
        message = f"{self.name}: preempting to accommodate a higher priority pod"
        condition = {
            "lastProbeTime": None,
            "message": message,
            "reason": PREEMPTED,
            "status": "True",
            "type": "DisruptionTarget",
        }
        try:
            self._update_pod_condition(victim.pod, condition, None)
            self._pod_client.delete(victim.pod)
        except NotFound:
            return

        note = f"Preempted by pod {uid_of(preemptor.pod)} on node {node}"
        self._recorder.event(
            victim.pod, "Normal", "Preempted", "Preempting", note, related=preemptor.pod
        )
