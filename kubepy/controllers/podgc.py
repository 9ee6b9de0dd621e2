"""Deletes pods that no kubelet will ever finish (``pkg/controller/podgc``).

These are pods of a node that has not existed for 40 s; pods being deleted that were never
scheduled; pods being deleted on a node that is not ready and tainted out-of-service; and of pods
that have ended, the oldest beyond 12500.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.clock import format_micro_time, parse_time
from kubepy.api.errors import NotFound
from kubepy.api.meta import is_being_deleted, name_of, namespace_of
from kubepy.api.objects.nodes import is_node_ready, taints_of
from kubepy.api.objects.pods import TERMINAL_PHASES, is_pod_terminal, node_name, phase_of
from kubepy.apiserver.request import DeleteOptions
from kubepy.controllers.pod_control import add_disruption_target
from kubepy.runtime.informers import NODES, PODS, Query
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod

QUARANTINE = timedelta(seconds=40)  # the node may be created again
TERMINATED_POD_THRESHOLD = 12500
ALL_TERMINATED = Key(PODS, "", "")  # stands for all pods that have ended
TAINT_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
AT_ONCE = DeleteOptions(grace_period_seconds=0)


class PodGarbageCollector:
    """Reconciles pods, nodes that pods name, and all terminated pods together."""

    name = "pod-garbage-collector-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._nodes = context.informers.lister(NODES)
        self._pods = context.informers.lister(PODS)
        self._clock = context.clock
        self._missing: dict[
            str, datetime
        ] = {}  # nodes that pods name and that don't exist: since when
        self._terminated = context.informers.add_index(
            PODS,
            lambda pod: ("", None) if is_pod_terminal(pod) else None,
            lambda _: [Query(PODS, None, "phase", phase) for phase in sorted(TERMINAL_PHASES)],
        )
        self.queue = context.new_queue()

    def remember(self) -> Any:
        """Return the missing nodes as JSON."""
        return {node: format_micro_time(since) for node, since in sorted(self._missing.items())}

    def recall(self, memory: Any) -> None:
        """Take over the JSON of :meth:`remember`."""
        for node, since in memory.items():
            self._missing.setdefault(node, parse_time(since))

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {NODES: self._node_changed, PODS: self._pod_changed}

    def _node_changed(self, event: WatchEvent) -> None:
        node = cast("Node | None", event.new)
        if node is None or event.key.name in self._missing or is_out_of_service(node):
            self.queue.add(event.key)

    def _pod_changed(self, event: WatchEvent) -> None:
        pod = cast("Pod | None", event.new)
        if pod is None:
            return
        if is_pod_terminal(pod) and len(self._terminated.group("")) > TERMINATED_POD_THRESHOLD:
            self.queue.add(ALL_TERMINATED)
        name = node_name(pod)
        node = self._nodes.get("", name) if name else None
        if name and node is None:
            self.queue.add(Key(NODES, "", name))
        elif is_being_deleted(pod) and (node is None or is_out_of_service(node)):
            self.queue.add(event.key)

    # --- sync

    def sync(self, key: Key) -> None:
        if key == ALL_TERMINATED:
            terminated = list(self._pods.at(self._terminated.group("")))
            for pod in surplus(terminated, TERMINATED_POD_THRESHOLD):
                self._delete(pod)
        elif key.resource == PODS:
            self._collect_terminating(key)
        elif (node := self._nodes.get("", key.name)) is None:
            self._collect_orphaned(key)
        else:
            self._missing.pop(key.name, None)
            for pod_key in self._informers.pods_on(key.name) if is_out_of_service(node) else ():
                self._collect_terminating(pod_key)

    def _collect_orphaned(self, key: Key) -> None:
        """Delete the pods of a missing node after the quarantine (``gcOrphaned``)."""
        pods = self._informers.pods_on(key.name)
        if not pods:
            self._missing.pop(key.name, None)
            return
        now = self._clock.now()
        due = self._missing.setdefault(key.name, now) + QUARANTINE
        if due > now:
            self.queue.add_at(key, due)
            return
        try:
            self._client.get(
                NODES, key.name
            )  # once more, and raises what keeps a node from being read
        except NotFound:
            for pod in self._pods.at(pods):
                self._delete(pod, "PodGC: node no longer exists")

        self._missing.pop(key.name, None)

    def _collect_terminating(self, key: Key) -> None:
        """Delete a terminating pod without a working node (``gcUnscheduledTerminating``,
        ``gcTerminating``)."""
        pod = self._pods.get(key.namespace, key.name)
        if pod is None or not is_being_deleted(pod):
            return
        if not node_name(pod):
            self._delete(pod)
            return
        node = self._nodes.get("", node_name(pod))
        if node is not None and is_out_of_service(node):
            self._delete(pod)

    def _delete(self, pod: Pod, message: str = "") -> None:
        """Mark the pod failed, since no kubelet will, and delete it at once
        (``markFailedAndDeletePod``).

        With a message the pod gets a DisruptionTarget condition.
        """
        namespace = namespace_of(pod)
        with suppress(NotFound):
            if not is_pod_terminal(pod):
                if message:
                    add_disruption_target(
                        self._client,
                        pod,
                        "DeletionByPodGC",
                        message,
                        self._clock.now(),
                        phase="Failed",
                    )
                else:
                    status = {**(pod.get("status") or {}), "phase": "Failed"}
                    self._client.update(
                        PODS, {**pod, "status": status}, namespace=namespace, subresource="status"
                    )
            self._client.delete(PODS, name_of(pod), namespace=namespace, options=AT_ONCE)


def surplus(ended: list[Pod], kept: int) -> list[Pod]:
    """Return the pods to delete so that ``kept`` are left: first those that a kubelet evicted, then
    the oldest."""

    def order(pod: Pod) -> tuple[bool, str, str, str]:
        was_evicted = (
            phase_of(pod) == "Failed" and (pod.get("status") or {}).get("reason") == "Evicted"
        )
        return (
            not was_evicted,
            pod["metadata"].get("creationTimestamp", ""),
            name_of(pod),
            namespace_of(pod),
        )

    return sorted(ended, key=order)[: max(len(ended) - kept, 0)]


def is_out_of_service(node: Node) -> bool:
    """Tell whether a node is not ready and an administrator has tainted it as out of service."""
    if is_node_ready(node):
        return False
    return any(taint["key"] == TAINT_OUT_OF_SERVICE for taint in taints_of(node))
