"""Taints nodes by their conditions and by ``spec.unschedulable`` (``pkg/controller/nodelifecycle``).

Upstream adds and removes the NoExecute taints when it looks at all nodes, every 5 s; here at once, with the others.
Nodes are never given up for silence: nothing but a status says that one is not ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from kubepy.cluster.clock import format_time
from kubepy.cluster.objects.meta import Object, labels_of
from kubepy.cluster.objects.nodes import (
    NO_EXECUTE,
    NO_SCHEDULE,
    TAINT_DISK_PRESSURE,
    TAINT_MEMORY_PRESSURE,
    TAINT_NETWORK_UNAVAILABLE,
    TAINT_NOT_READY,
    TAINT_PID_PRESSURE,
    TAINT_UNREACHABLE,
    TAINT_UNSCHEDULABLE,
    get_condition,
    taints_of,
)
from kubepy.cluster.reconcile import Context, Handler, Key, WatchEvent

RESOURCE = "nodes"
READINESS_TAINTS = {"False": TAINT_NOT_READY, "Unknown": TAINT_UNREACHABLE}
# condition type → its status → the taint's key (``nodeConditionToTaintKeyStatusMap``)
CONDITION_TAINTS: Mapping[str, Mapping[str, str]] = {
    "Ready": READINESS_TAINTS,
    "MemoryPressure": {"True": TAINT_MEMORY_PRESSURE},
    "DiskPressure": {"True": TAINT_DISK_PRESSURE},
    "NetworkUnavailable": {"True": TAINT_NETWORK_UNAVAILABLE},
    "PIDPressure": {"True": TAINT_PID_PRESSURE},
}
OWN_KEYS = frozenset(key for taints in CONDITION_TAINTS.values() for key in taints.values()) | {TAINT_UNSCHEDULABLE}
# The older label follows the newer one (``labelReconcileInfo``).
FOLLOWING_LABELS = {"kubernetes.io/os": "beta.kubernetes.io/os", "kubernetes.io/arch": "beta.kubernetes.io/arch"}

Taint = tuple[str, str]  # key, effect


class NodeLifecycleController:
    name = "node-lifecycle-controller"

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._clock = context.clock
        self.queue = context.new_queue()

    def handlers(self) -> Mapping[str, Handler]:
        return {RESOURCE: self._node_changed}

    def _node_changed(self, event: WatchEvent) -> None:
        if event.new is not None and lifecycle_change(event.new, self._clock.now()) is not None:
            self.queue.add(event.key)

    def sync(self, key: Key) -> None:
        node = self._informers.get(*key)
        changed = lifecycle_change(node, self._clock.now()) if node is not None else None
        if changed is not None:
            self._client.update(RESOURCE, changed)


def lifecycle_change(node: Object, now: datetime) -> Object | None:
    """The node with the taints and labels that it should have, or None when it has them."""
    taints = updated_taints(taints_of(node), wanted_taints(node), now)
    labels = updated_labels(labels_of(node))
    if taints == taints_of(node) and labels == labels_of(node):
        return None
    spec = {key: value for key, value in (node.get("spec") or {}).items() if key != "taints"}
    if taints:
        spec["taints"] = taints
    metadata = {**node["metadata"], "labels": labels} if labels else node["metadata"]
    return {**node, "metadata": metadata, "spec": spec}


def wanted_taints(node: Object) -> list[Taint]:
    """What the conditions and the spec call for, in upstream's order: NoSchedule first, NoExecute last."""
    taints: list[Taint] = []
    for condition in (node.get("status") or {}).get("conditions") or ():
        key = CONDITION_TAINTS.get(condition["type"], {}).get(condition["status"])
        if key:
            taints.append((key, NO_SCHEDULE))
    if (node.get("spec") or {}).get("unschedulable"):
        taints.append((TAINT_UNSCHEDULABLE, NO_SCHEDULE))
    ready = get_condition(node, "Ready")
    if ready is not None and ready["status"] in READINESS_TAINTS:
        taints.append((READINESS_TAINTS[ready["status"]], NO_EXECUTE))
    return taints


def updated_taints(taints: list[Object], wanted: Iterable[Taint], now: datetime) -> list[Object]:
    """The taints with the wanted ones added at the end, and those of this controller that are not wanted removed."""
    wished = dict.fromkeys(wanted)
    kept = [one for one in taints if not _is_own(one) or (one["key"], one["effect"]) in wished]
    there = {(one["key"], one["effect"]) for one in kept}
    added = [{"effect": effect, "key": key, "timeAdded": format_time(now)} for key, effect in wished
             if (key, effect) not in there]
    return [*kept, *added]


def _is_own(taint: Object) -> bool:
    """Whether this controller adds and removes such a taint."""
    if taint.get("effect") == NO_EXECUTE:
        return taint["key"] in READINESS_TAINTS.values()
    return taint.get("effect") == NO_SCHEDULE and taint["key"] in OWN_KEYS


def updated_labels(labels: Mapping[str, str]) -> dict[str, str]:
    follow = {older: labels[newer] for newer, older in FOLLOWING_LABELS.items() if newer in labels}
    return {**labels, **follow}
