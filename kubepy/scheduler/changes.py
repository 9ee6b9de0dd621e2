"""What a change of an object means for pods that wait (upstream: ``eventhandlers.go``, ``framework/events.go``)."""

from __future__ import annotations

from kubepy.api.meta import Object, is_being_deleted, labels_of
from kubepy.api.objects.nodes import is_unschedulable, taints_of
from kubepy.api.objects.pods import is_pod_terminal, node_name, pod_requests
from kubepy.runtime.reconcile import WatchEvent
from kubepy.scheduler.framework import (
    NAMESPACE,
    NODE_ADD,
    NODE_ALLOCATABLE,
    NODE_DELETE,
    NODE_LABEL,
    NODE_TAINT,
    POD_ADD,
    POD_DELETE,
    POD_LABEL,
    POD_SCALE_DOWN,
    POD_TERMINATING,
    SELF_UPDATE,
    VOLUME,
    ClusterEvent,
)

NOTHING: frozenset[str] = frozenset()
POD_ANYTHING = frozenset({POD_ADD, POD_LABEL, POD_DELETE, POD_SCALE_DOWN})  # it changed, but what it was is not known


def node_event(event: WatchEvent) -> ClusterEvent:
    return ClusterEvent(_node_actions(event.old, event.new), event.old, event.new, event.key.name)


def _node_actions(old: Object | None, new: Object | None) -> frozenset[str]:
    if old is None:
        return frozenset({NODE_ADD})
    if new is None:
        return frozenset({NODE_DELETE})
    actions = set()
    if labels_of(old) != labels_of(new):
        actions.add(NODE_LABEL)
    if taints_of(old) != taints_of(new) or (is_unschedulable(old) and not is_unschedulable(new)):
        actions.add(NODE_TAINT)
    if (old.get("status") or {}).get("allocatable") != (new.get("status") or {}).get("allocatable"):
        actions.add(NODE_ALLOCATABLE)
    return frozenset(actions)


def pod_event(event: WatchEvent) -> ClusterEvent:
    """Of a pod that has, or had, a node; a pod that has ended counts as gone."""
    old = event.old if event.old is not None and _takes_room(event.old) else None
    new = event.new if event.new is not None and _takes_room(event.new) else None
    node = node_name(new or old or {"spec": {}})
    if event.old is None and event.is_update and not (new is not None and is_being_deleted(new)):
        return ClusterEvent(POD_ANYTHING, None, new, node, unknown=True)
    return ClusterEvent(_pod_actions(old, new), old, new, node)


def _takes_room(pod: Object) -> bool:
    promised = (pod.get("status") or {}).get("nominatedNodeName")
    return bool(node_name(pod) or promised) and not is_pod_terminal(pod)


def _pod_actions(old: Object | None, new: Object | None) -> frozenset[str]:
    if old is None:
        return frozenset({POD_ADD}) if new is not None and node_name(new) else NOTHING
    if new is None:
        return frozenset({POD_DELETE})
    if node_name(new) and not node_name(old):
        return frozenset({POD_ADD})
    actions = {POD_LABEL} if labels_of(old) != labels_of(new) else set()
    if is_being_deleted(new) and not is_being_deleted(old):
        actions.add(POD_TERMINATING)
    if old["spec"] != new["spec"] and _asks_for_less(old, new):
        actions.add(POD_SCALE_DOWN)
    return frozenset(actions)


def _asks_for_less(old: Object, new: Object) -> bool:
    before, after = pod_requests(old), pod_requests(new)
    return any(name not in after or after[name] < amount for name, amount in before.items())


def waiting_pod_event(old: Object, new: Object) -> ClusterEvent:
    """Of the waiting pod itself. What it reports about itself, and its annotations, mean nothing."""
    changed = old["spec"] != new["spec"] or labels_of(old) != labels_of(new)
    return ClusterEvent(frozenset({SELF_UPDATE}) if changed else NOTHING, old, new)


def volume_event(event: WatchEvent) -> ClusterEvent:
    """Of a claim, volume or class; one that goes helps nobody."""
    return ClusterEvent(frozenset({VOLUME}) if event.new is not None else NOTHING, event.old, event.new)


def namespace_event(event: WatchEvent) -> ClusterEvent:
    """A namespace that comes or goes is nothing yet: its pods are."""
    old, new = event.old, event.new
    changed = new is not None and (event.is_update if old is None else labels_of(old) != labels_of(new))
    return ClusterEvent(frozenset({NAMESPACE}) if changed else NOTHING, old, new)
