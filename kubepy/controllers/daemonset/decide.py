"""The decision of one sync: nodes that need a daemon pod and pods to delete.

Pure functions of a :class:`~kubepy.controllers.daemonset.state.DaemonSetState`. The rolling update,
with and without surge, is in :mod:`~kubepy.controllers.daemonset.rolling_update`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kubepy.api.meta import namespace_of
from kubepy.controllers.daemonset.pods import DaemonPod, oldest_first
from kubepy.controllers.daemonset.rolling_update import allows_surge, rolling_update
from kubepy.controllers.daemonset.state import DaemonSetState, backoff_key


class EndedPod(NamedTuple):
    """A pod that ended and is deleted, to be made again: the event about it, and its entry in the
    back-off if any."""

    event_type: str
    reason: str
    message: str
    backoff_key: str = ""


@dataclass
class DaemonSetActions:
    """The things to do, in this order. ``requeue_after``: the seconds until a failed pod's back-off
    is over.

    ``is_backoff_at_cap``: the back-offs of all failed pods are as long as they get.
    """

    ended_pods: list[EndedPod] = field(default_factory=list)
    nodes_needing_daemon_pods: list[str] = field(default_factory=list)
    pods_to_delete: list[str] = field(default_factory=list)  # by name
    requeue_after: float | None = None
    is_backoff_at_cap: bool = True


class PodsOnNode(NamedTuple):
    """The decision about one node. ``ended_pods`` are deleted with an event, failed ones after
    their back-off."""

    needs_daemon_pod: bool = False
    pods_to_delete: Sequence[str] = ()  # by name
    ended_pods: Sequence[DaemonPod] = ()


def update_daemon_set(state: DaemonSetState) -> DaemonSetActions:
    """Decide what one sync does (``updateDaemonSet``): where each node has the pods that it should
    have, it goes on with the rolling update.

    Raises ValueError where maxSurge or maxUnavailable cannot be read.
    """
    actions = nodes_and_pods_to_sync(state)
    if actions.nodes_needing_daemon_pods or actions.pods_to_delete:
        return actions
    strategy = state.daemon_set["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "RollingUpdate":
        actions.nodes_needing_daemon_pods, actions.pods_to_delete = rolling_update(state)
    return actions


def nodes_and_pods_to_sync(state: DaemonSetState) -> DaemonSetActions:
    """Decide about each node for itself, then about pods whose node is gone, then about pods that
    ended (the first half of ``manage``)."""
    actions = DaemonSetActions()
    ended_pods: list[DaemonPod] = []
    with_surge = allows_surge(state.daemon_set)
    unsettled = sorted(state.nodes.unsettled)
    for node in unsettled:
        decision = pods_should_be_on_node(state, node, with_surge=with_surge)
        if decision.needs_daemon_pod:
            actions.nodes_needing_daemon_pods.append(node)
        actions.pods_to_delete += decision.pods_to_delete
        ended_pods += decision.ended_pods
    actions.pods_to_delete += unscheduled_pods_without_node(state, unsettled)
    delete_failed_pods(state, [pod for pod in ended_pods if pod.phase == "Failed"], actions)
    delete_succeeded_pods([pod for pod in ended_pods if pod.phase == "Succeeded"], actions)
    return actions


def pods_should_be_on_node(state: DaemonSetState, node: str, *, with_surge: bool) -> PodsOnNode:
    """Decide about one node (``podsShouldBeOnNode``); one that is gone is not decided about."""
    placement = state.nodes.placements.get(node)
    if placement is None:
        return PodsOnNode()
    pods = state.nodes.pods_on(node)
    if placement.should_run and not pods:
        return PodsOnNode(needs_daemon_pod=True)
    staying = [pod for pod in pods if not pod.is_being_deleted]
    if not placement.should_continue:
        return PodsOnNode(pods_to_delete=[pod.name for pod in staying])
    running = [pod for pod in staying if pod.phase not in ("Failed", "Succeeded")]
    ended = [pod for pod in staying if pod.phase in ("Failed", "Succeeded")]
    if len(running) > 1:
        surplus = surplus_pods(state, running, with_surge=with_surge)
        return PodsOnNode(pods_to_delete=surplus, ended_pods=ended)
    # with surge a pod that is being deleted does not keep its successor away
    needs_daemon_pod = with_surge and placement.should_run and not running
    return PodsOnNode(needs_daemon_pod=needs_daemon_pod, ended_pods=ended)


def surplus_pods(
    state: DaemonSetState, running: Sequence[DaemonPod], *, with_surge: bool
) -> list[str]:
    """Return the names of a node's pods that are too many: beyond one, the oldest; with surge
    beyond two, an old one that is ready beside a new one that is not yet available."""
    ordered = oldest_first(running)
    if not with_surge:
        return [pod.name for pod in ordered[1:]]
    new_pods = [pod for pod in ordered if pod.hash == state.criteria.hash]
    old_pods = [pod for pod in ordered if pod.hash != state.criteria.hash]
    surplus = [*new_pods[1:], *old_pods[1:]]
    if new_pods and old_pods:
        oldest_new_pod = new_pods[0]
        oldest_old_pod = old_pods[0]
        if not oldest_old_pod.is_ready or state.criteria.is_available(oldest_new_pod):
            surplus.append(oldest_old_pod)
    return [pod.name for pod in surplus]


def unscheduled_pods_without_node(state: DaemonSetState, nodes: Iterable[str]) -> list[str]:
    """Return the names of pods that wait for a node that is gone: no scheduler will ever bind them,
    and nothing else removes them (``getUnscheduledPodsWithoutNode``)."""
    names: list[str] = []
    for node in nodes:
        if node not in state.nodes.placements:
            pods = state.nodes.pods_on(node)
            names += [pod.name for pod in pods if not pod.is_scheduled]
    return names


def delete_failed_pods(
    state: DaemonSetState, failed: Iterable[DaemonPod], actions: DaemonSetActions
) -> None:
    """Have failed pods deleted with an event, each after its back-off, one a node at a time."""
    backoff = state.failed_pods_backoff
    deleted_keys: set[str] = set()
    for pod in failed:
        key = backoff_key(state.daemon_set, pod.target_node)
        if key in deleted_keys:
            seconds = backoff.next_delay(key, state.now).total_seconds()
        else:
            seconds = backoff.remaining(key, state.now)
        if seconds > 0:
            actions.requeue_after = min(seconds, actions.requeue_after or seconds)
            actions.is_backoff_at_cap &= backoff.is_at_cap(key)
            continue
        deleted_keys.add(key)
        message = f"Found failed daemon pod {_place_of(pod)}, will try to kill it"
        actions.ended_pods.append(EndedPod("Warning", "FailedDaemonPod", message, key))
        actions.pods_to_delete.append(pod.name)


def delete_succeeded_pods(succeeded: Iterable[DaemonPod], actions: DaemonSetActions) -> None:
    """Have pods that ended well deleted with an event."""
    for pod in succeeded:
        message = f"Found succeeded daemon pod {_place_of(pod)}, will try to delete it"
        actions.ended_pods.append(EndedPod("Normal", "SucceededDaemonPod", message))
        actions.pods_to_delete.append(pod.name)


def _place_of(pod: DaemonPod) -> str:
    return f"{namespace_of(pod.pod)}/{pod.name} on node {pod.target_node}"
