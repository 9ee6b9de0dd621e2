"""Writes both sides of a binding, their phases and statuses (``bind``, ``unbindVolume``,
``update…Phase``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kubepy.api.meta import annotations_of, name_of
from kubepy.api.objects.volumes import BIND_COMPLETED, BOUND_BY_CONTROLLER, capacity, with_claim
from kubepy.api.values.quantity import Quantity
from kubepy.apiserver.client import Client
from kubepy.runtime.events import Recorder
from kubepy.runtime.informers import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, ResourceClient

if TYPE_CHECKING:
    from kubepy.api.typed import (
        ObjectMeta,
        PersistentVolume,
        PersistentVolumeClaim,
        PersistentVolumeClaimStatus,
        PersistentVolumeSpec,
        PersistentVolumeStatus,
    )

COMPONENT = "persistentvolume-controller"  # in events
PRE_RESIZE_CAPACITY = "volume.alpha.kubernetes.io/pre-resize-capacity"


class PhaseEvent(NamedTuple):
    """The event of a change of phase."""

    type: str
    reason: str
    message: str


class Binder:
    """Writes claims and volumes for the controllers, but not what they are already; every method
    raises Status."""

    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._claims = ResourceClient(client, PERSISTENT_VOLUME_CLAIMS)
        self._volumes = ResourceClient(client, PERSISTENT_VOLUMES)
        self._clock = client.clock
        self._recorder = recorder

    # --- binding

    def bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """Bind the volume first: when the second write fails, the claim is bound later by what the
        volume says."""
        bound = with_claim(volume, claim)
        if bound is not volume:
            bound = self._volumes.update(bound)
        self.set_volume_phase(bound, "Bound")
        spec = claim["spec"]
        annotations = dict(annotations_of(claim))
        if spec.get("volumeName") != name_of(bound):
            spec = {**spec, "volumeName": name_of(bound)}
            annotations.setdefault(BOUND_BY_CONTROLLER, "yes")
        annotations.setdefault(BIND_COMPLETED, "yes")
        if spec is not claim["spec"] or annotations != annotations_of(claim):
            claim = self.update_claim({**claim, "spec": spec}, annotations)
        self.set_claim_phase(claim, "Bound", bound)

    def unbind(self, volume: PersistentVolume) -> None:
        """Undo a binding; a volume whose manifest reserves it for a claim stays reserved."""
        spec: PersistentVolumeSpec = {**volume["spec"]}
        annotations = dict(annotations_of(volume))
        if annotations.pop(BOUND_BY_CONTROLLER, None) is not None:
            spec.pop("claimRef", None)
        else:
            spec["claimRef"] = {**spec["claimRef"]}
            spec["claimRef"].pop("uid", None)
        metadata = with_annotations(volume["metadata"], annotations)
        self.set_volume_phase(
            self._volumes.update({**volume, "spec": spec, "metadata": metadata}), "Available"
        )

    def update_claim(
        self, claim: PersistentVolumeClaim, annotations: dict[str, str]
    ) -> PersistentVolumeClaim:
        """Update a claim with these annotations."""
        return self._claims.update(
            {**claim, "metadata": with_annotations(claim["metadata"], annotations)}
        )

    # --- phases

    def set_volume_phase(
        self, volume: PersistentVolume, phase: str, event: PhaseEvent | None = None
    ) -> PersistentVolume:
        """Set the phase; ``event`` is recorded, and its message is written into the status."""
        status: PersistentVolumeStatus = {**(volume.get("status") or {})}
        if status.get("phase") == phase:
            return volume
        status.pop("message", None)
        status["phase"] = phase
        status["lastPhaseTransitionTime"] = self._clock.timestamp()
        if event is not None:
            status["message"] = event.message
        updated = self._volumes.update_status(volume, status)
        if event is not None:
            self._recorder.event(updated, *event)
        return updated

    def set_claim_phase(
        self,
        claim: PersistentVolumeClaim,
        phase: str,
        volume: PersistentVolume | None = None,
        event: PhaseEvent | None = None,
    ) -> PersistentVolumeClaim:
        """Set the phase of a claim, and what it reports of its volume; ``event`` is recorded."""
        before: PersistentVolumeClaimStatus = claim.get("status") or {}
        if event is not None and before.get("phase") == phase:
            return claim
        status = claim_status(before, phase, volume)
        if status == before:
            return claim
        updated = self._claims.update_status(claim, status)
        if event is not None:
            self._recorder.event(updated, *event)
        return updated


def claim_status(
    before: PersistentVolumeClaimStatus, phase: str, volume: PersistentVolume | None
) -> PersistentVolumeClaimStatus:
    """Return the status of a claim in a phase, bound to a volume or to none
    (``updateClaimStatus``)."""
    status: PersistentVolumeClaimStatus = {**before, "phase": phase}
    if volume is None:
        status.pop("accessModes", None)
        status.pop("capacity", None)
        status.pop("currentVolumeAttributesClassName", None)
        return status

    spec = volume["spec"]
    status["accessModes"] = spec.get("accessModes") or []
    if (
        before.get("phase") == phase
    ):  # a bound claim may rightly report another capacity than its volume has
        return status

    reported = (before.get("capacity") or {}).get("storage")
    if PRE_RESIZE_CAPACITY in annotations_of(volume):
        status["capacity"] = {"storage": annotations_of(volume)[PRE_RESIZE_CAPACITY]}
    elif reported is None or Quantity.parse(reported) != capacity(volume):
        status["capacity"] = spec["capacity"]

    if before.get("phase") == "Pending" and spec.get("volumeAttributesClassName") is not None:
        status["currentVolumeAttributesClassName"] = spec["volumeAttributesClassName"]
    return status


def with_annotations(metadata: ObjectMeta, annotations: dict[str, str]) -> ObjectMeta:
    """Return the metadata with these annotations, without the field when there are none."""
    changed: ObjectMeta = {**metadata}
    changed.pop("annotations", None)
    if annotations:
        return {**changed, "annotations": annotations}
    return changed
