"""Writing a StatefulSet's pods and claims, with events (``stateful_pod_control.go``)."""

from __future__ import annotations

from kubepy.cluster.client import Client
from kubepy.cluster.errors import Status
from kubepy.cluster.events import Recorder
from kubepy.cluster.objects.meta import Object, is_being_deleted, name_of, namespace_of
from kubepy.controllers.statefulset import claims
from kubepy.controllers.statefulset.members import ordinal_of, ordinals, repaired

CLAIMS = "persistentvolumeclaims"


class ClaimError(Exception):
    """A claim that a pod needs cannot be had now."""


class StatefulPodControl:
    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._client = client
        self._recorder = recorder

    def create(self, set_: Object, pod: Object) -> None:
        """Create a pod, its claims first. Raises Status, ClaimError."""
        try:
            self.create_claims(set_, pod)
        except ClaimError as error:
            self._tell(set_, "create", pod, error)
            raise
        try:
            created = self._client.create("pods", pod, namespace=namespace_of(set_))
        except Status as error:
            if error.reason != "AlreadyExists":
                self._tell(set_, "create", pod, error)
            raise
        self.update_claim_owners(set_, created)
        self._tell(set_, "create", pod)

    def delete(self, set_: Object, pod: Object) -> None:
        """Delete a pod; one that is gone by now is as good. Raises Status."""
        try:
            self._client.delete("pods", name_of(pod), namespace=namespace_of(pod))
        except Status as error:
            if error.reason != "NotFound":
                self._tell(set_, "delete", pod, error)
                raise
        self._tell(set_, "delete", pod)

    def repair(self, set_: Object, pod: Object) -> None:
        """Give a pod back its labels, volumes and claims, and those their owners. Raises Status, ClaimError."""
        try:
            self.create_claims(set_, pod)
            self.update_claim_owners(set_, pod)
            wanted = repaired(set_, pod)
            if wanted != pod:
                self._client.update("pods", wanted, namespace=namespace_of(pod))
        except (Status, ClaimError) as error:
            self._tell(set_, "update", pod, error)
            raise
        if wanted != pod:
            self._tell(set_, "update", pod)

    # --- claims

    def claim(self, set_: Object, name: str) -> Object | None:
        try:
            return self._client.get(CLAIMS, name, namespace=namespace_of(set_))
        except Status as error:
            if error.reason != "NotFound":
                raise
            return None

    def create_claims(self, set_: Object, pod: Object) -> None:
        """Create the claims that are missing. Raises ClaimError if one fails or is on its way out."""
        errors = []
        for wanted in claims.new_claims(set_, ordinal_of(pod)):
            there = self.claim(set_, name_of(wanted))
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

    def owners_match(self, set_: Object, pod: Object) -> bool:
        """Whether the pod's claims are owned as the retention policy wants (``ClaimsMatchRetentionPolicy``)."""
        return all(claims.is_owner_up_to_date(claim, set_, pod, _in_range(set_, pod))
                   for claim in self._claims_of(set_, pod))

    def update_claim_owners(self, set_: Object, pod: Object) -> None:
        """``UpdatePodClaimForRetentionPolicy``. Raises Status."""
        for claim in self._claims_of(set_, pod):
            if claims.has_unexpected_controller(claim, set_, pod):
                message = (f"PersistentVolumeClaim {name_of(claim)} has a conflicting OwnerReference that acts as a"
                           " manging controller, the retention policy is ignored for this claim")
                self._recorder.event(set_, "Warning", "ConflictingController", message)
            if not claims.is_owner_up_to_date(claim, set_, pod, _in_range(set_, pod)):
                changed = claims.with_owner(claim, set_, pod, _in_range(set_, pod))
                self._client.update(CLAIMS, changed, namespace=namespace_of(claim))

    def has_stale_claim(self, set_: Object, pod: Object) -> bool:
        """Whether a claim still belongs to an earlier pod of the name and will go with it (``PodClaimIsStale``)."""
        if claims.retention(set_)[1] == claims.RETAIN:
            return False
        return any(claims.has_stale_owner(claim, pod) for claim in self._claims_of(set_, pod))

    def _claims_of(self, set_: Object, pod: Object) -> list[Object]:
        found = (self.claim(set_, name) for name in claims.claim_names(set_, ordinal_of(pod)))
        return [claim for claim in found if claim is not None]

    def _tell(self, set_: Object, verb: str, pod: Object, error: Exception | None = None) -> None:
        word = verb.capitalize()
        subject = f"{word} Pod {name_of(pod)} in StatefulSet {name_of(set_)}"
        if error is None:
            self._recorder.event(set_, "Normal", f"Successful{word}", f"{subject} successful")
        else:
            self._recorder.event(set_, "Warning", f"Failed{word}", f"{subject} failed error: {error}")


def _in_range(set_: Object, pod: Object) -> bool:
    return ordinal_of(pod) in ordinals(set_)
