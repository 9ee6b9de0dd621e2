"""The decision of one sync of a StatefulSet: its next steps, in order (``updateStatefulSet``). Pure
functions.

An ordered set takes one step and waits for it; a parallel one makes and removes all pods at once,
but still updates them one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from kubepy.api.meta import is_being_deleted
from kubepy.controllers.statefulset.pods import (
    Replica,
    considered_ordinals,
    is_made_at_current_revision,
    is_ordered,
    is_rolling,
    missing_replica,
    ordinals,
    partition,
    storage_matches,
)
from kubepy.controllers.statefulset.state import StatefulSetState
from kubepy.controllers.statefulset.status import compute_replica_status, with_one_less_current

if TYPE_CHECKING:
    from kubepy.api.typed import StatefulSetStatus


class PodAction(NamedTuple):
    """One write about one pod."""

    verb: Literal["create", "delete", "update", "create missing claims", "update claims"]
    replica: Replica


# The actions on one pod, in order; the first that fails ends them.
Step = tuple[PodAction, ...]


class StatefulSetActions(NamedTuple):
    """Phases of steps, a step for each pod that was looked at, and the pod to delete for an update
    after them all.

    ``status`` is the status to write, ``status_after_update`` that once the pod was deleted.
    """

    phases: Sequence[Sequence[Step]]
    update: PodAction | None
    status: StatefulSetStatus
    status_after_update: StatefulSetStatus


def decide(state: StatefulSetState) -> StatefulSetActions:
    """Decide the steps of one sync; an ordered set's end with the first pod that is to be waited
    for."""
    if is_being_deleted(state.stateful_set):
        status = compute_replica_status(state, state.pods)
        return StatefulSetActions((), None, status, status)
    replicas, condemned = split_by_range(state)
    status = compute_replica_status(state, [*replicas, *condemned])
    first_unavailable = next(filter(state.is_unavailable, [*replicas, *reversed(condemned)]), None)
    ordered = is_ordered(state.stateful_set)

    def process_condemned(state: StatefulSetState, replica: Replica) -> tuple[Step, bool]:
        """Delete a pod beyond the range; in an ordered set only while all others are well, or it is
        the sick one."""
        if replica.is_being_deleted:
            return (), False
        if ordered and not state.is_healthy(replica) and replica is not first_unavailable:
            return (), False
        return (PodAction("delete", replica),), False

    phases: list[list[Step]] = []
    processes: list[
        tuple[Callable[[StatefulSetState, Replica], tuple[Step, bool]], list[Replica]]
    ] = [(process_replica, replicas), (fix_pod_claim, condemned), (process_condemned, condemned)]
    for process, pods in processes:
        phases.append([])
        for replica in pods:
            step, may_go_on = process(state, replica)
            phases[-1].append(step)
            if ordered and not may_go_on:
                return StatefulSetActions(phases, None, status, status)

    is_whole = len(replicas) == len(
        ordinals(state.stateful_set)
    )  # else the highest pods are still to be made
    update = pod_to_update(state, replicas) if is_whole and is_rolling(state.stateful_set) else None
    return StatefulSetActions(phases, update, status, with_one_less_current(status))


def split_by_range(state: StatefulSetState) -> tuple[list[Replica], list[Replica]]:
    """Return the replicas by ordinal, the first missing ones among them, and the condemned pods,
    the highest first."""
    by_ordinal = {replica.ordinal: replica for replica in state.pods}
    in_range = ordinals(state.stateful_set)
    replicas = []
    for ordinal in considered_ordinals(state.stateful_set, by_ordinal, state.room):
        replica = by_ordinal.get(ordinal)
        if replica is None:
            is_current = is_made_at_current_revision(state.current_set, ordinal)
            revision = state.current_revision if is_current else state.update_revision
            replica = missing_replica(state.stateful_set, ordinal, revision)
        replicas.append(replica)

    beyond = [
        replica
        for replica in state.pods
        if replica.ordinal >= 0 and replica.ordinal not in in_range
    ]
    return replicas, sorted(beyond, key=lambda replica: replica.ordinal, reverse=True)


def process_replica(state: StatefulSetState, replica: Replica) -> tuple[Step, bool]:
    """Return the step for a pod of the range, and whether an ordered set may go on to the next
    one."""
    if replica.has_ended:
        return () if replica.is_being_deleted else (PodAction("delete", replica),), False
    if not replica.is_created:
        return () if state.pod_claim_is_stale(replica) else (PodAction("create", replica),), False
    actions: Step = (
        (PodAction("create missing claims", replica),) if replica.phase == "Pending" else ()
    )
    if is_ordered(state.stateful_set) and (
        replica.is_being_deleted or not state.is_healthy(replica)
    ):
        return actions, False

    if not (
        replica.identity_matches
        and storage_matches(state.stateful_set, replica)
        and state.claims_match_retention_policy(replica)
    ):
        actions = (*actions, PodAction("update", replica))

    return actions, True


def fix_pod_claim(state: StatefulSetState, replica: Replica) -> tuple[Step, bool]:
    if state.claims_match_retention_policy(replica):
        return (), True
    return (PodAction("update claims", replica),), True


def pod_to_update(state: StatefulSetState, replicas: Sequence[Replica]) -> PodAction | None:
    """Delete the highest pod that is not at the update revision, unless one above it is not
    available yet."""
    for replica in reversed(replicas[partition(state.stateful_set) :]):
        if replica.revision != state.update_revision and not replica.is_being_deleted:
            return PodAction("delete", replica)
        if state.is_unavailable(replica):
            return None
    return None
