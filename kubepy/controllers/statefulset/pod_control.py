"""Writing a StatefulSet's pods and claims, with events (``stateful_pod_control.go``)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from kubepy.api.errors import AlreadyExists, NotFound, Status
from kubepy.api.meta import is_being_deleted, name_of, namespace_of
from kubepy.controllers.statefulset import claims
from kubepy.controllers.statefulset.pods import (
    Replica,
    ordinal_of,
    ordinals,
    storage_matches,
    with_identity_and_storage,
)
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import PERSISTENT_VOLUME_CLAIMS, PODS, ResourceClient
from kubepy.runtime.reconcile import Context, UnfinishedSync

if TYPE_CHECKING:
    from kubepy.api.typed import PersistentVolumeClaim, Pod, StatefulSet


class ClaimError(UnfinishedSync):
    """A claim that a pod needs cannot be had now."""


class StatefulPodControl:
    def __init__(self, context: Context, recorder: Recorder) -> None:
        self._pods = ResourceClient(context.client, PODS)
        self._claims = ResourceClient(context.client, PERSISTENT_VOLUME_CLAIMS)
        self._observed_claims = context.informers.lister(PERSISTENT_VOLUME_CLAIMS)
        self._unheld = context.client.settings.absent  # claims that an imported source only names
        self._recorder = recorder

    def create_stateful_pod(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Create a pod, its claims first. Raises Status, ClaimError; AlreadyExists without an
        event."""
        try:
            self._create_claims(stateful_set, pod)
        except ClaimError as error:
            self._record_pod_event("create", stateful_set, pod, error)
            raise

        failure: Status | None = None
        try:
            self._pods.create(pod, namespace_of(pod))
        except AlreadyExists:
            raise
        except Status as error:
            failure = error

        self._update_owners_of_new_claims(stateful_set, pod)
        self._record_pod_event("create", stateful_set, pod, failure)
        if failure is not None:
            raise failure

    def delete_stateful_pod(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Delete a pod, with an event (``DeleteStatefulPod``). Raises Status."""
        try:
            self._pods.delete(pod)
        except Status as error:
            self._record_pod_event("delete", stateful_set, pod, error)
            raise
        self._record_pod_event("delete", stateful_set, pod)

    def update_stateful_pod(
        self, stateful_set: StatefulSet, replica: Replica, *, claims_match: bool
    ) -> None:
        """Give a pod its labels and volumes back, and its claims their owners unless they have
        them.

        Raises Status, ClaimError.
        """
        pod = with_identity_and_storage(stateful_set, replica)
        try:
            if not storage_matches(stateful_set, replica):
                self._create_claims(stateful_set, replica.pod)
            if not claims_match:
                self.update_claims_for_retention_policy(stateful_set, replica.pod)
            self._pods.update(pod)
        except (Status, ClaimError) as error:
            self._record_pod_event("update", stateful_set, pod, error)
            raise
        self._record_pod_event("update", stateful_set, pod)

    # --- claims

    def create_missing_claims(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Create the claims of a pod that waits for them. Raises Status, ClaimError."""
        self._create_claims(stateful_set, pod)
        self._update_owners_of_new_claims(stateful_set, pod)

    def _create_claims(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Create the claims that are missing. Raises ClaimError if one fails or is being
        deleted."""
        errors = []
        for claim in claims.new_claims(stateful_set, ordinal_of(pod)):
            observed = self._observed_claims.get(namespace_of(stateful_set), name_of(claim))
            if observed is not None:
                if is_being_deleted(observed):
                    errors.append(f"pvc {name_of(claim)} is being deleted")
                continue
            if self._is_unheld(claim):
                continue
            try:
                self._claims.create(claim, namespace_of(stateful_set))
            except Status as error:
                errors.append(f"failed to create PVC {name_of(claim)}: {error}")
                self._record_claim_event(stateful_set, pod, claim, error)
            else:
                self._record_claim_event(stateful_set, pod, claim)

        if errors:
            raise ClaimError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")

    def _is_unheld(self, claim: PersistentVolumeClaim) -> bool:
        """Tell whether a claim counts as there, since pods of an imported source had it."""
        if self._unheld is None:
            return False
        return self._unheld.has("PersistentVolumeClaim", namespace_of(claim), name_of(claim))

    def _update_owners_of_new_claims(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Update the owners of claims that were created with a pod. An error is recorded as an
        event. Raises Status."""
        try:
            self.update_claims_for_retention_policy(stateful_set, pod)
        except Status as error:
            self._record_pod_event("update", stateful_set, pod, error)
            raise

    def update_claims_for_retention_policy(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Give a pod's claims the owners of the retention policy
        (``UpdatePodClaimForRetentionPolicy``).

        Claims are read as they are stored, since this sync may have made some of them. Raises
        Status.
        """
        ordinal = ordinal_of(pod)
        in_range = ordinal in ordinals(stateful_set)
        stored: list[PersistentVolumeClaim] = []
        for name in claims.claim_names(stateful_set, ordinal):
            with suppress(NotFound):
                stored.append(self._claims.get(namespace_of(stateful_set), name))
        for claim in stored:
            if claims.has_unexpected_controller(claim, stateful_set, pod):
                message = (
                    f"PersistentVolumeClaim {name_of(claim)} has a conflicting OwnerReference "
                    f"that acts as a"
                    " manging controller, the retention policy is ignored for this claim"
                )
                self._recorder.event(stateful_set, "Warning", "ConflictingController", message)
            if not claims.is_claim_owner_up_to_date(claim, stateful_set, pod, in_range):
                self._claims.update(claims.with_claim_owner(claim, stateful_set, pod, in_range))

    # --- events

    def _record_pod_event(
        self, verb: str, stateful_set: StatefulSet, pod: Pod, error: Exception | None = None
    ) -> None:
        word = verb.capitalize()
        subject = f"{word} Pod {name_of(pod)} in StatefulSet {name_of(stateful_set)}"
        if error is None:
            self._recorder.event(
                stateful_set, "Normal", f"Successful{word}", f"{subject} successful"
            )
        else:
            self._recorder.event(
                stateful_set, "Warning", f"Failed{word}", f"{subject} failed error: {error}"
            )

    def _record_claim_event(
        self,
        stateful_set: StatefulSet,
        pod: Pod,
        claim: PersistentVolumeClaim,
        error: Status | None = None,
    ) -> None:
        subject = f"Create Claim {name_of(claim)}"
        set_name = name_of(stateful_set)
        if error is None:
            self._recorder.event(
                stateful_set,
                "Normal",
                "SuccessfulCreate",
                f"{subject} Pod {name_of(pod)} in StatefulSet {set_name} success",
            )
        else:
            self._recorder.event(
                stateful_set,
                "Warning",
                "FailedCreate",
                f"{subject} for Pod {name_of(pod)} in StatefulSet {set_name} failed error: {error}",
            )
