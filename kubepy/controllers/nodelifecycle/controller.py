"""The node lifecycle controller's handlers and its sync."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubepy.api.clock import parse_time
from kubepy.api.meta import Object, name_of, uid_of
from kubepy.api.objects.nodes import is_node_ready
from kubepy.controllers.nodelifecycle.silence import STARTUP_GRACE_SECONDS, given_up, has_never_reported
from kubepy.controllers.nodelifecycle.taints import lifecycle_change
from kubepy.controllers.nodelifecycle.zones import Zones, zone_of
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import Context, Handler, Key, WatchEvent

RESOURCE = "nodes"


class NodeLifecycleController:
    name = "node-lifecycle-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._clock = context.clock
        self._recorder = Recorder(context.client, "node-controller")
        self._counted: Zones | None = None
        self._known = ""  # uid of the newest node that processes before this one have registered; uids tell the age
        self._newest = ""  # and of the newest of all
        self._registered: set[str] = set()  # uids
        self._modes: dict[str, str] = {}  # how zones were treated by the process before this one
        self._gone: dict[Key, str] = {}  # nodes whose removal has not been reported: uid
        self.queue = context.new_queue()

    def remember(self) -> Any:
        return {"newest": self._newest, "modes": self._counted.modes() if self._counted is not None else self._modes}

    def recall(self, memory: Any) -> None:
        self._known = self._newest = max(self._newest, memory["newest"])
        self._modes = memory["modes"]

    # --- handlers

    def handlers(self) -> Mapping[str, Handler]:
        return {RESOURCE: self._node_changed}

    def _node_changed(self, event: WatchEvent) -> None:
        key, node = event.key, event.new
        if self._zones().set(key.name, node):
            self._wake_unready()
        if node is None:
            if event.old is not None:
                self._gone[key] = uid_of(event.old)
                self.queue.add(key)
            return
        if has_never_reported(node):
            self.queue.add_after(key, STARTUP_GRACE_SECONDS)
        else:
            self.queue.cancel(key)
        if not self._is_registered(node) or self._change(node) is not None:
            self.queue.add(key)

    def _zones(self) -> Zones:
        """Counted once from what the informers hold, then kept up to date by the handler."""
        if self._counted is None:
            self._counted = Zones()
            for node in self._informers.list(RESOURCE):
                self._counted.set(name_of(node), node)
            if self._counted.modes() != self._modes:
                self._wake_unready()
        return self._counted

    def _wake_unready(self) -> None:
        """What is to become of nodes that are not ready depends on all the others."""
        for node in self._informers.list(RESOURCE):
            if not is_node_ready(node):
                self.queue.add(Key(RESOURCE, "", name_of(node)))

    # --- sync

    def sync(self, key: Key) -> None:
        node = self._informers.get(*key)
        self._report(key, node)
        if node is None:
            self.queue.cancel(key)
        elif has_never_reported(node) and self._is_overdue(node):
            self._client.update(RESOURCE, given_up(node, self._clock.now()), subresource="status")
        elif (changed := self._change(node)) is not None:
            self._client.update(RESOURCE, changed)

    def _change(self, node: Object) -> Object | None:
        return lifecycle_change(node, self._zones().eviction(zone_of(node)), self._clock.now())

    def _is_overdue(self, node: Object) -> bool:
        created = node["metadata"].get("creationTimestamp")
        return created is None or (self._clock.now() - parse_time(created)).total_seconds() >= STARTUP_GRACE_SECONDS

    # --- events

    def _is_registered(self, node: Object) -> bool:
        uid = uid_of(node)
        return uid in self._registered or uid <= self._known

    def _report(self, key: Key, node: Object | None) -> None:
        """Say that a node has gone or come."""
        if gone := self._gone.pop(key, ""):
            self._event(key.name, gone, "RemovingNode", f"Removing Node {key.name} from Controller")
        if node is not None and not self._is_registered(node):
            self._registered.add(uid_of(node))
            self._newest = max(self._newest, uid_of(node))
            self._event(key.name, uid_of(node), "RegisteredNode", f"Registered Node {key.name} in Controller")

    def _event(self, name: str, uid: str, reason: str, what: str) -> None:
        about = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": uid}}
        self._recorder.event(about, "Normal", reason, f"Node {name} event: {what}")
