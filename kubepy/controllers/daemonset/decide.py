"""The decision of one sync: nodes that need a daemon pod and pods to delete (``manage``,
``podsShouldBeOnNode``), and the status (``updateDaemonSetStatus``).

Pure functions of a :class:`~kubepy.controllers.daemonset.state.DaemonSetState`. The rolling update,
with and without surge, is in :mod:`~kubepy.controllers.daemonset.rolling_update`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import namespace_of
from kubepy.controllers.daemonset.pods import DaemonPod, oldest_first
from kubepy.controllers.daemonset.rolling_update import allows_surge, rolling_update
from kubepy.controllers.daemonset.state import Counts, DaemonSetState, backoff_key

if TYPE_CHECKING:
    from kubepy.api.typed import DaemonSet, DaemonSetStatus


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


def decide(state: DaemonSetState) -> DaemonSetActions:
    """Decide what one sync does: it manages, and when there is nothing to manage it goes on with
    the rolling update.

    Raises ValueError where maxSurge or maxUnavailable cannot be read.
    """
    actions = manage(state)
    strategy = state.daemon_set["spec"].get("updateStrategy") or {}
    if (
        strategy.get("type") == "RollingUpdate"
        and not actions.nodes_needing_daemon_pods
        and not actions.pods_to_delete
    ):
        actions.nodes_needing_daemon_pods, actions.pods_to_delete = rolling_update(state)
    return actions


def manage(state: DaemonSetState) -> DaemonSetActions:
    """Decide about each node for itself, then about pods whose node is gone, then about pods that
    ended."""
    actions = DaemonSetActions()
    failed: list[DaemonPod] = []
    succeeded: list[DaemonPod] = []
    with_surge = allows_surge(state.daemon_set)
    managed = sorted(
        node
        for facts, nodes in state.nodes_by_facts().items()
        if facts.is_managed
        for node in nodes
    )
    for node in managed:
        if node not in state.placements:
            continue
        pods, placement = state.pods_on(node), state.placements[node]
        if placement.should_run and not pods:
            actions.nodes_needing_daemon_pods.append(node)
        elif placement.should_continue:
            running = [pod for pod in pods if not pod.is_being_deleted]
            failed += [pod for pod in running if pod.phase == "Failed"]
            succeeded += [pod for pod in running if pod.phase == "Succeeded"]
            running = [pod for pod in running if pod.phase not in ("Failed", "Succeeded")]
            if len(running) > 1:
                actions.pods_to_delete += surplus_pods(state, running, with_surge=with_surge)
            elif not running and placement.should_run and with_surge:
                actions.nodes_needing_daemon_pods.append(
                    node
                )  # a pod that is going does not keep its successor away
        else:
            actions.pods_to_delete += [pod.name for pod in pods if not pod.is_being_deleted]
    # Pods that wait for a node that is gone: no scheduler will ever bind them, and nothing else
    # removes them (``getUnscheduledPodsWithoutNode``).
    actions.pods_to_delete += [
        pod.name
        for node in managed
        if node not in state.placements
        for pod in state.pods_on(node)
        if not pod.is_scheduled
    ]
    _delete_ended_pods(state, actions, failed, succeeded)
    return actions


def surplus_pods(
    state: DaemonSetState, running: Sequence[DaemonPod], *, with_surge: bool
) -> list[str]:
    """Return the names of a node's pods that are too many: beyond one, the oldest; with surge
    beyond two, an old one that is ready beside a new one that is not yet available."""
    ordered = oldest_first(running)
    if not with_surge:
        return [pod.name for pod in ordered[1:]]
    new = [pod for pod in ordered if pod.hash == state.hash]
    old = [pod for pod in ordered if pod.hash != state.hash]
    surplus = [*new[1:], *old[1:]]
    if new and old and (not old[0].is_ready or state.is_available(new[0])):
        surplus.append(old[0])
    return [pod.name for pod in surplus]


def _delete_ended_pods(
    state: DaemonSetState,
    actions: DaemonSetActions,
    failed: list[DaemonPod],
    succeeded: list[DaemonPod],
) -> None:
    """Have pods that ended deleted, with an event; failed ones only after their back-off, one a
    node at a time."""
    backoff, deleted_keys = state.failed_pods_backoff, set()
    for pod in failed:
        key = backoff_key(state.daemon_set, pod.target_node)
        seconds = (
            backoff.remaining(key, state.now)
            if key not in deleted_keys
            else backoff.next_delay(key, state.now).total_seconds()
        )
        if seconds > 0:
            actions.requeue_after = min(seconds, actions.requeue_after or seconds)
            actions.is_backoff_at_cap &= backoff.is_at_cap(key)
            continue
        deleted_keys.add(key)
        message = f"Found failed daemon pod {_place_of(pod)}, will try to kill it"
        actions.ended_pods.append(EndedPod("Warning", "FailedDaemonPod", message, key))
        actions.pods_to_delete.append(pod.name)
    for pod in succeeded:
        message = f"Found succeeded daemon pod {_place_of(pod)}, will try to delete it"
        actions.ended_pods.append(EndedPod("Normal", "SucceededDaemonPod", message))
        actions.pods_to_delete.append(pod.name)


def _place_of(pod: DaemonPod) -> str:
    return f"{namespace_of(pod.pod)}/{pod.name} on node {pod.target_node}"


def new_status(daemon_set: DaemonSet, counts: Counts, *, observed: bool) -> DaemonSetStatus:
    """Return the status with these counts; with ``observed`` this generation has been acted upon.

    As the API writes it: the first four counts always, the others only when they are not 0.
    """
    status: DaemonSetStatus = {
        **(daemon_set.get("status") or {}),
        "desiredNumberScheduled": counts.desired,
        "currentNumberScheduled": counts.current,
        "numberMisscheduled": counts.misscheduled,
        "numberReady": counts.ready,
    }
    if observed:
        status["observedGeneration"] = daemon_set["metadata"].get("generation", 0)
    status.pop("updatedNumberScheduled", None)
    status.pop("numberAvailable", None)
    status.pop("numberUnavailable", None)
    if counts.updated:
        status["updatedNumberScheduled"] = counts.updated
    if counts.available:
        status["numberAvailable"] = counts.available
    if unavailable := counts.desired - counts.available:
        status["numberUnavailable"] = unavailable
    return status
