"""Cluster events: what a change of an object means for unschedulable pods (``eventhandlers.go``,
``events.go``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kubepy.api.meta import AnyObject, is_being_deleted, labels_of
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

if TYPE_CHECKING:
    from kubepy.api.typed import Node, Pod

NO_ACTION: frozenset[str] = frozenset()
ANY_POD_CHANGE = frozenset(
    {POD_ADD, POD_LABEL, POD_DELETE, POD_SCALE_DOWN}
)  # the state before is not known


def node_event(event: WatchEvent) -> ClusterEvent:
    """Return the event of a changed node."""
    old = cast("Node | None", event.old)
    new = cast("Node | None", event.new)
    actions = set()
    if old is None:
        actions.add(NODE_ADD)
    elif new is None:
        actions.add(NODE_DELETE)
    else:
        if labels_of(old) != labels_of(new):
            actions.add(NODE_LABEL)
        if taints_of(old) != taints_of(new) or (
            is_unschedulable(old) and not is_unschedulable(new)
        ):
            actions.add(NODE_TAINT)
        if (old.get("status") or {}).get("allocatable") != (new.get("status") or {}).get(
            "allocatable"
        ):
            actions.add(NODE_ALLOCATABLE)

    return ClusterEvent(frozenset(actions), old, new, event.key.name)


def pod_event(event: WatchEvent) -> ClusterEvent:
    """Return the event of a pod that has, or had, a node; a pod that has ended counts as
    deleted."""
    old = _with_room(event.old)
    new = _with_room(event.new)
    node = node_name(new or old or {"spec": {}})
    if event.old is None and event.is_update:
        is_going = new is not None and is_being_deleted(new)
        if not is_going:
            return ClusterEvent(ANY_POD_CHANGE, None, new, node, unknown=True)
    return ClusterEvent(_pod_actions(old, new), old, new, node)


def _with_room(pod: AnyObject | None) -> Pod | None:
    """Return a pod that takes room on a node; None for any other."""
    if pod is None or not _takes_room(pod):
        return None
    return cast("Pod", pod)


def _takes_room(pod: AnyObject) -> bool:
    status = pod.get("status") or {}
    if is_pod_terminal(pod):
        return False
    return bool(node_name(pod) or status.get("nominatedNodeName"))


def _pod_actions(old: Pod | None, new: Pod | None) -> frozenset[str]:
    if old is None:
        if new is not None and node_name(new):
            return frozenset({POD_ADD})
        return NO_ACTION

    if new is None:
        return frozenset({POD_DELETE})
    if node_name(new) and not node_name(old):
        return frozenset({POD_ADD})
    actions = {POD_LABEL} if labels_of(old) != labels_of(new) else set()
    if is_being_deleted(new) and not is_being_deleted(old):
        actions.add(POD_TERMINATING)
    if old["spec"] != new["spec"]:
        before = pod_requests(old)
        after = pod_requests(new)
        if any(name not in after or after[name] < amount for name, amount in before.items()):
            actions.add(POD_SCALE_DOWN)

    return frozenset(actions)


def unscheduled_pod_event(old: AnyObject, new: AnyObject) -> ClusterEvent:
    """Return the event of the waiting pod itself. Changes of its status and its annotations mean
    nothing."""
    if old["spec"] != new["spec"] or labels_of(old) != labels_of(new):
        return ClusterEvent(frozenset({SELF_UPDATE}), old, new)
    return ClusterEvent(NO_ACTION, old, new)


def volume_event(event: WatchEvent) -> ClusterEvent:
    """Return the event of a claim, volume, class or CSINode; its deletion helps no pod."""
    return ClusterEvent(
        frozenset({VOLUME}) if event.new is not None else NO_ACTION, event.old, event.new
    )


def namespace_event(event: WatchEvent) -> ClusterEvent:
    """Return the event of a namespace. Its creation or deletion helps no pod; its pods have events
    of their own."""
    old = event.old
    new = event.new
    if new is None:
        is_changed = False
    elif old is None:
        is_changed = event.is_update
    else:
        is_changed = labels_of(old) != labels_of(new)
    return ClusterEvent(frozenset({NAMESPACE}) if is_changed else NO_ACTION, old, new)
