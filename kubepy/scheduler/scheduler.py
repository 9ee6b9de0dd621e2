"""The scheduler as a reconciler: a key is a pod without a node. Everything that is written is written here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubepy.api.errors import NotFound
from kubepy.api.meta import Object, annotations_of, is_being_deleted, name_of, namespace_of, uid_of
from kubepy.api.objects.pods import is_pod_terminal, node_name, priority, set_condition
from kubepy.api.objects.volumes import CLAIMS, CLASSES, SELECTED_NODE, VOLUMES, with_claim
from kubepy.runtime.event_series import SeriesRecorder
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent
from kubepy.scheduler.cache import Cache, NodeInfo, PodInfo, pod_info
from kubepy.scheduler.changes import namespace_event, node_event, pod_event, volume_event, waiting_pod_event
from kubepy.scheduler.fit import Diagnosis, Search, fit_message, search
from kubepy.scheduler.framework import ClusterEvent, View
from kubepy.scheduler.plugins import PLUGINS
from kubepy.scheduler.plugins.volumelimits import CSI_NODES
from kubepy.scheduler.plugins.volumes import Claims, Plan, VolumeBinding, plan
from kubepy.scheduler.preemption import BUDGETS, PREEMPTED, Candidate, Preemption, preempt
from kubepy.scheduler.queue import Rank, SchedulingQueue, Waiting, WaitingPods
from kubepy.scheduler.scores import best_node

NO_NODES = "no nodes available to schedule pods"
READ_ONLY = ("services", "replicasets.apps", "statefulsets.apps", BUDGETS)  # looked at, wake nobody

BY_NAME = {plugin.name: plugin for plugin in PLUGINS}


class Scheduler:
    """kube-scheduler with the default profile; pods that name another scheduler are left alone."""

    name = "default-scheduler"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._clock = context.clock
        self._recorder = SeriesRecorder(context.client, self.name)
        self.queue = SchedulingQueue(context.clock.now, self._rank)
        self._waiting = WaitingPods({plugin.name: plugin.wakes_on for plugin in PLUGINS})
        self._view: View | None = None
        self._start = 0  # the node to look at first, so that a large cluster is used evenly

    # --- what changed → what to look at

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "nodes": self._node_changed,
            "pods": self._pod_changed,
            "namespaces": lambda event: self._wake(namespace_event(event)),
            **dict.fromkeys((CLAIMS, VOLUMES, CLASSES, CSI_NODES), self._volume_changed),
            **dict.fromkeys(READ_ONLY, _ignore),
        }

    def _rank(self, key: Key) -> Rank:
        """By priority, then age (``PrioritySort``), which the UIDs tell of pods of one second."""
        pod = self._informers.get(*key)
        if pod is None:
            return (0, "", "")
        return (-priority(pod), pod["metadata"].get("creationTimestamp") or "", uid_of(pod))

    def _node_changed(self, event: WatchEvent) -> None:
        self._cluster().cache.set_node(event.key.name, event.new)
        self._wake(node_event(event))

    def _pod_changed(self, event: WatchEvent) -> None:
        key, old, new = event.key, event.old, event.new
        self._cluster().cache.set_pod(key, new)
        if new is None or not self._is_ours(new):
            self._waiting.discard(key)
        elif old is None or (waiting := self._waiting.get(key)) is None:
            if old is None or old["spec"] != new["spec"]:
                self._enqueue(key)
        elif self._could_help(new, waiting, waiting_pod_event(old, new)):
            self._enqueue(key)
        self._wake(pod_event(event))

    def _volume_changed(self, event: WatchEvent) -> None:
        self._wake(volume_event(event))

    def _is_ours(self, pod: Object) -> bool:
        """Whether the pod is to be scheduled, now or later, and by us."""
        spec = pod["spec"]
        if node_name(pod) or is_being_deleted(pod) or is_pod_terminal(pod):
            return False
        return spec.get("schedulerName", self.name) == self.name and not spec.get("schedulingGates")

    def _enqueue(self, key: Key) -> None:
        self._waiting.discard(key)
        self.queue.add(key)

    def _wake(self, event: ClusterEvent) -> None:
        """Try those waiting pods again that a change could help."""
        if not event.actions:
            return
        for key in self._waiting.interested(event.actions):
            pod, waiting = self._informers.get(*key), self._waiting.get(key)
            if pod is None or waiting is None:
                self._waiting.discard(key)
            elif self._could_help(pod, waiting, event):
                self._enqueue(key)

    def _could_help(self, pod: Object, waiting: Waiting, event: ClusterEvent) -> bool:
        if not event.actions:
            return False
        if not waiting.plugins:
            return True
        plugins = [BY_NAME[name] for name in waiting.plugins if BY_NAME[name].wakes_on & event.actions]
        if _is_elsewhere(event, waiting):
            plugins = [plugin for plugin in plugins if not plugin.looks_at_node_only]
        if not plugins or event.unknown:
            return bool(plugins)
        info = pod_info(pod)
        return any(plugin.may_help(info, event) for plugin in plugins)

    # --- what waits, from one process to the next

    def remember(self) -> list[list[Any]]:
        return self._waiting.remember()

    def recall(self, memory: list[list[Any]]) -> None:
        self._waiting.recall(memory)

    # --- one pod

    def sync(self, key: Key) -> None:
        pod = self._informers.get(*key)
        if pod is None or not self._is_ours(pod):
            return
        view = self._cluster()
        if not (number := len(view.cache.nodes())):
            self._fail(key, pod, Diagnosis(), NO_NODES, Preemption("", nominate=True))
            return
        info = PodInfo(key, pod)
        assumed = view.cache.withdraw(key, pod)
        found = search(info, view, PLUGINS, self._start % number)
        self._start += len(found.feasible) + len(found.diagnosis.nodes)
        if found.feasible:
            promised = next((node for node in found.feasible if node.name == assumed), None)
            self._place(found, promised or best_node(info, found.feasible, view))
        else:
            self._reject(key, found, number)

    def _cluster(self) -> View:
        """What runs where; counted once from what the informers hold, then kept up to date by the handlers."""
        if self._view is None:
            cache = Cache()
            for node in self._informers.list("nodes"):
                cache.set_node(name_of(node), node)
            for pod in self._informers.list("pods"):
                cache.set_pod(Key("pods", namespace_of(pod), name_of(pod)), pod)
            self._view = View(cache, self._informers)
        return self._view

    def _place(self, found: Search, node: NodeInfo) -> None:
        key = found.cycle.pod.key
        if (wanted := _volumes_to_bind(found, node)) is not None:
            self._cluster().cache.assume(key, found.cycle.pod.pod, node.name)
            self._bind_volumes(key, wanted, node.name)
            return
        self._client.bind(key.name, node.name, namespace=key.namespace)
        message = f"Successfully assigned {key.namespace}/{key.name} to {node.name}"
        self._recorder.event(found.cycle.pod.pod, "Normal", "Scheduled", "Binding", message)

    def _bind_volumes(self, key: Key, wanted: Plan, node: str) -> None:
        """Reserve the volumes that are there and ask for the others; the pod is tried again, on
        its node first, when all are bound."""
        self._waiting.add(key, Waiting(frozenset({VolumeBinding.name}), None))
        for volume, claim in wanted.bindings:
            bound = with_claim(volume, claim)
            if bound is not volume:
                self._client.update(VOLUMES, bound)
        for claim in wanted.provisions:
            if annotations_of(claim).get(SELECTED_NODE) != node:
                meta = {**claim["metadata"], "annotations": {**annotations_of(claim), SELECTED_NODE: node}}
                self._client.update(CLAIMS, {**claim, "metadata": meta}, namespace=key.namespace)

    def _reject(self, key: Key, found: Search, number: int) -> None:
        preemption = preempt(found.cycle, found.diagnosis)
        message = fit_message(number, found.diagnosis, preemption.message)
        self._fail(key, found.cycle.pod.pod, found.diagnosis, message, preemption)
        if preemption.candidate is not None:
            self._evict(found.cycle.pod, preemption.candidate)

    def _fail(self, key: Key, pod: Object, diagnosis: Diagnosis, message: str, preemption: Preemption) -> None:
        """Let the pod wait, and say why."""
        self._waiting.add(key, Waiting(diagnosis.plugins, diagnosis.candidates))
        self._recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", message)
        condition = {"lastProbeTime": None, "message": message, "reason": "Unschedulable", "status": "False",
                     "type": "PodScheduled"}  # fmt: skip
        nominated = preemption.candidate.node if preemption.candidate is not None else ""
        self._write_condition(pod, condition, nominated if preemption.nominate else None)

    def _write_condition(self, pod: Object, condition: Object, nominated: str | None) -> None:
        """Set a condition and, unless None, the nominated node; what changes nothing is not written."""
        status = dict(pod.get("status") or {})
        status["conditions"] = list(status.get("conditions") or ())
        if generation := pod["metadata"].get("generation"):
            condition = {**condition, "observedGeneration": generation}
        changed = set_condition(status["conditions"], condition, self._clock.now())
        if nominated is not None and nominated != status.pop("nominatedNodeName", ""):
            changed = True
        if nominated:
            status["nominatedNodeName"] = nominated
        if changed:
            self._client.update("pods", {**pod, "status": status}, namespace=namespace_of(pod), subresource="status")

    # --- making room

    def _evict(self, pod: PodInfo, candidate: Candidate) -> None:
        """Delete the victims; pods of lower priority that were promised the node are promised nothing any more."""
        for other in list(self._cluster().cache.nominated(candidate.node)):
            if other.priority < pod.priority:
                status = {key: value for key, value in other.pod["status"].items() if key != "nominatedNodeName"}
                self._client.update("pods", {**other.pod, "status": status}, namespace=other.namespace,
                                    subresource="status")  # fmt: skip
        for victim in candidate.victims:
            if not is_being_deleted(victim.pod):
                self._evict_one(pod, victim, candidate.node)

    def _evict_one(self, pod: PodInfo, victim: PodInfo, node: str) -> None:
        message = f"{self.name}: preempting to accommodate a higher priority pod"
        condition = {"lastProbeTime": None, "message": message, "reason": PREEMPTED, "status": "True",
                     "type": "DisruptionTarget"}  # fmt: skip
        try:
            self._write_condition(victim.pod, condition, None)
            self._client.delete("pods", victim.key.name, namespace=victim.namespace)
        except NotFound:
            return
        text = f"Preempted by pod {uid_of(pod.pod)} on node {node}"
        self._recorder.event(victim.pod, "Normal", "Preempted", "Preempting", text, related=pod.pod)


def _volumes_to_bind(found: Search, node: NodeInfo) -> Plan | None:
    """What must be done about the pod's claims before it can go to the node; None for nothing."""
    states = (state for _, state in found.cycle.states if isinstance(state, Claims) and state.delayed)
    return next((plan(state, node.node or {}) for state in states), None)


def _is_elsewhere(event: ClusterEvent, waiting: Waiting) -> bool:
    """Whether something happened to a pod on a node that the waiting one, a daemon's, cannot run on anyway."""
    is_pod = (event.new or event.old or {}).get("kind") == "Pod"
    return is_pod and bool(event.node) and waiting.nodes is not None and event.node not in waiting.nodes


def _ignore(event: WatchEvent) -> None:
    """For objects that are only looked at: the informers keep what somebody watches."""
