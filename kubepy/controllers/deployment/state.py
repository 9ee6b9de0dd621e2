"""The state of a Deployment in one sync: as it was observed, and then as each write of the sync
leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import AnyObject, uid_of
from kubepy.api.objects.deployments import by_age, new_replica_set, old_replica_sets

if TYPE_CHECKING:
    from kubepy.api.typed import Deployment, ReplicaSet
    from kubepy.runtime.reconcile import Key


class DeploymentState(NamedTuple):
    """Everything that :mod:`~kubepy.controllers.deployment.decide` decides by. A write gives a new
    state.

    ``stored`` is the Deployment as the cluster has it; ``deployment`` may bear a revision
    annotation that the next write of its status stores. ``outlived_replica_sets`` were deleted
    after the newest ReplicaSet was, so that the next one gets a revision number above theirs.
    """

    key: Key
    deployment: Deployment
    stored: Deployment
    replica_sets: Sequence[ReplicaSet]  # that it controls, oldest first
    outlived_replica_sets: Sequence[ReplicaSet]
    has_running_old_pods: (
        bool  # a pod of an old ReplicaSet has not ended; looked at only to recreate
    )
    now: datetime

    @property
    def new_replica_set(self) -> ReplicaSet | None:
        return new_replica_set(self.deployment, self.replica_sets)

    @property
    def old_replica_sets(self) -> list[ReplicaSet]:
        return old_replica_sets(self.deployment, self.replica_sets)

    def current(self, replica_set: AnyObject) -> ReplicaSet:
        """Return a ReplicaSet as the writes of this sync have left it."""
        return next(
            current for current in self.replica_sets if uid_of(current) == uid_of(replica_set)
        )

    def with_replica_set(self, replica_set: ReplicaSet) -> DeploymentState:
        """Return the state with a ReplicaSet that was created or updated."""
        others = (other for other in self.replica_sets if uid_of(other) != uid_of(replica_set))
        return self._replace(replica_sets=by_age([*others, replica_set]))

    def with_stored(self, deployment: Deployment) -> DeploymentState:
        """Return the state with the Deployment as it was written."""
        return self._replace(deployment=deployment, stored=deployment)
