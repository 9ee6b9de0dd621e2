"""Annotates each node with the seconds for which its kubelet may cache objects, the more the larger the cluster.

Upstream (``pkg/controller/ttl``) moves to a lower step only some nodes below the limit at which it moved up; here the
step follows from the number of nodes alone, so that it does not depend on former states.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubepy.api.meta import annotations_of
from kubepy.runtime.informers import NODES
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

ANNOTATION = "node.alpha.kubernetes.io/ttl"
STEPS = ((100, 0), (500, 15), (1000, 30), (2000, 60))  # number of nodes up to which, seconds
LARGEST = 300


def ttl_seconds(nodes: int) -> int:
    return next((seconds for limit, seconds in STEPS if nodes <= limit), LARGEST)


class TTLController:
    """Reconciles nodes that change; a new step alone rewrites no nodes."""

    name = "ttl-controller"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._client = context.client
        self._informers = context.informers

    def handlers(self) -> Mapping[str, Handler]:
        return {NODES: self._node_changed}

    def _node_changed(self, event: WatchEvent) -> None:
        if event.new is not None and annotations_of(event.new).get(ANNOTATION) != self._ttl():
            self.queue.add(event.key)

    def sync(self, key: Key) -> None:
        node = self._informers.get(*key)
        if node is None or annotations_of(node).get(ANNOTATION) == self._ttl():
            return
        annotations = {**annotations_of(node), ANNOTATION: self._ttl()}
        self._client.update(NODES, {**node, "metadata": {**node["metadata"], "annotations": annotations}})

    def _ttl(self) -> str:
        return str(ttl_seconds(self._informers.count(NODES)))
