"""Deletes pods from nodes with NoExecute taints that they don't tolerate, or don't tolerate any
longer.

Upstream: ``pkg/controller/tainteviction``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from kubepy.api.clock import format_micro_time, later, parse_time
from kubepy.api.errors import NotFound
from kubepy.api.meta import name_of, namespace_of
from kubepy.api.objects.nodes import NO_EXECUTE, taints_of, tolerates
from kubepy.api.objects.pods import node_name
from kubepy.controllers.pod_control import add_disruption_target
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import NODES, PODS
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod, Taint, Toleration


class TaintEvictionController:
    """Reconciles pods on tainted nodes. A key is a pod, or a node whose pods are looked at."""

    name = "taint-eviction-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._nodes = context.informers.lister(NODES)
        self._pods = context.informers.lister(PODS)
        self._clock = context.clock
        self._recorder = Recorder(context.client, self.name)
        self._evictions: dict[Key, datetime] = {}  # scheduled evictions: pod → time
        self.queue = context.new_queue()

    def remember(self) -> Any:
        """Return the scheduled evictions as JSON."""
        return [[*key, format_micro_time(due)] for key, due in sorted(self._evictions.items())]

    def recall(self, memory: Any) -> None:
        """Take over the JSON of :meth:`remember`."""
        for resource, namespace, name, due in memory:
            self._evictions.setdefault(Key(resource, namespace, name), parse_time(due))

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {NODES: self._node_changed, PODS: self._pod_changed}

    def _node_changed(self, event: WatchEvent) -> None:
        """Reconcile a node whose NoExecute taints changed, or may have changed while no manager was
        running."""
        old = cast("Node | None", event.old)
        new = cast("Node | None", event.new)
        is_unknown = old is None and bool(self._evictions)
        if is_unknown or no_execute_taints(old) != no_execute_taints(new):
            self.queue.add(event.key)

    def _pod_changed(self, event: WatchEvent) -> None:
        old = cast("Pod | None", event.old)
        new = cast("Pod | None", event.new)
        if new is None:
            self._cancel(event.key, old)
        elif old is None or _tolerations_and_node(old) != _tolerations_and_node(new):
            node = self._nodes.get("", node_name(new))
            if event.key in self._evictions or no_execute_taints(node):
                self.queue.add(event.key)

    # --- sync

    def sync(self, key: Key) -> None:
        """Process a pod, or all pods of a node. Evictions from a deleted node stay scheduled."""
        if key.resource == NODES:
            node = self._nodes.get("", key.name)
            for pod_key in self._informers.pods_on(key.name) if node is not None else ():
                self._process(pod_key, no_execute_taints(node))
            return
        pod = self._pods.get(key.namespace, key.name)
        if pod is None or not node_name(pod):
            return
        node = self._nodes.get("", node_name(pod))
        if node is not None:
            self._process(key, no_execute_taints(node))
        elif (due := self._evictions.get(key)) is not None:
            self._schedule_eviction(key, pod, due)

    def _process(self, key: Key, taints: Sequence[Taint]) -> None:
        """Evict now, later, or not at all; a scheduled eviction keeps its time
        (``processPodOnNode``)."""
        pod = self._pods.get(key.namespace, key.name)
        if pod is None:
            return
        seconds = tolerated_seconds(taints, pod["spec"].get("tolerations") or ())
        now = self._clock.now()
        if seconds is None:
            self._cancel(key, pod)
        elif seconds > 0:
            self._schedule_eviction(key, pod, self._evictions.get(key, later(now, seconds)))
        else:
            self._cancel(key, pod)
            self._evict(key, pod, now)

    def _schedule_eviction(self, key: Key, pod: Pod, due: datetime) -> None:
        now = self._clock.now()
        if due > now:
            self._evictions[key] = due
            self.queue.add_at(key, due)
        else:
            self._evict(key, pod, now)

    def _cancel(self, key: Key, pod: Pod | None) -> None:
        self.queue.cancel(key)
        if self._evictions.pop(key, None) is not None and pod is not None:
            message = f"Cancelling deletion of Pod {namespace_of(pod)}/{name_of(pod)}"
            self._recorder.event(pod, "Normal", "TaintManagerEviction", message)

    def _evict(self, key: Key, pod: Pod, now: datetime) -> None:
        self._evictions.pop(key, None)
        message = f"Marking for deletion Pod {namespace_of(pod)}/{name_of(pod)}"
        self._recorder.event(pod, "Normal", "TaintManagerEviction", message)
        with suppress(NotFound):
            add_disruption_target(
                self._client,
                pod,
                "DeletionByTaintManager",
                "Taint manager: deleting due to NoExecute taint",
                now,
            )
            self._client.delete(PODS, name_of(pod), namespace=namespace_of(pod))


def no_execute_taints(node: Node | None) -> list[Taint]:
    if node:
        return [taint for taint in taints_of(node) if taint.get("effect") == NO_EXECUTE]
    return []


def tolerated_seconds(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> float | None:
    """Return how many seconds a pod tolerates these taints: None for ever, 0 not at all
    (``getMinTolerationTime``)."""
    shortest: float | None = None
    for taint in taints:
        toleration = next(
            (toleration for toleration in tolerations if tolerates(toleration, taint)), None
        )
        if toleration is None:
            return 0
        seconds = toleration.get("tolerationSeconds")
        if seconds is not None:
            shortest = max(seconds, 0) if shortest is None else min(shortest, max(seconds, 0))
    return shortest


def _tolerations_and_node(pod: Pod) -> tuple[Any, str]:
    return pod["spec"].get("tolerations"), node_name(pod)
