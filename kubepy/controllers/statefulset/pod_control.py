"""Writing a StatefulSet's pods and claims, with events (``stateful_pod_control.go``)."""

from __future__ import annotations

from kubepy.api.errors import AlreadyExists, NotFound, Status
from kubepy.api.meta import Object, is_being_deleted, name_of, namespace_of
from kubepy.controllers.statefulset import claims
from kubepy.controllers.statefulset.members import ordinal_of, ordinals, repaired, storage_matches
from kubepy.runtime.events import Recorder
from kubepy.runtime.reconcile import Context

CLAIMS = "persistentvolumeclaims"


class ClaimError(Exception):
    """A claim that a pod needs cannot be had now."""


class StatefulPodControl:
    def __init__(self, context: Context, recorder: Recorder) -> None:
        self._client = context.client
        self._informers = context.informers
        self._recorder = recorder

    def create(self, set_: Object, pod: Object) -> None:
        """Create a pod, its claims first. Raises Status, ClaimError."""
        try:
            self._create_claims(set_, pod)
        except ClaimError as error:
            self._tell(set_, "create", pod, error)
            raise
        failure = self._create_pod(pod)
        self._give_owners(set_, pod)
        self._tell(set_, "create", pod, failure)
        if failure is not None:
            raise failure

    def _create_pod(self, pod: Object) -> Status | None:
        """Why it cannot be made, if so. Raises Status when another pod has the name, of which nothing is told."""
        try:
            self._client.create("pods", pod, namespace=namespace_of(pod))
        except Status as error:
            if isinstance(error, AlreadyExists):
                raise
            return error
        return None

    def delete(self, set_: Object, pod: Object) -> None:
        """Raises Status."""
        try:
            self._client.delete("pods", name_of(pod), namespace=namespace_of(pod))
        except Status as error:
            self._tell(set_, "delete", pod, error)
            raise
        self._tell(set_, "delete", pod)

    def repair(self, set_: Object, pod: Object) -> None:
        """Give a pod back its labels and volumes, and its claims their owners. Raises Status, ClaimError."""
        wanted = repaired(set_, pod)
        try:
            if not storage_matches(set_, pod):
                self._create_claims(set_, pod)
            if not self.owners_match(set_, pod, ordinal_of(pod)):
                self.update_claim_owners(set_, pod)
            self._client.update("pods", wanted, namespace=namespace_of(pod))
        except (Status, ClaimError) as error:
            self._tell(set_, "update", wanted, error)
            raise
        self._tell(set_, "update", wanted)

    # --- claims

    def create_missing_claims(self, set_: Object, pod: Object) -> None:
        """For a pod that waits for them. Raises Status, ClaimError."""
        self._create_claims(set_, pod)
        self._give_owners(set_, pod)

    def _create_claims(self, set_: Object, pod: Object) -> None:
        """Create the claims that are missing. Raises ClaimError if one fails or is on its way out."""
        errors = []
        for wanted in claims.new_claims(set_, ordinal_of(pod)):
            there = self._seen_claim(set_, name_of(wanted))
            if there is None:
                errors += self._create_claim(set_, pod, wanted)
            elif is_being_deleted(there):
                errors.append(f"pvc {name_of(wanted)} is being deleted")
        if errors:
            raise ClaimError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")

    def _create_claim(self, set_: Object, pod: Object, wanted: Object) -> list[str]:
        subject = f"Create Claim {name_of(wanted)}"
        try:
            self._client.create(CLAIMS, wanted, namespace=namespace_of(set_))
        except Status as error:
            self._recorder.event(set_, "Warning", "FailedCreate", f"{subject} for Pod {name_of(pod)} in StatefulSet "
                                 f"{name_of(set_)} failed error: {error}")
            return [f"failed to create PVC {name_of(wanted)}: {error}"]
        self._recorder.event(set_, "Normal", "SuccessfulCreate",
                             f"{subject} Pod {name_of(pod)} in StatefulSet {name_of(set_)} success")
        return []

    def _give_owners(self, set_: Object, pod: Object) -> None:
        """Owners for claims that may be new. Raises Status."""
        try:
            self.update_claim_owners(set_, pod)
        except Status as error:
            self._tell(set_, "update", pod, error)
            raise

    def owners_match(self, set_: Object, pod: Object, ordinal: int) -> bool:
        """Whether the pod's claims are owned as the retention policy wants (``ClaimsMatchRetentionPolicy``)."""
        found = self._seen_claims(set_, ordinal)
        in_range = bool(found) and ordinal in ordinals(set_)
        return all(claims.is_owner_up_to_date(claim, set_, pod, in_range) for claim in found)

    def update_claim_owners(self, set_: Object, pod: Object) -> None:
        """``UpdatePodClaimForRetentionPolicy``. Raises Status."""
        ordinal = ordinal_of(pod)
        in_range = ordinal in ordinals(set_)
        for claim in self._stored_claims(set_, ordinal):
            if claims.has_unexpected_controller(claim, set_, pod):
                message = (f"PersistentVolumeClaim {name_of(claim)} has a conflicting OwnerReference that acts as a"
                           " manging controller, the retention policy is ignored for this claim")
                self._recorder.event(set_, "Warning", "ConflictingController", message)
            if not claims.is_owner_up_to_date(claim, set_, pod, in_range):
                changed = claims.with_owner(claim, set_, pod, in_range)
                self._client.update(CLAIMS, changed, namespace=namespace_of(claim))

    def has_stale_claim(self, set_: Object, pod: Object) -> bool:
        """Whether a claim still belongs to an earlier pod of the name and will go with it (``PodClaimIsStale``)."""
        if claims.retention(set_)[1] == claims.RETAIN:
            return False
        return any(claims.has_stale_owner(claim, pod) for claim in self._seen_claims(set_, ordinal_of(pod)))

    def _seen_claim(self, set_: Object, name: str) -> Object | None:
        return self._informers.get(CLAIMS, namespace_of(set_), name)

    def _seen_claims(self, set_: Object, ordinal: int) -> list[Object]:
        found = (self._seen_claim(set_, name) for name in claims.claim_names(set_, ordinal))
        return [claim for claim in found if claim is not None]

    def _stored_claims(self, set_: Object, ordinal: int) -> list[Object]:
        """As they are in storage, since this sync may have made some of them."""
        found = (self._stored_claim(set_, name) for name in claims.claim_names(set_, ordinal))
        return [claim for claim in found if claim is not None]

    def _stored_claim(self, set_: Object, name: str) -> Object | None:
        try:
            return self._client.get(CLAIMS, name, namespace=namespace_of(set_))
        except NotFound:
            return None

    def _tell(self, set_: Object, verb: str, pod: Object, error: Exception | None = None) -> None:
        word = verb.capitalize()
        subject = f"{word} Pod {name_of(pod)} in StatefulSet {name_of(set_)}"
        if error is None:
            self._recorder.event(set_, "Normal", f"Successful{word}", f"{subject} successful")
        else:
            self._recorder.event(set_, "Warning", f"Failed{word}", f"{subject} failed error: {error}")
