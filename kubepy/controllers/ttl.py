"""Annotates each node with the seconds for which its kubelet may cache objects, the more the larger
the cluster.

Upstream (``pkg/controller/ttl``) moves to a lower step only some nodes below the limit at which it
moved up; here the step follows from the number of nodes alone, so that it does not depend on former
states.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kubepy.api.meta import annotations_of
from kubepy.runtime.informers import NODES, ResourceClient
from kubepy.runtime.reconcile import Context, Handler, Key, enqueue_object

if TYPE_CHECKING:
    from kubepy.api.typed import Node

ANNOTATION = "node.alpha.kubernetes.io/ttl"
STEPS = ((100, 0), (500, 15), (1000, 30), (2000, 60))  # number of nodes up to which, seconds
LARGEST = 300


def ttl_seconds(nodes: int) -> int:
    for limit, seconds in STEPS:
        if nodes <= limit:
            return seconds
    return LARGEST


class TTLController:
    """Reconciles nodes that change; a new step alone rewrites no nodes."""

    name = "ttl-controller"

    def __init__(self, context: Context) -> None:
        self.queue = context.new_queue()
        self._informers = context.informers
        self._nodes = context.informers.lister(NODES)
        self._node_client = ResourceClient(context.client, NODES)

    def handlers(self) -> Mapping[str, Handler]:
        return {NODES: enqueue_object(self.queue, self._is_outdated)}

    def sync(self, key: Key) -> None:
        node = self._nodes.get(key.namespace, key.name)
        if node is not None and self._is_outdated(node):
            annotations = {**annotations_of(node), ANNOTATION: self._ttl()}
            self._node_client.update(
                {**node, "metadata": {**node["metadata"], "annotations": annotations}}
            )

    def _is_outdated(self, node: Node) -> bool:
        return annotations_of(node).get(ANNOTATION) != self._ttl()

    def _ttl(self) -> str:
        return str(ttl_seconds(self._informers.count(NODES)))
