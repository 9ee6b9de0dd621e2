"""The decisions of one sync of a Deployment. Pure functions of a DeploymentState.

:func:`decide` chooses the steps; each step is a function that turns the state, as the steps before
have left it, into actions. Upstream: ``syncDeployment``, ``sync.go``, ``rolling.go``,
``recreate.go``, ``progress.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.clock import later
from kubepy.api.meta import annotations_of, is_being_deleted, name_of
from kubepy.api.objects.deployments import DESIRED_REPLICAS, REVISION
from kubepy.controllers.deployment import rollback, rolling, sizes, status
from kubepy.controllers.deployment.replica_sets import (
    annotations_with_revision,
    new_replica_set,
    next_revision,
    revision_or_zero,
)
from kubepy.controllers.deployment.state import DeploymentState

if TYPE_CHECKING:
    from kubepy.api.typed import Deployment, DeploymentStatus, ReplicaSet

NO_LIMIT = 2**31 - 1


class CreateReplicaSet(NamedTuple):
    replica_set: ReplicaSet
    revision: int


class UpdateReplicaSet(NamedTuple):
    replica_set: ReplicaSet


class ScaleReplicaSet(NamedTuple):
    """``force``: the size annotations are brought up to date even if the size stays."""

    replica_set: ReplicaSet
    size: int
    force: bool = False


class DeleteReplicaSet(NamedTuple):
    replica_set: ReplicaSet


class UpdateDeploymentStatus(NamedTuple):
    """The Deployment with the status and the annotations to write, if anything of it has
    changed."""

    deployment: Deployment


class RollBack(NamedTuple):
    rollback: rollback.DeploymentRollback


class RequeueAt(NamedTuple):
    due: datetime


Action = (
    CreateReplicaSet
    | UpdateReplicaSet
    | ScaleReplicaSet
    | DeleteReplicaSet
    | UpdateDeploymentStatus
    | RollBack
    | RequeueAt
)
Step = Callable[[DeploymentState], Sequence[Action]]


def decide(state: DeploymentState) -> Sequence[Step]:
    """Choose the steps of one sync (``syncDeployment``)."""
    deployment = state.deployment
    if is_being_deleted(deployment):
        return sync_revision, sync_status
    if deployment["spec"].get("paused"):
        return check_paused_conditions, sync_revision, scale, cleanup_paused_deployment, sync_status
    if rollback.rollback_revision(deployment) is not None:
        return check_paused_conditions, get_new_replica_set, roll_back
    # From here on the revision is synced twice, as upstream does in isScalingEvent and then in
    # sync, rolloutRolling or rolloutRecreate: the first time may only bring the new ReplicaSet up
    # to date, and then the second time gives the Deployment its revision.
    if is_scaling_event(state):
        return check_paused_conditions, sync_revision, sync_revision, scale, sync_status
    if sizes.is_rolling(deployment):
        return (
            check_paused_conditions,
            sync_revision,
            get_new_replica_set,
            rollout_rolling,
            sync_rollout_status,
            requeue_stuck_deployment,
        )

    recreate: Sequence[Step] = (scale_down_old_replica_sets_for_recreate,)
    if not sizes.active(state.old_replica_sets) and not old_pods_running(state):
        recreate = (
            get_new_replica_set,
            scale_up_new_replica_set_for_recreate,
            cleanup_complete_deployment,
        )

    return (
        check_paused_conditions,
        sync_revision,
        sync_revision,
        *recreate,
        sync_rollout_status,
        requeue_stuck_deployment,
    )


# --- paused and scaled Deployments ----------------------------------------------------------------


def check_paused_conditions(state: DeploymentState) -> Sequence[Action]:
    """Keep pauses out of the progress deadline."""
    deployment = state.deployment
    reason = (status.progressing_condition(deployment) or {}).get("reason")
    is_paused = bool(deployment["spec"].get("paused"))
    if not status.has_progress_deadline(deployment) or reason == "ProgressDeadlineExceeded":
        return ()
    if is_paused and reason != "DeploymentPaused":
        return _update_progressing(state, "Unknown", "DeploymentPaused", "Deployment is paused")
    if not is_paused and reason == "DeploymentPaused":
        return _update_progressing(state, "Unknown", "DeploymentResumed", "Deployment is resumed")
    return ()


def is_scaling_event(state: DeploymentState) -> bool:
    """Return whether ``spec.replicas`` has changed since an active ReplicaSet was scaled last."""
    desired = str(sizes.replicas(state.deployment))
    annotated = [
        annotations_of(replica_set).get(DESIRED_REPLICAS, "")
        for replica_set in sizes.active(state.replica_sets)
    ]
    return any(text.isdigit() and text != desired for text in annotated)


def scale(state: DeploymentState) -> Sequence[Action]:
    """Scale without rolling on: the only active ReplicaSet, or the old ones to 0, or all in
    proportion."""
    only = sizes.active_or_latest(state.new_replica_set, state.old_replica_sets)
    if only is not None:
        return (ScaleReplicaSet(only, sizes.replicas(state.deployment)),)
    if sizes.is_saturated(state.deployment, state.new_replica_set):
        return [ScaleReplicaSet(old, 0) for old in sizes.active(state.old_replica_sets)]
    if sizes.is_rolling(state.deployment):
        return [
            ScaleReplicaSet(replica_set, size, force=True)
            for replica_set, size in sizes.proportional_sizes(
                state.deployment, sizes.active(state.replica_sets)
            )
        ]
    return ()


def roll_back(state: DeploymentState) -> Sequence[Action]:
    """Take over the template of an older revision; the next sync rolls it out."""
    revision = rollback.rollback_revision(state.deployment)
    assert revision is not None
    return (RollBack(rollback.roll_back(state.deployment, state.replica_sets, revision)),)


# --- rollouts -------------------------------------------------------------------------------------


def rollout_rolling(state: DeploymentState) -> Sequence[Action]:
    """Scale up if there is room, else down, else clean up."""
    return (
        reconcile_new_replica_set(state)
        or reconcile_old_replica_sets(state)
        or cleanup_complete_deployment(state)
    )


def reconcile_new_replica_set(state: DeploymentState) -> Sequence[Action]:
    new = state.new_replica_set
    assert new is not None
    present = sizes.replicas(new)
    desired = sizes.replicas(state.deployment)
    size = desired
    if present < desired:
        size = sizes.new_replica_set_size(state.deployment, state.old_replica_sets, present)
    if size != present:
        return (ScaleReplicaSet(new, size),)
    return ()


def reconcile_old_replica_sets(state: DeploymentState) -> Sequence[Action]:
    new = state.new_replica_set
    assert new is not None
    scales = rolling.scale_down_old(state.deployment, new, sizes.active(state.old_replica_sets))
    return [ScaleReplicaSet(old, size) for old, size in scales]


def old_pods_running(state: DeploymentState) -> bool:
    """Return whether an old ReplicaSet has pods, by its status or in fact."""
    if state.has_running_old_pods:
        return True
    return any(sizes.count(old, "replicas") > 0 for old in state.old_replica_sets)


def scale_down_old_replica_sets_for_recreate(state: DeploymentState) -> Sequence[Action]:
    active = sizes.active(state.old_replica_sets)
    return [ScaleReplicaSet(replica_set, 0) for replica_set in active]


def scale_up_new_replica_set_for_recreate(state: DeploymentState) -> Sequence[Action]:
    new = state.new_replica_set
    assert new is not None
    return (ScaleReplicaSet(new, sizes.replicas(state.deployment)),)


# --- ReplicaSets ----------------------------------------------------------------------------------


def get_new_replica_set(state: DeploymentState) -> Sequence[Action]:
    """Create the ReplicaSet of the present template, or bring it up to date."""
    if state.new_replica_set is not None:
        return sync_revision(state)
    revision = next_revision([*state.old_replica_sets, *state.outlived_replica_sets])
    size = sizes.new_replica_set_size(state.deployment, state.replica_sets, 0)
    return (CreateReplicaSet(new_replica_set(state.deployment, revision, size), revision),)


def sync_revision(state: DeploymentState) -> Sequence[Action]:
    """Bring the new ReplicaSet's annotations and minReadySeconds up to date, else the Deployment's
    revision, if there is such a ReplicaSet (``getAllReplicaSetsAndSyncRevision``)."""
    new = state.new_replica_set
    deployment = state.deployment
    if new is None:
        return ()
    annotations = annotations_with_revision(
        deployment, annotations_of(new), next_revision(state.old_replica_sets)
    )
    seconds = deployment["spec"].get("minReadySeconds", 0)
    if annotations != annotations_of(new) or seconds != new["spec"].get("minReadySeconds", 0):
        return (
            UpdateReplicaSet(
                {
                    **new,
                    "metadata": {**new["metadata"], "annotations": annotations},
                    "spec": {**new["spec"], "minReadySeconds": seconds},
                }
            ),
        )

    state = state._replace(
        deployment=with_revision(deployment, annotations_of(new).get(REVISION, ""))
    )
    if (
        status.has_progress_deadline(deployment)
        and status.progressing_condition(deployment) is None
    ):
        return _update_progressing(
            state, "True", "FoundNewReplicaSet", f'Found new replica set "{name_of(new)}"'
        )

    if annotations_of(state.deployment).get(REVISION) != annotations_of(state.stored).get(REVISION):
        return _update_status(state, state.deployment.get("status") or {})
    return ()


def note_created(state: DeploymentState, created: ReplicaSet, revision: int) -> Sequence[Action]:
    """Give the Deployment the revision of the ReplicaSet that was created, and say that it made
    progress."""
    state = state._replace(deployment=with_revision(state.deployment, str(revision)))
    if status.has_progress_deadline(state.deployment):
        return _update_progressing(
            state, "True", "NewReplicaSetCreated", f'Created new replica set "{name_of(created)}"'
        )
    return _update_status(state, state.deployment.get("status") or {})


def note_collision(state: DeploymentState) -> Sequence[Action]:
    """Raise collisionCount: the next sync computes another name for the ReplicaSet."""
    before = state.deployment.get("status") or {}
    return _update_status(state, {**before, "collisionCount": before.get("collisionCount", 0) + 1})


def note_create_error(state: DeploymentState, message: str) -> Sequence[Action]:
    if not status.has_progress_deadline(state.deployment):
        return ()
    return _update_progressing(state, "False", "ReplicaSetCreateError", message)


def with_revision(deployment: Deployment, revision: str) -> Deployment:
    """Return the Deployment with that revision annotation."""
    annotations = {**annotations_of(deployment), REVISION: revision}
    return {**deployment, "metadata": {**deployment["metadata"], "annotations": annotations}}


def cleanup_paused_deployment(state: DeploymentState) -> Sequence[Action]:
    if rollback.rollback_revision(state.deployment) is None:
        return cleanup_deployment(state)
    return ()


def cleanup_complete_deployment(state: DeploymentState) -> Sequence[Action]:
    if _is_complete(state):
        return cleanup_deployment(state)
    return ()


def cleanup_deployment(state: DeploymentState) -> Sequence[Action]:
    """Delete the oldest revisions beyond the history limit that have no pods."""
    limit = state.deployment["spec"].get("revisionHistoryLimit", NO_LIMIT)
    old = [
        replica_set for replica_set in state.old_replica_sets if not is_being_deleted(replica_set)
    ]
    surplus = max(0, len(old) - limit) if limit != NO_LIMIT else 0
    return [
        DeleteReplicaSet(replica_set)
        for replica_set in sorted(old, key=revision_or_zero)[:surplus]
        if sizes.count(replica_set, "replicas") == 0
        and sizes.replicas(replica_set) == 0
        and sizes.count(replica_set, "observedGeneration")
        >= replica_set["metadata"].get("generation", 0)
    ]


# --- status ---------------------------------------------------------------------------------------


def sync_status(state: DeploymentState) -> Sequence[Action]:
    return _update_status(state, status.calculate_status(state))


def sync_rollout_status(state: DeploymentState) -> Sequence[Action]:
    return _update_status(state, status.rollout_status(state))


def requeue_stuck_deployment(state: DeploymentState) -> Sequence[Action]:
    """Judge a rollout that is stuck again when its time is over: a second after its deadline, as
    upstream.

    In the last second before that upstream asks again and again instead, as it does without end for
    a Deployment whose rollout is over and that has lost pods since.
    """
    condition = status.progressing_condition(state.deployment)
    if condition is None or not status.has_progress_deadline(state.deployment):
        return ()
    if _is_complete(state) or condition.get("reason") in (
        "ProgressDeadlineExceeded",
        "NewReplicaSetAvailable",
    ):
        return ()
    return (RequeueAt(later(status.progress_deadline(state.deployment, condition), 1)),)


def _is_complete(state: DeploymentState) -> bool:
    deployment_status = state.deployment.get("status") or {}
    return status.is_complete(state.deployment, deployment_status)


def _update_status(state: DeploymentState, new_status: DeploymentStatus) -> Sequence[Action]:
    return (UpdateDeploymentStatus({**state.deployment, "status": new_status}),)


def _update_progressing(
    state: DeploymentState, verdict: str, reason: str, message: str
) -> Sequence[Action]:
    """Set the Progressing condition; the write carries the annotations as they are known."""
    return _update_status(state, status.with_progressing(state, verdict, reason, message))
