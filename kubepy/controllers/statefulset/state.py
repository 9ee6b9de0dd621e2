"""The state of a StatefulSet that one sync goes by, as it was observed when the sync began. Pure
functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from kubepy.controllers.statefulset import claims
from kubepy.controllers.statefulset.pods import MOST_MISSING, Replica, ordinals

if TYPE_CHECKING:
    from kubepy.api.typed import ControllerRevision, PersistentVolumeClaim, StatefulSet
    from kubepy.runtime.reconcile import Key


class StatefulSetState(NamedTuple):
    """Everything that :func:`~kubepy.controllers.statefulset.decide.decide` decides by. Nobody
    changes it."""

    key: Key
    stateful_set: StatefulSet
    current_set: StatefulSet  # as it was at its current revision
    update_set: StatefulSet  # as it is at its update revision
    current_revision: str
    update_revision: str
    collision_count: int
    revisions: Sequence[ControllerRevision]  # all of them, by number
    pods: Sequence[Replica]  # that the set controls, by name
    claims: Mapping[str, PersistentVolumeClaim]  # that the informers know, by name
    min_ready_seconds: int
    now: datetime
    room: int = MOST_MISSING  # how many pods may be made at most

    def is_available(self, replica: Replica) -> bool:
        return replica.is_available(self.min_ready_seconds, self.now)

    def is_healthy(self, replica: Replica) -> bool:
        """Return whether a pod is Running, Ready, and available for long enough."""
        if not replica.is_running_and_ready:
            return False
        return self.is_available(replica)

    def is_unavailable(self, replica: Replica) -> bool:
        if replica.is_being_deleted:
            return True
        return not self.is_available(replica)

    def claims_of(self, replica: Replica) -> list[PersistentVolumeClaim]:
        names = claims.claim_names(self.stateful_set, replica.ordinal)
        return [self.claims[name] for name in names if name in self.claims]

    def claims_match_retention_policy(self, replica: Replica) -> bool:
        """Return whether the pod's claims are owned as the policy says
        (``ClaimsMatchRetentionPolicy``)."""
        if not self.claims:
            return True
        found = self.claims_of(replica)
        in_range = bool(found) and replica.ordinal in ordinals(self.update_set)
        return all(
            claims.is_claim_owner_up_to_date(claim, self.update_set, replica.pod, in_range)
            for claim in found
        )

    def pod_claim_is_stale(self, replica: Replica) -> bool:
        """Return whether a claim still belongs to an earlier pod of the name and will go with it
        (``PodClaimIsStale``)."""
        if claims.retention_policy(self.stateful_set)[1] == claims.RETAIN:
            return False
        return any(
            claims.has_stale_owner_ref(claim, replica.pod) for claim in self.claims_of(replica)
        )
